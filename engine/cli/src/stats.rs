//! `galamost stats`: mean, standard error, correlation time, drift and equilibration of time series.
//!
//! For a correlated series x₁ … x_n:
//!
//! * Statistical inefficiency: g = 1 + 2 Σ_t (1 − t/n) C(t), where C is the normalized autocorrelation and the sum ends
//!   where C falls to 0 (Chodera et al., J. Chem. Theory Comput. 3, 26 (2007)). The series has n/g independent values.
//!   g = 2τ for a correlation time of τ ≫ 1 rows.
//! * Block averages (Flyvbjerg and Petersen, J. Chem. Phys. 91, 461 (1989)): neighboring values are averaged in pairs
//!   repeatedly. The standard error √(c₀/(n′ − 1)) of the n′ blocks grows until the blocks are independent. The result is
//!   that of the first level with blocks of B rows where B³ > 2 n (s_B/s₁)⁴, the best compromise of bias and noise.
//! * Equilibration: the start t₀ that leaves most independent values, (n − t₀)/g(t₀) (Chodera, J. Chem. Theory Comput.
//!   12, 1799 (2016)).
//! * Drift: the change of a straight-line fit over the series, in units of its standard error √(12 g/n) s, where s² and g
//!   are those of the residuals.

use crate::common::input_error;
use crate::output::series::{Series, SeriesCells, SeriesColumn};
use crate::terminal::print;
use clap::Args;
use galamost_engine::diagnostic::Failure;
use serde_json::json;
use std::fmt::Write as _;
use std::path::PathBuf;

/// Longest series whose autocorrelation is summed over every lag. For longer ones the distance between lags grows by 1
/// each time.
const ALL_LAGS: usize = 20_000;
/// Largest number of rows that the equilibration search uses.
const EQUILIBRATION_ROWS: usize = 4000;
/// Number of starts that the equilibration search tries.
const STARTS: usize = 100;

fn mean_of(x: &[f64]) -> f64 {
    x.iter().sum::<f64>() / x.len() as f64
}

fn variance(x: &[f64]) -> f64 {
    let m = mean_of(x);
    x.iter().map(|v| (v - m).powi(2)).sum::<f64>() / x.len() as f64
}

/// Returns the statistical inefficiency g ≥ 1 in rows.
pub fn inefficiency(x: &[f64]) -> f64 {
    let n = x.len();
    let (m, c0) = (mean_of(x), variance(x));
    // the variance is rounding error
    if n < 3 || c0 <= 1e-28 * m * m {
        return 1.0;
    }
    let d: Vec<f64> = x.iter().map(|v| v - m).collect();
    let (mut g, mut t, mut step) = (1.0, 1, 1);
    while t < n - 1 {
        let c = d[..n - t].iter().zip(&d[t..]).map(|(a, b)| a * b).sum::<f64>() / ((n - t) as f64 * c0);
        // noise may make the first few lags negative
        if c <= 0.0 && t > 3 {
            break;
        }
        g += 2.0 * c * (1.0 - t as f64 / n as f64) * step as f64;
        t += step;
        if n > ALL_LAGS {
            step += 1;
        }
    }
    g.max(1.0)
}

/// Returns the standard error of the mean by block averages, and whether a plateau was reached.
pub fn block_error(x: &[f64]) -> (f64, bool) {
    let n = x.len() as f64;
    let error = |b: &[f64]| (variance(b) / (b.len() - 1) as f64).sqrt();
    if x.len() < 2 {
        return (f64::NAN, false);
    }
    let first = error(x);
    let (mut blocks, mut size) = (x.to_vec(), 1.0f64);
    let mut best = first;
    while blocks.len() >= 2 {
        let s = error(&blocks);
        best = s;
        if first == 0.0 || size.powi(3) > 2.0 * n * (s / first).powi(4) {
            return (s, true);
        }
        blocks = blocks.as_chunks::<2>().0.iter().map(|[a, b]| 0.5 * (a + b)).collect();
        size *= 2.0;
    }
    (best, false)
}

/// Returns the first row after equilibration.
pub fn equilibration(x: &[f64]) -> usize {
    // long series are coarse-grained to means of a few rows
    let width = x.len().div_ceil(EQUILIBRATION_ROWS).max(1);
    let coarse: Vec<f64> = x.chunks_exact(width).map(mean_of).collect();
    let n = coarse.len();
    let most = n.saturating_sub(n / 20).saturating_sub(4);
    let starts = (0..STARTS).map(|k| k * most / STARTS);
    let mut best = (0, 0.0);
    for t in starts {
        let left = &coarse[t..];
        let independent = left.len() as f64 / inefficiency(left);
        if independent > best.1 {
            best = (t, independent);
        }
    }
    best.0 * width
}

