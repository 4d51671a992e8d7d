//! The check of the replicas of a pipeline together.

use super::stages_list;
use crate::device::Chosen;
use crate::diagnostic::{Diagnostic, counted};
use crate::plan::files::{FileUse, RunFile, collisions_between};
use crate::plan::{Plan, StagePlan, corrections_differ};
use crate::plugins::Component;
use galamost_plugin_api::error::Result;
use galamost_plugin_api::snapshot::Snapshot;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The largest number of particles of a replica on a GPU. Larger systems fill a GPU alone.
const MAX_PARTICLES: usize = 50_000;

/// Returns every reason why the replicas of a pipeline cannot run together. Errors are those of the file that they were made
/// from, each once.
///
/// # Errors
/// Returns the plugin's error.
pub fn check_replicas(plans: &[&Plan]) -> Result<Vec<Diagnostic>> {
    let mut errors = vec![];
    for plan in plans {
        let pipeline = &plan.pipeline;
        let mut error = |at, message: String| errors.push(Diagnostic::new(&pipeline.path, at, message));
        if !pipeline.ensemble.is_empty() {
            error(None, "replicas need particles; a pipeline of samplers has none".into());
        }
        let n = plan.snapshot.len();
        if !matches!(plan.device, Chosen::Cpu { .. }) {
            if n > MAX_PARTICLES {
                let particles = counted(n as u64, "particle");
                error(None, format!("{particles}; replicas on a GPU have at most {MAX_PARTICLES}; use separate runs"));
            } else if stages_list(plan)? {
                error(None, "replicas need a plain neighbor list; set `neighbors: (list: Plain)`".into());
            }
        }
    }
    errors.extend(exchange_errors(plans));
    let shared = shared_files(plans);
    errors.extend(if shared.is_empty() { collisions_between(plans.iter().map(|p| &p.files[..])) } else { shared });
    let mut located: Vec<Diagnostic> = vec![];
    for error in errors {
        let plan = plans.iter().find(|p| p.pipeline.path == error.file);
        let error = plan.map_or(error.clone(), |p| p.pipeline.locate(error));
        if !located.contains(&error) {
            located.push(error);
        }
    }
    Ok(located)
}

/// Returns every reason why replicas cannot exchange their particles: they differ in more than motion and parameters of
/// components. Each reason names the first replica that differs from replica 0.
fn exchange_errors(plans: &[&Plan]) -> Vec<Diagnostic> {
    let Some((first, others)) = plans.split_first() else { return vec![] };
    let differs = |p: &&Plan| p.pipeline.exchange.is_some() != first.pipeline.exchange.is_some();
    let Some(exchange) = plans.iter().find_map(|p| p.pipeline.exchange.as_ref()) else { return vec![] };
    let error = |p: &Plan, what: &str| {
        let message = format!(
            "replicas that exchange particles must have the same {what}; those of replicas 0 and {} differ",
            p.pipeline.replica.unwrap_or(0)
        );
        Diagnostic::new(&p.pipeline.path, p.pipeline.exchange.as_ref().map(|e| e.at), message)
    };
    let mut errors = vec![];
    if others.is_empty() {
        errors.push(Diagnostic::new(
            &first.pipeline.path,
            Some(exchange.at),
            "an exchange needs at least two replicas",
        ));
    }
    let mut reasons = BTreeSet::new();
    let mut differ = |p: &Plan, what: &str| {
        if reasons.insert(what.to_string()) {
            errors.push(error(p, what));
        }
    };
    for p in others {
        let settings = |p: &Plan| p.pipeline.exchange.as_ref().map(|e| (e.every, e.file.clone()));
        let checkpoint = |p: &Plan| (p.pipeline.checkpoint.every, p.pipeline.checkpoint.minutes.map(f64::to_bits));
        let steps = |p: &Plan| p.stages.iter().map(|s| s.stage.steps).collect::<Vec<_>>();
        let names = |p: &Plan| p.components.iter().map(|c| (c.kind, c.name.clone())).collect::<Vec<_>>();
        let same = [
            ("`exchange`", !differs(p) && settings(p) == settings(first)),
            ("`checkpoint`", checkpoint(p) == checkpoint(first)),
            ("steps in each stage", steps(p) == steps(first)),
            ("components", names(p) == names(first)),
            ("`precision`", p.pipeline.precision == first.pipeline.precision),
            ("first step", p.snapshot.step == first.snapshot.step),
            (
                "box",
                (p.snapshot.box_length, p.snapshot.tilt, p.snapshot.dimensions)
                    == (first.snapshot.box_length, first.snapshot.tilt, first.snapshot.dimensions),
            ),
            ("numbers of particles of each type and mass", composition(&p.snapshot) == composition(&first.snapshot)),
            ("bonds, angles, dihedrals and impropers", topology(&p.snapshot) == topology(&first.snapshot)),
        ];
        same.iter().filter(|(_, same)| !same).for_each(|(what, _)| differ(p, what));
        if same.iter().all(|(_, same)| *same) {
            if let Some(name) = groups_differ(first, p) {
                differ(p, &format!("particles in the group of {name}"));
            }
            if let Some(name) = corrections_differ(first, p) {
                differ(
                    p,
                    &format!("parameters of {name} (it has no energy; use a wall with one, for example HarmonicWall)"),
                );
            }
            if frozen_places(first) != frozen_places(p) {
                differ(p, "places of particles that no integrator moves");
            }
        }
        let arrays = |s: &Snapshot, name: &str| s.arrays.get(name).cloned();
        let constant = CONSTANT_ARRAYS.iter().filter(|name| arrays(&p.snapshot, name) != arrays(&first.snapshot, name));
        constant.for_each(|name| differ(p, &format!("array `{name}`")));
    }
    errors
}

