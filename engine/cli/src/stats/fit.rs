//! Least-squares fits of formulas to two columns of a table.
//!
//! The names in the formula other than `x` are its parameters. Levenberg and Marquardt's method minimizes
//! χ² = Σ ((y − f(x))/σ)², where σ are the standard errors in the table, or 1 without them. The covariance of the parameters is
//! (JᵀJ)⁻¹ χ²/(n − p), times the sum of the autocorrelation of the residuals: neighboring points of a correlation function or a
//! mean-square displacement are not independent.
//!
//! All parameters start at 1. Those in which the formula is linear are solved for at once, so that the scale of y does not
//! matter. Columns of J have length 1 where matrices are built, and χ replaces χ², which would overflow or underflow.

use super::estimate::residual_correlation;
use crate::common::input_error;
use crate::output::numbers::{significant, with_error};
use exmex::{Express as _, FlatEx};
use galamost_engine::diagnostic::Failure;
use serde_json::json;
use std::path::Path;

/// Largest number of iterations.
const ITERATIONS: usize = 200;
/// Relative change of χ² below which the fit ends.
const CONVERGED: f64 = 1e-13;
/// χ relative to √Σ (y/σ)² below which the fit ends: rounding of exact data.
const ROUNDING: f64 = 1e-15;
/// Range of the damping.
const DAMPING: [f64; 2] = [1e-15, 1e12];
/// Deviation from linearity relative to the values, below which it is rounding.
const LINEAR: f64 = 1e-12;

/// Pivot of a matrix with ones on the diagonal below which it is singular. An error δ of derivatives changes pivots by δ².
const SINGULAR: f64 = 1e-14;

/// Points to fit.
#[derive(Clone, Debug, Default)]
pub struct Points {
    /// Abscissas.
    pub x: Vec<f64>,
    /// Ordinates.
    pub y: Vec<f64>,
    /// Standard errors of the ordinates, if known.
    pub sigma: Option<Vec<f64>>,
}

impl Points {
    /// Returns the standard error of a point, or 1 if none is known.
    fn sigma(&self, k: usize) -> f64 {
        self.sigma.as_ref().map_or(1.0, |s| s[k])
    }
}

/// A parameter with its standard error.
#[derive(Clone, Debug, PartialEq)]
pub struct Fitted {
    /// Name in the formula.
    pub name: String,
    /// Value.
    pub value: f64,
    /// Standard error.
    pub error: f64,
}

/// The result of a fit.
#[derive(Clone, Debug)]
pub struct Fit {
    /// Parameters in alphabetical order.
    pub parameters: Vec<Fitted>,
    /// Number of points.
    pub points: usize,
    /// χ² divided by the degrees of freedom; 1 is expected if the standard errors are known.
    pub chi2: f64,
}

impl Fit {
    /// Returns one line for each parameter and one for the quality.
    pub fn text(&self) -> String {
        let mut out: String =
            self.parameters.iter().map(|p| format!("{} = {}\n", p.name, with_error(p.value, p.error))).collect();
        let freedom = self.points - self.parameters.len();
        out += &format!("{} points, chi²/{freedom} = {}\n", self.points, significant(self.chi2, 3));
        out
    }

    /// Returns parameters and quality as JSON; `chi2` is divided by the degrees of freedom.
    pub fn json(&self, formula: &str) -> String {
        let one = |p: &Fitted| json!({"name": p.name, "value": p.value, "error": p.error});
        let parameters: Vec<_> = self.parameters.iter().map(one).collect();
        let freedom = self.points - self.parameters.len();
        let all = json!({
            "formula": formula, "parameters": parameters, "points": self.points, "freedom": freedom, "chi2": self.chi2,
        });
        format!("{all:#}\n")
    }
}

/// A formula of `x` and parameters.
struct Formula {
    expression: FlatEx<f64>,
    /// Index of each variable in the list of parameters; `None` for `x`.
    variables: Vec<Option<usize>>,
    names: Vec<String>,
}

impl Formula {
    fn parse(text: &str) -> Result<Self, String> {
        let expression = FlatEx::<f64>::parse(text).map_err(|e| reason(&e.to_string()))?;
        let all = expression.var_names().to_vec();
        if !all.iter().any(|n| n == "x") {
            return Err(
                "`x` does not occur in the formula; write for example \"a + b*x\", where x is the column of --x".into(),
            );
        }
        let names: Vec<String> = all.iter().filter(|n| *n != "x").cloned().collect();
        if names.is_empty() {
            return Err("the formula has no parameters; write for example \"a + b*x\"".into());
        }
        let variables = all.iter().map(|n| names.iter().position(|o| o == n)).collect();
        Ok(Self { expression, variables, names })
    }

    fn at(&self, x: f64, parameters: &[f64]) -> f64 {
        let values: Vec<f64> = self.variables.iter().map(|v| v.map_or(x, |k| parameters[k])).collect();
        self.expression.eval(&values).unwrap_or(f64::NAN)
    }

