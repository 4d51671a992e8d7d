//! Initial states that run, but not as intended, and those whose steps cannot be counted.

use super::{Check, StagePlan, stage};
use crate::diagnostic::counted;
use crate::plugins::Component;
use galamost_plugin_api::component::{GroupNeed, Kind};
use galamost_plugin_api::error::Position;
use galamost_plugin_api::memory;
use galamost_plugin_api::precision::Precision;
use galamost_plugin_api::snapshot::{Link, Snapshot, Values};
use galamost_plugin_api::tilt::nearest;
use galamost_plugin_api::varying::Varying;
use std::collections::HashSet;
use std::sync::Arc;

/// Square of the sine of an angle between bonds below which forces of dihedrals are limited.
const SINE2: f64 = 1e-8;

/// Adds errors and warnings. Those about the state itself point to the last generator.
pub fn check(c: &mut Check<'_>, stages: &[StagePlan], s: &Snapshot, last_generator: Option<Position>) {
    let steps = stages.iter().fold(s.step, |sum, p| sum.saturating_add(p.stage.steps));
    if steps > i64::MAX as u64 {
        let message =
            format!("the initial state is of step {}, and the run would end beyond step {}", s.step, i64::MAX);
        c.error(last_generator, message);
    }
    warn_duplicates(c, &s.bonds, ["bond", "bonds"], last_generator);
    warn_duplicates(c, &s.angles, ["angle", "angles"], last_generator);
    warn_duplicates(c, &s.dihedrals, ["dihedral", "dihedrals"], last_generator);
    warn_duplicates(c, &s.impropers, ["improper", "impropers"], last_generator);
    warn_straight(c, s, last_generator);
    if let Some(first) = stages.iter().find(|p| p.stage.steps > 0) {
        warn_at_rest(c, first, s);
    }
    warn_stopped(c, stages, s);
    warn_frozen(c, stages, s, false);
    warn_frozen(c, stages, s, true);
    warn_of_past(c, stages, s.step);
    warn_unturned(c, stages);
}

/// Warns about dihedrals with three particles on a line, for which the angle is undefined.
fn warn_straight(c: &mut Check<'_>, s: &Snapshot, at: Option<Position>) {
    let between = |a: u32, b: u32| {
        let (a, b) = (s.position[a as usize], s.position[b as usize]);
        nearest(std::array::from_fn(|k| a[k] - b[k]), s.box_length, s.tilt)
    };
    let dot = |a: [f64; 3], b: [f64; 3]| a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
    let straight = |a: [f64; 3], b: [f64; 3]| {
        let all = dot(a, a) * dot(b, b);
        all - dot(a, b).powi(2) < SINE2 * all
    };
    let on_a_line = |l: &&Link<4>| {
        let [i, j, k, l] = l.tags;
        let axis = between(j, k);
        straight(between(i, j), axis) || straight(between(l, k), axis)
    };
    let mut found = s.dihedrals.iter().filter(on_a_line);
    if let Some(first) = found.next() {
        let (n, tags) = (1 + found.count() as u64, first.tags.map(|t| t.to_string()).join(", "));
        let message = format!(
            "{} with three particles on a line, the first of the particles {tags}: their angle is undefined, and forces near a line \
             are very large; begin with other angles",
            counted(n, "dihedral")
        );
        c.warn(at, message);
    }
}

/// Warns about torques that turn nothing.
fn warn_unturned(c: &mut Check<'_>, stages: &[StagePlan]) {
    let has = |k: &Component, name| k.needs.arrays.iter().any(|a| a.name == name);
    let turning = |p: &StagePlan| stage::movers(p).any(|m| has(m, "angular_momentum"));
    if stages.iter().any(turning) {
        return;
    }
    let moving = stages.iter().filter(|p| p.stage.steps > 0 && stage::movers(p).next().is_some());
    let oriented = moving.flat_map(|p| &p.forces).find(|f| f.kind == Kind::Pair && has(f, "quaternion"));
    if let Some(f) = oriented {
        let message = format!(
            "{}: no integrator rotates particles, so they keep their orientations; use RotationalVerlet, for example",
            f.name
        );
        c.warn(Some(f.at), message);
    }
}

