//! Components of a stage that change the box.

use super::{Check, StagePlan};

/// Checks that at most one component changes the box along each axis.
pub fn check(c: &mut Check<'_>, plan: &StagePlan) {
    let all: Vec<_> = plan.integrators.iter().chain(&plan.updaters).collect();
    for (k, a) in all.iter().enumerate() {
        for b in &all[..k] {
            let shared = (0..3).find(|axis| a.needs.box_axes[*axis] && b.needs.box_axes[*axis]);
            if let Some(axis) = shared {
                let message = format!(
                    "{} and {} both change the box length along {}; remove one, or give them different axes",
                    b.name,
                    a.name,
                    ["x", "y", "z"][axis]
                );
                c.error(Some(a.at), message);
            }
        }
    }
}
