//! `galamost stats`: mean, standard error, 95 % interval, drift and equilibration of time series; several tables as one;
//! block averages; fits.

mod blocks;
mod equilibration;
mod estimate;
mod fit;
mod runs;

pub use equilibration::{Equilibration, equilibration};
pub use estimate::{Drift, MeanError, drift, is_constant, mean_error};
pub use runs::{Run, Runs};

use crate::common::{OverwriteArgs, input_error, refuse_input, usage_error};
use crate::output::numbers::{significant, with_error};
use crate::output::series::{Series, SeriesCells, SeriesColumn};
use crate::terminal::print;
use clap::Args;
use equilibration::Finite;
use estimate::{mean_of, normalized, variance};
use galamost_engine::diagnostic::{Failure, counted};
use serde_json::json;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use tracing::warn;

/// Least number of independent values for which the 95 % interval was verified.
const INDEPENDENT: f64 = 15.0;

/// Number of rows to skip at the beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skip {
    /// A fixed number.
    Rows(usize),
    /// The equilibration of the table.
    Auto,
}

fn parse_skip(text: &str) -> Result<Skip, String> {
    match text {
        "auto" => Ok(Skip::Auto),
        n => n.parse().map(Skip::Rows).map_err(|_| format!("`{n}` is neither a number of rows nor `auto`")),
    }
}

