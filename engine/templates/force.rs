//! A force with a kernel of its own: a harmonic trap.
use galamost_plugin_api::abi::Opaque;
use galamost_plugin_api::arguments;
use galamost_plugin_api::device::DevicePtr;
use galamost_plugin_api::prelude::*;
use galamost_plugin_api::services::Kernel;
use galamost_plugin_api::views::StateView;

galamost_plugin_api::plugin!();

/// Harmonic trap: U = k z² for every particle, z from the middle of the box.
///
/// ```ron
/// MyComponent(k: 0.5)
/// ```
#[component(Force, "MyComponent")]
#[derive(Params)]
pub struct MyComponent {
    /// k.
    #[param(unit = "energy/length²", at_least = 0.0)]
    k: f64,
    #[param(skip)]
    cuda: bool,
    #[param(skip)]
    host: Option<(Host, Option<Kernel>)>,
}

/// The kernel; the engine compiles it. Sums are added with atomics here: exact to rounding, but not bit by bit the same
/// in every run; `galamost/reduce.cuh` has sums in a fixed order.
const SOURCE: &str = r#"
#include "galamost/state.cuh"
#include "galamost/reduce.cuh"

struct Args {
    StateView state;
    double k;
    u32 full, reserved;
    Sums* sums;
};

extern "C" __global__ void my_component(Args a) {
    if (a.state.globals->halt) return;
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= a.state.n_local) return;
    const real z = position(a.state.pos_type[i], a.state.globals).z;
    Vec4 f = a.state.force[i];
    f.z -= real(2.0 * a.k) * z;
    if (a.full) {
        const double u = a.k * double(z) * double(z);
        f.w += real(u);
        atomicAdd(&a.sums->energy, u);
        atomicAdd(&a.sums->virial[5], -2.0 * u);
    }
    a.state.force[i] = f;
}
"#;

#[repr(C)]
struct Args {
    state: StateView,
    k: f64,
    full: u32,
    reserved: u32,
    sums: DevicePtr<Sums>,
}

impl Force for MyComponent {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        self.cuda = system.device == "cuda";
        // it pushes on the system from outside
        needs.conserves_momentum = false;
        Ok(())
    }

    fn start(&mut self, host: Host) -> Result<()> {
        let kernel =
            if self.cuda { Some(host.kernel(host.compile("my_component", SOURCE)?, "my_component")?) } else { None };
        self.host = Some((host, kernel));
        Ok(())
    }

    unsafe fn compute(&mut self, call: &ForceCall, sums: &mut Sums) -> Result<()> {
        let Some((host, kernel)) = &self.host else { return Err(Error::Run("not started".into())) };
        let (state, n) = (&call.state, call.state.n_local);
        let full = call.wanted.more_than_force();
        if let Some(kernel) = kernel {
            let args =
                Args { state: *state, k: self.k, full: u32::from(full), reserved: 0, sums: call.device_sums };
            let mut arguments: [*mut Opaque; 1] = arguments![args];
            // SAFETY: the kernel takes one Args
            return unsafe { host.launch(*kernel, n.div_ceil(128), 128, &mut arguments) };
        }
        let k = self.k;
        host.parallel(n as usize, 1024, |range| {
            for i in range {
                // SAFETY: the engine's word about the state; the ranges are disjoint
                unsafe {
                    let z = state.position(i)[2];
                    state.add_force(i, [0.0, 0.0, -2.0 * k * z], if full { k * z * z } else { 0.0 });
                }
            }
        });
        if full {
            for i in 0..n as usize {
                // SAFETY: as above
                let z = unsafe { state.position(i)[2] };
                sums.energy += k * z * z;
                sums.virial[5] -= 2.0 * k * z * z;
            }
        }
        Ok(())
    }
}