/// Returns a component whose group has other particles in the second of two replicas with the same components.
fn groups_differ<'a>(first: &'a Plan, second: &Plan) -> Option<&'a str> {
    let tags = || 0..first.snapshot.len() as u32;
    let differ = |(a, b): &(&Arc<Component>, &Arc<Component>)| {
        let (a, b) = (&a.needs.group, &b.needs.group);
        tags().any(|t| a.contains(t, &first.snapshot) != b.contains(t, &second.snapshot))
    };
    first.components.iter().zip(&second.components).find(differ).map(|(a, _)| a.name.as_str())
}

/// Returns tags and positions of the particles that no integrator moves in some stage.
fn frozen_places(plan: &Plan) -> Vec<(u32, [f64; 3])> {
    let s = &plan.snapshot;
    let frozen = |stage: &StagePlan, tag: u32| {
        let movers = || stage.integrators.iter().filter(|i| i.needs.moves && !i.needs.corrects);
        movers().next().is_some() && !movers().any(|i| i.needs.group.contains(tag, s))
    };
    let tags = (0..s.len() as u32).filter(|t| plan.stages.iter().any(|stage| frozen(stage, *t)));
    tags.map(|t| (t, s.position[t as usize])).collect()
}

/// Arrays that do not change with the motion of particles. Types and masses move with them.
const CONSTANT_ARRAYS: [&str; 5] = ["charge", "diameter", "body", "molecule", "inert"];

/// Returns the names of types, and type and mass of all particles, sorted.
fn composition(s: &Snapshot) -> (&[String], Vec<(u32, u64)>) {
    let mut all: Vec<(u32, u64)> = s.type_id.iter().copied().zip(s.mass.iter().map(|m| m.to_bits())).collect();
    all.sort_unstable();
    (&s.types, all)
}

/// Returns the lists of the topology and the names of their types.
fn topology(s: &Snapshot) -> impl PartialEq {
    let links = (s.bonds.clone(), s.angles.clone(), s.dihedrals.clone(), s.impropers.clone());
    (links, s.bond_types.clone(), s.angle_types.clone(), s.dihedral_types.clone(), s.improper_types.clone())
}

/// Returns an error for each file that the first two replicas would both write.
fn shared_files(plans: &[&Plan]) -> Vec<Diagnostic> {
    let [first, second, ..] = plans else { return vec![] };
    let written = |f: &&RunFile| matches!(f.usage, FileUse::Output(_) | FileUse::Checkpoint);
    let both = |f: &&RunFile| {
        first.files.iter().filter(written).any(|g| g.owner == f.owner && g.target.path() == f.target.path())
    };
    let error = |f: &RunFile| {
        let (stem, ending) =
            f.shown.split_once('.').map_or((f.shown.as_str(), String::new()), |(s, e)| (s, format!(".{e}")));
        let message = format!(
            "every replica would write `{}`; add {{replica}} to the name, as in `{stem}.{{replica}}{ending}`",
            f.shown
        );
        let mut d = Diagnostic::new(&f.pipeline, f.at, message);
        d.component = f.owner.component().map(Into::into);
        d
    };
    second.files.iter().filter(written).filter(both).map(error).collect()
}
