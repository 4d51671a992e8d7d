//! Least-squares fits of formulas to two columns of a table.
//!
//! The names in the formula other than `x` are its parameters. Levenberg and Marquardt's method minimizes
//! χ² = Σ ((y − f(x))/σ)², where σ are the standard errors in the table, or 1 without them. The covariance of the parameters is
//! (JᵀJ)⁻¹ χ²/(n − p), times the sum of the autocorrelation of the residuals: neighboring points of a correlation function or a
//! mean-square displacement are not independent.

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
/// Change of χ² relative to Σ (y/σ)² below which the fit ends: rounding of exact data.
const ROUNDING: f64 = 1e-30;

/// Pivot of a matrix with ones on the diagonal below which it is singular: derivatives by differences have errors of 10⁻¹⁰.
const SINGULAR: f64 = 1e-10;

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
        let weight = |k: usize| points.sigma.as_ref().map_or(1.0, |s| 1.0 / s[k]);
        let one = |(k, (x, y)): (usize, (&f64, &f64))| (y - self.at(*x, parameters)) * weight(k);
        points.x.iter().zip(&points.y).enumerate().map(one).collect()
    }

    /// Returns the derivatives of the residuals with respect to each parameter, by central differences.
    fn jacobian(&self, points: &Points, parameters: &[f64]) -> Vec<Vec<f64>> {
        let one = |k: usize| {
            let step = 1e-6 * parameters[k].abs().max(1e-3);
            let moved = |by: f64| {
                let mut p = parameters.to_vec();
                p[k] += by;
                self.residuals(points, &p)
            };
            let (up, down) = (moved(step), moved(-step));
            up.iter().zip(down).map(|(u, d)| (u - d) / (2.0 * step)).collect()
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
    let parameters = minimize(&f, points)?;
    let residuals = f.residuals(points, &parameters);
    let jacobian = f.jacobian(points, &parameters);
    let chi2 = dot(&residuals, &residuals) / (n - p) as f64;
    // columns of length 1, so that the condition does not depend on units
    let lengths: Vec<f64> = jacobian.iter().map(|j| dot(j, j).sqrt()).collect();
    let normal = |i: usize, j: usize| dot(&jacobian[i], &jacobian[j]) / (lengths[i] * lengths[j]);
    let matrix = (0..p).map(|i| (0..p).map(|j| normal(i, j)).collect()).collect();
    let unit = (0..p).map(|i| (0..p).map(|j| f64::from(u8::from(i == j))).collect()).collect();
    let inverse = solve(matrix, unit).ok_or("the points do not determine all parameters")?;
    let correlation = residual_correlation(&residuals, p);
    let one = |(k, name): (usize, &String)| Fitted {
        name: name.clone(),
        value: parameters[k],
        error: (inverse[k][k] * chi2 * correlation).sqrt() / lengths[k],
    };
    Ok(Fit { parameters: f.names.iter().enumerate().map(one).collect(), points: n, chi2 })
}

/// Returns the parameters of least squares, starting from 1 for each.
fn minimize(f: &Formula, points: &Points) -> Result<Vec<f64>, String> {
    let p = f.names.len();
    let mut parameters = vec![1.0; p];
    let mut residuals = f.residuals(points, &parameters);
    let mut chi2 = dot(&residuals, &residuals);
    if !chi2.is_finite() {
        return Err("the formula is not finite at all points if all parameters are 1".into());
    }
    let weighted = |(k, y): (usize, &f64)| (y / points.sigma.as_ref().map_or(1.0, |s| s[k])).powi(2);
    let rounding = ROUNDING * points.y.iter().enumerate().map(weighted).sum::<f64>();
    let (mut damping, mut settled) = (1e-3, 0);
    for _ in 0..ITERATIONS {
        let jacobian = f.jacobian(points, &parameters);
        let scale: Vec<f64> = jacobian.iter().map(|j| dot(j, j).sqrt().max(1e-300)).collect();
        let entry = |i: usize, j: usize| {
            let diagonal = if i == j { damping } else { 0.0 };
            dot(&jacobian[i], &jacobian[j]) / (scale[i] * scale[j]) + diagonal
        };
        let matrix = (0..p).map(|i| (0..p).map(|j| entry(i, j)).collect()).collect();
        let right = (0..p).map(|i| vec![-dot(&jacobian[i], &residuals) / scale[i]]).collect();
        let Some(step) = solve(matrix, right) else { return Err("the points do not determine all parameters".into()) };
        let trial: Vec<f64> = (0..p).map(|k| parameters[k] + step[k][0] / scale[k]).collect();
        let moved = f.residuals(points, &trial);
        let lower = dot(&moved, &moved);
        if lower <= chi2 {
            settled = if chi2 - lower <= CONVERGED * chi2 + rounding { settled + 1 } else { 0 };
            (parameters, residuals, chi2) = (trial, moved, lower);
            damping = (damping * 0.1).max(1e-12);
        } else {
            damping *= 10.0;
        }
        if settled == 2 || chi2 == 0.0 || damping > 1e12 {
            return Ok(parameters);
        }
    }
    Err(format!("the fit did not converge in {ITERATIONS} iterations"))
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
