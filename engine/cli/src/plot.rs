//! `galamost plot`: plots columns of tables.

use crate::common::{OverwriteArgs, input_error, refuse_input};
use crate::output::series::{Series, SeriesColumn};
use crate::terminal::print;
use clap::Args;
use galamost_engine::diagnostic::Failure;
use galamost_pictures::{Axis, Curve, Drawing, Panel, Plot, Style, Theme};
use std::path::{Path, PathBuf};

/// Options of `galamost plot`.
#[derive(Args, Debug)]
pub struct PlotArgs {
    /// CSV or Parquet tables, plotted into the same panels.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Column of the horizontal axis [default: `time`, `step` or the first column].
    #[arg(long, value_name = "COLUMN")]
    x: Option<String>,
    /// Columns of the vertical axis, separated by commas; repeat the option for further panels below.
    #[arg(long, value_name = "COLUMNS")]
    y: Vec<String>,
    /// Output file, .svg or .png [default: the first file with the extension .svg].
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    overwrite: OverwriteArgs,
    /// Use a logarithmic horizontal axis.
    #[arg(long)]
    log_x: bool,
    /// Use logarithmic vertical axes.
    #[arg(long)]
    log_y: bool,
    /// Range of the horizontal axis.
    #[arg(long, value_name = "LOW,HIGH", value_delimiter = ',', allow_hyphen_values = true)]
    range_x: Option<Vec<f64>>,
    /// Range of the vertical axes.
    #[arg(long, value_name = "LOW,HIGH", value_delimiter = ',', allow_hyphen_values = true)]
    range_y: Option<Vec<f64>>,
    /// Title above the plot.
    #[arg(long)]
    title: Option<String>,
    /// Draw error bars: standard errors of the column NAME are read from NAME_error or error_NAME.
    #[arg(long)]
    errors: bool,
    /// Draw points in addition to lines.
    #[arg(long)]
    points: bool,
    /// Plot this step of a table with several rows per step [default: the last step; all with `--x step` or `--x time`].
    #[arg(long, value_name = "STEP")]
    at: Option<f64>,
}

/// Names of columns that are never plotted on the vertical axis by default.
const TIME_COLUMNS: [&str; 4] = ["time", "step", "batch", "lag"];
/// Largest number of curves that are plotted by default.
const MOST_CURVES: usize = 8;

/// Returns whether a column contains standard errors or sample counts.
fn is_auxiliary(s: &Series, c: &SeriesColumn) -> bool {
    let n = c.name.as_str();
    let errors = s.columns.iter().any(|o| error_columns(&o.name).iter().any(|e| e == n));
    errors || matches!(n, "origins" | "pairs" | "samples" | "count" | "counts" | "blocks" | "error")
}

fn error_columns(name: &str) -> [String; 4] {
    [format!("{name}_error"), format!("error_{name}"), format!("{name}_err"), format!("{name}_se")]
}

/// Returns the standard errors of a column, if the table has them.
pub fn errors_of<'a>(s: &'a Series, name: &str) -> Option<&'a [f64]> {
    error_columns(name).iter().find_map(|n| s.find(n)).or_else(|| s.find("error")).and_then(SeriesColumn::numbers)
}

/// Returns the default column of the horizontal axis.
pub fn default_x(s: &Series) -> Option<&SeriesColumn> {
    let numbers = |c: &&SeriesColumn| c.numbers().is_some();
    let profile =
        s.columns.get(1).filter(|_| s.columns[0].name == "step" && is_constant(&s.columns[0])).filter(numbers);
    let time = s.columns.iter().filter(numbers).find(|c| c.name == "time" && !is_constant(c));
    profile.or(time).or_else(|| s.columns.iter().find(numbers))
}

/// Returns whether a column has several rows with the same value.
fn is_constant(c: &SeriesColumn) -> bool {
    c.numbers().is_some_and(|v| v.len() > 1 && v.iter().all(|x| *x == v[0]))
}

/// Returns the default columns of each panel. Temperature, pressure and energy get a panel each, since their scales
/// differ; other tables get one panel.
pub fn default_y(s: &Series, x: &str) -> Vec<Vec<String>> {
    let has = |n: &str| s.find(n).is_some_and(|c| c.numbers().is_some_and(|v| v.iter().any(|x| x.is_finite())));
    if has("kT") && has("pressure") || has("kT") && has("potential") {
        return ["kT", "pressure", "potential"].iter().filter(|n| has(n)).map(|n| vec![n.to_string()]).collect();
    }
    let plotted = |c: &&SeriesColumn| {
        has(&c.name) && c.name != x && !TIME_COLUMNS.contains(&c.name.as_str()) && !is_auxiliary(s, c)
    };
    let names: Vec<String> = s.columns.iter().filter(plotted).take(MOST_CURVES).map(|c| c.name.clone()).collect();
    if names.is_empty() { vec![] } else { vec![names] }
}

/// The contents of a plot.
#[derive(Clone, Debug, Default)]
pub struct PlotSelection {
    /// Column of the horizontal axis.
    pub x: Option<String>,
    /// Columns of the vertical axis of each panel.
    pub y: Vec<Vec<String>>,
    /// Error bars.
    pub errors: bool,
    /// Points in addition to lines.
    pub points: bool,
}

