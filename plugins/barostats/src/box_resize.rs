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
/// An omitted tilt factor also follows: if **c** was replaced by **c** − **b**, it changes as **b** does.
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
    /// Tilt factors after the last update if the box were not replaced.
    #[param(skip)]
    unreplaced: Option<[f64; 3]>,
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

    /// Returns the tilt factors at a step, after a change of the lengths: of all boxes of the prescribed lattice, those of the box
    /// closest to the current one.
    fn next_tilt(&mut self, step: u64, [old, new]: [[f64; 3]; 2], tilt: [f64; 3]) -> [f64; 3] {
        let (_, turns) = nearest(self.unreplaced.unwrap_or(tilt), old, tilt);
        let mut unreplaced = without(turns, old, tilt);
        self.tilts().for_each(|(k, _, v)| unreplaced[k] = v.at(step));
        self.unreplaced = Some(unreplaced);
        nearest(unreplaced, new, tilt).0
    }
}

/// Returns the tilt factors of the box closest to the current one, of all boxes with the lattice of `from`: its vectors are
/// **b** − n **a** and **c** − m (**b** − n **a**) − l **a**. Also returns n, l and m, which are whole numbers.
fn nearest(from: [f64; 3], [x, y, z]: [f64; 3], tilt: [f64; 3]) -> ([f64; 3], [f64; 3]) {
    let (mut out, mut turns) = (from, [0.0; 3]);
    turns[0] = ((from[0] - tilt[0]) * y / x).round();
    out[0] -= turns[0] * x / y;
    // two dimensions have no third vector
    if z > 0.0 {
        turns[2] = ((from[2] - tilt[2]) * z / y).round();
        out[2] -= turns[2] * y / z;
        // c − m b has other tilt factors xz than c
        out[1] -= turns[2] * out[0] * y / z;
        turns[1] = ((out[1] - tilt[1]) * z / x).round();
        out[1] -= turns[1] * x / z;
    }
    (out, turns)
}

/// Returns the tilt factors of the box without a replacement, given the whole numbers that [`nearest`] returns.
fn without(turns: [f64; 3], [x, y, z]: [f64; 3], tilt: [f64; 3]) -> [f64; 3] {
    let mut out = tilt;
    out[0] += turns[0] * x / y;
    if z > 0.0 {
        out[1] += turns[2] * tilt[0] * y / z + turns[1] * x / z;
        out[2] += turns[2] * y / z;
    }
    out
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
        sim_box.tilt = self.next_tilt(step, [sim_box.length, lengths], sim_box.tilt);
        sim_box.length = lengths;
        if (sim_box.length, sim_box.tilt) != old {
            call.changed |= changed::BOX;
        }
        Ok(())
    }

    fn save(&mut self) -> Result<Vec<u8>> {
        Ok(self.unreplaced.iter().flatten().flat_map(|t| t.to_le_bytes()).collect())
    }

    fn load(&mut self, state: &[u8]) -> Result<()> {
        let (numbers, _) = state.as_chunks::<8>();
        let tilt: Vec<f64> = numbers.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect();
        // checkpoints of earlier versions have no state
        self.unreplaced = tilt.try_into().ok();
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
        let mut resize = BoxResize {
            every: 1,
            x: None,
            y: None,
            z: None,
            xy: ramp(0.0, 7.0),
            xz: ramp(0.1, -4.0),
            yz: ramp(0.2, 5.0),
            unreplaced: None,
        };
        let l @ [x, y, z] = [5.0, 6.0, 7.0];
        let mut tilt = [0.0, 0.1, 0.2];
        for step in 0..1000 {
            let before = tilt;
            tilt = resize.next_tilt(step, [l, l], tilt);
            let largest = (0..3).map(|k| (tilt[k] - before[k]).abs()).fold(0.0, f64::max);
            // 7 in 1,000 steps of a length of 5 is 0.007; replacements of tilts would be jumps of 1
            assert!(largest < 0.05, "step {step}: {before:?} {tilt:?}");
            let [xy, xz, yz] = [resize.xy, resize.xz, resize.yz].map(|v| v.expect("a ramp").at(step));
            // differences of the edges in units of the other edges are whole numbers
            let whole = |n: f64| (n - n.round()).abs() < 1e-9;
            let m = (yz - tilt[2]) * z / y;
            let l = (xz - tilt[1]) * z / x - m * tilt[0] * y / x;
            assert!([(xy - tilt[0]) * y / x, m, l].map(whole) == [true; 3], "step {step}: {tilt:?}");
            if step % 7 == 0 {
                tilt = reduced(tilt, [x, y, z]);
            }
        }
    }

    /// What the engine does with a skewed box.
    fn reduced(mut tilt: [f64; 3], [x, y, z]: [f64; 3]) -> [f64; 3] {
        let m = (tilt[2] * z / y).round();
        tilt[1] -= m * tilt[0] * y / z;
        tilt[2] -= m * y / z;
        tilt[0] -= (tilt[0] * y / x).round() * x / y;
        tilt[1] -= (tilt[1] * z / x).round() * x / z;
        tilt
    }

    /// Omitted tilt factors are those of constant ones, also after replacements and a restart.
    #[test]
    fn omitted_tilt_factors_are_constant() {
        let make = |xz, yz| {
            let xy = Some(Varying::ramp(0.0, 7.0, 0, 1000));
            BoxResize { every: 1, x: None, y: None, z: None, xy, xz, yz, unreplaced: None }
        };
        let (mut omitted, mut given) =
            (make(None, None), make(Some(Varying::constant(0.1)), Some(Varying::constant(0.9))));
        let mut tilts = [[0.0, 0.1, 0.9]; 2];
        for step in 0..1000 {
            // the length along x changes too
            let lengths = [0, 1].map(|k| [5.0 + 1e-3 * (step + k) as f64, 6.0, 7.0]);
            tilts = [(&mut omitted, tilts[0]), (&mut given, tilts[1])].map(|(r, t)| r.next_tilt(step, lengths, t));
            let far = (0..3).map(|k| (tilts[0][k] - tilts[1][k]).abs()).fold(0.0, f64::max);
            assert!(far < 1e-10, "step {step}: {tilts:?}");
            if step % 7 == 0 {
                tilts = tilts.map(|t| reduced(t, lengths[1]));
                let saved = omitted.save().expect("saved");
                omitted = make(None, None);
                omitted.load(&saved).expect("loaded");
            }
        }
    }
}
