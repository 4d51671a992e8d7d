//! The files that the engine uses.

use super::{FileUse, Owner, RunFile, Target, names, probe_folder, record_path, strings};
use crate::diagnostic::Diagnostic;
use crate::pipeline::Pipeline;
use galamost_plugin_api::error::Position;
use std::path::Path;

/// The pipeline, the checkpoints, the record and the report.
pub fn files(pipeline: &Pipeline, errors: &mut Vec<Diagnostic>) -> Vec<RunFile> {
    let checkpoint = pipeline.checkpoint_path();
    let given = pipeline.checkpoint.file.as_ref();
    let at = given.and_then(|f| strings::position(&pipeline.text, Position { line: 1, column: 1 }, f));
    let file = |owner: &str, at, shown: &Path, usage, target| RunFile {
        pipeline: pipeline.path.clone(),
        at,
        owner: Owner::Engine(owner.into()),
        shown: shown.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        usage,
        target,
    };
    let mut files = vec![];
    // the pipeline of a test may not be a file
    if let Ok(target) = Target::resolve(&pipeline.path) {
        files.push(file("the pipeline", None, &pipeline.path, FileUse::Input, target));
    }
    match Target::resolve(&checkpoint) {
        Ok(target) => {
            let probed = if given.is_some() || pipeline.checkpoint.regular() {
                probe_folder(&target.folder).map_err(|e| e.to_string())
            } else {
                Ok(())
            };
            let folder = || Err("this is a folder".to_string());
            let length = || names::check_length(&target, names::OLDER + names::RENAMED);
            if let Err(e) = if target.is_folder { folder() } else { probed.and_then(|()| length()) } {
                let message = format!("cannot write a checkpoint here: {}: {e}", checkpoint.display());
                errors.push(Diagnostic::new(&pipeline.path, at, message));
            }
            for (other, owner) in [
                (target.with_suffix(".{step}"), "an older checkpoint"),
                (target.temporary(), "a checkpoint while it is written"),
                (target.with_suffix(".lock"), "the lock beside the checkpoint"),
            ] {
                files.push(file(owner, at, &checkpoint, FileUse::Engine, other));
            }
            files.push(file("the checkpoint", at, &checkpoint, FileUse::Checkpoint, target));
        }
        Err(e) if given.is_some() || pipeline.checkpoint.regular() => {
            let message = format!("cannot write a checkpoint here: {}: {e}", checkpoint.display());
            errors.push(Diagnostic::new(&pipeline.path, at, message));
        }
        Err(_) => {}
    }
    let record = record_path(&pipeline.path);
    // the name of the checkpoint is longer, unless the pipeline gives it
    if given.is_some()
        && let Ok(target) = Target::resolve(&record)
        && let Err(e) = names::check_length(&target, names::RENAMED)
    {
        errors.push(Diagnostic::new(&pipeline.path, None, format!("cannot write {}: {e}", record.display())));
    }
    for (owner, path) in [
        ("the record of the run", record),
        ("the page of `galamost report`", pipeline.path.with_extension("report.html")),
    ] {
        if let Ok(target) = Target::resolve(&path) {
            let part = format!("{owner} while it is written");
            files.push(file(&part, None, &path, FileUse::Engine, target.temporary()));
            files.push(file(owner, None, &path, FileUse::Engine, target));
        }
    }
    files
}
