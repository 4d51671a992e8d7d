//! Meetings on CUDA, in rounds.
//!
//! Pairs are ordered by (first word of their draw, smaller tag, larger tag). A particle keeps the first pair it has not
//! done yet, as (word, tag of the other); among the pairs of one particle these numbers have the same order. A pair that
//! is the first of both its particles meets. All pairs before it that share a particle with it are done then, so the
//! result is that of doing all pairs in turn; and the first pair of all that are left always meets, so it ends.

use crate::lowe_andersen::law::{Law, Rule};
use galamost_plugin_api::abi::Opaque;
use galamost_plugin_api::arguments;
use galamost_plugin_api::device::DevicePtr;
use galamost_plugin_api::philox::RandomKey;
use galamost_plugin_api::prelude::*;
use galamost_plugin_api::services::Kernel;
use galamost_plugin_api::views::{ListView, StateView};

const BLOCK: u32 = 128;
/// Rounds between two looks at what is left: a look waits for the device.
const ROUNDS: usize = 4;

/// Kernels, and what is known of each particle from round to round.
pub struct OnDevice {
    begin: Kernel,
    first: Kernel,
    meet: Kernel,
    from: DevicePtr<u8>,
    best: DevicePtr<u8>,
    hit: DevicePtr<u8>,
    left: DevicePtr<u8>,
}

const SOURCE: &str = r#"
#include "galamost/list.cuh"

struct PairsArgs {
    StateView state;
    ListView list;
    RandomKey key;
    u64 step;
    // Lowe-Andersen: collisions of a pair by time; Shardlow: friction, with the exponent s of its weight
    double rate, gamma, s, r_cut;
    // smallest pair that a particle has not done yet may be this one; NOTHING: it has done all
    u64* from;
    // its first pair that is left; NOTHING: none
    u64* best;
    // its first pair has met
    u32* hit;
    // particles with a pair that is left
    u32* left;
    u32 group, kt, shardlow, reserved;
};

static constexpr u64 NOTHING = ~0ull;

// Products and sums that are rounded one by one, as on the CPU: both take the same pairs to be near.
#ifdef __CUDACC__
__device__ __forceinline__ double times(double a, double b) { return __dmul_rn(a, b); }
__device__ __forceinline__ double plus(double a, double b) { return __dadd_rn(a, b); }
#else
__device__ __forceinline__ double times(double a, double b) { return a * b; }
__device__ __forceinline__ double plus(double a, double b) { return a + b; }
#endif

// r_i - r_j of the nearest image, in f64.
__device__ __forceinline__ Vec3<double> apart(const PosType& i, const PosType& j, const Globals* g) {
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

extern "C" __global__ void pairs_begin(PairsArgs a) {
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= a.state.n_local) return;
    a.from[i] = in_group(a.state, i, a.group) ? 0ull : NOTHING;
    a.best[i] = NOTHING;
    // so that the first round looks at every particle
    a.hit[i] = 1u;
}

// The first pair of each particle whose last one has met.
extern "C" __global__ void pairs_first(PairsArgs a) {
    const StateView& s = a.state;
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= s.n_local) return;
    if (a.hit[i]) {
        a.hit[i] = 0u;
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
                if (pair < from || pair >= first || !in_group(s, j, a.group)) continue;
                const double r2 = square(apart(pi, s.pos_type[j], s.globals));
                if (r2 < limit && r2 > 0.0) first = pair;
            }
        }
        a.best[i] = first;
    }
    if (a.best[i] != NOTHING) atomicAdd(a.left, 1u);
}

