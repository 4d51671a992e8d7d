//! Prescribed box lengths and tilts.

use galamost_plugin_api::prelude::*;
use galamost_plugin_api::updater::changed;

/// Sets box lengths and tilt factors to prescribed values every `every` steps. Positions deform with the box; velocities do not
/// change.
///
/// `x`, `y` and `z` are lengths that may vary with time (`Ramp`, `Cycle`, `Sine`); an omitted axis keeps its length. `Ramp`
/// compresses or stretches the box at a constant rate; `Sine` makes it oscillate. Each length must start near the current
/// box length (within a factor of 2).
///
/// `xy`, `xz` and `yz` are tilt factors of a triclinic box, which may vary with time, too: `Ramp` shears the box at a constant
/// strain rate. Each must start near the current tilt factor (within 0.5). The heights of the box decrease with the tilts, and the
/// box is never replaced by one of the same lattice with smaller tilts; flow without end needs `LeesEdwards`.
///
/// `conserved` of `Thermo` does not count the work done on the particles. Every change rebuilds the neighbor list. The run
/// ends with an error if a box length, or a height of a triclinic box, becomes shorter than two cutoffs.
///
/// Reference: none; an affine deformation.
///
/// ```ron
/// BoxResize(every: 10, x: Ramp(from: 10.0, to: 9.0, steps: 1000), y: Ramp(from: 10.0, to: 9.0, steps: 1000))
/// ```
#[component(Updater, "BoxResize")]
#[derive(Debug, Params)]
pub struct BoxResize {
    /// Number of steps between changes.
    #[param(at_least = 1)]
    every: u64,
    /// Box length along x.
    x: Option<Varying>,
    /// Box length along y.
    y: Option<Varying>,
    /// Box length along z.
    z: Option<Varying>,
    /// Tilt factor xy: displacement of the upper face in y along x, divided by L_y.
    xy: Option<Varying>,
    /// Tilt factor xz.
    xz: Option<Varying>,
    /// Tilt factor yz.
    yz: Option<Varying>,
}

impl BoxResize {
    /// Returns index, name and length of each axis with a prescribed length.
    fn axes(&self) -> impl Iterator<Item = (usize, &'static str, Varying)> {
        let all = [(0, "x", self.x), (1, "y", self.y), (2, "z", self.z)];
        all.into_iter().filter_map(|(k, name, v)| Some((k, name, v?)))
    }

    /// Returns index, name and value of each prescribed tilt factor.
    fn tilts(&self) -> impl Iterator<Item = (usize, &'static str, Varying)> {
        let all = [(0, "xy", self.xy), (1, "xz", self.xz), (2, "yz", self.yz)];
        all.into_iter().filter_map(|(k, name, v)| Some((k, name, v?)))
    }
}

impl Updater for BoxResize {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        needs.period = self.every;
        needs.changes_box = true;
        needs.constrainable = true;
        needs.triclinic = true;
        needs.changes_tilt = self.tilts().next().is_some();
        if self.axes().next().is_none() && !needs.changes_tilt {
            return Err(Error::input("give at least one of `x`, `y`, `z`, `xy`, `xz`, `yz`"));
        }
        if (self.xz.is_some() || self.yz.is_some()) && system.dimensions == 2 {
            return Err(Error::input("`xz` or `yz` is given, but the system is two-dimensional"));
        }
        for (k, name, v) in self.tilts() {
            let (now, tilt) = (v.at(system.step), system.tilt[k]);
            if (now - tilt).abs() > 0.5 {
                let message = format!(
                    "`{name}` starts at {now}, but the tilt factor is {tilt}; start at the current tilt factor"
                );
                return Err(Error::input(message));
            }
        }
        if self.z.is_some() && system.dimensions == 2 {
            return Err(Error::input("`z` is given, but the system is two-dimensional"));
        }
        for (k, name, v) in self.axes() {
            let (now, length) = (v.at(system.step), system.box_length[k]);
            if !(0.5 * length..=2.0 * length).contains(&now) {
                return Err(Error::input(format!(
                    "`{name}` starts at {now}, but the box length is {length}; start at the current box length"
                )));
            }
        }
        Ok(())
    }

    unsafe fn update(&mut self, call: &mut UpdateCall) -> Result<()> {
        let step = call.step;
        // SAFETY: the engine passes views that are valid for the duration of the call
        let sim_box = unsafe { call.sim_box() }?;
        let old = (sim_box.length, sim_box.tilt);
        for (k, _, v) in self.axes() {
            sim_box.length[k] = v.at(step);
        }
        for (k, _, v) in self.tilts() {
            sim_box.tilt[k] = v.at(step);
        }
        if (sim_box.length, sim_box.tilt) != old {
            call.changed |= changed::BOX;
        }
        Ok(())
    }
}
