//! Checks that analyzers take samples, and that those that compare their samples take them under equal conditions.

use super::{Check, StagePlan, stage};
use crate::plugins::Component;
use galamost_plugin_api::snapshot::Snapshot;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Checks all analyzers of the stages, which begin with this state.
pub fn check(c: &mut Check<'_>, stages: &[StagePlan], s: &Snapshot) {
    let mut seen = BTreeSet::new();
    for a in stages.iter().flat_map(|p| &p.analyzers) {
        if !seen.insert(a.id) {
            continue;
        }
        warn_if_never_due(c, a, stages, s.step);
        if a.needs.lags || a.needs.constant_box || a.needs.constant_charges {
            check_one(c, a, &sampled(a, stages, s));
        }
    }
}

/// Warns about an analyzer that is due at no step of the stages that list it.
fn warn_if_never_due(c: &mut Check<'_>, a: &Component, stages: &[StagePlan], mut begin: u64) {
    let mut last = 0;
    for plan in stages {
        let end = begin.saturating_add(plan.stage.steps);
        if plan.analyzers.iter().any(|b| b.id == a.id) {
            let at_begin = a.needs.is_due(begin, begin, end);
            if at_begin || a.needs.at_end || a.needs.next_due(begin, begin) <= end {
                return;
            }
            last = end;
        }
        begin = end;
    }
    let (first, every) = (a.needs.offset, a.needs.period.max(1));
    let why = if a.needs.from_stage {
        format!("it is due every {every} steps from step {first} of a stage on, and none of its stages is that long")
    } else if first > last {
        format!("it begins at step {first}, and its last stage ends at step {last}")
    } else {
        format!(
            "it is due every {every} steps from step {first} on, and none of these steps is in a stage that lists it"
        )
    };
    c.warn(Some(a.at), format!("{} writes nothing: {why}", a.name));
}

/// A stage between the first sample of an analyzer and its last one.
struct Sampled<'a> {
    plan: &'a StagePlan,
    /// Whether the stage lists the analyzer.
    lists: bool,
    /// The step from which on the analyzer samples, at the earliest, and the last step.
    steps: [u64; 2],
    /// The box lengths of a sample at the first of these steps, without the changes by barostats.
    lengths: [f64; 3],
}

/// Returns the stages with steps from the first sample of an analyzer to its last one.
fn sampled<'a>(a: &Component, stages: &'a [StagePlan], s: &Snapshot) -> Vec<Sampled<'a>> {
    let (mut begin, mut at_begin) = (s.step, s.box_length);
    let mut found = vec![];
    for plan in stages.iter().filter(|p| p.stage.steps > 0) {
        let end = begin.saturating_add(plan.stage.steps);
        let lists = plan.analyzers.iter().any(|b| b.id == a.id);
        let from = if found.is_empty() { a.needs.first_due(begin).max(begin) } else { begin };
        if !found.is_empty() || (lists && from < end) {
            let lengths = lengths_at(plan, at_begin, [begin, from]);
            found.push(Sampled { plan, lists, steps: [from, end], lengths });
        }
        at_begin = lengths_at(plan, at_begin, [begin, end]);
        begin = end;
    }
    found.truncate(found.iter().rposition(|s| s.lists).map_or(0, |last| last + 1));
    found
}

/// Returns the prescribed box lengths at a step of a stage, before the updates of that step; `lengths` are those at the beginning of the
/// stage.
fn lengths_at(plan: &StagePlan, mut lengths: [f64; 3], [begin, step]: [u64; 2]) -> [f64; 3] {
    for u in &plan.updaters {
        let before = step.saturating_sub(1);
        let last = before - before % u.needs.period.max(1);
        for (length, prescribed) in lengths.iter_mut().zip(u.needs.box_lengths) {
            *length = prescribed.filter(|_| (begin..step).contains(&last)).map_or(*length, |v| v.at(last));
        }
    }
    lengths
}

/// Returns a component that changes the box during the stage.
fn changes_box<'a>(s: &Sampled<'a>) -> Option<&'a Arc<Component>> {
    let integrators = s.plan.integrators.iter().filter(|i| stage::has_phase(i, |p| p.sim_box && !p.shear));
    let [from, end] = s.steps;
    let prescribes = |u: &Component| {
        let period = u.needs.period.max(1);
        // a sample is in the box of the last update before it, and the next update may be a jump
        let (last, next) = (from.saturating_sub(period), from.div_ceil(period).saturating_mul(period));
        let mut lengths =
            u.needs.box_lengths.iter().zip(s.lengths).filter_map(|(v, length)| Some((v.as_ref()?, length)));
        lengths.any(|(v, length)| v.changes_between(last, end) || (next < end && v.at(next) != length))
    };
    let changes = |u: &&Arc<Component>| u.needs.changes_box && (u.needs.wants.thermo || prescribes(u));
    integrators.chain(s.plan.updaters.iter().filter(changes)).next()
}

fn check_one(c: &mut Check<'_>, a: &Arc<Component>, sampled: &[Sampled<'_>]) {
    let (Some(first), Some(last)) = (sampled.first(), sampled.last()) else { return };
    let (name, first, last) = (&a.name, &first.plan.stage, &last.plan.stage);
    if a.needs.lags {
        let rest = |other: &str| {
            format!("list one {name} in stage `{}` and another in stage `{other}`, with different files", first.name)
        };
        let gap = sampled.iter().find(|s| !s.lists).map(|s| &s.plan.stage);
        if let Some(other) = sampled.iter().map(|s| &s.plan.stage).find(|s| s.dt != first.dt) {
            let message = format!(
                "{name} needs samples at equal intervals of time, but `dt` is {} in stage `{}` and {} in stage `{}`; {}",
                first.dt,
                first.name,
                other.dt,
                other.name,
                rest(&other.name)
            );
            c.error(Some(a.at), message);
        } else if let Some(gap) = gap {
            let message = format!(
                "{name} needs samples at equal intervals of time, but stage `{}` between its samples does not list it; {}",
                gap.name,
                rest(&last.name)
            );
            c.error(Some(a.at), message);
        }
    }
    let changing = sampled.iter().find_map(|s| Some((&s.plan.stage, changes_box(s)?)));
    if let Some((stage, other)) = changing.filter(|_| a.needs.constant_box) {
        let message = format!(
            "{name} needs a constant box, which {} changes in stage `{}`; sample in a stage of constant volume",
            other.name, stage.name
        );
        c.error(Some(a.at), message);
    }
    let charging = sampled.iter().find_map(|s| {
        let updater = s.plan.updaters.iter().find(|u| u.needs.changes_charges)?;
        Some((&s.plan.stage, updater))
    });
    if let Some((stage, other)) = charging.filter(|_| a.needs.constant_charges) {
        let message = format!(
            "{name} needs constant charges, which {} may change in stage `{}`; sample in a stage without it",
            other.name, stage.name
        );
        c.error(Some(a.at), message);
    }
}