/// Checks that there is memory for the links of each particle. All rows have room for the longest one, so one particle with
/// very many bonds is costly in a large system.
pub fn check_rows(c: &mut Check<'_>, s: &Snapshot, last_generator: Option<Position>) {
    check_row(c, &s.bonds, "bonds", s.len(), last_generator);
    check_row(c, &s.angles, "angles", s.len(), last_generator);
    check_row(c, &s.dihedrals, "dihedrals", s.len(), last_generator);
    check_row(c, &s.impropers, "impropers", s.len(), last_generator);
}

fn check_row<const N: usize>(c: &mut Check<'_>, links: &[Link<N>], what: &str, n: usize, at: Option<Position>) {
    if links.is_empty() {
        return;
    }
    let mut counts = vec![0u32; n];
    links.iter().flat_map(|l| l.tags).for_each(|t| counts[t as usize] += 1);
    let Some((tag, most)) = counts.iter().enumerate().max_by_key(|(tag, count)| (**count, std::cmp::Reverse(*tag)))
    else {
        return;
    };
    // by tag and by index, and once more for exclusions
    let bytes = 12.0 * N as f64 * f64::from(*most) * n as f64;
    if let Err(message) =
        memory::require(format_args!("room for the {most} {what} of particle {tag} in each row"), bytes)
    {
        c.error(at, message);
    }
}

/// Warns about links of the same type between the same particles, which count twice.
fn warn_duplicates<const N: usize>(c: &mut Check<'_>, links: &[Link<N>], name: [&str; 2], at: Option<Position>) {
    let mut seen = HashSet::with_capacity(links.len());
    let either_way = |link: &Link<N>| {
        let mut reverse = link.tags;
        reverse.reverse();
        link.tags.min(reverse)
    };
    let repeated: Vec<_> = links.iter().filter(|l| !seen.insert((l.kind, either_way(l)))).collect();
    let Some(first) = repeated.first() else { return };
    let [one, many] = name;
    let tags = either_way(first).map(|t| t.to_string()).join(", ");
    let message = match repeated.len() {
        1 => format!("the initial state has the {one} of the particles {tags} twice; its force counts twice"),
        n => format!(
            "the initial state has {n} {many} twice, the first of the particles {tags}; their forces count twice"
        ),
    };
    c.warn(at, message);
}

/// Warns about thermostats that cannot heat particles at rest.
fn warn_at_rest(c: &mut Check<'_>, first: &StagePlan, s: &Snapshot) {
    for m in stage::movers(first).filter(|m| m.needs.rescales) {
        let mut moving = (0..s.len()).filter(|i| s.velocity[*i] != [0.0; 3]);
        if !moving.any(|i| m.needs.group.contains(i as u32, s)) {
            let message = format!(
                "{}: all its velocities are 0, and it controls the temperature by scaling velocities, so it cannot heat \
                 particles at rest; add `Velocities(kT: …)` to `initial`",
                m.name
            );
            c.warn(Some(m.at), message);
        }
    }
}

/// Warns about thermostats that cannot heat the particles that an earlier stage has left at rest.
fn warn_stopped(c: &mut Check<'_>, stages: &[StagePlan], s: &Snapshot) {
    let with_steps: Vec<_> = stages.iter().filter(|p| p.stage.steps > 0).collect();
    for (k, plan) in with_steps.iter().enumerate() {
        for m in stage::movers(plan).filter(|m| m.needs.rescales) {
            let both = |stopping: &Component| {
                let of = |c: &Component, tag| c.needs.group.contains(tag, s);
                (0..s.len() as u32).any(|tag| of(m, tag) && of(stopping, tag))
            };
            // the last stage before this one that stops these particles, if they stay at rest in all stages between
            let stopping = |p: &StagePlan| stage::movers(p).find(|f| f.needs.stops && both(f)).cloned();
            let found = with_steps[..k].iter().enumerate().rev().find_map(|(n, p)| Some((n, p, stopping(p)?)));
            let Some((n, before, stopping)) = found else { continue };
            if with_steps[n + 1..k].iter().all(|between| keeps_at_rest(between, before)) {
                let message = format!(
                    "{}: {} leaves its particles at rest at the end of stage `{}`, and this component controls the temperature by scaling \
                     velocities, so it heats them late or too much; add a stage with Langevin or Andersen between the two",
                    m.name, stopping.name, before.stage.name
                );
                c.warn(Some(m.at), message);
            }
        }
    }
}

