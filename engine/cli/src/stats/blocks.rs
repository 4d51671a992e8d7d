//! Block averages (Flyvbjerg and Petersen, J. Chem. Phys. 91, 461 (1989)) as a plot: the standard error of the mean that
//! independent blocks would give, against the length of the blocks. It grows until blocks are independent. The plateau is the
//! standard error.

use super::Statistics;
use super::estimate::{normalized, variance};
use crate::common::input_error;
use crate::output::series::Series;
use galamost_engine::diagnostic::Failure;
use galamost_pictures::{Axis, Curve, Panel, Plot, Style};

/// Least number of blocks whose scatter is shown.
const LEAST_BLOCKS: usize = 4;
/// Largest number of columns.
const MOST_COLUMNS: usize = 8;

/// Length of the blocks, standard error, and its own standard error.
struct BlockLevel {
    length: f64,
    error: f64,
    scatter: f64,
}

/// Returns the standard error for blocks of 1, 2, 4, … rows.
fn levels(x: &[f64]) -> Vec<BlockLevel> {
    let mut out = vec![];
    let (mut blocks, mut length) = (x.to_vec(), 1.0);
    while blocks.len() >= LEAST_BLOCKS {
        let freedom = (blocks.len() - 1) as f64;
        let error = (variance(&blocks) / freedom).sqrt();
        out.push(BlockLevel { length, error, scatter: error / (2.0 * freedom).sqrt() });
        blocks = blocks.as_chunks::<2>().0.iter().map(|[a, b]| 0.5 * (a + b)).collect();
        length *= 2.0;
    }
    out
}

/// Returns a panel for each column: standard errors of blocks, and the standard error that `stats` prints.
///
/// # Errors
/// Returns an error if no column varies, or if there are more than eight.
pub fn block_plot(series: &Series, statistics: &[Statistics]) -> Result<Plot, Failure> {
    let varying: Vec<&Statistics> = statistics.iter().filter(|s| !s.constant).collect();
    if varying.is_empty() {
        return Err(input_error(
            &series.path,
            "--blocks: the columns are constant; block averages need one that varies",
        ));
    }
    if varying.len() > MOST_COLUMNS {
        let m =
            format!("--blocks plots at most {MOST_COLUMNS} columns, not {}; choose them with --columns", varying.len());
        return Err(input_error(&series.path, m));
    }
    let mut panels = vec![];
    for s in varying {
        let values = series.numeric_column(&s.name)?.numbers().unwrap_or_default();
        let used: Vec<f64> = values.iter().skip(s.skipped).copied().filter(|v| v.is_finite()).collect();
        let normalized = normalized(&used);
        let levels = levels(&normalized.values);
        let scaled = |v: f64| v * normalized.scale;
        let longest = levels.last().map_or(1.0, |l| l.length);
        let blocks = Curve {
            name: "blocks".into(),
            points: levels.iter().map(|l| [l.length, scaled(l.error)]).collect(),
            errors: levels.iter().map(|l| scaled(l.scatter)).collect(),
            style: Style::Dots,
        };
        let line = Curve {
            name: "standard error".into(),
            points: vec![[1.0, s.error.error], [longest, s.error.error]],
            ..Curve::default()
        };
        panels.push(Panel { y: Axis::new(format!("error of {}", s.label())), curves: vec![line, blocks] });
    }
    let x = Axis { log: true, ..Axis::new("rows in a block") };
    Ok(Plot { x, panels, height: 190.0, ..Plot::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::{Skip, of_series};

    #[test]
    fn errors_of_blocks_grow_to_a_plateau() {
        // every value four times: blocks of four rows and more are independent
        let mut state = 9u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as f64 / 2f64.powi(31)
        };
        let x: Vec<f64> = (0..4096).map(|_| next()).flat_map(|v| [v; 4]).collect();
        let l = levels(&x);
        // the naive error has n − 1 degrees of freedom: 1/4096 and less
        assert!((l[2].error / l[0].error - 2.0).abs() < 1e-3, "√4 of the naive error");
        assert!((l[4].error / l[2].error - 1.0).abs() < 4.0 * l[4].scatter / l[4].error, "a plateau");
        let text: String = x.iter().fold("x\n".into(), |t, v| format!("{t}{v}\n"));
        let series = Series::parse("x.csv".as_ref(), &text).expect("a table");
        let statistics = of_series(&series, &[], Skip::Rows(0)).expect("statistics");
        let plot = block_plot(&series, &statistics).expect("a plot");
        assert_eq!((plot.panels.len(), plot.panels[0].curves[1].points.len()), (1, 13));
    }
}
