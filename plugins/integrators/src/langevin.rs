//! Langevin dynamics.

use galamost_plugin_api::prelude::*;

/// Langevin dynamics (NVT): m dv/dt = F − γ v + √(2 γ kT) R(t), where each component of R is white noise with mean 0 and
/// variance 1.
///
/// γ is the friction coefficient in mass/time: the velocity of a free particle of mass m decays at the rate γ/m. One
/// step of the BAOAB splitting: v += F dt/2m; r += v dt/2; v = c v + √((1 − c²) kT/m) N with c = exp(−γ dt/m);
/// r += v dt/2; new forces; v += F dt/2m. N is a vector of three standard normal numbers, keyed by (seed, component,
/// step, tag).
///
/// The ensemble is canonical; momentum is not conserved. A free particle has
/// MSD = 6 (kT/γ)[t − (m/γ)(1 − exp(−γ t/m))]: its velocities are exact for any dt, its displacements up to a relative
/// error of (γ dt/m)²/12. With forces, the distribution of positions is more accurate than that of velocities. With
/// γ = 0 the scheme is velocity Verlet; with kT = 0 it only removes energy.
///
/// The heat exchanged is not counted: `conserved` of `Thermo` is the total energy. For a different γ per type, use one
/// `Langevin` per group.
///
/// Reference: Leimkuhler & Matthews, Appl. Math. Res. Express 2013, 34, doi:10.1093/amrx/abs010.
///
/// ```ron
/// Langevin(kT: 1.0, gamma: 0.5)
/// ```
#[component(Integrator, "Langevin")]
#[derive(Clone, Debug, Params)]
pub struct Langevin {
    /// Particles to integrate.
    #[param(default = Group::All)]
    group: Group,
    /// kT, target temperature; may vary with time.
    #[param(name = "kT", unit = "energy", at_least = 0.0)]
    kt: Varying,
    /// γ, friction coefficient per particle.
    #[param(unit = "mass/time", at_least = 0.0)]
    gamma: f64,
}

/// State of the integrator: γ.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, DeviceStruct)]
pub struct LangevinState {
    gamma: f64,
}

#[particle_fn(Langevin)]
fn first_half(
    velocity: &mut Vec3<real>,
    force: Vec3<real>,
    mass: real,
    displacement: &mut Vec3<real>,
    g: &LangevinState,
    step: &Step<real>,
    random: &mut Random,
) {
    let x = (g.gamma as real) * step.dt / mass;
    let c = (-x).exp();
    // 1 − c² = 1 − exp(−2x), without cancellation for small x
    let lost = if x < 0.01 { 2.0 * x * (1.0 - x * (1.0 - x * (2.0 / 3.0))) } else { 1.0 - c * c };
    let noise = random.normal3() * (lost * step.varying[0] / mass).sqrt();
    let v = *velocity + force * (0.5 * step.dt / mass);
    *velocity = v * c + noise;
    *displacement = (v + *velocity) * (0.5 * step.dt);
}

#[particle_fn(Langevin)]
fn second_half(velocity: &mut Vec3<real>, force: Vec3<real>, mass: real, step: &Step<real>) {
    *velocity += force * (0.5 * step.dt / mass);
}

impl Integrator for Langevin {
    type State = LangevinState;
    type Extra<R: Real> = NoArrays<R>;

    fn program() -> Program<Self> {
        Program::new().before::<first_half>().after::<second_half>()
    }
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        system.check_row(&[self.gamma, self.gamma * system.dt]).map_err(Error::input)?;
        needs.group = self.group.need(system)?;
        needs.constrainable = true;
        needs.varyings = vec![self.kt];
        needs.kt = Some(self.kt);
        needs.conserves_momentum = false;
        Ok(())
    }
    fn state(&self, _: &GroupInfo) -> Result<LangevinState> {
        Ok(LangevinState { gamma: self.gamma })
    }
}
