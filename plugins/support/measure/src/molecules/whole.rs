//! Molecules of a frame, not cut by the box boundaries.

use crate::molecules::{UNDEFINED, joined};
use galamost_plugin_api::prelude::*;
use galamost_plugin_api::tilt::nearest;
use std::collections::BTreeSet;
use std::ops::Range;

/// The molecules of a frame, with unwrapped positions.
///
/// Without an array `molecule`, particles connected by bonds form a molecule. In the array, each particle with a negative
/// number is a separate molecule.
#[derive(Clone, Debug, Default)]
pub struct WholeMolecules {
    /// Tags, molecule by molecule: sorted within a molecule, or from end to end in a linear molecule.
    pub tags: Vec<u32>,
    /// The molecules.
    pub parts: Vec<Molecule>,
    /// Unwrapped position of each tag; bonded particles are nearest images of each other.
    pub place: Vec<[f64; 3]>,
}

/// One molecule of a frame.
#[derive(Clone, Debug, PartialEq)]
pub struct Molecule {
    /// Indices of its members in [`WholeMolecules::tags`].
    pub range: Range<usize>,
    /// Whether bonds connect all members; otherwise image numbers place its fragments.
    pub connected: bool,
    /// Whether the molecule is an unbranched chain: connected, at most two bonds per particle, two ends.
    pub linear: bool,
    /// Whether bonds connect the molecule to its own periodic images, such as a ring through the box. Its unwrapped positions then
    /// depend on which of its bonds is cut.
    pub endless: bool,
}

impl WholeMolecules {
    /// Requests positions and topology with each frame. Without bonds, image numbers place the particles of a molecule, which do
    /// not know the displaced images of a sheared box.
    ///
    /// # Errors
    /// Returns an error if the initial state has neither an array `molecule` nor bonds.
    pub fn bind(system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        if !system.has_array("molecule") && system.bond_types.is_empty() {
            return Err(Error::input(UNDEFINED));
        }
        needs.wants.particles = true;
        needs.wants.topology = true;
        needs.plain_images = system.bond_types.is_empty();
        Ok(())
    }

    /// Finds the molecules of a frame with at least `shortest` particles.
    ///
    /// A molecule is unwrapped along its bonds by nearest images. Fragments of a molecule without a bond between them are
    /// placed by their image numbers.
    pub fn of(frame: &Frame<'_>, shortest: usize) -> Self {
        let given = frame.int_array("molecule").filter(|(width, _)| *width == 1).map(|(_, m)| m);
        let places = |tag: usize| frame.unwrapped(tag);
        Self::build(frame.position(), places, |d| frame.nearest(d), given, frame.bonds(), shortest)
    }

    /// Finds molecules as [`Self::of`] does, from the columns of a frame in a rectangular box without shear.
    pub fn new(
        position: &[[f64; 3]],
        image: &[[i32; 3]],
        length: [f64; 3],
        molecule: Option<&[i32]>,
        bonds: &[Link<2>],
        shortest: usize,
    ) -> Self {
        let unwrapped = |i: usize| std::array::from_fn(|k| position[i][k] + length[k] * f64::from(image[i][k]));
        Self::build(position, unwrapped, |d| nearest(d, length, [0.0; 3]), molecule, bonds, shortest)
    }

