//! Removal of the momentum of the center of mass.

use galamost_plugin_api::abi::Opaque;
use galamost_plugin_api::arguments;
use galamost_plugin_api::device::DevicePtr;
use galamost_plugin_api::precision::Precision;
use galamost_plugin_api::prelude::*;
use galamost_plugin_api::services::Kernel;
use galamost_plugin_api::updater::changed;
use galamost_plugin_api::views::StateView;

/// Takes the velocity of the center of mass off every `every` steps: v ← v − Σ m v/Σ m, both sums over the group.
///
/// For forces or integrators that do not conserve the momentum, and against the drift that rounding leaves in long runs.
/// The kinetic energy falls by P²/2M, which `conserved` of `Thermo` does not count. Sums are made in f64 and in a fixed
/// order, so the result is the same in every run.
///
/// Reference: none; the definition of the center of mass.
///
/// ```ron
/// ZeroMomentum(every: 10)
/// ```
#[component(Updater, "ZeroMomentum")]
#[derive(Params)]
pub struct ZeroMomentum {
    /// Steps from one removal to the next.
    #[param(at_least = 1)]
    every: u64,
    /// The particles whose common velocity is taken off.
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

/// Kernels, and memory for their sums.
struct OnDevice {
    sum: Kernel,
    take: Kernel,
    partial: DevicePtr<u8>,
    counter: DevicePtr<u8>,
    result: DevicePtr<u8>,
}

const BLOCK: u32 = 256;
const MOST_BLOCKS: u32 = 256;
/// Particles of one task on the CPU; it does not depend on the number of threads.
const CHUNK: usize = 4096;

const SOURCE: &str = r#"
#include "galamost/state.cuh"
#include "galamost/reduce.cuh"

struct MomentumArgs {
    StateView state;
    double* partial;
    u32* counter;
    double* result;
    u32 group, reserved;
};

// Sums of m v and m over the group.
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

extern "C" __global__ void take_momentum(MomentumArgs a) {
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
struct MomentumArgs {
    state: StateView,
    partial: DevicePtr<u8>,
    counter: DevicePtr<u8>,
    result: DevicePtr<u8>,
    group: u32,
    reserved: u32,
}

impl Updater for ZeroMomentum {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        needs.period = self.every;
        needs.group = self.group.need(system)?;
        self.cuda = system.device == "cuda";
        Ok(())
    }

    fn start(&mut self, host: Host) -> Result<()> {
        let device = if self.cuda {
            let module = host.compile("zero_momentum", SOURCE)?;
            Some(OnDevice {
                sum: host.kernel(module, "sum_momentum")?,
                take: host.kernel(module, "take_momentum")?,
                partial: host.allocate_bytes(32 * MOST_BLOCKS as usize)?,
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
            // SAFETY: both kernels take one MomentumArgs
            return unsafe {
                host.launch(d.sum, blocks.min(MOST_BLOCKS), BLOCK, &mut arguments)?;
                host.launch(d.take, blocks, BLOCK, &mut arguments)
            };
        }
        // SAFETY: the engine's word about the views
        unsafe {
            if call.state.precision == Precision::Double as u32 {
                cpu::<f64>(host, call);
            } else {
                cpu::<f32>(host, call);
            }
        }
        Ok(())
    }
}

unsafe fn cpu<R: Real>(host: &Host, call: &UpdateCall) {
    let s = call.state;
    let n = s.n_local as usize;
    let velocity = s.velocity_mass.cast::<[R; 4]>();
    let mut sums = vec![[0.0f64; 4]; n.div_ceil(CHUNK)];
    let place = DevicePtr::<[f64; 4]>::new(sums.as_mut_ptr() as u64);
    host.parallel(n, CHUNK, |range| {
        let mut sum = [0.0; 4];
        let chunk = range.start / CHUNK;
        for i in range {
            // SAFETY: the engine's word about the views
            unsafe {
                if s.in_group(i, call.group) {
                    let [x, y, z, m] = (*velocity.host().add(i)).map(Real::f64);
                    sum = [sum[0] + m * x, sum[1] + m * y, sum[2] + m * z, sum[3] + m];
                }
            }
        }
        // SAFETY: every chunk has its own place in `sums`, which lives until all are done
        unsafe { *place.host().add(chunk) = sum };
    });
    let total = sums.iter().fold([0.0; 4], |t, s| std::array::from_fn(|k| t[k] + s[k]));
    let drift: [f64; 3] = std::array::from_fn(|k| total[k] / total[3]);
    host.parallel(n, CHUNK, |range| {
        for i in range {
            // SAFETY: the engine's word about the views; ranges are disjoint
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
