//! Tests of the errors stated in `language.md`, and of the limits of the ranges.

use super::reference::Wide;
use super::{double, single};
use crate::device::real::Real;

/// Largest errors over the sweeps below, in the order of [`NAMES`]: f32 and f64. `language.md` contains this table.
const STATED: [(f64, f64); 9] =
    [(1.5, 1.5), (1.25, 1.25), (2.0, 2.0), (1.0, 1.0), (1.0, 1.0), (2.5, 2.5), (2.5, 2.5), (3.0, 3.0), (0.5, 0.5)];
/// The unit is the spacing of numbers at the result. For `sin`, `cos`, `acos` and `atan2` it is the spacing at 1; for
/// `powf` that at the result, times 1 + |y ln x|.
const NAMES: [&str; 9] = ["rsqrt", "exp", "ln", "sin", "cos", "acos", "atan2", "powf", "sqrt"];

/// Returns |value − truth| in units of the spacing of numbers at `scale`.
fn ulps(value: f64, truth: Wide, scale: f64, mantissa: i32) -> f64 {
    // dividing by a power of two first prevents underflow
    let unit = 2f64.powi(scale.abs().log2().floor() as i32);
    ((value / unit - truth.0 / unit) - truth.1 / unit).abs() * 2f64.powi(mantissa)
}

/// Returns the largest errors of all functions over `n` arguments each.
fn worst<R: Real>(n: u32, mantissa: i32, exp: (f64, f64)) -> [f64; 9] {
    let mut worst = [0.0f64; 9];
    // two numbers in 0 … 1 that fill the square uniformly
    let golden = |k: u32, step: f64| (f64::from(k) * step).fract();
    for k in 0..n {
        let (a, b) = (golden(k, 0.754_877_666_246_692_8), golden(k, 0.569_840_290_998_053_2));
        let between = |from: f64, to: f64| R::lit(from + (to - from) * a);
        let wide = |x: R| Wide::from(x.f64());
        let mut note = |at: usize, value: R, truth: Wide, scale: f64, factor: f64| {
            worst[at] = worst[at].max(ulps(value.f64(), truth, scale, mantissa) / factor);
        };
        // all magnitudes, and numbers around 1, where a logarithm loses the most digits
        let positive = if k % 2 == 0 { R::lit((0.9 * (exp.0 + (exp.1 - exp.0) * a)).exp()) } else { between(0.5, 2.0) };
        let t = wide(positive).rsqrt();
        note(0, positive.rsqrt(), t, t.0, 1.0);
        let t = wide(positive).sqrt();
        note(8, positive.sqrt(), t, t.0, 1.0);
        let t = wide(positive).ln();
        if t.0 != 0.0 {
            note(2, positive.ln(), t, t.0, 1.0);
        }
        let x = between(exp.0, exp.1);
        let t = wide(x).exp();
        note(1, x.exp(), t, t.0, 1.0);
        let x = if k % 2 == 0 { between(-1e4, 1e4) } else { between(-4.0, 4.0) };
        let (s, c) = wide(x).sin_cos();
        note(3, x.sin(), s, 1.0, 1.0);
        note(4, x.cos(), c, 1.0, 1.0);
        let x = between(-1.0, 1.0);
        note(5, x.acos(), wide(x).acos(), 1.0, 1.0);
        let angle = std::f64::consts::TAU * b;
        let (y, x) = (R::lit(10.0 * a * angle.sin()), R::lit(10.0 * a * angle.cos()));
        note(6, y.atan2(x), wide(y).atan2(wide(x)), 1.0, 1.0);
        let (x, y) = (between(0.01, 5.0), R::lit(40.0 * (b - 0.5)));
        let exponent = y.f64() * x.f64().ln();
        if exponent > exp.0 && exponent < exp.1 {
            let t = wide(x).powf(wide(y));
            note(7, x.powf(y), t, t.0, 1.0 + exponent.abs());
        }
    }
    worst
}

#[test]
fn errors_are_as_stated() {
    let n = if cfg!(debug_assertions) { 4000 } else { 40_000 };
    let single = worst::<f32>(n, 23, (-87.0, 88.0));
    let double = worst::<f64>(n, 52, (-690.0, 709.0));
    for (k, name) in NAMES.iter().enumerate() {
        println!("{name}: {:.3} in f32, {:.3} in f64", single[k], double[k]);
    }
    for (k, name) in NAMES.iter().enumerate() {
        // the reference itself has an error of about 10⁻¹² ulp
        let inside = |found: f64, stated: f64| found <= stated + 1e-9;
        assert!(
            inside(single[k], STATED[k].0) && inside(double[k], STATED[k].1),
            "{name}: {} {}",
            single[k],
            double[k]
        );
    }
}

#[test]
fn ends_of_the_ranges() {
    assert_eq!(single::exp(-100.0), 0.0);
    assert_eq!(double::exp(-800.0), 0.0);
    assert!(single::exp(f32::NAN).is_nan() && double::exp(f64::NAN).is_nan());
    assert_eq!(single::exp(0.0), 1.0);
    assert_eq!((double::acos(1.0), double::atan2(0.0, 0.0)), (0.0, 0.0));
    assert!((double::acos(-1.0) - std::f64::consts::PI).abs() < 1e-15);
    for x in [-2.5, -1.5, -0.5, -0.3, -0.0, 0.0, 0.5, 1.5, 2.5, 0.499_999_97, 1e9, -1e9] {
        let same = |a: f32, b: f32| assert_eq!(a.to_bits(), b.to_bits(), "{a} {b}");
        same(single::round(x), x.round_ties_even());
        same(single::floor(x), x.floor());
        let (x, same) = (f64::from(x), |a: f64, b: f64| assert_eq!(a.to_bits(), b.to_bits(), "{a} {b}"));
        same(double::round(x), x.round_ties_even());
        same(double::floor(x), x.floor());
    }
}
