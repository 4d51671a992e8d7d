//! Two opposite Poiseuille flows in one periodic box.

use galamost_plugin_api::abi::Opaque;
use galamost_plugin_api::arguments;
use galamost_plugin_api::precision::{PosTypeF64, PosTypeFixed, Precision};
use galamost_plugin_api::prelude::*;
use galamost_plugin_api::services::Kernel;
use galamost_plugin_api::views::StateView;

/// Double Poiseuille flow: a force +g along `flow` on particles in the upper half of the box along `gradient`, −g in the lower.
///
/// The upper half has coordinates ≥ 0 along the axis `gradient`. With `per_mass: true` the force is m · g. The result is two
/// opposite plane Poiseuille flows without walls; the velocity is 0 at the planes between them. With D half the box
/// length along `gradient` and n the number density, a Newtonian liquid has the velocity v = (n g/2η) z (D − z) in each half.
/// Its viscosity is η = n g D²/(12 ⟨v⟩), with ⟨v⟩ the mean velocity in a half. Choose g small enough that η does not depend
/// on it.
///
/// The force heats the liquid, so add a thermostat, preferably one that conserves momentum locally (`Dpd`). A global
/// thermostat must act on velocities relative to the profile.
///
/// The force has no potential, so it contributes neither energy nor virial. The total momentum drifts because the number of
/// particles in each half fluctuates; see `ZeroMomentum`.
///
/// In a box sheared by `LeesEdwards`, `gradient` cannot be X: the displaced images above and below the box would not have the
/// same halves.
///
/// Reference: Backer, Lowe, Hoefsloot & Iedema, J. Chem. Phys. 122 (2005) 154503, doi:10.1063/1.1883163.
///
/// ```ron
/// PeriodicPoiseuille(force: 0.05, flow: X, gradient: Z)
/// ```
#[component(Force, "PeriodicPoiseuille")]
#[derive(Params)]
pub struct PeriodicPoiseuille {
    /// Group of particles that the force acts on.
    #[param(default = Group::All)]
    group: Group,
    /// Force g on a particle, or its acceleration with `per_mass`; can vary with time.
    #[param(unit = "energy/length, or length/time² with per_mass")]
    force: Varying,
    /// Axis of the flow.
    #[param(default = Axis::X)]
    flow: Axis,
    /// Axis along which the velocity changes.
    #[param(default = Axis::Z)]
    gradient: Axis,
    /// Whether the force is multiplied by the particle mass.
    #[param(default = false)]
    per_mass: bool,
    #[param(skip)]
    cuda: bool,
    #[param(skip)]
    started: Option<(Host, Option<Kernel>)>,
}

const BLOCK: u32 = 128;
const CHUNK: usize = 2048;

const SOURCE: &str = r#"
#include "galamost/state.cuh"

extern "C" __global__ void periodic_poiseuille(PoiseuilleArgs a) {
    const StateView& s = a.state;
    if (s.globals->halt) return;
    const u32 i = particle_block(s) * blockDim.x + threadIdx.x;
    if (i >= own_end(s) || !in_group(s, i, a.group)) return;
    const PosType p = s.pos_type[i];
    const bool upper = a.gradient == 0u ? p.x >= 0 : a.gradient == 1u ? p.y >= 0 : p.z >= 0;
    const real g = real(s.globals->values[a.force]) * (a.per_mass ? s.velocity_mass[i].w : real(1));
    const real f = upper ? g : -g;
    Vec4 total = s.force[i];
    if (a.flow == 0u) total.x += f;
    if (a.flow == 1u) total.y += f;
    if (a.flow == 2u) total.z += f;
    s.force[i] = total;
}
"#;

#[repr(C)]
#[derive(Clone, Copy, DeviceStruct)]
struct PoiseuilleArgs {
    state: StateView,
    group: u32,
    per_mass: u32,
    force: u32,
    flow: u32,
    gradient: u32,
    reserved: u32,
}

impl Force for PeriodicPoiseuille {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        needs.group = self.group.need(system)?;
        needs.varyings = vec![self.force];
        needs.conserves_momentum = false;
        (needs.particle_energies, needs.particle_virials, needs.shared) = (true, true, true);
        needs.conservative = false;
        // the displaced images above and below do not have the same halves
        needs.plain_images = self.gradient == Axis::X;
        self.cuda = system.device == "cuda";
        if self.gradient == self.flow {
            return Err(Error::input("`flow` and `gradient` must be different axes"));
        }
        if system.dimensions == 2 && (self.gradient == Axis::Z || self.flow == Axis::Z) {
            return Err(Error::input("in two dimensions `flow` and `gradient` must be X and Y"));
        }
        Ok(())
    }

    fn start(&mut self, host: Host) -> Result<()> {
        let kernel = if self.cuda {
            Some(host.kernel(
                host.compile("periodic_poiseuille", &kernel_source(&[PoiseuilleArgs::text()], SOURCE)?)?,
                "periodic_poiseuille",
            )?)
        } else {
            None
        };
        self.started = Some((host, kernel));
        Ok(())
    }

    unsafe fn compute(&mut self, call: &ForceCall, _: &mut Sums) -> Result<()> {
        let Some((host, kernel)) = &self.started else {
            return Err(Error::Run("PeriodicPoiseuille was not started".into()));
        };
        if let Some(kernel) = kernel {
            let args = PoiseuilleArgs {
                state: call.state,
                group: call.group,
                per_mass: u32::from(self.per_mass),
                force: call.first_varying,
                flow: self.flow as u32,
                gradient: self.gradient as u32,
                reserved: 0,
            };
            let mut arguments: [*mut Opaque; 1] = arguments![args];
            // SAFETY: the kernel takes one PoiseuilleArgs
            return unsafe { host.launch(*kernel, call.state.own_blocks(BLOCK), BLOCK, &mut arguments) };
        }
        let axis = self.gradient as usize;
        // SAFETY: the engine passes valid views of the run's precision
        unsafe {
            if call.state.precision == Precision::Double as u32 {
                self.cpu::<f64, PosTypeF64>(host, call, |p| p.position[axis] >= 0.0);
            } else {
                self.cpu::<f32, PosTypeFixed>(host, call, |p| p.position[axis] >= 0);
            }
        }
        Ok(())
    }
}

impl PeriodicPoiseuille {
    /// Adds the forces on the CPU; `upper` decides whether a position is in the upper half of the box.
    ///
    /// # Safety
    /// The views of `call` describe valid host arrays of numbers `R` and positions `P`.
    unsafe fn cpu<R: Real, P: Copy>(&self, host: &Host, call: &ForceCall, upper: impl Fn(&P) -> bool + Sync) {
        let s = call.state;
        let (force, velocity, pos) =
            (s.force.cast::<[R; 4]>(), s.velocity_mass.cast::<[R; 4]>(), s.pos_type.cast::<P>());
        // SAFETY: `globals` is a valid host pointer
        let strength = R::lit(unsafe { (*s.globals.host()).values[call.first_varying as usize] });
        let flow = self.flow as usize;
        host.parallel(s.n_local as usize, CHUNK, |range| {
            for i in range {
                // SAFETY: `i` < `n_local`; the ranges are disjoint
                unsafe {
                    if s.in_group(i, call.group) {
                        let g = strength * if self.per_mass { (*velocity.host().add(i))[3] } else { R::ONE };
                        let f = if upper(&*pos.host().add(i)) { g } else { -g };
                        (*force.host().add(i))[flow] += f;
                    }
                }
            }
        });
    }
}
