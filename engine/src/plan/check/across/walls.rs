//! Checks of walls: their distance from the faces of the box, also of a box that shrinks.

use super::{Check, StagePlan, stage};
use crate::plugins::Component;
use galamost_plugin_api::component::Kind;
use galamost_plugin_api::snapshot::Snapshot;
use std::sync::Arc;

/// Largest number of steps at which prescribed box lengths are evaluated.
const MAX_EVALUATIONS: u64 = 100_000;

/// The shortest prescribed length of the box along each axis, with the component and the stage that prescribe it.
type Shortest<'a> = [Option<(f64, &'a str, &'a str)>; 3];

/// Checks the walls of all stages.
pub fn check(c: &mut Check<'_>, stages: &[StagePlan], s: &Snapshot) {
    let (mut left, mut begin): (Shortest<'_>, u64) = ([None; 3], s.step);
    for plan in stages {
        warn_near_faces(c, plan);
        let end = begin.saturating_add(plan.stage.steps);
        let shortest;
        (shortest, left) = prescribed(plan, left, begin, end);
        check_box(c, plan, &shortest);
        begin = end;
    }
}

/// Warns about walls so close to the box face that particles interact through the periodic boundary.
fn warn_near_faces(c: &mut Check<'_>, plan: &StagePlan) {
    let reach = plan.forces.iter().filter(|f| f.kind == Kind::Pair).fold(0.0f64, |m, f| m.max(f.needs.cutoff));
    for w in walls(plan) {
        if let Some(clearance) = w.needs.clearance.filter(|b| *b < 0.5 * reach) {
            let message = format!(
                "{}: the distance {clearance} between the wall and the box face is less than half the cutoff {reach}; \
                 particles may interact through the periodic boundary",
                w.name
            );
            c.warn(Some(w.at), message);
        }
    }
}

fn walls(plan: &StagePlan) -> impl Iterator<Item = &Arc<Component>> {
    plan.forces.iter().chain(&plan.integrators)
}

/// Returns the shortest prescribed box lengths of a stage, and those at its end. `before` are those at its begin.
fn prescribed<'a>(plan: &'a StagePlan, before: Shortest<'a>, begin: u64, end: u64) -> (Shortest<'a>, Shortest<'a>) {
    let (mut shortest, mut last) = (before, before);
    if begin == end {
        return (shortest, last);
    }
    // a barostat leaves a box that is not known
    if plan.updaters.iter().any(|u| u.needs.changes_box && u.needs.box_lengths == [None; 3])
        || plan.integrators.iter().any(|i| stage::has_phase(i, |p| p.sim_box && !p.shear))
    {
        last = [None; 3];
    }
    for u in &plan.updaters {
        let period = u.needs.period.max(1);
        let (first, calls) = (begin.next_multiple_of(period), (end - begin).div_ceil(period));
        let stride = period.saturating_mul(calls.div_ceil(MAX_EVALUATIONS));
        // the updater is not called after the last step
        let latest = (end - 1) / period * period;
        for (k, length) in u.needs.box_lengths.iter().enumerate() {
            let Some(length) = length.filter(|_| first < end) else { continue };
            let at = |step: u64| (length.at(step), u.name.as_str(), plan.stage.name.as_str());
            let all = (first..end).step_by(stride as usize).map(at).chain([at(latest)]);
            let least = all.fold(at(first), |m, x| if x.0 < m.0 { x } else { m });
            shortest[k] = shortest[k].filter(|s| s.0 < least.0).or(Some(least));
            last[k] = Some(at(latest));
        }
    }
    (shortest, last)
}

/// Reports walls that do not fit into the shortest box.
fn check_box(c: &mut Check<'_>, plan: &StagePlan, shortest: &Shortest<'_>) {
    for w in walls(plan) {
        for (k, least) in w.needs.least_box.into_iter().enumerate() {
            let Some((length, by, stage)) = shortest[k].filter(|s| s.0 < least) else { continue };
            let axis = ["x", "y", "z"][k];
            let message = format!(
                "{}: the wall needs a box length of {least} along {axis}, but {by} makes it {length} in stage `{stage}`; move the \
                 wall or stop before",
                w.name
            );
            c.error(Some(w.at), message);
        }
    }
}

/// Returns a message about a wall of a stage that does not fit into a box.
pub fn outside(plan: &StagePlan, box_length: [f64; 3]) -> Option<String> {
    walls(plan).find_map(|w| {
        let k = (0..3).find(|k| box_length[*k] < w.needs.least_box[*k])?;
        let (axis, least, length) = (["x", "y", "z"][k], w.needs.least_box[k], box_length[k]);
        Some(format!("{}: the wall needs a box length of {least} along {axis}, which is now {length}", w.name))
    })
}
