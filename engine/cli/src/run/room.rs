//! Room for the files of the runs of a command: for all of them, or for none.

use super::{PreparedRun, RunArgs};
use crate::common::input_error;
use galamost_engine::diagnostic::Failure;
use galamost_engine::plan::Plan;
use galamost_engine::run::outputs;
use std::path::PathBuf;

/// Renames or removes the files of earlier runs, and renames those that resumed runs have not written and the files `edited`. From now on, the
/// locks say that the runs write their files.
///
/// # Errors
/// Returns an error if one of the files cannot be renamed. Then none is.
pub(super) fn make_room(prepared: &mut [PreparedRun], edited: &[PathBuf], args: &RunArgs) -> Result<(), Failure> {
    let new: Vec<&Plan> = prepared.iter().filter(|p| p.resume.is_none()).map(|p| &p.plan).collect();
    let mut aside = edited.to_vec();
    aside.extend(prepared.iter().flat_map(|p| p.foreign.iter().cloned()));
    let done = outputs::make_room(&new, &aside, args.overwrite, true);
    if let (Err(e), Some(first)) = (done, prepared.first()) {
        return Err(input_error(&first.plan.pipeline.path, e.to_string()));
    }
    for run in prepared {
        let resumed = run.resume.is_some();
        if let Some(lock) = &mut run.lock {
            lock.begin(resumed);
        }
    }
    Ok(())
}

/// Returns the failure of one of several runs that have begun: something was done, whatever the cause.
pub(super) fn of_begun(failure: Failure) -> Failure {
    match failure {
        Failure::Input(list) => {
            let mut all = list.iter().map(ToString::to_string);
            let first = all.next().unwrap_or_default();
            Failure::Run(first, all.collect())
        }
        run @ Failure::Run(..) => run,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use galamost_engine::diagnostic::Diagnostic;

    #[test]
    fn a_run_beside_others_fails_with_status_1() {
        let wrong = |message: &str| Diagnostic::new("p.ron".as_ref(), None, message);
        let failure = of_begun(Failure::Input(vec![wrong("a"), wrong("b")]));
        assert_eq!(failure.exit_code(), 1);
        let said = failure.render();
        assert!(said.contains("p.ron: a") && said.contains("p.ron: b") && !said.contains("nothing was done"), "{said}");
    }
}
