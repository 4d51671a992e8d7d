//! What a run wrote: files named in its pipeline.

use super::parts::bytes;
use crate::output::page::base64;
use crate::output::series::{self, Series, is_parquet};
use crate::render::{all_threads, state};
use crate::stats::{Skip, Statistics, of_series, with_error};
use galamost_engine::pipeline::{Entry, Pipeline};
use galamost_engine::plugins::Registry;
use galamost_pictures::{Theme, View, escape};
use galamost_plugin_api::component::Kind;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Files of one component.
pub struct Output {
    /// The component.
    component: String,
    /// What it wrote, in the order of names: steps have leading zeros.
    files: Vec<PathBuf>,
}

/// Largest picture that is taken into the page as it is.
const LARGEST: u64 = 3_000_000;
/// Largest table that is drawn.
const LONGEST: u64 = 300_000_000;

/// Texts between quotes in an entry.
fn texts(entry: &Entry) -> Vec<String> {
    entry.text.split('"').skip(1).step_by(2).map(String::from).collect()
}

/// Files that components of the pipeline write, as far as their entries name them.
pub fn find(pipeline: &Pipeline) -> Vec<Output> {
    let folder = pipeline.directory();
    let stages = pipeline.stages.iter();
    let own = stages.flat_map(|s| s.analyzers.iter().chain(&s.updaters).flatten());
    let lists = pipeline.analyzers.iter().chain(&pipeline.updaters).chain(&pipeline.forces).chain(&pipeline.ensemble);
    let mut out: Vec<Output> = vec![];
    for entry in lists.chain(own) {
        let mut files: Vec<PathBuf> = vec![];
        for text in texts(entry) {
            match text.split_once("{step}") {
                Some((before, after)) => {
                    let path = folder.join(before);
                    let parent =
                        if before.is_empty() || before.ends_with('/') { Some(path.as_path()) } else { path.parent() };
                    let start = before.rsplit('/').next().unwrap_or_default();
                    let entries =
                        parent.and_then(|p| std::fs::read_dir(p).ok()).into_iter().flatten().filter_map(Result::ok);
                    let fits = |name: &str| {
                        let step = name.strip_prefix(start).and_then(|n| n.strip_suffix(after));
                        step.is_some_and(|s| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit()))
                    };
                    files.extend(entries.filter(|e| fits(&e.file_name().to_string_lossy())).map(|e| e.path()));
                }
                None => {
                    let path = folder.join(&text);
                    if !text.is_empty() && (path.is_file() || (path.is_dir() && is_parquet(&path))) {
                        files.push(path);
                    }
                }
            }
        }
        files.sort();
        files.dedup();
        files.retain(|f| !out.iter().any(|o| o.files.contains(f)));
        if !files.is_empty() {
            out.push(Output { component: entry.name.clone(), files });
        }
    }
    out
}

fn has_ending(path: &Path, endings: &[&str]) -> bool {
    path.extension().and_then(|e| e.to_str()).is_some_and(|e| endings.contains(&e))
}

fn is_table(path: &Path) -> bool {
    has_ending(path, &["csv"]) || is_parquet(path)
}

fn name(path: &Path) -> String {
    escape(&path.file_name().unwrap_or_default().to_string_lossy())
}

fn figure(png: &[u8], caption: &str) -> String {
    let alt = caption.split(':').next().unwrap_or_default();
    format!(
        "<figure><img alt=\"{alt}\" src=\"data:image/png;base64,{}\"><figcaption>{caption}</figcaption></figure>\n",
        base64(png)
    )
}

/// A picture of a frame of a file.
fn drawn(path: &Path, frame: Option<i64>, registry: &Registry) -> Result<(u64, Vec<u8>), String> {
    let s = state(path, frame, registry).map_err(|e| e.render())?;
    let view = View { size: [900, 720], ..View::default() };
    Ok((s.step, view.picture(&s, &all_threads)?.png()?))
}

