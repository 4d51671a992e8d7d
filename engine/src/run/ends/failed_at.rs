//! Where a run failed, for programs that advance it.

use crate::checkpoint::files;
use crate::plan::files::{RunFile, Target};
use crate::run::execute::Run;
use galamost_plugin_api::error::Error;
use std::path::{Path, PathBuf};

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
        let names = run.plan.components.iter().map(|c| c.name.as_str());
        let component = match e {
            Error::Panic { component, .. } => Some(component.clone()),
            Error::Unstable { what: text, .. } | Error::Run(text) => first_name(text, names),
            Error::Io { path, .. } => writer(&run.plan.files, path),
            _ => None,
        };
        let checkpoint = files::present(run.writer.path()).into_iter().next();
        Self { step, component, tag, message: message.into(), checkpoint }
    }
}

/// Returns the component that writes a file.
fn writer(files: &[RunFile], path: &Path) -> Option<String> {
    let target = Target::resolve(path).ok()?;
    let is_it = |f: &&RunFile| f.output().is_some() && f.target.folder == target.folder && f.target.file == target.file;
    files.iter().find(is_it)?.owner.component().map(Into::into)
}

/// Returns which of the names is the first word of this kind in a text: messages of a component contain its name.
fn first_name<'a>(text: &str, names: impl Iterator<Item = &'a str>) -> Option<String> {
    let in_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let place = |name: &str| {
        let is_name =
            |at: &usize| !in_word(text[..*at].chars().next_back()) && !in_word(text[*at + name.len()..].chars().next());
        text.match_indices(name).map(|(at, _)| at).find(is_name)
    };
    names.filter_map(|name| Some((place(name)?, name))).min().map(|(_, name)| name.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_whole_name_counts() {
        let of = |text: &str| first_name(text, ["Dpd", "NoseHoover", "Thermo"].into_iter());
        assert_eq!(of("NoseHoover: a particle left the range of Dpd").as_deref(), Some("NoseHoover"));
        assert_eq!(of("the energy of Dpd is NaN").as_deref(), Some("Dpd"));
        assert_eq!(of("Thermostat: Dpd2 and µDpd"), None);
    }
}