    /// Returns the weighted residuals (y − f)/σ.
    fn residuals(&self, points: &Points, parameters: &[f64]) -> Vec<f64> {
        let one = |(k, (x, y)): (usize, (&f64, &f64))| (y - self.at(*x, parameters)) / points.sigma(k);
        points.x.iter().zip(&points.y).enumerate().map(one).collect()
    }

    /// Returns f of all points after a change of one parameter.
    fn moved(&self, points: &Points, parameters: &[f64], k: usize, by: f64) -> Vec<f64> {
        let mut p = parameters.to_vec();
        p[k] += by;
        points.x.iter().map(|x| self.at(*x, &p)).collect()
    }

    /// Returns a step of a parameter in which the formula is linear. It changes f by no less than f, so that differences keep
    /// all digits.
    fn long_step(&self, points: &Points, parameters: &[f64], k: usize) -> f64 {
        let largest = points.x.iter().map(|x| self.at(*x, parameters).abs()).fold(0.0, f64::max);
        1.0 + parameters[k].abs() + largest
    }

    /// Returns for each parameter whether the formula is linear in it.
    fn linear(&self, points: &Points, parameters: &[f64]) -> Vec<bool> {
        let one = |k: usize| {
            let step = self.long_step(points, parameters, k);
            let at = |by: f64| self.moved(points, parameters, k, by);
            let (down, here, half, up) = (at(-step), at(0.0), at(0.5 * step), at(step));
            (0..here.len()).all(|i| {
                let allowed = LINEAR * (down[i].abs() + here[i].abs() + up[i].abs());
                // comparisons with undefined numbers are false
                (up[i] + down[i] - 2.0 * here[i]).abs() <= allowed
                    && (up[i] + here[i] - 2.0 * half[i]).abs() <= allowed
                    && allowed.is_finite()
            })
        };
        (0..parameters.len()).map(one).collect()
    }

    /// Returns the derivatives of the residuals with respect to each parameter, by central differences.
    fn jacobian(&self, points: &Points, parameters: &[f64], linear: &[bool]) -> Vec<Vec<f64>> {
        let one = |k: usize| {
            let step = match linear[k] {
                true => self.long_step(points, parameters, k),
                false => 1e-6 * parameters[k].abs().max(1e-3),
            };
            let (up, down) = (self.moved(points, parameters, k, step), self.moved(points, parameters, k, -step));
            up.iter().zip(down).enumerate().map(|(i, (u, d))| (d - u) / (2.0 * step) / points.sigma(i)).collect()
        };
        (0..parameters.len()).map(one).collect()
    }
}

