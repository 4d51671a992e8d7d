//! Checks of constrained distances, and how many of them each integrator moves.

use super::super::bonds::Bond;
use super::{Check, StagePlan, stage};
use crate::plugins::Component;
use galamost_plugin_api::component::{Constraint, Kind};
use galamost_plugin_api::snapshot::{LinkList, Snapshot};
use galamost_plugin_api::tilt::nearest;
use std::sync::Arc;

/// Largest relative deviation of an initial length that the start of a run corrects.
const DEVIATION: f64 = 1.0 / 3.0;

/// Returns the bonds of the initial state whose length a force keeps.
pub fn bonds(force: &Component, s: &Snapshot) -> Vec<Constraint> {
    let constrained = |kind: u32| force.needs.constraints.iter().any(|(k, _)| *k == kind);
    let separation = |tags: [u32; 2]| {
        let [a, b] = tags.map(|t| s.position[t as usize]);
        nearest(std::array::from_fn(|k| a[k] - b[k]), s.box_length, s.tilt)
    };
    let bonds = s.bonds.iter().filter(|b| constrained(b.kind));
    bonds.map(|b| Constraint { tags: b.tags, kind: b.kind, r: separation(b.tags) }).collect()
}

/// Returns the forces of a stage that constrain distances.
fn constraining(plan: &StagePlan) -> impl Iterator<Item = &Arc<Component>> {
    plan.forces.iter().filter(|f| !f.needs.constraints.is_empty())
}

/// Counts the constraints in the group of each integrator of a stage.
pub fn count(plan: &mut StagePlan, s: Option<&Snapshot>) {
    let all: Vec<Constraint> = s.map_or(vec![], |s| constraining(plan).flat_map(|f| bonds(f, s)).collect());
    let inside = |i: &Component| {
        let contains = |tag: &u32| s.is_some_and(|s| i.needs.group.contains(*tag, s));
        all.iter().filter(|c| c.tags.iter().all(contains)).count() as u64
    };
    plan.constraints = plan.integrators.iter().map(|i| inside(i)).collect();
}

/// Checks the constraints of a stage. `begins` is set if the run begins from the initial state with this stage.
pub fn check(c: &mut Check<'_>, plan: &StagePlan, earlier: &[StagePlan], s: &Snapshot, begins: bool) {
    let all: Vec<&Arc<Component>> = constraining(plan).collect();
    let Some(force) = all.first() else { return };
    if let Some(second) = all.get(1) {
        let message = format!("{} already constrains distances in this stage; give all bond types to one", force.name);
        c.error(Some(second.at), message);
    }
    let bonds = bonds(force, s);
    if bonds.is_empty() {
        c.warn(Some(force.at), format!("{}: the initial state has no bonds of these types", force.name));
    }
    check_forces(c, plan, force, s);
    check_movers(c, plan, force, &bonds, s);
    check_updaters(c, plan, force);
    check_earlier(c, plan, earlier, force, s);
    if begins {
        check_lengths(c, force, &bonds, s);
    }
}

/// Checks that no bonded force acts on constrained bonds.
fn check_forces(c: &mut Check<'_>, plan: &StagePlan, force: &Component, s: &Snapshot) {
    let bonded = plan.forces.iter().filter(|f| f.kind == Kind::Bonded && f.needs.links == Some(LinkList::Bonds));
    for f in bonded {
        for (kind, length) in &force.needs.constraints {
            let bond = Bond::new(f, *kind, s.step);
            let acts = [0.9, 1.0, 1.1]
                .iter()
                .try_fold(false, |acts, scale| bond.force(scale * length).map(|f| acts || f.is_none_or(|f| f != 0.0)));
            if c.absorb(&f.name, f.at, acts) == Some(true) {
                let name = &s.bond_types[*kind as usize];
                let message = format!(
                    "{} acts on bonds of the type \"{name}\", whose length {} keeps; give them the row \"{name}\": None",
                    f.name, force.name
                );
                c.error(Some(f.at), message);
            }
        }
    }
}

