//! Collisions with CUDA, in rounds.
//!
//! Pairs are ordered by (random word 0, smaller tag, larger tag). Each particle stores its first remaining pair as
//! (word 0, tag of the partner); within one particle's pairs this gives the same order. A pair collides when it is the
//! first remaining pair of both its particles. All earlier pairs that share a particle with it have then collided, so
//! the result equals sequential processing. The first of all remaining pairs always collides, so the rounds terminate.

use crate::pairwise::collision::{Collision, Rule};
use galamost_plugin_api::abi::Opaque;
use galamost_plugin_api::arguments;
use galamost_plugin_api::device::DevicePtr;
use galamost_plugin_api::philox::RandomKey;
use galamost_plugin_api::prelude::*;
use galamost_plugin_api::services::Kernel;
use galamost_plugin_api::views::{ListView, StateView};

const BLOCK: u32 = 128;
/// Rounds between two downloads of the remaining count; each download waits for the device.
const ROUNDS: usize = 4;

/// Kernels and the state of each particle between rounds.
pub struct DeviceKernels {
    begin: Kernel,
    first: Kernel,
    collide: Kernel,
    from: DevicePtr<u8>,
    best: DevicePtr<u8>,
    collided: DevicePtr<u8>,
    remaining: DevicePtr<u8>,
}

const SOURCE: &str = r#"
#include "galamost/list.cuh"

static constexpr u64 NOTHING = ~0ull;

// Products and sums without contraction, as on the CPU: both devices find the same pairs.
#ifdef __CUDACC__
__device__ __forceinline__ double times(double a, double b) { return __dmul_rn(a, b); }
__device__ __forceinline__ double plus(double a, double b) { return __dadd_rn(a, b); }
#else
__device__ __forceinline__ double times(double a, double b) { return a * b; }
__device__ __forceinline__ double plus(double a, double b) { return a + b; }
#endif

// r_i - r_j of the nearest image, in f64.
__device__ __forceinline__ Vec3<double> separation(const PosType& i, const PosType& j, const Globals* g) {
    const double* l = g->box_length;
#ifdef GALAMOST_DOUBLE
    const double d[3] = {i.x - j.x, i.y - j.y, i.z - j.z};
    double near[3];
    for (int k = 0; k < 3; ++k) near[k] = l[k] > 0.0 ? plus(d[k], -times(l[k], rint(times(d[k], 1.0 / l[k])))) : d[k];
    return {near[0], near[1], near[2]};
#else
    return {times(double(int(u32(i.x) - u32(j.x))), l[0] / 4294967296.0),
            times(double(int(u32(i.y) - u32(j.y))), l[1] / 4294967296.0),
            times(double(int(u32(i.z) - u32(j.z))), l[2] / 4294967296.0)};
#endif
}

__device__ __forceinline__ double square(Vec3<double> d) {
    return plus(plus(times(d.x, d.x), times(d.y, d.y)), times(d.z, d.z));
}

// Returns false for a particle without mass, which moves with others.
__device__ __forceinline__ bool collides(const StateView& s, u32 i, u32 group) {
    return in_group(s, i, group) && s.velocity_mass[i].w > real(0);
}

extern "C" __global__ void pairs_begin(PairsArgs a) {
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= a.state.n_local) return;
    a.from[i] = collides(a.state, i, a.group) ? 0ull : NOTHING;
    a.best[i] = NOTHING;
    // the first round updates every particle
    a.collided[i] = 1u;
}

// Finds the next pair of each particle whose last pair has collided.
extern "C" __global__ void pairs_first(PairsArgs a) {
    const StateView& s = a.state;
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= s.n_local) return;
    if (a.collided[i]) {
        a.collided[i] = 0u;
        if (a.best[i] != NOTHING) a.from[i] = a.best[i] + 1ull;
        u64 first = NOTHING;
        const u64 from = a.from[i];
        if (from != NOTHING) {
            const u64 threshold =
                a.shardlow ? 1ull << 32 : u64(fmin(times(a.rate, s.globals->dt), 1.0) * 4294967296.0);
            const PosType pi = s.pos_type[i];
            const u32 tag_i = s.tag[i], n = a.list.count[i];
            const double limit = times(a.r_cut, a.r_cut);
            for (u32 k = 0; k < n; ++k) {
                const u32 j = neighbor(a.list, i, k), tag_j = s.tag[j];
                const Words w = random_pair(a.key, a.step, tag_i, tag_j);
                if (!(u64(w.v[1]) < threshold)) continue;
                const u64 pair = u64(w.v[0]) << 32 | tag_j;
                if (pair < from || pair >= first || !collides(s, j, a.group)) continue;
                const double r2 = square(separation(pi, s.pos_type[j], s.globals));
                if (r2 < limit && r2 > 0.0) first = pair;
            }
        }
        a.best[i] = first;
    }
    if (a.best[i] != NOTHING) atomicAdd(a.remaining, 1u);
}

