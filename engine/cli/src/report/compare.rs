//! The report of several runs: what differs, averages side by side, averages against a parameter, and all curves.

use super::describe::Description;
use super::outputs::{self, Output, name};
use super::tables::{figure, is_thermo, labeled_plot, main_columns, rounded, tables, time_averages};
use crate::output::page::document;
use crate::output::parameters::{Parameter, differing};
use crate::output::series::Series;
use crate::stats::Statistics;
use galamost_engine::pipeline::Pipeline;
use galamost_engine::plugins::Registry;
use galamost_engine::run::record as run_record;
use galamost_pictures::{Axis, Curve, Panel, Plot, Style, escape};
use serde_json::Value;
use std::fmt::Write as _;

/// Least number of runs for plots against a parameter.
const LEAST_RUNS: usize = 3;
/// Largest number of columns that are plotted against a parameter.
const MOST_PANELS: usize = 4;

/// One of the runs.
struct Run {
    label: String,
    record: Option<Value>,
    outputs: Vec<Output>,
}

/// Averages of one table in all runs.
struct Averages {
    /// File name in the first run.
    table: String,
    /// Component that writes it.
    component: String,
    /// Statistics of each run; empty where the table is missing.
    of: Vec<Vec<Statistics>>,
    is_thermo: bool,
}

/// Returns the report of several runs as HTML.
pub fn page(pipelines: &[Pipeline], registry: &Registry) -> String {
    let mut foreign = String::new();
    let of = |p: &Pipeline| {
        let mut outputs = outputs::find(p);
        foreign += &outputs::remove_foreign(p, &mut outputs);
        Run { label: label(p, pipelines), record: run_record::read(&p.path).and_then(|mut r| r.pop()), outputs }
    };
    let runs: Vec<Run> = pipelines.iter().map(of).collect();
    let records: Vec<Option<Value>> = runs.iter().map(|r| r.record.clone()).collect();
    let parameters = differing(&records);
    let title = format!("{} runs", runs.len());
    let mut body = format!("<header><h1>{title}</h1></header>\n{foreign}");
    body += &overview(&runs, &parameters);
    let averages = all_averages(&runs);
    for a in &averages {
        body += &against_parameters(a, &runs, &parameters, registry);
    }
    for a in &averages {
        body += &side_by_side(a, &runs, registry);
    }
    body += &overlaid(&runs, registry);
    document(&title, &body)
}

/// Returns a short name: the file, with its folder if several files have the same name.
fn label(p: &Pipeline, all: &[Pipeline]) -> String {
    let file = |p: &Pipeline| p.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    if all.iter().filter(|o| file(o) == file(p)).count() == 1 {
        return file(p);
    }
    let parent = p.path.parent().and_then(|f| f.file_name()).unwrap_or_default().to_string_lossy().into_owned();
    format!("{parent}/{}", file(p))
}

/// Returns the table of runs with their parameters and speed.
fn overview(runs: &[Run], parameters: &[Parameter]) -> String {
    let mut out = "<h2>Runs</h2>\n<div class=\"scroll\"><table><tr><th>run</th>".to_string();
    out.extend(parameters.iter().map(|p| format!("<th>{}</th>", escape(&p.name))));
    out += "<th>status</th><th>steps</th><th>steps/s</th></tr>\n";
    for (k, run) in runs.iter().enumerate() {
        let _ = write!(out, "<tr><td>{}</td>", escape(&run.label));
        out.extend(parameters.iter().map(|p| format!("<td>{}</td>", escape(&p.values[k]))));
        let field = |name: &str| run.record.as_ref().map_or(Value::Null, |r| r[name].clone());
        let status = field("status").as_str().map_or_else(|| "no record".into(), escape);
        let steps = field("total_steps").as_u64().map_or(String::new(), |n| n.to_string());
        let tps = field("tps").as_f64().map_or(String::new(), |t| format!("{t:.0}"));
        let _ = writeln!(out, "<td>{status}</td><td>{steps}</td><td>{tps}</td></tr>");
    }
    out + "</table></div>\n"
}

/// Computes the averages of all tables over time. The k-th table of a component corresponds to the k-th one of the other runs.
fn all_averages(runs: &[Run]) -> Vec<Averages> {
    let of_runs: Vec<Vec<_>> = runs.iter().map(|r| tables(&r.outputs)).collect();
    let Some(first) = of_runs.first() else { return vec![] };
    let mut out = vec![];
    for (k, (output, path)) in first.iter().enumerate() {
        let matching = |list: &Vec<(&Output, &std::path::PathBuf)>| {
            let other = list.get(k).filter(|(o, _)| o.component == output.component)?;
            Series::read(other.1).ok()
        };
        let series: Vec<Option<Series>> = of_runs.iter().map(matching).collect();
        let is_thermo = series.iter().flatten().all(is_thermo);
        let of = series.iter().map(|s| s.as_ref().map(time_averages).unwrap_or_default());
        let of: Vec<Vec<Statistics>> = of.map(main_columns).collect();
        if of.iter().any(|l| !l.is_empty()) {
            out.push(Averages { table: name(path), component: output.component.clone(), of, is_thermo });
        }
    }
    out
}