    /// Finds molecules. `unwrapped` returns a position by image numbers, `nearest` the nearest image of a difference.
    fn build(
        position: &[[f64; 3]],
        unwrapped: impl Fn(usize) -> [f64; 3],
        nearest: impl Fn([f64; 3]) -> [f64; 3],
        molecule: Option<&[i32]>,
        bonds: &[Link<2>],
        shortest: usize,
    ) -> Self {
        let n = position.len();
        // each particle with a negative number is a molecule by itself
        let given: Option<Vec<i64>> = molecule
            .map(|m| m.iter().zip(0i64..).map(|(m, tag)| if *m < 0 { -1 - tag } else { i64::from(*m) }).collect());
        // bonds to other molecules say nothing about a molecule
        let inside: Vec<Link<2>>;
        let bonds = match &given {
            Some(key) => {
                let same = |b: &&Link<2>| key[b.tags[0] as usize] == key[b.tags[1] as usize];
                inside = bonds.iter().filter(same).copied().collect();
                &inside
            }
            None => bonds,
        };
        let fragment = joined(n, bonds.iter().map(|b| b.tags));
        // bonded partners of each particle, in compressed rows
        let mut first = vec![0u32; n + 1];
        bonds.iter().flat_map(|b| b.tags).for_each(|t| first[t as usize + 1] += 1);
        for i in 0..n {
            first[i + 1] += first[i];
        }
        let (mut next, mut partner) = (first.clone(), vec![0u32; 2 * bonds.len()]);
        for [a, b] in bonds.iter().map(|b| b.tags) {
            for (from, to) in [(a, b), (b, a)] {
                partner[next[from as usize] as usize] = to;
                next[from as usize] += 1;
            }
        }
        let partners = |i: u32| &partner[first[i as usize] as usize..first[i as usize + 1] as usize];
        let place = unwrap_fragments(position, unwrapped, &nearest, &fragment, partners);
        // molecules sorted by their first tags
        let key = given.unwrap_or_else(|| fragment.iter().map(|p| i64::from(*p)).collect());
        let endless: BTreeSet<i64> = (bonds.iter().map(|b| b.tags.map(|t| t as usize)))
            .filter(|ends| leads_to_image(position, &place, &nearest, *ends))
            .map(|[a, _]| key[a])
            .collect();
        let mut tags: Vec<u32> = (0..n as u32).collect();
        tags.sort_by_key(|t| (key[*t as usize], *t));
        let mut found: Vec<&mut [u32]> = tags.chunk_by_mut(|a, b| key[*a as usize] == key[*b as usize]).collect();
        found.retain(|m| m.len() >= shortest);
        found.sort_by_key(|m| m[0]);
        let mut out = Self { place, ..Self::default() };
        for members in found {
            let begin = out.tags.len();
            let connected = members.iter().all(|t| fragment[*t as usize] == fragment[members[0] as usize]);
            let linear = connected && sort_linear(members, partners);
            let endless = endless.contains(&key[members[0] as usize]);
            out.tags.extend_from_slice(members);
            out.parts.push(Molecule { range: begin..out.tags.len(), connected, linear, endless });
        }
        out
    }

    /// Returns the tags of a molecule.
    pub fn members(&self, part: &Molecule) -> &[u32] {
        &self.tags[part.range.clone()]
    }

    /// Returns the unwrapped positions of a molecule's particles.
    pub fn places(&self, part: &Molecule) -> impl Iterator<Item = [f64; 3]> {
        self.members(part).iter().map(|t| self.place[*t as usize])
    }
}

/// Unwraps every fragment along its bonds, starting from its first particle at the position given by its image numbers.
fn unwrap_fragments<'a>(
    position: &[[f64; 3]],
    unwrapped: impl Fn(usize) -> [f64; 3],
    nearest: impl Fn([f64; 3]) -> [f64; 3],
    fragment: &[u32],
    partners: impl Fn(u32) -> &'a [u32],
) -> Vec<[f64; 3]> {
    let n = position.len();
    let mut place: Vec<[f64; 3]> = (0..n).map(unwrapped).collect();
    let mut done = vec![false; n];
    let mut stack = vec![];
    for start in (0..n as u32).filter(|i| fragment[*i as usize] == *i) {
        done[start as usize] = true;
        stack.push(start);
        while let Some(i) = stack.pop() {
            for j in partners(i) {
                if std::mem::replace(&mut done[*j as usize], true) {
                    continue;
                }
                let (a, b) = (position[i as usize], position[*j as usize]);
                let (from, d) = (place[i as usize], nearest(std::array::from_fn(|k| b[k] - a[k])));
                place[*j as usize] = std::array::from_fn(|k| from[k] + d[k]);
                stack.push(*j);
            }
        }
    }
    place
}

/// Returns whether a bond connects a particle to another image of its partner than the one that the other bonds lead to.
fn leads_to_image(
    position: &[[f64; 3]],
    place: &[[f64; 3]],
    nearest: impl Fn([f64; 3]) -> [f64; 3],
    [a, b]: [usize; 2],
) -> bool {
    let d = nearest(std::array::from_fn(|k| position[b][k] - position[a][k]));
    // a rounding error, or a vector between images of the box, whose nearest image is 0
    let rest: [f64; 3] = std::array::from_fn(|k| place[b][k] - place[a][k] - d[k]);
    let near = nearest(rest);
    let square = |v: [f64; 3]| v.iter().map(|x| x * x).sum::<f64>();
    square(std::array::from_fn(|k| rest[k] - near[k])) > 0.25 * square(rest)
}

