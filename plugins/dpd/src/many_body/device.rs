//! Densities and forces with CUDA.

use crate::many_body::component::{PairRow, Parameters};
use galamost_plugin_api::abi::Opaque;
use galamost_plugin_api::arguments;
use galamost_plugin_api::device::{DevicePtr, bytes_of};
use galamost_plugin_api::precision::Precision;
use galamost_plugin_api::prelude::*;
use galamost_plugin_api::services::Kernel;
use galamost_plugin_api::views::{ListView, StateView};

const BLOCK: u32 = 128;
/// Maximum number of threads per neighbor-list row.
const MAX_TEAM: u32 = 32;

/// Kernels and their device memory.
pub struct DeviceKernels {
    density: Kernel,
    force: Kernel,
    rows: DevicePtr<u8>,
    densities: DevicePtr<u8>,
    partial: DevicePtr<u8>,
    counter: DevicePtr<u8>,
}

const SOURCE: &str = r#"
#include "galamost/list.cuh"
#include "galamost/reduce.cuh"

// Sums over the threads that share a row, always in the same order.
__device__ __forceinline__ real team_sum(real x, u32 team) {
    for (u32 d = team / 2u; d > 0u; d >>= 1) x += __shfl_xor_sync(0xffffffffu, x, d);
    return x;
}

extern "C" __global__ void __launch_bounds__(128) many_body_density(ManyBodyArgs a) {
    const StateView& s = a.state;
    if (s.globals->halt) return;
    const u32 team = a.list.team, thread = blockIdx.x * blockDim.x + threadIdx.x;
    const u32 i = thread / team, lane = thread % team;
    real sum = real(0);
    if (i < s.n_local) {
        const BoxScale scale = make_scale(s.globals);
        const PosType pi = load(&s.pos_type[i]);
        const real inv_r_d = real(1.0 / a.r_d), r_d2 = real(a.r_d * a.r_d);
        const u32 count = a.list.count[i];
        const u32* row = a.list.index + list_offset(a.list, i, lane);
        for (u32 k = lane; k < count; k += team, row += 32) {
            const real r2 = device_norm2(difference(pi, load(&s.pos_type[*row]), scale));
            if (!(r2 < r_d2)) continue;
            const real w = real(1) - device_sqrt(r2) * inv_r_d;
            sum += w * w;
        }
    }
    sum = team_sum(sum, team);
    if (lane == 0u && i < s.n_local) a.density[i] = sum;
}

extern "C" __global__ void __launch_bounds__(128) many_body_force(ManyBodyArgs a) {
    const StateView& s = a.state;
    if (s.globals->halt) return;
    const u32 team = a.list.team, thread = blockIdx.x * blockDim.x + threadIdx.x;
    const u32 i = thread / team, lane = thread % team;
    Vec3<real> f = {real(0), real(0), real(0)};
    real u = real(0), w[6] = {real(0), real(0), real(0), real(0), real(0), real(0)}, rho_i = real(0);
    if (i < s.n_local) {
        const BoxScale scale = make_scale(s.globals);
        const PosType pi = load(&s.pos_type[i]);
        const real inv_r_d = real(1.0 / a.r_d), r_d2 = real(a.r_d * a.r_d), b = real(a.strength);
        rho_i = a.density[i];
        const ManyBodyRow<real>* rows = a.rows + pi.kind * s.n_types;
        const u32 count = a.list.count[i];
        const u32* row = a.list.index + list_offset(a.list, i, lane);
        for (u32 k = lane; k < count; k += team, row += 32) {
            const u32 j = *row;
            const PosType pj = load(&s.pos_type[j]);
            const Vec3<real> d = difference(pi, pj, scale);
            const real r2 = device_norm2(d);
            const ManyBodyRow<real> pair = rows[pj.kind];
            if (!(r2 < pair.cutoff2 || r2 < r_d2)) continue;
            const real r = device_sqrt(r2);
            real strength = real(0);
            if (r2 < pair.cutoff2) {
                const real weight = real(1) - r * pair.inv_cutoff;
                strength += pair.a * weight;
                u += real(0.5) * pair.a * pair.cutoff * weight * weight;
            }
            if (r2 < r_d2) strength += b * (rho_i + a.density[j]) * (real(1) - r * inv_r_d);
            // coinciding particles have no direction and no force
            const Vec3<real> g = d * (r > real(0) ? strength / r : real(0));
            f += g;
            if (a.full) {
                w[0] += d.x * g.x;
                w[1] += d.x * g.y;
                w[2] += d.x * g.z;
                w[3] += d.y * g.y;
                w[4] += d.y * g.z;
                w[5] += d.z * g.z;
            }
        }
    }
    f = {team_sum(f.x, team), team_sum(f.y, team), team_sum(f.z, team)};
    const bool first = lane == 0u && i < s.n_local;
    real energy = real(0);
    if (a.full) {
        u = team_sum(u, team);
        for (int k = 0; k < 6; ++k) w[k] = team_sum(w[k], team);
        // each pair is visited twice, once per particle; the density energy belongs to one particle
        energy = real(0.5) * u + real(a.self_energy) * rho_i * rho_i;
    }
    if (first) {
        Vec4 total = s.force[i];
        total.x += f.x;
        total.y += f.y;
        total.z += f.z;
        total.w += energy;
        s.force[i] = total;
        if (a.full && s.virial) {
            for (u32 k = 0; k < 6u; ++k) s.virial[6u * i + k] += real(0.5) * w[k];
        }
    }
    if (a.full) {
        __shared__ double memory[7 * 32];
        __shared__ u32 flag;
        double values[7];
        values[0] = first ? double(energy) : 0.0;
        for (int k = 0; k < 6; ++k) values[k + 1] = first ? 0.5 * double(w[k]) : 0.0;
        block_sum(values, memory);
        if (threadIdx.x == 0) {
            for (int k = 0; k < 7; ++k) a.partial[u64(blockIdx.x) * 7u + k] = values[k];
        }
        if (last_block(a.counter, &flag)) {
            double total[7];
            sum_partials(a.partial, gridDim.x, total, memory);
            if (threadIdx.x == 0) {
                a.sums->energy = total[0];
                for (int k = 0; k < 6; ++k) a.sums->virial[k] = total[k + 1];
            }
        }
    }
}
"#;

