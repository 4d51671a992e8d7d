//! Analyzers whose parameters differ from those of the run that wrote a checkpoint. Their samples so far have another meaning, and a
//! table that continues would have rows of both.

use super::Checkpoint;
use super::changes::analyzers;
use crate::diagnostic::{Diagnostic, Failure};
use crate::plan::Plan;
use crate::plan::files::{TIMES, other_values};
use crate::plugins::Component;
use galamost_plugin_api::error::InputError;
use galamost_plugin_api::output::OutputKind;
use galamost_plugin_api::params::Value;

impl Checkpoint {
    /// Drops the state of each analyzer of which more than its times and files has changed since `then`. Returns a warning for each.
    ///
    /// # Errors
    /// Returns an error for each such analyzer that would continue a table or a trajectory.
    pub(super) fn drop_changed_analyzers(&mut self, then: &str, plan: &Plan) -> Result<Vec<String>, Failure> {
        let (mut errors, mut warnings) = (vec![], vec![]);
        let left = plan.stages.iter().skip(usize::try_from(self.position.stage).unwrap_or(usize::MAX));
        let mut left: Vec<&Component> = left.flat_map(|s| s.analyzers.iter().map(|a| &**a)).collect();
        left.sort_by_key(|a| a.id);
        left.dedup_by_key(|a| a.id);
        for (then, now) in analyzers(then, &plan.pipeline.text) {
            let Some(a) = left.iter().find(|a| a.at == now.at()) else { continue };
            let is_output = |v: Value<'_>| a.needs.outputs.iter().any(|o| o.path == unquoted(v));
            let other = other_values(then, now, |_, now| now.is_some_and(is_output)).join(", ");
            if other.is_empty() {
                continue;
            }
            if let Some(file) = continued(a, then) {
                let message = format!(
                    "`{file}` continues that of the checkpoint, but {other}; only {} and names of files may differ; choose \
                     another file",
                    TIMES.join(", ")
                );
                errors.push(Diagnostic::of_component(&plan.pipeline.path, a.at, &a.name, InputError::new(message)));
            } else if self.components.remove(&a.id).is_some_and(|state| !state.is_empty()) {
                warnings.push(format!(
                    "{} had other parameters: {other}: it starts anew, and its table contains only samples from here on",
                    a.name
                ));
            }
        }
        if errors.is_empty() { Ok(warnings) } else { Err(Failure::Input(errors)) }
    }
}

/// Returns a growing output of an analyzer that it had before, too.
fn continued<'a>(a: &'a Component, then: Value<'_>) -> Option<&'a str> {
    let fields = then.after_name().and_then(|v| v.entries().ok()).unwrap_or_default();
    let had = |path: &str| fields.iter().any(|(_, v)| unquoted(*v) == path);
    let growing = a.needs.outputs.iter().filter(|o| o.kind == OutputKind::Growing);
    growing.map(|o| o.path.as_str()).find(|path| had(path))
}

fn unquoted(v: Value<'_>) -> &str {
    v.text().trim_matches('"')
}