/// Plots tables into the same panels.
///
/// # Errors
/// Returns an error if a column does not exist.
pub fn plot(tables: &[(String, Series)], selection: &PlotSelection) -> Result<Plot, Failure> {
    let Some((_, first)) = tables.first() else { return Ok(Plot::default()) };
    let fail = |s: &Series, m: &str| input_error(&s.path, m);
    let x = match &selection.x {
        Some(name) => first.numeric_column(name)?,
        None => default_x(first).ok_or_else(|| fail(first, "has no column with numbers"))?,
    };
    let y = if selection.y.is_empty() { default_y(first, &x.name) } else { selection.y.clone() };
    if y.is_empty() {
        return Err(fail(first, "has no columns to plot besides the horizontal axis: give --y"));
    }
    let mut panels = vec![];
    for names in &y {
        let mut curves = vec![];
        for (file, s) in tables {
            let along = s.numeric_column(&x.name)?.numbers().unwrap_or_default();
            for name in names {
                let column = s.numeric_column(name)?;
                let values = column.numbers().unwrap_or_default();
                let points: Vec<[f64; 2]> = along.iter().zip(values).map(|(x, y)| [*x, *y]).collect();
                let errors = match errors_of(s, &column.name).filter(|_| selection.errors) {
                    Some(e) => e.to_vec(),
                    None if selection.errors && tables.len() == 1 && names.len() == 1 => {
                        let e = error_columns(name);
                        return Err(fail(
                            s,
                            &format!("no standard errors of `{name}`: there is no column `{}` or `{}`", e[0], e[1]),
                        ));
                    }
                    None => vec![],
                };
                let name = match (tables.len(), names.len()) {
                    (1, _) => column.label(),
                    (_, 1) => file.clone(),
                    _ => format!("{file}: {}", column.name),
                };
                let style = if selection.points { Style::Both } else { Style::Line };
                curves.push(Curve { name, points, errors, style });
            }
        }
        let label = match &names[..] {
            [one] => first.numeric_column(one)?.label(),
            many => common_label(first, many),
        };
        panels.push(Panel { y: Axis::new(label), curves });
    }
    let height = [400.0, 230.0, 190.0][panels.len().min(3) - 1];
    Ok(Plot { x: Axis::new(x.label()), panels, height, ..Plot::default() })
}

/// Returns the label of several columns: their common prefix and unit.
fn common_label(s: &Series, names: &[String]) -> String {
    let unit = s.find(&names[0]).and_then(|c| c.unit.clone());
    let same_unit = names.iter().all(|n| s.find(n).and_then(|c| c.unit.clone()) == unit);
    let unit = unit.filter(|_| same_unit).map_or(String::new(), |u| format!(" ({u})"));
    let start = |a: &str, b: &str| a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count();
    let n = names.iter().map(|n| start(n, &names[0])).min().unwrap_or(0);
    let prefix: String = names[0].chars().take(n).collect();
    let prefix = prefix.trim_end_matches(['_', '-', '.', ' ', '(']);
    let listed = || if names.len() <= 4 { names.join(", ") } else { String::new() };
    let text = match prefix {
        p if p.len() > 1 => p.to_string(),
        // g(r) of several pairs of types: the names have nothing in common
        _ if s.columns[0].name == "r" && names.iter().all(|n| n.contains('-')) && names.len() > 1 => String::new(),
        _ => listed(),
    };
    format!("{text}{unit}").trim().to_string()
}

/// Writes a drawing as SVG or PNG, depending on the file extension.
///
/// # Errors
/// Returns an error if the extension is another one, or if the file must not be replaced or cannot be written.
pub fn save(drawing: &Drawing, out: &Path, overwrite: OverwriteArgs) -> Result<(), Failure> {
    let bytes = match out.extension().and_then(|e| e.to_str()) {
        Some("svg") => drawing.svg(Theme::Paper).into_bytes(),
        Some("png") => drawing.image(2.0).and_then(|i| i.png()).map_err(Failure::run)?,
        _ => return Err(input_error(out, "unknown image format: the file name must end in .svg or .png")),
    };
    overwrite.write(out, bytes)
}

