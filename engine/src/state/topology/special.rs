//! Special pairs: particles that are one, two or three bonds apart, with weights of their pair forces.

use super::rows::{LinkRows, LinkTables, Touched};
use crate::pipeline::{Exclusions, Special, Weight};
use crate::state::molecules::MoleculeRule;

/// Pairs of particles with other pair forces than most.
#[derive(Clone, Debug, Default)]
pub struct PairRules {
    /// Pairs without force, by lists of the topology.
    pub exclude: Exclusions,
    /// Weights of pairs, by their distance in bonds.
    pub special: Special,
    /// The pairs that the neighbor list contains, if it is restricted.
    pub molecules: Option<MoleculeRule>,
}

impl PairRules {
    /// Returns whether pairs can be excluded.
    pub fn exclude_some(&self) -> bool {
        self.exclude != Exclusions::default() || self.special.reach() > 0
    }
}

/// Returns the tags that are one, two, … `reach` bonds away from a tag, sorted. Each is in the list of its smallest distance.
fn shells(bonds: &LinkRows, tag: u32, reach: usize) -> Vec<Vec<u32>> {
    let mut shells = vec![vec![tag]];
    for _ in 0..reach {
        let [.., last] = shells.as_slice() else { break };
        let ends = |t: &u32| bonds.row(*t).chunks_exact(2).map(|e| e[0]);
        let mut next: Vec<u32> = last.iter().flat_map(ends).collect();
        next.sort_unstable();
        next.dedup();
        // a bond changes the distance by one at most
        let known = &shells[shells.len().saturating_sub(2)..];
        next.retain(|t| known.iter().all(|shell| shell.binary_search(t).is_err()));
        shells.push(next);
    }
    shells.remove(0);
    shells
}

impl LinkTables {
    /// Returns the excluded partners of a tag, sorted, and the entries of its scaled special pairs. `excluded` are those that
    /// lists of the topology exclude.
    pub(super) fn pair_rows(&self, tag: u32, mut excluded: Vec<u32>) -> (Vec<u32>, Vec<u32>) {
        let PairRules { special, molecules, .. } = &self.rules;
        let allowed = |t: &u32| molecules.as_ref().is_none_or(|m| m.allows(tag, *t));
        let (mut pairs, mut more) = (vec![], vec![]);
        for (k, (shell, weight)) in shells(&self.bonds, tag, special.reach()).iter().zip(special.weights()).enumerate()
        {
            if weight != Weight::default() {
                more.extend_from_slice(shell);
            }
            if weight.scales() {
                let scaled = shell.iter().filter(|t| excluded.binary_search(t).is_err() && allowed(t));
                pairs.extend(scaled.map(|t| [*t, 4 * k as u32 + u32::from(tag > *t)]));
            }
        }
        excluded.append(&mut more);
        excluded.sort_unstable();
        excluded.dedup();
        pairs.sort_unstable();
        (excluded, pairs.concat())
    }

    /// Returns the tags whose special pairs depend on changed bonds: on every path of up to `reach` bonds with a changed one,
    /// each end is at most `reach` − 1 bonds away from an end of a changed bond.
    pub(super) fn near_changes(&self, touched: &Touched) -> Vec<u32> {
        let reach = self.rules.special.reach();
        if reach == 0 {
            return vec![];
        }
        let around = |t: &u32| shells(&self.bonds, *t, reach - 1).concat();
        touched.bonds.iter().flat_map(around).chain(touched.bonds.iter().copied()).collect()
    }
}
