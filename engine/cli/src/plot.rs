//! `galamost plot`: pictures of tables.

use crate::output::series::{Column, Series};
use clap::Args;
use galamost_engine::diagnostic::{Diagnostic, Failure};
use galamost_pictures::{Axis, Curve, Drawing, Panel, Plot, Style, Theme};
use std::path::{Path, PathBuf};

/// Options of the command.
#[derive(Args, Debug)]
pub struct PlotArgs {
    /// Tables, CSV or Parquet, drawn over one another.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// The column along the horizontal axis; by default `time`, `step` or the first one.
    #[arg(long, value_name = "COLUMN")]
    x: Option<String>,
    /// Columns along the vertical axis, separated by commas; given again, for one more field below.
    #[arg(long, value_name = "COLUMNS")]
    y: Vec<String>,
    /// The picture, .svg or .png; by default named as the first file, with .svg.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// A logarithmic horizontal axis.
    #[arg(long)]
    log_x: bool,
    /// Logarithmic vertical axes.
    #[arg(long)]
    log_y: bool,
    /// Ends of the horizontal axis.
    #[arg(long, value_name = "LOW,HIGH", value_delimiter = ',', allow_hyphen_values = true)]
    range_x: Option<Vec<f64>>,
    /// Ends of the vertical axes.
    #[arg(long, value_name = "LOW,HIGH", value_delimiter = ',', allow_hyphen_values = true)]
    range_y: Option<Vec<f64>>,
    /// Stands above the plot.
    #[arg(long)]
    title: Option<String>,
    /// Bars of the standard errors: of a column NAME those in NAME_error or error_NAME.
    #[arg(long)]
    errors: bool,
    /// Dots beside the lines.
    #[arg(long)]
    points: bool,
    /// Of a table with several rows for each step: this step; by default the last one.
    #[arg(long, value_name = "STEP")]
    at: Option<f64>,
}

/// Names of columns that say when, not what.
const WHEN: [&str; 4] = ["time", "step", "batch", "lag"];
/// Curves in one field that nobody asked for.
const MOST: usize = 8;

/// Whether a column has the errors of another one, or counts samples.
fn is_beside(s: &Series, c: &Column) -> bool {
    let n = c.name.as_str();
    let errors = s.columns.iter().any(|o| names_of_errors(&o.name).iter().any(|e| e == n));
    errors || matches!(n, "origins" | "pairs" | "samples" | "count" | "counts" | "blocks" | "error")
}

fn names_of_errors(name: &str) -> [String; 4] {
    [format!("{name}_error"), format!("error_{name}"), format!("{name}_err"), format!("{name}_se")]
}

fn errors_of<'a>(s: &'a Series, name: &str) -> Option<&'a [f64]> {
    names_of_errors(name).iter().find_map(|n| s.find(n)).or_else(|| s.find("error")).and_then(Column::numbers)
}

/// The column along the horizontal axis, if nothing is said.
pub fn usual_x(s: &Series) -> Option<&Column> {
    let numbers = |c: &&Column| c.numbers().is_some();
    let profile = s.columns.get(1).filter(|_| s.columns[0].name == "step" && one_value(&s.columns[0])).filter(numbers);
    let time = s.columns.iter().filter(numbers).find(|c| c.name == "time" && !one_value(c));
    profile.or(time).or_else(|| s.columns.iter().find(numbers))
}

/// Several rows, all with the same value.
fn one_value(c: &Column) -> bool {
    c.numbers().is_some_and(|v| v.len() > 1 && v.iter().all(|x| *x == v[0]))
}

/// Columns along the vertical axis, field by field, if nothing is said: temperature, pressure and energy of a run have a
/// field each, for their scales differ; other tables have one field.
pub fn usual_y(s: &Series, x: &str) -> Vec<Vec<String>> {
    let has = |n: &str| s.find(n).is_some_and(|c| c.numbers().is_some_and(|v| v.iter().any(|x| x.is_finite())));
    if has("kT") && has("pressure") || has("kT") && has("potential") {
        return ["kT", "pressure", "potential"].iter().filter(|n| has(n)).map(|n| vec![n.to_string()]).collect();
    }
    let good = |c: &&Column| has(&c.name) && c.name != x && !WHEN.contains(&c.name.as_str()) && !is_beside(s, c);
    let names: Vec<String> = s.columns.iter().filter(good).take(MOST).map(|c| c.name.clone()).collect();
    if names.is_empty() { vec![] } else { vec![names] }
}