/// Parameters of a pair of types.
#[repr(C)]
#[derive(Clone, Copy, DeviceStruct)]
#[allow(non_camel_case_types)]
struct ManyBodyRow<real> {
    a: real,
    cutoff: real,
    inv_cutoff: real,
    cutoff2: real,
}

impl ManyBodyRow<f64> {
    fn cast<R: Real>(self) -> ManyBodyRow<R> {
        ManyBodyRow {
            a: R::lit(self.a),
            cutoff: R::lit(self.cutoff),
            inv_cutoff: R::lit(self.inv_cutoff),
            cutoff2: R::lit(self.cutoff2),
        }
    }
}

#[repr(C)]
#[derive(Clone, Copy, DeviceStruct)]
struct ManyBodyArgs {
    state: StateView,
    list: ListView,
    #[device(cxx = "const ManyBodyRow<real>*")]
    rows: DevicePtr<u8>,
    #[device(cxx = "real*")]
    density: DevicePtr<u8>,
    #[device(cxx = "double*")]
    partial: DevicePtr<u8>,
    #[device(cxx = "u32*")]
    counter: DevicePtr<u8>,
    sums: DevicePtr<Sums>,
    strength: f64,
    r_d: f64,
    self_energy: f64,
    full: u32,
    reserved: u32,
}

impl DeviceKernels {
    /// Compiles the kernels and allocates memory for `n` particles.
    pub fn new(host: &Host, parameters: &Parameters, n: usize) -> Result<Self> {
        let module = host
            .compile("many_body_dpd", &kernel_source(&[ManyBodyRow::<f32>::text(), ManyBodyArgs::text()], SOURCE)?)?;
        let row = |r: &PairRow| ManyBodyRow {
            a: r.a,
            cutoff: r.cutoff,
            inv_cutoff: 1.0 / r.cutoff,
            cutoff2: r.cutoff * r.cutoff,
        };
        let rows: Vec<ManyBodyRow<f64>> = parameters.rows.iter().map(row).collect();
        let bytes = match parameters.precision {
            Precision::Double => bytes_of(&rows).to_vec(),
            _ => bytes_of(&rows.iter().map(|r| r.cast::<f32>()).collect::<Vec<_>>()).to_vec(),
        };
        let rows = host.allocate_bytes(bytes.len())?;
        host.upload_bytes(rows, &bytes)?;
        let blocks = (n * MAX_TEAM as usize).div_ceil(BLOCK as usize);
        Ok(Self {
            density: host.kernel(module, "many_body_density")?,
            force: host.kernel(module, "many_body_force")?,
            rows,
            densities: host.allocate_bytes(parameters.precision.real_size() * n)?,
            partial: host.allocate_bytes(7 * 8 * blocks)?,
            counter: host.allocate_bytes(4)?,
        })
    }

    /// Launches both kernels.
    ///
    /// # Safety
    /// The views of `call` describe valid device arrays.
    pub unsafe fn launch(&self, host: &Host, parameters: &Parameters, call: &ForceCall) -> Result<()> {
        let args = ManyBodyArgs {
            state: call.state,
            list: call.list,
            rows: self.rows,
            density: self.densities,
            partial: self.partial,
            counter: self.counter,
            sums: call.device_sums,
            strength: parameters.strength(),
            r_d: parameters.r_d,
            self_energy: parameters.self_energy(),
            full: u32::from(call.wanted.more_than_force()),
            reserved: 0,
        };
        let blocks = (call.state.n_local * call.list.team).div_ceil(BLOCK);
        let mut arguments: [*mut Opaque; 1] = arguments![args];
        // SAFETY: both kernels take one ManyBodyArgs
        unsafe {
            host.launch(self.density, blocks, BLOCK, &mut arguments)?;
            host.launch(self.force, blocks, BLOCK, &mut arguments)
        }
    }
}