/// Returns the change of a straight-line fit over the series, and its standard error.
pub fn drift(x: &[f64]) -> (f64, f64) {
    let n = x.len() as f64;
    let (m, middle) = (mean_of(x), 0.5 * (n - 1.0));
    let (mut xy, mut xx) = (0.0, 0.0);
    for (k, v) in x.iter().enumerate() {
        xy += (k as f64 - middle) * (v - m);
        xx += (k as f64 - middle).powi(2);
    }
    let slope = if xx > 0.0 { xy / xx } else { 0.0 };
    let rest: Vec<f64> = x.iter().enumerate().map(|(k, v)| v - m - slope * (k as f64 - middle)).collect();
    let s2 = rest.iter().map(|r| r * r).sum::<f64>() / (n - 2.0).max(1.0);
    (slope * (n - 1.0), (12.0 * inefficiency(&rest) * s2 / n).sqrt())
}

/// Number of rows to skip at the beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skip {
    /// A fixed number.
    Rows(usize),
    /// The equilibration time of each column.
    Auto,
}

fn parse_skip(text: &str) -> Result<Skip, String> {
    match text {
        "auto" => Ok(Skip::Auto),
        n => n.parse().map(Skip::Rows).map_err(|_| format!("`{n}` is neither a number of rows nor `auto`")),
    }
}

/// Statistics of a column.
#[derive(Clone, Debug, PartialEq)]
pub struct Statistics {
    /// Name of the column.
    pub name: String,
    /// Unit of the column.
    pub unit: Option<String>,
    /// Rows skipped at the beginning.
    pub skipped: usize,
    /// Number of values used.
    pub rows: usize,
    /// Mean.
    pub mean: f64,
    /// Standard error of the mean by block averages.
    pub error: f64,
    /// Whether the block average reached a plateau.
    pub plateau: bool,
    /// Standard deviation of a value.
    pub deviation: f64,
    /// Statistical inefficiency in rows.
    pub inefficiency: f64,
    /// Change of a straight-line fit over the rows used.
    pub drift: f64,
    /// Standard error of the drift.
    pub drift_error: f64,
    /// First row after equilibration, counted from the start of the series.
    pub equilibrated: usize,
}

impl Statistics {
    /// Computes the statistics of a column. Returns `None` if fewer than four values are finite.
    pub fn of(name: &str, unit: Option<String>, values: &[f64], skip: Skip) -> Option<Self> {
        let finite: Vec<(usize, f64)> = values.iter().copied().enumerate().filter(|v| v.1.is_finite()).collect();
        let numbers: Vec<f64> = finite.iter().map(|v| v.1).collect();
        if numbers.len() < 4 {
            return None;
        }
        let equilibrated = finite[equilibration(&numbers)].0;
        let skipped = match skip {
            Skip::Rows(n) => n,
            Skip::Auto => equilibrated,
        };
        let x: Vec<f64> = finite.iter().filter(|v| v.0 >= skipped).map(|v| v.1).collect();
        if x.len() < 4 {
            return None;
        }
        let ((error, plateau), (drift, drift_error)) = (block_error(&x), drift(&x));
        Some(Self {
            name: name.into(),
            unit,
            skipped,
            rows: x.len(),
            mean: mean_of(&x),
            error,
            plateau,
            deviation: (variance(&x) * x.len() as f64 / (x.len() - 1) as f64).sqrt(),
            inefficiency: inefficiency(&x),
            drift,
            drift_error,
            equilibrated,
        })
    }

    /// Returns the drift in units of its standard error; 0 for a constant series.
    pub fn drift_in_errors(&self) -> f64 {
        if self.drift == 0.0 { 0.0 } else { self.drift / self.drift_error }
    }

    /// Returns warnings about the mean.
    pub fn remarks(&self) -> Vec<&'static str> {
        let mut list = vec![];
        if !self.plateau {
            list.push("no plateau: the error is a lower bound");
        }
        if self.drift_in_errors().abs() > 3.0 {
            list.push("drifts");
        }
        if self.rows as f64 / self.inefficiency < 20.0 {
            list.push("fewer than 20 independent values");
        }
        if self.equilibrated > self.skipped && self.equilibrated - self.skipped > self.rows / 20 {
            list.push("starts out of equilibrium");
        }
        list
    }
}

/// Formats `mean ± error` with two significant digits of the error.
pub fn with_error(mean: f64, error: f64) -> String {
    if !(error.is_finite() && mean.is_finite()) {
        return format!("{mean}");
    }
    if error == 0.0 {
        return format!("{mean} ± 0");
    }
    let digits = 1 - error.log10().floor() as i32;
    let largest = mean.abs().max(error);
    if !(1e-4..1e7).contains(&largest) {
        let power = largest.log10().floor() as i32;
        let unit = 10f64.powi(power);
        let places = (digits + power).clamp(0, 15) as usize;
        return format!("({:.places$} ± {:.places$})e{power}", mean / unit, error / unit);
    }
    let places = digits.clamp(0, 15) as usize;
    format!("{mean:.places$} ± {error:.places$}")
}

