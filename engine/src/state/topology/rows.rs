//! Bonds, angles, dihedrals and impropers by particle, in rows with spare capacity.

use super::special::PairRules;
use super::{Topology, link_of};
use galamost_plugin_api::snapshot::{Link, LinkList};
use galamost_plugin_api::updater::Edit;

/// Rows of words by tag: row t has `count(t)` entries of `width` words, and capacity for `capacity` entries. The entry of a
/// link is the tags of the other members in their order, then type · 4 + position of this member.
#[derive(Clone, Debug, Default)]
pub struct LinkRows {
    /// Words of an entry: the members of a link, or 1 for the tags of [`LinkTables::exclusions`].
    pub width: usize,
    /// Capacity of each row in entries; it grows for all rows together.
    pub capacity: usize,
    counts: Vec<u32>,
    words: Vec<u32>,
}

impl LinkRows {
    /// Returns empty rows of `n` particles.
    fn empty(width: usize, n: usize, capacity: usize) -> Self {
        Self { width, capacity, counts: vec![0; n], words: vec![0; n * width * capacity] }
    }

    /// Returns the rows of `n` particles with the smallest sufficient capacity.
    pub fn new<const W: usize>(links: &[Link<W>], n: usize) -> Self {
        let mut counts = vec![0u32; n];
        links.iter().flat_map(|l| l.tags).for_each(|t| counts[t as usize] += 1);
        let mut rows = Self::empty(W, n, counts.into_iter().max().unwrap_or(0) as usize);
        links.iter().for_each(|l| rows.add(l));
        rows
    }

    /// Returns rows with these words.
    fn of_rows(width: usize, rows: &[Vec<u32>]) -> Self {
        let longest = rows.iter().map(Vec::len).max().unwrap_or(0) / width;
        let mut all = Self::empty(width, rows.len(), longest);
        rows.iter().enumerate().for_each(|(t, row)| all.set(t as u32, row));
        all
    }

    /// Returns the number of entries of each tag.
    pub fn counts(&self) -> &[u32] {
        &self.counts
    }

    /// Returns the words of all rows, `capacity` entries each.
    pub fn words(&self) -> &[u32] {
        &self.words
    }

    /// Returns the number of entries of a tag.
    pub fn count(&self, tag: u32) -> usize {
        self.counts[tag as usize] as usize
    }

    /// Returns the entries of a tag, `width` words each.
    pub fn row(&self, tag: u32) -> &[u32] {
        &self.words[tag as usize * self.capacity * self.width..][..self.count(tag) * self.width]
    }

    /// Grows the capacity to at least `entries`, and at least to twice the old capacity.
    fn reserve(&mut self, entries: usize) {
        if entries <= self.capacity {
            return;
        }
        let (old, capacity) = (self.capacity * self.width, entries.max(2 * self.capacity).max(2));
        let mut words = vec![0; self.counts.len() * self.width * capacity];
        for (to, from) in words.chunks_exact_mut(capacity * self.width).zip(self.words.chunks_exact(old.max(1))) {
            to[..old].copy_from_slice(from);
        }
        (self.capacity, self.words) = (capacity, words);
    }

    fn push(&mut self, tag: u32, entry: &[u32]) {
        if self.count(tag) == self.capacity {
            self.reserve(self.capacity + 1);
        }
        let at = (tag as usize * self.capacity + self.count(tag)) * self.width;
        self.words[at..at + self.width].copy_from_slice(entry);
        self.counts[tag as usize] += 1;
    }

    /// Returns the entry of a link in the row of its member at `position`.
    fn entry<const W: usize>(link: &Link<W>, position: usize) -> [u32; W] {
        let mut entry = [link.kind * 4 + position as u32; W];
        let others = link.tags.iter().enumerate().filter(|(k, _)| *k != position).map(|(_, t)| *t);
        entry.iter_mut().zip(others).for_each(|(word, other)| *word = other);
        entry
    }

