//! Molecules of one kind, prepared for growth.

use crate::polymers::component::{MoleculeEntry, Polymers};
use crate::polymers::graft::Graft;
use crate::polymers::notation::Molecule;
use crate::polymers::region::Region;
use galamost_plugin_api::error::{Errors, Position};
use galamost_plugin_api::prelude::*;
use std::f64::consts::{PI, TAU};

/// The closure of a ring, seen from a bead on the path to it.
#[derive(Clone, Copy, Debug)]
pub struct RingTarget {
    /// Bead that the ring closes with.
    pub bead: usize,
    /// Number of bonds left to this bead.
    pub bonds_left: usize,
    /// Length of the last bond.
    pub last_length: f64,
}

/// A kind of molecule with everything that its growth needs.
pub struct Species {
    /// Beads and bonds.
    pub molecule: Molecule,
    /// Type id of each bead.
    pub types: Vec<u32>,
    /// Length of the bond to each bead's parent.
    pub lengths: Vec<f64>,
    /// cos θ of the angle between each bead, its parent and the parent of that, if growth imposes it.
    pub bends: Vec<Option<f64>>,
    /// For each bead on the path to the end of a ring, the closure of the ring.
    pub ring_targets: Vec<Option<RingTarget>>,
    /// Beads of the molecule that each bead may be close to: bonded ones, and the ends of the angles that growth imposes.
    pub near: Vec<Vec<usize>>,
    /// Allowed region.
    pub region: Region,
    /// Grafting of the first bead.
    pub graft: Option<Graft>,
}

impl Species {
    /// Returns for each bead that lies on a ring, after the ring's first bead, where the ring closes.
    fn ring_targets(m: &Molecule, length: impl Fn(usize, usize) -> f64) -> Vec<Option<RingTarget>> {
        let mut out = vec![None; m.beads.len()];
        for [a, b] in &m.closures {
            let (mut i, mut bonds_left) = (*b, 1);
            while i > *a {
                out[i].get_or_insert(RingTarget { bead: *a, bonds_left, last_length: length(*a, *b) });
                bonds_left += 1;
                i = m.parents[i];
            }
        }
        out
    }

    /// Returns whether growth imposes angles on a ring.
    pub fn has_bent_ring(&self) -> bool {
        self.ring_targets.iter().zip(&self.bends).any(|(target, bend)| target.is_some() && bend.is_some())
    }

    /// Returns a ring that cannot close because of its imposed angles: the shortest distance of the beads before and after its last
    /// one, and the largest distance that the two bonds of this bead span.
    pub fn open_ring(&self) -> Option<[f64; 2]> {
        let parents = &self.molecule.parents;
        self.molecule.closures.iter().find_map(|[first, last]| {
            let target = self.ring_targets[*last].filter(|t| t.bead == *first && t.bonds_left == 1)?;
            let mut path = vec![parents[*last]];
            while let Some(i) = path.last().copied().filter(|i| i > first) {
                path.push(parents[i]);
            }
            path.reverse();
            if path[0] != *first {
                return None;
            }
            let lengths: Vec<f64> = path.iter().skip(1).map(|i| self.lengths[*i]).collect();
            let turn = |i: &usize| self.bends[*i].map(|c| PI - c.clamp(-1.0, 1.0).acos());
            let turns: Vec<f64> = path.iter().skip(2).map(turn).collect::<Option<_>>()?;
            let (shortest, span) = (shortest_chord(&lengths, &turns)?, self.lengths[*last] + target.last_length);
            (shortest > span * (1.0 + 1e-9)).then_some([shortest, span])
        })
    }
}

/// Returns the shortest distance of the ends of a path of bonds with these angles between directions of successive bonds.
///
/// If the plane path that always turns to one side is convex together with the line between its ends, no other path has closer ends
/// (Schur's theorem). Otherwise the result is `None`.
fn shortest_chord(lengths: &[f64], turns: &[f64]) -> Option<f64> {
    let (mut x, mut y, mut direction) = (0.0, 0.0, 0.0f64);
    for (k, length) in lengths.iter().enumerate() {
        direction += if k > 0 { turns[k - 1] } else { 0.0 };
        let (s, c) = direction.sin_cos();
        (x, y) = (x + length * c, y + length * s);
    }
    // the line from the last end to the first one turns to the same side at both ends
    let (s, c) = direction.sin_cos();
    let rounding = -1e-9 * lengths.iter().sum::<f64>();
    (direction < TAU && y >= rounding && s * x - c * y >= rounding).then(|| f64::hypot(x, y))
}

