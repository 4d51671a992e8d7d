//! Velocity-Verlet whose forces are those of the velocities it ends with.

use galamost_plugin_api::prelude::*;

/// DPD-VV: v += f dt/2m; r += v dt; f = f(r, v); v += f dt/2m; f = f(r, v) once more.
///
/// Velocity-Verlet, at whose end the forces are computed again with the velocities of the end, so that friction always
/// belongs to the present velocities; noise is keyed by the step and stays the same. Each step costs two evaluations of
/// the forces. kT of a DPD liquid then deviates much less at a given dt than with velocity-Verlet (`GrootWarren` with
/// λ = ½). With forces that do not depend on velocities it is `VelocityVerlet` at twice its price.
///
/// Reference: G. Besold, I. Vattulainen, M. Karttunen, J. M. Polson, Phys. Rev. E 62 (2000) R7611,
/// doi:10.1103/PhysRevE.62.R7611; P. Nikunen, M. Karttunen, I. Vattulainen, Comput. Phys. Commun. 153 (2003) 407,
/// doi:10.1016/S0010-4655(03)00202-9.
///
/// ```ron
/// DpdVerlet()
/// ```
#[component(Integrator, "DpdVerlet")]
#[derive(Clone, Debug, Params)]
pub struct DpdVerlet {
    /// The particles to move.
    #[param(default = Group::All)]
    group: Group,
}

#[particle_fn(DpdVerlet)]
fn kick_and_drift(p: &mut Particle<real>, step: &Step<real>) {
    p.velocity += p.force * (0.5 * step.dt / p.mass);
    p.displacement = p.velocity * step.dt;
}

#[particle_fn(DpdVerlet)]
fn kick(p: &mut Particle<real>, step: &Step<real>) {
    p.velocity += p.force * (0.5 * step.dt / p.mass);
}

impl Integrator for DpdVerlet {
    type State = NoState;
    type Extra<R: Real> = NoArrays<R>;

    fn program() -> Program<Self> {
        Program::new().before::<kick_and_drift>().after::<kick>()
    }
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        needs.group = self.group.need(system)?;
        needs.forces_again = true;
        Ok(())
    }
    fn state(&self, _: &GroupInfo) -> Result<NoState> {
        Ok(NoState::default())
    }
}
