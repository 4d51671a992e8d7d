//! Components that place particles or constrain distances, on several ranks: each handles its own particles, with the present values of
//! those that they follow.

use super::Rank;
use crate::gpu::GpuSystem;
use crate::plan::Plan;
use galamost_plugin_api::error::Result;
use galamost_plugin_api::force::Moment;
use galamost_plugin_api::snapshot::{Snapshot, Values};
use galamost_plugin_api::views::StateView;
use std::collections::BTreeMap;

/// Groups of particles that a rank must know together, because a component places them or constrains their distances.
#[derive(Debug, Default)]
pub(super) struct Groups {
    /// First member of each group, and the end of the last one.
    pub starts: Vec<u32>,
    /// Tags of the members.
    pub tags: Vec<u32>,
}

impl Groups {
    /// Returns the groups of a run.
    pub fn of(plan: &Plan) -> Self {
        let mut all = Self { starts: vec![0], tags: vec![] };
        let s = &plan.snapshot;
        for c in plan.components.iter().filter(|c| c.needs.places) {
            if let Some(name) = &c.needs.placed_from {
                all.add_placed(s, name);
            }
            if !c.needs.constraints.is_empty() {
                all.add_bonded(s, |kind| c.needs.constraints.iter().any(|(k, _)| *k == kind));
            }
        }
        all
    }

    /// Returns the number of groups.
    pub fn len(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    fn end_group(&mut self) {
        self.starts.push(self.tags.len() as u32);
    }

    /// Adds each placed particle with those that it is placed from: their tags, relative to its own, are in an array.
    fn add_placed(&mut self, s: &Snapshot, name: &str) {
        let Some(array) = s.arrays.get(name) else { return };
        let Values::Int(values) = &array.values else { return };
        for (tag, row) in values.chunks_exact(array.width as usize).enumerate() {
            let mut others = row.iter().filter(|r| **r != 0).peekable();
            if others.peek().is_none() {
                continue;
            }
            self.tags.push(tag as u32);
            self.tags.extend(others.map(|r| (tag as u32).wrapping_add_signed(*r)));
            self.end_group();
        }
    }

    /// Adds the particles that bonds of some types connect, over any number of bonds.
    fn add_bonded(&mut self, s: &Snapshot, constrained: impl Fn(u32) -> bool) {
        let mut first: BTreeMap<u32, u32> = BTreeMap::new();
        let root = |first: &BTreeMap<u32, u32>, mut tag: u32| {
            while let Some(next) = first.get(&tag).filter(|next| **next != tag) {
                tag = *next;
            }
            tag
        };
        for bond in s.bonds.iter().filter(|b| constrained(b.kind)) {
            let [a, b] = bond.tags.map(|tag| root(&first, tag));
            let least = a.min(b);
            // short ways to the first particle
            for tag in [a, b, bond.tags[0], bond.tags[1]] {
                first.insert(tag, least);
            }
        }
        let mut members: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for tag in first.keys() {
            members.entry(root(&first, *tag)).or_default().push(*tag);
        }
        for group in members.into_values() {
            self.tags.extend(group);
            self.end_group();
        }
    }
}

impl Rank {
    /// Gives the other ranks what components place particles from: the present values of ghosts. With `collects`, the forces are among
    /// them and the positions, which are valid, are not. All ranks have released the former values, or met since they used them.
    pub fn exchange_for_placing(&self, state: &StateView, collects: bool) -> Result<()> {
        if self.distributes() {
            return self.barrier(state);
        }
        let arrays = self.arrays()?;
        let fields = arrays.iter().filter(|a| if collects { a.of_collecting } else { a.of_placing }).collect();
        self.exchange_in_parts(state, fields, !collects)
    }
}

impl GpuSystem {
    /// Constrains distances and places particles without mass.
    pub(in crate::gpu) fn launch_place(&self, moment: Moment) -> Result<()> {
        let (forces, view) = (self.forces()?, self.view());
        for c in forces.placing() {
            if let Some(rank) = &self.rank {
                rank.exchange_for_placing(&view, false)?;
            }
            forces.place(c, &view, moment)?;
            if let Some(rank) = &self.rank {
                rank.release_ghosts(&view)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use galamost_plugin_api::snapshot::{Array, Link};

    #[test]
    fn groups_hold_placed_particles_and_connected_ones() {
        let mut s = Snapshot { bond_types: vec!["rod".into(), "spring".into()], ..Snapshot::default() };
        s.arrays.insert("center".into(), Array { width: 2, values: Values::Int(vec![0, 0, -1, 0, 0, 0, -3, -2]) });
        let bond = |kind, a, b| Link { kind, tags: [a, b] };
        for b in [bond(0, 5, 4), bond(0, 9, 8), bond(1, 5, 8), bond(0, 6, 5), bond(0, 4, 6)] {
            s.bonds.push(b);
        }
        let mut groups = Groups { starts: vec![0], tags: vec![] };
        groups.add_placed(&s, "center");
        groups.add_bonded(&s, |kind| kind == 0);
        let all: Vec<&[u32]> = groups.starts.windows(2).map(|w| &groups.tags[w[0] as usize..w[1] as usize]).collect();
        assert_eq!(all, [&[1, 0][..], &[3, 0, 1], &[4, 5, 6], &[8, 9]]);
    }
}
