//! Tolerances that no theory gives: `tests/tolerances.ron` lists them with their reasons.

use crate::{mean, repository};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// What a test may find.
#[derive(Clone, Debug, Deserialize)]
pub enum Tolerance {
    /// The mean of a time series, which differs from `reference` by at most `tolerance` and four standard errors.
    Series {
        /// Expected mean.
        reference: f64,
        /// Uncertainty of the reference, and systematic deviations such as those of a finite time step.
        tolerance: f64,
        /// Size of a wrong result that the test detects. A series too short or too noisy for that fails, see
        /// [`disagreement`].
        detects: f64,
        /// Source of the reference, and reason of the tolerance.
        because: String,
    },
    /// A number that differs from `reference` by at most `tolerance`.
    Value {
        /// Expected value.
        reference: f64,
        /// Largest deviation.
        tolerance: f64,
        /// Source of the reference, and reason of the tolerance.
        because: String,
    },
    /// A bound of a deviation whose reference is in the test.
    Bound {
        /// The bound.
        bound: f64,
        /// Reason.
        because: String,
    },
}

/// The entries of the file, by name.
pub fn all() -> &'static BTreeMap<String, Tolerance> {
    static ALL: OnceLock<BTreeMap<String, Tolerance>> = OnceLock::new();
    ALL.get_or_init(|| {
        let path = repository().join("tests/tolerances.ron");
        let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let list: Vec<(String, Tolerance)> = ron::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let n = list.len();
        let all: BTreeMap<_, _> = list.into_iter().collect();
        assert_eq!(all.len(), n, "{}: duplicate names", path.display());
        all
    })
}

fn entry(name: &str) -> &'static Tolerance {
    all().get(name).unwrap_or_else(|| panic!("tests/tolerances.ron has no `{name}`"))
}

/// Mean and its standard error, from ten blocks.
pub fn estimate(values: &[f64]) -> (f64, f64) {
    const BLOCKS: usize = 10;
    assert!(values.len() >= BLOCKS, "{} values are too few for an error estimate", values.len());
    let length = values.len() / BLOCKS;
    let blocks: Vec<f64> = values.chunks_exact(length).take(BLOCKS).map(mean).collect();
    let m = mean(&blocks);
    let variance = blocks.iter().map(|b| (b - m).powi(2)).sum::<f64>() / (BLOCKS - 1) as f64;
    (mean(values), (variance / BLOCKS as f64).sqrt())
}

/// Returns the values without the part of their noise that they share with a control variate of known mean: a line through both, by least
/// squares, is subtracted. What the mean of the control deviates from its reference changes the result by the slope of this line.
pub fn controlled(values: &[f64], control: &[f64], reference: f64) -> Vec<f64> {
    let (v, c) = (mean(values), mean(control));
    let covariance: f64 = values.iter().zip(control).map(|(x, y)| (x - v) * (y - c)).sum();
    let slope = covariance / control.iter().map(|y| (y - c).powi(2)).sum::<f64>();
    values.iter().zip(control).map(|(x, y)| x - slope * (y - reference)).collect()
}

/// Largest standard error with which a test with this tolerance detects a deviation `detects`.
pub fn largest_error(tolerance: f64, detects: f64) -> f64 {
    (detects - tolerance) / (2.0 * SIGMAS)
}

/// Standard errors by which a right result may differ from its reference. With errors from ten blocks, 3 of 1,000 right
/// results differ by more (Student, 9 degrees of freedom).
const SIGMAS: f64 = 4.0;

/// Returns why a mean disagrees with a reference.
///
/// * The deviation exceeds the tolerance and four standard errors.
/// * The standard error is so large that a result off by `detects` might pass. Such a result is
///   `detects − tolerance − 4·error` beyond the bound; at least four standard errors are required there, too. So wrong
///   results of this size fail as surely as right ones pass.
pub fn disagreement(mean: f64, error: f64, reference: f64, tolerance: f64, detects: f64) -> Option<String> {
    let largest = largest_error(tolerance, detects);
    // written so that NaN disagrees
    let precise = error <= largest;
    let near = (mean - reference).abs() <= SIGMAS * error + tolerance;
    match (precise, near) {
        (true, true) => None,
        (false, _) => {
            Some(format!("{mean} ± {error}: too noisy to detect a deviation of {detects}; ± {largest} is needed"))
        }
        (true, false) => Some(format!("{mean} ± {error}, but the reference is {reference} ± {tolerance}")),
    }
}

/// Compares the mean of a time series with the entry of this name.
pub fn agrees(name: &str, samples: &[f64]) {
    let (mean, error) = estimate(samples);
    agrees_within(name, mean, error);
}

/// Compares a value with this standard error with the entry of this name.
pub fn agrees_within(name: &str, mean: f64, error: f64) {
    let Tolerance::Series { reference, tolerance, detects, .. } = entry(name) else {
        panic!("{name} is not a series");
    };
    println!("{name}: {mean} ± {error}, reference {reference} ± {tolerance}, detects {detects}");
    if let Some(why) = disagreement(mean, error, *reference, *tolerance, *detects) {
        panic!("{name}: {why}");
    }
}

/// Compares a number with the entry of this name.
pub fn near(name: &str, value: f64) {
    let Tolerance::Value { reference, tolerance, .. } = entry(name) else { panic!("{name} is not a value") };
    println!("{name}: {value}, reference {reference} ± {tolerance}");
    assert!((value - reference).abs() <= *tolerance, "{name}: {value}, but the reference is {reference} ± {tolerance}");
}

/// Compares the absolute value of a number with the bound of this name.
pub fn below(name: &str, value: f64) {
    let bound = bound(name);
    println!("{name}: {value:e}, at most {bound:e}");
    assert!(value.abs() <= bound, "{name}: {value:e}, more than {bound:e}");
}

/// Returns the bound of this name.
pub fn bound(name: &str) -> f64 {
    let Tolerance::Bound { bound, .. } = entry(name) else { panic!("{name} is not a bound") };
    *bound
}
