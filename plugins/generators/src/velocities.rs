//! Initial velocities.

use galamost_plugin_api::philox::RandomKey;
use galamost_plugin_api::prelude::*;

/// Draws velocities from the Maxwell–Boltzmann distribution: each component is normal with variance kT/m.
///
/// The center-of-mass velocity is removed, and velocities are then scaled so that 2K = (dN − d) kT exactly in d
/// dimensions; a single particle is left at rest. The random numbers are keyed by the seed and the tag. With a group, N and the momentum are those of its
/// particles, and other particles keep their velocities, as particles without mass do; frozen particles keep the initial velocity of 0. Place it after
/// the generator that creates the particles.
///
/// ```ron
/// Velocities(kT: 1.0)
/// ```
#[component(Generator, "Velocities")]
#[derive(Clone, Debug, Params)]
pub struct Velocities {
    /// kT, temperature.
    #[param(name = "kT", unit = "energy", at_least = 0.0)]
    kt: f64,
    /// Particles to set.
    #[param(default = Group::All)]
    group: Group,
}

impl Generator for Velocities {
    const TRICLINIC: bool = true;

    fn generate(&mut self, context: &GeneratorContext, s: &mut Snapshot) -> Result<()> {
        if s.is_empty() {
            return Err(Error::input("Velocities needs particles: place it after the generator that creates them"));
        }
        let group = self.group.need(&SystemInfo::of(s))?;
        let mut velocity = std::mem::take(&mut s.velocity);
        let done = self.draw(context, &group, s, &mut velocity);
        s.velocity = velocity;
        done
    }
}

impl Velocities {
    /// Sets the velocities of the group's particles, which the snapshot lacks meanwhile.
    fn draw(
        &self,
        context: &GeneratorContext,
        group: &GroupNeed,
        s: &Snapshot,
        velocity: &mut [[f64; 3]],
    ) -> Result<()> {
        let key = RandomKey::new(context.seed, context.component);
        let d = s.dimensions as usize;
        let is_member = |tag: usize| s.mass[tag] > 0.0 && group.contains(tag as u32, s);
        context.for_each(velocity, |tag, v| {
            if is_member(tag) {
                let width = (self.kt / s.mass[tag]).sqrt();
                let normal = normal(key, tag as u32);
                *v = std::array::from_fn(|k| if k < d { width * normal[k] } else { 0.0 });
            }
        });
        let all = velocity.len();
        let parts = context.in_chunks(all, |range| {
            let mut sums = (0, 0.0, [0.0; 3]);
            for tag in range.filter(|tag| is_member(*tag)) {
                (sums.0, sums.1) = (sums.0 + 1, sums.1 + s.mass[tag]);
                (0..3).for_each(|k| sums.2[k] += s.mass[tag] * velocity[tag][k]);
            }
            sums
        });
        let (mut n, mut mass, mut momentum) = (0, 0.0, [0.0; 3]);
        for part in parts {
            (n, mass) = (n + part.0, mass + part.1);
            (0..3).for_each(|k| momentum[k] += part.2[k]);
        }
        if n == 0 {
            return Err(Error::input("there are no particles in its group"));
        }
        let drift = momentum.map(|p| p / mass);
        let parts = context.in_chunks(all, |range| {
            let mut two_k = 0.0;
            for tag in range.filter(|tag| is_member(*tag)) {
                for k in 0..d {
                    let v = velocity[tag][k] - drift[k];
                    two_k += s.mass[tag] * v * v;
                }
            }
            two_k
        });
        let two_k: f64 = parts.into_iter().sum();
        let wanted = (d * n - d) as f64 * self.kt;
        let scale = if two_k > 0.0 { (wanted / two_k).sqrt() } else { 0.0 };
        context.for_each(velocity, |tag, v| {
            if is_member(tag) {
                (0..d).for_each(|k| v[k] = (v[k] - drift[k]) * scale);
            }
        });
        Ok(())
    }
}

/// Returns three standard normal numbers: the Box–Muller transform, twice.
fn normal(key: RandomKey, tag: u32) -> [f64; 3] {
    let words = key.single(0, tag, 0);
    let uniform = |k: usize| (f64::from(words[k]) + 0.5) / 4_294_967_296.0;
    let (a, b) = ((-2.0 * uniform(0).ln()).sqrt(), (-2.0 * uniform(2).ln()).sqrt());
    let (p, q) = (std::f64::consts::TAU * uniform(1), std::f64::consts::TAU * uniform(3));
    [a * p.cos(), a * p.sin(), b * q.cos()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_group_gets_velocities() {
        let mut s = Snapshot { dimensions: 3, box_length: [10.0; 3], ..Snapshot::default() };
        let a = s.type_id("A");
        for _ in 0..100 {
            s.push(a, [0.0; 3]);
        }
        s.velocity[3] = [1.0, 2.0, 3.0];
        let context = GeneratorContext { seed: 3, component: 1, ..Default::default() };
        let group = Group::Tags { first: 10, last: 49 };
        Velocities { kt: 1.5, group }.generate(&context, &mut s).expect("generated");
        let two_k: f64 = s.velocity[10..50].iter().flatten().map(|v| v * v).sum();
        assert!((two_k / 117.0 - 1.5).abs() < 1e-12, "{two_k}");
        assert_eq!(s.velocity[3], [1.0, 2.0, 3.0]);
        assert!(s.velocity[50..].iter().flatten().all(|v| *v == 0.0));
    }

    #[test]
    fn temperature_momentum_and_distribution() {
        let mut s = Snapshot { dimensions: 3, box_length: [10.0; 3], ..Snapshot::default() };
        let a = s.type_id("A");
        for k in 0..20_000 {
            s.push(a, [0.0; 3]);
            s.mass[k] = if k % 2 == 0 { 1.0 } else { 4.0 };
        }
        let context = GeneratorContext { seed: 3, component: 1, ..Default::default() };
        Velocities { kt: 1.5, group: Group::All }.generate(&context, &mut s).expect("generated");
        let two_k: f64 = s.velocity.iter().zip(&s.mass).map(|(v, m)| m * v.iter().map(|x| x * x).sum::<f64>()).sum();
        assert!((two_k / (3.0 * 20_000.0 - 3.0) - 1.5).abs() < 1e-12);
        for k in 0..3 {
            let p: f64 = s.velocity.iter().zip(&s.mass).map(|(v, m)| m * v[k]).sum();
            assert!(p.abs() < 1e-9, "{p}");
        }
        // equipartition: each mass has half of 2K; the kurtosis of a normal distribution is 3
        let light: Vec<f64> = s.velocity.iter().step_by(2).map(|v| v[0]).collect();
        let moment = |n: i32| light.iter().map(|v| v.powi(n)).sum::<f64>() / light.len() as f64;
        assert!((moment(2) / 1.5 - 1.0).abs() < 4.0 * (2.0 / 10_000f64).sqrt(), "{}", moment(2));
        assert!((moment(4) / moment(2).powi(2) - 3.0).abs() < 4.0 * (24.0 / 10_000f64).sqrt());
    }
}
