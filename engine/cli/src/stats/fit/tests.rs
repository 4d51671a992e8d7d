//! Fits with known results.

use super::*;

fn fit(formula: &str, points: &Points) -> Result<Fit, String> {
    super::fit(formula, points, &[])
}

fn points(f: impl Fn(f64) -> f64) -> Points {
    let x: Vec<f64> = (1..=50).map(|k| 0.1 * f64::from(k)).collect();
    Points { y: x.iter().map(|x| f(*x)).collect(), x, sigma: None }
}

#[test]
fn exact_parameters_are_found() {
    for (formula, f, expected) in [
        ("a + b*x", (|x| 2.0 - 3.0 * x) as fn(f64) -> f64, vec![2.0, -3.0]),
        ("a*exp(-x/tau)", |x| 4.0 * (-x / 0.7).exp(), vec![4.0, 0.7]),
        ("c*x^n", |x| 0.5 * x.powf(1.2), vec![0.5, 1.2]),
    ] {
        let fitted = fit(formula, &points(f)).expect(formula);
        for (p, e) in fitted.parameters.iter().zip(expected) {
            // the fit stops when its steps are small; its steps are quadratic then
            assert!((p.value - e).abs() < 1e-7, "{formula}: {p:?}, {e}");
        }
    }
    for (formula, message) in [
        ("2*x", "no parameters"),
        ("a*x + b*x", "do not determine"),
        ("a + ", ""),
        ("a/(x-x)", "finite"),
        ("a + b*x + a*c", "do not determine"),
        ("a + b*t", "`x` does not occur"),
        ("a+*x", "formula is not valid"),
    ] {
        let e = fit(formula, &points(|x| x)).expect_err(formula);
        assert!(e.contains(message), "{formula}: {e}");
    }
}

/// χ² of exact data decreases for hundreds of iterations if only its relative change counts.
#[test]
fn exact_data_with_a_parameter_of_zero_are_fitted() {
    let x: Vec<f64> = (0..=50).map(|k| f64::from(k) / 10.0).collect();
    let data = Points { y: x.clone(), x, sigma: None };
    for (formula, expected) in [("a + b*x", vec![0.0, 1.0]), ("a + b*x + c*x^2", vec![0.0, 1.0, 0.0])] {
        let fitted = fit(formula, &data).expect(formula);
        for (p, e) in fitted.parameters.iter().zip(expected) {
            assert!((p.value - e).abs() < 1e-12 && p.error < 1e-12, "{formula}: {p:?}, {e}");
        }
    }
}

#[test]
fn the_scale_of_the_data_does_not_matter() {
    for scale in [1e-300, 1e-20, 1e11, 1e20, 1e30, 1e200] {
        let (line, decay) = (points(|x| scale * (2.0 + 3.0 * x)), points(|x| scale * 4.0 * (-x / 0.7).exp()));
        for (formula, data, expected) in
            [("a + b*x", line, [2.0 * scale, 3.0 * scale]), ("a*exp(-x/tau)", decay, [4.0 * scale, 0.7])]
        {
            let fitted = fit(formula, &data).unwrap_or_else(|e| panic!("{formula}, {scale}: {e}"));
            for (p, e) in fitted.parameters.iter().zip(expected) {
                // derivatives by differences have errors of 10⁻¹⁰, and χ² is flat at its minimum: their root, and a margin
                assert!((p.value / e - 1.0).abs() < 1e-7, "{formula}, {scale}: {p:?}, {e}");
            }
        }
    }
    // noise has the same relative error at any scale
    let noisy = |scale: f64| points(move |x| scale * (2.0 + 3.0 * x + 0.1 * (1e3 * x).sin()));
    let of = |scale: f64| fit("a + b*x", &noisy(scale)).expect("a line").parameters.remove(1);
    let one = of(1.0);
    for scale in [1e-300, 1e-9, 1e12, 1e200] {
        let b = of(scale);
        // the same numbers but for rounding, 10⁻¹⁶ in some 100 sums
        assert!((b.value / scale / one.value - 1.0).abs() < 1e-9, "{scale}: {b:?}, {one:?}");
        assert!((b.error / scale / one.error - 1.0).abs() < 1e-9, "{scale}: {b:?}, {one:?}");
    }
}

#[test]
fn a_line_far_from_zero_is_fitted() {
    let x: Vec<f64> = (0..200).map(|k| 1e8 + f64::from(k)).collect();
    let data = Points { y: x.iter().map(|x| 5.0 + 0.25 * (x - 1e8)).collect(), x, sigma: None };
    let fitted = fit("a + b*x", &data).expect("a line");
    // the columns differ by an angle of 6e-7, which magnifies rounding of 10⁻¹⁶ to 2e-10 in each step
    assert!((fitted.parameters[1].value - 0.25).abs() < 1e-6, "{fitted:?}");
}

