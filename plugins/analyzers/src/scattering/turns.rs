//! cos 2πx and sin 2πx, bit-identical on every device: products and sums are rounded separately, as in `turns.cuh`.
//!
//! x is a number of 2⁻³² turns, so whole turns are lost without rounding, and a wave's phase at a particle is a sum of products of
//! integers.

/// Units of x in a turn.
pub const TURN: f64 = 4_294_967_296.0;

/// Coefficients of y⁰, y² … of a polynomial for sin 2πy/y, y ≤ ¼: those that interpolate it at the Chebyshev points of y², but
/// for changes in the last digits with which cos 0 is 1. sin 2πy deviates by 3·10⁻⁸; with the rounding of single precision, the largest
/// error of two million values is 1.6·10⁻⁷ and their root mean square 3·10⁻⁸.
const SINE: [f32; 5] = [6.283_185_5, -41.341_686, 81.6025, -76.580_986, 39.759_827];

/// Returns a number in the unit of [`cosine`].
#[inline]
pub fn fixed(x: f64) -> u32 {
    x.round_ties_even() as i64 as u32
}

/// Returns cos 2πx, x in units of 2⁻³²: sin 2π(¼ − |x|).
#[inline]
pub fn cosine(x: u32) -> f32 {
    let y = (1u32 << 30).wrapping_sub(x.cast_signed().unsigned_abs()).cast_signed() as f32 * (1.0 / TURN as f32);
    let z = y * y;
    SINE[..4].iter().rev().fold(SINE[4], |sum, c| sum * z + c) * y
}

/// Returns sin 2πx, x in units of 2⁻³².
#[inline]
pub fn sine(x: u32) -> f32 {
    cosine(x.wrapping_sub(1 << 30))
}

/// Returns the same functions in CUDA C++.
pub fn text() -> String {
    let constants: String = SINE.iter().enumerate().map(|(k, c)| format!("#define SINE_{k} {c:?}f\n")).collect();
    constants + include_str!("turns.cuh")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polynomial_matches_cosine_and_sine() {
        let mut squares = 0.0;
        for k in 0..1_000_003u32 {
            let x = k.wrapping_mul(2_654_435_761);
            let (sin, cos) = (std::f64::consts::TAU * f64::from(x) / TURN).sin_cos();
            for (found, exact) in [(cosine(x), cos), (sine(x), sin)] {
                let error = f64::from(found) - exact;
                // with |sum| ≤ 2π and y ≤ ¼, in 2⁻²⁴: 0.56 of y, 1 of the last sum, ½ each of its product, of the product with y and
                // of the sum before it; and the polynomial
                assert!(error.abs() < 3.1 * 2f64.powi(-24) + 3e-8, "2π{x}/2³²: {found} and {exact}");
                squares += error * error;
            }
        }
        // a third of the largest, as for independent roundings
        assert!((squares / 2e6).sqrt() < 7e-8, "{squares}");
        for (quarters, expected) in [(0, [1.0, 0.0]), (1, [0.0, 1.0]), (2, [-1.0, 0.0]), (3, [0.0, -1.0])] {
            assert_eq!([cosine(quarters << 30), sine(quarters << 30)], expected, "{quarters}");
        }
    }

    #[test]
    fn whole_turns_are_lost() {
        for (x, quarters) in [(0.25, 1), (-0.25, 3), (1e6 + 0.5, 2), (-7.0, 0)] {
            assert_eq!(fixed(x * TURN), quarters << 30, "{x}");
        }
    }
}