impl Averages {
    /// Returns the names of the columns that vary in any run.
    fn columns(&self) -> Vec<String> {
        let mut names: Vec<String> = vec![];
        for s in self.of.iter().flatten().filter(|s| !s.constant) {
            if !names.contains(&s.name) {
                names.push(s.name.clone());
            }
        }
        names
    }

    fn find(&self, run: usize, column: &str) -> Option<&Statistics> {
        self.of[run].iter().find(|s| s.name == column)
    }
}

/// Returns the averages of a table, a column for each run.
fn side_by_side(averages: &Averages, runs: &[Run], registry: &Registry) -> String {
    let description = Description::of(&averages.component, registry);
    let mut out = format!(
        "<h2>Averages of {}</h2>\n<div class=\"scroll\"><table><tr><th>mean ± standard error</th>",
        averages.table
    );
    out.extend(runs.iter().map(|r| format!("<th>{}</th>", escape(&r.label))));
    out += "</tr>\n";
    for column in averages.columns() {
        let unit =
            description.unit(&column).map_or(String::new(), |u| format!(" <span class=\"soft\">{}</span>", escape(&u)));
        let _ = write!(out, "<tr><td>{}{unit}</td>", escape(&description.typeset(&column)));
        for k in 0..runs.len() {
            let cell = averages.find(k, &column).map_or(String::new(), |s| {
                let late = if s.constant || s.is_equilibrated() {
                    ""
                } else {
                    " <span class=\"tag mid\" title=\"not equilibrated\">*</span>"
                };
                format!("{}{late}", rounded(s))
            });
            let _ = write!(out, "<td>{cell}</td>");
        }
        out += "</tr>\n";
    }
    let late = if out.contains("title=\"not equilibrated\"") {
        "<p class=\"soft small\">* not equilibrated</p>\n"
    } else {
        ""
    };
    out + "</table></div>\n" + late
}

/// Returns plots of the averages against each numeric parameter, if there are at least three runs.
fn against_parameters(averages: &Averages, runs: &[Run], parameters: &[Parameter], registry: &Registry) -> String {
    let description = Description::of(&averages.component, registry);
    let label = |c: &str| match description.unit(c) {
        Some(unit) => format!("{} ({unit})", description.typeset(c)),
        None => description.typeset(c),
    };
    let mut out = String::new();
    for p in parameters {
        let values: Vec<f64> = p.values.iter().map(|v| v.parse().unwrap_or(f64::NAN)).collect();
        if runs.len() < LEAST_RUNS || values.iter().any(|v| !v.is_finite()) || p.name.ends_with("seed") {
            continue;
        }
        let mut columns = averages.columns();
        if averages.is_thermo {
            columns.retain(|c| ["kT", "pressure", "potential"].contains(&c.as_str()));
        }
        columns.truncate(MOST_PANELS);
        let panels =
            columns.iter().map(|c| Panel { y: Axis::new(label(c)), curves: vec![sweep(averages, c, &values)] });
        let plot = Plot { x: Axis::new(p.name.clone()), panels: panels.collect(), height: 200.0, ..Plot::default() };
        let caption = format!(
            "Averages of {} against {}. Bars are standard errors. The numbers are in the table below.",
            averages.table,
            escape(&p.name)
        );
        out += &format!("<h2>{} against {}</h2>\n{}", averages.table, escape(&p.name), figure(&plot, &caption));
    }
    out
}

/// Returns the averages of a column as points with errors, in the order of the parameter.
fn sweep(averages: &Averages, column: &str, values: &[f64]) -> Curve {
    let mut points: Vec<([f64; 2], f64)> = values
        .iter()
        .enumerate()
        .filter_map(|(k, v)| averages.find(k, column).map(|s| ([*v, s.mean], s.error.error)))
        .collect();
    points.sort_by(|a, b| a.0[0].total_cmp(&b.0[0]));
    let (points, errors) = points.into_iter().unzip();
    Curve { name: column.into(), points, errors, style: Style::Both }
}

/// Returns plots of the first run's tables with the curves of all runs.
fn overlaid(runs: &[Run], registry: &Registry) -> String {
    let of_runs: Vec<Vec<_>> = runs.iter().map(|r| tables(&r.outputs)).collect();
    let Some(first) = of_runs.first() else { return String::new() };
    let mut out = String::new();
    for (k, (output, path)) in first.iter().enumerate() {
        let mut series = vec![];
        for (run, list) in runs.iter().zip(&of_runs) {
            let Some((_, other)) = list.get(k).filter(|(o, _)| o.component == output.component) else { continue };
            if let Ok(mut s) = Series::read(other) {
                let _ = s.at_step(None);
                series.push((run.label.clone(), s));
            }
        }
        let description = Description::of(&output.component, registry);
        if let Some((plot, meanings)) = labeled_plot(&series, &description) {
            let text = escape(&format!("{}{meanings}", description.summary));
            out += &figure(&plot, &format!("{} ({}): {text}.", name(path), escape(&output.component)));
        }
    }
    if out.is_empty() { out } else { format!("<h2>Curves of all runs</h2>\n{out}") }
}
