//! The Berendsen thermostat.

use galamost_plugin_api::prelude::*;
use galamost_plugin_api::scaling::scaled;

/// Thermostat with weak coupling (Berendsen): velocity Verlet with all velocities rescaled after each step.
///
/// The scale factor is λ = √(1 + (dt/τ)(kT/kT_now − 1)) with kT_now = 2K/g. kT_now approaches kT exponentially with the
/// time constant τ. g is the number of degrees of freedom: dimensions × (N − 1) if the group contains all particles and
/// momentum is conserved, otherwise dimensions × N.
///
/// Use it to reach a temperature. **The ensemble is not canonical**: the kinetic energy fluctuates too little, and
/// energy flows from fast modes to slow ones (the center-of-mass motion is heated, everything else is cooled). For
/// averages use `Bussi`, which adds the correct noise, `NoseHooverChain` or `Langevin`.
///
/// `conserved` of `Thermo` is the total energy minus the heat added by the thermostat. τ must not be shorter than dt.
/// Velocities that are all 0 remain 0.
///
/// Reference: Berendsen, Postma, van Gunsteren, DiNola & Haak, J. Chem. Phys. 81 (1984) 3684, doi:10.1063/1.448118.
///
/// ```ron
/// Berendsen(kT: 1.0, tau: 0.5)
/// ```
#[component(Integrator, "Berendsen")]
#[derive(Clone, Debug, Params)]
pub struct Berendsen {
    /// Particles to integrate.
    #[param(default = Group::All)]
    group: Group,
    /// kT, target temperature; may vary with time.
    #[param(name = "kT", unit = "energy", at_least = 0.0)]
    kt: Varying,
    /// τ, relaxation time of the temperature.
    #[param(unit = "time", above = 0.0)]
    tau: Spanned<f64>,
}

/// State of the thermostat.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, DeviceStruct)]
pub struct BerendsenState {
    degrees_of_freedom: f64,
    tau: f64,
    /// λ.
    scale: f64,
    /// Kinetic energy removed so far.
    reservoir: f64,
}

#[particle_fn(Berendsen)]
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

#[particle_fn(Berendsen)]
fn second_half(velocity: &mut Vec3<real>, force: Vec3<real>, mass: real, step: &Step<real>) -> real {
    *velocity += force * (0.5 * step.dt / mass);
    mass * velocity.norm2()
}

#[scalar_fn(Berendsen)]
fn thermostat(g: &mut BerendsenState, sums: &[f64; 8], step: &Step<f64>) {
    let two_k = sums[0];
    let target = g.degrees_of_freedom * step.varying[0];
    let lambda2 = if two_k > 0.0 { 1.0 + step.dt / g.tau * (target / two_k - 1.0) } else { 1.0 };
    g.scale = lambda2.sqrt();
    g.reservoir -= 0.5 * two_k * (lambda2 - 1.0);
}

#[particle_fn(Berendsen)]
fn rescale(velocity: &mut Vec3<real>, g: &BerendsenState) {
    *velocity = scaled(*velocity, g.scale);
}

impl Integrator for Berendsen {
    type State = BerendsenState;
    type Extra<R: Real> = NoArrays<R>;

    fn program() -> Program<Self> {
        Program::new().before::<first_half>().after::<second_half>().after_scalar::<thermostat>().after::<rescale>()
    }
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        needs.group = self.group.need(system)?;
        needs.constrainable = true;
        needs.rescales = true;
        needs.varyings = vec![self.kt];
        if self.tau.value < system.dt {
            let message = format!("tau {} is shorter than the time step {}; use tau ≥ dt", self.tau.value, system.dt);
            return Err(InputError::at(self.tau.at, message).into());
        }
        needs.notes.push("the ensemble is not canonical: the kinetic energy fluctuates too little".into());
        Ok(())
    }
    fn state(&self, group: &GroupInfo) -> Result<BerendsenState> {
        Ok(BerendsenState {
            degrees_of_freedom: crate::degrees_of_freedom(group)?,
            tau: self.tau.value,
            scale: 1.0,
            reservoir: 0.0,
        })
    }
    fn conserved(state: &BerendsenState) -> f64 {
        state.reservoir
    }
}