#[test]
fn errors_of_a_line_are_right() {
    let mut state = 3u64;
    let mut noise = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (0..12).fold(-6.0, |s, k| s + ((state.rotate_left(5 * k) >> 11) as f64 / 2f64.powi(53)))
    };
    let (mut square, mut inside) = (0.0, 0);
    for _ in 0..400 {
        let mut data = points(|x| 1.0 + 2.0 * x);
        data.y.iter_mut().for_each(|y| *y += 0.3 * noise());
        let b = fit("a + b*x", &data).expect("a line").parameters.remove(1);
        square += ((b.value - 2.0) / b.error).powi(2) / 400.0;
        inside += u32::from((b.value - 2.0).abs() < 2.0 * b.error);
    }
    // mean square of 400 numbers of variance 1: 1 ± 0.07, and the errors are estimates from correlations
    assert!((0.6..1.4).contains(&square) && inside > 360, "{square}, {inside}");
}

#[test]
fn signs_and_powers_are_those_of_mathematics() {
    for (formula, f) in [
        ("a*exp(-x^2)", (|x: f64| 3.0 * (-x * x).exp()) as fn(f64) -> f64),
        ("-x^2*a", |x| -3.0 * x * x),
        ("a*2^3^2*x^2", |x| 3.0 * 512.0 * x * x),
        ("a*x^-2", |x| 3.0 / (x * x)),
        ("a - -x^2 + x/2/2 - 1 - 1", |x| 3.0 + x * x + x / 4.0 - 2.0),
        ("a*(1 + x)^2 - 2*-x", |x| 3.0 * (1.0 + x).powi(2) + 2.0 * x),
        ("a*sin(x)^2", |x| 3.0 * x.sin().powi(2)),
        ("a*min(x, -x^2 + 5)", |x| 3.0 * x.min(5.0 - x * x)),
        ("a*{x}", |x| 3.0 * x),
        ("1e2*a*x^2e0 - 2.5E+1 + .5e-1*x", |x| 300.0 * x * x - 25.0 + 0.05 * x),
    ] {
        let fitted = fit(formula, &points(f)).unwrap_or_else(|e| panic!("{formula}: {e}"));
        // exact data, linear in a: rounding of 50 sums
        assert!((fitted.parameters[0].value - 3.0).abs() < 1e-12, "{formula}: {fitted:?}");
    }
    for formula in ["a*x)", "a*(x", "a*x^", "a*x*1e", "a*x*1.2.3e1"] {
        assert!(fit(formula, &points(|x| x)).is_err(), "{formula}");
    }
}

#[test]
fn optima_far_from_one_are_found() {
    fn over(from: f64, to: f64, f: fn(f64) -> f64) -> Points {
        let x: Vec<f64> = (0..50).map(|k| from + (to - from) * f64::from(k) / 50.0).collect();
        Points { y: x.iter().map(|x| f(*x)).collect(), x, sigma: None }
    }
    for (formula, data, expected) in [
        ("a*exp(-x/tau)", over(0.0, 5000.0, |x| 2.0 * (-x / 1000.0).exp()), vec![2.0, 1000.0]),
        ("a*exp(-x/tau)", over(0.0, 5e-6, |x| 2e7 * (-x / 1e-6).exp()), vec![2e7, 1e-6]),
        ("a*exp(x/tau)", over(0.0, 5000.0, |x| 2.0 * (x / 1000.0).exp()), vec![2.0, 1000.0]),
        ("a*exp(-k*x)", over(0.0, 5000.0, |x| 2.0 * (-x / 700.0).exp()), vec![2.0, 1.0 / 700.0]),
        ("a*exp(-(x/tau)^b) + c", over(0.0, 4e3, |x| 0.5 + (-(x / 800.0).powf(0.6)).exp()), vec![1.0, 0.6, 0.5, 800.0]),
        (
            "a*exp(-(x-b)^2/(2*s^2))",
            over(200.0, 400.0, |x| 5.0 * (-(x - 310.0).powi(2) / 800.0).exp()),
            vec![5.0, 310.0, 20.0],
        ),
    ] {
        let fitted = fit(formula, &data).unwrap_or_else(|e| panic!("{formula}: {e}"));
        for (p, e) in fitted.parameters.iter().zip(expected) {
            // as in `exact_parameters_are_found`, for up to four parameters; the sign of s is free
            assert!((p.value.abs() / e - 1.0).abs() < 1e-5, "{formula}: {p:?}, {e}");
        }
    }
}

#[test]
fn parameters_on_which_f_does_not_depend_are_refused() {
    let rising = points(|x| 2.0 + 0.01 * x);
    let e = fit("a*exp(-exp(b)*x)", &rising).expect_err("exp(b) becomes 0");
    assert!(e.contains("do not determine"), "{e}");
}

#[test]
fn start_values_can_be_given() {
    let oscillation = points(|x| 2.0 * (37.0 * x).sin());
    let start = |value: f64| super::fit("a*sin(w*x)", &oscillation, &[("w".into(), value)]);
    let w = start(36.8).expect("a sine").parameters.remove(1);
    assert!((w.value - 37.0).abs() < 1e-6, "{w:?}");
    let e = super::fit("a*x", &oscillation, &[("b".into(), 1.0)]).expect_err("no b");
    assert!(e.contains("the formula has no parameter `b`; its parameters are a"), "{e}");
}