/// What a plot shows.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// The horizontal column.
    pub x: Option<String>,
    /// The vertical columns of each field.
    pub y: Vec<Vec<String>>,
    /// Bars of errors.
    pub errors: bool,
    /// Dots beside lines.
    pub points: bool,
}

/// A plot of tables over one another.
///
/// # Errors
/// A column that there is not.
pub fn plot(tables: &[(String, Series)], wanted: &Wanted) -> Result<Plot, Failure> {
    let Some((_, first)) = tables.first() else { return Ok(Plot::default()) };
    let fail = |s: &Series, m: &str| Failure::Input(vec![Diagnostic::new(&s.path, None, m)]);
    let x = match &wanted.x {
        Some(name) => first.wanted(name)?,
        None => usual_x(first).ok_or_else(|| fail(first, "has no column of numbers"))?,
    };
    let y = if wanted.y.is_empty() { usual_y(first, &x.name) } else { wanted.y.clone() };
    if y.is_empty() {
        return Err(fail(first, "has no columns to draw beside the one along the axis: give --y"));
    }
    let mut panels = vec![];
    for names in &y {
        let mut curves = vec![];
        for (file, s) in tables {
            let along = s.wanted(&x.name)?.numbers().unwrap_or_default();
            for name in names {
                let column = s.wanted(name)?;
                let values = column.numbers().unwrap_or_default();
                let points: Vec<[f64; 2]> = along.iter().zip(values).map(|(x, y)| [*x, *y]).collect();
                let errors = match errors_of(s, &column.name).filter(|_| wanted.errors) {
                    Some(e) => e.to_vec(),
                    None if wanted.errors && tables.len() == 1 && names.len() == 1 => {
                        let e = names_of_errors(name);
                        return Err(fail(
                            s,
                            &format!("there are no errors of `{name}`: no column `{}` or `{}`", e[0], e[1]),
                        ));
                    }
                    None => vec![],
                };
                let name = match (tables.len(), names.len()) {
                    (1, _) => column.label(),
                    (_, 1) => file.clone(),
                    _ => format!("{file}: {}", column.name),
                };
                let style = if wanted.points { Style::Both } else { Style::Line };
                curves.push(Curve { name, points, errors, style });
            }
        }
        let label = match &names[..] {
            [one] => first.wanted(one)?.label(),
            many => common_label(first, many),
        };
        panels.push(Panel { y: Axis::new(label), curves });
    }
    let height = [400.0, 230.0, 190.0][panels.len().min(3) - 1];
    Ok(Plot { x: Axis::new(x.label()), panels, height, ..Plot::default() })
}

/// A label for several columns: what their names begin with, and their unit.
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
        // g(r) by pairs of types has nothing else to be called
        _ if s.columns[0].name == "r" && names.iter().all(|n| n.contains('-')) && names.len() > 1 => String::new(),
        _ => listed(),
    };
    format!("{text}{unit}").trim().to_string()
}

/// Writes a drawing as its name's ending says.
///
/// # Errors
/// Another ending; the file cannot be written.
pub fn save(drawing: &Drawing, out: &Path) -> Result<(), Failure> {
    let bytes = match out.extension().and_then(|e| e.to_str()) {
        Some("svg") => drawing.svg(Theme::Paper).into_bytes(),
        Some("png") => drawing.image(2.0).and_then(|i| i.png()).map_err(Failure::run)?,
        _ => {
            return Err(Failure::Input(vec![Diagnostic::new(
                out,
                None,
                "pictures are SVG or PNG: the name must end in .svg or .png",
            )]));
        }
    };
    std::fs::write(out, bytes).map_err(|e| Failure::run(format!("{}: {e}", out.display())))
}

