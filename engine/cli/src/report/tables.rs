//! Plots and averages of the tables that a run wrote.

use super::describe::Description;
use super::outputs::{Output, is_table, name};
use crate::output::numbers::significant;
use crate::output::series::{self, Series};
use crate::plot::{PlotSelection, default_x, default_y, plot};
use crate::stats::{Skip, Statistics, is_constant, of_series};
use galamost_engine::diagnostic::counted;
use galamost_engine::plugins::Registry;
use galamost_pictures::{Plot, Theme, escape};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Largest size in bytes of a table that is plotted.
const LARGEST_TABLE: u64 = 300_000_000;
/// Ratio of magnitudes up to which columns of the same unit share an axis.
const SAME_SCALE: f64 = 30.0;

/// Returns a plot in two widths, of which the page shows the one that fits the screen.
pub fn figure(plot: &Plot, caption: &str) -> String {
    let wide = Plot { width: 1130.0, height: plot.height.min(300.0), ..plot.clone() };
    let narrow = Plot { width: 400.0, height: plot.height.min(200.0), ..plot.clone() };
    format!(
        "<figure><div class=\"wide\">{}</div><div class=\"narrow\">{}</div><figcaption>{caption}</figcaption></figure>\n",
        wide.drawing().svg(Theme::Page),
        narrow.drawing().svg(Theme::Page)
    )
}

/// Returns a mean with its error as HTML.
pub fn rounded(s: &Statistics) -> String {
    let text = s.rounded().replace('-', "−");
    match text.rsplit_once('e') {
        Some((mantissa, power)) => format!("{mantissa}·10<sup>{power}</sup>"),
        None => text,
    }
}

/// Returns the symbol and the unit of a column as HTML.
fn quantity(s: &Statistics, description: &Description) -> String {
    let unit = s.unit.clone().or_else(|| description.unit(&s.name));
    let unit = unit.map_or(String::new(), |u| format!(" <span class=\"soft\">{}</span>", escape(&u)));
    format!("{}{unit}", escape(&description.typeset(&s.name)))
}

/// Returns a table of time averages.
fn averages(list: &[Statistics], description: &Description) -> String {
    let mut out = "<div class=\"scroll\"><table><tr><th>average</th><th>mean ± standard error</th><th>95 %</th><th>deviation</th>\
                   <th>independent values</th><th class=\"wrap\"></th></tr>\n"
        .to_string();
    for s in list.iter().filter(|s| !s.constant) {
        let _ = writeln!(
            out,
            "<tr><td title=\"{}\">{}</td><td>{}</td><td>± {}</td><td>{}</td><td>{:.0}</td><td class=\"wrap soft\">{}</td></tr>",
            escape(description.meaning(&s.name).unwrap_or_default()),
            quantity(s, description),
            rounded(s),
            significant(s.error.interval(), 2),
            significant(s.deviation, 3),
            s.independent(),
            s.remarks().join("; ")
        );
    }
    out += "</table></div>\n";
    if let Some(s) = list.first() {
        let _ = writeln!(
            out,
            "<p class=\"soft small\">Averages of {}.{} Standard errors include correlations in time.</p>",
            counted(s.rows as u64, "row"),
            match s.skipped {
                0 => String::new(),
                1 => " The first row is skipped as equilibration.".into(),
                n => format!(" The first {n} rows are skipped as equilibration."),
            }
        );
    }
    out
}

/// Returns the tables of a run, with the component that wrote each. Of a series of tables, one for each step, the last.
pub fn tables(outputs: &[Output]) -> Vec<(&Output, &PathBuf)> {
    let mut found = vec![];
    for o in outputs {
        let own: Vec<&PathBuf> = o.files.iter().filter(|f| is_table(f)).collect();
        let several = own.len() > 4;
        found.extend(own.into_iter().filter(|f| !several || o.files.last() == Some(f)).map(|f| (o, f)));
    }
    found
}

