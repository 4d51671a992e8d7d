//! Warnings about a box that has changed since the start of a run.

use super::Plan;
use crate::plugins::Component;
use galamost_plugin_api::component::SystemInfo;
use std::collections::BTreeSet;
use tracing::{debug, warn};

/// Smallest relative change of a box length after which components are asked again.
const CHANGE: f64 = 0.01;

/// Asks components with [`box_warnings`](galamost_plugin_api::component::Needs::box_warnings) for warnings when the box has changed.
/// Each component warns once.
#[derive(Debug)]
pub struct BoxWarnings {
    /// The box lengths at the last question.
    asked: [f64; 3],
    /// Components that have warned.
    warned: BTreeSet<u32>,
}

impl BoxWarnings {
    /// Returns the state at the start of a run.
    pub fn new(plan: &Plan) -> Self {
        Self { asked: plan.system.box_length, warned: BTreeSet::new() }
    }

    /// Returns warnings of forces in the present box that they did not give at the start.
    pub fn ask<'a>(
        &mut self,
        plan: &Plan,
        forces: impl Iterator<Item = &'a Component>,
        present: [f64; 3],
    ) -> Vec<(&'a str, String)> {
        if !self.asked.iter().zip(present).any(|(old, new)| (new / old - 1.0).abs() > CHANGE) {
            return vec![];
        }
        self.asked = present;
        let system = SystemInfo { present_box: Some(present), ..plan.system.clone() };
        let mut found = vec![];
        for c in forces.filter(|c| c.needs.box_warnings) {
            if self.warned.contains(&c.id) {
                continue;
            }
            match c.warnings_in(&system) {
                // a warning at the start has other numbers now
                Ok(now) if now.len() > c.needs.warnings.len() => {
                    self.warned.insert(c.id);
                    let new = now.into_iter().filter(|w| !c.needs.warnings.contains(w));
                    found.extend(new.map(|w| (c.name.as_str(), w)));
                }
                Ok(_) => {}
                Err(e) => debug!("{}: no warnings for the box {present:?}: {e}", c.name),
            }
        }
        found
    }

    /// Logs the warnings of [`Self::ask`].
    pub fn log<'a>(&mut self, plan: &Plan, forces: impl Iterator<Item = &'a Component>, present: [f64; 3], step: u64) {
        for (name, text) in self.ask(plan, forces, present) {
            warn!("step {step}: {name}: {text}");
        }
    }
}
