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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::topology::Topology;
    use galamost_plugin_api::error::Errors;
    use galamost_plugin_api::params::{FromValue as _, Source};
    use galamost_plugin_api::snapshot::Link;
    use galamost_plugin_api::updater::Edit;

    fn rules(text: &str) -> PairRules {
        let special = Special::from_value(Source::file(text).value(), &mut Errors::default()).expect("weights");
        PairRules { special, ..PairRules::default() }
    }

    fn bonds(tags: &[[u32; 2]]) -> Topology {
        Topology { bonds: tags.iter().map(|t| Link { kind: 0, tags: *t }).collect(), ..Topology::default() }
    }

    /// The partners of a tag with their distances in bonds.
    fn special(tables: &LinkTables, tag: u32) -> Vec<(u32, u32)> {
        let rows = tables.special.as_ref().expect("rows");
        rows.row(tag).chunks_exact(2).map(|e| (e[0], (e[1] >> 2) + 1)).collect()
    }

    const ALL: &str = r#"{ "1-2": 0.1, "1-3": 0.2, "1-4": 0.3 }"#;

    #[test]
    fn the_nearest_way_around_a_ring_counts() {
        // a ring of five has no pairs three bonds apart, one of six has the opposite ones; a chain hangs on it
        let five = bonds(&[[0, 1], [1, 2], [2, 3], [3, 4], [4, 0]]);
        let tables = LinkTables::new(&five, &rules(ALL), 5);
        assert_eq!(special(&tables, 0), [(1, 1), (2, 2), (3, 2), (4, 1)]);
        let six = bonds(&[[0, 1], [1, 2], [2, 3], [3, 4], [4, 5], [5, 0], [0, 6], [6, 7], [7, 8]]);
        let tables = LinkTables::new(&six, &rules(ALL), 10);
        assert_eq!(special(&tables, 0), [(1, 1), (2, 2), (3, 3), (4, 2), (5, 1), (6, 1), (7, 2), (8, 3)]);
        assert_eq!(special(&tables, 8), [(0, 3), (6, 2), (7, 1)]);
        assert!(special(&tables, 9).is_empty() && tables.exclusions.as_ref().is_some_and(|e| e.row(8) == [0, 6, 7]));
    }

    #[test]
    fn weights_of_0_and_1_have_no_rows() {
        let chain = bonds(&[[0, 1], [1, 2], [2, 3], [3, 4]]);
        let tables = LinkTables::new(&chain, &rules(r#"{ "1-2": 0.0, "1-3": 1.0, "1-4": 0.5 }"#), 5);
        assert_eq!(special(&tables, 0), [(3, 3)]);
        assert_eq!(tables.exclusions.as_ref().expect("rows").row(0), [1, 3]);
        // a weight of one kind alone is enough
        let tables = LinkTables::new(&chain, &rules(r#"{ "1-3": (pair: 1.0, coulomb: 0.0) }"#), 5);
        assert_eq!(special(&tables, 0), [(2, 2)]);
        let tables = LinkTables::new(&chain, &rules(r#"{ "1-2": 0.0 }"#), 5);
        assert!(tables.special.is_none() && tables.exclusions.is_some());
        let tables = LinkTables::new(&chain, &rules(r#"{ "1-2": 1.0 }"#), 5);
        assert!(tables.special.is_none() && tables.exclusions.is_none());
        // excluded pairs and those of other molecules have no force to scale
        let mut all = rules(ALL);
        all.exclude.bonds = true;
        all.molecules = Some(MoleculeRule { of: vec![0, 0, 0, 1, 1], only: crate::pipeline::Only::SameMolecule });
        assert_eq!(special(&LinkTables::new(&chain, &all, 5), 1), []);
        assert_eq!(special(&LinkTables::new(&chain, &all, 5), 0), [(2, 2)]);
    }

    /// Random edits: the rows equal those of new tables, and every tag whose row has changed is reported.
    #[test]
    fn changed_bonds_change_the_rows_around_them() {
        let n = 30;
        for reach in [r#"{ "1-2": 0.5 }"#, r#"{ "1-3": 0.5 }"#, ALL] {
            let rules = rules(reach);
            let mut topology = bonds(&(1..n).map(|k| [k - 1, k]).collect::<Vec<_>>());
            let mut tables = LinkTables::new(&topology, &rules, n as usize);
            let mut state = 1u32;
            let mut random = |below: u32| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 8) % below
            };
            for _ in 0..200 {
                let (a, b) = (random(n), random(n));
                let present = topology.bonds.iter().find(|l| l.tags == [a, b] || l.tags == [b, a]).map(|l| l.tags);
                let edit = match present {
                    _ if a == b => continue,
                    Some(tags) => Edit::cut(0, tags),
                    None if random(2) == 0 => Edit::add(0, [a, b]),
                    None => Edit::cut(0, topology.bonds[random(topology.bonds.len() as u32) as usize].tags),
                };
                let before = tables.clone();
                let touched = topology.apply(&mut tables, &mut [edit], 0).expect("an edit");
                let fresh = LinkTables::new(&topology, &rules, n as usize);
                for tag in 0..n {
                    assert_eq!(special(&tables, tag), special(&fresh, tag), "{tag}");
                    let excluded = |t: &LinkTables| t.exclusions.as_ref().map(|e| e.row(tag).to_vec());
                    assert_eq!(excluded(&tables), excluded(&fresh), "{tag}");
                    assert_eq!(touched.special.contains(&tag), special(&tables, tag) != special(&before, tag), "{tag}");
                    assert_eq!(touched.exclusions.contains(&tag), excluded(&tables) != excluded(&before), "{tag}");
                }
            }
        }
    }
}
