//! Molecules: who belongs together, and how members hang together, from the views of a run's device.

use crate::positions::{Inside, tags, words};
use galamost_plugin_api::analyzer::FrameCall;
use galamost_plugin_api::component::{ArrayNeed, Needs, SystemInfo};
use galamost_plugin_api::error::{Error, InputError, Position, Result};
use galamost_plugin_api::services::Host;
use galamost_plugin_api::views::StateView;

/// Asks for what tells molecules apart.
///
/// # Errors
/// Nothing does: the initial state has neither an array `molecule` nor bonds.
pub fn need(system: &SystemInfo, needs: &mut Needs, at: Position) -> Result<()> {
    if system.has_array("molecule") {
        let name = "molecule".into();
        needs.arrays.push(ArrayNeed { name, width: 1, integer: true, required: false });
        return Ok(());
    }
    if system.bond_types.is_empty() {
        let what = "the molecules are not known: the initial state has neither an array `molecule` nor bonds";
        return Err(InputError::at(at, what).into());
    }
    Ok(())
}

/// Bonds on the run's device as pairs of tags, each once.
///
/// # Errors
/// The device's words.
pub fn bonds(host: &Host, call: &FrameCall) -> Result<Vec<[u32; 2]>> {
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
            // every member has the bond: it is taken from its first one
            if last & 3 == 0 {
                found.push([tag[i], tag[other as usize]]);
            }
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// The molecule of each particle by tag: the array `molecule`, where a negative number is a molecule of its own, else what
/// the bonds hold together.
///
/// # Errors
/// The device's words.
pub fn numbers(host: &Host, s: &StateView, bonds: &[[u32; 2]]) -> Result<Vec<u32>> {
    let n = s.n_local as usize;
    let array = host.array::<i32>("molecule");
    if !array.is_null() {
        let mut of = vec![0; n];
        for (m, tag) in words(host, array, n)?.into_iter().zip(tags(host, s)?) {
            // numbers of an array are not negative as i32: those above are free for particles without a molecule
            of[tag as usize] = if (m as i32) < 0 { 1 << 31 | tag } else { m };
        }
        return Ok(of);
    }
    Ok(joined(n, bonds.iter().copied()))
}

/// For each of n particles the first of all that bonds join it to.
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
    // what a particle points to has a smaller number, so it is known already
    for t in 0..n {
        of[t] = of[of[t] as usize];
    }
    of
}

/// Molecules of at least two particles.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Molecules {
    /// Place of the first member of each molecule in `members`, and the number of members.
    pub first: Vec<u32>,
    /// Tags, each behind a member that it is bonded to where there is one.
    pub members: Vec<u32>,
    /// Place of that member; the first member's is its own.
    pub parent: Vec<u32>,
}

impl Molecules {
    /// The molecules of a run now.
    ///
    /// # Errors
    /// The device's words.
    pub fn now(host: &Host, call: &FrameCall) -> Result<Self> {
        let bonds = bonds(host, call)?;
        Ok(Self::new(&numbers(host, &call.state, &bonds)?, &bonds))
    }