// Pairs that are the first of both their particles. Each particle notes it for itself; who has the smaller
// tag changes the velocities of both.
extern "C" __global__ void pairs_meet(PairsArgs a) {
    const StateView& s = a.state;
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= s.n_local || a.best[i] == NOTHING) return;
    const u64 pair = a.best[i];
    const u32 tag_i = s.tag[i], tag_j = u32(pair), j = s.index_of_tag[tag_j];
    if (a.best[j] != ((pair & 0xffffffff00000000ull) | tag_i)) return;
    a.hit[i] = 1u;
    if (tag_i > tag_j) return;
    const Words w = random_pair(a.key, a.step, tag_i, tag_j);
    const double angle = (double(int(w.v[3]) >> 8) + 0.5) * (3.14159265358979323846 / 8388608.0);
    const double normal = sqrt(-2.0 * log(unit_uniform<double>(w.v[2]))) * cos(angle);
    const Vec3<double> d = apart(s.pos_type[i], s.pos_type[j], s.globals);
    const double r = sqrt(square(d)), kt = s.globals->values[a.kt];
    const Vec3<double> e = d / r;
    Vec4 vi = s.velocity_mass[i], vj = s.velocity_mass[j];
    const double mi = vi.w, mj = vj.w, reduced = mi * mj / (mi + mj);
    const double along = (double(vi.x) - double(vj.x)) * e.x + (double(vi.y) - double(vj.y)) * e.y +
                         (double(vi.z) - double(vj.z)) * e.z;
    double met = normal * sqrt(kt / reduced);
    if (a.shardlow) {
        // half of the step with the velocity of its beginning, half with that of its end
        const double dt = s.globals->dt, x = fmax(1.0 - r / a.r_cut, 0.0), w = a.s == 1.0 ? x : pow(x, a.s);
        const double friction = a.gamma * w * w * dt / (2.0 * reduced);
        const double noise = sqrt(2.0 * a.gamma * kt * dt) * w * normal / (2.0 * reduced);
        met = (along - friction * along + 2.0 * noise) / (1.0 + friction);
    }
    const double push = reduced * (met - along);
    vi.x = real(double(vi.x) + push * e.x / mi);
    vi.y = real(double(vi.y) + push * e.y / mi);
    vi.z = real(double(vi.z) + push * e.z / mi);
    vj.x = real(double(vj.x) - push * e.x / mj);
    vj.y = real(double(vj.y) - push * e.y / mj);
    vj.z = real(double(vj.z) - push * e.z / mj);
    s.velocity_mass[i] = vi;
    s.velocity_mass[j] = vj;
}
"#;

#[repr(C)]
struct PairsArgs {
    state: StateView,
    list: ListView,
    key: RandomKey,
    step: u64,
    rate: f64,
    gamma: f64,
    s: f64,
    r_cut: f64,
    from: DevicePtr<u8>,
    best: DevicePtr<u8>,
    hit: DevicePtr<u8>,
    left: DevicePtr<u8>,
    group: u32,
    kt: u32,
    shardlow: u32,
    reserved: u32,
}

impl OnDevice {
    /// Compiles, and makes room for `n` particles.
    pub fn new(host: &Host, n: usize) -> Result<Self> {
        let module = host.compile("pair_thermostat", SOURCE)?;
        Ok(Self {
            begin: host.kernel(module, "pairs_begin")?,
            first: host.kernel(module, "pairs_first")?,
            meet: host.kernel(module, "pairs_meet")?,
            from: host.allocate_bytes(8 * n)?,
            best: host.allocate_bytes(8 * n)?,
            hit: host.allocate_bytes(4 * n)?,
            left: host.allocate_bytes(4)?,
        })
    }

    /// Lets all pairs meet that do so in this step.
    ///
    /// # Safety
    /// The views describe arrays of the device.
    pub unsafe fn run(&self, host: &Host, law: Law, call: &UpdateCall) -> Result<()> {
        let (rate, gamma, s, shardlow) = match law.rule {
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
            r_cut: law.r_cut,
            from: self.from,
            best: self.best,
            hit: self.hit,
            left: self.left,
            group: call.group,
            kt: call.first_varying,
            shardlow,
            reserved: 0,
        };
        let blocks = call.state.n_local.div_ceil(BLOCK);
        let mut arguments: [*mut Opaque; 1] = arguments![args];
        // SAFETY: the kernels take one PairsArgs
        let mut launch = |kernel| unsafe { host.launch(kernel, blocks, BLOCK, &mut arguments) };
        launch(self.begin)?;
        loop {
            for round in 0..ROUNDS {
                if round + 1 == ROUNDS {
                    host.upload_bytes(self.left, &[0; 4])?;
                }
                launch(self.first)?;
                launch(self.meet)?;
            }
            let mut left = [0; 4];
            host.download_bytes(self.left, &mut left)?;
            if left == [0; 4] {
                return Ok(());
            }
        }
    }
}