/// The first and the last frame of what holds particles, and pictures that the run made.
pub fn pictures(pipeline: &Pipeline, found: &[Output], registry: &Registry) -> String {
    let mut figures: Vec<(u64, String)> = vec![];
    let draw = |figures: &mut Vec<(u64, String)>, path: &Path, frame: Option<i64>| match drawn(path, frame, registry) {
        Ok((step, png)) => figures.push((step, figure(&png, &format!("{}: step {step}", name(path))))),
        Err(e) => tracing::warn!("{}: no picture: {}", path.display(), e.trim_end()),
    };
    let states =
        |o: &&Output| o.files.iter().any(|f| crate::files::component_for(f, Kind::Generator, registry).is_ok());
    // one source is enough: all show the same particles
    if let Some(o) = found.iter().find(states) {
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
    let made: Vec<&PathBuf> = found.iter().flat_map(|o| &o.files).filter(|f| has_ending(f, &["png"])).collect();
    if figures.is_empty() && made.is_empty() && pipeline.ensemble.is_empty() {
        draw(&mut figures, &pipeline.path, None);
    }
    figures.dedup_by(|a, b| a.0 == b.0);
    let mut figures: Vec<String> = figures.into_iter().map(|f| f.1).collect();
    let ends: Vec<&PathBuf> = match &made[..] {
        [first, .., last] => vec![first, last],
        few => few.to_vec(),
    };
    for path in ends {
        if path.metadata().is_ok_and(|m| m.len() <= LARGEST)
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

/// Averages of a series over time.
fn averages(list: &[Statistics]) -> String {
    let mut out = "<div class=\"scroll\"><table><tr><th>average</th><th>mean ± standard error</th><th>deviation</th><th>rows used</th>\
                   <th>rows skipped</th><th>correlated rows</th><th class=\"wrap\"></th></tr>\n"
        .to_string();
    for s in list.iter().filter(|s| s.deviation > 0.0) {
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td>{}</td><td>{:.3e}</td><td>{}</td><td>{}</td><td>{:.1}</td><td class=\"wrap soft\">{}</td></tr>",
            escape(&s.unit.as_ref().map_or(s.name.clone(), |u| format!("{} ({u})", s.name))),
            with_error(s.mean, s.error).replace('-', "−"),
            s.deviation,
            s.rows,
            s.skipped,
            s.inefficiency,
            s.remarks().join("; ")
        );
    }
    out + "</table></div>\n<p class=\"soft small\">Errors by block averages (Flyvbjerg and Petersen); rows before the equilibration that \
           leaves most independent values are skipped, column by column (Chodera).</p>\n"
}

/// Every table with a plot; of series over time also the averages.
pub fn observables(found: &[Output]) -> String {
    let (mut over_time, mut others) = (String::new(), String::new());
    for (o, path) in found.iter().flat_map(|o| o.files.iter().map(move |f| (o, f))).filter(|(_, f)| is_table(f)) {
        // a file for each step: the last one is enough
        if o.files.iter().filter(|f| is_table(f)).count() > 4 && o.files.last() != Some(path) {
            continue;
        }
        if series::bytes(path).is_ok_and(|n| n > LONGEST) {
            tracing::warn!("{}: too long to be drawn", path.display());
            continue;
        }
        let mut series = match Series::read(path) {
            Ok(s) => s,
            Err(e) => {
                let text = e.render();
                let line = escape(text.lines().next().unwrap_or_default());
                let _ = writeln!(others, "<p class=\"warn\">{line}</p>");
                continue;
            }
        };
        let step = series.at_step(None).ok().flatten();
        let is_thermo = series.find("kT").is_some() && series.find("potential").is_some();
        let caption = match step {
            Some(step) => format!("{} ({}), step {step}", name(path), escape(&o.component)),
            None => format!("{} ({})", name(path), escape(&o.component)),
        };
        let rows = series.rows();
        let in_time = step.is_none()
            && rows >= 8
            && series.columns.iter().any(|c| c.name == "step")
            && series.find("lag").is_none();
        let list = if in_time { of_series(&series, &[], Skip::Auto).unwrap_or_default() } else { vec![] };
        match crate::plot::plot(
            &[(String::new(), series)],
            &crate::plot::Wanted { errors: false, ..Default::default() },
        ) {
            Ok(plot) if rows > 0 => {
                let svg = plot.drawing().svg(Theme::Page);
                let figure = format!("<figure>{svg}<figcaption>{caption}</figcaption></figure>\n");
                if is_thermo {
                    let _ = writeln!(over_time, "{figure}{}", averages(&main_columns(list)));
                } else {
                    others += &figure;
                }
            }
            _ => {
                let _ = writeln!(others, "<p class=\"soft\">{caption}: {rows} rows, nothing to draw</p>");
            }
        }
    }
    let mut out = String::new();
    if !over_time.is_empty() {
        let _ = write!(out, "<h2>Energy, temperature, pressure</h2>\n{over_time}");
    }
    if !others.is_empty() {
        let _ = write!(out, "<h2>Observables</h2>\n<div class=\"pair\">{others}</div>\n");
    }
    out
}

/// Of the many columns of thermodynamics those that one looks for first.
fn main_columns(mut list: Vec<Statistics>) -> Vec<Statistics> {
    let beside = ["momentum_", "length_", "pressure_xy", "pressure_xz", "pressure_yz"];
    list.retain(|s| !beside.iter().any(|b| s.name.starts_with(b)));
    list
}

/// What there is, and how large it is.
pub fn files(pipeline: &Pipeline, found: &[Output]) -> String {
    if found.is_empty() {
        return String::new();
    }
    let folder = pipeline.directory();
    let mut out =
        "<h2>Files</h2>\n<div class=\"scroll\"><table class=\"left\"><tr><th>file</th><th>of</th><th>size</th></tr>\n"
            .to_string();
    for o in found {
        let size: u64 = o.files.iter().filter_map(|f| series::bytes(f).ok()).sum();
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
