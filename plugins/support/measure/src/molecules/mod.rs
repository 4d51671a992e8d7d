//! Molecules in the state of a run: the members of each molecule, and the bonds that connect them.

pub mod whole;
use crate::pack::{Unpack, foreign, put};
use crate::positions::{BoxPositions, tags, words, wrapped};
use galamost_plugin_api::analyzer::FrameCall;
use galamost_plugin_api::component::{ArrayNeed, Needs, SystemInfo};
use galamost_plugin_api::error::{Error, InputError, Position, Result};
use galamost_plugin_api::services::Host;
use galamost_plugin_api::views::StateView;

/// Message for a system in which no molecules are defined.
const UNDEFINED: &str =
    "molecules are not defined: the initial state has neither an array `molecule` nor bonds; add one of them";

/// Requests the array `molecule` if the system has it; otherwise molecules are defined by bonds.
///
/// # Errors
/// Returns an error at `at` if the initial state has neither an array `molecule` nor bonds.
pub fn need(system: &SystemInfo, needs: &mut Needs, at: Position) -> Result<()> {
    if system.has_array("molecule") {
        let name = "molecule".into();
        needs.arrays.push(ArrayNeed { name, width: 1, integer: true, required: false });
        return Ok(());
    }
    if system.bond_types.is_empty() {
        return Err(InputError::at(at, UNDEFINED).into());
    }
    Ok(())
}