    /// Appends a link to its members' rows.
    pub fn add<const W: usize>(&mut self, link: &Link<W>) {
        for (position, tag) in link.tags.iter().enumerate() {
            self.push(*tag, &Self::entry(link, position));
        }
    }

    /// Removes a link or its mirror image from its members' rows, the first of equal ones. Returns false if it does not
    /// exist.
    pub fn remove<const W: usize>(&mut self, link: &Link<W>) -> bool {
        let mut mirror = *link;
        mirror.tags.reverse();
        // the order of the two is the same in all rows
        let first = |l: &Link<W>| {
            let entry = Self::entry(l, l.tags.iter().position(|t| *t == link.tags[0]).unwrap_or(0));
            self.row(link.tags[0]).chunks_exact(W).position(|e| e == entry)
        };
        let found = match (first(link), first(&mirror)) {
            (None, None) => return false,
            (Some(a), Some(b)) if a < b => link,
            (Some(_), None) => link,
            _ => &mirror,
        };
        for (position, tag) in found.tags.iter().enumerate() {
            let entry = Self::entry(found, position);
            let Some(at) = self.row(*tag).chunks_exact(W).position(|e| e == entry) else { return false };
            let row = *tag as usize * self.capacity * W;
            let count = self.count(*tag);
            self.words.copy_within(row + (at + 1) * W..row + count * W, row + at * W);
            self.counts[*tag as usize] -= 1;
        }
        true
    }

    /// Returns how often a link exists, in either direction.
    fn copies<const W: usize>(&self, link: &Link<W>) -> usize {
        let mut mirror = *link;
        mirror.tags.reverse();
        let [entry, other] =
            [link, &mirror].map(|l| Self::entry(l, l.tags.iter().position(|t| *t == link.tags[0]).unwrap_or(0)));
        self.row(link.tags[0]).chunks_exact(W).filter(|e| **e == entry || **e == other).count()
    }

    /// Returns the edits that remove the links of `list` along this bond, each link once: those in which the two particles
    /// are adjacent members, and impropers that contain both.
    pub fn along(&self, [a, b]: [u32; 2], list: LinkList) -> Vec<Edit> {
        let improper = list == LinkList::Impropers;
        let mut found = vec![];
        for entry in self.row(a).chunks_exact(self.width) {
            let (last, others) = entry.split_last().unwrap_or((&0, &[]));
            let mut tags = [0; 4];
            let mut others = others.iter().copied();
            for (k, tag) in tags.iter_mut().enumerate().take(self.width) {
                *tag = if k as u32 == last & 3 { a } else { others.next().unwrap_or(a) };
            }
            let adjacent = || tags[..self.width].windows(2).any(|w| *w == [a, b] || *w == [b, a]);
            if if improper { tags.contains(&b) } else { adjacent() } {
                let (width, kind) = (self.width as u32, last >> 2);
                found.push(Edit { remove: 1, width, kind, tags, improper: improper.into() });
            }
        }
        found
    }

    /// Replaces a row.
    fn set(&mut self, tag: u32, row: &[u32]) {
        let entries = row.len() / self.width;
        self.reserve(entries);
        self.words[tag as usize * self.capacity * self.width..][..row.len()].copy_from_slice(row);
        self.counts[tag as usize] = entries as u32;
    }
}

/// The rows of all links of a system, its exclusions and its special pairs.
#[derive(Clone, Debug, Default)]
pub struct LinkTables {
    /// Bonds.
    pub bonds: LinkRows,
    /// Angles.
    pub angles: LinkRows,
    /// Dihedrals.
    pub dihedrals: LinkRows,
    /// Impropers.
    pub impropers: LinkRows,
    /// For each tag the excluded tags, sorted; `None` if nothing is excluded.
    pub exclusions: Option<LinkRows>,
    /// Scaled special pairs in the form of bonds, sorted by tag, with the number of bonds between the two particles, minus 1,
    /// as type; `None` if no forces are scaled. These pairs are exclusions too.
    pub special: Option<LinkRows>,
    pub(super) rules: PairRules,
}

