//! The pairs that collide, their order, and their new velocities.
//!
//! Each pair draws four random words. Word 0 sets its rank, word 1 decides whether it collides, and words 2 and 3 give a
//! normal number. Pairs are ordered by (word 0, smaller tag, larger tag).

use galamost_plugin_api::philox::{RandomKey, unit_uniform};

/// New relative velocity of a colliding pair.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rule {
    /// At a rate per pair, a new relative velocity from the Maxwell distribution.
    Lowe { rate: f64 },
    /// DPD friction and noise, integrated over the time step.
    Shardlow { gamma: f64, s: f64 },
}

/// Parameters of the collisions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Collision {
    pub rule: Rule,
    pub r_cut: f64,
}

impl Collision {
    /// Returns the collision probability in units of 2⁻³²: a pair collides if its word 1 is below it.
    pub fn threshold(&self, dt: f64) -> u64 {
        match self.rule {
            Rule::Lowe { rate } => ((rate * dt).min(1.0) * 4_294_967_296.0) as u64,
            Rule::Shardlow { .. } => 1 << 32,
        }
    }

    /// Returns the relative velocity along e after the collision of two particles at distance `r`; `along` is that before.
    pub fn velocity_after(&self, along: f64, r: f64, reduced: f64, kt: f64, dt: f64, normal: f64) -> f64 {
        match self.rule {
            Rule::Lowe { .. } => normal * (kt / reduced).sqrt(),
            Rule::Shardlow { gamma, s } => {
                let w = (1.0 - r / self.r_cut).max(0.0);
                let w = if s == 1.0 { w } else { w.powf(s) };
                // explicit half step, then implicit half step
                let friction = gamma * w * w * dt / (2.0 * reduced);
                let noise = (2.0 * gamma * kt * dt).sqrt() * w * normal / (2.0 * reduced);
                (along - friction * along + 2.0 * noise) / (1.0 + friction)
            }
        }
    }

    /// Applies the collision to two particles. `d` = r_i − r_j; the fourth velocity component is the mass.
    pub fn collide(&self, d: [f64; 3], v_i: &mut [f64; 4], v_j: &mut [f64; 4], kt: f64, dt: f64, normal: f64) {
        let r = (d[0] * d[0] + d[1] * d[1] + d[2] * d[2]).sqrt();
        let e = d.map(|x| x / r);
        let reduced = v_i[3] * v_j[3] / (v_i[3] + v_j[3]);
        let along = (v_i[0] - v_j[0]) * e[0] + (v_i[1] - v_j[1]) * e[1] + (v_i[2] - v_j[2]) * e[2];
        let impulse = reduced * (self.velocity_after(along, r, reduced, kt, dt, normal) - along);
        for k in 0..3 {
            v_i[k] += impulse * e[k] / v_i[3];
            v_j[k] -= impulse * e[k] / v_j[3];
        }
    }
}

/// Returns the random words of a pair, or `None` if it does not collide in this step.
pub fn draw(key: RandomKey, step: u64, a: u32, b: u32, threshold: u64) -> Option<[u32; 4]> {
    let words = key.pair(step, a, b);
    (u64::from(words[1]) < threshold).then_some(words)
}

/// Returns a normal number from words 2 and 3.
pub fn normal(words: [u32; 4]) -> f64 {
    let angle = (f64::from((words[3] as i32) >> 8) + 0.5) * (std::f64::consts::PI / 8_388_608.0);
    (-2.0 * unit_uniform::<f64>(words[2]).ln()).sqrt() * angle.cos()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOWE: Collision = Collision { rule: Rule::Lowe { rate: 25.0 }, r_cut: 1.0 };
    const SHARDLOW: Collision = Collision { rule: Rule::Shardlow { gamma: 4.5, s: 1.0 }, r_cut: 1.0 };

    #[test]
    fn a_collision_conserves_momentum_and_angular_momentum_and_sets_the_relative_velocity() {
        for collision in [LOWE, SHARDLOW] {
            let d = [0.3, -0.2, 0.5];
            let (mut a, mut b) = ([1.0, 2.0, -0.5, 1.5], [-0.3, 0.1, 0.7, 0.5]);
            let (a0, b0) = (a, b);
            collision.collide(d, &mut a, &mut b, 1.3, 0.05, 0.8);
            let r = (0.09f64 + 0.04 + 0.25).sqrt();
            let reduced = 1.5 * 0.5 / 2.0;
            let along = |a: &[f64; 4], b: &[f64; 4]| (0..3).map(|k| (a[k] - b[k]) * d[k] / r).sum::<f64>();
            let expected = collision.velocity_after(along(&a0, &b0), r, reduced, 1.3, 0.05, 0.8);
            assert!((along(&a, &b) - expected).abs() < 1e-14);
            for k in 0..3 {
                assert!((a[3] * a[k] + b[3] * b[k] - a0[3] * a0[k] - b0[3] * b0[k]).abs() < 1e-15);
                // d × momentum change
                let change = [0, 1, 2].map(|k| a[3] * (a[k] - a0[k]));
                let (x, y) = ((k + 1) % 3, (k + 2) % 3);
                assert!((d[x] * change[y] - d[y] * change[x]).abs() < 1e-15);
            }
        }
        assert_eq!(LOWE.velocity_after(5.0, 0.5, 0.375, 1.5, 0.01, 0.8), 0.8 * 2.0);
    }

    /// u' = [(1 − g) u + 2 n]/(1 + g) preserves the Maxwell distribution: the variance stays kT/μ for any dt.
    #[test]
    fn shardlow_preserves_the_maxwell_distribution_for_any_step() {
        for dt in [1e-3, 0.1, 2.0] {
            let (reduced, kt, r) = (0.4, 1.7, 0.35);
            let decay = SHARDLOW.velocity_after(1.0, r, reduced, kt, dt, 0.0);
            let noise = SHARDLOW.velocity_after(0.0, r, reduced, kt, dt, 1.0);
            let variance = decay * decay * kt / reduced + noise * noise;
            assert!((variance * reduced / kt - 1.0).abs() < 1e-12, "dt {dt}: {variance}");
        }
    }

    #[test]
    fn draws_are_uniform_and_normal() {
        let key = RandomKey::new(3, 4);
        let limit = LOWE.threshold(0.01);
        let (mut hits, mut moments) = (0, [0.0; 4]);
        for k in 0..400_000u32 {
            if let Some(words) = draw(key, u64::from(k % 200), k / 200, 5000, limit) {
                hits += 1;
                let x = normal(words);
                (0..4).for_each(|m| moments[m] += x.powi(m as i32 + 1));
            }
        }
        let n = f64::from(hits);
        assert!((n - 100_000.0).abs() < 4.0 * (400_000.0f64 * 0.25 * 0.75).sqrt(), "{n} of 400000");
        let expected = [(0.0, 1.0), (1.0, 2.0), (0.0, 15.0), (3.0, 96.0)];
        for (m, (mean, variance)) in moments.iter().zip(expected) {
            assert!((m / n - mean).abs() < 4.0 * (variance / n).sqrt(), "{moments:?}");
        }
        assert_eq!((LOWE.threshold(2.0), LOWE.threshold(0.0)), (1 << 32, 0));
    }
}