fn parse_start(text: &str) -> Result<(String, f64), String> {
    let parts = text.split_once('=').and_then(|(name, value)| Some((name.trim(), value.trim().parse::<f64>().ok()?)));
    match parts {
        Some((name, value)) if value.is_finite() => Ok((name.into(), value)),
        _ => Err(format!("`{text}` is no start value; write for example tau=1000")),
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
    /// Standard error of the mean and its degrees of freedom.
    pub error: MeanError,
    /// Standard deviation of a value.
    pub deviation: f64,
    /// Statistical inefficiency in rows.
    pub inefficiency: f64,
    /// A straight line fitted to the rows used.
    pub drift: Drift,
    /// First row after equilibration, counted from the start of the series, and whether equilibrium was reached.
    pub equilibration: Equilibration,
    /// Whether all values are the same up to rounding.
    pub constant: bool,
}

impl Statistics {
    /// Computes the statistics from row `skipped` on. Returns `None` if fewer than four values are finite.
    fn of(column: &SeriesColumn, finite: &Finite, equilibration: Equilibration, skipped: usize) -> Option<Self> {
        let x = finite.from(skipped);
        if x.len() < 4 {
            return None;
        }
        let (n, constant) = (x.len() as f64, is_constant(x));
        let of = normalized(x);
        let (error, spread, drift) = if constant {
            (MeanError { error: 0.0, freedom: f64::INFINITY }, 0.0, Drift::none())
        } else {
            (mean_error(&of.values), variance(&of.values), drift(&of.values))
        };
        Some(Self {
            name: column.name.clone(),
            unit: column.unit.clone(),
            skipped,
            rows: x.len(),
            mean: of.shift + of.scale * mean_of(&of.values),
            error: MeanError { error: of.scale * error.error, ..error },
            deviation: of.scale * (spread * n / (n - 1.0)).sqrt(),
            inefficiency: if constant { n } else { n * error.error.powi(2) / spread },
            drift: Drift { change: of.scale * drift.change, error: of.scale * drift.error, ..drift },
            equilibration,
            constant,
        })
    }

    /// Returns the name with its unit.
    pub fn label(&self) -> String {
        self.unit.as_ref().map_or_else(|| self.name.clone(), |u| format!("{} ({u})", self.name))
    }

    /// Returns the mean and its standard error, rounded to two digits of the error; a constant without error.
    pub fn rounded(&self) -> String {
        if self.constant { significant(self.mean, 9) } else { with_error(self.mean, self.error.error) }
    }

    /// Returns the drift in units of its standard error; 0 for a constant series.
    pub fn drift_in_errors(&self) -> f64 {
        if self.drift.change == 0.0 { 0.0 } else { self.drift.change / self.drift.error }
    }

    /// Returns the number of independent values, at most that of the rows.
    pub fn independent(&self) -> f64 {
        self.rows as f64 / self.inefficiency.max(1.0)
    }

    /// Returns whether the rows used are stationary.
    pub fn is_equilibrated(&self) -> bool {
        self.equilibration.reached && !self.drift.significant
    }

    /// Returns remarks about the mean.
    pub fn remarks(&self) -> Vec<String> {
        if self.constant {
            return vec!["constant".into()];
        }
        let mut list = vec![];
        if !self.is_equilibrated() {
            let Equilibration { start, long, .. } = self.equilibration;
            list.push(match long {
                Some(row) => format!("not equilibrated: transient until row {row}"),
                None if self.drift.significant => "not equilibrated: drift".into(),
                None => format!("not equilibrated: drift from row {start}"),
            });
        }
        if self.equilibration.reached && self.equilibration.start > self.skipped + self.rows / 20 {
            list.push(format!("equilibrated from row {}", self.equilibration.start));
        }
        let independent = self.independent();
        if list.is_empty() && independent < INDEPENDENT {
            list.push(format!("fewer than {INDEPENDENT} independent values"));
        }
        list
    }
}

/// Options of `galamost stats`.
#[derive(Args, Debug)]
pub struct StatsArgs {
    /// CSV or Parquet tables, or patterns such as 'kT-*/thermo.csv'. Several tables give one CSV table with a row for each.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Analyze only these columns, separated by commas; repeatable.
    #[arg(long, value_name = "NAMES")]
    columns: Vec<String>,
    /// Rows to skip at the beginning; `auto` skips the equilibration of the table.
    #[arg(long, value_name = "N|auto", default_value = "auto", value_parser = parse_skip)]
    skip: Skip,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Write the CSV table of several tables to this file instead of standard output.
    #[arg(long, value_name = "FILE.csv")]
    out: Option<PathBuf>,
    /// Plot the standard error from block averages against the length of the blocks.
    #[arg(long, value_name = "FILE.svg|png")]
    blocks: Option<PathBuf>,
    #[command(flatten)]
    overwrite: OverwriteArgs,
    /// Fit a formula such as "a + b*x" to two columns and print its parameters with standard errors.
    #[arg(long, value_name = "FORMULA", allow_hyphen_values = true)]
    #[arg(conflicts_with_all = ["skip", "columns", "out", "blocks"])]
    fit: Option<String>,
    /// Column of x for --fit [default: `time`, `step` or the first column].
    #[arg(long, value_name = "COLUMN", requires = "fit")]
    x: Option<String>,
    /// Column of y for --fit.
    #[arg(long, value_name = "COLUMN", requires = "fit")]
    y: Option<String>,
    /// Fit only points with LOW ≤ x ≤ HIGH.
    #[arg(long, value_name = "LOW,HIGH", value_delimiter = ',', allow_hyphen_values = true, requires = "fit")]
    range: Option<Vec<f64>>,
    /// Start value of a parameter of --fit [default: the best of 1 and powers of ten]; repeatable.
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_start, requires = "fit")]
    start: Vec<(String, f64)>,
}

/// Returns the numeric columns except those of time.
fn measured(s: &Series) -> Vec<&SeriesColumn> {
    let is_time = |name: &str| matches!(name, "step" | "time" | "lag" | "batch");
    s.columns.iter().filter(|c| c.numbers().is_some() && !is_time(&c.name)).collect()
}

/// Returns the named columns, each once, or all measured ones without names. A text is the name of a column or names separated
/// by commas.
fn chosen<'a>(s: &'a Series, names: &[String]) -> Result<Vec<&'a SeriesColumn>, Failure> {
    if names.is_empty() {
        return Ok(measured(s));
    }
    let mut list: Vec<&SeriesColumn> = vec![];
    for name in names.iter().flat_map(|text| s.names_in(text)) {
        if name.is_empty() {
            return Err(usage_error("stats: --columns has an empty name; give names of columns, separated by commas"));
        }
        let column = s.numeric_column(&name)?;
        if !list.iter().any(|c| std::ptr::eq(*c, column)) {
            list.push(column);
        }
    }
    Ok(list)
}

