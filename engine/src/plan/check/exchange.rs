//! The check of `exchange: (…)` in the pipeline of one replica.

use super::stage::has_phase;
use super::{Check, Plan, StagePlan};
use crate::plugins::Component;
use galamost_plugin_api::component::Kind;
use galamost_plugin_api::integrator::GroupInfo;
use std::sync::Arc;

/// Adds an error for everything that prevents this replica from exchanging particles.
pub fn check(c: &mut Check<'_>, stages: &[StagePlan]) {
    let Some(exchange) = c.pipeline.exchange.clone() else { return };
    let at = Some(exchange.at);
    if c.pipeline.replica.is_none() {
        let message = "an exchange needs all replicas in one run: set `replicas`, or run the pipeline that this one was made from";
        return c.error(at, message);
    }
    let settings = &c.pipeline.checkpoint;
    if let Some(every) = settings.every.filter(|every| !every.is_multiple_of(exchange.every)) {
        let message = format!(
            "checkpoints every {every} steps; they are written at steps with attempts to exchange, so `every` of `checkpoint` must \
             be a multiple of {}",
            exchange.every
        );
        c.error(at, message);
    }
    if settings.keep < 2 {
        let message = "`keep` of `checkpoint` must be at least 2: if the run is killed, all replicas resume from checkpoints of the \
                       same attempt";
        c.error(at, message);
    }
    for stage in stages.iter().filter(|s| s.stage.steps > 0) {
        check_temperature(c, stage);
        check_distribution(c, stage);
    }
}

/// Returns an integrator that corrects positions and whose parameters differ in the second of two replicas with the same components. No
/// energy forbids positions that it would correct, so replicas would accept them in an exchange.
pub fn corrections_differ<'a>(first: &'a Plan, second: &Plan) -> Option<&'a str> {
    let state = |c: &Component| c.integrator().and_then(|i| i.state(&GroupInfo::default()).ok());
    let differ = |(a, b): &(&Arc<Component>, &Arc<Component>)| a.needs.corrects && state(a) != state(b);
    first.components.iter().zip(&second.components).find(differ).map(|(a, _)| a.name.as_str())
}

/// Checks that the stage has one temperature.
fn check_temperature(c: &mut Check<'_>, stage: &StagePlan) {
    let mut all = stage.thermostats();
    let Some((first, kt)) = all.next() else {
        let message = format!(
            "stage `{}` has no thermostat that samples the canonical distribution, as an exchange of replicas needs it: use \
             Langevin, Bussi or NoseHooverChain, for example; relax overlaps in a pipeline without `exchange`, and begin from its last \
             frame",
            stage.stage.name
        );
        return c.error(Some(stage.stage.at), message);
    };
    for (component, other) in std::iter::once((first, kt)).chain(all) {
        let message = if !other.is_constant() {
            format!("{}: kT changes with time, but replicas exchange particles at a constant one", component.name)
        } else if other.at(0) != kt.at(0) {
            let (a, b) = (kt.at(0), other.at(0));
            format!(
                "{} has kT {b}, but {} has {a}; replicas that exchange particles have one temperature",
                component.name, first.name
            )
        } else {
            continue;
        };
        c.error(Some(component.at), message);
    }
}

/// Checks that no component of the stage drives the system or changes what an exchange does not.
fn check_distribution(c: &mut Check<'_>, stage: &StagePlan) {
    let others = stage.forces.iter().chain(&stage.updaters);
    for i in stage.integrators.iter().chain(others) {
        let force = i.kind == Kind::Force && !i.needs.conservative && i.needs.kt.is_none();
        if i.needs.drives || force || (i.kind == Kind::Integrator && has_phase(i, |p| p.shear)) {
            c.error(Some(i.at), format!("{} drives a flow; replicas exchange particles in equilibrium only", i.name));
        } else if i.needs.kt.is_none() && i.needs.varyings.iter().any(|v| !v.is_constant()) {
            let message = format!(
                "a parameter of {} changes with time, but replicas exchange particles in equilibrium only",
                i.name
            );
            c.error(Some(i.at), message);
        }
    }
    for i in &stage.integrators {
        if has_phase(i, |p| p.sim_box) {
            c.error(
                Some(i.at),
                format!("{} changes the box; replicas exchange particles at constant volume only", i.name),
            );
        }
    }
    for u in &stage.updaters {
        if u.needs.changes_box {
            c.error(
                Some(u.at),
                format!("{} changes the box; replicas exchange particles at constant volume only", u.name),
            );
        } else if u.needs.links.is_some() {
            c.error(
                Some(u.at),
                format!("{} changes the topology, which must be the same in replicas that exchange particles", u.name),
            );
        }
    }
    for f in stage.forces.iter().filter(|f| f.needs.history) {
        let message = format!(
            "{} depends on earlier positions, which an exchange of replicas does not move; compute it anew in every step",
            f.name
        );
        c.error(Some(f.at), message);
    }
}
