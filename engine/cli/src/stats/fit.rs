//! Least-squares fits of formulas to two columns of a table.
//!
//! The names in the formula other than `x` are its parameters. Levenberg and Marquardt's method minimizes
//! χ² = Σ ((y − f(x))/σ)², where σ are the standard errors in the table, or 1 without them. The covariance of the parameters is
//! (JᵀJ)⁻¹ χ²/(n − p), times the sum of the autocorrelation of the residuals: neighboring points of a correlation function or a
//! mean-square displacement are not independent.
//!
//! Parameters start at 1, and at powers of ten around the scales of x; the best fit counts. Parameters in which the formula is
//! linear are solved for at once, so that the scale of y does not matter. Columns of J have length 1 where matrices are built, and χ replaces χ², which would overflow or underflow.

mod formula;
mod points;
mod starts;

pub(super) use points::points_of;

use super::estimate::residual_correlation;
use crate::common::input_error;
use crate::output::numbers::{significant, with_error};
use formula::Formula;
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
/// Relative decrease of χ for which the fit from other start values is preferred.
const BETTER: f64 = 1e-6;
/// Change of f by a standard error of a parameter, relative to that by its derivative, below which the error has no meaning, as
/// above the inverse.
const FLAT: f64 = 1e-2;
/// Change of f relative to f that is not compared with derivatives, whose errors by differences are 10⁻¹⁰.
const NOISE: f64 = 1e-9;

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

/// Returns the given start value of each parameter.
fn given(names: &[String], starts: &[(String, f64)]) -> Result<Vec<Option<f64>>, String> {
    if let Some((name, _)) = starts.iter().find(|(name, _)| !names.contains(name)) {
        return Err(format!("--start: the formula has no parameter `{name}`; its parameters are {}", names.join(", ")));
    }
    let value = |name: &String| starts.iter().rev().find(|(n, _)| n == name).map(|(_, value)| *value);
    Ok(names.iter().map(value).collect())
}

/// Fits a formula. `starts` are the names and the start values of parameters; others are chosen.
///
/// # Errors
/// Returns a message if the formula is invalid, if there are too few points, or if the parameters are not determined.
pub fn fit(formula: &str, points: &Points, starts: &[(String, f64)]) -> Result<Fit, String> {
    let f = Formula::parse(formula)?;
    let given = given(&f.names, starts)?;
    let (n, p) = (points.x.len(), f.names.len());
    if n <= p {
        return Err(format!("{n} points are too few for {p} parameters"));
    }
    let starts = starts::find(&f, points, &given)?;
    let linear = &starts.linear;
    let parameters = minimum(&f, points, starts.lists, linear)?;
    let mut residuals = f.residuals(points, &parameters);
    let jacobian = f.jacobian(points, &parameters, linear);
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
    let fitted: Vec<Fitted> = f.names.iter().enumerate().map(one).collect();
    for (k, one) in fitted.iter().enumerate().filter(|(k, _)| !linear[*k]) {
        if !is_determined(&f, points, &parameters, k, [one.error, lengths[k]]) {
            return Err(format!(
                "the points do not determine `{0}`: f hardly depends on it at its best value, {1}; restrict the points by --range, or \
                 give a start value by --start {0}=VALUE",
                one.name,
                significant(one.value, 3)
            ));
        }
    }
    Ok(Fit { parameters: fitted, points: n, chi2: chi * chi })
}

/// Returns whether a change of a parameter by its standard error changes f by about as much as its derivative says.
fn is_determined(f: &Formula, points: &Points, parameters: &[f64], k: usize, [error, slope]: [f64; 2]) -> bool {
    let here = f.moved(points, parameters, k, 0.0);
    let weighted = |v: Vec<f64>| length(&v.iter().enumerate().map(|(i, x)| x / points.sigma(i)).collect::<Vec<_>>());
    let change = |by: f64| weighted(f.moved(points, parameters, k, by).iter().zip(&here).map(|(a, b)| a - b).collect());
    // errors of exact data are rounding
    let expected = error * slope;
    expected < NOISE * weighted(here.clone())
        || [error, -error].into_iter().any(|by| (FLAT * expected..=expected / FLAT).contains(&change(by)))
}

/// Returns the parameters of least squares from the best of several start values.
fn minimum(f: &Formula, points: &Points, starts: Vec<Vec<f64>>, linear: &[bool]) -> Result<Vec<f64>, String> {
    let (mut best, mut failure): (Option<(f64, Vec<f64>)>, Option<String>) = (None, None);
    for start in starts {
        match minimize(f, points, start, linear) {
            Ok((chi, parameters)) => {
                if best.as_ref().is_none_or(|(least, _)| chi < (1.0 - BETTER) * least) {
                    best = Some((chi, parameters));
                }
            }
            Err(message) => failure = failure.or(Some(message)),
        }
    }
    best.map(|(_, parameters)| parameters).ok_or_else(|| failure.unwrap_or_default())
}

/// Returns χ and the parameters of least squares from start values.
fn minimize(
    f: &Formula,
    points: &Points,
    mut parameters: Vec<f64>,
    linear: &[bool],
) -> Result<(f64, Vec<f64>), String> {
    let mut residuals = f.residuals(points, &parameters);
    let mut chi = length(&residuals);
    if !chi.is_finite() {
        return Err("the formula is not finite at all points with the start values".into());
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
            return Ok((chi, parameters));
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
mod tests;
