//! Removal of the center-of-mass momentum.

use galamost_plugin_api::abi::Opaque;
use galamost_plugin_api::arguments;
use galamost_plugin_api::device::DevicePtr;
use galamost_plugin_api::precision::Precision;
use galamost_plugin_api::prelude::*;
use galamost_plugin_api::services::Kernel;
use galamost_plugin_api::updater::changed;
use galamost_plugin_api::views::StateView;

/// Removes the center-of-mass velocity of a group every `every` steps: v ← v − Σ m v/Σ m, with both sums over the group.
///
/// Use it with forces or integrators that do not conserve momentum, or against the drift by rounding errors in long runs.
/// The kinetic energy decreases by P²/2M, with P the momentum and M the mass of the group; `conserved` of `Thermo` does
/// not count this. With `every: 1` and a field, the motion about the center of mass of N particles has the temperature
/// kT N/(N − 1) if the thermostat scales velocities (`NoseHoover`, `Bussi`, …), because it counts 3N degrees of freedom, as
/// `Thermo` does. With `Langevin`, `Andersen` or DPD it has kT, and `Thermo` shows kT (N − 1)/N.
///
/// Sums are f64 with a fixed summation order, so every run gives the same result.
///
/// Reference: none; the definition of the center of mass.
///
/// ```ron
/// ZeroMomentum(every: 10)
/// ```
#[component(Updater, "ZeroMomentum")]
#[derive(Params)]
pub struct ZeroMomentum {
    /// Number of steps between removals.
    #[param(at_least = 1)]
    every: u64,
    /// Particles whose center-of-mass velocity is removed.
    #[param(default = Group::All)]
    group: Group,
    #[param(skip)]
    cuda: bool,
    #[param(skip)]
    started: Option<Started>,
}

struct Started {
    host: Host,
    device: Option<OnDevice>,
}

/// Kernels and memory for their sums.
struct OnDevice {
    sum: Kernel,
    subtract: Kernel,
    partial: DevicePtr<u8>,
    counter: DevicePtr<u8>,
    result: DevicePtr<u8>,
}

const BLOCK: u32 = 256;
const MAX_BLOCKS: u32 = 256;
/// Number of particles per task on the CPU; independent of the number of threads, for a fixed summation order.
const CHUNK: usize = 4096;

const SOURCE: &str = r#"
#include "galamost/state.cuh"
#include "galamost/reduce.cuh"

// Sums m v and m over the group.
extern "C" __global__ void sum_momentum(MomentumArgs a) {
    __shared__ double memory[4 * 32];
    __shared__ u32 flag;
    double sums[4] = {0, 0, 0, 0};
    const StateView& s = a.state;
    for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < s.n_local; i += gridDim.x * blockDim.x) {
        if (!in_group(s, i, a.group)) continue;
        const Vec4 v = s.velocity_mass[i];
        const double m = v.w;
        sums[0] += m * double(v.x);
        sums[1] += m * double(v.y);
        sums[2] += m * double(v.z);
        sums[3] += m;
    }
    block_sum(sums, memory);
    if (threadIdx.x == 0) {
        for (int k = 0; k < 4; ++k) a.partial[blockIdx.x * 4u + k] = sums[k];
    }
    if (last_block(a.counter, &flag)) {
        double total[4];
        sum_partials(a.partial, gridDim.x, total, memory);
        if (threadIdx.x == 0) {
            for (int k = 0; k < 4; ++k) a.result[k] = total[k];
        }
    }
}

// Subtracts the center-of-mass velocity from each velocity of the group.
extern "C" __global__ void subtract_momentum(MomentumArgs a) {
    const StateView& s = a.state;
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= s.n_local || !in_group(s, i, a.group)) return;
    const double m = a.result[3];
    Vec4 v = s.velocity_mass[i];
    v.x = real(double(v.x) - a.result[0] / m);
    v.y = real(double(v.y) - a.result[1] / m);
    v.z = real(double(v.z) - a.result[2] / m);
    s.velocity_mass[i] = v;
}
"#;

