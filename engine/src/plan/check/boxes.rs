//! Components of a stage that change the box.

use super::{Check, StagePlan, stage};
use crate::plugins::Component;
use std::sync::Arc;

const NAMES: [&str; 3] = ["x", "y", "z"];

/// Checks that at most one component changes the box along each axis, and that barostats know the pressure along theirs.
pub fn check(c: &mut Check<'_>, plan: &StagePlan) {
    let all: Vec<_> = plan.integrators.iter().chain(&plan.updaters).collect();
    for (k, a) in all.iter().enumerate() {
        for b in &all[..k] {
            let shared = (0..3).find(|axis| a.needs.box_axes[*axis] && b.needs.box_axes[*axis]);
            if let Some(axis) = shared {
                let message = format!(
                    "{} and {} both change the box length along {}; remove one, or give them different axes",
                    b.name, a.name, NAMES[axis]
                );
                c.error(Some(a.at), message);
            }
        }
    }
    for barostat in barostats(plan) {
        check_pressure(c, plan, barostat);
    }
}

/// Returns the components of a stage that change the box by the pressure.
fn barostats(plan: &StagePlan) -> impl Iterator<Item = &Arc<Component>> {
    let integrators = plan.integrators.iter().filter(|i| stage::has_phase(i, |p| p.sim_box && !p.shear));
    integrators.chain(plan.updaters.iter().filter(|u| u.needs.changes_box && u.needs.wants.thermo))
}

/// Checks that no component exerts forces without virial along an axis that a barostat changes.
fn check_pressure(c: &mut Check<'_>, plan: &StagePlan, barostat: &Component) {
    let all = || plan.forces.iter().chain(&plan.integrators).chain(&plan.updaters);
    let changes = barostat.needs.box_axes;
    let lacks = |axis: usize| all().find(|w| w.needs.without_virial_along[axis]);
    if changes == [false; 3] {
        if let Some((axis, wall)) = (0..3).find_map(|axis| Some((axis, lacks(axis)?))) {
            let message = format!(
                "{}: reflections by {} have no virial, so the pressure along {} is not known; keep this box length constant",
                barostat.name, wall.name, NAMES[axis]
            );
            c.warn(Some(barostat.at), message);
        }
        return;
    }
    let Some((axis, wall)) = (0..3).filter(|k| changes[*k]).find_map(|axis| Some((axis, lacks(axis)?))) else { return };
    let others: [bool; 3] = std::array::from_fn(|k| changes[k] && lacks(k).is_none());
    let remedy = match others {
        [false, false, false] => "use an integrator of constant volume".to_string(),
        [x, y, z] => format!("keep this box length by `axes: ({x}, {y}, {z})` of MtkNpt or BerendsenBarostat"),
    };
    let message = format!(
        "{}: reflections by {} have no virial, so the pressure along {} is not known; {remedy}, or use a wall with a potential, \
         such as WcaWall",
        barostat.name, wall.name, NAMES[axis]
    );
    c.error(Some(barostat.at), message);
}