/// Sorts the members of a connected linear molecule along its bonds, starting at the end with the smaller tag. Returns `false` if
/// the molecule is not linear.
fn sort_linear<'a>(members: &mut [u32], partners: impl Fn(u32) -> &'a [u32]) -> bool {
    let ends: Vec<u32> = members.iter().copied().filter(|t| partners(*t).len() == 1).collect();
    if ends.len() != 2 || members.iter().any(|t| partners(*t).len() > 2) {
        return false;
    }
    let (mut previous, mut at) = (u32::MAX, ends[0]);
    let mut path = Vec::with_capacity(members.len());
    loop {
        path.push(at);
        match partners(at).iter().copied().find(|p| *p != previous) {
            Some(next) if path.len() < members.len() => (previous, at) = (at, next),
            _ => break,
        }
    }
    // bonds may lead to particles that the array assigns to other molecules
    if path.len() != members.len() || !path.iter().all(|t| members.binary_search(t).is_ok()) {
        return false;
    }
    members.copy_from_slice(&path);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A ring of ten particles through the box is two straight chains of five by their numbers.
    #[test]
    fn bonds_to_other_molecules_do_not_count() {
        let position: Vec<[f64; 3]> = (0..10).map(|i| [f64::from(i) - 4.5, 0.0, 0.0]).collect();
        let bonds: Vec<_> = (0..10).map(|i| Link { kind: 0, tags: [i, (i + 1) % 10] }).collect();
        let numbers = [0, 0, 0, 0, 0, 1, 1, 1, 1, 1];
        let m = WholeMolecules::new(&position, &[[0; 3]; 10], [10.0; 3], Some(&numbers), &bonds, 2);
        assert_eq!(m.parts.len(), 2);
        assert!(m.parts.iter().all(|p| p.linear && p.connected && !p.endless));
        assert_eq!((m.members(&m.parts[0]), m.members(&m.parts[1])), (&[0, 1, 2, 3, 4][..], &[5, 6, 7, 8, 9][..]));
    }

    #[test]
    fn chains_rings_and_stars_across_the_boundary() {
        // a chain 3-0-1 along x across the face, a ring 2-4-5, and a lone particle 6
        let position = vec![
            [4.8, 0.0, 0.0],
            [-4.4, 0.0, 0.0],
            [0.0, 0.0, 0.0],
            [4.0, 0.0, 0.0],
            [0.0, 1.0, 0.0],
            [1.0, 0.0, 0.0],
            [3.0, 3.0, 0.0],
        ];
        let link = |a, b| Link { kind: 0, tags: [a, b] };
        let bonds = [link(3, 0), link(0, 1), link(2, 4), link(4, 5), link(5, 2)];
        let m = WholeMolecules::new(&position, &[[0; 3]; 7], [10.0, 10.0, 0.0], None, &bonds, 2);
        assert_eq!(m.parts.len(), 2);
        assert!(m.parts[0].linear && !m.parts[1].linear);
        assert_eq!(m.members(&m.parts[0]), [1, 0, 3]);
        assert_eq!(m.members(&m.parts[1]), [2, 4, 5]);
        let x: Vec<f64> = m.places(&m.parts[0]).map(|p| p[0]).collect();
        assert!((x[0] - 5.6).abs() < 1e-12 && x[1] == 4.8 && (x[2] - 4.0).abs() < 1e-12, "{x:?}");
        // an array `molecule` takes precedence over bonds, and image numbers place unbonded fragments
        let mut image = [[0; 3]; 7];
        image[6] = [1, 0, 0];
        let m = WholeMolecules::new(&position, &image, [10.0, 10.0, 0.0], Some(&[0, 0, -1, 0, -1, -1, 0]), &bonds, 2);
        assert_eq!((m.parts.len(), m.parts[0].linear, m.parts[0].connected), (1, false, false));
        assert_eq!(m.place[6], [13.0, 3.0, 0.0]);
        assert!(m.parts.iter().all(|p| !p.endless));
    }

    #[test]
    fn rings_through_the_box_are_endless() {
        let link = |a, b| Link { kind: 0, tags: [a, b] };
        let position: Vec<[f64; 3]> = (0..10).map(|k| [f64::from(k) - 4.9, 0.1 * f64::from(k % 2), 0.0]).collect();
        let chain: Vec<_> = (0..9).map(|k| link(k, k + 1)).collect();
        let ring = [chain.clone(), vec![link(9, 0)]].concat();
        // as a chain, and in a longer box, it ends
        for (bonds, length, endless) in [(&ring, 10.0, true), (&chain, 10.0, false), (&ring, 30.0, false)] {
            let m = WholeMolecules::new(&position, &[[0; 3]; 10], [length, 10.0, 10.0], None, bonds, 2);
            assert_eq!(m.parts.iter().map(|p| p.endless).collect::<Vec<_>>(), [endless]);
        }
    }
}
