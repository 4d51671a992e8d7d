//! The parts of the report that come from output files: images, plots, averages, list of files.

use super::record::bytes;
use crate::output::page::base64;
use crate::output::series::{self, Series, is_parquet};
use crate::plot::{PlotSelection, plot};
use crate::render::{all_threads, read_state};
use crate::stats::{Skip, Statistics, of_series, significant};
use galamost_engine::pipeline::{Entry, Pipeline};
use galamost_engine::plugins::Registry;
use galamost_pictures::{Theme, View, escape};
use galamost_plugin_api::component::Kind;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Output files of one component.
pub struct Output {
    /// Name of the component.
    component: String,
    /// Files in order of their names; step numbers have leading zeros.
    files: Vec<PathBuf>,
}

/// Largest size in bytes of an image that is embedded.
const LARGEST_IMAGE: u64 = 3_000_000;
/// Largest size in bytes of a table that is plotted.
const LARGEST_TABLE: u64 = 300_000_000;

/// Returns the quoted strings of an entry.
fn strings(entry: &Entry) -> Vec<String> {
    entry.text.split('"').skip(1).step_by(2).map(String::from).collect()
}

/// Finds the output files that the components of a pipeline name.
pub fn find(pipeline: &Pipeline) -> Vec<Output> {
    let folder = pipeline.directory();
    let stages = pipeline.stages.iter();
    let own = stages.flat_map(|s| s.analyzers.iter().chain(&s.updaters).flatten());
    let lists = pipeline.analyzers.iter().chain(&pipeline.updaters).chain(&pipeline.forces).chain(&pipeline.ensemble);
    let mut out: Vec<Output> = vec![];
    for entry in lists.chain(own) {
        let mut files: Vec<PathBuf> = strings(entry).iter().flat_map(|text| matching(&folder, text)).collect();
        files.sort();
        files.dedup();
        files.retain(|f| !out.iter().any(|o| o.files.contains(f)));
        if !files.is_empty() {
            out.push(Output { component: entry.name.clone(), files });
        }
    }
    out
}

/// Returns the existing files of a name, in which `{step}` stands for a number.
fn matching(folder: &Path, name: &str) -> Vec<PathBuf> {
    let Some((before, after)) = name.split_once("{step}") else {
        let path = folder.join(name);
        let exists = !name.is_empty() && (path.is_file() || (path.is_dir() && is_parquet(&path)));
        return if exists { vec![path] } else { vec![] };
    };
    let path = folder.join(before);
    let parent = if before.is_empty() || before.ends_with('/') { Some(path.as_path()) } else { path.parent() };
    let start = before.rsplit('/').next().unwrap_or_default();
    let entries = parent.and_then(|p| std::fs::read_dir(p).ok()).into_iter().flatten().filter_map(Result::ok);
    let matches = |name: &str| {
        let step = name.strip_prefix(start).and_then(|n| n.strip_suffix(after));
        step.is_some_and(|s| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit()))
    };
    entries.filter(|e| matches(&e.file_name().to_string_lossy())).map(|e| e.path()).collect()
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|e| e == extension)
}

fn is_table(path: &Path) -> bool {
    has_extension(path, "csv") || is_parquet(path)
}

/// Returns the name of a file as HTML.
fn name(path: &Path) -> String {
    escape(&path.file_name().unwrap_or_default().to_string_lossy())
}

/// Returns an embedded PNG with its caption.
fn figure(png: &[u8], caption: &str) -> String {
    let alt = caption.split(':').next().unwrap_or_default();
    format!(
        "<figure><img alt=\"{alt}\" src=\"data:image/png;base64,{}\"><figcaption>{caption}</figcaption></figure>\n",
        base64(png)
    )
}