/// Computes the statistics of the named columns, or of all numeric columns except time columns. Leaves out columns with fewer
/// than four finite numbers.
///
/// With [`Skip::Auto`], all columns of the table, also those that are not named, start at the same row: the latest start of a column that reaches equilibrium, or of any
/// column if none does.
///
/// # Errors
/// Returns an error if a column does not exist.
pub fn of_series<'a>(s: &'a Series, names: &[String], skip: Skip) -> Result<Vec<Statistics>, Failure> {
    let chosen = chosen(s, names)?;
    let finite = |list: Vec<&'a SeriesColumn>| -> Vec<(Finite, &'a SeriesColumn)> {
        list.into_iter().filter_map(|c| Some((Finite::of(c.numbers()?)?, c))).collect()
    };
    // the choice of columns does not change what is skipped
    let all: Vec<(Equilibration, bool, &SeriesColumn)> = finite(measured(s))
        .iter()
        .map(|(values, column)| (values.equilibration(0), is_constant(values.from(0)), *column))
        .collect();
    let skipped = match skip {
        Skip::Rows(n) => n,
        Skip::Auto => {
            let reached = all.iter().filter(|(e, ..)| e.reached).map(|(e, ..)| e.start).max();
            // constant columns reach equilibrium at row 0
            let drifting = || all.iter().map(|(e, ..)| e.start).max();
            let varies = all.iter().any(|(e, constant, _)| e.reached && !constant);
            if varies { reached } else { drifting() }.unwrap_or(0)
        }
    };
    let of = |(values, column): (Finite, &SeriesColumn)| {
        let known = all.iter().find(|(.., c)| std::ptr::eq(*c, column)).map(|(e, ..)| *e);
        let whole = known.unwrap_or_else(|| values.equilibration(0));
        let found = match skip {
            // a transient before the rows used does not count against them
            Skip::Rows(n) if !whole.reached && n >= whole.start => values.equilibration(n),
            _ => whole,
        };
        Statistics::of(column, &values, found, skipped)
    };
    Ok(finite(chosen).into_iter().filter_map(of).collect())
}

/// Runs the command.
///
/// # Errors
/// Returns an error if a table cannot be read or has too few rows, or if options do not fit together.
pub(crate) fn run(args: &StatsArgs) -> Result<u8, Failure> {
    let tables = runs::tables(&args.files)?;
    for file in args.out.iter().chain(&args.blocks) {
        refuse_input(file, &tables)?;
        args.overwrite.check(file)?;
    }
    let [table_file] = &tables[..] else {
        if args.json || args.blocks.is_some() || args.fit.is_some() {
            return Err(usage_error("stats: --json, --blocks and --fit work with one table"));
        }
        let text = Runs::of(&tables, &args.columns, args.skip)?.csv()?;
        match &args.out {
            Some(out) => args.overwrite.write(out, text)?,
            None => print(text)?,
        }
        return Ok(0);
    };
    if let Some(formula) = &args.fit {
        let series = Series::read(table_file)?;
        series.warn_if_cut();
        let points = fit::points_of(&series, args)?;
        let found = fit::fit(formula, &points, &args.start).map_err(|m| fit::failed(table_file, m))?;
        print(if args.json { found.json(formula) } else { found.text() })?;
        return Ok(0);
    }
    let (series, list) = read_statistics(table_file, &args.columns, args.skip)?;
    if list.is_empty() {
        return Err(input_error(table_file, too_short(&series, &args.columns, args.skip)?));
    }
    if let Some(out) = &args.blocks {
        crate::plot::save(&blocks::block_plot(&series, &list)?.drawing(), out, args.overwrite)?;
    }
    match (&args.out, args.json) {
        (Some(out), _) => {
            let run = Run { table: table_file.clone(), statistics: list };
            args.overwrite.write(out, Runs::new(vec![run]).csv()?)?;
        }
        (None, true) => print(format!("{:#}\n", serde_json::Value::Array(list.iter().map(as_json).collect())))?,
        (None, false) => print(table(&list))?,
    }
    Ok(0)
}

