//! Energies of bonded components by type, computed on the host in double precision from the positions of a frame.

use super::{Backend, Columns};
use crate::plan::{StagePlan, types_of};
use crate::state::store::Store;
use galamost_plugin_api::bonded::BondedCall;
use galamost_plugin_api::component::Kind;
use galamost_plugin_api::device::DevicePtr;
use galamost_plugin_api::error::Result;
use galamost_plugin_api::precision::{Float64, Precision};
use galamost_plugin_api::snapshot::{Link, LinkList, Snapshot};
use galamost_plugin_api::tilt::to_reduced;
use galamost_plugin_api::views::{LinkView, StateView, Sums, Wanted};

/// Links of one type by particle, as bonded components read them.
struct Rows {
    width: usize,
    capacity: usize,
    words: Vec<u32>,
    count: Vec<u32>,
}

impl Rows {
    /// Gathers the links of a type among `n` particles.
    fn new<const W: usize>(links: &[Link<W>], kind: u32, n: usize) -> Self {
        let mut count = vec![0u32; n];
        let chosen = || links.iter().filter(|l| l.kind == kind);
        chosen().flat_map(|l| l.tags).for_each(|t| count[t as usize] += 1);
        let capacity = count.iter().copied().max().unwrap_or(0) as usize;
        let mut rows = Self { width: W, capacity, words: vec![0; capacity * W * n], count: vec![0; n] };
        for l in chosen() {
            for (place, tag) in l.tags.iter().enumerate() {
                let (i, others) = (*tag as usize, l.tags.iter().filter(|t| *t != tag));
                let first = W * rows.count[i] as usize;
                for (k, word) in others.copied().chain([4 * kind + place as u32]).enumerate() {
                    rows.words[(first + k) * n + i] = word;
                }
                rows.count[i] += 1;
            }
        }
        rows
    }

    fn of(columns: &Columns, list: LinkList, kind: u32) -> Self {
        let n = columns.position.len();
        match list {
            LinkList::Bonds => Self::new(&columns.bonds, kind, n),
            LinkList::Angles => Self::new(&columns.angles, kind, n),
            LinkList::Dihedrals => Self::new(&columns.dihedrals, kind, n),
            LinkList::Impropers => Self::new(&columns.impropers, kind, n),
        }
    }

    fn view(&mut self) -> LinkView {
        LinkView {
            capacity: self.capacity as u32,
            stride: self.count.len() as u32,
            words: DevicePtr::new(self.words.as_mut_ptr() as u64),
            count: DevicePtr::new(self.count.as_mut_ptr() as u64),
            ..LinkView::empty(self.width as u32)
        }
    }
}

/// Returns the energies of the columns of [`StagePlan::energies_by_type`], for a frame with positions and topology.
///
/// # Errors
/// Returns an error of a component.
pub fn energies_by_type(
    backend: &dyn Backend,
    stage: &StagePlan,
    names: &Snapshot,
    columns: &Columns,
) -> Result<Vec<f64>> {
    let n = columns.position.len();
    let mut globals = backend.globals();
    let length = globals.box_length;
    let places = columns.position.iter().zip(&columns.type_id);
    let mut pos: Vec<_> =
        places.map(|(x, kind)| Float64::store(to_reduced(*x, globals.tilt), *kind, length).0).collect();
    let mut force = vec![[0.0f64; 4]; n];
    let mut tag: Vec<u32> = (0..n as u32).collect();
    let state = StateView {
        precision: Precision::Double as u32,
        n_local: n as u32,
        own_end: n as u32,
        pos_type: DevicePtr::new(pos.as_mut_ptr() as u64),
        force: DevicePtr::new(force.as_mut_ptr() as u64),
        tag: DevicePtr::new(tag.as_mut_ptr() as u64),
        globals: DevicePtr::new(&raw mut globals as u64),
        ..StateView::empty()
    };
    let mut energies = vec![];
    for c in stage.forces.iter().filter(|c| c.kind == Kind::Bonded) {
        for kind in types_of(c, names) {
            let mut rows = Rows::of(columns, c.link_list(), kind);
            let links = rows.view();
            let call = BondedCall {
                size: size_of::<BondedCall>() as u32,
                begin: 0,
                end: n as u32,
                first_varying: c.first_varying,
                component: c.id,
                reserved0: 0,
                wanted: Wanted::ALL,
                state: &state,
                links: &links,
                reserved: [0; 4],
            };
            let mut sums = Sums::default();
            if let Some(bonded) = c.bonded() {
                // SAFETY: the arrays of `state` and `links` outlive the call and have an entry for each particle, which is
                // what the members of links are (`Topology`); no other thread accesses them
                unsafe { bonded.cpu(&call, &mut sums)? };
            }
            energies.push(sums.energy);
        }
    }
    Ok(energies)
}