/// Returns a plot of every table, with time averages for thermodynamic tables.
pub fn observables(outputs: &[Output], registry: &Registry) -> String {
    let (mut thermo, mut others) = (String::new(), String::new());
    for (o, path) in tables(outputs) {
        if series::size_on_disk(path).is_ok_and(|n| n > LARGEST_TABLE) {
            tracing::warn!("{}: too large to be plotted", path.display());
            continue;
        }
        let section = observable(&o.component, path, registry);
        if section.is_thermo { thermo += &section.html } else { others += &section.html }
    }
    let mut out = String::new();
    if !thermo.is_empty() {
        let _ = write!(out, "<h2>Energy, temperature, pressure</h2>\n{thermo}");
    }
    if !others.is_empty() {
        let _ = write!(out, "<h2>Observables</h2>\n{others}\n");
    }
    out
}

/// The plot of a table.
struct Observable {
    html: String,
    is_thermo: bool,
}

/// Returns whether a table has temperature and energy over time.
pub fn is_thermo(series: &Series) -> bool {
    series.find("kT").is_some() && series.find("potential").is_some()
}

/// Returns the averages of a time series; none of a profile or of correlation functions.
pub fn time_averages(series: &Series) -> Vec<Statistics> {
    let has_step = series.columns.iter().any(|c| c.name == "step");
    let is_time_series = series.rows() >= 8 && has_step && series.find("lag").is_none();
    if is_time_series { of_series(series, &[], Skip::Auto).unwrap_or_default() } else { vec![] }
}

/// Returns the plot of a table, or an error message.
fn observable(component: &str, path: &Path, registry: &Registry) -> Observable {
    let mut series = match Series::read(path) {
        Ok(s) => s,
        Err(e) => {
            let text = e.render();
            let line = escape(text.lines().next().unwrap_or_default());
            return Observable { html: format!("<p class=\"warn\">{line}</p>\n"), is_thermo: false };
        }
    };
    let description = Description::of(component, registry);
    let step = series.at_step(None).ok().flatten();
    let (is_thermo, rows) = (is_thermo(&series), series.rows());
    let list = if step.is_none() { time_averages(&series) } else { vec![] };
    let title = match step {
        Some(step) => format!("{} ({}), step {step}", name(path), escape(component)),
        None => format!("{} ({})", name(path), escape(component)),
    };
    match labeled_plot(&[(String::new(), series)], &description) {
        Some((mut plot, meanings)) if rows > 0 => {
            let cut = list.first().is_some_and(|s| leave_out_transient(&mut plot, s.skipped));
            let note = if cut { ". Axes show the equilibrated part" } else { "" };
            let caption = format!("{title}: {}{}{note}.", escape(&description.summary), escape(&meanings));
            let mut html = figure(&plot, &caption);
            if is_thermo {
                let _ = writeln!(html, "{}", averages(&main_columns(list), &description));
            }
            Observable { html, is_thermo }
        }
        _ => Observable {
            html: format!("<p class=\"soft\">{title}: {}, nothing to plot</p>\n", counted(rows as u64, "row")),
            is_thermo: false,
        },
    }
}

/// Restricts the vertical axes to the rows from `skipped` on where a transient would hide them. Returns whether it did.
fn leave_out_transient(plot: &mut Plot, skipped: usize) -> bool {
    let extent = |points: &[[f64; 2]]| {
        let values = points.iter().map(|p| p[1]).filter(|v| v.is_finite());
        values.fold([f64::INFINITY, f64::NEG_INFINITY], |[l, h], v| [l.min(v), h.max(v)])
    };
    let mut cut = false;
    for panel in &mut plot.panels {
        let [curve] = &panel.curves[..] else { continue };
        let ([low, high], all) = (extent(curve.points.get(skipped..).unwrap_or_default()), extent(&curve.points));
        if high > low && all[1] - all[0] > 4.0 * (high - low) {
            let room = 0.5 * (high - low);
            panel.y.range = Some([low - room, high + room]);
            cut = true;
        }
    }
    cut
}

