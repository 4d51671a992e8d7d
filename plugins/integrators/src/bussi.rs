//! Stochastic velocity rescaling.

use galamost_plugin_api::prelude::*;

/// Stochastic velocity rescaling of Bussi, Donadio and Parrinello (NVT): velocity-Verlet; after each step all velocities
/// are multiplied with α,
/// α² = c + (1 − c)(kT/2K)(R² + S) + 2R √(c (1 − c) kT/2K), c = exp(−dt/τ),
/// where R is a normal number and S a sum of g − 1 squares of normal numbers (chi-square).
///
/// The kinetic energy then follows its canonical law, with the time τ in which it forgets; g is the number of degrees of
/// freedom: dimensions × (N − 1) when all particles are in the group and the momentum is conserved, else dimensions × N.
/// S is drawn at once, as a gamma variable (Marsaglia and Tsang), by the key (seed, component, step). α has the sign of
/// R + √(2K c/((1 − c) kT)). Canonical; directions of velocities are not disturbed, so diffusion is nearly that of NVE.
/// `conserved` of `Thermo` is the energy less what was put in, which drifts only by errors of integration. Velocities
/// that are all 0 stay 0.
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
    /// The particles to move.
    #[param(default = Group::All)]
    group: Group,
    /// Temperature; may change with time.
    #[param(name = "kT", unit = "energy", above = 0.0)]
    kt: Varying,
    /// τ, time in which the kinetic energy forgets its value.
    #[param(unit = "time", above = 0.0)]
    tau: f64,
}

/// The thermostat.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, DeviceStruct)]
pub struct BussiState {
    degrees_of_freedom: f64,
    tau: f64,
    /// α.
    scale: f64,
    /// Kinetic energy taken out so far.
    reservoir: f64,
}

#[particle_fn(Bussi)]
fn first_half(p: &mut Particle<real>, step: &Step<real>) {
    p.velocity += p.force * (0.5 * step.dt / p.mass);
    p.displacement = p.velocity * step.dt;
}

#[particle_fn(Bussi)]
fn second_half(p: &mut Particle<real>, step: &Step<real>) -> real {
    p.velocity += p.force * (0.5 * step.dt / p.mass);
    p.mass * p.velocity.norm2()
}

/// A gamma variable of shape a ≥ 1 and scale 1: d (1 + c x)³ with x normal is taken with a probability that is above
/// 0.95, so a hundred attempts are more than are ever made.
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

/// A sum of n ≥ 0 squares of normal numbers: twice a gamma variable of shape n/2.
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
    // a square plus S in exact numbers
    alpha2 = alpha2.max(0.0);
    g.scale = sign * alpha2.sqrt();
    g.reservoir -= 0.5 * two_k * (alpha2 - 1.0);
}

#[particle_fn(Bussi)]
fn rescale(p: &mut Particle<real>, g: &BussiState) {
    p.velocity *= g.scale as real;
}

impl Integrator for Bussi {
    type State = BussiState;
    type Extra<R: Real> = NoArrays<R>;

    fn program() -> Program<Self> {
        Program::new().before::<first_half>().after::<second_half>().after_scalar::<thermostat>().after::<rescale>()
    }
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        needs.group = self.group.need(system)?;
        needs.varyings = vec![self.kt];
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

    /// Mean n and variance 2n, for numbers of degrees of freedom small and large, even and odd.
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
