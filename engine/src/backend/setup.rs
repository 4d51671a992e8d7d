//! Initial numbers of a run, and the messages of its faults.

use crate::pipeline::{ListChoice, Neighbors, Only};
use crate::plan::{Plan, StagePlan};
use crate::plugins::Component;
use crate::state::molecules::MoleculeRule;
use crate::state::reduction::MOST_TILT;
use crate::state::topology::PairRules;
use galamost_plugin_api::chunks::{CHUNK, in_chunks};
use galamost_plugin_api::component::{GroupNeed, Kind};
use galamost_plugin_api::error::{Error, Result};
use galamost_plugin_api::precision::Precision;
use galamost_plugin_api::views::{Fault, FaultKind, Globals};
use rayon::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Returns the radius of the neighbor list and its buffer; (0, 0) if no component needs a list.
pub fn list_radius(plan: &Plan) -> (f64, f64) {
    let cutoff = plan.components.iter().fold(0.0f64, |m, c| m.max(c.needs.cutoff));
    if cutoff == 0.0 {
        return (0.0, 0.0);
    }
    let buffer = plan.pipeline.neighbors.buffer.unwrap_or_else(|| choose_buffer(plan, cutoff));
    (cutoff + buffer, buffer)
}

/// Returns the rules for pairs that are no neighbors or whose forces are scaled.
pub fn pair_rules(plan: &Plan) -> PairRules {
    let Neighbors { exclude, special, .. } = plan.pipeline.neighbors;
    PairRules { exclude, special, molecules: plan.molecules.clone().filter(|_| special.scales()) }
}

/// Returns whether the list is built from the members of molecules instead of the cell grid: on a GPU, if the list has only
/// pairs inside of molecules, and molecules are smaller than a neighborhood.
pub fn lists_members(plan: &Plan) -> bool {
    let Some(rule) = plan.molecules.as_ref().filter(|r| r.only == Only::SameMolecule) else { return false };
    let s = &plan.snapshot;
    let cutoff = plan.components.iter().fold(0.0f64, |m, c| m.max(c.needs.cutoff));
    let near = s.len() as f64 / s.volume() * cutoff.powi(s.dimensions as i32);
    !matches!(plan.device, crate::device::Chosen::Cpu { .. }) && rule.mean_size() < 4.0 * near
}

/// Returns whether the neighbor list is staged in blocks: on a GPU, for large systems of even density whose components
/// need no other list than that of the pair loop. Decided by the whole system and all stages.
///
/// # Errors
/// Returns the plugin's error.
pub fn stages_list(plan: &Plan) -> Result<bool> {
    let choice = match (plan.pipeline.neighbors.list, std::env::var("GALAMOST_LIST").as_deref()) {
        (ListChoice::Auto, Ok("Plain")) => ListChoice::Plain,
        (ListChoice::Auto, Ok("Staged")) => ListChoice::Staged,
        (choice, _) => choice,
    };
    let prevented = staging_prevented(plan)?;
    Ok(match (choice, prevented) {
        (ListChoice::Plain, _) | (ListChoice::Auto, Some(_)) => false,
        (ListChoice::Staged, prevented) => prevented.is_none(),
        (ListChoice::Auto, None) => {
            let launched = plan.components.iter().any(|c| c.force().is_some());
            let large =
                plan.snapshot.len() >= if launched { STAGED_FROM_LAUNCHED } else { STAGED_FROM } && is_even(plan);
            large && !reads_tables(plan)?
        }
    })
}

/// Returns a component that reads the rows of the neighbor list itself, if there is one.
pub fn list_reader(plan: &Plan) -> Option<&Component> {
    list_readers(plan).next()
}

fn list_readers(plan: &Plan) -> impl Iterator<Item = &Component> {
    plan.components.iter().map(|c| &**c).filter(|c| c.kind != Kind::Pair && c.needs.cutoff > 0.0)
}

/// Returns whether the first of several ranks needs the rows of all particles: a component reads them that ranks do not share.
pub fn reads_all_rows(plan: &Plan, shares_forces: bool) -> bool {
    list_readers(plan).any(|c| !c.is_shared(shares_forces))
}

