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
        if a.needs.lags || a.needs.constant_box {
            check_one(c, a, &sampled(a, stages, s.step));
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
    let first = a.needs.first_due(0);
    c.warn(
        Some(a.at),
        format!("{} writes nothing: it begins at step {first}, and its last stage ends at step {last}", a.name),
    );
}

/// Returns the stages with steps from the first sample of an analyzer to its last one, and whether they list it.
fn sampled<'a>(a: &Component, stages: &'a [StagePlan], mut begin: u64) -> Vec<(&'a StagePlan, bool)> {
    let mut found = vec![];
    for plan in stages.iter().filter(|p| p.stage.steps > 0) {
        let end = begin.saturating_add(plan.stage.steps);
        let lists = plan.analyzers.iter().any(|b| b.id == a.id);
        if !found.is_empty() || (lists && a.needs.first_due(begin) < end) {
            found.push((plan, lists));
        }
        begin = end;
    }
    found.truncate(found.iter().rposition(|(_, lists)| *lists).map_or(0, |last| last + 1));
    found
}

/// Returns a component that adjusts the box to the pressure. Lengths that are prescribed may be constant in the stage.
fn barostat(plan: &StagePlan) -> Option<&Arc<Component>> {
    let integrators = plan.integrators.iter().filter(|i| stage::has_phase(i, |p| p.sim_box && !p.shear));
    integrators.chain(plan.updaters.iter().filter(|u| u.needs.changes_box && u.needs.wants.thermo)).next()
}

fn check_one(c: &mut Check<'_>, a: &Arc<Component>, sampled: &[(&StagePlan, bool)]) {
    let (Some((first, _)), Some((last, _))) = (sampled.first(), sampled.last()) else { return };
    let (name, first, last) = (&a.name, &first.stage, &last.stage);
    if a.needs.lags {
        let rest = |other: &str| {
            format!("list one {name} in stage `{}` and another in stage `{other}`, with different files", first.name)
        };
        let gap = sampled.iter().find(|(_, lists)| !lists).map(|(p, _)| &p.stage);
        if let Some(other) = sampled.iter().map(|(p, _)| &p.stage).find(|s| s.dt != first.dt) {
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
    let changing = sampled.iter().find_map(|(p, _)| Some((&p.stage, barostat(p)?)));
    if let Some((stage, other)) = changing.filter(|_| a.needs.constant_box) {
        let message = format!(
            "{name} needs a constant box, which {} changes in stage `{}`; sample in a stage of constant volume",
            other.name, stage.name
        );
        c.error(Some(a.at), message);
    }
}
