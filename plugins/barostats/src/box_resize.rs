//! A box that changes as it is told.

use galamost_plugin_api::prelude::*;
use galamost_plugin_api::updater::changed;

/// Sets box lengths to given values every `every` steps; positions follow in proportion, velocities stay.
///
/// Each of `x`, `y`, `z` is a length that may change with time (`Ramp`, `Cycle`, `Sine`); an axis that is not given stays.
/// With `Ramp` the box is compressed or stretched at a steady rate, with `Sine` it oscillates. The work done on the
/// particles is not counted in `conserved` of `Thermo`. Every change builds the neighbor list anew; a box shorter than
/// two cutoffs ends the run with an error.
///
/// Reference: none; an affine deformation.
///
/// ```ron
/// BoxResize(every: 10, x: Ramp(from: 10.0, to: 9.0, steps: 1000), y: Ramp(from: 10.0, to: 9.0, steps: 1000))
/// ```
#[component(Updater, "BoxResize")]
#[derive(Debug, Params)]
pub struct BoxResize {
    /// Steps from one change to the next.
    #[param(at_least = 1)]
    every: u64,
    /// Length along x.
    x: Option<Varying>,
    /// Length along y.
    y: Option<Varying>,
    /// Length along z.
    z: Option<Varying>,
}

impl BoxResize {
    /// The axes that are given, with their lengths.
    fn axes(&self) -> impl Iterator<Item = (usize, &'static str, Varying)> {
        let all = [(0, "x", self.x), (1, "y", self.y), (2, "z", self.z)];
        all.into_iter().filter_map(|(k, name, v)| Some((k, name, v?)))
    }
}

impl Updater for BoxResize {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        needs.period = self.every;
        if self.axes().next().is_none() {
            return Err(Error::input("gives none of `x`, `y`, `z`"));
        }
        if self.z.is_some() && system.dimensions == 2 {
            return Err(Error::input("gives `z`, but the system has two dimensions"));
        }
        for (k, name, v) in self.axes() {
            let (now, length) = (v.at(system.step), system.box_length[k]);
            if !(0.5 * length..=2.0 * length).contains(&now) {
                return Err(Error::input(format!(
                    "`{name}` starts with {now}, but the box is {length} long; start with its length"
                )));
            }
        }
        Ok(())
    }

    unsafe fn update(&mut self, call: &mut UpdateCall) -> Result<()> {
        let step = call.step;
        // SAFETY: the engine's word
        let sim_box = unsafe { call.sim_box() }?;
        let old = sim_box.length;
        for (k, _, v) in self.axes() {
            sim_box.length[k] = v.at(step);
        }
        if sim_box.length != old {
            call.changed |= changed::BOX;
        }
        Ok(())
    }
}
