//! An updater that rescales all velocities.
use galamost_plugin_api::abi::Opaque;
use galamost_plugin_api::arguments;
use galamost_plugin_api::prelude::*;
use galamost_plugin_api::services::Kernel;
use galamost_plugin_api::updater::changed;
use galamost_plugin_api::views::StateView;

galamost_plugin_api::plugin!();

/// Multiplies all velocities by a factor.
///
/// ```ron
/// MyComponent(every: 100, factor: 0.9)
/// ```
#[component(Updater, "MyComponent")]
#[derive(Params)]
pub struct MyComponent {
    /// Steps between updates.
    #[param(at_least = 1.0)]
    every: u64,
    /// Factor of the velocities.
    #[param(at_least = 0.0)]
    factor: f64,
    #[param(skip)]
    cuda: bool,
    #[param(skip)]
    kernel: Option<(Host, Kernel)>,
}

const SOURCE: &str = r#"
#include "galamost/state.cuh"

extern "C" __global__ void my_component(Args a) {
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= a.state.n_local) return;
    Vec4 v = a.state.velocity_mass[i];
    v.x *= real(a.factor);
    v.y *= real(a.factor);
    v.z *= real(a.factor);
    a.state.velocity_mass[i] = v;
}
"#;

#[repr(C)]
#[derive(Clone, Copy, DeviceStruct)]
struct Args {
    state: StateView,
    factor: f64,
}

impl Updater for MyComponent {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        self.cuda = system.device == "cuda";
        needs.period = self.every;
        needs.changes_velocities = true;
        Ok(())
    }

    fn start(&mut self, host: Host) -> Result<()> {
        if self.cuda {
            let module = host.compile("my_component", &kernel_source(&[Args::text()], SOURCE)?)?;
            self.kernel = Some((host, host.kernel(module, "my_component")?));
        }
        Ok(())
    }

    unsafe fn update(&mut self, call: &mut UpdateCall) -> Result<()> {
        call.changed = changed::VELOCITIES;
        let state = call.state;
        if let Some((host, kernel)) = &self.kernel {
            let args = Args { state, factor: self.factor };
            let mut arguments: [*mut Opaque; 1] = arguments![args];
            // SAFETY: the kernel has one parameter of type Args
            return unsafe { host.launch(*kernel, state.n_local.div_ceil(128), 128, &mut arguments) };
        }
        for i in 0..state.n_local as usize {
            // SAFETY: `i < n_local`, and the arrays outlive the call
            unsafe {
                let [x, y, z, _] = state.velocity_mass(i);
                state.set_velocity(i, [x * self.factor, y * self.factor, z * self.factor]);
            }
        }
        Ok(())
    }
}
