//! The Andersen thermostat: canonical ensemble by stochastic collisions.

use galamost_plugin_api::prelude::*;

/// Andersen thermostat (NVT): velocity Verlet with stochastic collisions after each step.
///
/// Each particle collides with probability 1 − exp(−ν dt). A collision draws a new velocity from the Maxwell–Boltzmann
/// distribution: each component is normal with variance kT/m. ν is the collision rate per particle. Collisions and new
/// velocities are keyed by (seed, component, step, tag).
///
/// GALAMOST's decks use the probability ν dt. For the same dynamics give −ln(1 − ν dt)/dt here; for ν dt ≪ 1 both are ν.
///
/// The ensemble is canonical. Momentum is not conserved, and diffusion slows down as ν increases. The heat of collisions
/// is not counted: `conserved` of `Thermo` is the total energy.
///
/// Reference: Andersen, J. Chem. Phys. 72 (1980) 2384, doi:10.1063/1.439486.
///
/// ```ron
/// Andersen(kT: 1.0, nu: 7.0)
/// ```
#[component(Integrator, "Andersen")]
#[derive(Clone, Debug, Params)]
pub struct Andersen {
    /// Particles to integrate.
    #[param(default = Group::All)]
    group: Group,
    /// kT, target temperature; may vary with time.
    #[param(name = "kT", unit = "energy", at_least = 0.0)]
    kt: Varying,
    /// ν, collision rate per particle.
    #[param(unit = "1/time", at_least = 0.0)]
    nu: f64,
}

/// State of the thermostat: ν and the collision probability per step.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, DeviceStruct)]
pub struct AndersenState {
    nu: f64,
    probability: f64,
}

/// Updates the collision probability, which depends on the time step of the stage.
#[scalar_fn(Andersen)]
fn begin(g: &mut AndersenState, step: &Step<f64>) {
    g.probability = 1.0 - (-g.nu * step.dt).exp();
}

#[particle_fn(Andersen)]
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

#[particle_fn(Andersen)]
fn second_half(
    velocity: &mut Vec3<real>,
    force: Vec3<real>,
    mass: real,
    g: &AndersenState,
    step: &Step<real>,
    random: &mut Random,
) {
    *velocity += force * (0.5 * step.dt / mass);
    let chance = random.uniform();
    if chance < (g.probability as real) {
        *velocity = random.normal3() * (step.varying[0] / mass).sqrt();
    }
}

impl Integrator for Andersen {
    type State = AndersenState;
    type Extra<R: Real> = NoArrays<R>;

    fn program() -> Program<Self> {
        Program::new().start_scalar::<begin>().before::<first_half>().after::<second_half>()
    }
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        needs.group = self.group.need(system)?;
        needs.varyings = vec![self.kt];
        needs.kt = Some(self.kt);
        needs.conserves_momentum = false;
        Ok(())
    }
    fn state(&self, _: &GroupInfo) -> Result<AndersenState> {
        Ok(AndersenState { nu: self.nu, probability: 0.0 })
    }
}
