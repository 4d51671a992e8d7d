//! cos 2πx and sin 2πx, bit-identical on every device: products and sums are rounded separately, as in `turns.cuh`.
//!
//! x is a number of 2⁻³² turns, so whole turns are lost without rounding, and a wave's phase at a particle is a sum of products of
//! integers.

/// Units of x in a turn.
pub const TURN: f64 = 4_294_967_296.0;

/// Coefficients of y⁰, y² … of the polynomials that interpolate cos 2πy and sin 2πy/y for y ≤ ⅛ at the Chebyshev points of y².
/// They deviate by 5·10⁻¹¹ and 2·10⁻⁹; with the rounding of single precision, the largest error of a million values is 1.1·10⁻⁷ and their root
/// mean square 2·10⁻⁸.
const COSINE: [f32; 5] = [1.0, -19.739_208, 64.939_316, -85.442_85, 59.220_17];
const SINE: [f32; 4] = [6.283_185_5, -41.341_663, 81.592_545, -75.401_61];

/// Returns a number in the unit of [`cos_sin`].
#[inline]
pub fn fixed(x: f64) -> u32 {
    x.round_ties_even() as i64 as u32
}

#[inline]
fn polynomial<const N: usize>(c: &[f32; N], z: f32) -> f32 {
    c[..N - 1].iter().rev().fold(c[N - 1], |sum, c| sum * z + c)
}

/// Returns cos 2πx and sin 2πx, x in units of 2⁻³².
#[inline]
pub fn cos_sin(x: u32) -> [f32; 2] {
    // the nearest quarter of a turn
    let quarter = x.wrapping_add(1 << 29) >> 30;
    let y = x.wrapping_sub(quarter << 30).cast_signed() as f32 * (1.0 / TURN as f32);
    let z = y * y;
    let (c, s) = (polynomial(&COSINE, z), polynomial(&SINE, z) * y);
    let (c, s) = if quarter & 1 == 0 { (c, s) } else { (s, c) };
    [if (quarter + 1) & 2 == 0 { c } else { -c }, if quarter & 2 == 0 { s } else { -s }]
}

/// Returns the same functions in CUDA C++.
pub fn text() -> String {
    let constants = |name: &str, c: &[f32]| -> String {
        c.iter().enumerate().map(|(k, c)| format!("#define {name}_{k} {c:?}f\n")).collect()
    };
    constants("COSINE", &COSINE) + &constants("SINE", &SINE) + include_str!("turns.cuh")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polynomials_match_cosine_and_sine() {
        let mut squares = 0.0;
        for k in 0..1_000_003u32 {
            let x = k.wrapping_mul(2_654_435_761);
            let (sin, cos) = (std::f64::consts::TAU * f64::from(x) / TURN).sin_cos();
            for (found, exact) in cos_sin(x).into_iter().zip([cos, sin]) {
                let error = f64::from(found) - exact;
                // units of the last place: a half of y, 2π·2⁻²⁸ in the result, and two of the last sum, 2⁻²⁴ each
                assert!(error.abs() < 1.42e-7, "2π{x}/2³²: {found} and {exact}");
                squares += error * error;
            }
        }
        // a third of the largest, as for three independent roundings
        assert!((squares / 2e6).sqrt() < 4.7e-8, "{squares}");
        for (quarters, expected) in [(0, [1.0, 0.0]), (1, [0.0, 1.0]), (2, [-1.0, 0.0]), (3, [0.0, -1.0])] {
            assert_eq!(cos_sin(quarters << 30), expected, "{quarters}");
        }
    }

    #[test]
    fn whole_turns_are_lost() {
        for (x, quarters) in [(0.25, 1), (-0.25, 3), (1e6 + 0.5, 2), (-7.0, 0)] {
            assert_eq!(fixed(x * TURN), quarters << 30, "{x}");
        }
    }
}
