//! Scaled special pairs on the CPU: lists of partners by weight, and a second pass of the pair potentials over them.

use super::forces::{Views, clear_forces, pair_call};
use super::links::{Links, index_rows};
use super::list::CHUNK;
use super::system::{CpuSystem, tags, values};
use crate::pipeline::{Special, Weight};
use crate::plugins::{Component, PairHandle};
use crate::state::arrays::ArrayId;
use crate::state::buffers::Bytes;
use crate::state::store::Store;
use crate::state::topology::LinkRows;
use galamost_plugin_api::device::DevicePtr;
use galamost_plugin_api::error::Result;
use galamost_plugin_api::force::SpecialPairs;
use galamost_plugin_api::real::Real;
use galamost_plugin_api::views::{LinkView, ListView, StateView, Sums, Wanted};
use rayon::prelude::*;
use std::ops::Range;

/// The pair loop reads whole vectors, so rows are padded to a multiple of this.
const PADDED: usize = 32;

/// Partners with the same weight.
#[derive(Default)]
struct PartnerList {
    weight: Weight,
    /// Which pairs these are, by number of bonds minus 1.
    kinds: [bool; 3],
    capacity: usize,
    index: Vec<u32>,
    count: Vec<u32>,
}

/// Scaled special pairs by particle index.
pub(super) struct SpecialLists {
    special: Special,
    links: Links,
    capacity: usize,
    lists: Vec<PartnerList>,
    /// Forces and torques before they are scaled.
    force: Bytes,
    torque: Bytes,
    /// Their virials.
    virial: Bytes,
}

/// Views of the special pairs.
pub(super) struct SpecialViews {
    pub pairs: SpecialPairs,
    /// The state with other arrays for forces, torques and virials.
    state: StateView,
    lists: Vec<(ListView, Weight)>,
}

impl SpecialLists {
    /// Returns empty lists; `None` if no forces are scaled.
    pub fn new(special: Special) -> Option<Self> {
        let mut lists: Vec<PartnerList> = vec![];
        for (k, weight) in special.weights().into_iter().enumerate().filter(|(_, w)| w.scales()) {
            let at = lists.iter().position(|l| l.weight == weight).unwrap_or(lists.len());
            if at == lists.len() {
                lists.push(PartnerList { weight, ..PartnerList::default() });
            }
            lists[at].kinds[k] = true;
        }
        let [force, torque, virial] = std::array::from_fn(|_| Bytes::default());
        let links = Links::default();
        (!lists.is_empty()).then_some(Self { special, links, capacity: 0, lists, force, torque, virial })
    }

    /// Converts the rows of all particles from tags to indices.
    pub fn index(&mut self, rows: &LinkRows, index_of_tag: &[u32], tag: &[u32]) {
        self.capacity = rows.capacity;
        self.links.resize(rows, tag.len());
        if rows.capacity > 0 {
            index_rows(&mut self.links, rows, index_of_tag, tag.iter().copied());
        }
        for list in &mut self.lists {
            list.fill(rows, index_of_tag, tag);
        }
    }

    /// Returns the views, with arrays of unscaled forces for each particle of `state`.
    pub fn views<R: Real>(&mut self, state: &StateView) -> SpecialViews {
        let n = state.n_local as usize;
        let sized = |array: DevicePtr<u8>, bytes: &mut Bytes, stride: usize| {
            if array.is_null() {
                return DevicePtr::null();
            }
            if bytes.bytes().len() != stride * n {
                *bytes = Bytes::zeroed(stride, n);
            }
            DevicePtr::new(bytes.address())
        };
        let force = sized(state.force, &mut self.force, size_of::<[R; 4]>());
        let torque = sized(state.torque, &mut self.torque, size_of::<[R; 3]>());
        let virial = sized(state.virial, &mut self.virial, size_of::<[R; 6]>());
        let weights = self.special.weights();
        SpecialViews {
            pairs: SpecialPairs {
                size: size_of::<SpecialPairs>() as u32,
                reserved0: 0,
                pairs: self.links.view(self.capacity, n, LinkView::empty(2)),
                pair: weights.map(|w| w.pair),
                coulomb: weights.map(|w| w.coulomb),
                reserved: [0; 4],
            },
            state: StateView { force, torque, virial, ..*state },
            lists: self.lists.iter_mut().map(|l| (l.view(), l.weight)).collect(),
        }
    }
}

