//! Brownian dynamics.

use galamost_plugin_api::prelude::*;

/// Brownian dynamics (overdamped Langevin dynamics) with the Euler–Maruyama scheme: r += F dt/γ + √(2 kT dt/γ) N.
///
/// γ is the friction coefficient in mass/time. N is a vector of three standard normal numbers, keyed by (seed, component,
/// step, tag). A free particle has MSD = 6 kT t/γ exactly. The error of averages is ∝ dt; dt must be much shorter than γ
/// divided by the curvature of the potential.
///
/// The integrator does not use or change velocities. The columns `kT`, `kinetic` and `pressure` of `Thermo` are
/// therefore meaningless for these particles.
///
/// Reference: Ermak & McCammon, J. Chem. Phys. 69 (1978) 1352, doi:10.1063/1.436761 (without hydrodynamic
/// interactions).
///
/// ```ron
/// Brownian(kT: 1.0, gamma: 100.0)
/// ```
#[component(Integrator, "Brownian")]
#[derive(Clone, Debug, Params)]
pub struct Brownian {
    /// Particles to integrate.
    #[param(default = Group::All)]
    group: Group,
    /// kT, temperature; may vary with time.
    #[param(name = "kT", unit = "energy", at_least = 0.0)]
    kt: Varying,
    /// γ, friction coefficient per particle.
    #[param(unit = "mass/time", above = 0.0)]
    gamma: f64,
}

/// State of the integrator: γ.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, DeviceStruct)]
pub struct BrownianState {
    gamma: f64,
}

#[particle_fn(Brownian)]
fn drift_and_diffuse(
    force: Vec3<real>,
    displacement: &mut Vec3<real>,
    g: &BrownianState,
    step: &Step<real>,
    random: &mut Random,
) {
    let mobility = step.dt / (g.gamma as real);
    *displacement = force * mobility + random.normal3() * (2.0 * step.varying[0] * mobility).sqrt();
}

impl Integrator for Brownian {
    type State = BrownianState;
    type Extra<R: Real> = NoArrays<R>;

    fn program() -> Program<Self> {
        Program::new().before::<drift_and_diffuse>()
    }
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        system.check_row(&[self.gamma, system.dt / self.gamma]).map_err(Error::input)?;
        needs.group = self.group.need(system)?;
        needs.varyings = vec![self.kt];
        needs.kt = Some(self.kt);
        needs.conserves_momentum = false;
        Ok(())
    }
    fn state(&self, _: &GroupInfo) -> Result<BrownianState> {
        Ok(BrownianState { gamma: self.gamma })
    }
}
