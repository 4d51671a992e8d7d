//! Velocity swaps on a CUDA device.

use super::{ReversePerturbation, SwapResult};
use galamost_plugin_api::abi::Opaque;
use galamost_plugin_api::arguments;
use galamost_plugin_api::device::DevicePtr;
use galamost_plugin_api::prelude::*;
use galamost_plugin_api::services::Kernel;
use galamost_plugin_api::views::StateView;

const BLOCK: u32 = 256;
const MAX_BLOCKS: u32 = 512;

const SOURCE: &str = r#"
#include "galamost/state.cuh"

__device__ __forceinline__ u32 slab_of(const PosType& p, const SwapArgs& a) {
#ifdef GALAMOST_DOUBLE
    const double x = a.gradient == 0u ? p.x : a.gradient == 1u ? p.y : p.z;
    const u32 slab = u32((x / a.state.globals->box_length[a.gradient] + 0.5) * a.slabs);
    return slab < a.slabs ? slab : a.slabs - 1u;
#else
    const int x = a.gradient == 0u ? p.x : a.gradient == 1u ? p.y : p.z;
    return u32(u64(u32(x) + 0x80000000u) * a.slabs >> 32);
#endif
}

__device__ __forceinline__ real along(const Vec4& v, u32 axis) { return axis == 0u ? v.x : axis == 1u ? v.y : v.z; }

// Returns an integer key that orders particles by velocity, and by tag for equal velocities.
__device__ __forceinline__ u64 sort_key(float v, u32 tag) {
    // -0 and 0 are equal velocities
    const float plain = v == 0.0f ? 0.0f : v;
    u32 bits;
    memcpy(&bits, &plain, sizeof(bits));
    const u32 ordered = bits >> 31 ? ~bits : bits | 0x80000000u;
    return u64(ordered) << 32 | tag;
}

// Sums momentum and mass of each slab.
extern "C" __global__ void sample_profile(SwapArgs a) {
    __shared__ u64 mine[2 * 256];
    const StateView& s = a.state;
    for (u32 k = threadIdx.x; k < 2u * a.slabs; k += blockDim.x) mine[k] = 0ull;
    __syncthreads();
    for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < s.n_local; i += gridDim.x * blockDim.x) {
        if (!in_group(s, i, a.group)) continue;
        const u32 slab = slab_of(s.pos_type[i], a);
        const Vec4 v = s.velocity_mass[i];
        const double m = v.w;
        atomicAdd(&mine[2u * slab], u64((long long)rint(m * double(along(v, a.flow)) * 1073741824.0)));
        atomicAdd(&mine[2u * slab + 1u], u64((long long)rint(m * 1073741824.0)));
    }
    __syncthreads();
    for (u32 k = threadIdx.x; k < 2u * a.slabs; k += blockDim.x) atomicAdd(&a.profile[k], mine[k]);
}

// Selects the next particle of each slab, after those selected in earlier passes.
extern "C" __global__ void choose(SwapArgs a) {
    __shared__ u64 best[2];
    const StateView& s = a.state;
    if (threadIdx.x < 2u) best[threadIdx.x] = ~0ull;
    __syncthreads();
    for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < s.n_local; i += gridDim.x * blockDim.x) {
        const u32 slab = slab_of(s.pos_type[i], a);
        const bool low = slab == 0u;
        if (!(low || slab == a.slabs / 2u) || !in_group(s, i, a.group)) continue;
        const Vec4 own = s.velocity_mass[i];
        // a particle without mass moves with others
        if (own.w == real(0)) continue;
        const float v = float(along(own, a.flow));
        const u64 key = sort_key(low ? v : -v, s.tag[i]);
        const u32 side = low ? 0u : 1u;
        if (a.pass > 0u && key <= a.chosen[2u * (a.pass - 1u) + side]) continue;
        atomicMin(&best[side], key);
    }
    __syncthreads();
    if (threadIdx.x < 2u) atomicMin(&a.chosen[2u * a.pass + threadIdx.x], best[threadIdx.x]);
}

