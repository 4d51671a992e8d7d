//! Where a run failed, for programs that advance it.

use crate::checkpoint::files;
use crate::run::execute::Run;
use galamost_plugin_api::error::Error;
use std::path::PathBuf;

/// Where a run failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedAt {
    /// The step.
    pub step: u64,
    /// The component that reported the failure, if the error has one.
    pub component: Option<String>,
    /// The tag of the particle, if the error has one.
    pub tag: Option<u32>,
    /// The message of the failure.
    pub message: String,
    /// The newest checkpoint, if there is one.
    pub checkpoint: Option<PathBuf>,
}

impl FailedAt {
    /// Returns where a run failed with this error. Call it after the last checkpoint has been written.
    pub(in crate::run) fn of(run: &Run<'_>, e: &Error, message: &str) -> Self {
        let (step, tag) = match e {
            Error::Unstable { step, tag, .. } => (*step, *tag),
            _ => (run.backend.step(), None),
        };
        let component = match e {
            Error::Panic { component, .. } => Some(component.clone()),
            // messages of a component begin with its name; see `fault` and `fault_error`
            Error::Unstable { what: text, .. } | Error::Run(text) => {
                let name = text.split_once(": ").map(|(name, _)| name);
                run.plan.components.iter().find(|c| Some(&*c.name) == name).map(|c| c.name.clone())
            }
            _ => None,
        };
        let checkpoint = files::present(run.writer.path()).into_iter().next();
        Self { step, component, tag, message: message.into(), checkpoint }
    }
}