/// Returns the plot of tables with a panel for each unit and scale of the first one, and the meaning of its columns.
pub fn labeled_plot(tables: &[(String, Series)], description: &Description) -> Option<(Plot, String)> {
    let series = &tables.first()?.1;
    let x = default_x(series)?.name.clone();
    let names: Vec<Vec<String>> = default_y(series, &x);
    let mut groups: Vec<Vec<String>> = vec![];
    for name in names.iter().flatten() {
        let varies = |n: &str| series.find(n).and_then(|c| c.numbers()).is_some_and(|v| !is_constant(v));
        if names.len() == 1 && names[0].len() > 1 && !varies(name) {
            continue;
        }
        let fits = |g: &&mut Vec<String>| names.len() == 1 && share_axis(series, description, &g[0], name);
        match groups.iter_mut().find(fits) {
            Some(group) => group.push(name.clone()),
            None => groups.push(vec![name.clone()]),
        }
    }
    let meanings = meanings(description, groups.iter().flatten());
    let selection = PlotSelection { x: Some(x), y: groups.clone(), ..PlotSelection::default() };
    let mut plot = plot(tables, &selection).ok()?;
    for (panel, names) in plot.panels.iter_mut().zip(&groups) {
        if tables.len() == 1 {
            panel.curves.iter_mut().zip(names).for_each(|(c, n)| c.name = description.typeset(n));
        }
        // columns that the page does not list, such as A-A of g(r), are values of the function that it measures
        let symbol = description.symbol().filter(|_| description.meaning(&names[0]).is_none());
        match (symbol, description.unit(&names[0])) {
            (Some(symbol), _) if names.len() == 1 => panel.y.label = format!("{symbol}, {}", names[0]),
            (Some(symbol), _) => panel.y.label = symbol.to_string(),
            // the legend has the names
            (None, Some(unit)) if names.len() > 1 => panel.y.label = unit,
            (None, Some(unit)) if !panel.y.label.ends_with(')') => {
                panel.y.label = format!("{} ({unit})", description.typeset(&names[0]));
            }
            (None, None) if panel.y.label.chars().count() > 24 => panel.y.label.clear(),
            (None, None) if panel.y.label == names[0] => panel.y.label = description.typeset(&names[0]),
            _ => {}
        }
    }
    Some((plot, meanings))
}

/// Returns whether two columns have the same unit and similar magnitudes.
fn share_axis(series: &Series, description: &Description, a: &str, b: &str) -> bool {
    let unit = |n: &str| series.find(n).and_then(|c| c.unit.clone()).or_else(|| description.unit(n));
    let largest = |n: &str| {
        let values = series.find(n).and_then(|c| c.numbers()).unwrap_or_default();
        values.iter().filter(|v| v.is_finite()).fold(0.0, |m: f64, v| m.max(v.abs()))
    };
    let ratio = largest(a).max(1e-300) / largest(b).max(1e-300);
    unit(a) == unit(b) && (1.0 / SAME_SCALE..=SAME_SCALE).contains(&ratio)
}

/// Returns the meaning of columns as text, each meaning once.
fn meanings<'a>(description: &Description, names: impl Iterator<Item = &'a String>) -> String {
    let mut said: Vec<&str> = vec![];
    let mut out = String::new();
    for name in names {
        if let Some(m) = description.meaning(name).filter(|m| !said.contains(m)) {
            let _ = write!(out, "{} {}: {m}", if said.is_empty() { "." } else { ";" }, description.typeset(name));
            said.push(m);
        }
    }
    out
}

/// Removes the less important columns of a thermodynamic table.
pub fn main_columns(mut list: Vec<Statistics>) -> Vec<Statistics> {
    let removed = ["momentum_", "length_", "pressure_xy", "pressure_xz", "pressure_yz"];
    list.retain(|s| !removed.iter().any(|b| s.name.starts_with(b)));
    list
}
