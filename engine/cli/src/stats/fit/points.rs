//! The points that `--fit`, `--x`, `--y` and `--range` select.

use super::Points;
use crate::common::{input_error, usage_error};
use crate::output::series::Series;
use crate::stats::StatsArgs;
use galamost_engine::diagnostic::{Failure, counted};
use tracing::warn;

/// Returns the selected points. Warns about points in the range that are left out because a coordinate is infinite, or because their
/// standard error is no positive number. Points without one of the two coordinates are not counted.
///
/// # Errors
/// Returns an error if a column does not exist or the range is invalid.
pub(in crate::stats) fn points_of(series: &Series, args: &StatsArgs) -> Result<Points, Failure> {
    let x = match &args.x {
        Some(name) => series.numeric_column(name)?,
        None => {
            crate::plot::default_x(series).ok_or_else(|| input_error(&series.path, "has no column with numbers"))?
        }
    };
    let Some(name) = &args.y else { return Err(usage_error("stats: --fit needs --y COLUMN")) };
    let y = series.numeric_column(name)?;
    let errors = crate::plot::errors_of(series, &y.name).filter(|e| e.iter().any(|s| *s > 0.0));
    let [low, high] = match args.range.as_deref() {
        None => [f64::NEG_INFINITY, f64::INFINITY],
        Some([low, high]) if low < high => [*low, *high],
        Some(_) => return Err(usage_error("stats: --range needs two numbers, LOW,HIGH with LOW < HIGH")),
    };
    let mut points = Points { sigma: errors.map(|_| vec![]), ..Points::default() };
    let (mut infinite, mut left_out) = (0, 0);
    let values = [x, y].map(|column| column.numbers().unwrap_or_default());
    for (k, (x, y)) in values[0].iter().zip(values[1]).enumerate() {
        let sigma = errors.map_or(1.0, |e| e[k]);
        if x.is_nan() || y.is_nan() || !(low..=high).contains(x) {
            continue;
        }
        if x.is_infinite() || y.is_infinite() {
            infinite += 1;
        } else if sigma > 0.0 && sigma.is_finite() {
            points.x.push(*x);
            points.y.push(*y);
            points.sigma.as_mut().into_iter().for_each(|s| s.push(sigma));
        } else {
            left_out += 1;
        }
    }
    if infinite > 0 {
        warn!(
            "{}: --fit leaves out {} with an infinite value of `{}` or `{}`",
            series.path.display(),
            counted(infinite, "point"),
            x.name,
            y.name
        );
    }
    if left_out > 0 {
        warn!(
            "{}: --fit leaves out {} whose standard error of `{}` is not a positive number",
            series.path.display(),
            counted(left_out, "point"),
            y.name
        );
    }
    Ok(points)
}
