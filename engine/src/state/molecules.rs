//! Molecules, and the restriction of neighbor lists to pairs inside or between them.

use crate::pipeline::Only;
use galamost_plugin_api::snapshot::{Snapshot, Values};
use std::collections::BTreeMap;

/// The pairs that a neighbor list contains, by the molecules of the two particles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MoleculeRule {
    /// Molecule of each tag.
    pub of: Vec<u32>,
    /// The pairs in the list.
    pub only: Only,
}

impl MoleculeRule {
    /// Returns the rule of a system; `None` if its molecules are unknown.
    pub fn new(only: Only, s: &Snapshot) -> Option<Self> {
        Some(Self { of: molecules(s)?, only })
    }

    /// Returns the molecule size averaged over particles.
    pub fn mean_size(&self) -> f64 {
        let mut sizes = BTreeMap::<u32, f64>::new();
        self.of.iter().for_each(|m| *sizes.entry(*m).or_default() += 1.0);
        sizes.values().map(|s| s * s).sum::<f64>() / self.of.len().max(1) as f64
    }

    /// Returns the members of all molecules, molecule by molecule and in tag order, and for each tag the range of its
    /// molecule in that list: first member, one past the last.
    pub fn members(&self) -> (Vec<u32>, Vec<[u32; 2]>) {
        let mut members: Vec<u32> = (0..self.of.len() as u32).collect();
        members.sort_by_key(|t| (self.of[*t as usize], *t));
        let mut range = vec![[0; 2]; self.of.len()];
        let mut first = 0;
        for one in members.chunk_by(|a, b| self.of[*a as usize] == self.of[*b as usize]) {
            let end = first + one.len() as u32;
            one.iter().for_each(|t| range[*t as usize] = [first, end]);
            first = end;
        }
        (members, range)
    }

    /// Returns whether two tags may be neighbors.
    pub fn allows(&self, a: u32, b: u32) -> bool {
        (self.of[a as usize] == self.of[b as usize]) == (self.only == Only::SameMolecule)
    }
}

/// Returns the molecule of each particle: the array `molecule`, in which a negative number makes the particle a molecule
/// by itself, otherwise the connected components of the bonds. Returns `None` if the system has neither.
pub fn molecules(s: &Snapshot) -> Option<Vec<u32>> {
    if let Some(Values::Int(given)) = s.arrays.get("molecule").map(|a| &a.values) {
        // molecule numbers are not negative, so numbers with the top bit are free for single particles
        return Some((0..).zip(given).map(|(tag, m)| if *m < 0 { 1 << 31 | tag } else { *m as u32 }).collect());
    }
    if s.bonds.is_empty() {
        return None;
    }
    // union-find: the root of a component is its smallest tag
    let mut of: Vec<u32> = (0..s.len() as u32).collect();
    fn root(of: &mut [u32], mut t: u32) -> u32 {
        while of[t as usize] != t {
            of[t as usize] = of[of[t as usize] as usize];
            t = of[t as usize];
        }
        t
    }
    for [a, b] in s.bonds.iter().map(|l| l.tags) {
        let (a, b) = (root(&mut of, a), root(&mut of, b));
        of[a.max(b) as usize] = a.min(b);
    }
    Some((0..s.len() as u32).map(|t| root(&mut of, t)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use galamost_plugin_api::snapshot::{Array, Link};

    fn five() -> Snapshot {
        let mut s = Snapshot { dimensions: 3, box_length: [10.0; 3], ..Snapshot::default() };
        let a = s.type_id("A");
        for k in 0..5 {
            s.push(a, [f64::from(k), 0.0, 0.0]);
        }
        s
    }

    #[test]
    fn bonds_make_molecules_where_none_are_given() {
        let mut s = five();
        assert!(molecules(&s).is_none());
        s.bonds = [[4, 1], [3, 4]].map(|tags| Link { kind: 0, tags }).to_vec();
        assert_eq!(molecules(&s).expect("bonds"), [0, 1, 2, 1, 1]);
        let rule = MoleculeRule::new(Only::SameMolecule, &s).expect("bonds");
        assert_eq!(rule.mean_size(), (1.0 + 9.0 + 1.0) / 5.0);
        assert_eq!(rule.members(), (vec![0, 1, 3, 4, 2], vec![[0, 1], [1, 4], [4, 5], [1, 4], [1, 4]]));
        let of = vec![7, 7, -1, -1, 7];
        s.arrays.insert("molecule".into(), Array { width: 1, values: Values::Int(of) });
        let rule = MoleculeRule::new(Only::SameMolecule, &s).expect("given");
        assert!(rule.allows(0, 1) && rule.allows(4, 0) && !rule.allows(2, 3) && !rule.allows(0, 2));
        let rule = MoleculeRule { only: Only::OtherMolecules, ..rule };
        assert!(!rule.allows(0, 1) && rule.allows(2, 3) && rule.allows(0, 2));
    }
}
