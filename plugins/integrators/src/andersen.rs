//! Andersen thermostat: canonical ensemble by collisions.

use galamost_plugin_api::prelude::*;

/// Andersen (NVT): velocity-Verlet; after each step every particle collides with probability 1 − exp(−ν dt), which gives
/// it a new velocity from the Maxwell-Boltzmann distribution, each component normal with variance kT/m.
///
/// ν is the collision frequency of a particle. Whether it collides, and its new velocity, are drawn by the key (seed,
/// component, step, tag). Canonical; momentum is not conserved, and diffusion is slower the larger ν is. The energy of
/// collisions is not counted: `conserved` of `Thermo` is the total energy.
///
/// Reference: Andersen, J. Chem. Phys. 72 (1980) 2384, doi:10.1063/1.439486.
///
/// ```ron
/// Andersen(kT: 1.0, nu: 7.0)
/// ```
#[component(Integrator, "Andersen")]
#[derive(Clone, Debug, Params)]
pub struct Andersen {
    /// The particles to move.
    #[param(default = Group::All)]
    group: Group,
    /// Temperature; may change with time.
    #[param(name = "kT", unit = "energy", at_least = 0.0)]
    kt: Varying,
    /// ν, mean number of collisions of a particle in a unit of time.
    #[param(unit = "1/time", at_least = 0.0)]
    nu: f64,
}

/// ν and the probability of a collision in a step.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, DeviceStruct)]
pub struct AndersenState {
    nu: f64,
    probability: f64,
}

/// The time step belongs to the stage.
#[scalar_fn(Andersen)]
fn begin(g: &mut AndersenState, step: &Step<f64>) {
    g.probability = 1.0 - (-g.nu * step.dt).exp();
}

#[particle_fn(Andersen)]
fn first_half(p: &mut Particle<real>, step: &Step<real>) {
    p.velocity += p.force * (0.5 * step.dt / p.mass);
    p.displacement = p.velocity * step.dt;
}

#[particle_fn(Andersen)]
fn second_half(p: &mut Particle<real>, g: &AndersenState, step: &Step<real>, random: &mut Random) {
    p.velocity += p.force * (0.5 * step.dt / p.mass);
    let chance = random.uniform();
    if chance < (g.probability as real) {
        p.velocity = random.normal3() * (step.varying[0] / p.mass).sqrt();
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
        needs.conserves_momentum = false;
        Ok(())
    }
    fn state(&self, _: &GroupInfo) -> Result<AndersenState> {
        Ok(AndersenState { nu: self.nu, probability: 0.0 })
    }
}