/// Tags whose rows have changed, each once and sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Touched {
    /// Rows of bonds.
    pub bonds: Vec<u32>,
    /// Rows of angles.
    pub angles: Vec<u32>,
    /// Rows of dihedrals.
    pub dihedrals: Vec<u32>,
    /// Rows of impropers.
    pub impropers: Vec<u32>,
    /// Rows of exclusions.
    pub exclusions: Vec<u32>,
    /// Rows of special pairs.
    pub special: Vec<u32>,
    /// An exclusion was removed, so the neighbor list lacks a pair.
    pub exclusion_removed: bool,
}

impl Touched {
    /// Returns the tags of each list of links.
    pub fn links(&self) -> [&Vec<u32>; 4] {
        [&self.bonds, &self.angles, &self.dihedrals, &self.impropers]
    }
}

impl LinkTables {
    /// Returns the tables of a topology.
    pub fn new(t: &Topology, rules: &PairRules, n: usize) -> Self {
        let (bonds, angles) = (LinkRows::new(&t.bonds, n), LinkRows::new(&t.angles, n));
        let (dihedrals, impropers) = (LinkRows::new(&t.dihedrals, n), LinkRows::new(&t.impropers, n));
        let rules = rules.clone();
        let mut tables = Self { bonds, angles, dihedrals, impropers, exclusions: None, special: None, rules };
        if tables.rules.exclude_some() {
            let rows = (0..n as u32).map(|t| tables.pair_rows(t, tables.excluded(t)));
            let (excluded, special): (Vec<_>, Vec<_>) = rows.unzip();
            tables.exclusions = Some(LinkRows::of_rows(1, &excluded));
            tables.special = tables.rules.special.scales().then(|| LinkRows::of_rows(2, &special));
        }
        tables
    }

    /// Returns the number of particles.
    pub fn n(&self) -> usize {
        self.bonds.counts.len()
    }

    /// Returns the rows of a list by its [`LinkList::index`].
    pub fn links(&self, which: usize) -> &LinkRows {
        [&self.bonds, &self.angles, &self.dihedrals, &self.impropers][which]
    }

    /// Returns how often the link of an edit exists.
    pub(super) fn copies(&self, e: &Edit) -> usize {
        match (e.width, e.improper) {
            (2, _) => self.bonds.copies(&link_of::<2>(e)),
            (3, _) => self.angles.copies(&link_of::<3>(e)),
            (_, 0) => self.dihedrals.copies(&link_of::<4>(e)),
            _ => self.impropers.copies(&link_of::<4>(e)),
        }
    }

