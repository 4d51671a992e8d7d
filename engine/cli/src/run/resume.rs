//! Resumed runs: the checkpoints that they begin from, and the command that resumes a run.

use super::RunArgs;
use crate::common::{input_error, shell_quoted};
use galamost_engine::checkpoint::files;
use galamost_engine::diagnostic::Failure;
use galamost_engine::pipeline::{Pipeline, REPLICA_MARK, replica_path};
use galamost_engine::run::record;
use std::path::{Path, PathBuf};

/// Begin of the note of the engine that a failed run can be resumed.
const ADVICE: &str = "resume with: galamost --pipeline ";

/// Returns how to resume a run, with the options that belong to the physics of the pipeline.
pub(super) fn advice(pipeline: &Pipeline, args: &RunArgs) -> String {
    let path = pipeline.resumed_path();
    let mut out = format!("{ADVICE}{} --resume", shell_quoted(&path.to_string_lossy()));
    let mut add = |option: &str, value: &str| out += &format!(" {option} {}", shell_quoted(value));
    // the pipeline of a single replica contains its values
    if path == pipeline.common_path() {
        args.set.iter().for_each(|value| add("--set", value));
        args.sweep.iter().for_each(|value| add("--sweep", value));
        args.replicas.iter().for_each(|n| add("--replicas", &n.to_string()));
    }
    args.steps.iter().for_each(|n| add("--steps", &n.to_string()));
    out
}

/// Replaces the note of the engine, which does not know the options of the command.
pub(super) fn with_options(failure: Failure, pipeline: &Pipeline, args: &RunArgs) -> Failure {
    let note = |note: String| if note.starts_with(ADVICE) { advice(pipeline, args) } else { note };
    match failure {
        Failure::Run(message, notes) => Failure::Run(message, notes.into_iter().map(note).collect()),
        other => other,
    }
}

/// Returns the checkpoints that a run may resume from, newest first; none if it starts from scratch.
///
/// # Errors
/// Returns an error if the user requests a checkpoint and there is none, or if only replicas of the pipeline have some.
pub(super) fn checkpoints(pipeline: &Pipeline, args: &RunArgs) -> Result<Vec<PathBuf>, Failure> {
    let path = pipeline.checkpoint_path();
    match args.resume.as_deref() {
        None => Ok(vec![]),
        Some(choice @ ("" | "auto")) => match files::present(&path) {
            found if !found.is_empty() => Ok(found),
            none => match (checkpoint_of_replica(pipeline), earlier_checkpoint(pipeline)) {
                (Some(first), _) => Err(input_error(&path, of_replicas(&first))),
                (None, Some(earlier)) => Err(input_error(&path, of_other_name(&earlier))),
                _ if choice.is_empty() => Err(input_error(&path, "no checkpoint to resume from")),
                _ => Ok(none),
            },
        },
        Some(file) => Ok(vec![named_checkpoint(file.as_ref(), &path)?]),
    }
}

fn of_replicas(first: &Path) -> String {
    format!(
        "no checkpoint to resume from, but there is {} of an earlier run with replicas; give the options --sweep, --set and \
         --replicas of that run as well, or leave out --resume to start a single run",
        first.display()
    )
}

fn of_other_name(earlier: &Path) -> String {
    format!(
        "no checkpoint to resume from, but there is {0} of an earlier run of this pipeline; give its name back to `file` of `checkpoint`, \
         resume with --resume={0}, or leave out --resume to start from scratch",
        earlier.display()
    )
}

/// Returns a checkpoint that an earlier run of the pipeline wrote under another name: that of the pipelines in its record, or the name
/// without `checkpoint.file`.
fn earlier_checkpoint(pipeline: &Pipeline) -> Option<PathBuf> {
    let now = pipeline.checkpoint_path();
    let parts = record::read(&pipeline.path).unwrap_or_default();
    let earlier = |part: &serde_json::Value| {
        let (then, _) = Pipeline::parse_partially(&pipeline.path, part["pipeline"].as_str()?, &[]).ok()?;
        Some(then.checkpoint_path())
    };
    let names = parts.iter().rev().filter_map(earlier).chain([pipeline.path.with_extension("checkpoint")]);
    names.filter(|name| *name != now).find_map(|name| files::present(&name).into_iter().next())
}

/// Returns the checkpoint of the first replica, if an earlier run of the pipeline had replicas.
fn checkpoint_of_replica(pipeline: &Pipeline) -> Option<PathBuf> {
    if pipeline.replica.is_some() {
        return None;
    }
    let first = replica_path(&pipeline.path, 0);
    std::fs::read_to_string(&first).ok().filter(|text| text.starts_with(REPLICA_MARK))?;
    let path = match &pipeline.checkpoint.file {
        Some(file) => pipeline.directory().join(file.replace("{replica}", "0")),
        None => first.with_extension("checkpoint"),
    };
    files::present(&path).into_iter().next()
}

/// Returns the checkpoint of `--resume=FILE`.
///
/// # Errors
/// Returns an error if its run was set aside: the outputs beside it are those of another run.
fn named_checkpoint(file: &Path, newest: &Path) -> Result<PathBuf, Failure> {
    let name = |p: &Path| p.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let is_old = name(file).strip_prefix(&name(newest)).is_some_and(|rest| rest.contains(".old"));
    if is_old {
        let message = "belongs to an earlier run whose outputs were renamed with it; rename all of them back, then use \
                       --resume without FILE";
        return Err(input_error(file, message));
    }
    Ok(file.into())
}
