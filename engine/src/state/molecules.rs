//! Molecules, and neighbor lists of pairs inside or between them.

use crate::pipeline::Only;
use galamost_plugin_api::snapshot::{Snapshot, Values};
use std::collections::BTreeMap;

/// What a neighbor list takes in, by the molecules of two particles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MoleculeRule {
    /// Molecule of each tag.
    pub of: Vec<u32>,
    /// Which pairs are taken in.
    pub only: Only,
}

impl MoleculeRule {
    /// The rule of a system; `None` if its molecules are not known.
    pub fn new(only: Only, s: &Snapshot) -> Option<Self> {
        Some(Self { of: molecules(s)?, only })
    }

    /// The size of a particle's molecule, on average over particles.
    pub fn mean_size(&self) -> f64 {
        let mut sizes = BTreeMap::<u32, f64>::new();
        self.of.iter().for_each(|m| *sizes.entry(*m).or_default() += 1.0);
        sizes.values().map(|s| s * s).sum::<f64>() / self.of.len().max(1) as f64
    }

    /// Members of molecules, one after the other and each in the order of tags; for each tag the place of its molecule's first member and the
    /// one behind the last.
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

    /// Whether two tags may be neighbors.
    pub fn takes(&self, a: u32, b: u32) -> bool {
        (self.of[a as usize] == self.of[b as usize]) == (self.only == Only::SameMolecule)
    }
}

/// The molecule of each particle: the array `molecule`, where a negative number is a molecule of its own, else what
/// bonds hold together. `None` if there is neither.
pub fn molecules(s: &Snapshot) -> Option<Vec<u32>> {
    if let Some(Values::Int(given)) = s.arrays.get("molecule").map(|a| &a.values) {
        // numbers from the file are not negative; those above are free for particles without a molecule
        return Some((0..).zip(given).map(|(tag, m)| if *m < 0 { 1 << 31 | tag } else { *m as u32 }).collect());
    }
    if s.bonds.is_empty() {
        return None;
    }
    // the smallest tag that bonds lead to
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
        assert!(rule.takes(0, 1) && rule.takes(4, 0) && !rule.takes(2, 3) && !rule.takes(0, 2));
        let rule = MoleculeRule { only: Only::OtherMolecules, ..rule };
        assert!(!rule.takes(0, 1) && rule.takes(2, 3) && rule.takes(0, 2));
    }
}
