//! Checks of updaters: they declare and report what they change.

use crate::selftest::test_plugin::open;
use crate::selftest::{Test, setup};
use galamost_engine::backend::Backend;
use galamost_engine::diagnostic::Failure;
use galamost_engine::pipeline::DeviceChoice;
use galamost_engine::state::arrays::optional_name;
use galamost_plugin_api::component::{ComponentInfo, Kind, Needs};
use galamost_plugin_api::precision::Precision;
use galamost_plugin_api::views::Wanted;
use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;

/// More steps than the period of any example.
const STEPS: u64 = 100;
/// The largest number of calls.
const CALLS: u64 = 10;

/// Returns the bytes of all velocities in double precision, in tag order.
fn velocities(backend: &mut dyn Backend) -> Result<Vec<u8>, Failure> {
    let bytes = backend.read("velocity_mass")?;
    Ok(bytes.as_chunks::<32>().0.iter().flat_map(|particle| particle[..24].to_vec()).collect())
}

/// Returns the bytes of all charges in tag order, if the updater uses them.
fn charges(backend: &mut dyn Backend, needs: &Needs) -> Result<Vec<u8>, Failure> {
    if needs.arrays.iter().any(|a| a.name == "charge") {
        Ok(backend.read(&optional_name("charge"))?)
    } else {
        Ok(vec![])
    }
}

impl Test<'_> {
    /// Checks that an updater declares changes of velocities, of charges and of the box, and that it reports those of positions and types:
    /// without a report, the engine keeps the forces of the state before the call.
    pub(in crate::selftest) fn updates(&mut self, c: &ComponentInfo) -> Result<(), Failure> {
        // forces depend on types
        let types =
            self.registry.find(Kind::Pair, "LennardJones").map(|_| "forces[0].pairs[1].epsilon=0.5".to_string());
        let overrides: Vec<String> = types.into_iter().collect();
        let plan = self.plan(c, DeviceChoice::Cpu, Precision::Double, self.system_of(c), STEPS, &overrides)?;
        let Some(updater) = plan.stages[0].updaters.iter().find(|u| u.has_name(&c.name)) else { return Ok(()) };
        let needs = &updater.needs;
        let mut b = open(&plan)?;
        let (mut undeclared, mut stale) = (BTreeSet::new(), 0.0f64);
        let period = needs.period.max(1);
        for _ in 0..(STEPS / period).clamp(1, CALLS) {
            b.advance(period, Wanted::ALL, &AtomicBool::new(false))?;
            let (velocity, shape) = (velocities(&mut *b)?, (b.box_length(), b.tilt()));
            let charge = charges(&mut *b, needs)?;
            b.update(updater, Wanted::ALL)?;
            if !needs.changes_velocities && velocities(&mut *b)? != velocity {
                undeclared.insert("velocities: see `needs.changes_velocities`");
            }
            if !needs.changes_charges && charges(&mut *b, needs)? != charge {
                undeclared.insert("charges: see `needs.changes_charges`");
            }
            if !needs.changes_box && (b.box_length(), b.tilt()) != shape {
                undeclared.insert("the box: see `needs.changes_box`");
            }
            let kept = setup::force(&mut *b, Precision::Double)?;
            b.evaluate()?;
            let anew = setup::force(&mut *b, Precision::Double)?;
            let largest = anew.iter().fold(1.0f64, |m, f| m.max(f.abs()));
            stale = kept.iter().zip(&anew).fold(stale, |m, (f, g)| m.max((f - g).abs() / largest));
        }
        let note = undeclared.iter().copied().collect::<Vec<_>>().join(", ");
        self.note(c, "changes that it does not declare", undeclared.len() as f64, 0.0, note);
        let note = if stale > 1e-9 { "see `call.changed`" } else { "" };
        self.note(c, "forces after its calls against forces computed anew", stale, 1e-9, note);
        Ok(())
    }
}
