//! Forces in a triclinic box. The standard system and three copies of it fill a triclinic box whose periodic images are those of
//! the rectangular box, so each copy has the forces of the original, whatever the potential is.

use crate::selftest::setup::Outcome;
use crate::selftest::{Test, standard_system};
use galamost_engine::diagnostic::Failure;
use galamost_engine::pipeline::DeviceChoice;
use galamost_plugin_api::component::ComponentInfo;
use galamost_plugin_api::precision::Precision;
use galamost_plugin_api::snapshot::{Link, Snapshot, Values};
use galamost_plugin_api::tilt::{to_reduced, to_space};

/// Copies of the standard system.
const COPIES: usize = 4;

/// Returns the triclinic box with the edges (2L, 0, 0), (L, 2L, 0) and (L, L, L), which are all sums of edges of the cube.
fn tilted_system() -> Snapshot {
    let one = standard_system();
    let (n, l) = (one.len() as u32, one.box_length[0]);
    let mut s = Snapshot { box_length: [2.0 * l, 2.0 * l, l], tilt: [0.5, 1.0, 1.0], ..one.clone() };
    for copy in 1..COPIES as u32 {
        s.position.extend(
            one.position.iter().map(|r| [r[0] + l * f64::from(copy % 2), r[1] + l * f64::from(copy / 2), r[2]]),
        );
        s.image.extend(one.image.iter().copied());
        s.velocity.extend(one.velocity.iter().copied());
        s.type_id.extend(one.type_id.iter().copied());
        s.mass.extend(one.mass.iter().copied());
        for (name, array) in &one.arrays {
            match (s.arrays.get_mut(name).map(|a| &mut a.values), &array.values) {
                (Some(Values::Real(all)), Values::Real(more)) => all.extend(more),
                (Some(Values::Int(all)), Values::Int(more)) => all.extend(more),
                _ => {}
            }
        }
        s.bonds.extend(shifted(&one.bonds, copy * n));
        s.angles.extend(shifted(&one.angles, copy * n));
        s.dihedrals.extend(shifted(&one.dihedrals, copy * n));
        s.impropers.extend(shifted(&one.impropers, copy * n));
    }
    for r in s.position.iter_mut() {
        let q = to_reduced(*r, s.tilt);
        *r = to_space(std::array::from_fn(|k| q[k] - s.box_length[k] * (q[k] / s.box_length[k]).round()), s.tilt);
    }
    s
}

fn shifted<const W: usize>(links: &[Link<W>], first: u32) -> impl Iterator<Item = Link<W>> {
    links.iter().map(move |link| Link { kind: link.kind, tags: link.tags.map(|tag| tag + first) })
}

/// Returns the largest difference between vectors of the copies and those of the original, relative to the largest of these.
fn deviation(copies: &[f64], original: &[f64]) -> f64 {
    let largest = original.iter().fold(0.0f64, |m, x| m.max(x.abs()));
    let worst = copies.iter().zip(original.iter().cycle()).fold(0.0f64, |m, (a, b)| m.max((a - b).abs()));
    if copies.len() == COPIES * original.len() { worst / largest.max(1e-300) } else { f64::NAN }
}

impl Test<'_> {
    /// Compares forces, torques, energy and virial in the triclinic box with those of the standard system.
    pub(super) fn triclinic(&mut self, c: &ComponentInfo, reference: &Outcome) -> Result<(), Failure> {
        let cpu = DeviceChoice::Cpu;
        let mut targets = vec![(cpu, Precision::Double, "CPU double"), (cpu, Precision::Mixed, "CPU mixed")];
        // the emulated device would compile all kernels once more
        if matches!(self.device, DeviceChoice::Cuda(_)) {
            targets.push((self.device, Precision::Mixed, "device mixed"));
        }
        for (device, precision, name) in targets {
            let o = self.outcome_of(c, device, precision, tilted_system(), 0)?;
            let limit = if precision == Precision::Double { 1e-10 } else { 2e-5 };
            let mut worst = deviation(&o.force, &reference.force);
            if !reference.torque.is_empty() {
                worst = worst.max(deviation(&o.torque, &reference.torque));
            }
            self.note(c, &format!("{name}, triclinic box: forces"), worst, limit, "");
            let all = COPIES as f64;
            // as for the rectangular box, terms of the virial may be as large as forces
            let terms = reference.virial.iter().chain(&reference.force);
            let scale = terms.fold(reference.energy.abs().max(1.0), |m, w| m.max(w.abs()));
            let sums = o.virial.iter().zip(&reference.virial).map(|(a, b)| (a / all - b).abs());
            let worst = sums.fold((o.energy / all - reference.energy).abs(), f64::max) / scale;
            self.note(c, &format!("{name}, triclinic box: energy, virial"), worst, limit, "");
        }
        Ok(())
    }
}