/// Runs the command.
///
/// # Errors
/// What is wrong with a file, with its line and column.
pub(crate) fn run(args: &PlotArgs) -> Result<u8, Failure> {
    let mut tables = vec![];
    let mut step = None;
    for file in &args.files {
        let mut s = Series::read(file)?;
        if s.cut {
            tracing::warn!("{}: the last line is not whole and was left out", file.display());
        }
        let cut = |s: &mut Series| if args.x.is_none() { s.at_step(args.at) } else { Ok(None) };
        step = cut(&mut s)?.or(step);
        tables.push((name_of(file, &args.files), s));
    }
    let fields = |y: &String| y.split(',').map(|n| n.trim().to_string()).collect();
    let wanted =
        Wanted { x: args.x.clone(), y: args.y.iter().map(fields).collect(), errors: args.errors, points: args.points };
    let mut plot = plot(&tables, &wanted)?;
    let ends = |name: &str, range: &Option<Vec<f64>>, log: bool| match range.as_deref() {
        None => Ok(None),
        Some([low, high]) if low < high && low.is_finite() && high.is_finite() && !(log && *low <= 0.0) => {
            Ok(Some([*low, *high]))
        }
        Some(_) => {
            let m = "wanted two numbers, LOW,HIGH, above 0 on a logarithmic axis";
            Err(Failure::Input(vec![Diagnostic::new(name.as_ref(), None, m)]))
        }
    };
    plot.x.log = args.log_x;
    plot.x.range = ends("--range-x", &args.range_x, args.log_x)?;
    for panel in &mut plot.panels {
        panel.y.log = args.log_y;
        panel.y.range = ends("--range-y", &args.range_y, args.log_y)?;
    }
    plot.title = match (&args.title, step) {
        (Some(t), _) => t.clone(),
        (None, Some(step)) => format!("step {step}"),
        _ => String::new(),
    };
    let out = args.out.clone().unwrap_or_else(|| args.files[0].with_extension("svg"));
    save(&plot.drawing(), &out)?;
    println!("{}", out.display());
    Ok(0)
}

/// A file's name in the legend: without its folder, if that tells them apart.
fn name_of(file: &Path, all: &[PathBuf]) -> String {
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
    fn the_usual_columns_are_the_ones_one_wants() {
        let t = table("step,time,kT,pressure,potential\n0,0,1,2,3\n1,0.1,1,2,3\n");
        let p = plot(&[t], &Wanted::default()).expect("a plot");
        assert_eq!((p.x.label.as_str(), p.panels.len()), ("time", 3));
        let t = table("r,A-A,A-B,B-B\n0.1,0,0,0\n0.2,1,1,1\n");
        let p = plot(&[t], &Wanted::default()).expect("a plot");
        assert_eq!((p.x.label.as_str(), p.panels[0].curves.len()), ("r", 3));
        let t = table("lag,time,C1,C2,origins\n0,0,1,1,9\n1,2,0.5,0.3,8\n");
        let p = plot(&[t], &Wanted::default()).expect("a plot");
        assert_eq!((p.x.label.as_str(), p.panels[0].y.label.as_str()), ("time", "C1, C2"));
        let t = table("n,z (1),z_error\n1,2,0.1\n2,3,0.2\n");
        let p = plot(&[t], &Wanted { errors: true, ..Wanted::default() }).expect("a plot");
        assert_eq!((p.panels[0].curves.len(), &p.panels[0].curves[0].errors[..]), (1, [0.1, 0.2].as_slice()));
        assert_eq!(p.panels[0].y.label, "z (1)");
    }

    #[test]
    fn files_have_names_that_differ() {
        let files: Vec<PathBuf> = ["a/t.csv", "b/t.csv", "b/u.csv"].map(PathBuf::from).into();
        assert_eq!(files.iter().map(|f| name_of(f, &files)).collect::<Vec<_>>(), ["a/t.csv", "b/t.csv", "u.csv"]);
    }
}
