//! Lags of the analyzers that average over them. A resumed run must not mix samples of different lags.

use super::Checkpoint;
use crate::diagnostic::{Diagnostic, Failure};
use crate::plan::Plan;
use crate::plugins::Component;
use galamost_plugin_api::error::InputError;
use galamost_plugin_api::output::OutputKind;
use galamost_plugin_api::resume::has_content;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Time between two samples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lag {
    steps: u64,
    dt: f64,
}

impl std::fmt::Display for Lag {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} × {}", self.steps, self.dt)
    }
}

/// Returns the lag of each analyzer that averages over lags, in the last stage up to `stage` that lists it.
pub fn of(plan: &Plan, stage: u64) -> BTreeMap<u32, Lag> {
    let begun = plan.stages.iter().take(usize::try_from(stage).map_or(usize::MAX, |k| k.saturating_add(1)));
    let all = begun.flat_map(|p| p.analyzers.iter().map(|a| (a, p.stage.dt)));
    all.filter(|(a, _)| a.needs.lags).map(|(a, dt)| (a.id, Lag { steps: a.needs.period, dt })).collect()
}

impl Checkpoint {
    /// Drops the state of each analyzer whose lags differ from those of the run that wrote the checkpoint. Returns a warning for each.
    ///
    /// # Errors
    /// Returns an error for each such analyzer whose growing file has samples already.
    pub(super) fn drop_other_lags(&mut self, then: &BTreeMap<u32, Lag>, plan: &Plan) -> Result<Vec<String>, Failure> {
        let (mut errors, mut warnings) = (vec![], vec![]);
        for (id, now) in of(plan, self.position.stage) {
            let Some(then) = then.get(&id).filter(|then| **then != now) else { continue };
            let Some(a) = plan.component(id) else { continue };
            if self.components.remove(&id).is_none_or(|state| state.is_empty()) {
                continue;
            }
            if let Some(file) = begun_file(a, plan) {
                let message = format!(
                    "`{file}` has samples every {then} time units (steps × dt), now every {now}, but those of one file are at \
                     equal intervals; choose another file"
                );
                errors.push(Diagnostic::of_component(&plan.pipeline.path, a.at, &a.name, InputError::new(message)));
                continue;
            }
            warnings.push(format!(
                "{} had samples every {then} time units (steps × dt), now every {now}: it starts anew, and its file contains only \
                 samples from here on",
                a.name
            ));
        }
        if errors.is_empty() { Ok(warnings) } else { Err(Failure::Input(errors)) }
    }
}

/// Returns a growing output of an analyzer that has content.
fn begun_file<'a>(a: &Component, plan: &'a Plan) -> Option<&'a str> {
    let mut growing = plan.files.iter().filter(|f| f.is_output(OutputKind::Growing));
    let found = growing.find(|f| a.needs.outputs.iter().any(|o| o.path == f.shown) && has_content(&f.target.path()))?;
    Some(found.shown.as_str())
}
