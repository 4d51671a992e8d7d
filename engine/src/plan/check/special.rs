//! Checks of special pairs: every component must be able to scale its forces.

use super::{Check, StagePlan};
use crate::pipeline::{Only, Weight};
use galamost_plugin_api::component::Kind;
use galamost_plugin_api::snapshot::Snapshot;

/// Checks what special pairs need of the run as a whole.
pub fn check_run(c: &mut Check<'_>, snapshot: Option<&Snapshot>) {
    let neighbors = c.pipeline.neighbors;
    warn_of_absent(c, snapshot);
    if neighbors.special.reach() == 0 {
        return;
    }
    if neighbors.only == Some(Only::OtherMolecules) {
        let message =
            "`only: OtherMolecules` removes all pairs of a molecule, so `special` has none to scale; remove one";
        c.error(neighbors.special_at, message);
    }
    if c.pipeline.ranks() > 1 && neighbors.special.scales() {
        let message = format!("special pairs with a weight between 0 and 1 need {}", c.one_rank());
        c.error(neighbors.special_at, message);
    }
    if snapshot.is_some_and(|s| s.bonds.is_empty()) && !has_updaters(c) {
        c.warn(neighbors.special_at, "the initial state has no bonds, so no pairs are special");
    }
}

/// Returns whether the topology may change.
fn has_updaters(c: &Check<'_>) -> bool {
    !c.pipeline.updaters.is_empty() || c.pipeline.stages.iter().any(|s| s.updaters.iter().flatten().next().is_some())
}

/// Warns if none of the excluded pairs exist.
fn warn_of_absent(c: &mut Check<'_>, snapshot: Option<&Snapshot>) {
    let (e, Some(s)) = (c.pipeline.neighbors.exclude, snapshot) else { return };
    let kinds = [
        (e.bonds, "bonds", s.bonds.is_empty()),
        (e.angles, "angles", s.angles.is_empty()),
        (e.dihedrals, "dihedrals", s.dihedrals.is_empty()),
        (e.impropers, "impropers", s.impropers.is_empty()),
    ];
    let excluded = || kinds.iter().filter(|(excluded, ..)| *excluded);
    let names: Vec<&str> = excluded().map(|(_, name, _)| *name).collect();
    if !names.is_empty() && excluded().all(|(.., absent)| *absent) && !has_updaters(c) {
        let message = format!("the initial state has no {}, so no pairs are excluded", names.join(", "));
        c.warn(c.pipeline.neighbors.exclude_at, message);
    }
}

/// Checks the components of a stage.
pub fn check(c: &mut Check<'_>, plan: &StagePlan) {
    let special = c.pipeline.neighbors.special;
    if !special.scales() {
        return;
    }
    for f in &plan.forces {
        let fraction = |w: Weight| ![0.0, 1.0].contains(&w.of(f.reads_charges()));
        if f.kind == Kind::Pair && !f.needs.conservative && special.weights().into_iter().any(fraction) {
            let message = format!(
                "{} has friction or noise, which weights of `special` between 0 and 1 cannot scale; use 0 or 1",
                f.name
            );
            c.error(Some(f.at), message);
        }
    }
    let readers = plan.forces.iter().chain(&plan.integrators).filter(|f| f.kind != Kind::Pair && f.needs.cutoff > 0.0);
    for f in readers {
        let message = format!(
            "{} finds pairs itself and cannot scale their forces; use the weights 0 or 1 in `special`, equal for `pair` and \
             `coulomb`",
            f.name
        );
        c.error(Some(f.at), message);
    }
}