/// Returns the integrators of a stage that change velocities or, with `rotation`, angular momenta. Brownian moves particles without
/// velocities.
fn changing(plan: &StagePlan, rotation: bool) -> Vec<&Arc<Component>> {
    stage::movers(plan).filter(|m| if rotation { rotates(m) } else { uses_velocities(m) }).collect()
}

/// Returns whether a component changes angular momenta.
pub fn rotates(m: &Component) -> bool {
    m.needs.arrays.iter().any(|a| a.name == "angular_momentum")
}

/// Returns whether a function of an integrator has the argument `velocity`, which its code for a device passes.
fn uses_velocities(m: &Component) -> bool {
    let code = m.integrator().and_then(|i| i.device(Precision::Double).ok());
    code.is_none_or(|code| code.text.as_str().contains("p.velocity"))
}

/// Returns whether an array of three numbers for each particle exists and is not 0 for a particle.
pub fn has_vector(name: &str, tag: u32, s: &Snapshot) -> bool {
    match s.arrays.get(name).map(|a| &a.values) {
        Some(Values::Real(v)) => v.chunks(3).nth(tag as usize).is_some_and(|v| v != [0.0; 3]),
        _ => false,
    }
}

/// Returns whether a particle has a velocity or, with `rotation`, an angular momentum in the initial state.
fn begins_in_motion(tag: u32, s: &Snapshot, rotation: bool) -> bool {
    if rotation { has_vector("angular_momentum", tag, s) } else { s.velocity[tag as usize] != [0.0; 3] }
}

/// Warns about the first stage with particles that no integrator moves, but that have velocities. They count in sums over all particles.
/// With `rotation`: about angular momenta, in a stage that rotates other particles, or none after a stage that rotates some.
fn warn_frozen(c: &mut Check<'_>, stages: &[StagePlan], s: &Snapshot, rotation: bool) {
    let with_steps: Vec<_> = stages.iter().filter(|p| p.stage.steps > 0).collect();
    for (k, plan) in with_steps.iter().enumerate() {
        let of_all = |m: &&Arc<Component>| matches!(m.needs.group, GroupNeed::All | GroupNeed::Massive);
        let movers: Vec<_> = stage::movers(plan).filter(|m| !rotation || rotates(m)).collect();
        let rotated = || rotation && with_steps[..k].iter().any(|p| stage::movers(p).any(|m| rotates(m)));
        // without the search through all particles, which takes seconds for 10⁸
        if movers.iter().any(of_all) || movers.is_empty() && !rotated() {
            continue;
        }
        let before: Vec<_> = with_steps[..k].iter().map(|p| (*p, changing(p, rotation))).collect();
        let of = |list: &[&Arc<Component>], tag: u32| list.iter().position(|m| m.needs.group.contains(tag, s));
        let last = |tag: u32| before.iter().rev().find_map(|(p, list)| Some((*p, list[of(list, tag)?])));
        let moves = |tag: u32| match last(tag) {
            Some((_, m)) => !m.needs.stops && !m.needs.kt.is_some_and(|kt| kt.is_constant() && kt.at(0) == 0.0),
            None => begins_in_motion(tag, s, rotation),
        };
        let can_move = |tag: u32| s.mass[tag as usize] > 0.0 && (!rotation || has_vector("inert", tag, s));
        let frozen = |tag: &u32| can_move(*tag) && of(&movers, *tag).is_none() && moves(*tag);
        let mut all = (0..s.len() as u32).filter(frozen);
        let Some(first) = all.next() else { continue };
        let (n, name) = (counted(1 + all.count() as u64, "particle"), &plan.stage.name);
        let (source, remedy) = match last(first) {
            None => ("their initial state".into(), "give `Velocities` the group of the moving particles"),
            Some((p, _)) => (
                format!("stage `{}`", p.stage.name),
                "to stop them, insert a stage of one step with Andersen(kT: 0.0, nu: 100/dt) for their group",
            ),
        };
        let message = if rotation {
            let what = match movers.is_empty() {
                true => "kT_rotational keeps its value",
                false => "kT_rotational counts their energy, but not their degrees of freedom",
            };
            format!(
                "no integrator of stage `{name}` rotates {n} with angular momenta of {source}, the first with tag {first}: \
                 {what}; let an integrator rotate them, such as RotationalVerlet"
            )
        } else {
            format!(
                "no integrator of stage `{name}` moves {n} with velocities of {source}, the first with tag {first}: kT, the pressure \
                 and friction count these velocities; {remedy}"
            )
        };
        return c.warn(Some(plan.stage.at), message);
    }
}

