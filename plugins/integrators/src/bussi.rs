//! Stochastic velocity rescaling.

use galamost_plugin_api::prelude::*;
use galamost_plugin_api::scaling::scaled;

/// Stochastic velocity rescaling (Bussi, Donadio and Parrinello; NVT): velocity Verlet with all velocities multiplied by
/// a random factor α after each step.
///
/// α² = c + (1 − c)(kT/2K)(R² + S) + 2R √(c (1 − c) kT/2K), c = exp(−dt/τ), where R is a standard normal number and S a
/// sum of g − 1 squared standard normal numbers (chi-square). α has the sign of R + √(2K c/((1 − c) kT)). g is the
/// number of degrees of freedom: dimensions × (N − 1) if the group contains all particles and momentum is conserved,
/// otherwise dimensions × N. S is drawn as one gamma variate (Marsaglia and Tsang). Random numbers are keyed by (seed,
/// component, step).
///
/// The ensemble is canonical, and the kinetic energy has the correlation time τ. The thermostat does not change the
/// directions of velocities, so diffusion is close to that of NVE. `conserved` of `Thermo` is the total energy minus the
/// heat added by the thermostat; it drifts only by integration errors. Velocities that are all 0 remain 0.
///
/// Reference: Bussi, Donadio & Parrinello, J. Chem. Phys. 126 (2007) 014101, doi:10.1063/1.2408420; Marsaglia & Tsang,
/// ACM Trans. Math. Softw. 26 (2000) 363, doi:10.1145/358407.358414.
///
/// ```ron
/// Bussi(kT: 1.0, tau: 0.5)
/// ```
#[component(Integrator, "Bussi")]
#[derive(Clone, Debug, Params)]
pub struct Bussi {
    /// Particles to integrate.
    #[param(default = Group::All)]
    group: Group,
    /// kT, target temperature; may vary with time.
    #[param(name = "kT", unit = "energy", above = 0.0)]
    kt: Varying,
    /// τ, correlation time of the kinetic energy.
    #[param(unit = "time", above = 0.0)]
    tau: f64,
}

/// State of the thermostat.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, DeviceStruct)]
pub struct BussiState {
    degrees_of_freedom: f64,
    tau: f64,
    /// α.
    scale: f64,
    /// Kinetic energy removed so far.
    reservoir: f64,
}

#[particle_fn(Bussi)]
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

#[particle_fn(Bussi)]
fn second_half(velocity: &mut Vec3<real>, force: Vec3<real>, mass: real, step: &Step<real>) -> real {
    *velocity += force * (0.5 * step.dt / mass);
    mass * velocity.norm2()
}

/// Draws a gamma variate of shape a ≥ 1 and scale 1: d (1 + c x)³ with x normal. A proposal is accepted with a
/// probability above 0.95, so 100 attempts always suffice.
#[device_fn(f64)]
fn gamma_variable(random: &mut Random, a: f64) -> f64 {
    let d = a - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    let mut result = d;
    let mut found = false;
    for _attempt in 0..100 {
        if !found {
            let n = random.normal3();
            let u = random.uniform();
            let t = 1.0 + c * n.x;
            let v = t * t * t;
            if v > 0.0 && u.ln() < 0.5 * n.x * n.x + d * (1.0 - v + v.ln()) {
                result = d * v;
                found = true;
            }
        }
    }
    result
}

/// Draws a sum of n ≥ 0 squared standard normal numbers: twice a gamma variate of shape n/2.
#[device_fn(f64)]
fn chi_square(random: &mut Random, n: f64) -> f64 {
    let one = random.normal3();
    if n < 0.5 {
        0.0
    } else if n < 1.5 {
        one.x * one.x
    } else {
        2.0 * gamma_variable(random, 0.5 * n)
    }
}

#[scalar_fn(Bussi)]
fn thermostat(g: &mut BussiState, sums: &[f64; 8], step: &Step<f64>, random: &mut Random) {
    let two_k = sums[0];
    let c = (-step.dt / g.tau).exp();
    let first = random.normal3();
    let r = first.x;
    let s = chi_square(random, g.degrees_of_freedom - 1.0);
    let mut alpha2 = 1.0;
    let mut sign = 1.0;
    if two_k > 0.0 {
        let ratio = (1.0 - c) * step.varying[0] / two_k;
        alpha2 = c + ratio * (r * r + s) + 2.0 * r * (c * ratio).sqrt();
        if r * ratio.sqrt() + c.sqrt() < 0.0 {
            sign = -1.0;
        }
    }
    // nonnegative in exact arithmetic: a square plus S times a positive factor
    alpha2 = alpha2.max(0.0);
    g.scale = sign * alpha2.sqrt();
    g.reservoir -= 0.5 * two_k * (alpha2 - 1.0);
}

#[particle_fn(Bussi)]
fn rescale(velocity: &mut Vec3<real>, g: &BussiState) {
    *velocity = scaled(*velocity, g.scale);
}

impl Integrator for Bussi {
    type State = BussiState;
    type Extra<R: Real> = NoArrays<R>;

    fn program() -> Program<Self> {
        Program::new().before::<first_half>().after::<second_half>().after_scalar::<thermostat>().after::<rescale>()
    }
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        needs.group = self.group.need(system)?;
        needs.constrainable = true;
        needs.rescales = true;
        needs.varyings = vec![self.kt];
        needs.kt = Some(self.kt);
        Ok(())
    }
    fn state(&self, group: &GroupInfo) -> Result<BussiState> {
        Ok(BussiState {
            degrees_of_freedom: crate::degrees_of_freedom(group)?,
            tau: self.tau,
            scale: 1.0,
            reservoir: 0.0,
        })
    }
    fn conserved(state: &BussiState) -> f64 {
        state.reservoir
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use galamost_plugin_api::philox::{NO_TAG, RandomKey};

    /// Checks the mean n and the variance 2n for small, large, even and odd n.
    #[test]
    fn chi_square_has_its_mean_and_variance() {
        for n in [0.0, 1.0, 2.0, 3.0, 17.0, 3000.0] {
            let draws = 40_000u32;
            let (mut sum, mut square) = (0.0, 0.0);
            for step in 0..u64::from(draws) {
                let x = chi_square(&mut Random::new(RandomKey::new(5, 2), step, NO_TAG, 0), n);
                assert!(x >= 0.0);
                sum += x;
                square += (x - n) * (x - n);
            }
            let count = f64::from(draws);
            assert!((sum / count - n).abs() <= 4.0 * (2.0 * n / count).sqrt(), "n {n}: mean {}", sum / count);
            // the fourth central moment is 12 n (n + 4)
            let error = ((12.0 * n * (n + 4.0) - 4.0 * n * n) / count).sqrt();
            assert!((square / count - 2.0 * n).abs() <= 4.0 * error, "n {n}: variance {}", square / count);
        }
    }
}