    /// From the molecule of each tag, and bonds.
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
        let mut place = vec![u32::MAX; n];
        for molecule in tags.chunk_by(|a, b| of[*a as usize] == of[*b as usize]).filter(|m| m.len() > 1) {
            let begin = out.members.len();
            for tag in molecule {
                if place[*tag as usize] != u32::MAX {
                    continue;
                }
                // along bonds from here; what no bond leads to hangs on the first member
                place[*tag as usize] = out.members.len() as u32;
                out.parent.push(begin as u32);
                out.members.push(*tag);
                let mut next = out.members.len() - 1;
                while let Some(at) = out.members.get(next).copied() {
                    for p in &partners[at as usize] {
                        if place[*p as usize] == u32::MAX {
                            place[*p as usize] = out.members.len() as u32;
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

    /// Number of molecules.
    pub fn len(&self) -> usize {
        self.first.len().saturating_sub(1)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Places of the members of a molecule.
    pub fn places(&self, molecule: usize) -> std::ops::Range<usize> {
        self.first[molecule] as usize..self.first[molecule + 1] as usize
    }

    /// Centers of mass in the box, each molecule put together along its bonds by nearest images: what `molecule_centers` of the
    /// kernels does.
    ///
    /// # Safety
    /// The view is of valid host arrays.
    pub unsafe fn centers(&self, s: &StateView, inside: &Inside, length: [f64; 3]) -> Inside {
        // SAFETY: the caller's word
        let index = unsafe { s.index_of_tag.slice(s.n_local as usize) };
        // SAFETY: the caller's word
        let mass = |i: usize| unsafe { s.velocity_mass(i)[3] };
        match inside {
            Inside::Fixed(p) => {
                let mut offset = vec![[0i64; 3]; self.members.len()];
                let center = |m: usize| {
                    let places = self.places(m);
                    let (mut sum, mut total) = ([0.0; 3], 0.0);
                    for at in places.clone() {
                        let (i, parent) = (index[self.members[at] as usize] as usize, self.parent[at] as usize);
                        let before = index[self.members[parent] as usize] as usize;
                        let w = mass(i);
                        total += w;
                        for k in 0..3 {
                            offset[at][k] = offset[parent][k] + i64::from(p[i][k].wrapping_sub(p[before][k]));
                            sum[k] += w * offset[at][k] as f64;
                        }
                    }
                    let i = index[self.members[places.start] as usize] as usize;
                    std::array::from_fn(|k| p[i][k].wrapping_add((sum[k] / total).round_ties_even() as i64 as i32))
                };
                Inside::Fixed((0..self.len()).map(center).collect())
            }
            Inside::Real(p) => {
                let mut offset = vec![[0.0; 3]; self.members.len()];
                let center = |m: usize| {
                    let places = self.places(m);
                    let (mut sum, mut total) = ([0.0; 3], 0.0);
                    for at in places.clone() {
                        let (i, parent) = (index[self.members[at] as usize] as usize, self.parent[at] as usize);
                        let before = index[self.members[parent] as usize] as usize;
                        let w = mass(i);
                        total += w;
                        for k in 0..3 {
                            offset[at][k] = offset[parent][k] + nearest(p[i][k] - p[before][k], length[k]);
                            sum[k] += w * offset[at][k];
                        }
                    }
                    let i = index[self.members[places.start] as usize] as usize;
                    std::array::from_fn(|k| nearest(p[i][k] + sum[k] / total, length[k]))
                };
                Inside::Real((0..self.len()).map(center).collect())
            }
        }
    }
}

/// A difference of coordinates less the nearest multiple of the box length.
pub fn nearest(d: f64, length: f64) -> f64 {
    if length > 0.0 { d - length * (d / length).round_ties_even() } else { d }
}

/// There must be a molecule.
///
/// # Errors
/// None has two particles.
pub fn some(molecules: &Molecules) -> Result<()> {
    if molecules.is_empty() { Err(Error::Run("no molecule has two particles".into())) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_stand_behind_those_they_are_bonded_to() {
        // a chain 5-1-3, a particle of its own, a pair by number alone
        let m = Molecules::new(&[9, 1, 0, 1, 0, 1], &[[5, 1], [1, 3]]);
        assert_eq!(m.first, [0, 2, 5]);
        assert_eq!(m.members, [2, 4, 1, 5, 3]);
        assert_eq!(m.parent, [0, 0, 2, 2, 2]);
        assert!(Molecules::new(&[0, 1, 2], &[]).is_empty());
        assert_eq!(joined(6, [[5, 1], [4, 5], [2, 3]]), [0, 1, 2, 2, 1, 1]);
        assert_eq!(nearest(7.0, 10.0), -3.0);
        assert_eq!(nearest(7.0, 0.0), 7.0);
    }
}
