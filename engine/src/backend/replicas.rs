//! The check of the replicas of a pipeline together.

use super::stages_list;
use crate::device::Chosen;
use crate::diagnostic::{Diagnostic, counted};
use crate::plan::Plan;
use crate::plan::files::{FileUse, RunFile, collisions_between};
use galamost_plugin_api::error::Result;

/// The largest number of particles of a replica on a GPU. Larger systems fill a GPU alone.
const MAX_PARTICLES: usize = 50_000;

/// Returns every reason why the replicas of a pipeline cannot run together. Errors are those of the file that they were made
/// from, each once.
///
/// # Errors
/// Returns the plugin's error.
pub fn check_replicas(plans: &[&Plan]) -> Result<Vec<Diagnostic>> {
    let mut errors = vec![];
    for plan in plans {
        let pipeline = &plan.pipeline;
        let mut error = |at, message: String| errors.push(Diagnostic::new(&pipeline.path, at, message));
        if pipeline.gpus > 1 {
            error(pipeline.gpus_at, format!("{} GPUs; replicas run on one device", pipeline.gpus));
        }
        if !pipeline.ensemble.is_empty() {
            error(None, "replicas need particles; a pipeline of samplers has none".into());
        }
        let n = plan.snapshot.len();
        if !matches!(plan.device, Chosen::Cpu { .. }) {
            if n > MAX_PARTICLES {
                let particles = counted(n as u64, "particle");
                error(None, format!("{particles}; replicas on a GPU have at most {MAX_PARTICLES}; use separate runs"));
            } else if stages_list(plan)? {
                error(None, "replicas need a plain neighbor list; set `neighbors: (list: Plain)`".into());
            }
        }
    }
    let shared = shared_files(plans);
    errors.extend(if shared.is_empty() { collisions_between(plans.iter().map(|p| &p.files[..])) } else { shared });
    let mut located: Vec<Diagnostic> = vec![];
    for error in errors {
        let plan = plans.iter().find(|p| p.pipeline.path == error.file);
        let error = plan.map_or(error.clone(), |p| p.pipeline.locate(error));
        if !located.contains(&error) {
            located.push(error);
        }
    }
    Ok(located)
}

/// Returns an error for each file that the first two replicas would both write.
fn shared_files(plans: &[&Plan]) -> Vec<Diagnostic> {
    let [first, second, ..] = plans else { return vec![] };
    let written = |f: &&RunFile| matches!(f.usage, FileUse::Output(_) | FileUse::Checkpoint);
    let both = |f: &&RunFile| first.files.iter().filter(written).any(|g| g.target.path() == f.target.path());
    let error = |f: &RunFile| {
        let (stem, ending) =
            f.shown.split_once('.').map_or((f.shown.as_str(), String::new()), |(s, e)| (s, format!(".{e}")));
        let message = format!(
            "every replica would write `{}`; add {{replica}} to the name, as in `{stem}.{{replica}}{ending}`",
            f.shown
        );
        let mut d = Diagnostic::new(&f.pipeline, f.at, message);
        d.component = f.owner.component().map(Into::into);
        d
    };
    second.files.iter().filter(written).filter(both).map(error).collect()
}
