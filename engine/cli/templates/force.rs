//! A force with its own kernel: a harmonic trap.
use galamost_plugin_api::abi::Opaque;
use galamost_plugin_api::arguments;
use galamost_plugin_api::device::DevicePtr;
use galamost_plugin_api::prelude::*;
use galamost_plugin_api::services::Kernel;
use galamost_plugin_api::views::StateView;

galamost_plugin_api::plugin!();

/// Harmonic trap: U = k (r − c)² for every particle of a group. The origin is the center of the box.
///
/// ```ron
/// MyComponent(k: 0.5, center: (0.0, 0.0, 1.0))
/// ```
#[component(Force, "MyComponent")]
#[derive(Params)]
pub struct MyComponent {
    /// k, stiffness.
    #[param(unit = "energy/length²", at_least = 0.0)]
    k: f64,
    /// c, center of the trap.
    #[param(unit = "length", default = [0.0; 3])]
    center: [f64; 3],
    /// Particles on which the force acts.
    #[param(default = Group::All)]
    group: Group,
    #[param(skip)]
    cuda: bool,
    #[param(skip)]
    host: Option<(Host, Option<Kernel>)>,
}

/// The kernel, which the engine compiles at run time. Atomic additions make the sums depend on the execution order at
/// the level of rounding; `galamost/reduce.cuh` provides sums in a fixed order.
const SOURCE: &str = r#"
#include "galamost/state.cuh"
#include "galamost/reduce.cuh"

extern "C" __global__ void my_component(Args a) {
    if (a.state.globals->halt) return;
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= a.state.n_local || !in_group(a.state, i, a.group)) return;
    const Vec3<real> r = position(a.state.pos_type[i], a.state.globals);
    const Vec3<real> d = {r.x - real(a.center[0]), r.y - real(a.center[1]), r.z - real(a.center[2])};
    const Vec3<real> force = d * real(-2.0 * a.k);
    Vec4 f = a.state.force[i];
    f.x += force.x;
    f.y += force.y;
    f.z += force.z;
    if (a.full) {
        const double u = a.k * double(device_norm2(d));
        f.w += real(u);
        atomicAdd(&a.sums->energy, u);
        // symmetric part of r F: xx, xy, xz, yy, yz, zz
        atomicAdd(&a.sums->virial[0], double(r.x * force.x));
        atomicAdd(&a.sums->virial[1], 0.5 * double(r.x * force.y + r.y * force.x));
        atomicAdd(&a.sums->virial[2], 0.5 * double(r.x * force.z + r.z * force.x));
        atomicAdd(&a.sums->virial[3], double(r.y * force.y));
        atomicAdd(&a.sums->virial[4], 0.5 * double(r.y * force.z + r.z * force.y));
        atomicAdd(&a.sums->virial[5], double(r.z * force.z));
    }
    a.state.force[i] = f;
}
"#;

#[repr(C)]
#[derive(Clone, Copy, DeviceStruct)]
struct Args {
    state: StateView,
    k: f64,
    center: [f64; 3],
    full: u32,
    group: u32,
    sums: DevicePtr<Sums>,
}

impl MyComponent {
    /// Returns force and energy at a position.
    fn evaluate(&self, r: [f64; 3]) -> ([f64; 3], f64) {
        let d: [f64; 3] = std::array::from_fn(|k| r[k] - self.center[k]);
        (d.map(|d| -2.0 * self.k * d), self.k * d.iter().map(|d| d * d).sum::<f64>())
    }
}

impl Force for MyComponent {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        self.cuda = system.device == "cuda";
        needs.group = self.group.need(system)?;
        // an external force
        needs.conserves_momentum = false;
        // `compute` adds energies to those of the particles
        needs.particle_energies = true;
        Ok(())
    }

    fn start(&mut self, host: Host) -> Result<()> {
        let kernel =
            if self.cuda { Some(host.kernel(host.compile("my_component", &kernel_source(&[Args::text()], SOURCE)?)?, "my_component")?) } else { None };
        self.host = Some((host, kernel));
        Ok(())
    }

    unsafe fn compute(&mut self, call: &ForceCall, sums: &mut Sums) -> Result<()> {
        let Some((host, kernel)) = &self.host else { return Err(Error::Run("not started".into())) };
        let (state, n) = (&call.state, call.state.n_local);
        let full = call.wanted.more_than_force();
        if let Some(kernel) = kernel {
            let args =
                Args {
                state: *state,
                k: self.k,
                center: self.center,
                full: u32::from(full),
                group: call.group,
                sums: call.device_sums,
            };
            let mut arguments: [*mut Opaque; 1] = arguments![args];
            // SAFETY: the kernel has one parameter of type Args
            return unsafe { host.launch(*kernel, n.div_ceil(128), 128, &mut arguments) };
        }
        let this = &*self;
        host.parallel(n as usize, 1024, |range| {
            for i in range {
                // SAFETY: `i < n_local`, the arrays outlive the call, and the ranges of the threads are disjoint
                unsafe {
                    if state.in_group(i, call.group) {
                        let (f, u) = this.evaluate(state.position(i));
                        state.add_force(i, f, if full { u } else { 0.0 });
                    }
                }
            }
        });
        if full {
            // one thread, so that the sums do not depend on the number of threads
            for i in 0..n as usize {
                // SAFETY: `i < n_local`, and the arrays outlive the call
                let r = unsafe { state.in_group(i, call.group).then(|| state.position(i)) };
                let Some(r) = r else { continue };
                let (f, u) = self.evaluate(r);
                sums.energy += u;
                for (w, (a, b)) in sums.virial.iter_mut().zip([(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)]) {
                    *w += 0.5 * (r[a] * f[b] + r[b] * f[a]);
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_force_is_the_gradient_of_the_energy() {
        let center = [0.3, -0.2, 1.0];
        let trap = MyComponent { k: 0.7, center, group: Group::All, cuda: false, host: None };
        let (r, h) = ([1.0, 2.0, -0.5], 1e-5);
        let (f, _) = trap.evaluate(r);
        for k in 0..3 {
            let u = |x: f64| {
                let mut r = r;
                r[k] += x;
                trap.evaluate(r).1
            };
            assert!((f[k] + (u(h) - u(-h)) / (2.0 * h)).abs() < 1e-9);
        }
    }
}