/// Runs the command.
///
/// # Errors
/// Returns an error if a table is invalid, with line and column, or if the plot cannot be written.
pub(crate) fn run(args: &PlotArgs) -> Result<u8, Failure> {
    let mut tables = vec![];
    let mut step = None;
    for file in &args.files {
        let mut s = Series::read(file)?;
        s.warn_if_cut();
        // one step has a single point along `step` or `time`
        let whole = args.at.is_none() && args.x.as_deref().is_some_and(|x| ["step", "time"].contains(&x));
        if !whole {
            step = s.at_step(args.at)?.or(step);
        }
        tables.push((legend_name(file, &args.files), s));
    }
    if let (Some(at), None) = (args.at, step) {
        let message = format!("{at} selects a step of a table with several rows per step; none of these tables is one");
        return Err(input_error("--at", message));
    }
    // tables without a column are reported with its name
    let columns = |y: &String| tables.first().map_or_else(Vec::new, |(_, s)| s.names_in(y));
    let selection = PlotSelection {
        x: args.x.clone(),
        y: args.y.iter().map(columns).collect(),
        errors: args.errors,
        points: args.points,
    };
    let mut plot = plot(&tables, &selection)?;
    let axis_range = |name: &str, range: &Option<Vec<f64>>, log: bool| match range.as_deref() {
        None => Ok(None),
        Some([low, high]) if low < high && low.is_finite() && high.is_finite() && !(log && *low <= 0.0) => {
            Ok(Some([*low, *high]))
        }
        Some(_) => {
            Err(input_error(name, "expected two numbers, LOW,HIGH with LOW < HIGH, positive on a logarithmic axis"))
        }
    };
    plot.x.log = args.log_x;
    plot.x.range = axis_range("--range-x", &args.range_x, args.log_x)?;
    require_curves(&plot)?;
    for panel in &mut plot.panels {
        panel.y.log = args.log_y;
        panel.y.range = axis_range("--range-y", &args.range_y, args.log_y)?;
    }
    plot.title = match (&args.title, step) {
        (Some(t), _) => t.clone(),
        (None, Some(step)) => format!("step {step}"),
        _ => String::new(),
    };
    let out = args.out.clone().unwrap_or_else(|| args.files[0].with_extension("svg"));
    refuse_input(&out, &args.files)?;
    save(&plot.drawing(), &out, args.overwrite)?;
    print(format!("{}\n", out.display()))?;
    Ok(0)
}

/// Returns an error if the range of the horizontal axis is outside of all curves.
fn require_curves(plot: &Plot) -> Result<(), Failure> {
    let Some([low, high]) = plot.x.range else { return Ok(()) };
    let points = || plot.panels.iter().flat_map(|p| &p.curves).flat_map(|c| &c.points).map(|[x, _]| *x);
    let first = points().fold(f64::INFINITY, f64::min);
    let last = points().fold(f64::NEG_INFINITY, f64::max);
    if first > last || low <= last && first <= high {
        return Ok(());
    }
    let message = format!("{low},{high} is outside of the tables: `{}` is between {first} and {last}", plot.x.label);
    Err(input_error("--range-x", message))
}

/// Returns the name of a file in the legend: without its folder if that is unambiguous.
fn legend_name(file: &Path, all: &[PathBuf]) -> String {
    let twins = all.iter().filter(|f| f.file_name() == file.file_name()).count();
    match file.file_name() {
        Some(name) if twins == 1 => name.to_string_lossy().into_owned(),
        _ => file.display().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> (String, Series) {
        ("t.csv".into(), Series::parse("t.csv".as_ref(), text).expect("a table"))
    }

    #[test]
    fn default_columns_fit_the_table() {
        let t = table("step,time,kT,pressure,potential\n0,0,1,2,3\n1,0.1,1,2,3\n");
        let p = plot(&[t], &PlotSelection::default()).expect("a plot");
        assert_eq!((p.x.label.as_str(), p.panels.len()), ("time", 3));
        let t = table("r,A-A,A-B,B-B\n0.1,0,0,0\n0.2,1,1,1\n");
        let p = plot(&[t], &PlotSelection::default()).expect("a plot");
        assert_eq!((p.x.label.as_str(), p.panels[0].curves.len()), ("r", 3));
        let t = table("lag,time,C1,C2,origins\n0,0,1,1,9\n1,2,0.5,0.3,8\n");
        let p = plot(&[t], &PlotSelection::default()).expect("a plot");
        assert_eq!((p.x.label.as_str(), p.panels[0].y.label.as_str()), ("time", "C1, C2"));
        let t = table("n,z (1),z_error\n1,2,0.1\n2,3,0.2\n");
        let p = plot(&[t], &PlotSelection { errors: true, ..PlotSelection::default() }).expect("a plot");
        assert_eq!((p.panels[0].curves.len(), &p.panels[0].curves[0].errors[..]), (1, [0.1, 0.2].as_slice()));
        assert_eq!(p.panels[0].y.label, "z (1)");
    }

    #[test]
    fn ranges_outside_of_the_tables_are_refused() {
        let t = table("time,kT\n0,1\n10,1\n");
        let mut p = plot(&[t], &PlotSelection::default()).expect("a plot");
        for (range, valid) in [([20.0, 30.0], false), ([2.0, 8.0], true), ([-5.0, 0.0], true), ([0.0, 30.0], true)] {
            p.x.range = Some(range);
            assert_eq!(require_curves(&p).is_ok(), valid, "{range:?}");
        }
    }

    #[test]
    fn legend_names_are_unambiguous() {
        let files: Vec<PathBuf> = ["a/t.csv", "b/t.csv", "b/u.csv"].map(PathBuf::from).into();
        assert_eq!(files.iter().map(|f| legend_name(f, &files)).collect::<Vec<_>>(), ["a/t.csv", "b/t.csv", "u.csv"]);
    }
}
