//! cos 2πx, bit-identical on every device: products and sums are rounded separately, as in `cosine.cuh`.
//!
//! x is a number of 2⁻³² turns, so whole turns are lost without rounding, and a wave's phase at a particle is a sum of products of
//! integers.

/// Turns for a unit of x.
const TURN: f64 = 4_294_967_296.0;
/// A quarter of a turn.
pub const QUARTER: u32 = 1 << 30;

/// Coefficients of y⁰, y² … y¹⁰ of the polynomial that interpolates cos 2πy for y ≤ ¼ at the Chebyshev points of y². It deviates by
/// 2·10⁻¹⁰; with the rounding of single precision, the largest error is 1.7·10⁻⁷ and the mean square 3·10⁻⁸.
pub const SERIES: [f32; 6] = [1.0, -19.739_208, 64.939_35, -85.453_56, 60.143_89, -24.981_434];

/// Returns x turns in the unit of [`cosine`].
#[inline]
pub fn fixed(x: f64) -> u32 {
    (x * TURN).round_ties_even() as i64 as u32
}

/// Returns cos 2πx, x in units of 2⁻³².
#[inline]
pub fn cosine(x: u32) -> f32 {
    let near = x.cast_signed().unsigned_abs();
    let far = near > QUARTER;
    let y = (if far { 2 * QUARTER - near } else { near }) as f32 * (1.0 / TURN as f32);
    let z = y * y;
    let mut sum = SERIES[5];
    for c in SERIES[..5].iter().rev() {
        sum = sum * z + *c;
    }
    if far { -sum } else { sum }
}

/// Returns the same functions in CUDA C++.
pub fn text() -> String {
    let constants: String = SERIES.iter().enumerate().map(|(k, c)| format!("#define COSINE_{k} {c:?}f\n")).collect();
    constants + include_str!("cosine.cuh")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_matches_the_cosine() {
        let mut squares = 0.0;
        for k in 0..1_000_003u32 {
            let x = k.wrapping_mul(2_654_435_761);
            let exact = (std::f64::consts::TAU * f64::from(x) / TURN).cos();
            let error = f64::from(cosine(x)) - exact;
            assert!(error.abs() < 1.8e-7, "cos 2π{x}/2³²: {} and {exact}", cosine(x));
            squares += error * error;
        }
        assert!((squares / 1e6).sqrt() < 4e-8, "{squares}");
        for (quarters, expected) in [(0, 1.0), (1, 0.0), (2, -1.0), (3, 0.0)] {
            assert!((cosine(QUARTER * quarters) - expected).abs() < 1e-7, "{quarters}");
        }
    }

    #[test]
    fn whole_turns_are_lost() {
        for (x, expected) in [(0.25, QUARTER), (-0.25, 3 * QUARTER), (1e6 + 0.5, 2 * QUARTER), (-7.0, 0)] {
            assert_eq!(fixed(x), expected, "{x}");
        }
    }
}
