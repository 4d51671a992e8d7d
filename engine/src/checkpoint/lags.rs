//! Lags of the analyzers that average over them. A resumed run must not mix samples of different lags.

use super::Checkpoint;
use crate::plan::Plan;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use tracing::warn;

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
    /// Drops the state of each analyzer whose lags differ from those of the run that wrote the checkpoint, with a warning.
    pub(super) fn drop_other_lags(&mut self, path: &Path, then: &BTreeMap<u32, Lag>, plan: &Plan) {
        for (id, now) in of(plan, self.position.stage) {
            let Some(then) = then.get(&id).filter(|then| **then != now) else { continue };
            let name = plan.component(id).map_or("", |c| c.name.as_str());
            if self.components.remove(&id).is_some_and(|state| !state.is_empty()) {
                warn!(
                    "{}: {name} had samples every {then} time units (steps × dt), now every {now}: it starts anew, and its \
                     file contains only samples from here on",
                    path.display()
                );
            }
        }
    }
}
