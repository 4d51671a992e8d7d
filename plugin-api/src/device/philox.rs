//! Counter-based random numbers: identical on CPU and GPU, in any order, and for any number of devices.
//!
//! A random number is a pure function of its key: seed, component, step and two tags. The generator is Philox 4×32 with
//! seven rounds (Salmon, Moraes, Dror & Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC11), the smallest number
//! of rounds that passes BigCrush in that work. `kernels/galamost/philox.cuh` computes the same bits.

use crate::device::real::Real;
use crate::device::vector::Vec3;

/// Returns four 32-bit words for a 128-bit counter and a 64-bit key.
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

/// The key of a component's random numbers.
///
/// Seed and component define the key of the cipher; the step and two tags define its counter. Two draws are equal only
/// if all of them are equal.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, galamost_plugin_macros::DeviceStruct, galamost_plugin_macros::Layout)]
#[device(header)]
pub struct RandomKey {
    /// The run's seed mixed with the component's number; see [`RandomKey::new`].
    pub key: [u32; 2],
}

impl RandomKey {
    /// Creates the key of a component from its number in the pipeline and the run's seed.
    pub fn new(seed: u64, component: u32) -> Self {
        // one pass of the cipher spreads similar seeds and component numbers over the whole key space
        let m = philox4x32::<10>([component, 0, 0, 0], [seed as u32, (seed >> 32) as u32]);
        Self { key: [m[0], m[1]] }
    }

    /// Returns four words for the pair of tags (a, b) at `step`. The order of the tags does not matter.
    #[inline(always)]
    pub fn pair(self, step: u64, a: u32, b: u32) -> [u32; 4] {
        let (low, high) = if a < b { (a, b) } else { (b, a) };
        philox4x32::<7>([low, high, step as u32, (step >> 32) as u32], self.key)
    }

    /// Returns four words for one particle at `step` (below 2⁴⁸). `draw` (below 2¹⁶) numbers the draws of the particle.
    ///
    /// The tags of a pair differ, so equal tags mark a draw of a single particle.
    #[inline(always)]
    pub fn single(self, step: u64, tag: u32, draw: u32) -> [u32; 4] {
        philox4x32::<7>([tag, tag, step as u32, (step >> 32) as u32 | (draw << 16)], self.key)
    }
}

/// Converts a word to a uniform number in (−√3, √3) with mean 0, variance 1, third moment 0 and fourth moment 9/5.
#[inline(always)]
pub fn uniform_unit_variance<R: Real>(word: u32) -> R {
    // 24 signed bits plus one half are exact in f32; the half makes the 2²⁴ values symmetric around 0
    (R::from_i32((word as i32) >> 8) + R::lit(0.5)) * R::lit(1.732_050_807_568_877_2 / 8_388_608.0)
}

/// Converts a word to a uniform number in (0, 1): the centers of 2²³ equal intervals, exact in f32.
#[inline(always)]
pub fn unit_uniform<R: Real>(word: u32) -> R {
    (R::from_u32(word >> 9) + R::lit(0.5)) * R::lit(1.0 / 8_388_608.0)
}

/// Returns three independent normal numbers with mean 0 and variance 1 from four words, by the Box-Muller
/// transformation (Ann. Math. Stat. 29 (1958) 610). Absolute values are below 5.8; a probability of 8·10⁻⁹ lies beyond.
#[inline(always)]
pub fn normal3<R: Real>(words: [u32; 4]) -> Vec3<R> {
    let radius = |word| (R::lit(-2.0) * unit_uniform::<R>(word).ln()).sqrt();
    // −π … π: signed, so that small angles keep all bits
    let angle =
        |word: u32| (R::from_i32((word as i32) >> 8) + R::lit(0.5)) * R::lit(std::f64::consts::PI / 8_388_608.0);
    let (a, b, p, q) = (radius(words[0]), radius(words[2]), angle(words[1]), angle(words[3]));
    Vec3::new(a * p.cos(), a * p.sin(), b * q.cos())
}

/// The tag of draws that belong to no particle, for functions of an integrator's state.
pub const NO_TAG: u32 = u32::MAX;

/// Maximum number of draws of a phase for one particle in one step. Phase k of a program starts at draw k · 2⁸.
pub const DRAWS_PER_PHASE: u32 = 256;

/// Consecutive random draws of one function for one particle in one step: the argument `random` of a particle or scalar
/// function. Each method call is one draw. A statement may contain only one, because C++ does not specify the order of
/// two.
#[derive(Clone, Copy, Debug)]
pub struct Random {
    key: RandomKey,
    step: u64,
    tag: u32,
    draw: u32,
}

impl Random {
    /// Creates the draws of the particle `tag` in `step`, starting with number `first_draw`.
    #[inline(always)]
    pub fn new(key: RandomKey, step: u64, tag: u32, first_draw: u32) -> Self {
        Self { key, step, tag, draw: first_draw }
    }

