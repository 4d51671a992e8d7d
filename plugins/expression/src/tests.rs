//! Formulas on the CPU: derivatives, number types, vector extensions.

use crate::bonded::{Angle, Dihedral};
use crate::compiled::{CompiledFormula, Domain, Formula};
use crate::interpreter::{BLOCK, Interpreter, Slots, extension};
use crate::pair::PairDistance;
use crate::parameters::Values;
use galamost_plugin_api::Real;
use galamost_plugin_api::error::{Errors, Position};
use galamost_plugin_api::params::{FromValue, Source};

/// Formulas of r with their parameters.
const PAIRS: [(&str, &str); 20] = [
    ("4*eps*((sig/r)^12 - (sig/r)^6)", "(eps: 1.3, sig: 0.9)"),
    ("eps*exp(-kappa*r)/r", "(eps: 2.0, kappa: 1.5)"),
    ("D*(1 - exp(-a*(r - r0)))^2", "(D: 2.0, a: 1.7, r0: 1.1)"),
    ("k*(r - r0)^2", "(k: 30.0, r0: 1.0)"),
    ("a/2*(1 - r/r_cut)^2", "(a: 25.0)"),
    ("A*exp(-r/rho) - C/r^6", "(A: 100.0, rho: 0.3, C: 2.0)"),
    ("eps*exp(-(r/sig)^2)", "(eps: 3.0, sig: 0.8)"),
    ("q/r + c*r", "(q: -1.2, c: 0.4)"),
    ("eps*((sig/r)^n - (sig/r)^m)", "(eps: 1.0, sig: 1.0, n: 9.5, m: 5.5)"),
    ("-k/2*R^2*ln(1 - (r/R)^2)", "(k: 30.0, R: 2.9)"),
    ("k*r^1.3 + r^0.25", "(k: 0.7)"),
    ("c0 + c1*r^2 + c2*r^4 + c3*r^6", "(c0: 1.0, c1: -2.0, c2: 0.3, c3: 0.01)"),
    ("a*tanh((r - b)/w)", "(a: 2.0, b: 1.2, w: 0.3)"),
    ("a*sin(k*r)/r^2 + b*cos(k*r)^3", "(a: 1.0, b: 0.5, k: 4.0)"),
    ("max(1 - r/1.5, 0)^2.5 * a + min(r, 2)*b", "(a: 5.0, b: 0.3)"),
    ("if(r < s, a*(r - s)^4, b*(r - s)^3)", "(s: 1.3, a: 2.0, b: 1.0)"),
    ("a*acos(r/4)*tan(r/3) + abs(r - 3)*sqrt(r)", "(a: 0.9)"),
    ("2^(-r)*a + r^(-r)", "(a: 1.5)"),
    ("eps/(1 + (r/s)^6) + s*sqrt(r^2 + s^2)", "(eps: 2.0, s: 0.7)"),
    ("a*wrap(r - 5)^2 + log(r^2 + 1)", "(a: 0.2)"),
];

fn compile<D: Domain>(text: &str, row: &str) -> (CompiledFormula, Values) {
    let mut errors = Errors::default();
    let quoted = format!("\"{text}\"");
    let numbers = Values::from_value(Source::file(row).value(), &mut errors).expect("numbers");
    let formula = Formula::<D>::from_value(Source::file(&quoted).value(), &mut errors);
    let formula = formula.unwrap_or_else(|| panic!("{text}: {errors:?}"));
    let compiled = formula.compile(&[(Position::default(), &numbers)], &mut errors);
    (compiled.unwrap_or_else(|| panic!("{text}: {errors:?}")), numbers)
}