/// Renders a frame of a file. Returns its step and the PNG.
fn render(path: &Path, frame: Option<i64>, registry: &Registry) -> Result<(u64, Vec<u8>), String> {
    let s = read_state(path, frame, registry).map_err(|e| e.render())?;
    let view = View { size: [900, 720], ..View::default() };
    Ok((s.step, view.picture(&s, &all_threads)?.png()?))
}

/// Returns renderings of the first and the last frame, and images that the run wrote.
pub fn pictures(pipeline: &Pipeline, outputs: &[Output], registry: &Registry) -> String {
    let mut figures: Vec<(u64, String)> = vec![];
    let draw = |figures: &mut Vec<(u64, String)>, path: &Path, frame: Option<i64>| match render(path, frame, registry) {
        Ok((step, png)) => figures.push((step, figure(&png, &format!("{}: step {step}", name(path))))),
        Err(e) => tracing::warn!("{}: cannot be rendered: {}", path.display(), e.trim_end()),
    };
    let has_particles =
        |o: &&Output| o.files.iter().any(|f| crate::files::component_for(f, Kind::Generator, registry).is_ok());
    // all particle files show the same system: one is enough
    if let Some(o) = outputs.iter().find(has_particles) {
        match &o.files[..] {
            [one] => {
                draw(&mut figures, one, Some(0));
                draw(&mut figures, one, None);
            }
            [first, .., last] => {
                draw(&mut figures, first, None);
                draw(&mut figures, last, None);
            }
            [] => {}
        }
    }
    let images: Vec<&PathBuf> = outputs.iter().flat_map(|o| &o.files).filter(|f| has_extension(f, "png")).collect();
    if figures.is_empty() && images.is_empty() && pipeline.ensemble.is_empty() {
        draw(&mut figures, &pipeline.path, None);
    }
    figures.dedup_by(|a, b| a.0 == b.0);
    let mut figures: Vec<String> = figures.into_iter().map(|f| f.1).collect();
    let ends: Vec<&PathBuf> = match &images[..] {
        [first, .., last] => vec![first, last],
        few => few.to_vec(),
    };
    for path in ends {
        if path.metadata().is_ok_and(|m| m.len() <= LARGEST_IMAGE)
            && let Ok(png) = std::fs::read(path)
            && png.starts_with(b"\x89PNG")
        {
            figures.push(figure(&png, &name(path)));
        }
    }
    if figures.is_empty() {
        String::new()
    } else {
        format!("<h2>Particles</h2>\n<div class=\"pair\">{}</div>\n", figures.concat())
    }
}

/// Returns a table of time averages.
fn averages(list: &[Statistics]) -> String {
    let mut out = "<div class=\"scroll\"><table><tr><th>average</th><th>mean ± standard error</th><th>95 %</th><th>deviation</th>\
                   <th>independent values</th><th class=\"wrap\"></th></tr>\n"
        .to_string();
    for s in list.iter().filter(|s| !s.constant) {
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td>{}</td><td>± {}</td><td>{}</td><td>{:.0}</td><td class=\"wrap soft\">{}</td></tr>",
            escape(&s.label()),
            s.rounded().replace('-', "−"),
            significant(s.error.interval(), 2),
            significant(s.deviation, 3),
            s.rows as f64 / s.inefficiency,
            s.remarks().join("; ")
        );
    }
    out += "</table></div>\n";
    if let Some(s) = list.first() {
        let _ = writeln!(
            out,
            "<p class=\"soft small\">Averages of {} rows. The first {} rows are skipped as equilibration. Standard errors \
             include correlations in time.</p>",
            s.rows, s.skipped
        );
    }
    out
}