// Collides the pairs that are the first of both their particles. Each particle sets its own flag; the thread of the
// smaller tag updates both velocities.
extern "C" __global__ void pairs_collide(PairsArgs a) {
    const StateView& s = a.state;
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= s.n_local || a.best[i] == NOTHING) return;
    const u64 pair = a.best[i];
    const u32 tag_i = s.tag[i], tag_j = u32(pair), j = s.index_of_tag[tag_j];
    if (a.best[j] != ((pair & 0xffffffff00000000ull) | tag_i)) return;
    a.collided[i] = 1u;
    if (tag_i > tag_j) return;
    const Words w = random_pair(a.key, a.step, tag_i, tag_j);
    const double angle = (double(int(w.v[3]) >> 8) + 0.5) * (3.14159265358979323846 / 8388608.0);
    const double normal = sqrt(-2.0 * log(unit_uniform<double>(w.v[2]))) * cos(angle);
    const Vec3<double> d = separation(s.pos_type[i], s.pos_type[j], s.globals);
    const double r = sqrt(square(d)), kt = s.globals->values[a.kt];
    const Vec3<double> e = d / r;
    Vec4 vi = s.velocity_mass[i], vj = s.velocity_mass[j];
    const double mi = vi.w, mj = vj.w, reduced = mi * mj / (mi + mj);
    const double along = (double(vi.x) - double(vj.x)) * e.x + (double(vi.y) - double(vj.y)) * e.y +
                         (double(vi.z) - double(vj.z)) * e.z;
    double after = normal * sqrt(kt / reduced);
    if (a.shardlow) {
        // explicit half step, then implicit half step
        const double dt = s.globals->dt, x = fmax(1.0 - r / a.r_cut, 0.0), w = a.s == 1.0 ? x : pow(x, a.s);
        const double friction = a.gamma * w * w * dt / (2.0 * reduced);
        const double noise = sqrt(2.0 * a.gamma * kt * dt) * w * normal / (2.0 * reduced);
        after = (along - friction * along + 2.0 * noise) / (1.0 + friction);
    }
    const double impulse = reduced * (after - along);
    vi.x = real(double(vi.x) + impulse * e.x / mi);
    vi.y = real(double(vi.y) + impulse * e.y / mi);
    vi.z = real(double(vi.z) + impulse * e.z / mi);
    vj.x = real(double(vj.x) - impulse * e.x / mj);
    vj.y = real(double(vj.y) - impulse * e.y / mj);
    vj.z = real(double(vj.z) - impulse * e.z / mj);
    s.velocity_mass[i] = vi;
    s.velocity_mass[j] = vj;
}
"#;

#[repr(C)]
#[derive(Clone, Copy, DeviceStruct)]
struct PairsArgs {
    state: StateView,
    list: ListView,
    key: RandomKey,
    step: u64,
    /// Lowe-Andersen: collision rate of a pair; Shardlow: friction and the exponent s of its weight.
    rate: f64,
    gamma: f64,
    s: f64,
    r_cut: f64,
    /// Lower bound of the remaining pairs of each particle; NOTHING: no pairs remain.
    #[device(cxx = "u64*")]
    from: DevicePtr<u8>,
    /// Its first remaining pair; NOTHING: none.
    #[device(cxx = "u64*")]
    best: DevicePtr<u8>,
    /// Its first pair has collided.
    #[device(cxx = "u32*")]
    collided: DevicePtr<u8>,
    /// Number of particles with remaining pairs.
    #[device(cxx = "u32*")]
    remaining: DevicePtr<u8>,
    group: u32,
    kt: u32,
    shardlow: u32,
    reserved: u32,
}

impl DeviceKernels {
    /// Compiles the kernels and allocates memory for `n` particles.
    ///
    /// # Errors
    /// Returns the compiler's or driver's error.
    pub fn new(host: &Host, n: usize) -> Result<Self> {
        let module = host.compile("pair_thermostat", &kernel_source(&[PairsArgs::text()], SOURCE)?)?;
        Ok(Self {
            begin: host.kernel(module, "pairs_begin")?,
            first: host.kernel(module, "pairs_first")?,
            collide: host.kernel(module, "pairs_collide")?,
            from: host.allocate_bytes(8 * n)?,
            best: host.allocate_bytes(8 * n)?,
            collided: host.allocate_bytes(4 * n)?,
            remaining: host.allocate_bytes(4)?,
        })
    }

    /// Performs all collisions of this step.
    ///
    /// # Errors
    /// Returns the driver's error.
    ///
    /// # Safety
    /// The views of `call` describe valid device arrays.
    pub unsafe fn run(&self, host: &Host, collision: Collision, call: &UpdateCall) -> Result<()> {
        let (rate, gamma, s, shardlow) = match collision.rule {
            Rule::Lowe { rate } => (rate, 0.0, 1.0, 0),
            Rule::Shardlow { gamma, s } => (0.0, gamma, s, 1),
        };
        let args = PairsArgs {
            state: call.state,
            list: call.list,
            key: call.key,
            step: call.step,
            rate,
            gamma,
            s,
            r_cut: collision.r_cut,
            from: self.from,
            best: self.best,
            collided: self.collided,
            remaining: self.remaining,
            group: call.group,
            kt: call.first_varying,
            shardlow,
            reserved: 0,
        };
        let blocks = call.state.n_local.div_ceil(BLOCK);
        let mut arguments: [*mut Opaque; 1] = arguments![args];
        // SAFETY: each kernel takes one PairsArgs
        let mut launch = |kernel| unsafe { host.launch(kernel, blocks, BLOCK, &mut arguments) };
        launch(self.begin)?;
        loop {
            for round in 0..ROUNDS {
                if round + 1 == ROUNDS {
                    host.upload_bytes(self.remaining, &[0; 4])?;
                }
                launch(self.first)?;
                launch(self.collide)?;
            }
            let mut remaining = [0; 4];
            host.download_bytes(self.remaining, &mut remaining)?;
            if remaining == [0; 4] {
                return Ok(());
            }
        }
    }
}