/// Returns (derivative, U) at many points; a point is the values of the variables.
fn compute<R: Real, const N: usize>(
    formula: &CompiledFormula,
    row: &[f64],
    points: &[[f64; N]],
    isa: u32,
) -> Vec<(f64, f64)> {
    let interpreter = Interpreter::<R>::new(&formula.full, N, Slots::Fixed(row));
    let mut memory = interpreter.memory();
    let mut results = vec![];
    for block in points.chunks(BLOCK) {
        for (l, point) in block.iter().enumerate() {
            for (k, x) in point.iter().enumerate() {
                memory[interpreter.input(k) + l] = R::lit(*x);
            }
        }
        // SAFETY: tests pass extensions up to `extension()`
        unsafe { interpreter.run(isa, &mut memory, block.len()) };
        let result = |l: usize| (memory[interpreter.output(0) + l].f64(), memory[interpreter.output(1) + l].f64());
        results.extend((0..block.len()).map(result));
    }
    results
}

/// Returns −dU/dx by a fourth-order finite difference.
fn difference(h: f64, u: impl Fn(f64) -> f64) -> f64 {
    -(8.0 * (u(1.0) - u(-1.0)) - (u(2.0) - u(-2.0))) / (12.0 * h)
}

#[test]
fn forces_of_pairs_are_gradients() {
    for (text, row) in PAIRS {
        let (formula, values) = compile::<PairDistance>(text, row);
        let slots = formula.row(&values, &[("r_cut", 2.5)]).expect("a row");
        for k in 0..300 {
            let r = 0.6 + 0.0063 * f64::from(k);
            let h = 1e-4;
            let at = |n: f64| [(r + n * h).powi(2)];
            let values = compute::<f64, 1>(&formula, &slots, &[at(0.0), at(1.0), at(-1.0), at(2.0), at(-2.0)], 0);
            let u = |n: f64| {
                values[[0, 1, 2, 3, 4][match n {
                    1.0 => 1,
                    -1.0 => 2,
                    2.0 => 3,
                    _ => 4,
                }]]
                .1
            };
            let force = values[0].0 * r;
            // a kink within the stencil: the finite difference is invalid
            if text.contains("max") && (r - 1.5).abs() < 3.0 * h || text.contains("min") && (r - 2.0).abs() < 3.0 * h {
                continue;
            }
            let expected = difference(h, u);
            let scale = force.abs().max(values[0].1.abs() / r).max(1.0);
            assert!((force - expected).abs() < 1e-9 * scale, "{text} at r = {r}: {force} instead of {expected}");
        }
    }
}

#[test]
fn slopes_of_angles_are_derivatives() {
    let cases = [
        ("k*(theta - t0)^2", "(k: 3.0, t0: 2.0)"),
        ("k*(cos(theta) - c0)^2 + sin(theta)", "(k: 3.0, c0: 0.5)"),
        ("k*(1 - cos(theta - t0)) + cos(2*theta)*tan(theta/4)", "(k: 3.0, t0: 1.0)"),
    ];
    let h = 1e-4;
    for (text, row) in cases {
        let (angle, values) = compile::<Angle>(text, row);
        let twisted = text.replace("theta", "phi");
        let (dihedral, _) = compile::<Dihedral>(&twisted, row);
        let row = angle.row(&values, &[]).expect("a row");
        let twist_row = dihedral.row(&values, &[]).expect("a row");
        for k in 0..100 {
            let theta = 0.1 + 0.029 * f64::from(k);
            let points: Vec<[f64; 3]> =
                [0.0, 1.0, -1.0, 2.0, -2.0].iter().map(|n| theta + n * h).map(|a| [a, a.cos(), a.sin()]).collect();
            let index = |n: f64| match n {
                1.0 => 1,
                -1.0 => 2,
                2.0 => 3,
                _ => 4,
            };
            let values = compute::<f64, 3>(&angle, &row, &points, 0);
            // the derivative is dU/dcos θ
            let (slope, expected) = (values[0].0 * theta.sin(), difference(h, |n| values[index(n)].1));
            assert!((slope - expected).abs() < 1e-9 * expected.abs().max(1.0), "{text} at {theta}: {slope} {expected}");
            let values = compute::<f64, 3>(&dihedral, &twist_row, &points, 0);
            let (slope, expected) = (-values[0].0, difference(h, |n| values[index(n)].1));
            assert!((slope - expected).abs() < 1e-9 * expected.abs().max(1.0), "{twisted}: {slope} {expected}");
        }
    }
}

