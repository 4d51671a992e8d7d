//! Topology on the CPU: bonds, angles, dihedrals and impropers by particle index.

use super::system::{CpuSystem, tags, values};
use crate::state::arrays::ArrayId;
use crate::state::store::Store;
use crate::state::topology::{LinkRows, Touched};
use galamost_plugin_api::device::DevicePtr;
use galamost_plugin_api::snapshot::LinkList;
use galamost_plugin_api::views::LinkView;

/// The links of a list by particle index.
#[derive(Default)]
pub(super) struct Links {
    words: Vec<u32>,
    count: Vec<u32>,
}

impl Links {
    /// Makes room for these rows of `n` particles.
    pub fn resize(&mut self, rows: &LinkRows, n: usize) {
        self.words.resize(rows.capacity * rows.width * n, 0);
        self.count.clear();
        self.count.resize(n, 0);
    }

    /// Returns the view of rows with this capacity; `empty` is that of rows without entries.
    pub fn view(&mut self, capacity: usize, n: usize, empty: LinkView) -> LinkView {
        LinkView {
            capacity: capacity as u32,
            stride: n as u32,
            words: DevicePtr::new(self.words.as_mut_ptr() as u64),
            count: DevicePtr::new(self.count.as_mut_ptr() as u64),
            ..empty
        }
    }

    /// Returns the arrays of [`CpuSystem::link_view`].
    pub fn arrays(&self) -> [&[u32]; 2] {
        [&self.words, &self.count]
    }
}

impl<S: Store> CpuSystem<S> {
    /// Returns the views of all lists.
    pub(super) fn link_views(&mut self) -> [LinkView; 4] {
        LinkList::ALL.map(|list| self.link_view(list))
    }

    /// Returns the view of a list.
    pub(super) fn link_view(&mut self, list: LinkList) -> LinkView {
        let capacity = self.tables.links(list.index()).capacity;
        self.links[list.index()].view(capacity, self.facts.n, LinkView::empty(list.width()))
    }

    /// Converts the links of all particles from tags to indices.
    pub(super) fn index_links(&mut self) {
        let n = self.facts.n;
        for (which, l) in self.links.iter_mut().enumerate() {
            let rows = self.tables.links(which);
            l.resize(rows, n);
            if rows.capacity > 0 {
                index_rows(l, rows, values(&self.arrays, ArrayId::IndexOfTag), tags(&self.arrays).iter().copied());
            }
        }
        self.index_special();
    }

    /// Updates links and neighbor list after changes of topology.
    pub(super) fn update_links(&mut self, touched: &Touched) {
        for (which, touched_tags) in touched.links().into_iter().enumerate() {
            let (l, rows) = (&mut self.links[which], self.tables.links(which));
            l.words.resize(rows.capacity * rows.width * self.facts.n, 0);
            index_rows(l, rows, values(&self.arrays, ArrayId::IndexOfTag), touched_tags.iter().copied());
        }
        if !touched.special.is_empty() {
            self.index_special();
        }
        if let Some(exclusions) = &self.tables.exclusions
            && self.list.r_list > 0.0
        {
            let index_of_tag = values(&self.arrays, ArrayId::IndexOfTag);
            self.list.remove_excluded(&touched.exclusions, exclusions, tags(&self.arrays), index_of_tag);
        }
    }
}

/// Converts the rows of these tags to indices.
pub(super) fn index_rows(l: &mut Links, rows: &LinkRows, index_of_tag: &[u32], tags: impl Iterator<Item = u32>) {
    let (n, width) = (index_of_tag.len(), rows.width);
    for tag in tags {
        let i = index_of_tag[tag as usize] as usize;
        l.count[i] = rows.count(tag) as u32;
        for (e, entry) in rows.row(tag).chunks_exact(width).enumerate() {
            for (w, word) in entry.iter().enumerate() {
                let value = if w + 1 < width { index_of_tag[*word as usize] } else { *word };
                l.words[(e * width + w) * n + i] = value;
            }
        }
    }
}
