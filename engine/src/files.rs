//! States out of files: a stand-in.

use crate::pipeline::Pipeline;
use crate::plan::{CheckOptions, check};
use crate::plugins::Registry;
use crate::report::{Diagnostic, Failure};
use galamost_plugin_api::snapshot::Snapshot;
use std::path::Path;

/// Reads.
///
/// # Errors
/// Mistakes.
pub fn read(path: &Path, frame: i64, registry: &Registry) -> Result<Snapshot, Failure> {
    let name = std::fs::canonicalize(path).unwrap_or(path.into()).display().to_string();
    let generator = match path.extension().and_then(|e| e.to_str()) {
        Some("xml") => format!("GalamostXml(file: {name:?})"),
        Some("gsd") => format!("Gsd(file: {name:?}, frame: {})", if frame < 0 { -1 } else { frame }),
        _ => format!("LammpsDump(file: {name:?}, frame: {frame})"),
    };
    let text = format!("(initial: [{generator}], device: Cpu, stages: [(steps: 0, dt: 0.001)])");
    let p = Pipeline::parse(path, &text, &[])
        .map_err(|e| Failure::Input(e.into_iter().map(|e| Diagnostic::new(path, e.at, e.message)).collect()))?;
    Ok(check(p, registry, CheckOptions::default())?.snapshot)
}

/// Whether.
pub fn holds_particles(path: &Path) -> bool {
    path.extension().and_then(|e| e.to_str()).is_some_and(|e| ["gsd", "xml", "dump"].contains(&e))
}