/// All vector extensions give the same bits; f32 agrees with f64.
#[test]
fn number_types_and_extensions_agree() {
    let points: Vec<[f64; 1]> =
        (0..1000).map(|k| [f64::from(((0.8 + 0.0015 * f64::from(k)).powi(2)) as f32)]).collect();
    for (text, row) in PAIRS {
        let (formula, values) = compile::<PairDistance>(text, row);
        let row = formula.row(&values, &[("r_cut", 2.5)]).expect("a row");
        let truth = compute::<f64, 1>(&formula, &row, &points, 0);
        let single = compute::<f32, 1>(&formula, &row, &points, 0);
        for isa in [3, 4].into_iter().filter(|i| *i <= extension()) {
            assert_eq!(compute::<f64, 1>(&formula, &row, &points, isa), truth, "{text}, f64, v{isa}");
            assert_eq!(compute::<f32, 1>(&formula, &row, &points, isa), single, "{text}, f32, v{isa}");
        }
        let scale = truth.iter().fold(1.0f64, |m, (f, u)| m.max(f.abs()).max(u.abs()));
        for ((fs, us), (fd, ud)) in single.iter().zip(&truth) {
            let worst = (fs - fd).abs().max((us - ud).abs()) / scale;
            // 6e-8 of each of some thirty operations
            assert!(worst < 2e-6, "{text}: f32 and f64 differ by {worst:e}");
        }
    }
}

/// Lennard-Jones needs one division and no root.
#[test]
fn lennard_jones_needs_few_operations() {
    use crate::formula::graph::Function;
    use crate::formula::program::Op;
    let (formula, _) = compile::<PairDistance>(PAIRS[0].0, PAIRS[0].1);
    let count = |f: &dyn Fn(&Op) -> bool| formula.force.ops.iter().filter(|op| f(op)).count();
    assert_eq!(count(&|op| matches!(op, Op::Divide(..))), 1);
    assert_eq!(count(&|op| matches!(op, Op::Call(Function::Sqrt, _))), 0);
    assert_eq!(count(&|op| matches!(op, Op::Multiply(..) | Op::MultiplyAdd(..))), 5, "{:?}", formula.force);
    assert_eq!(formula.slots(), 4);
}

/// F/r is finite at r = 0 if dU/dr is.
#[test]
fn coinciding_particles_have_a_finite_force() {
    for (text, row) in [PAIRS[3], PAIRS[4], PAIRS[6], PAIRS[11]] {
        let (formula, values) = compile::<PairDistance>(text, row);
        let row = formula.row(&values, &[("r_cut", 2.5)]).expect("a row");
        let (f, u) = compute::<f32, 1>(&formula, &row, &[[0.0]], 0)[0];
        assert!(f.is_finite() && u.is_finite(), "{text}: F/r {f}, U {u}");
    }
}

/// Arguments outside the domain of a function give NaN.
#[test]
fn undefined_values_are_nan() {
    for (text, r, defined) in [
        ("ln(1 - r)", 0.5, true),
        ("ln(1 - r)", 2.0, false),
        ("acos(r)", 0.5, true),
        ("acos(r)", 1.5, false),
        ("sqrt(1 - r)", 1.5, false),
        ("(1 - r)^1.3", 0.5, true),
        ("(1 - r)^1.3", 1.5, false),
        ("max(1 - r, 0)^1.3 + r", 1.5, true),
        ("max(1 - r, 0)^n + r", 1.5, true),
    ] {
        let row = if text.contains("^n") { "(n: 1.0)" } else { "()" };
        let (formula, values) = compile::<PairDistance>(text, row);
        let row = formula.row(&values, &[]).expect("a row");
        for isa in [0, extension()] {
            let (f, u) = compute::<f32, 1>(&formula, &row, &[[r * r]], isa)[0];
            let (fd, ud) = compute::<f64, 1>(&formula, &row, &[[r * r]], isa)[0];
            let finite = [f, u, fd, ud].map(f64::is_finite);
            assert_eq!(finite, [defined; 4], "{text} at {r}: {f} {u} {fd} {ud}");
        }
    }
}
