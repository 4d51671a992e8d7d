//! Counter-based random numbers: the same on CPU and GPU, in any order, on any number of devices.
//!
//! A draw is a pure function of its key: (seed, component, step, tag, tag). The generator is Philox 4×32 with seven
//! rounds (Salmon, Moraes, Dror & Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC11), the smallest count of
//! rounds that passes BigCrush there; `kernels/galamost/philox.cuh` computes the same bits.

use crate::real::Real;

/// Four 32-bit words from a 128-bit counter and a 64-bit key.
#[inline(always)]
pub fn philox4x32<const ROUNDS: usize>(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for round in 0..ROUNDS {
        if round > 0 {
            key[0] = key[0].wrapping_add(0x9E37_79B9);
            key[1] = key[1].wrapping_add(0xBB67_AE85);
        }
        let p0 = 0xD251_1F53_u64 * u64::from(counter[0]);
        let p1 = 0xCD9E_8D57_u64 * u64::from(counter[2]);
        counter =
            [(p1 >> 32) as u32 ^ counter[1] ^ key[0], p1 as u32, (p0 >> 32) as u32 ^ counter[3] ^ key[1], p0 as u32];
    }
    counter
}

/// What a stream of draws is keyed by, apart from the particles.
///
/// `seed` and `component` fill the key of the cipher, the step and two tags its counter: two draws share their bits
/// only if all of them agree.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RandomKey {
    /// The run's seed mixed with the component's identity, see [`RandomKey::new`].
    pub key: [u32; 2],
}

impl RandomKey {
    /// The key of the component `component` (its number in the pipeline) in a run with this seed.
    pub fn new(seed: u64, component: u32) -> Self {
        // one pass of the cipher spreads near seeds and near component numbers over the whole key space
        let m = philox4x32::<10>([component, 0, 0, 0], [seed as u32, (seed >> 32) as u32]);
        Self { key: [m[0], m[1]] }
    }

    /// Four words for the pair of tags (a, b) at `step`; the order of the tags does not matter.
    #[inline(always)]
    pub fn pair(self, step: u64, a: u32, b: u32) -> [u32; 4] {
        let (low, high) = if a < b { (a, b) } else { (b, a) };
        philox4x32::<7>([low, high, step as u32, (step >> 32) as u32], self.key)
    }

    /// Four words for one particle at `step`, which must be below 2⁴⁸; `draw` counts further draws, below 2¹⁶.
    ///
    /// The two tags of a pair differ, so equal ones mark a draw of a single particle.
    #[inline(always)]
    pub fn single(self, step: u64, tag: u32, draw: u32) -> [u32; 4] {
        philox4x32::<7>([tag, tag, step as u32, (step >> 32) as u32 | (draw << 16)], self.key)
    }
}

/// A word as a number in (−√3, √3): uniform, mean 0, variance 1, third moment 0, fourth moment 9/5.
#[inline(always)]
pub fn uniform_unit_variance<R: Real>(word: u32) -> R {
    // 24 signed bits and a half are exact in f32; the half makes the 2²⁴ values symmetric around 0
    (R::from_i32((word as i32) >> 8) + R::lit(0.5)) * R::lit(1.732_050_807_568_877_2 / 8_388_608.0)
}

/// Draws for one particle in one step, one after the other; the argument `random` of a particle function.
#[derive(Clone, Copy, Debug)]
pub struct Random {
    key: RandomKey,
    step: u64,
    tag: u32,
    draw: u32,
}

impl Random {
    /// The draws of the particle `tag` in `step`.
    #[inline(always)]
    pub fn new(key: RandomKey, step: u64, tag: u32) -> Self {
        Self { key, step, tag, draw: 0 }
    }

    /// The next four words.
    #[inline(always)]
    pub fn words(&mut self) -> [u32; 4] {
        let words = self.key.single(self.step, self.tag, self.draw);
        self.draw += 1;
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Known answers published with Random123 (`kat_vectors`).
    #[test]
    fn known_answers() {
        let pi = [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344];
        let pi_key = [0xa409_3822, 0x299f_31d0];
        assert_eq!(philox4x32::<10>([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(philox4x32::<10>([!0; 4], [!0; 2]), [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
        assert_eq!(philox4x32::<10>(pi, pi_key), [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]);
        assert_eq!(philox4x32::<7>([0; 4], [0; 2]), [0x5f6f_b709, 0x0d89_3f64, 0x4f12_1f81, 0x4f73_0a48]);
        assert_eq!(philox4x32::<7>([!0; 4], [!0; 2]), [0x5207_ddc2, 0x4516_5e59, 0x4d8e_e751, 0x8c52_f662]);
        assert_eq!(philox4x32::<7>(pi, pi_key), [0x4dfc_caba, 0x190a_87f0, 0xc473_62ba, 0xb6b5_242a]);
    }

    /// Moments of ζ, and no correlation between steps, between pairs that share a particle, or between components.
    #[test]
    fn pair_draws_are_independent_with_the_stated_moments() {
        let key = RandomKey::new(42, 3);
        let other = RandomKey::new(42, 4);
        let zeta = |key: RandomKey, step, a, b| uniform_unit_variance::<f64>(key.pair(step, a, b)[0]);
        let n = 400_000u32;
        let mut moments = [0.0; 4];
        let mut correlations = [0.0; 4];
        for k in 0..n {
            let (step, a, b) = (u64::from(k / 1000), k % 1000, (k * 7 + 1) % 1009 + 1000);
            let z = zeta(key, step, a, b);
            assert_eq!(z, zeta(key, step, b, a), "symmetric in the pair");
            for (m, sum) in moments.iter_mut().enumerate() {
                *sum += z.powi(m as i32 + 1);
            }
            correlations[0] += z * zeta(key, step + 1, a, b);
            correlations[1] += z * zeta(key, step, a, b + 1);
            correlations[2] += z * zeta(key, step, a + 1, b);
            correlations[3] += z * zeta(other, step, a, b);
        }
        let n = f64::from(n);
        // variances of z, z², z³, z⁴ for the uniform law with unit variance: 1, 4/5, 27/7, 81·16/225
        for (m, (truth, variance)) in [(0.0, 1.0), (1.0, 0.8), (0.0, 27.0 / 7.0), (1.8, 5.76)].into_iter().enumerate() {
            let mean: f64 = moments[m] / n;
            assert!((mean - truth).abs() < 4.0 * f64::sqrt(variance / n), "moment {}: {mean}", m + 1);
        }
        for (what, c) in ["next step", "shared first", "shared second", "other component"].iter().zip(correlations) {
            assert!((c / n).abs() < 4.0 / n.sqrt(), "{what}: {}", c / n);
        }
    }
}
