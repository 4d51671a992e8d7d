//! Which pairs meet, in which order, and what happens to their velocities.
//!
//! The four words of a pair's draw are: its place in the order, whether it meets, and two for the normal number. Pairs are
//! ordered by (first word, smaller tag, larger tag).

use galamost_plugin_api::philox::{RandomKey, unit_uniform};

/// What a meeting does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rule {
    /// With a probability by time, a new relative velocity from the Maxwell distribution.
    Lowe { rate: f64 },
    /// Friction and noise of DPD over the time step.
    Shardlow { gamma: f64, s: f64 },
}

/// What both devices need to know.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Law {
    pub rule: Rule,
    pub r_cut: f64,
}

impl Law {
    /// The limit below which a pair's second word lets it meet: a part of 2³².
    pub fn threshold(&self, dt: f64) -> u64 {
        match self.rule {
            Rule::Lowe { rate } => ((rate * dt).min(1.0) * 4_294_967_296.0) as u64,
            Rule::Shardlow { .. } => 1 << 32,
        }
    }

    /// The relative velocity along the line between two particles at the distance `r`, after they met; `along` before.
    pub fn met(&self, along: f64, r: f64, reduced: f64, kt: f64, dt: f64, normal: f64) -> f64 {
        match self.rule {
            Rule::Lowe { .. } => normal * (kt / reduced).sqrt(),
            Rule::Shardlow { gamma, s } => {
                let w = (1.0 - r / self.r_cut).max(0.0);
                let w = if s == 1.0 { w } else { w.powf(s) };
                // half of the step with the velocity of its beginning, half with that of its end
                let friction = gamma * w * w * dt / (2.0 * reduced);
                let noise = (2.0 * gamma * kt * dt).sqrt() * w * normal / (2.0 * reduced);
                (along - friction * along + 2.0 * noise) / (1.0 + friction)
            }
        }
    }

    /// Gives two particles their new relative velocity. `d` = r_i − r_j; velocities with masses.
    pub fn meet(&self, d: [f64; 3], v_i: &mut [f64; 4], v_j: &mut [f64; 4], kt: f64, dt: f64, normal: f64) {
        let r = (d[0] * d[0] + d[1] * d[1] + d[2] * d[2]).sqrt();
        let e = d.map(|x| x / r);
        let reduced = v_i[3] * v_j[3] / (v_i[3] + v_j[3]);
        let along = (v_i[0] - v_j[0]) * e[0] + (v_i[1] - v_j[1]) * e[1] + (v_i[2] - v_j[2]) * e[2];
        let push = reduced * (self.met(along, r, reduced, kt, dt, normal) - along);
        for k in 0..3 {
            v_i[k] += push * e[k] / v_i[3];
            v_j[k] -= push * e[k] / v_j[3];
        }
    }
}

/// The words of a pair that meets in this step; `None` if it does not.
pub fn drawn(key: RandomKey, step: u64, a: u32, b: u32, threshold: u64) -> Option<[u32; 4]> {
    let words = key.pair(step, a, b);
    (u64::from(words[1]) < threshold).then_some(words)
}

/// A normal number from the last two words.
pub fn normal(words: [u32; 4]) -> f64 {
    let angle = (f64::from((words[3] as i32) >> 8) + 0.5) * (std::f64::consts::PI / 8_388_608.0);
    (-2.0 * unit_uniform::<f64>(words[2]).ln()).sqrt() * angle.cos()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOWE: Law = Law { rule: Rule::Lowe { rate: 25.0 }, r_cut: 1.0 };
    const SHARDLOW: Law = Law { rule: Rule::Shardlow { gamma: 4.5, s: 1.0 }, r_cut: 1.0 };

    #[test]
    fn a_meeting_keeps_momentum_and_angular_momentum_and_sets_the_relative_velocity() {
        for law in [LOWE, SHARDLOW] {
            let d = [0.3, -0.2, 0.5];
            let (mut a, mut b) = ([1.0, 2.0, -0.5, 1.5], [-0.3, 0.1, 0.7, 0.5]);
            let (a0, b0) = (a, b);
            law.meet(d, &mut a, &mut b, 1.3, 0.05, 0.8);
            let r = (0.09f64 + 0.04 + 0.25).sqrt();
            let reduced = 1.5 * 0.5 / 2.0;
            let along = |a: &[f64; 4], b: &[f64; 4]| (0..3).map(|k| (a[k] - b[k]) * d[k] / r).sum::<f64>();
            let wanted = law.met(along(&a0, &b0), r, reduced, 1.3, 0.05, 0.8);
            assert!((along(&a, &b) - wanted).abs() < 1e-14);
            for k in 0..3 {
                assert!((a[3] * a[k] + b[3] * b[k] - a0[3] * a0[k] - b0[3] * b0[k]).abs() < 1e-15);
                // d × the change of momentum
                let change = [0, 1, 2].map(|k| a[3] * (a[k] - a0[k]));
                let (x, y) = ((k + 1) % 3, (k + 2) % 3);
                assert!((d[x] * change[y] - d[y] * change[x]).abs() < 1e-15);
            }
        }
        assert_eq!(LOWE.met(5.0, 0.5, 0.375, 1.5, 0.01, 0.8), 0.8 * 2.0);
    }

    /// u' = [(1 − g) u + 2 n]/(1 + g) keeps the Maxwell distribution exactly: its variance is kT/μ again for any dt.
    #[test]
    fn shardlow_keeps_the_maxwell_distribution_for_any_step() {
        for dt in [1e-3, 0.1, 2.0] {
            let (reduced, kt, r) = (0.4, 1.7, 0.35);
            let decay = SHARDLOW.met(1.0, r, reduced, kt, dt, 0.0);
            let noise = SHARDLOW.met(0.0, r, reduced, kt, dt, 1.0);
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
            if let Some(words) = drawn(key, u64::from(k % 200), k / 200, 5000, limit) {
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