/// Returns why the list cannot be staged.
///
/// # Errors
/// Returns the plugin's error.
pub fn staging_prevented(plan: &Plan) -> Result<Option<String>> {
    let types = plan.snapshot.types.len();
    Ok(if plan.pipeline.precision == Precision::Double {
        Some("it needs the precision Mixed or Single".into())
    } else if plan.snapshot.dimensions != 3 {
        Some("it needs three dimensions".into())
    } else if !plan.components.iter().any(|c| c.kind == Kind::Pair) {
        Some("there are no pair potentials".into())
    } else if let Some(reader) = list_reader(plan) {
        Some(format!("{} reads neighbors itself", reader.name))
    } else if plan.molecules.is_some() {
        Some("`only` needs a plain list".into())
    } else if types > 256 {
        Some(format!("{types} particle types; at most 256 are supported"))
    } else if plan.shears()? {
        Some("images of the box move (Lees-Edwards)".into())
    } else if plan.is_triclinic() {
        Some("the box is triclinic".into())
    } else {
        None
    })
}

/// Returns whether a pair potential depends on orientations.
fn has_oriented_pairs(plan: &Plan) -> bool {
    let oriented = |c: &Component| c.kind == Kind::Pair && c.needs.arrays.iter().any(|a| a.name == "quaternion");
    plan.components.iter().any(|c| oriented(c))
}