    /// Returns the tags that lists exclude for a tag, sorted: the other ends of its bonds, angles and
    /// dihedrals, and the other members of its impropers.
    fn excluded(&self, tag: u32) -> Vec<u32> {
        let ends = |rows: &LinkRows| -> Vec<u32> {
            let entries = rows.row(tag).chunks_exact(rows.width.max(1));
            let width = rows.width as u32;
            let end = |e: &[u32]| match e[e.len() - 1] & 3 {
                0 => Some(e[e.len() - 2]),
                position if position + 1 == width => Some(e[0]),
                _ => None,
            };
            entries.filter_map(end).collect()
        };
        let (mut all, what) = (vec![], self.rules.exclude);
        for (excludes, rows) in
            [(what.bonds, &self.bonds), (what.angles, &self.angles), (what.dihedrals, &self.dihedrals)]
        {
            if excludes {
                all.extend(ends(rows));
            }
        }
        if what.impropers {
            all.extend(self.impropers.row(tag).chunks_exact(4).flat_map(|e| &e[..3]));
        }
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Sorts the lists of touched tags and updates exclusions and special pairs.
    pub(super) fn update_exclusions(&mut self, touched: &mut Touched) {
        for list in [&mut touched.bonds, &mut touched.angles, &mut touched.dihedrals, &mut touched.impropers] {
            list.sort_unstable();
            list.dedup();
        }
        if self.exclusions.is_none() {
            return;
        }
        let what = self.rules.exclude;
        let mut tags: Vec<u32> = [
            (what.bonds, &touched.bonds),
            (what.angles, &touched.angles),
            (what.dihedrals, &touched.dihedrals),
            (what.impropers, &touched.impropers),
        ]
        .into_iter()
        .filter(|(excludes, _)| *excludes)
        .flat_map(|(_, tags)| tags.iter().copied())
        .chain(self.near_changes(touched))
        .collect();
        tags.sort_unstable();
        tags.dedup();
        for tag in tags {
            let (now, special) = self.pair_rows(tag, self.excluded(tag));
            if let Some(rows) = self.special.as_mut().filter(|rows| rows.row(tag) != special) {
                touched.special.push(tag);
                rows.set(tag, &special);
            }
            let Some(exclusions) = &mut self.exclusions else { return };
            let before = exclusions.row(tag);
            if before != now {
                touched.exclusion_removed |= before.iter().any(|t| !now.contains(t));
                touched.exclusions.push(tag);
                exclusions.set(tag, &now);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::Exclusions;

    #[test]
    fn rows_hold_every_member_of_every_link() {
        let angles = [Link { kind: 2, tags: [0, 1, 2] }, Link { kind: 0, tags: [1, 2, 3] }];
        let rows = LinkRows::new(&angles, 4);
        assert_eq!(rows.row(0), [1, 2, 8]);
        assert_eq!(rows.row(1), [0, 2, 9, 2, 3, 0]);
        assert_eq!(rows.row(2), [0, 1, 10, 1, 3, 1]);
        assert_eq!((rows.capacity, rows.row(3)), (2, [1, 2, 2].as_slice()));
    }

    #[test]
    fn exclusions_are_symmetric() {
        let t = Topology {
            bonds: vec![Link { kind: 0, tags: [0, 1] }, Link { kind: 0, tags: [1, 2] }],
            angles: vec![Link { kind: 0, tags: [0, 1, 2] }],
            impropers: vec![Link { kind: 0, tags: [3, 4, 5, 6] }],
            ..Topology::default()
        };
        let exclude = |exclude| PairRules { exclude, ..PairRules::default() };
        let what = exclude(Exclusions { bonds: true, angles: true, ..Exclusions::default() });
        let e = LinkTables::new(&t, &what, 7).exclusions.expect("some");
        assert_eq!((e.row(0), e.row(1), e.row(3)), ([1, 2].as_slice(), [0, 2].as_slice(), [].as_slice()));
        assert!(LinkTables::new(&t, &PairRules::default(), 7).exclusions.is_none());
        // every pair of an improper
        let what = exclude(Exclusions { impropers: true, ..Exclusions::default() });
        let e = LinkTables::new(&t, &what, 7).exclusions.expect("some");
        assert_eq!((e.row(4), e.row(3), e.row(0)), ([3, 5, 6].as_slice(), [4, 5, 6].as_slice(), [].as_slice()));
    }

    /// Removing one of two equal links, one in each direction, keeps the other.
    #[test]
    fn equal_links_are_removed_one_by_one() {
        let angles = [Link { kind: 1, tags: [2, 1, 0] }, Link { kind: 1, tags: [0, 1, 2] }];
        let mut rows = LinkRows::new(&angles, 3);
        assert!(rows.remove(&angles[1]));
        assert_eq!(rows.row(0), LinkRows::new(&angles[1..], 3).row(0));
        assert_eq!(rows.row(1), LinkRows::new(&angles[1..], 3).row(1));
        assert!(rows.remove(&angles[1]) && !rows.remove(&angles[1]) && rows.row(2).is_empty());
    }
}
