//! The output files of a run: how they are found, pictures, and their list.

use super::record::bytes;
use crate::common::messages;
use crate::files::{Reader, component_for};
use crate::output::page::base64;
use crate::output::parameters::writer_of;
use crate::output::series::{self, is_parquet};
use crate::render::{all_threads, initial_state};
use galamost_engine::diagnostic::Failure;
use galamost_engine::pipeline::{Entry, Pipeline};
use galamost_engine::plugins::Registry;
use galamost_engine::run::record::path_of as record_path;
use galamost_pictures::{ColorBy, View, escape, solvent_types};
use galamost_plugin_api::component::Kind;
use galamost_plugin_api::snapshot::Snapshot;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Output files of one component.
pub struct Output {
    /// Name of the component.
    pub component: String,
    /// Files in order of their names; step numbers have leading zeros.
    pub files: Vec<PathBuf>,
}

/// Largest size in bytes of an image that is embedded.
const LARGEST_IMAGE: u64 = 3_000_000;

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

/// Removes files that another run has written since from the outputs of a run. Returns a note on them as HTML.
pub fn remove_foreign(pipeline: &Pipeline, outputs: &mut Vec<Output>) -> String {
    let (record, folder) = (record_path(&pipeline.path), pipeline.directory().canonicalize());
    let (true, Ok(folder), Some(own)) = (record.is_file(), folder, record.file_name()) else { return String::new() };
    let own = folder.join(own);
    let mut note = String::new();
    for o in outputs.iter_mut() {
        o.files.retain(|file| {
            let Some(writer) = writer_of(file).filter(|w| record_path(&w.pipeline) != own) else { return true };
            let (file, other) = (name(file), name(&writer.pipeline));
            let _ = writeln!(note, "<p class=\"bad\">{file} belongs to another run, {other}, and is left out.</p>");
            false
        });
    }
    outputs.retain(|o| !o.files.is_empty());
    note
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

pub fn is_table(path: &Path) -> bool {
    has_extension(path, "csv") || is_parquet(path)
}

/// Returns the name of a file as HTML.
pub fn name(path: &Path) -> String {
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

/// Least fraction of bonded particles for colors by molecule.
const BONDED: f64 = 0.5;

/// Returns the view of a state and what the caption says about it. A solvent is translucent. Chains are colored by molecule.
fn view(s: &Snapshot) -> (View, String) {
    let translucent = solvent_types(s);
    let mut view = View { size: [900, 720], scale_bar: true, ..View::default() };
    let mut bonded = vec![false; s.len()];
    s.bonds.iter().flat_map(|b| b.tags).for_each(|t| bonded[t as usize] = true);
    let mut notes: Vec<String> = translucent.iter().map(|t| format!("{t} translucent")).collect();
    let is_solute: Vec<bool> = s.types.iter().map(|t| !translucent.contains(t)).collect();
    let solute = || (0..s.len()).filter(|i| is_solute[s.type_id[*i] as usize]);
    let (all, of_chains) = (solute().count(), solute().filter(|i| bonded[*i]).count());
    if of_chains as f64 >= BONDED * all as f64 && of_chains > 0 {
        view.color = ColorBy::Molecule;
        notes.push("one color for each molecule".into());
    } else if s.types.len() > 1 {
        view.key = true;
    }
    view.translucent = translucent;
    (view, notes.iter().map(|n| format!(", {n}")).collect())
}

/// A rendered frame.
struct Rendered {
    step: u64,
    png: Vec<u8>,
    /// What the caption says about the colors.
    note: String,
}

/// Renders a state.
fn render(state: Result<Snapshot, Failure>) -> Result<Rendered, String> {
    let s = state.map_err(messages)?;
    let (view, note) = view(&s);
    Ok(Rendered { step: s.step, png: view.picture(&s, &all_threads)?.png()?, note })
}

/// Returns the files of a component that contain particles. Formats such as DCD only move particles of another file, and a
/// run that has just begun may have files without frames. Files that are damaged count: their errors are logged when they are read.
fn particle_files<'a>(output: &'a Output, registry: &Registry) -> Vec<&'a PathBuf> {
    let files: Vec<&PathBuf> =
        output.files.iter().filter(|f| component_for(f, Kind::Generator, registry).is_ok()).collect();
    // all files of a component have the same format
    let has_particles = |f: &&PathBuf| Reader::open(f, registry).and_then(|r| r.has_particles()).unwrap_or(true);
    if files.first().is_some_and(has_particles) { files } else { vec![] }
}

/// Returns renderings of the first and the last frame, and images that the run wrote.
pub fn pictures(pipeline: &Pipeline, outputs: &[Output], registry: &Registry) -> String {
    let mut figures: Vec<(u64, String)> = vec![];
    let draw = |figures: &mut Vec<(u64, String)>, path: &Path, state: Result<Snapshot, Failure>| match render(state) {
        Ok(r) => {
            let caption = format!("{}: step {}{}", name(path), r.step, escape(&r.note));
            figures.push((r.step, figure(&r.png, &caption)));
        }
        Err(e) => tracing::warn!("{}: cannot be rendered: {e}", path.display()),
    };
    let frame = |path: &Path, frame: Option<i64>| crate::files::read(path, frame, registry);
    // all particle files show the same system: one component is enough
    let files = outputs.iter().map(|o| particle_files(o, registry)).find(|files| !files.is_empty());
    match &files.unwrap_or_default()[..] {
        [one] => {
            draw(&mut figures, one, frame(one, Some(0)));
            draw(&mut figures, one, frame(one, None));
        }
        [first, .., last] => {
            draw(&mut figures, first, frame(first, None));
            draw(&mut figures, last, frame(last, None));
        }
        [] => {}
    }
    let images: Vec<&PathBuf> = outputs.iter().flat_map(|o| &o.files).filter(|f| has_extension(f, "png")).collect();
    if figures.is_empty() && images.is_empty() && pipeline.ensemble.is_empty() {
        draw(&mut figures, &pipeline.path, initial_state(&pipeline.path, registry));
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

/// Returns a table of the pipeline, the record, and all output files.
pub fn files(pipeline: &Pipeline, outputs: &[Output]) -> String {
    let folder = pipeline.directory();
    let mut out =
        "<h2>Files</h2>\n<div class=\"scroll\"><table class=\"left\"><tr><th>file</th><th>component</th><th>size</th></tr>\n"
            .to_string();
    let record = record_path(&pipeline.path);
    for (file, what) in [(&pipeline.path, "pipeline"), (&record, "record of the run: key figures, speed, software")] {
        if let Ok(metadata) = file.metadata() {
            let size = bytes(metadata.len());
            let _ = writeln!(out, "<tr><td class=\"wrap\">{}</td><td>{what}</td><td>{size}</td></tr>", name(file));
        }
    }
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