/// Reads a table and computes its statistics; the list is empty if no column has enough numbers. Warns about columns and
/// infinite, undefined and missing values that are left out, about an incomplete last line, and about a table that may be no time series.
///
/// # Errors
/// Returns an error if the table cannot be read or a column does not exist.
pub fn read_statistics(table: &Path, columns: &[String], skip: Skip) -> Result<(Series, Vec<Statistics>), Failure> {
    let series = Series::read(table)?;
    series.warn_if_cut();
    let list = of_series(&series, columns, skip)?;
    if columns.is_empty() {
        warn_of_text(&series);
    }
    for warning in left_out_warnings(&series, columns, skip, &list)? {
        warn!("{}: {warning}", table.display());
    }
    if !list.is_empty() {
        warn_if_not_in_time(&series);
    }
    Ok((series, list))
}

/// Returns warnings about what is left out of the statistics in `list`: columns with too few numbers, and infinite, undefined (NaN)
/// and missing values. There are none if the list is empty.
///
/// # Errors
/// Returns an error if a column does not exist.
pub fn left_out_warnings(
    series: &Series,
    columns: &[String],
    skip: Skip,
    list: &[Statistics],
) -> Result<Vec<String>, Failure> {
    if list.is_empty() {
        return Ok(vec![]);
    }
    let mut warnings = vec![];
    warnings.extend(left_out(series, columns, skip, list)?.map(|message| format!("columns left out: {message}")));
    for column in series.columns.iter().filter(|c| list.iter().any(|s| s.label() == c.label())) {
        let numbers = column.numbers().unwrap_or_default();
        let count = |is: fn(&f64) -> bool| numbers.iter().filter(|x| is(x)).count() as u64;
        let kinds = [(count(|x| x.is_infinite()), "infinite value"), (count(|x| x.is_nan()), "NaN or empty value")];
        let found: Vec<String> = kinds.iter().filter(|(n, _)| *n > 0).map(|(n, what)| counted(*n, what)).collect();
        if !found.is_empty() {
            warnings.push(format!("`{}` has {}, left out of its statistics", column.label(), found.join(" and ")));
        }
    }
    Ok(warnings)
}

/// Logs a warning about columns with text above numbers, which are not averaged.
fn warn_of_text(series: &Series) {
    for column in &series.columns {
        let SeriesCells::Text(cells) = &column.cells else { continue };
        let is_text = |cell: &&String| !cell.is_empty() && cell.parse::<f64>().is_err();
        let (text, numbers) =
            (cells.iter().filter(is_text).count(), cells.iter().filter(|c| c.parse::<f64>().is_ok()).count());
        if let (Some(first), true) = (cells.iter().find(is_text), numbers > 0) {
            warn!(
                "{}: column left out: `{}` has {} with text, such as `{first}`, and {} with numbers",
                series.path.display(),
                column.label(),
                counted(text as u64, "row"),
                counted(numbers as u64, "row")
            );
        }
    }
}

/// Returns which of the chosen columns have too few numbers for statistics; `None` if all are in the list.
fn left_out(series: &Series, columns: &[String], skip: Skip, list: &[Statistics]) -> Result<Option<String>, Failure> {
    let skipped = list.first().map_or(if let Skip::Rows(n) = skip { n } else { 0 }, |s| s.skipped);
    let missing = |c: &&SeriesColumn| !list.iter().any(|s| s.label() == c.label());
    let numbers = |c: &SeriesColumn| {
        let values = c.numbers().unwrap_or_default();
        let finite = values.iter().skip(skipped).filter(|v| v.is_finite()).count();
        format!("`{}` has {}", c.label(), counted(finite as u64, "finite number"))
    };
    let all: Vec<String> = chosen(series, columns)?.into_iter().filter(missing).map(numbers).collect();
    let rows = if skipped > 0 { format!(" after {}", counted(skipped as u64, "skipped row")) } else { String::new() };
    Ok((!all.is_empty()).then(|| format!("{}{rows}; statistics need at least four", all.join(", "))))
}

