//! Checks of what a component declares: that it conserves momentum, that it acts on its group only.

use crate::selftest::test_plugin::open;
use crate::selftest::{Test, setup::Outcome, standard_system};
use galamost_engine::backend::columns;
use galamost_engine::diagnostic::Failure;
use galamost_engine::pipeline::DeviceChoice;
use galamost_engine::plan::Plan;
use galamost_engine::plugins::Component;
use galamost_plugin_api::component::{ComponentInfo, Kind, Wants};
use galamost_plugin_api::precision::Precision;
use galamost_plugin_api::snapshot::Snapshot;
use galamost_plugin_api::views::Wanted;
use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;

/// The check of `group`.
const OUTSIDE: &str = "particles outside of `group` that it changes";

/// Returns the total momentum and the sum of the sizes of all momenta.
fn momentum(mass: &[f64], velocity: &[[f64; 3]]) -> ([f64; 3], f64) {
    let (mut total, mut size) = ([0.0; 3], 0.0);
    for (m, v) in mass.iter().zip(velocity) {
        (0..3).for_each(|k| total[k] += m * v[k]);
        size += m * v[0].hypot(v[1]).hypot(v[2]);
    }
    (total, size)
}

/// Returns the component of a plan that is tested.
pub(super) fn tested<'p>(plan: &'p Plan, c: &ComponentInfo) -> Option<&'p Component> {
    plan.components.iter().find(|p| p.kind == c.kind && p.has_name(&c.name)).map(|p| &**p)
}

impl Test<'_> {
    fn run_of(&self, c: &ComponentInfo, s: Snapshot, steps: u64, overrides: &[String]) -> Result<Outcome, Failure> {
        let plan = self.plan(c, DeviceChoice::Cpu, Precision::Double, s, steps, overrides)?;
        self.outcome_of_plan(&plan)
    }

    /// Checks that the total momentum, 0 in the beginning, stays 0 unless the component declares that it does not: degrees of
    /// freedom and thermostats count on it.
    pub(in crate::selftest) fn momentum(&mut self, c: &ComponentInfo) -> Result<(), Failure> {
        const CHECK: &str = "change of the total momentum, 20 steps";
        let mut s = standard_system();
        let (total, _) = momentum(&s.mass, &s.velocity);
        let mass: f64 = s.mass.iter().sum();
        s.velocity.iter_mut().for_each(|v| (0..3).for_each(|k| v[k] -= total[k] / mass));
        let plan = self.plan(c, DeviceChoice::Cpu, Precision::Double, s.clone(), 20, &[])?;
        if tested(&plan, c).is_some_and(|t| !t.needs.conserves_momentum) {
            self.skip(c, CHECK, "declared as not conserved");
            return Ok(());
        }
        let masses = s.mass.clone();
        let after = self.outcome_of_plan(&plan)?;
        let (total, size) = momentum(&masses, after.velocity.as_chunks::<3>().0);
        self.note(c, CHECK, total.iter().fold(0.0, |m: f64, p| m.max(p.abs())) / size.max(1.0), 1e-10, "");
        Ok(())
    }

    /// Returns how many particles of the first type an updater changes; `None` if it changes the box.
    fn changed_by_updater(&self, c: &ComponentInfo, overrides: &[String]) -> Result<Option<usize>, Failure> {
        const CALLS: u64 = 3;
        let plan = self.plan(c, DeviceChoice::Cpu, Precision::Double, self.system_of(c), 100, overrides)?;
        let Some(updater) = plan.stages[0].updaters.iter().find(|u| u.has_name(&c.name)) else { return Ok(Some(0)) };
        let mut b = open(&plan)?;
        let facts = b.facts().clone();
        let (length, period) = (b.box_length(), updater.needs.period.max(1));
        let mut changed = BTreeSet::new();
        for _ in 0..(100 / period).clamp(1, CALLS) {
            b.advance(period, Wanted::ALL, &AtomicBool::new(false))?;
            let wants = Wants { particles: true, ..Wants::default() };
            let before = columns(&mut *b, &facts, wants)?;
            b.update(updater, Wanted::ALL)?;
            let after = columns(&mut *b, &facts, wants)?;
            if b.box_length() != length {
                return Ok(None);
            }
            let moved = |i: usize, k: usize| {
                let images = f64::from(after.image[i][k] - before.image[i][k]);
                (after.position[i][k] - before.position[i][k] + length[k] * images).abs() > 1e-9
            };
            let differs = |i: &usize| {
                before.velocity[*i] != after.velocity[*i]
                    || before.type_id[*i] != after.type_id[*i]
                    || before.mass[*i] != after.mass[*i]
                    || (0..3).any(|k| moved(*i, k))
            };
            changed.extend((0..facts.n).filter(|i| before.type_id[*i] == 0).filter(differs));
        }
        Ok(Some(changed.len()))
    }

    /// Checks that an updater changes only the particles of its field `group`.
    fn group_of_updater(&mut self, c: &ComponentInfo, only: &[String]) {
        match self.changed_by_updater(c, only) {
            Ok(Some(changed)) => self.note(c, OUTSIDE, changed as f64, 0.0, ""),
            Ok(None) => self.skip(c, OUTSIDE, "it changes the box"),
            Err(e) => {
                let reason = e.render();
                self.skip(c, OUTSIDE, reason.lines().next().unwrap_or_default());
            }
        }
    }

    /// Checks that an integrator moves only the particles of its field `group`, that a force acts only on them, and that an updater
    /// changes only them.
    pub(in crate::selftest) fn group(&mut self, c: &ComponentInfo) -> Result<(), Failure> {
        if !c.fields.iter().any(|f| f.name == "group") {
            return Ok(());
        }
        let plan = self.plan(c, DeviceChoice::Cpu, Precision::Double, standard_system(), 0, &[])?;
        if c.kind == Kind::Integrator && plan.stages[0].integrators.len() > 1 {
            self.skip(c, OUTSIDE, "its example has other integrators");
            return Ok(());
        }
        let (only, s) = ([format!("{}[0].group=Types([\"B\"])", c.kind.list())], standard_system());
        if c.kind == Kind::Updater {
            self.group_of_updater(c, &only);
            return Ok(());
        }
        let steps = if c.kind == Kind::Integrator { 5 } else { 0 };
        // some parameters of the example may need all particles
        let found = match self.run_of(c, s.clone(), steps, &only) {
            Ok(found) => found,
            Err(e) => {
                let reason = e.render();
                self.skip(c, OUTSIDE, reason.lines().next().unwrap_or_default());
                return Ok(());
            }
        };
        if found.length != s.box_length {
            self.skip(c, OUTSIDE, "it changes the box");
            return Ok(());
        }
        let vectors = |v: &[f64]| v.as_chunks::<3>().0.to_vec();
        let (x, v, f) = (vectors(&found.position), vectors(&found.velocity), vectors(&found.force));
        let changes = |i: &usize| match c.kind {
            Kind::Integrator => x[*i] != s.position[*i] || v[*i] != s.velocity[*i],
            _ => f[*i] != [0.0; 3],
        };
        let outside: Vec<usize> = (0..s.len()).filter(|i| s.type_id[*i] == 0).collect();
        let changed = outside.iter().filter(|i| changes(i)).count();
        self.note(c, OUTSIDE, changed as f64, 0.0, format!("{} particles", outside.len()));
        Ok(())
    }
}
