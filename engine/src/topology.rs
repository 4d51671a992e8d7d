//! Bonds, angles and dihedrals, and the pairs they exclude.

use crate::pipeline::Exclusions;
use galamost_plugin_api::error::{Error, Result};
use galamost_plugin_api::snapshot::{Link, Snapshot};
use galamost_plugin_api::updater::Edit;

/// Links of one width, in the order of the file; new ones follow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topology {
    /// Bonds.
    pub bonds: Vec<Link<2>>,
    /// Angles.
    pub angles: Vec<Link<3>>,
    /// Dihedrals.
    pub dihedrals: Vec<Link<4>>,
}

/// Links as each particle sees them: row of tag t is `entries[start[t]..start[t + 1]]`, each entry `width` words: the
/// tags of the others, then kind · 4 + place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkRows {
    /// Members of a link.
    pub width: usize,
    /// First word of each tag's row, in entries.
    pub start: Vec<u32>,
    /// The words.
    pub words: Vec<u32>,
    /// The longest row.
    pub longest: u32,
}

impl LinkRows {
    /// Rows of `n` particles.
    pub fn new<const W: usize>(links: &[Link<W>], n: usize) -> Self {
        let mut start = vec![0u32; n + 1];
        for t in links.iter().flat_map(|l| l.tags) {
            start[t as usize + 1] += 1;
        }
        let longest = start.iter().copied().max().unwrap_or(0);
        for t in 0..n {
            start[t + 1] += start[t];
        }
        let mut next = start.clone();
        let mut words = vec![0u32; start[n] as usize * W];
        for link in links {
            for (place, t) in link.tags.iter().enumerate() {
                let e = next[*t as usize] as usize;
                next[*t as usize] += 1;
                let others = link.tags.iter().enumerate().filter(|(k, _)| *k != place).map(|(_, t)| *t);
                for (w, other) in others.enumerate() {
                    words[e * W + w] = other;
                }
                words[e * W + W - 1] = link.kind * 4 + place as u32;
            }
        }
        Self { width: W, start, words, longest }
    }

    /// Entries of a tag, `width` words each.
    pub fn row(&self, tag: u32) -> &[u32] {
        let t = tag as usize;
        &self.words[self.start[t] as usize * self.width..self.start[t + 1] as usize * self.width]
    }
}

impl Topology {
    /// The links of a snapshot.
    pub fn of(s: &Snapshot) -> Self {
        Self { bonds: s.bonds.clone(), angles: s.angles.clone(), dihedrals: s.dihedrals.clone() }
    }

    /// Applies changes; their order does not matter, since they are sorted first.
    ///
    /// # Errors
    /// A change that makes no sense: a particle that is not there, a link to be removed that does not exist.
    pub fn apply(&mut self, edits: &mut [Edit], n: usize, step: u64) -> Result<()> {
        edits.sort_unstable();
        for e in edits.iter() {
            let tags = &e.tags[..e.width.min(4) as usize];
            if let Some(t) = tags.iter().find(|t| **t as usize >= n) {
                let what = format!("a change of topology names particle {t}, which is not there");
                return Err(Error::Unstable { step, tag: None, what });
            }
            let done = match e.width {
                2 => change(&mut self.bonds, e),
                3 => change(&mut self.angles, e),
                4 => change(&mut self.dihedrals, e),
                _ => false,
            };
            if !done {
                let what = format!("a change of topology cannot be made: {e:?}");
                return Err(Error::Unstable { step, tag: tags.first().copied(), what });
            }
        }
        Ok(())
    }

    /// For each tag the tags it has no pair forces with, sorted, as rows like [`LinkRows`]; `None` if nothing is
    /// excluded.
    pub fn exclusions(&self, what: Exclusions, n: usize) -> Option<LinkRows> {
        let mut pairs: Vec<[u32; 2]> = vec![];
        if what.bonds {
            pairs.extend(self.bonds.iter().map(|l| l.tags));
        }
        if what.angles {
            pairs.extend(self.angles.iter().map(|l| [l.tags[0], l.tags[2]]));
        }
        if what.dihedrals {
            pairs.extend(self.dihedrals.iter().map(|l| [l.tags[0], l.tags[3]]));
        }
        if pairs.is_empty() {
            return None;
        }
        let mut both: Vec<[u32; 2]> = pairs.iter().flat_map(|[a, b]| [[*a, *b], [*b, *a]]).collect();
        both.sort_unstable();
        both.dedup();
        let mut start = vec![0u32; n + 1];
        both.iter().for_each(|[a, _]| start[*a as usize + 1] += 1);
        let longest = start.iter().copied().max().unwrap_or(0);
        for t in 0..n {
            start[t + 1] += start[t];
        }
        Some(LinkRows { width: 1, start, words: both.into_iter().map(|[_, b]| b).collect(), longest })
    }
}

/// Adds or removes one link; false if it is not there to be removed. A link equals its mirror image.
fn change<const W: usize>(links: &mut Vec<Link<W>>, e: &Edit) -> bool {
    let tags: [u32; W] = std::array::from_fn(|k| e.tags[k]);
    if e.remove == 0 {
        links.push(Link { kind: e.kind, tags });
        return true;
    }
    let mirror: [u32; W] = std::array::from_fn(|k| tags[W - 1 - k]);
    let place = links.iter().position(|l| l.kind == e.kind && (l.tags == tags || l.tags == mirror));
    place.map(|p| links.remove(p)).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_hold_every_member_of_every_link() {
        let angles = [Link { kind: 2, tags: [0, 1, 2] }, Link { kind: 0, tags: [1, 2, 3] }];
        let rows = LinkRows::new(&angles, 4);
        assert_eq!(rows.row(0), [1, 2, 8]);
        assert_eq!(rows.row(1), [0, 2, 9, 2, 3, 0]);
        assert_eq!(rows.row(2), [0, 1, 10, 1, 3, 1]);
        assert_eq!((rows.longest, rows.row(3)), (2, [1, 2, 2].as_slice()));
    }

    #[test]
    fn edits_do_not_depend_on_their_order() {
        let start = Topology { bonds: vec![Link { kind: 0, tags: [0, 1] }], ..Topology::default() };
        let add = |a, b| Edit { remove: 0, width: 2, kind: 1, tags: [a, b, 0, 0], reserved: 0 };
        let gone = Edit { remove: 1, width: 2, kind: 0, tags: [1, 0, 0, 0], reserved: 0 };
        let (mut a, mut b) = (start.clone(), start);
        a.apply(&mut [add(2, 3), gone, add(1, 2)], 4, 0).expect("valid");
        b.apply(&mut [gone, add(1, 2), add(2, 3)], 4, 0).expect("valid");
        assert_eq!(a, b);
        assert_eq!(a.bonds, [Link { kind: 1, tags: [1, 2] }, Link { kind: 1, tags: [2, 3] }]);
        assert!(b.apply(&mut [gone], 4, 0).is_err(), "removed twice");
    }

    #[test]
    fn exclusions_are_symmetric() {
        let t = Topology {
            bonds: vec![Link { kind: 0, tags: [0, 1] }, Link { kind: 0, tags: [1, 2] }],
            angles: vec![Link { kind: 0, tags: [0, 1, 2] }],
            ..Topology::default()
        };
        let e = t.exclusions(Exclusions { bonds: true, angles: true, dihedrals: false }, 4).expect("some");
        assert_eq!((e.row(0), e.row(1), e.row(3)), ([1, 2].as_slice(), [0, 2].as_slice(), [].as_slice()));
        assert!(t.exclusions(Exclusions::default(), 4).is_none());
    }
}