/// Returns what is wrong with a formula, without the parser's representation of its operators.
fn reason(message: &str) -> String {
    match message.split_once('{') {
        None => message.into(),
        Some(_) => "the formula is not valid; write for example \"a + b*x\"".into(),
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Returns the length of a vector, also if squares of its numbers overflow or underflow.
fn length(v: &[f64]) -> f64 {
    let largest = v.iter().fold(0.0f64, |m, x| m.max(x.abs()));
    if largest == 0.0 || largest.is_infinite() {
        // undefined if a number is
        return v.iter().map(|x| x.abs()).sum();
    }
    largest * v.iter().map(|x| (x / largest).powi(2)).sum::<f64>().sqrt()
}

/// Returns the products of the columns divided by their lengths, with `damping` added on the diagonal.
fn normal_matrix(jacobian: &[Vec<f64>], lengths: &[f64], damping: f64) -> Vec<Vec<f64>> {
    let unit: Vec<Vec<f64>> = jacobian.iter().zip(lengths).map(|(j, l)| j.iter().map(|x| x / l).collect()).collect();
    let entry = |i: usize, j: usize| dot(&unit[i], &unit[j]) + if i == j { damping } else { 0.0 };
    (0..unit.len()).map(|i| (0..unit.len()).map(|j| entry(i, j)).collect()).collect()
}

/// Returns the damped step of least squares; `None` if the matrix is singular.
fn least_squares(jacobian: &[Vec<f64>], residuals: &[f64], damping: f64) -> Option<Vec<f64>> {
    let lengths: Vec<f64> = jacobian.iter().map(|j| length(j).max(f64::MIN_POSITIVE)).collect();
    let right = |(j, l): (&Vec<f64>, &f64)| vec![-j.iter().zip(residuals).map(|(x, r)| x / l * r).sum::<f64>()];
    let right = jacobian.iter().zip(&lengths).map(right).collect();
    let step = solve(normal_matrix(jacobian, &lengths, damping), right)?;
    Some(step.iter().zip(&lengths).map(|(s, l)| s[0] / l).collect())
}

/// Solves a symmetric positive system for several right-hand sides; `None` if it is singular.
fn solve(mut a: Vec<Vec<f64>>, mut b: Vec<Vec<f64>>) -> Option<Vec<Vec<f64>>> {
    let n = a.len();
    for k in 0..n {
        let pivot = (k..n).max_by(|i, j| a[*i][k].abs().total_cmp(&a[*j][k].abs()))?;
        a.swap(k, pivot);
        b.swap(k, pivot);
        if a[k][k].abs() < SINGULAR || !a[k][k].is_finite() {
            return None;
        }
        for i in (0..n).filter(|i| *i != k) {
            let factor = a[i][k] / a[k][k];
            let (row, right) = (a[k].clone(), b[k].clone());
            a[i].iter_mut().zip(row).for_each(|(x, r)| *x -= factor * r);
            b[i].iter_mut().zip(right).for_each(|(x, r)| *x -= factor * r);
        }
    }
    Some(b.iter().enumerate().map(|(k, row)| row.iter().map(|v| v / a[k][k]).collect()).collect())
}

/// Fits a formula.
///
/// # Errors
/// Returns a message if the formula is invalid, if there are too few points, or if the parameters are not determined.
pub fn fit(formula: &str, points: &Points) -> Result<Fit, String> {
    let f = Formula::parse(formula)?;
    let (n, p) = (points.x.len(), f.names.len());
    if n <= p {
        return Err(format!("{n} points are too few for {p} parameters"));
    }
    let linear = f.linear(points, &vec![1.0; p]);
    let parameters = minimize(&f, points, &linear)?;
    let mut residuals = f.residuals(points, &parameters);
    let jacobian = f.jacobian(points, &parameters, &linear);
    let chi = length(&residuals) / ((n - p) as f64).sqrt();
    let lengths: Vec<f64> = jacobian.iter().map(|j| length(j)).collect();
    let unit = (0..p).map(|i| (0..p).map(|j| f64::from(u8::from(i == j))).collect()).collect();
    let inverse =
        solve(normal_matrix(&jacobian, &lengths, 0.0), unit).ok_or("the points do not determine all parameters")?;
    if chi > 0.0 {
        residuals.iter_mut().for_each(|r| *r /= chi);
    }
    let correlation = residual_correlation(&residuals, p);
    let one = |(k, name): (usize, &String)| Fitted {
        name: name.clone(),
        value: parameters[k],
        error: (inverse[k][k] * correlation).sqrt() * chi / lengths[k],
    };
    Ok(Fit { parameters: f.names.iter().enumerate().map(one).collect(), points: n, chi2: chi * chi })
}

/// Returns the parameters of least squares, starting from 1 for each.
fn minimize(f: &Formula, points: &Points, linear: &[bool]) -> Result<Vec<f64>, String> {
    let mut parameters = vec![1.0; f.names.len()];
    let mut residuals = f.residuals(points, &parameters);
    let mut chi = length(&residuals);
    if !chi.is_finite() {
        return Err("the formula is not finite at all points if all parameters are 1".into());
    }
    if let Some(trial) = solve_linear(f, points, &parameters, linear) {
        let moved = f.residuals(points, &trial);
        if length(&moved) < chi {
            (parameters, chi, residuals) = (trial, length(&moved), moved);
        }
    }
    let weighted: Vec<f64> = points.y.iter().enumerate().map(|(k, y)| y / points.sigma(k)).collect();
    let rounding = ROUNDING * length(&weighted);
    let (mut damping, mut settled) = (1e-3, 0);
    for _ in 0..ITERATIONS {
        if settled == 2 || chi == 0.0 || damping > DAMPING[1] {
            return Ok(parameters);
        }
        let jacobian = f.jacobian(points, &parameters, linear);
        let Some(step) = least_squares(&jacobian, &residuals, damping) else {
            damping *= 10.0;
            continue;
        };
        let trial: Vec<f64> = parameters.iter().zip(step).map(|(p, s)| p + s).collect();
        let moved = f.residuals(points, &trial);
        let lower = length(&moved);
        if lower <= chi {
            let decrease = 1.0 - (lower / chi).powi(2);
            settled = if decrease <= CONVERGED + (rounding / chi).powi(2) { settled + 1 } else { 0 };
            (parameters, residuals, chi) = (trial, moved, lower);
            damping = (damping * 0.1).max(DAMPING[0]);
        } else {
            damping *= 10.0;
        }
    }
    Err(format!("the fit did not converge in {ITERATIONS} iterations"))
}

/// Returns the parameters after a step of least squares of those in which the formula is linear.
fn solve_linear(f: &Formula, points: &Points, parameters: &[f64], linear: &[bool]) -> Option<Vec<f64>> {
    let jacobian = f.jacobian(points, parameters, linear);
    let (which, columns): (Vec<usize>, Vec<Vec<f64>>) =
        jacobian.into_iter().enumerate().filter(|c| linear[c.0]).unzip();
    let step = least_squares(&columns, &f.residuals(points, parameters), 0.0)?;
    let mut trial = parameters.to_vec();
    which.into_iter().zip(step).for_each(|(k, s)| trial[k] += s);
    Some(trial)
}

/// Converts the message of a fit to an input error.
pub fn failed(table: &Path, message: String) -> Failure {
    input_error(table, format!("--fit: {message}"))
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