/// Returns a plot of every table, with time averages for thermodynamic tables.
pub fn observables(outputs: &[Output]) -> String {
    let (mut thermo, mut others) = (String::new(), String::new());
    for (o, path) in outputs.iter().flat_map(|o| o.files.iter().map(move |f| (o, f))).filter(|(_, f)| is_table(f)) {
        // one file per step: the last one is enough
        if o.files.iter().filter(|f| is_table(f)).count() > 4 && o.files.last() != Some(path) {
            continue;
        }
        if series::size_on_disk(path).is_ok_and(|n| n > LARGEST_TABLE) {
            tracing::warn!("{}: too large to be plotted", path.display());
            continue;
        }
        let section = observable(&o.component, path);
        if section.is_thermo { thermo += &section.html } else { others += &section.html }
    }
    let mut out = String::new();
    if !thermo.is_empty() {
        let _ = write!(out, "<h2>Energy, temperature, pressure</h2>\n{thermo}");
    }
    if !others.is_empty() {
        let _ = write!(out, "<h2>Observables</h2>\n<div class=\"pair\">{others}</div>\n");
    }
    out
}

/// The plot of a table.
struct Observable {
    html: String,
    is_thermo: bool,
}

/// Returns the plot of a table, or an error message.
fn observable(component: &str, path: &Path) -> Observable {
    let mut series = match Series::read(path) {
        Ok(s) => s,
        Err(e) => {
            let text = e.render();
            let line = escape(text.lines().next().unwrap_or_default());
            return Observable { html: format!("<p class=\"warn\">{line}</p>\n"), is_thermo: false };
        }
    };
    let step = series.at_step(None).ok().flatten();
    let is_thermo = series.find("kT").is_some() && series.find("potential").is_some();
    let caption = match step {
        Some(step) => format!("{} ({}), step {step}", name(path), escape(component)),
        None => format!("{} ({})", name(path), escape(component)),
    };
    let rows = series.rows();
    let is_time_series =
        step.is_none() && rows >= 8 && series.columns.iter().any(|c| c.name == "step") && series.find("lag").is_none();
    let list = if is_time_series { of_series(&series, &[], Skip::Auto).unwrap_or_default() } else { vec![] };
    match plot(&[(String::new(), series)], &PlotSelection::default()) {
        Ok(plot) if rows > 0 => {
            let svg = plot.drawing().svg(Theme::Page);
            let mut html = format!("<figure>{svg}<figcaption>{caption}</figcaption></figure>\n");
            if is_thermo {
                let _ = writeln!(html, "{}", averages(&main_columns(list)));
            }
            Observable { html, is_thermo }
        }
        _ => {
            let html = format!("<p class=\"soft\">{caption}: {rows} rows, nothing to plot</p>\n");
            Observable { html, is_thermo: false }
        }
    }
}

/// Removes the less important columns of a thermodynamic table.
fn main_columns(mut list: Vec<Statistics>) -> Vec<Statistics> {
    let removed = ["momentum_", "length_", "pressure_xy", "pressure_xz", "pressure_yz"];
    list.retain(|s| !removed.iter().any(|b| s.name.starts_with(b)));
    list
}

/// Returns a table of all output files.
pub fn files(pipeline: &Pipeline, outputs: &[Output]) -> String {
    if outputs.is_empty() {
        return String::new();
    }
    let folder = pipeline.directory();
    let mut out =
        "<h2>Files</h2>\n<div class=\"scroll\"><table class=\"left\"><tr><th>file</th><th>component</th><th>size</th></tr>\n"
            .to_string();
    for o in outputs {
        let size: u64 = o.files.iter().filter_map(|f| series::size_on_disk(f).ok()).sum();
        let shown = |p: &Path| escape(&p.strip_prefix(&folder).unwrap_or(p).to_string_lossy());
        let what = match &o.files[..] {
            [first, _, .., last] if o.files.len() > 3 => {
                format!("{} … {}, {} files", shown(first), shown(last), o.files.len())
            }
            few => few.iter().map(|f| shown(f)).collect::<Vec<_>>().join(", "),
        };
        let _ = writeln!(
            out,
            "<tr><td class=\"wrap\">{what}</td><td>{}</td><td>{}</td></tr>",
            escape(&o.component),
            bytes(size)
        );
    }
    out + "</table></div>\n"
}
