//! Checks of the components of a stage together.

use super::{Check, StagePlan, boxes, state};
use crate::plugins::Component;
use galamost_plugin_api::component::{GroupNeed, Kind};
use galamost_plugin_api::snapshot::{Link, Snapshot, Values};
use std::sync::Arc;
use tracing::info;

/// Checks a stage.
pub fn check(
    c: &mut Check<'_>,
    plan: &StagePlan,
    earlier: &[StagePlan],
    snapshot: Option<&Snapshot>,
    changes_tilt: Option<&str>,
) {
    if plan.stage.steps > 0 && movers(plan).next().is_none() {
        let message = format!("stage `{}` has no integrator: nothing would move", plan.stage.name);
        c.error(Some(plan.stage.at), message);
    }
    let Some(s) = snapshot else { return };
    check_corrections(c, plan, s);
    check_shear(c, plan, earlier);
    warn_damped_flow(c, plan, earlier);
    check_triclinic(c, plan, s, changes_tilt);
    check_virial(c, plan);
    boxes::check(c, plan);
    check_shares(c, plan);
    check_long_range(c, plan, earlier);
    check_movers(c, plan, s);
    check_velocities(c, plan, s);
    check_degrees_of_freedom(c, plan, s);
    check_rotation(c, plan, s);
    check_massless(c, plan, s);
    note_missing_topology(plan, s);
}

/// Integrators that move particles, without those that only correct what others moved.
pub fn movers(plan: &StagePlan) -> impl Iterator<Item = &Arc<Component>> {
    plan.integrators.iter().filter(|m| m.needs.moves && !m.needs.corrects)
}

/// Returns whether a phase of an integrator meets a condition.
pub fn has_phase(c: &Component, condition: impl Fn(&galamost_plugin_api::integrator::PhaseInfo) -> bool) -> bool {
    c.integrator().is_some_and(|i| i.program().is_ok_and(|p| p.phases.iter().any(condition)))
}

/// Returns whether the group that the pipeline gives an integrator contains a particle. Its group in the plan is without particles that
/// have no mass.
fn is_named(integrator: &Component, tag: u32, s: &Snapshot) -> bool {
    match &integrator.needs.group {
        GroupNeed::Massive => true,
        GroupNeed::And(groups) => match groups.as_slice() {
            [named, GroupNeed::Massive] => named.contains(tag, s),
            _ => groups.iter().all(|g| g.contains(tag, s)),
        },
        group => group.contains(tag, s),
    }
}

/// Checks that integrators that correct have something to correct.
fn check_corrections(c: &mut Check<'_>, plan: &StagePlan, s: &Snapshot) {
    let correcting: Vec<_> = plan.integrators.iter().filter(|m| m.needs.corrects).collect();
    for a in &correcting {
        let placed = |tag: &u32| s.mass[*tag as usize] == 0.0 && is_named(a, *tag, s);
        if let Some(tag) = (0..s.len() as u32).find(placed) {
            let message = format!(
                "{} cannot correct particle {tag}, which has no mass and follows others, such as a bead of a rigid body; give it a \
                 `group` without such particles, or use a force, such as WcaWall",
                a.name
            );
            c.error(Some(a.at), message);
        }
        let moved = |tag: u32| movers(plan).any(|m| m.needs.group.contains(tag, s));
        if let Some(tag) = (0..s.len() as u32).find(|tag| a.needs.group.contains(*tag, s) && !moved(*tag)) {
            let message = format!("no integrator moves particle {tag}, which {} corrects; give it a `group`", a.name);
            c.error(Some(a.at), message);
        }
    }
    let carrying =
        || movers(plan).filter(|m| m.integrator().is_some_and(|i| i.program().is_ok_and(|p| p.carries_velocity)));
    if let (Some(a), Some(first)) = (correcting.first(), carrying().next())
        && let Some(other) = carrying().find(|m| m.name != first.name)
    {
        let message = format!("{} cannot correct both {} and {}; use one of them", a.name, first.name, other.name);
        c.error(Some(a.at), message);
    }
}

/// Returns the integrators that displace the images of the box.
fn shearing(plan: &StagePlan) -> impl Iterator<Item = &Arc<Component>> {
    plan.integrators.iter().filter(|i| has_phase(i, |p| p.shear))
}