/// Options of `galamost stats`.
#[derive(Args, Debug)]
pub struct StatsArgs {
    /// A CSV file with a header line, or a Parquet table.
    file: PathBuf,
    /// Analyze only these columns, separated by commas.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    columns: Vec<String>,
    /// Rows to skip at the beginning; `auto` skips the equilibration of each column.
    #[arg(long, value_name = "N|auto", default_value = "0", value_parser = parse_skip)]
    skip: Skip,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Computes the statistics of the named columns, or of all numeric columns except time columns.
///
/// # Errors
/// Returns an error if a column does not exist.
pub fn of_series(s: &Series, names: &[String], skip: Skip) -> Result<Vec<Statistics>, Failure> {
    let chosen: Vec<_> = if names.is_empty() {
        let is_time = |name: &str| matches!(name, "step" | "time" | "lag" | "batch");
        s.columns.iter().filter(|c| matches!(c.cells, SeriesCells::Numbers(_)) && !is_time(&c.name)).collect()
    } else {
        names.iter().map(|n| s.numeric_column(n)).collect::<Result<_, _>>()?
    };
    let one = |c: &SeriesColumn| c.numbers().and_then(|v| Statistics::of(&c.name, c.unit.clone(), v, skip));
    Ok(chosen.into_iter().filter_map(one).collect())
}

/// Runs the command.
///
/// # Errors
/// Returns an error if the table cannot be read or has too few rows.
pub(crate) fn run(args: &StatsArgs) -> Result<u8, Failure> {
    let series = Series::read(&args.file)?;
    let list = of_series(&series, &args.columns, args.skip)?;
    if list.is_empty() {
        let m = format!("{} rows: too few for statistics; at least four numbers are needed", series.rows());
        return Err(input_error(&args.file, m));
    }
    if args.json {
        let number = |x: f64| if x.is_finite() { json!(x) } else { serde_json::Value::Null };
        let one = |s: &Statistics| {
            json!({
                "column": s.name, "unit": s.unit, "skipped": s.skipped, "rows": s.rows, "mean": number(s.mean),
                "error": number(s.error), "plateau": s.plateau, "deviation": number(s.deviation),
                "inefficiency": number(s.inefficiency), "drift": number(s.drift), "drift_error": number(s.drift_error),
                "equilibrated": s.equilibrated, "remarks": s.remarks(),
            })
        };
        print(format!("{:#}\n", serde_json::Value::Array(list.iter().map(one).collect())))?;
        return Ok(0);
    }
    print(table(&list))?;
    Ok(0)
}

/// Returns the statistics as a text table.
fn table(list: &[Statistics]) -> String {
    let head =
        ["column", "mean ± standard error", "deviation", "rows", "skipped", "g", "drift/error", "start", "remarks"];
    let mut rows = vec![head.map(String::from)];
    for s in list {
        let name = s.unit.as_ref().map_or(s.name.clone(), |u| format!("{} ({u})", s.name));
        rows.push([
            name,
            with_error(s.mean, s.error),
            format!("{:.4e}", s.deviation),
            s.rows.to_string(),
            s.skipped.to_string(),
            format!("{:.1}", s.inefficiency),
            format!("{:+.1}", s.drift_in_errors()),
            s.equilibrated.to_string(),
            s.remarks().join("; "),
        ]);
    }
    let widths: Vec<usize> =
        (0..head.len()).map(|k| rows.iter().map(|r| r[k].chars().count()).max().unwrap_or(0)).collect();
    let mut out = String::new();
    for row in &rows {
        let mut line = String::new();
        for (k, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let pad = " ".repeat(width - cell.chars().count());
            // text is left-aligned, numbers are right-aligned
            let _ = if k == 0 || k + 1 == row.len() {
                write!(line, "{cell}{pad}  ")
            } else {
                write!(line, "{pad}{cell}  ")
            };
        }
        let _ = writeln!(out, "{}", line.trim_end());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns an autoregressive series x ← φ x + noise: C(t) = φᵗ, g = (1 + φ)/(1 − φ), variance of the mean g σ²/n.
    fn ar1(n: usize, phi: f64, seed: u64) -> Vec<f64> {
        let mut s = seed;
        let mut uniform = move || {
            s ^= s << 13;
            s ^= s >> 7;
            s ^= s << 17;
            (s >> 11) as f64 / (1u64 << 53) as f64
        };
        let mut x = 0.0;
        let noise = (1.0 - phi * phi).sqrt();
        let mut draw = move || {
            // the sum of twelve uniform numbers is approximately normal: mean 0, variance 1
            x = phi * x + noise * ((0..12).map(|_| uniform()).sum::<f64>() - 6.0);
            x
        };
        for _ in 0..1000 {
            draw();
        }
        (0..n).map(|_| draw()).collect()
    }

    #[test]
    fn errors_of_correlated_series_are_right() {
        // 40 series: both estimates of the standard error against the exact one. g of one series scatters by √(4 g/n)
        // or more, the mean over 40 by 2 to 5 %. Sums that end at the first zero are low by about as much.
        for (phi, n) in [(0.0, 4096), (0.8, 8192), (0.95, 16384)] {
            let known = (1.0 + phi) / (1.0 - phi);
            let (mut g, mut block, mut z2, mut plateaus) = (0.0, 0.0, 0.0, 0);
            for seed in 1..=40 {
                let x = ar1(n, phi, 7919 * seed);
                g += inefficiency(&x) / 40.0;
                let (error, plateau) = block_error(&x);
                block += error * error * n as f64 / 40.0;
                z2 += (mean_of(&x) / error).powi(2) / 40.0;
                plateaus += u32::from(plateau);
            }
            assert!((g / known - 1.0).abs() < 0.12, "φ {phi}: g {g}, known {known}");
            assert!((block / known - 1.0).abs() < 0.15, "φ {phi}: by blocks {block}, known {known}");
            // mean square of 40 numbers of variance 1: 1 ± 0.22
            assert!((z2 - 1.0).abs() < 0.75, "φ {phi}: means scatter by {z2} of their standard errors");
            assert_eq!(plateaus, 40, "φ {phi}");
        }
        // long series: growing distances between lags
        let x = ar1(60_000, 0.9, 5);
        assert!((inefficiency(&x) / 19.0 - 1.0).abs() < 0.2, "{}", inefficiency(&x));
    }

    #[test]
    fn a_start_out_of_equilibrium_is_found() {
        let (n, away) = (4000, 400.0);
        let decaying: Vec<f64> =
            ar1(n, 0.5, 3).iter().enumerate().map(|(k, v)| v + 20.0 * (-(k as f64) / 80.0).exp()).collect();
        let t = equilibration(&decaying) as f64;
        // 20 exp(−t/80) falls below the noise of the mean, √(3/n), at 530, and below that of a value at 240
        assert!((160.0..=700.0).contains(&t), "{t} of about {away}");
        assert!(equilibration(&ar1(n, 0.5, 4)) < n / 5);
        let s = Statistics::of("x", None, &decaying, Skip::Auto).expect("enough rows");
        assert!(s.mean.abs() < 5.0 * s.error + 0.05 && s.skipped == s.equilibrated);
        assert!(
            Statistics::of("x", None, &decaying, Skip::Rows(0))
                .expect("rows")
                .remarks()
                .contains(&"starts out of equilibrium")
        );
    }

    #[test]
    fn drifts_are_distinguished_from_noise() {
        let n = 4000;
        let mut many = 0;
        for seed in 1..=50 {
            let x = ar1(n, 0.9, 104_729 * seed);
            let (change, error) = drift(&x);
            many += u32::from((change / error).abs() > 3.0);
            let tilted: Vec<f64> = x.iter().enumerate().map(|(k, v)| v + 3.0 * k as f64 / n as f64).collect();
            let (change, error) = drift(&tilted);
            // √(12 · 19/4000) = 0.24: 3 is 12 errors
            assert!((change / error).abs() > 6.0, "{change} ± {error}");
        }
        // 0.27 % each; the standard errors are estimates, too
        assert!(many <= 3, "{many} of 50");
    }

    #[test]
    fn degenerate_series_are_handled() {
        assert_eq!(inefficiency(&[2.0; 10]), 1.0);
        assert_eq!(block_error(&[2.0; 10]), (0.0, true));
        let s = Statistics::of("x", None, &[2.0; 10], Skip::Rows(0)).expect("rows");
        assert_eq!((s.mean, s.error, s.drift_in_errors()), (2.0, 0.0, 0.0));
        assert!(Statistics::of("x", None, &[1.0, f64::NAN, 2.0, 3.0], Skip::Rows(0)).is_none());
        assert!(Statistics::of("x", None, &[1.0; 10], Skip::Rows(8)).is_none());
        assert_eq!(with_error(1.23456, 0.0123), "1.235 ± 0.012");
        assert_eq!(with_error(-4543.2, 12.3), "-4543 ± 12");
        assert_eq!(with_error(1.5e-6, 2e-8), "(1.500 ± 0.020)e-6");
    }
}
