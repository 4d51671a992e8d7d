//! The first row after equilibration.
//!
//! The second half of a series is the reference. Means over windows of 1, 2, 4, … rows that begin at the start of the series
//! are compared with the reference's mean. A window belongs to the transient if its mean deviates by more than three standard
//! deviations of windows of the same length in the reference, widened by Student's distribution for few windows. Short
//! windows find outliers and steep transients, long windows find slow ones. The series is cut at twice the length found,
//! because a decaying transient continues below the noise.
//!
//! The choice does not minimize an estimated error: minima over noisy estimates favor starts after which the error happens
//! to be underestimated.

use super::estimate::{Level, drift, is_constant, mean_error, mean_of, normalized, quantile};

/// Start of the equilibrated part of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Equilibration {
    /// First row after the transient; at most half of the rows are skipped.
    pub start: usize,
    /// Row at which a transient ends that is too long: twice its length is at least 45 % of the rows.
    pub long: Option<usize>,
    /// Whether the rest is stationary: the transient is not too long, and no drift is significant.
    pub reached: bool,
}

/// Finds the start of the equilibrated part.
pub fn equilibration(x: &[f64]) -> Equilibration {
    if x.len() < 8 || is_constant(x) {
        return Equilibration { start: 0, long: None, reached: true };
    }
    let x = normalized(x).values;
    let end = transient(&x);
    let start = (2 * end).min(x.len() / 2);
    let long = (20 * start >= 9 * x.len()).then_some(end);
    Equilibration { start, long, reached: long.is_none() && !drift(&x[start..]).significant }
}

/// The finite values of a column and their rows.
pub(super) struct Finite {
    rows: Vec<usize>,
    values: Vec<f64>,
}

impl Finite {
    /// Returns the finite values, or `None` if there are fewer than four.
    pub fn of(values: &[f64]) -> Option<Self> {
        let (rows, values): (Vec<usize>, Vec<f64>) =
            values.iter().copied().enumerate().filter(|v| v.1.is_finite()).unzip();
        (values.len() >= 4).then_some(Self { rows, values })
    }

    /// Finds the equilibration of the values from a row of the table on. Its rows are those of the table; `start` is `row` if no value
    /// is before it.
    pub fn equilibration(&self, row: usize) -> Equilibration {
        let found = equilibration(self.from(row));
        let row_of = |k: usize| if k == 0 { row } else { self.rows[self.before(row) + k] };
        Equilibration { start: row_of(found.start), long: found.long.map(row_of), ..found }
    }

    /// Returns the values from a row of the table on.
    pub fn from(&self, row: usize) -> &[f64] {
        &self.values[self.before(row)..]
    }

    /// Returns the number of values before a row of the table.
    fn before(&self, row: usize) -> usize {
        self.rows.partition_point(|r| *r < row)
    }
}

/// Returns the number of rows at the beginning that differ from the second half.
fn transient(x: &[f64]) -> usize {
    let (n, half) = (x.len(), x.len() / 2);
    let reference = mean_of(&x[half..]);
    let of_reference = mean_error(&x[half..]);
    let mut sums = vec![0.0; n + 1];
    for (k, v) in x.iter().enumerate() {
        sums[k + 1] = sums[k] + (v - reference);
    }
    let (mut end, mut width) = (0, 1);
    while width <= n / 8 {
        let mean = |first: usize| (sums[first + width] - sums[first]) / width as f64;
        let windows = (n - width - half + 1) as f64;
        let square = (half..=n - width).map(|k| mean(k).powi(2)).sum::<f64>() / windows;
        let noise = (square + of_reference.error.powi(2)).sqrt();
        let freedom = ((n - half) as f64 / width as f64 - 1.0).min(of_reference.freedom).max(2.0);
        let limit = noise * quantile(freedom, Level::ThreeSigma);
        let begin = end;
        for first in (begin..=half.saturating_sub(width)).step_by((width / 2).max(1)) {
            // a transient may cross the mean: windows up to twice its length are examined
            if first > end && (end == begin || first > 2 * end) {
                break;
            }
            if mean(first).abs() > limit {
                end = first + width;
            }
        }
        width *= 2;
    }
    end
}
