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
/// The box changes before each step whose number is a multiple of `every`, to the values at that step; steps count from the start
/// of the run. After the last step of a stage there is no change: with `every: 10`, a stage of 500 steps makes its last change
/// before step 490, so `Ramp(…, steps: 500)` ends one interval short. Let the ramp end one interval earlier (`steps: 490`), or make
/// the stage at least one step longer. Tables show the box before the change of their step.
///
/// `xy`, `xz` and `yz` are tilt factors of a triclinic box, which may vary with time, too: `Ramp` shears the box at a constant
/// strain rate, for any time. An omitted tilt factor does not change. The upper face of the box must start near the current one:
/// displaced by less than half an edge.
///
/// When an edge is displaced by more than 0.6 of another edge, the box is replaced by the least tilted one of the same lattice,
/// and follows the prescribed tilt factor minus the displacement of the replacement. Particles keep their unwrapped positions.
///
/// `conserved` of `Thermo` does not count the work done on the particles. Every change rebuilds the neighbor list. The run
/// ends with an error if a box length, or a height of a triclinic box, becomes shorter than two cutoffs. The check refuses lengths
/// for which a wall would be outside of the box.
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

    /// Returns the prescribed tilt factors of a box with these lengths; of all boxes of their lattice, those closest to the
    /// current ones.
    fn nearest_tilt(&self, step: u64, [x, y, z]: [f64; 3], tilt: [f64; 3]) -> [f64; 3] {
        let [xy, xz, yz] = [self.xy, self.xz, self.yz].map(|v| v.map(|v| v.at(step)));
        let mut out = tilt;
        if let Some(xy) = xy {
            out[0] = xy - ((xy - tilt[0]) * y / x).round() * x / y;
        }
        let mut turns = 0.0;
        if let Some(yz) = yz {
            turns = ((yz - tilt[2]) * z / y).round();
            out[2] = yz - turns * y / z;
        }
        if let Some(xz) = xz {
            // c − n b has other tilt factors xz than c
            let xz = xz - turns * out[0] * y / z;
            out[1] = xz - ((xz - tilt[1]) * z / x).round() * x / z;
        }
        out
    }
}

/// Edges a tilt factor belongs to: the upper face, and the edge along which it is displaced.
const FACES: [(usize, usize); 3] = [(1, 0), (2, 0), (2, 1)];

impl Updater for BoxResize {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        needs.period = self.every;
        needs.changes_box = true;
        needs.box_lengths = [self.x, self.y, self.z];
        needs.box_axes = needs.box_lengths.map(|l| l.is_some());
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
            let (upper, along) = FACES[k];
            if (now - tilt).abs() * system.box_length[upper] >= 0.5 * system.box_length[along] {
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
        let mut lengths = sim_box.length;
        self.axes().for_each(|(k, _, v)| lengths[k] = v.at(step));
        sim_box.tilt = self.nearest_tilt(step, lengths, sim_box.tilt);
        sim_box.length = lengths;
        if (sim_box.length, sim_box.tilt) != old {
            call.changed |= changed::BOX;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The prescribed box and the one that is set have the same lattice, also after replacements.
    #[test]
    fn the_nearest_box_of_the_lattice_is_set() {
        let ramp = |from: f64, to: f64| Some(Varying::ramp(from, to, 0, 1000));
        let resize = BoxResize {
            every: 1,
            x: None,
            y: None,
            z: None,
            xy: ramp(0.0, 7.0),
            xz: ramp(0.1, -4.0),
            yz: ramp(0.2, 5.0),
        };
        let l @ [x, y, z] = [5.0, 6.0, 7.0];
        let mut tilt = [0.0, 0.1, 0.2];
        for step in 0..1000 {
            let before = tilt;
            tilt = resize.nearest_tilt(step, l, tilt);
            let largest = (0..3).map(|k| (tilt[k] - before[k]).abs()).fold(0.0, f64::max);
            // 7 in 1,000 steps of a length of 5 is 0.007; replacements of tilts would be jumps of 1
            assert!(largest < 0.05, "step {step}: {before:?} {tilt:?}");
            let [xy, xz, yz] = [resize.xy, resize.xz, resize.yz].map(|v| v.expect("a ramp").at(step));
            // differences of the edges in units of the other edges are whole numbers
            let whole = |n: f64| (n - n.round()).abs() < 1e-9;
            let m = (yz - tilt[2]) * z / y;
            let l = (xz - tilt[1]) * z / x - m * tilt[0] * y / x;
            assert!([(xy - tilt[0]) * y / x, m, l].map(whole) == [true; 3], "step {step}: {tilt:?}");
            // what the engine does with a skewed box
            if step % 7 == 0 {
                let m = (tilt[2] * z / y).round();
                tilt[1] -= m * tilt[0] * y / z;
                tilt[2] -= m * y / z;
                tilt[0] -= (tilt[0] * y / x).round() * x / y;
                tilt[1] -= (tilt[1] * z / x).round() * x / z;
            }
        }
    }
}