impl PartnerList {
    /// Fills the rows of all particles.
    fn fill(&mut self, rows: &LinkRows, index_of_tag: &[u32], tag: &[u32]) {
        let kinds = self.kinds;
        let partners = |t: u32| {
            let pairs = rows.row(t).chunks_exact(2).filter(move |e| kinds[(e[1] >> 2) as usize]);
            pairs.map(|e| index_of_tag[e[0] as usize])
        };
        self.count.resize(tag.len(), 0);
        let counted = self.count.par_iter_mut().with_min_len(CHUNK).zip(tag);
        let longest = counted.map(|(count, t)| {
            *count = partners(*t).count() as u32;
            *count
        });
        self.capacity = (longest.max().unwrap_or(0) as usize).next_multiple_of(PADDED);
        self.index.resize(self.capacity * tag.len(), 0);
        let filled = self.index.par_chunks_mut(self.capacity.max(1)).with_min_len(CHUNK).zip(tag).enumerate();
        filled.for_each(|(i, (row, t))| {
            // entries past the end must be valid indices
            row.fill(i as u32);
            row.iter_mut().zip(partners(*t)).for_each(|(entry, j)| *entry = j);
        });
    }

    fn view(&mut self) -> ListView {
        ListView {
            capacity: self.capacity as u32,
            team: 32,
            index: DevicePtr::new(self.index.as_mut_ptr() as u64),
            count: DevicePtr::new(self.count.as_mut_ptr() as u64),
            ..ListView::empty()
        }
    }
}

impl<S: Store> CpuSystem<S> {
    /// Converts special pairs from tags to indices.
    pub(super) fn index_special(&mut self) {
        if let (Some(lists), Some(rows)) = (&mut self.special, &self.tables.special) {
            lists.index(rows, values(&self.arrays, ArrayId::IndexOfTag), tags(&self.arrays));
        }
    }

    /// Adds the forces of a pair potential on a chunk of particles by their special pairs, times the weights.
    ///
    /// # Safety
    /// As `chunk_forces`.
    pub(super) unsafe fn special_forces(
        &self,
        c: &Component,
        pair: PairHandle<'_>,
        views: &Views,
        wanted: Wanted,
        range: Range<usize>,
        sum: &mut Sums,
    ) -> Result<()> {
        let Some(special) = &views.special else { return Ok(()) };
        for (list, weight) in &special.lists {
            let weight = weight.of(c.reads_charges());
            // SAFETY: the list has a count for each particle
            let counts = unsafe { std::slice::from_raw_parts(list.count.host().add(range.start), range.len()) };
            if weight == 0.0 || counts.iter().all(|n| *n == 0) {
                continue;
            }
            let call = pair_call(self, c, &special.state, list, wanted, range.clone());
            let mut unscaled = Sums::default();
            // SAFETY: rows of the list are padded and their entries are particles (`PartnerList::fill`); the unscaled forces
            // are arrays of all particles, of which no other task accesses `range`; the rest is as in `chunk_forces`
            unsafe {
                clear_forces::<S>(&special.state, range.clone());
                pair.cpu(&call, &mut unscaled)?;
                add_scaled::<S, 4>(views.state.force.address, special.state.force.address, &range, weight);
                if !views.state.torque.is_null() {
                    add_scaled::<S, 3>(views.state.torque.address, special.state.torque.address, &range, weight);
                }
                if !views.state.virial.is_null() {
                    add_scaled::<S, 6>(views.state.virial.address, special.state.virial.address, &range, weight);
                }
            }
            sum.energy += weight * unscaled.energy;
            sum.virial.iter_mut().zip(unscaled.virial).for_each(|(sum, w)| *sum += weight * w);
        }
        Ok(())
    }
}

/// Adds rows of `from` times a weight to those of `to`.
///
/// # Safety
/// Both are addresses of arrays with `W` numbers for each particle, and no other task accesses the rows of `range`.
unsafe fn add_scaled<S: Store, const W: usize>(to: u64, from: u64, range: &Range<usize>, weight: f64) {
    let rows = |address: u64| DevicePtr::<[S::Real; W]>::new(address).offset(range.start);
    // SAFETY: the contract of this function
    let (to, from) =
        unsafe { (std::slice::from_raw_parts_mut(rows(to).host(), range.len()), rows(from).slice(range.len())) };
    let weight = S::Real::lit(weight);
    for (to, from) in to.iter_mut().flatten().zip(from.iter().flatten()) {
        *to += *from * weight;
    }
}