/// Returns whether particles that stage `before` has left at a minimum of the energy stay there: the forces are the same and constant,
/// and nothing gives velocities. Updaters without kT that change velocities, such as ZeroMomentum, give none to particles at rest.
fn keeps_at_rest(plan: &StagePlan, before: &StagePlan) -> bool {
    let forces = |p: &StagePlan| p.forces.iter().map(|f| f.id).collect::<HashSet<_>>();
    let is_quiet = |k: &Arc<Component>| {
        let needs = &k.needs;
        let cold = needs.kt.is_none_or(|kt| kt.is_constant() && kt.at(0) == 0.0);
        cold && !needs.rescales && !needs.drives && needs.varyings.iter().all(Varying::is_constant)
    };
    let changes_box = |k: &Arc<Component>| stage::has_phase(k, |p| p.sim_box);
    plan.updaters.iter().all(|u| u.needs.changes_velocities)
        && forces(plan) == forces(before)
        && plan.forces.iter().chain(&plan.integrators).chain(&plan.updaters).all(is_quiet)
        && !plan.integrators.iter().any(changes_box)
}

/// Warns about numbers that vary with the step, but have their last value from the beginning: because the initial state has a step, or
/// because the first stage of their component begins after they have changed.
fn warn_of_past(c: &mut Check<'_>, stages: &[StagePlan], first: u64) {
    let end = stages.iter().fold(first, |sum, p| sum.saturating_add(p.stage.steps));
    let (mut seen, mut begin) = (Vec::<&Arc<Component>>::new(), first);
    for plan in stages {
        for component in [&plan.forces, &plan.integrators, &plan.updaters].into_iter().flatten() {
            if seen.iter().any(|k| k.id == component.id) {
                continue;
            }
            let past = |v: &Varying| v.changes_between(0, begin) && !v.changes_between(begin, end);
            // after an equal updater of an earlier stage, the last change of the box may be the first one of this stage
            let lengths = component.needs.box_lengths;
            let follows = seen.iter().any(|k| k.name == component.name && k.needs.box_lengths == lengths);
            let remains =
                |v: &Varying| follows && v.changes_between(begin.saturating_sub(component.needs.period), begin);
            let over =
                component.needs.varyings.iter().any(past) || lengths.iter().flatten().any(|v| past(v) && !remains(v));
            seen.push(component);
            if !over {
                continue;
            }
            let (name, stage) = (&component.name, &plan.stage.name);
            let message = if begin == first {
                format!(
                    "{name}: a number that varies with the step does so before step {first}, with which the run begins, and is constant \
                     in the run; `step: 0` of the generator that reads the file begins at step 0"
                )
            } else {
                format!(
                    "{name}: a number that varies with the step does so before step {begin}, with which stage `{stage}` begins, and is \
                     constant from then on; its steps are those of the run, so a Ramp in this stage needs `start: {begin}`"
                )
            };
            c.warn(Some(component.at), message);
        }
        begin = begin.saturating_add(plan.stage.steps);
    }
}