// Performs all swaps in one thread.
extern "C" __global__ void exchange(SwapArgs a) {
    const StateView& s = a.state;
    double sum = 0.0;
    for (u32 n = 0; n < a.swaps; ++n) {
        const u64 keys[2] = {a.chosen[2u * n], a.chosen[2u * n + 1u]};
        if (keys[0] == ~0ull || keys[1] == ~0ull) break;
        const u32 i = s.index_of_tag[u32(keys[0])], j = s.index_of_tag[u32(keys[1])];
        Vec4 vi = s.velocity_mass[i], vj = s.velocity_mass[j];
        const real u = along(vi, a.flow), w = along(vj, a.flow);
        // the swap would reverse the momentum flux
        if (!(u < w)) break;
        real to_i = w, to_j = u;
        if (vi.w != vj.w) {
            const double mi = vi.w, mj = vj.w, twice = 2.0 * ((mi * double(u) + mj * double(w)) / (mi + mj));
            to_i = real(twice - double(u));
            to_j = real(twice - double(w));
        }
        if (a.flow == 0u) { vi.x = to_i; vj.x = to_j; }
        if (a.flow == 1u) { vi.y = to_i; vj.y = to_j; }
        if (a.flow == 2u) { vi.z = to_i; vj.z = to_j; }
        s.velocity_mass[i] = vi;
        s.velocity_mass[j] = vj;
        sum += double(vi.w) * (double(to_i) - double(u));
    }
    *a.exchanged = sum;
}
"#;

#[repr(C)]
#[derive(Clone, Copy, DeviceStruct)]
struct SwapArgs {
    state: StateView,
    /// Momentum and mass of each slab as integers in units of 2^-30; the sums do not depend on the summation order.
    #[device(cxx = "u64*")]
    profile: DevicePtr<u8>,
    /// For each swap, the sort keys (velocity, tag) of the particles in slab 0 and in the middle slab; all bits set for none.
    #[device(cxx = "u64*")]
    chosen: DevicePtr<u8>,
    #[device(cxx = "double*")]
    exchanged: DevicePtr<u8>,
    group: u32,
    slabs: u32,
    flow: u32,
    gradient: u32,
    swaps: u32,
    pass: u32,
}

/// The kernels and their memory: consecutive blocks for the profile, the chosen particles and the exchanged momentum.
pub struct OnDevice {
    profile: Kernel,
    choose: Kernel,
    exchange: Kernel,
    memory: DevicePtr<u8>,
    /// Contents of `memory` before each call.
    initial: Vec<u8>,
}

impl OnDevice {
    /// Compiles the kernels and allocates their memory.
    ///
    /// # Errors
    /// Returns an error if compilation or allocation fails.
    pub fn new(host: &Host, slabs: u32, swaps: u32) -> Result<Self> {
        let module = host.compile("reverse_perturbation", &kernel_source(&[SwapArgs::text()], SOURCE)?)?;
        let mut initial = vec![0u8; 16 * slabs as usize];
        initial.extend(vec![0xff; 16 * swaps as usize]);
        initial.extend([0; 8]);
        Ok(Self {
            profile: host.kernel(module, "sample_profile")?,
            choose: host.kernel(module, "choose")?,
            exchange: host.kernel(module, "exchange")?,
            memory: host.allocate_bytes(initial.len())?,
            initial,
        })
    }

    /// Sums the slab profile and performs the swaps.
    ///
    /// # Errors
    /// Returns an error if a launch or a copy fails.
    ///
    /// # Safety
    /// The call's views describe valid device arrays.
    pub unsafe fn run(&self, host: &Host, call: &UpdateCall, settings: &ReversePerturbation) -> Result<SwapResult> {
        host.upload_bytes(self.memory, &self.initial)?;
        let (slabs, swaps) = (settings.slabs as usize, settings.swaps as usize);
        let mut args = SwapArgs {
            state: call.state,
            profile: self.memory,
            chosen: self.memory.offset(16 * slabs),
            exchanged: self.memory.offset(16 * (slabs + swaps)),
            group: call.group,
            slabs: settings.slabs,
            flow: settings.flow as u32,
            gradient: settings.gradient as u32,
            swaps: settings.swaps,
            pass: 0,
        };
        let blocks = call.state.n_local.div_ceil(BLOCK).min(MAX_BLOCKS);
        let launch = |kernel, grid, block, args: &SwapArgs| {
            let mut arguments: [*mut Opaque; 1] = arguments![*args];
            // SAFETY: every kernel has one SwapArgs parameter
            unsafe { host.launch(kernel, grid, block, &mut arguments) }
        };
        launch(self.profile, blocks, BLOCK, &args)?;
        for pass in 0..settings.swaps {
            args.pass = pass;
            launch(self.choose, blocks, BLOCK, &args)?;
        }
        launch(self.exchange, 1, 1, &args)?;
        let mut bytes = vec![0; self.initial.len()];
        host.download_bytes(self.memory, &mut bytes)?;
        let words: Vec<u64> = bytes.as_chunks::<8>().0.iter().map(|b| u64::from_ne_bytes(*b)).collect();
        Ok(SwapResult {
            profile: words[..2 * slabs].as_chunks::<2>().0.iter().map(|w| w.map(|w| w as i64)).collect(),
            exchanged: words.last().map_or(0.0, |w| f64::from_bits(*w)),
        })
    }
}