/// Returns whether a pair potential reads numbers beside its row. A staged list leaves so little cache that tables come from farther
/// away: on an H200, 512,000 particles with a table of Lennard-Jones do 2,040 steps a second with a staged list, and 2,880 with
/// a plain one.
fn reads_tables(plan: &Plan) -> Result<bool> {
    for pair in plan.components.iter().filter_map(|c| c.pair()) {
        if pair.device(plan.pipeline.precision)?.text.as_str().contains("input.numbers") {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Number of particles from which a staged list is faster than the persistent kernel, which needs a plain one.
const STAGED_FROM: usize = 100_000;

/// Number of particles from which a staged list is faster if a force has separate kernels, so that steps are launched: on an H200, ions
/// with `Pppm` do 15,740 (plain) and 15,340 (staged) steps a second with 32,000, 10,930 and 11,230 with 64,000 particles.
const STAGED_FROM_LAUNCHED: usize = 50_000;

/// Returns whether cells with 256 particles on average have neither many more nor many less, and whether the box is
/// several such cells wide.
fn is_even(plan: &Plan) -> bool {
    let s = &plan.snapshot;
    let edge = (256.0 * s.volume() / s.len() as f64).cbrt();
    let cutoff = plan.components.iter().fold(0.0f64, |m, c| m.max(c.needs.cutoff));
    if s.box_length.iter().any(|l| *l < 3.0 * edge + 3.0 * cutoff) {
        return false;
    }
    let n = s.box_length.map(|l| (l / edge).floor().max(1.0));
    let count: Vec<_> = (0..n.iter().product::<f64>() as usize).map(|_| AtomicU32::new(0)).collect();
    s.position.as_slice().par_iter().with_min_len(CHUNK).for_each(|p| {
        let c: [usize; 3] =
            std::array::from_fn(|k| ((p[k] / s.box_length[k] + 0.5).rem_euclid(1.0) * n[k]).min(n[k] - 1.0) as usize);
        count[(c[2] * n[1] as usize + c[1]) * n[0] as usize + c[0]].fetch_add(1, Ordering::Relaxed);
    });
    let mean = s.len() as f64 / count.len() as f64;
    count.into_iter().all(|c| (0.25 * mean..2.5 * mean).contains(&f64::from(c.into_inner())))
}

/// Returns the buffer of least cost by a simple model, in units of one evaluated list entry per particle and step. The
/// cost has two parts: the entries of the list, and a rebuild whenever the fastest particle has moved b/2. A rebuild costs
/// a few units per entry and a sort that does not depend on the radius; on a GPU also the latency of a dozen kernels,
/// which matters for few particles. The model uses the input only, never a clock, so equal inputs give equal trajectories.
fn choose_buffer(plan: &Plan, cutoff: f64) -> f64 {
    /// Speed of the fastest particles in units of the thermal speed along one axis.
    const FASTEST: f64 = 4.0;
    let s = &plan.snapshot;
    let n = s.len() as f64;
    // fitted to measurements of LJ and DPD with list radii 1.2 to 4: on a CPU with 8,000 particles, on an H200 with 8,000
    // to 512,000
    let (per_entry, per_particle) = match &plan.device {
        crate::device::Chosen::Cpu { .. } => (2.5, 45.0),
        _ => (5.0, 60.0 + 1.2e7 / (n + 14_000.0)),
    };
    // a staged list tests entries without orientations, so entries beyond the cutoff cost less than others; measured on an H200 with
    // 195,000 to 1.6 million Janus particles and 512,000 rods
    let on_cpu = matches!(plan.device, crate::device::Chosen::Cpu { .. });
    let rebuild_weight =
        if !on_cpu && has_oriented_pairs(plan) && stages_list(plan).is_ok_and(|staged| staged) { 2.0 } else { 1.0 };
    let square = |v: &f64| v * v;
    let parts = in_chunks(s.len(), rayon::current_num_threads(), |range| {
        s.velocity[range].iter().flatten().map(square).sum::<f64>()
    });
    let v2: f64 = parts.into_iter().sum();
    let thermal = (v2 / (f64::from(s.dimensions) * n)).sqrt();
    let thermal = if thermal > 0.0 { thermal } else { 1.0 };
    let dt = plan.pipeline.stages.iter().fold(0.0f64, |m, s| m.max(s.dt));
    let within = |r: f64| {
        let sphere =
            if s.dimensions == 2 { std::f64::consts::PI * r * r } else { 4.0 / 3.0 * std::f64::consts::PI * r.powi(3) };
        (n / s.volume() * sphere).min(n)
    };
    // a list of pairs inside molecules keeps few of the particles that a rebuild examines, so a long buffer costs little
    let (partners, largest) = match &plan.molecules {
        Some(_) if lists_members(plan) => (n, 160),
        Some(rule) if rule.only == Only::SameMolecule => (rule.mean_size(), 80),
        _ => (n, 40),
    };
    let members = plan.molecules.as_ref().filter(|_| lists_members(plan)).map(MoleculeRule::mean_size);
    let cost = |b: f64| {
        // complete steps: a buffer between those for 2 and 3 steps is no better than the one for 2
        let interval = (0.5 * b / (FASTEST * thermal * dt) + 0.15).floor().max(1.0);
        let seen = members.unwrap_or_else(|| within(cutoff + b));
        seen.min(partners) + rebuild_weight * (per_entry * seen + per_particle) / interval
    };
    (1..=largest)
        .map(|k| 0.025 * f64::from(k) * cutoff)
        .min_by(|a, b| cost(*a).total_cmp(&cost(*b)))
        .unwrap_or(0.3 * cutoff)
}

/// Returns the degrees of freedom of the particles that move in a stage.
pub fn degrees_of_freedom(plan: &Plan, stage: &StagePlan) -> f64 {
    let (d, n) = (f64::from(plan.snapshot.dimensions), plan.snapshot.len());
    let movers = |i: &Arc<Component>| i.needs.moves && !i.needs.corrects;
    let integrators: Vec<_> = stage.integrators.iter().filter(|i| i.needs.moves).collect();
    // each constraint is in the group of one integrator that moves particles
    let constraints: u64 =
        stage.integrators.iter().zip(&stage.constraints).filter(|(i, _)| movers(i)).map(|(_, n)| n).sum();
    // a group that names all particles is all particles
    let whole = |group: &GroupNeed| {
        matches!(group, GroupNeed::All | GroupNeed::Massive)
            || (0..n as u32).all(|t| plan.snapshot.mass[t as usize] == 0.0 || group.contains(t, &plan.snapshot))
    };
    if integrators.iter().any(|i| whole(&i.needs.group)) || integrators.is_empty() {
        let massive = plan.snapshot.mass.as_slice().par_iter().filter(|m| **m > 0.0).count();
        let removed = if stage.conserves_momentum() { d } else { 0.0 };
        return d * massive as f64 - removed - constraints as f64;
    }
    let moved =
        (0..n as u32).filter(|t| integrators.iter().any(|i| i.needs.group.contains(*t, &plan.snapshot))).count();
    d * moved as f64 - constraints as f64
}

/// Returns the globals of a run before its first step.
pub fn initial_globals(plan: &Plan) -> Globals {
    let mut g = Globals::new();
    g.dimensions = plan.snapshot.dimensions;
    g.step = plan.snapshot.step;
    let (r_list, buffer) = list_radius(plan);
    (g.r_list, g.r_cut) = (r_list, r_list - buffer);
    (g.box_length, g.tilt) = (plan.snapshot.box_length, plan.snapshot.tilt);
    g.begin_list();
    for c in &plan.components {
        for (k, v) in c.needs.varyings.iter().enumerate() {
            let slot = c.first_varying as usize + k;
            g.varyings[slot] = *v;
            g.n_values = g.n_values.max(slot as u32 + 1);
        }
    }
    g.evaluate();
    // steps evaluate those that change
    let changes = |k: &u32| !g.varyings[*k as usize].is_constant();
    g.n_values = (0..g.n_values).rev().find(changes).map_or(0, |last| last + 1);
    g
}

/// Returns the limit of [`galamost_plugin_api::views::is_skewed()`] for a run; 0 if its box keeps its shape.
pub fn most_tilt(plan: &Plan) -> f64 {
    if plan.components.iter().any(|c| c.needs.changes_tilt) { MOST_TILT } else { 0.0 }
}

/// Checks that an integrator's state from a checkpoint has the size that this build of it uses.
///
/// # Errors
/// Returns an error if the sizes differ.
pub fn check_state_length(integrator: &Component, kept: usize, wanted: usize) -> Result<()> {
    if kept == wanted {
        return Ok(());
    }
    Err(Error::Run(format!(
        "{}: its state in the checkpoint has {kept} bytes; this build needs {wanted}",
        integrator.name
    )))
}

/// Returns the error of a fault: step, particle and probable cause.
pub fn fault_error(step: u64, f: Fault, component: Option<&Component>) -> Error {
    let who = component.map(|c| format!("{}: ", c.name)).unwrap_or_default();
    let kind = [
        FaultKind::NotFinite,
        FaultKind::ListOverflow,
        FaultKind::CellOverflow,
        FaultKind::BondTooLong,
        FaultKind::TopologyOverflow,
        FaultKind::Component,
        FaultKind::GridOutgrown,
        FaultKind::BoxTooSmall,
        FaultKind::RankLost,
    ]
    .into_iter()
    .find(|k| *k as u32 == f.code);
    let what = match kind {
        Some(FaultKind::NotFinite) => {
            "a particle would move by more than half the box, or by NaN, in one step: particles overlap, or dt is too long"
                .to_string()
        }
        Some(FaultKind::ListOverflow) => format!("the neighbor list needs {} entries per particle", f.detail),
        Some(FaultKind::CellOverflow) => format!("{} particles in one cell: the system has collapsed", f.detail),
        Some(FaultKind::BondTooLong) => format!("the bond to particle {} is longer than its potential allows", f.detail),
        Some(FaultKind::TopologyOverflow) => format!("a particle needs {} bonds, angles, dihedrals or impropers", f.detail),
        Some(FaultKind::Component) => match component.and_then(|c| c.needs.faults.get(f.detail as usize)) {
            Some(text) => text.clone(),
            None => format!("the component reports fault number {}", f.detail),
        },
        Some(FaultKind::GridOutgrown) => "the box is too small for the cells of the neighbor list".to_string(),
        Some(FaultKind::BoxTooSmall) => {
            let axis = ["x", "y", "z"].get(f.detail as usize).copied().unwrap_or("?");
            format!(
                "the box would be shorter than two cutoffs along {axis} (the height, if it is triclinic), or NaN: the pressure is out of \
                 control, the time constant is too short, or the box of a liquid changes its shape because its lengths vary \
                 independently (`couple`)"
            )
        }
        Some(FaultKind::RankLost) => format!("GPU number {} of this run has stopped answering", f.detail),
        None => format!("unknown fault {}", f.code),
    };
    // a fault of the box has no particle
    Error::Unstable { step, tag: (f.tag != u32::MAX).then_some(f.tag), what: format!("{who}{what}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A box can be too short at the right pressure, because it has changed its shape.
    #[test]
    fn a_short_box_has_several_causes() {
        let fault = Fault { code: FaultKind::BoxTooSmall as u32, detail: 1, ..Fault::default() };
        let message = fault_error(7, fault, None).to_string();
        assert!(message.contains("shorter than two cutoffs along y"), "{message}");
        assert!(message.contains("changes its shape because its lengths vary independently (`couple`)"), "{message}");
    }
}