/// Checks that one integrator which supports constraints moves both particles of each.
fn check_movers(c: &mut Check<'_>, plan: &StagePlan, force: &Component, bonds: &[Constraint], s: &Snapshot) {
    if let Some(tag) = bonds.iter().flat_map(|b| b.tags).find(|t| s.mass[*t as usize] == 0.0) {
        let message = format!("{}: particle {tag} has no mass and cannot be constrained", force.name);
        c.error(Some(force.at), message);
    }
    for i in plan.integrators.iter().filter(|i| i.needs.moves && !i.needs.constrainable) {
        if bonds.iter().any(|b| b.tags.iter().any(|t| i.needs.group.contains(*t, s))) {
            let message = format!(
                "{} does not support the constraints of {}; use VelocityVerlet, NoseHooverChain, Bussi, Langevin or MtkNpt, \
                 for example",
                i.name, force.name
            );
            c.error(Some(i.at), message);
        }
    }
    if plan.stage.steps == 0 || stage::movers(plan).next().is_none() {
        return;
    }
    let moved = |b: &&Constraint| {
        let contains = |i: &Arc<Component>| b.tags.iter().all(|t| i.needs.group.contains(*t, s));
        stage::movers(plan).any(contains)
    };
    if let Some(bond) = bonds.iter().find(|b| !moved(b)) {
        let [a, b] = bond.tags;
        let message = format!(
            "{}: no integrator of stage `{}` moves both particles {a} and {b} of a constraint; groups must contain both",
            force.name, plan.stage.name
        );
        c.error(Some(force.at), message);
    }
}

/// Checks that no updater breaks constraints.
fn check_updaters(c: &mut Check<'_>, plan: &StagePlan, force: &Component) {
    for u in &plan.updaters {
        let changes = |kind: u32| {
            u.needs.links == Some(LinkList::Bonds) && u.needs.link_types.as_ref().is_some_and(|t| t.contains(&kind))
        };
        if force.needs.constraints.iter().any(|(kind, _)| changes(*kind)) {
            let message = format!("{} changes bonds whose length {} keeps", u.name, force.name);
            c.error(Some(u.at), message);
        } else if !u.needs.constrainable {
            c.error(Some(u.at), format!("{} does not support the constraints of {}", u.name, force.name));
        }
    }
}

/// Checks that no updater of an earlier stage changes bonds of constrained types: constraints are those of the initial bonds.
fn check_earlier(c: &mut Check<'_>, plan: &StagePlan, earlier: &[StagePlan], force: &Component, s: &Snapshot) {
    for stage in earlier.iter().filter(|p| p.stage.steps > 0) {
        let changing = stage.updaters.iter().filter(|u| u.needs.links == Some(LinkList::Bonds));
        for u in changing.filter(|u| plan.updaters.iter().all(|own| own.id != u.id)) {
            let changes = |kind: u32| u.needs.link_types.as_ref().is_none_or(|t| t.contains(&kind));
            let Some((kind, _)) = force.needs.constraints.iter().find(|(kind, _)| changes(*kind)) else { continue };
            let message = format!(
                "{}: {} of stage `{}` changes bonds of the type \"{}\", but constraints are those of the initial bonds; write \
                 the state to a file and constrain it in another run",
                force.name, u.name, stage.stage.name, s.bond_types[*kind as usize]
            );
            c.error(Some(force.at), message);
        }
    }
}

/// Reports initial lengths far from those of the constraints.
fn check_lengths(c: &mut Check<'_>, force: &Component, bonds: &[Constraint], s: &Snapshot) {
    for (kind, length) in &force.needs.constraints {
        let deviation = |b: &Constraint| (b.r.iter().map(|x| x * x).sum::<f64>().sqrt() / length - 1.0).abs();
        let of_kind = bonds.iter().filter(|b| b.kind == *kind);
        let worst = of_kind.max_by(|a, b| deviation(a).total_cmp(&deviation(b)).then(b.tags.cmp(&a.tags)));
        let Some(worst) = worst.filter(|b| deviation(b) > DEVIATION) else { continue };
        let ([a, b], r) = (worst.tags, worst.r.iter().map(|x| x * x).sum::<f64>().sqrt());
        let name = &s.bond_types[*kind as usize];
        let message = format!(
            "{}: the bond of the particles {a} and {b} (type \"{name}\") has the initial length {r:.4}, more than a third \
             from its constraint {length}; start from better lengths, or first relax the system with a stiff bond",
            force.name
        );
        c.error(Some(force.at), message);
    }
}