/// Returns what is wrong with a table without statistics.
fn too_short(series: &Series, columns: &[String], skip: Skip) -> Result<String, Failure> {
    let rows = counted(series.rows() as u64, "row");
    Ok(match skip {
        _ if series.rows() < 4 => format!("{rows}: too few for statistics; at least four numbers are needed"),
        Skip::Rows(n) if series.rows() < n.saturating_add(4) => {
            format!("--skip {n} leaves too few of {rows}; statistics need at least four numbers")
        }
        _ => left_out(series, columns, skip, &[])?.unwrap_or_else(|| "has no column of numbers to average".into()),
    })
}

/// Logs a warning about a table that may be no time series.
fn warn_if_not_in_time(series: &Series) {
    if let Some(warning) = not_in_time(series) {
        warn!("{}: {warning}", series.path.display());
    }
}

/// Returns a warning about a table that may be no time series, such as a distribution or a block of rows for each step.
fn not_in_time(series: &Series) -> Option<String> {
    if series.repeats_steps() {
        return Some(
            "the table has several rows per step, such as the bins of a profile, and is not a time series; averages over \
             all rows have no meaning: use `galamost plot`, with --at STEP for a step"
                .into(),
        );
    }
    let in_time = |c: &SeriesColumn| matches!(c.name.as_str(), "step" | "time" | "batch" | "iteration");
    let first = series.columns.iter().find(|c| c.numbers().is_some())?;
    let rises = first.numbers()?.array_windows().all(|[a, b]| a < b);
    (rises && !series.columns.iter().any(in_time)).then(|| {
        format!(
            "the rows seem to be points of a curve over `{}`, not a time series; averages over them have no meaning: use \
             `galamost plot` or --fit",
            first.name
        )
    })
}

/// Returns the statistics of a column as JSON.
fn as_json(s: &Statistics) -> serde_json::Value {
    let number = |x: f64| if x.is_finite() { json!(x) } else { serde_json::Value::Null };
    let half = s.error.interval();
    json!({
        "column": s.name, "unit": s.unit, "skipped": s.skipped, "rows": s.rows, "mean": number(s.mean),
        "error": number(s.error.error), "low": number(s.mean - half), "high": number(s.mean + half),
        "deviation": number(s.deviation), "inefficiency": number(s.inefficiency), "constant": s.constant,
        "drift": number(s.drift.change), "drift_error": number(s.drift.error),
        "start": s.equilibration.start, "equilibrated": s.is_equilibrated(),
        "remarks": s.remarks(),
    })
}

/// Returns the statistics as a text table.
fn table(list: &[Statistics]) -> String {
    let head =
        ["column", "mean ± standard error", "95 %", "deviation", "rows", "skipped", "g", "drift/error", "remarks"];
    let mut rows = vec![head.map(String::from)];
    for s in list {
        let measured = |text: String| if s.constant { String::new() } else { text };
        rows.push([
            s.label(),
            s.rounded(),
            measured(format!("± {}", significant(s.error.interval(), 2))),
            measured(significant(s.deviation, 3)),
            s.rows.to_string(),
            s.skipped.to_string(),
            measured(format!("{:.1}", s.inefficiency)),
            measured(match s.drift_in_errors() {
                drift if drift.abs() < 1e4 => format!("{drift:+.1}"),
                drift => format!("{drift:+.0e}"),
            }),
            s.remarks().join("; "),
        ]);
    }
    aligned(&rows)
}

/// Aligns the cells of rows: text in the first and the last column to the left, numbers to the right.
fn aligned<const N: usize>(rows: &[[String; N]]) -> String {
    let widths: Vec<usize> = (0..N).map(|k| rows.iter().map(|r| r[k].chars().count()).max().unwrap_or(0)).collect();
    let mut out = String::new();
    for row in rows {
        let mut line = String::new();
        for (k, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let pad = " ".repeat(width - cell.chars().count());
            let _ = if k == 0 || k + 1 == N { write!(line, "{cell}{pad}  ") } else { write!(line, "{pad}{cell}  ") };
        }
        let _ = writeln!(out, "{}", line.trim_end());
    }
    out
}

#[cfg(test)]
mod tests;