/// Warns about thermostats that damp the flow of a sheared box, also those of barostats. One that scales all velocities conserves
/// momentum; others have friction or collisions relative to a liquid at rest.
fn warn_damped_flow(c: &mut Check<'_>, plan: &StagePlan, earlier: &[StagePlan]) {
    let Some(shear) = shearing(plan).next().filter(|_| plan.stage.steps > 0) else { return };
    // a barostat has no `kt`, which is that of a thermostat at constant volume
    let is_thermostat = |i: &&Arc<Component>| i.needs.kt.is_some() || has_phase(i, |p| p.sim_box && !p.shear);
    for i in movers(plan).filter(is_thermostat).filter(|i| !i.needs.conserves_momentum) {
        // once for stages with the same integrators
        let both = |p: &StagePlan| p.stage.steps > 0 && shearing(p).next().is_some() && movers(p).any(|m| m.id == i.id);
        if earlier.iter().any(both) {
            continue;
        }
        let message = format!(
            "{} damps velocities relative to a liquid at rest, and so the flow of {}: the profile is not v_x = γ̇ y; use a thermostat \
             that acts on relative velocities, such as Dpd or DpdThermostat",
            i.name, shear.name
        );
        c.warn(Some(i.at), message);
    }
}

/// Checks that one component displaces the images of a sheared box, and that none ignores it. Images remain displaced in stages
/// after the one that displaces them.
fn check_shear(c: &mut Check<'_>, plan: &StagePlan, earlier: &[StagePlan]) {
    if let Some(second) = shearing(plan).nth(1) {
        let message = format!("{} already displaces the images of the box in this stage; remove one", second.name);
        c.error(Some(second.at), message);
    }
    let stages = earlier.iter().filter(|p| p.stage.steps > 0).chain([plan]);
    let Some((shear, stage)) = stages.filter_map(|p| Some((shearing(p).next()?, p))).next() else { return };
    let all = plan.forces.iter().chain(&plan.integrators).chain(&plan.updaters).chain(&plan.analyzers);
    for other in all.filter(|c| c.needs.plain_images) {
        let remain = match stage.stage.at == plan.stage.at {
            true => String::new(),
            false => format!(", which remain displaced after stage `{}`", stage.stage.name),
        };
        let message = format!("{} does not know the displaced images of {}{remain}", other.name, shear.name);
        c.error(Some(other.at), message);
    }
}

/// Checks that all components of a stage support a triclinic box, and that one device has it. `changes_tilt` is the name of a
/// component that changes the tilt factors.
fn check_triclinic(c: &mut Check<'_>, plan: &StagePlan, s: &Snapshot, changes_tilt: Option<&str>) {
    if !s.is_tilted() && changes_tilt.is_none() {
        return;
    }
    let all = plan.forces.iter().chain(&plan.integrators).chain(&plan.updaters).chain(&plan.analyzers);
    for other in all.filter(|c| !c.needs.triclinic) {
        let [xy, xz, yz] = s.tilt;
        let why = match changes_tilt.filter(|_| !s.is_tilted()) {
            None => format!("the initial state has the tilt factors xy = {xy}, xz = {xz}, yz = {yz}"),
            Some(name) => format!("{name} changes the tilt factors of the box, which is triclinic in all stages then"),
        };
        let message = format!("{} does not support triclinic boxes; {why}", other.name);
        c.error(Some(other.at), message);
    }
    let all = plan.forces.iter().chain(&plan.integrators).chain(&plan.updaters).chain(&plan.analyzers);
    if let Some(name) = changes_tilt {
        for other in all.filter(|c| c.needs.triclinic && c.needs.constant_tilt) {
            let message = format!("{} needs constant tilt factors of the box; {name} changes them", other.name);
            c.error(Some(other.at), message);
        }
    }
    check_symmetric_virial(c, plan);
    if c.pipeline.ranks() > 1 {
        let message = format!("a triclinic box needs {}", c.one_rank());
        c.error(Some(plan.stage.at), message);
    }
}

/// Checks that no barostat changes tilt factors by the virial of an oriented pair potential. Its Σ r F is not symmetric, but the stored
/// virial is.
fn check_symmetric_virial(c: &mut Check<'_>, plan: &StagePlan) {
    let barostat = plan.integrators.iter().find(|i| i.needs.changes_tilt && has_phase(i, |p| p.moves));
    let is_oriented =
        |f: &&Arc<Component>| f.kind == Kind::Pair && f.needs.arrays.iter().any(|a| a.name == "quaternion");
    if let (Some(barostat), Some(f)) = (barostat, plan.forces.iter().find(is_oriented)) {
        let message = format!(
            "{}: the stress of {} is not symmetric, because particles exert torques on each other; keep the tilt factors, \
             for example with RotationalMtkNpt",
            barostat.name, f.name
        );
        c.error(Some(barostat.at), message);
    }
}

/// Checks that no component needs the pressure of a force without virial.
fn check_virial(c: &mut Check<'_>, plan: &StagePlan) {
    let Some(f) = plan.forces.iter().find(|f| f.needs.without_virial) else { return };
    let barostats = plan.integrators.iter().filter(|i| has_phase(i, |p| p.sim_box && !p.shear));
    for other in barostats.chain(plan.updaters.iter().filter(|u| u.needs.wants.thermo)) {
        let message = format!("{} has no virial, so there is no pressure that {} could use", f.name, other.name);
        c.error(Some(other.at), message);
    }
}