    /// Returns a uniform number in (0, 1); see [`unit_uniform`].
    #[inline(always)]
    pub fn uniform<R: Real>(&mut self) -> R {
        unit_uniform(self.words()[0])
    }

    /// Returns three independent normal numbers; see [`normal3`].
    #[inline(always)]
    pub fn normal3<R: Real>(&mut self) -> Vec3<R> {
        normal3(self.words())
    }

    /// Returns the next four words.
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

    /// Moments of normal and uniform draws; no correlation between the three numbers of a draw, or between consecutive
    /// draws, steps and particles; f32 and f64 agree.
    #[test]
    fn normal_draws_are_independent_with_the_moments_of_the_normal_law() {
        let key = RandomKey::new(7, 1);
        let n = 300_000u32;
        let (mut moments, mut uniform, mut mixed, mut worst) = ([0.0; 6], [0.0; 3], [0.0; 5], 0.0f64);
        for k in 0..n {
            let (step, tag) = (u64::from(k % 1000), k / 1000);
            let mut random = Random::new(key, step, tag, 0);
            let a = random.normal3::<f64>().f64();
            let next = random.normal3::<f64>().f64();
            let other_step = Random::new(key, step + 1, tag, 0).normal3::<f64>().f64();
            let other_tag = Random::new(key, step, tag + 1, 0).normal3::<f64>().f64();
            for x in a {
                for (m, sum) in moments.iter_mut().enumerate() {
                    *sum += x.powi(m as i32 + 1) / 3.0;
                }
            }
            let products = [a[0] * a[1], a[1] * a[2], a[0] * next[0], a[1] * other_step[1], a[2] * other_tag[2]];
            for (sum, p) in mixed.iter_mut().zip(products) {
                *sum += p;
            }
            let single = Random::new(key, step, tag, 0).normal3::<f32>().f64();
            worst = a.iter().zip(single).fold(worst, |m, (x, y)| m.max((x - y).abs()));
            let u = Random::new(key, step, tag, DRAWS_PER_PHASE).uniform::<f64>();
            assert!(u > 0.0 && u < 1.0);
            for (m, sum) in uniform.iter_mut().enumerate() {
                *sum += u.powi(m as i32 + 1);
            }
        }
        let n = f64::from(n);
        // moments of the normal distribution and the variances of x, x², … x⁶
        let truth = [(0.0, 1.0), (1.0, 2.0), (0.0, 15.0), (3.0, 96.0), (0.0, 945.0), (15.0, 10_170.0)];
        for (m, (mean, variance)) in truth.into_iter().enumerate() {
            let found = moments[m] / n;
            assert!((found - mean).abs() < 4.0 * f64::sqrt(variance / (3.0 * n)), "moment {}: {found}", m + 1);
        }
        for (what, c) in ["x y", "y z", "next draw", "next step", "next tag"].iter().zip(mixed) {
            assert!((c / n).abs() < 4.0 / n.sqrt(), "{what}: {}", c / n);
        }
        for (m, sum) in uniform.into_iter().enumerate() {
            let k = m as f64 + 1.0;
            let (mean, variance) = (1.0 / (k + 1.0), 1.0 / (2.0 * k + 1.0) - (k + 1.0).powi(-2));
            assert!((sum / n - mean).abs() < 4.0 * f64::sqrt(variance / n), "moment {k}: {}", sum / n);
        }
        // 6e-8 of angles up to 2π and of radii up to 6, and of functions of them
        assert!(worst < 3e-6, "f32 and f64 draw numbers that differ by {worst:e}");
    }

    #[test]
    fn the_ends_of_the_words_give_finite_numbers() {
        for words in [[0; 4], [!0; 4], [0, !0, 0, !0], [!0, 0, !0, 0]] {
            let (a, b) = (normal3::<f32>(words).f64(), normal3::<f64>(words).f64());
            assert!(a.iter().chain(&b).all(|x| x.is_finite() && x.abs() < 5.8), "{a:?} {b:?}");
        }
        assert!(unit_uniform::<f32>(0) > 0.0 && unit_uniform::<f32>(!0) < 1.0);
        assert_eq!(unit_uniform::<f64>(!0), f64::from(unit_uniform::<f32>(!0)));
    }

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

    /// Moments of ζ; no correlation between steps, between pairs that share a particle, or between components.
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
        // variances of z, z², z³, z⁴ for the uniform distribution with unit variance: 1, 4/5, 27/7, 81·16/225
        for (m, (truth, variance)) in [(0.0, 1.0), (1.0, 0.8), (0.0, 27.0 / 7.0), (1.8, 5.76)].into_iter().enumerate() {
            let mean: f64 = moments[m] / n;
            assert!((mean - truth).abs() < 4.0 * f64::sqrt(variance / n), "moment {}: {mean}", m + 1);
        }
        for (what, c) in ["next step", "shared first", "shared second", "other component"].iter().zip(correlations) {
            assert!((c / n).abs() < 4.0 / n.sqrt(), "{what}: {}", c / n);
        }
    }
}