/// Returns the bonds of the current state as pairs of tags, each bond once.
///
/// # Errors
/// Returns the driver's error.
pub fn bonds(host: &Host, call: &FrameCall<'_>) -> Result<Vec<[u32; 2]>> {
    let (s, view) = (&call.state, &call.bond_view);
    if view.capacity == 0 || view.count.is_null() || view.words.is_null() {
        return Ok(vec![]);
    }
    let (n, stride) = (s.n_local as usize, view.stride as usize);
    let (count, tag) = (words(host, view.count, n)?, tags(host, s)?);
    let entries = words(host, view.words, stride * 2 * view.capacity as usize)?;
    let mut found = vec![];
    for i in 0..n {
        for e in 0..count[i] as usize {
            let (other, last) = (entries[2 * e * stride + i], entries[(2 * e + 1) * stride + i]);
            // both members store the bond: the lowest bits of the last word are 0 for the first member
            if last & 3 == 0 {
                found.push([tag[i], tag[other as usize]]);
            }
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// Returns the molecule number of each particle, by tag. Without an array `molecule`, particles connected by bonds form a
/// molecule. In the array, each particle with a negative number is a separate molecule.
///
/// # Errors
/// Returns the driver's error.
pub fn numbers(host: &Host, s: &StateView, bonds: &[[u32; 2]]) -> Result<Vec<u32>> {
    let n = s.n_local as usize;
    let array = host.array::<i32>("molecule");
    if !array.is_null() {
        let mut of = vec![0; n];
        for (m, tag) in words(host, array, n)?.into_iter().zip(tags(host, s)?) {
            // numbers with the highest bit set are not used by the array (i32), so single particles take them
            of[tag as usize] = if (m as i32) < 0 { 1 << 31 | tag } else { m };
        }
        return Ok(of);
    }
    Ok(joined(n, bonds.iter().copied()))
}

/// Returns, for each of n particles, the smallest tag among the particles that bonds connect it to.
pub fn joined(n: usize, bonds: impl IntoIterator<Item = [u32; 2]>) -> Vec<u32> {
    fn root(of: &mut [u32], mut t: u32) -> u32 {
        while of[t as usize] != t {
            of[t as usize] = of[of[t as usize] as usize];
            t = of[t as usize];
        }
        t
    }
    let mut of: Vec<u32> = (0..n as u32).collect();
    for bond in bonds {
        let [a, b] = bond.map(|t| root(&mut of, t));
        of[a.max(b) as usize] = a.min(b);
    }
    // each particle points to one with a smaller number, whose root is already final
    for t in 0..n {
        of[t] = of[of[t] as usize];
    }
    of
}

/// Molecules of at least two particles, each as a spanning tree of its bonds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Molecules {
    /// Index of the first member of each molecule in `members`, followed by the total number of members.
    pub first: Vec<u32>,
    /// Tags, molecule by molecule; each member follows a member that it is bonded to, if there is one.
    pub members: Vec<u32>,
    /// Index in `members` of the bonded member that precedes it; the first member's is its own.
    pub parent: Vec<u32>,
}

impl Molecules {
    /// Finds the molecules of the current state of a run.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn now(host: &Host, call: &FrameCall<'_>) -> Result<Self> {
        let bonds = bonds(host, call)?;
        Ok(Self::new(&numbers(host, &call.state, &bonds)?, &bonds))
    }

    /// Builds molecules from the molecule number of each tag, and bonds.
    pub fn new(of: &[u32], bonds: &[[u32; 2]]) -> Self {
        let n = of.len();
        let mut tags: Vec<u32> = (0..n as u32).collect();
        tags.sort_by_key(|t| (of[*t as usize], *t));
        let mut partners = vec![vec![]; n];
        for [a, b] in bonds.iter().filter(|[a, b]| of[*a as usize] == of[*b as usize]) {
            partners[*a as usize].push(*b);
            partners[*b as usize].push(*a);
        }
        let mut out = Self { first: vec![0], ..Self::default() };
        let mut index_of = vec![u32::MAX; n];
        for molecule in tags.chunk_by(|a, b| of[*a as usize] == of[*b as usize]).filter(|m| m.len() > 1) {
            let begin = out.members.len();
            for tag in molecule {
                if index_of[*tag as usize] != u32::MAX {
                    continue;
                }
                // breadth-first along bonds; members without a bond to the others attach to the first member
                index_of[*tag as usize] = out.members.len() as u32;
                out.parent.push(begin as u32);
                out.members.push(*tag);
                let mut next = out.members.len() - 1;
                while let Some(at) = out.members.get(next).copied() {
                    for p in &partners[at as usize] {
                        if index_of[*p as usize] == u32::MAX {
                            index_of[*p as usize] = out.members.len() as u32;
                            out.parent.push(next as u32);
                            out.members.push(*p);
                        }
                    }
                    next += 1;
                }
            }
            out.first.push(out.members.len() as u32);
        }
        out
    }

    /// Serializes the molecules for a checkpoint.
    pub fn save(&self, to: &mut Vec<u8>) {
        put(to, &self.first);
        put(to, &self.members);
        put(to, &self.parent);
    }

    /// Restores the molecules from a checkpoint of a system of `n` particles.
    ///
    /// # Errors
    /// Returns an error if the checkpoint belongs to another analyzer.
    pub fn load(from: &mut Unpack<'_>, n: u64) -> Result<Self> {
        let out = Self { first: from.row()?, members: from.row()?, parent: from.row()? };
        let sound = out.first.windows(2).all(|w| w[0] <= w[1])
            && out.first.last().map_or(0, |l| *l as usize) == out.members.len()
            && out.members.len() == out.parent.len()
            && out.members.iter().all(|t| u64::from(*t) < n)
            && out.parent.iter().enumerate().all(|(at, p)| *p as usize <= at);
        if sound { Ok(out) } else { Err(foreign()) }
    }

    /// Returns the number of molecules.
    pub fn len(&self) -> usize {
        self.first.len().saturating_sub(1)
    }

    /// Returns whether there are no molecules.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the indices of a molecule's members in `members`.
    pub fn places(&self, molecule: usize) -> std::ops::Range<usize> {
        self.first[molecule] as usize..self.first[molecule + 1] as usize
    }

    /// Removes molecules that bonds connect to their own periodic images, such as a ring through the box: they have no center.
    /// Returns how many they are and the smallest tag of the first one.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn remove_endless(
        &mut self,
        host: &Host,
        call: &FrameCall<'_>,
        length: [f64; 3],
    ) -> Result<Option<(usize, u32)>> {
        let (position, length) = wrapped(host, &call.state, length)?;
        let endless = self.endless(&position, length, &bonds(host, call)?);
        let first =
            (0..self.len()).find(|m| endless[*m]).and_then(|m| self.members[self.places(m)].iter().min().copied());
        let count = endless.iter().filter(|e| **e).count();
        if count > 0 {
            *self = self.without(&endless);
        }
        Ok(first.map(|tag| (count, tag)))
    }

    /// Returns for each molecule whether a bond connects a particle to another image of its partner than the one that the other
    /// bonds lead to. Positions are by tag.
    fn endless(&self, position: &[[f64; 3]], length: [f64; 3], bonds: &[[u32; 2]]) -> Vec<bool> {
        let difference = |a: u32, b: u32| -> [f64; 3] {
            std::array::from_fn(|k| nearest(position[b as usize][k] - position[a as usize][k], length[k]))
        };
        // positions relative to the first member, and molecules, by tag
        let (mut offset, mut of) = (vec![[0.0; 3]; position.len()], vec![usize::MAX; position.len()]);
        for m in 0..self.len() {
            for at in self.places(m) {
                let (tag, parent) = (self.members[at], self.members[self.parent[at] as usize]);
                let (from, d) = (offset[parent as usize], difference(parent, tag));
                offset[tag as usize] = std::array::from_fn(|k| from[k] + d[k]);
                of[tag as usize] = m;
            }
        }
        let mut endless = vec![false; self.len()];
        for [a, b] in bonds {
            let (m, d) = (of[*a as usize], difference(*a, *b));
            if m != usize::MAX && m == of[*b as usize] {
                // a rounding error, or a multiple of the box length
                let rest = |k: usize| (offset[*b as usize][k] - offset[*a as usize][k] - d[k]).abs();
                endless[m] |= (0..3).any(|k| rest(k) > 0.5 * length[k] && length[k] > 0.0);
            }
        }
        endless
    }

    /// Returns the molecules that are not marked.
    fn without(&self, marked: &[bool]) -> Self {
        let mut out = Self { first: vec![0], ..Self::default() };
        for m in (0..self.len()).filter(|m| !marked[*m]) {
            let range = self.places(m);
            let shift = (range.start - out.members.len()) as u32;
            out.members.extend_from_slice(&self.members[range.clone()]);
            out.parent.extend(self.parent[range].iter().map(|p| p - shift));
            out.first.push(out.members.len() as u32);
        }
        out
    }

    /// Returns the wrapped centers of mass. Molecules are unwrapped along their bonds by nearest images, as
    /// `molecule_centers` of the kernels does.
    ///
    /// # Safety
    /// The view describes valid host arrays.
    pub unsafe fn centers(&self, s: &StateView, positions: &BoxPositions, length: [f64; 3]) -> BoxPositions {
        // SAFETY: `index_of_tag` has `n_local` elements (contract of this function)
        let index = unsafe { s.index_of_tag.slice(s.n_local as usize) };
        // SAFETY: `i` comes from `index_of_tag`, so `i < n_local`
        let mass = |i: usize| unsafe { s.velocity_mass(i)[3] };
        match positions {
            BoxPositions::Fixed(p) => {
                let mut offset = vec![[0i64; 3]; self.members.len()];
                let center = |m: usize| {
                    let range = self.places(m);
                    let (mut sum, mut total) = ([0.0; 3], 0.0);
                    for at in range.clone() {
                        let (i, parent) = (index[self.members[at] as usize] as usize, self.parent[at] as usize);
                        let before = index[self.members[parent] as usize] as usize;
                        let w = mass(i);
                        total += w;
                        for k in 0..3 {
                            offset[at][k] = offset[parent][k] + i64::from(p[i][k].wrapping_sub(p[before][k]));
                            sum[k] += w * offset[at][k] as f64;
                        }
                    }
                    let i = index[self.members[range.start] as usize] as usize;
                    std::array::from_fn(|k| p[i][k].wrapping_add((sum[k] / total).round_ties_even() as i64 as i32))
                };
                BoxPositions::Fixed((0..self.len()).map(center).collect())
            }
            BoxPositions::Real(p) => {
                let mut offset = vec![[0.0; 3]; self.members.len()];
                let center = |m: usize| {
                    let range = self.places(m);
                    let (mut sum, mut total) = ([0.0; 3], 0.0);
                    for at in range.clone() {
                        let (i, parent) = (index[self.members[at] as usize] as usize, self.parent[at] as usize);
                        let before = index[self.members[parent] as usize] as usize;
                        let w = mass(i);
                        total += w;
                        for k in 0..3 {
                            offset[at][k] = offset[parent][k] + nearest(p[i][k] - p[before][k], length[k]);
                            sum[k] += w * offset[at][k];
                        }
                    }
                    let i = index[self.members[range.start] as usize] as usize;
                    std::array::from_fn(|k| nearest(p[i][k] + sum[k] / total, length[k]))
                };
                BoxPositions::Real((0..self.len()).map(center).collect())
            }
        }
    }
}

