//! States out of files.

use crate::pipeline::Pipeline;
use crate::plan::{CheckOptions, check};
use crate::plugins::Registry;
use crate::report::{Diagnostic, Failure};
use galamost_plugin_api::snapshot::Snapshot;
use std::path::Path;

/// The entry of a generator that reads a frame of a file, by the file's ending.
fn generator(path: &Path, frame: Option<i64>) -> Result<String, Failure> {
    let name = std::fs::canonicalize(path).unwrap_or(path.into()).display().to_string();
    let frame = frame.unwrap_or(-1);
    match path.extension().and_then(|e| e.to_str()) {
        Some("xml") => Ok(format!("GalamostXml(file: {name:?})")),
        Some("gsd") => Ok(format!("Gsd(file: {name:?}, frame: {frame})")),
        Some("dump" | "lammpstrj") => Ok(format!("LammpsDump(file: {name:?}, frame: {frame})")),
        _ => {
            let m = "no reader for files of this kind; known are .xml, .gsd, .dump and .lammpstrj";
            Err(Failure::Input(vec![Diagnostic::new(path, None, m)]))
        }
    }
}

/// Reads a frame of a file, from 0; a negative number counts from the end; `None` is the last one.
///
/// # Errors
/// There is no such file, nothing reads it, or something is wrong with what it holds.
pub fn read(path: &Path, frame: Option<i64>, registry: &Registry) -> Result<Snapshot, Failure> {
    let entry = generator(path, frame)?;
    let about = |m: String| Diagnostic::new(path, None, m);
    if !path.is_file() {
        return Err(Failure::Input(vec![about("there is no such file".into())]));
    }
    let text = format!("(initial: [{entry}], device: Cpu, stages: [(steps: 0, dt: 0.001)])");
    let told = |e: Vec<galamost_plugin_api::error::InputError>| {
        Failure::Input(e.into_iter().map(|e| about(e.message)).collect())
    };
    let pipeline = Pipeline::parse(path, &text, &[]).map_err(told)?;
    match check(pipeline, registry, CheckOptions::default()) {
        Ok(plan) => Ok(plan.snapshot),
        // places in a text that the user has not seen say nothing
        Err(Failure::Input(list)) => Err(Failure::Input(
            list.into_iter().map(|d| if d.file == path { Diagnostic { at: None, ..d } } else { d }).collect(),
        )),
        Err(e) => Err(e),
    }
}
