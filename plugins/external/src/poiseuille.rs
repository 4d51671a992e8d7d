//! Two opposite flows in one periodic box.

use galamost_plugin_api::abi::Opaque;
use galamost_plugin_api::arguments;
use galamost_plugin_api::precision::{PosTypeF64, PosTypeFixed, Precision};
use galamost_plugin_api::prelude::*;
use galamost_plugin_api::services::Kernel;
use galamost_plugin_api::views::StateView;

/// Double Poiseuille flow: a force +g along the axis `flow` on each particle in the upper half of the box along the axis
/// `gradient` (coordinate ≥ 0), and −g in the lower half; m · g with `per_mass: true`.
///
/// Two opposite plane Poiseuille flows between planes at which the velocity is 0, without walls. With D = half the box
/// length along `gradient` and n the number density, the velocity of a Newtonian liquid in a half is
/// v = (n g/2η) z (D − z), so the viscosity is η = n g D²/(12 ⟨v⟩), ⟨v⟩ the mean velocity in a half. Choose g small
/// enough that η does not depend on it. The forces heat the liquid: a thermostat must take that out, best one that
/// conserves momentum locally (`Dpd`); a global one needs velocities relative to the profile.
///
/// The force is no gradient, so there is no energy and no virial. The total momentum drifts by the fluctuation of the
/// number of particles in the halves: see `ZeroMomentum`.
///
/// Reference: Backer, Lowe, Hoefsloot & Iedema, J. Chem. Phys. 122 (2005) 154503, doi:10.1063/1.1883163.
///
/// ```ron
/// PeriodicPoiseuille(force: 0.05, flow: X, gradient: Z)
/// ```
#[component(Force, "PeriodicPoiseuille")]
#[derive(Params)]
pub struct PeriodicPoiseuille {
    /// The particles it acts on.
    #[param(default = Group::All)]
    group: Group,
    /// g, the force on a particle, or its acceleration; may change with time.
    #[param(unit = "energy/length, or length/time² with per_mass")]
    force: Varying,
    /// Direction of the flow.
    #[param(default = Axis::X)]
    flow: Axis,
    /// Direction in which the velocity changes.
    #[param(default = Axis::Z)]
    gradient: Axis,
    /// The force is multiplied with the particle's mass.
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

struct PoiseuilleArgs {
    StateView state;
    u32 group, per_mass, force, flow, gradient, reserved;
};

extern "C" __global__ void periodic_poiseuille(PoiseuilleArgs a) {
    const StateView& s = a.state;
    if (s.globals->halt) return;
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= s.n_local || !in_group(s, i, a.group)) return;
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
        needs.conservative = false;
        self.cuda = system.device == "cuda";
        if self.gradient == self.flow {
            return Err(Error::input("`flow` and `gradient` must be different axes"));
        }
        if system.dimensions == 2 && (self.gradient == Axis::Z || self.flow == Axis::Z) {
            return Err(Error::input("in two dimensions `flow` and `gradient` are X and Y"));
        }
        Ok(())
    }

    fn start(&mut self, host: Host) -> Result<()> {
        let kernel = if self.cuda {
            Some(host.kernel(host.compile("periodic_poiseuille", SOURCE)?, "periodic_poiseuille")?)
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
            return unsafe { host.launch(*kernel, call.state.n_local.div_ceil(BLOCK), BLOCK, &mut arguments) };
        }
        let axis = self.gradient as usize;
        // SAFETY: the engine's word about the views
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
    unsafe fn cpu<R: Real, P: Copy>(&self, host: &Host, call: &ForceCall, upper: impl Fn(&P) -> bool + Sync) {
        let s = call.state;
        let (force, velocity, pos) =
            (s.force.cast::<[R; 4]>(), s.velocity_mass.cast::<[R; 4]>(), s.pos_type.cast::<P>());
        // SAFETY: the engine's word about the views
        let strength = R::lit(unsafe { (*s.globals.host()).values[call.first_varying as usize] });
        let flow = self.flow as usize;
        host.parallel(s.n_local as usize, CHUNK, |range| {
            for i in range {
                // SAFETY: the engine's word about the views; ranges are disjoint
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