/// Returns whether `name`, type names joined by `-`, consists of these beads in this or the reverse order.
pub fn is_type_of<S: AsRef<str>>(name: &str, beads: &[S]) -> bool {
    let parts: Vec<&str> = name.split('-').collect();
    let beads = || beads.iter().map(AsRef::as_ref);
    parts.iter().copied().eq(beads()) || parts.iter().rev().copied().eq(beads())
}

/// Returns the name among `names` that consists of these beads in this or the reverse order.
pub fn matching<'a>(names: &'a [(String, Position)], beads: &[&str]) -> Option<&'a str> {
    names.iter().find(|(n, _)| is_type_of(n, beads)).map(|(n, _)| n.as_str())
}

impl Polymers {
    /// Returns the bond length between two types.
    fn length_of(&self, a: &str, b: &str) -> f64 {
        let mut rows = self.bonds.iter().flat_map(TypeMap::iter);
        rows.find(|(name, _)| is_type_of(name, &[a, b])).map_or(self.bond_length, |(_, row)| row.value.length)
    }

    /// Returns cos θ of the angle of three types, if it is given.
    fn bend_of(&self, beads: [&str; 3]) -> Option<f64> {
        let (_, row) = self.angles.iter().flat_map(TypeMap::iter).find(|(name, _)| is_type_of(name, &beads))?;
        row.value.theta_deg.map(|t| t.to_radians().cos())
    }

    /// Prepares the molecules of one entry; adds their types to the snapshot.
    pub fn species(&self, e: &MoleculeEntry, m: Molecule, s: &mut Snapshot) -> Species {
        let name = |i: usize| m.beads[i].as_str();
        let types = m.beads.iter().map(|b| s.type_id(b)).collect();
        let anchor_length = match &e.graft {
            Some(Graft::Particles { of }) => self.length_of(of, name(0)),
            _ => self.bond_length,
        };
        let length = |i: usize| if i == 0 { anchor_length } else { self.length_of(name(m.parents[i]), name(i)) };
        let bend = |i: usize| {
            let parent = m.parents[i];
            (parent > 0).then(|| self.bend_of([name(m.parents[parent]), name(parent), name(i)])).flatten()
        };
        let ring_targets = Species::ring_targets(&m, |a, b| self.length_of(name(a), name(b)));
        // the last bead of a ring is placed by the lengths of its two bonds
        let closes = |i: usize| ring_targets[i].is_some_and(|t| t.bonds_left == 1);
        let bends: Vec<Option<f64>> = (0..m.beads.len()).map(|i| bend(i).filter(|_| !closes(i))).collect();
        let mut near = m.neighbors();
        // other angles, such as those between two branches, are free, so the distance of their ends is not given
        for i in (0..m.beads.len()).filter(|i| bends[*i].is_some()) {
            let end = m.parents[m.parents[i]];
            near[i].push(end);
            near[end].push(i);
        }
        Species {
            types,
            lengths: (0..m.beads.len()).map(length).collect(),
            bends,
            ring_targets,
            near,
            region: e.region,
            graft: e.graft.clone(),
            molecule: m,
        }
    }

    /// Returns the squared minimum distances of all pairs of types.
    ///
    /// # Errors
    /// Returns an error if `distances` contains an unknown type.
    pub fn min_distances2(&self, types: &[String]) -> Result<Vec<f64>> {
        let mut errors = Errors::default();
        let table = self.distances.as_ref().map(|d| d.bind_some(types, &mut errors));
        let n = types.len();
        let of_pair = |k: usize| {
            let row = table.as_ref().and_then(|t| t[k]);
            row.zip(self.distances.as_ref()).map_or(self.distance, |(r, d)| *d.get(r)).powi(2)
        };
        errors.into_result(Some((0..n * n).map(of_pair).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plane_arcs_have_the_closest_ends() {
        let chord =
            |bonds: usize, theta: f64| shortest_chord(&vec![1.0; bonds], &vec![PI - theta.to_radians(); bonds - 1]);
        let near = |found: Option<f64>, expected: f64| {
            assert!(found.is_some_and(|d| (d - expected).abs() < 1e-9), "{found:?}")
        };
        near(chord(5, 180.0), 5.0);
        // sides of a hexagon: its short diagonal, and the side itself
        near(chord(4, 120.0), 3f64.sqrt());
        near(chord(5, 120.0), 1.0);
        near(chord(9, 170.0), 45f64.to_radians().sin() / 5f64.to_radians().sin());
        // more than once around: the path can leave the plane, and its ends may meet
        assert_eq!(chord(8, 120.0), None);
    }
}