/// Checks that forces assign their energies and virials to particles where an analyzer reads these.
fn check_shares(c: &mut Check<'_>, plan: &StagePlan) {
    for a in &plan.analyzers {
        let virials = a.needs.arrays.iter().any(|n| n.name == "virial");
        for f in plan.forces.iter().filter(|f| f.force().is_some()) {
            let lacks = [
                ("energies", a.needs.wants.energies && !f.needs.particle_energies),
                ("virials", virials && !f.needs.particle_virials),
            ];
            for (what, _) in lacks.into_iter().filter(|(_, lacking)| *lacking) {
                let message =
                    format!("{} has no {what} of the particles, which {} writes; leave them out", f.name, a.name);
                c.error(Some(a.at), message);
            }
        }
    }
}

/// Checks that the neighbor list and the box suit forces of long range. Their parameters are for the box of the initial state, so no
/// earlier stage may have changed it.
fn check_long_range(c: &mut Check<'_>, plan: &StagePlan, earlier: &[StagePlan]) {
    fn changing(plan: &StagePlan) -> Option<&Arc<Component>> {
        let barostats = plan.integrators.iter().filter(|i| has_phase(i, |p| p.sim_box && !p.shear));
        barostats.chain(plan.updaters.iter().filter(|u| u.needs.changes_box)).next()
    }
    for f in plan.forces.iter().filter(|f| f.kind == Kind::Pair && f.force().is_some()) {
        if c.pipeline.neighbors.only.is_some() {
            let message = format!("{} acts between all particles and cannot be restricted by `only`", f.name);
            c.error(Some(f.at), message);
        }
    }
    for f in &plan.forces {
        let Some(instead) = &f.needs.fixed_box else { continue };
        // an earlier stage with the force has its own error
        let before = earlier.iter().filter(|p| p.stage.steps > 0 && p.forces.iter().all(|other| other.id != f.id));
        let found = [plan].into_iter().chain(before).find_map(|p| Some((changing(p)?, p)));
        let Some((other, stage)) = found else { continue };
        let in_stage = match stage.stage.at == plan.stage.at {
            true => String::new(),
            false => format!(" in stage `{}`", stage.stage.name),
        };
        let message = format!(
            "{} has chosen parameters for the initial box, which {} changes{in_stage}; {instead}",
            f.name, other.name
        );
        c.error(Some(f.at), message);
    }
}

/// Checks that at most one integrator moves each particle.
fn check_movers(c: &mut Check<'_>, plan: &StagePlan, s: &Snapshot) {
    let movers: Vec<_> = movers(plan).collect();
    for (k, a) in movers.iter().enumerate() {
        for b in &movers[..k] {
            let both =
                (0..s.len() as u32).find(|tag| a.needs.group.contains(*tag, s) && b.needs.group.contains(*tag, s));
            if let Some(tag) = both {
                let message = format!("{} and {} both move particle {tag}; give them different groups", b.name, a.name);
                c.error(Some(a.at), message);
            }
        }
    }
}

/// Checks that the group of a thermostat has degrees of freedom. Constraints are not counted.
fn check_degrees_of_freedom(c: &mut Check<'_>, plan: &StagePlan, s: &Snapshot) {
    let massive = || (0..s.len() as u32).filter(|tag| s.mass[*tag as usize] > 0.0);
    let conserved = plan.conserves_momentum();
    for i in plan
        .integrators
        .iter()
        .filter(|i| i.needs.moves && (i.needs.kt.is_some() || i.needs.rescales) && plan.stage.steps > 0)
    {
        let n = massive().filter(|tag| i.needs.group.contains(*tag, s)).take(2).count();
        let removed = usize::from(conserved && massive().take(2).count() <= n);
        if n <= removed {
            let message = format!(
                "{}: the group of {n} particle(s) has no degrees of freedom; a thermostat needs at least one",
                i.name
            );
            c.error(Some(i.at), message);
        }
    }
}

/// Checks that the group of a thermostat that scales angular momenta has a particle that can rotate.
fn check_rotation(c: &mut Check<'_>, plan: &StagePlan, s: &Snapshot) {
    let scaling = |i: &&Arc<Component>| i.needs.rescales && state::rotates(i) && plan.stage.steps > 0;
    for i in movers(plan).filter(scaling) {
        let can_rotate = |tag: u32| i.needs.group.contains(tag, s) && state::has_vector("inert", tag, s);
        if (0..s.len() as u32).any(can_rotate) {
            continue;
        }
        // with bodies, an integrator of oriented particles is required
        let has_bodies = s.mass.contains(&0.0) && plan.forces.iter().any(|f| f.needs.places && state::rotates(f));
        let remedy = match has_bodies {
            true => {
                "use RotationalVerlet or RotationalLangevin, give the bodies beads with mass at several places, or use single particles \
                 instead of bodies"
            }
            false => "use an integrator without rotation, or give the particles moments of inertia (`Orientations`)",
        };
        let message = format!(
            "{}: no particle of its group has moments of inertia, so it has no rotation to control; {remedy}",
            i.name
        );
        c.error(Some(i.at), message);
    }
}