/// Returns the nearest image of a coordinate difference.
pub fn nearest(d: f64, length: f64) -> f64 {
    if length > 0.0 { d - length * (d / length).round_ties_even() } else { d }
}

/// Checks that there is a molecule at the first sample of an analyzer with the field `start`.
///
/// # Errors
/// Returns an error if no molecule has at least two particles.
pub fn some(molecules: &Molecules) -> Result<()> {
    if molecules.is_empty() {
        let message = "no molecule has two or more particles; the array `molecule`, which files and `Polymers` set and reactions do not change, \
                       defines molecules; without it bonds do: then begin with `start` after reactions have formed the first ones";
        return Err(Error::Run(message.into()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_follow_their_bonded_members() {
        // a chain 5-1-3, a single particle, a pair by molecule number without a bond
        let m = Molecules::new(&[9, 1, 0, 1, 0, 1], &[[5, 1], [1, 3]]);
        assert_eq!(m.first, [0, 2, 5]);
        assert_eq!(m.members, [2, 4, 1, 5, 3]);
        assert_eq!(m.parent, [0, 0, 2, 2, 2]);
        let mut bytes = vec![];
        m.save(&mut bytes);
        assert_eq!(Molecules::load(&mut Unpack(&bytes), 6).expect("the same molecules"), m);
        assert!(Molecules::load(&mut Unpack(&bytes), 5).is_err(), "a tag beyond the particles");
        assert!(Molecules::new(&[0, 1, 2], &[]).is_empty());
        assert_eq!(joined(6, [[5, 1], [4, 5], [2, 3]]), [0, 1, 2, 2, 1, 1]);
        assert_eq!(nearest(7.0, 10.0), -3.0);
        assert_eq!(nearest(7.0, 0.0), 7.0);
    }

    #[test]
    fn molecules_without_a_center_are_found() {
        // a pair across the border, a ring of three through the box, a triangle
        let place = [(4.5, 0.0), (-4.5, 0.0), (-4.0, 1.0), (-1.0, 1.0), (2.0, 1.0), (0.0, 3.0), (1.0, 3.0), (0.5, 4.0)];
        let position = place.map(|(x, y)| [x, y, 0.0]);
        let bonds = [[0, 1], [2, 3], [3, 4], [4, 2], [5, 6], [6, 7], [7, 5]];
        let m = Molecules::new(&[0, 0, 2, 2, 2, 5, 5, 5], &bonds);
        let endless = m.endless(&position, [10.0, 10.0, 0.0], &bonds);
        assert_eq!(endless, [false, true, false]);
        let rest = m.without(&endless);
        assert_eq!((&rest.first[..], &rest.members[..]), (&[0, 2, 5][..], &[0, 1, 5, 6, 7][..]));
        assert_eq!(rest.parent, [0, 0, 2, 2, 2]);
    }
}
