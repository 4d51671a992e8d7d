//! Velocity Verlet at constant energy.

use galamost_plugin_api::prelude::*;

/// Velocity Verlet (NVE): v += F dt/2m; r += v dt; new forces; v += F dt/2m.
///
/// The scheme is symplectic and time-reversible. For a smooth potential the energy oscillates with an amplitude ∝ dt²
/// and does not drift. Particles outside the group do not move.
///
/// Reference: Swope, Andersen, Berens & Wilson, J. Chem. Phys. 76 (1982) 637, doi:10.1063/1.442716.
///
/// ```ron
/// VelocityVerlet()
/// ```
#[component(Integrator, "VelocityVerlet")]
#[derive(Clone, Debug, Params)]
pub struct VelocityVerlet {
    /// Particles to integrate.
    #[param(default = Group::All)]
    group: Group,
}

#[particle_fn(VelocityVerlet)]
fn first_half(
    velocity: &mut Vec3<real>,
    force: Vec3<real>,
    mass: real,
    displacement: &mut Vec3<real>,
    step: &Step<real>,
) {
    *velocity += force * (0.5 * step.dt / mass);
    *displacement = *velocity * step.dt;
}

#[particle_fn(VelocityVerlet)]
fn second_half(velocity: &mut Vec3<real>, force: Vec3<real>, mass: real, step: &Step<real>) {
    *velocity += force * (0.5 * step.dt / mass);
}

impl Integrator for VelocityVerlet {
    type State = NoState;
    type Extra<R: Real> = NoArrays<R>;

    fn program() -> Program<Self> {
        Program::new().before::<first_half>().after::<second_half>()
    }
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        needs.group = self.group.need(system)?;
        needs.constrainable = true;
        Ok(())
    }
    fn state(&self, _: &GroupInfo) -> Result<NoState> {
        Ok(NoState::default())
    }
}