#[repr(C)]
#[derive(Clone, Copy, DeviceStruct)]
struct MomentumArgs {
    state: StateView,
    #[device(cxx = "double*")]
    partial: DevicePtr<u8>,
    #[device(cxx = "u32*")]
    counter: DevicePtr<u8>,
    #[device(cxx = "double*")]
    result: DevicePtr<u8>,
    group: u32,
    reserved: u32,
}

impl Updater for ZeroMomentum {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        needs.period = self.every;
        (needs.group, needs.changes_velocities) = (self.group.need(system)?, true);
        needs.constrainable = true;
        needs.triclinic = true;
        self.cuda = system.device == "cuda";
        Ok(())
    }

    fn start(&mut self, host: Host) -> Result<()> {
        let device = if self.cuda {
            let module = host.compile("zero_momentum", &kernel_source(&[MomentumArgs::text()], SOURCE)?)?;
            Some(OnDevice {
                sum: host.kernel(module, "sum_momentum")?,
                subtract: host.kernel(module, "subtract_momentum")?,
                partial: host.allocate_bytes(32 * MAX_BLOCKS as usize)?,
                counter: host.allocate_bytes(4)?,
                result: host.allocate_bytes(32)?,
            })
        } else {
            None
        };
        self.started = Some(Started { host, device });
        Ok(())
    }

    unsafe fn update(&mut self, call: &mut UpdateCall) -> Result<()> {
        let Some(Started { host, device }) = &self.started else {
            return Err(Error::Run("ZeroMomentum was not started".into()));
        };
        call.changed = changed::VELOCITIES;
        if let Some(d) = device {
            let args = MomentumArgs {
                state: call.state,
                partial: d.partial,
                counter: d.counter,
                result: d.result,
                group: call.group,
                reserved: 0,
            };
            let blocks = call.state.n_local.div_ceil(BLOCK);
            let mut arguments: [*mut Opaque; 1] = arguments![args];
            // SAFETY: both kernels have one MomentumArgs parameter
            return unsafe {
                host.launch(d.sum, blocks.min(MAX_BLOCKS), BLOCK, &mut arguments)?;
                host.launch(d.subtract, blocks, BLOCK, &mut arguments)
            };
        }
        // SAFETY: without a device, the engine passes views of valid host arrays
        unsafe {
            if call.state.precision == Precision::Double as u32 {
                remove_on_cpu::<f64>(host, call);
            } else {
                remove_on_cpu::<f32>(host, call);
            }
        }
        Ok(())
    }
}

/// Removes the center-of-mass velocity on the CPU.
///
/// # Safety
/// The views describe valid host arrays with velocities of type `R`.
unsafe fn remove_on_cpu<R: Real>(host: &Host, call: &UpdateCall) {
    let s = call.state;
    let n = s.n_local as usize;
    let velocity = s.velocity_mass.cast::<[R; 4]>();
    let mut sums = vec![[0.0f64; 4]; n.div_ceil(CHUNK)];
    let partial = DevicePtr::<[f64; 4]>::new(sums.as_mut_ptr() as u64);
    host.parallel(n, CHUNK, |range| {
        let mut sum = [0.0; 4];
        let chunk = range.start / CHUNK;
        for i in range {
            // SAFETY: `i < n_local`, and the arrays are valid by the contract of this function
            unsafe {
                if s.in_group(i, call.group) {
                    let [x, y, z, m] = (*velocity.host().add(i)).map(Real::f64);
                    sum = [sum[0] + m * x, sum[1] + m * y, sum[2] + m * z, sum[3] + m];
                }
            }
        }
        // SAFETY: each chunk writes its own element of `sums`, which outlives all tasks
        unsafe { *partial.host().add(chunk) = sum };
    });
    let total = sums.iter().fold([0.0; 4], |t, s| std::array::from_fn(|k| t[k] + s[k]));
    let drift: [f64; 3] = std::array::from_fn(|k| total[k] / total[3]);
    host.parallel(n, CHUNK, |range| {
        for i in range {
            // SAFETY: `i < n_local`, the arrays are valid, and the ranges of tasks are disjoint
            unsafe {
                if s.in_group(i, call.group) {
                    let v = &mut *velocity.host().add(i);
                    for (v, drift) in v.iter_mut().zip(drift) {
                        *v = R::lit(v.f64() - drift);
                    }
                }
            }
        }
    });
}