/// Checks that updaters change the velocities of particles only that integrators move.
fn check_velocities(c: &mut Check<'_>, plan: &StagePlan, s: &Snapshot) {
    let moved = |tag: u32| movers(plan).any(|m| m.needs.group.contains(tag, s));
    for u in plan.updaters.iter().filter(|u| u.needs.changes_velocities && plan.stage.steps > 0) {
        let frozen = |tag: &u32| u.needs.group.contains(*tag, s) && s.mass[*tag as usize] > 0.0 && !moved(*tag);
        if let Some(tag) = (0..s.len() as u32).find(frozen) {
            let message = format!(
                "{} would give a velocity to particle {tag}, which no integrator moves; give it a `group`",
                u.name
            );
            c.error(Some(u.at), message);
        }
    }
}

/// Returns the first particle without mass that a force does not place.
fn not_placed(f: &Component, s: &Snapshot) -> Option<usize> {
    let array = s.arrays.get(f.needs.placed_from.as_ref()?);
    let is_placed = |tag: usize| {
        array.is_some_and(|a| match &a.values {
            Values::Int(values) => values[tag * a.width as usize..][..a.width as usize].iter().any(|other| *other != 0),
            Values::Real(_) => false,
        })
    };
    (0..s.len()).find(|tag| s.mass[*tag] == 0.0 && !is_placed(*tag))
}

/// Checks that particles without mass are placed.
fn check_massless(c: &mut Check<'_>, plan: &StagePlan, s: &Snapshot) {
    let mut all = plan.forces.iter().filter(|f| f.needs.places && f.needs.constraints.is_empty());
    let placing = all.next();
    if let (Some(first), Some(second)) = (placing, all.next()) {
        c.error(Some(second.at), format!("{} already places the particles without mass of this stage", first.name));
    }
    let massless = || s.mass.iter().position(|m| *m == 0.0).filter(|_| plan.stage.steps > 0);
    if let (None, Some(tag)) = (placing, massless()) {
        let stage = &plan.stage.name;
        let message = format!(
            "particle {tag} has no mass, and stage `{stage}` has no force that places such particles, such as RigidBodies or \
             VirtualSites"
        );
        c.error(Some(plan.stage.at), message);
    }
    if let Some((f, tag)) = placing.and_then(|f| Some((f, not_placed(f, s)?))) {
        let message =
            format!("{}: particle {tag} has no mass, and nothing says from which particles it is placed", f.name);
        c.error(Some(f.at), message);
    }
    let rotates = |m: &Arc<Component>| state::rotates(m);
    if let Some(f) = placing.filter(|f| s.mass.contains(&0.0) && rotates(f) && !movers(plan).any(rotates)) {
        c.error(
            Some(f.at),
            "no integrator of this stage rotates particles: use RotationalVerlet or RotationalLangevin, for example",
        );
    }
    let pairs = plan.forces.iter().any(|f| f.kind == Kind::Pair);
    let massless_bond = |b: &Link<2>| b.tags.iter().any(|t| s.mass[*t as usize] == 0.0);
    let left_out = c.pipeline.neighbors.only.is_some()
        || (c.pipeline.neighbors.leaves_out_bonds() && s.bonds.iter().any(massless_bond));
    if let Some(f) = placing.filter(|_| s.mass.contains(&0.0) && pairs && !left_out) {
        let remedy = match rotates(f) {
            true => "`neighbors: (only: OtherMolecules)` leaves them out",
            // molecules with sites are often flexible, and their other pairs interact
            false => {
                "`neighbors: (exclude: [Bonds])` leaves out pairs with a bond, such as those of topologies of GROMACS; \
                 `neighbors: (only: OtherMolecules)` leaves out all pairs of a molecule"
            }
        };
        let message = format!("{}: pairs of particles that it keeps together interact; {remedy}", f.name);
        c.warn(Some(f.at), message);
    }
}

/// Notes bonded forces without links to act on.
fn note_missing_topology(plan: &StagePlan, s: &Snapshot) {
    for f in &plan.forces {
        let Some(list) = f.needs.links else { continue };
        if f.kind == Kind::Bonded && s.links(list).0 == 0 && plan.updaters.is_empty() {
            info!("{}: the initial state has no {}", f.name, list.name());
        }
    }
}
