//! Force evaluation: chunks of particles on all threads, every component in turn.

use super::guards;
use super::list::CHUNK;
use super::special::SpecialViews;
use super::system::CpuSystem;
use crate::plugins::Component;
use crate::state::store::Store;
use galamost_plugin_api::bonded::BondedCall;
use galamost_plugin_api::component::Kind;
use galamost_plugin_api::device::DevicePtr;
use galamost_plugin_api::error::{Error, Result};
use galamost_plugin_api::force::{ForceCall, Moment};
use galamost_plugin_api::pair::PairCall;
use galamost_plugin_api::philox::RandomKey;
use galamost_plugin_api::real::Real;
use galamost_plugin_api::views::{LinkView, ListView, StateView, Sums, Wanted};
use rayon::prelude::*;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Views of the arrays that a force evaluation uses.
pub(super) struct Views {
    pub state: StateView,
    list: ListView,
    links: [LinkView; 4],
    pub special: Option<SpecialViews>,
}

/// The first error of several tasks.
#[derive(Default)]
struct FirstError(Mutex<Option<Error>>);

impl FirstError {
    fn record(&self, e: Error) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(e);
    }
    fn into_result(self) -> Result<()> {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
    }
}

impl<S: Store> CpuSystem<S> {
    /// Computes the forces of the current state.
    pub(super) fn compute_forces(&mut self, wanted: Wanted) -> Result<()> {
        let views = self.views();
        let components = self.forces.len().max(1);
        let mut sums = std::mem::take(&mut self.chunk_sums);
        sums.clear();
        sums.resize(self.facts.n.div_ceil(CHUNK) * components, Sums::default());
        let done = self.pair_and_bonded_forces(&views, wanted, &mut sums).and_then(|()| self.gather_forces(&mut sums));
        if done.is_ok() {
            for (f, total) in self.sums.iter_mut().enumerate() {
                *total = Sums::default();
                // chunks are added in order, so the sum does not depend on the number of threads
                sums.iter().skip(f).step_by(components).for_each(|s| total.add(s));
            }
        }
        self.chunk_sums = sums;
        done?;
        // the exclusive borrows above invalidate the addresses taken before them
        let views = self.views();
        if self.computes_others() {
            self.other_forces(&views, wanted)?;
        }
        self.copy_other_forces()?;
        if wanted.virial != 0 {
            let mut total = Sums::default();
            self.sums.iter().for_each(|s| total.add(s));
            self.globals.virial = [0, 3, 5].map(|k| total.virial[k]);
            self.globals.shear_virial = [1, 2, 4].map(|k| total.virial[k]);
        }
        self.check_fault()
    }

    fn views(&mut self) -> Views {
        let state = self.view();
        let special = self.special.as_mut().map(|s| s.views::<S::Real>(&state));
        Views { state, list: self.list.view(), links: self.link_views(), special }
    }

    /// Computes pair and bonded forces on all threads. `sums` holds one entry per chunk and component.
    fn pair_and_bonded_forces(&self, views: &Views, wanted: Wanted, sums: &mut [Sums]) -> Result<()> {
        let (n, components) = (self.facts.n, self.forces.len());
        let failed = FirstError::default();
        let timed = self.profile.is_on();
        let spent: Vec<AtomicU64> = (0..components).map(|_| AtomicU64::new(0)).collect();
        let begun = Instant::now();
        // Each task runs all components on its chunk. With memory checks, each component runs alone on all chunks, so an
        // illegal write is attributed to the right component.
        let rounds = if guards::enabled() { components.max(1) } else { 1 };
        for first in 0..rounds {
            let round = if rounds == 1 { 0..components } else { first..first + 1 };
            let before = self.hash_read_only();
            let (own, chunks) = (self.own_chunks(), sums.par_chunks_mut(components.max(1)).enumerate());
            chunks.skip(own.start).take(own.len()).for_each(|(k, sums)| {
                let range = k * CHUNK..((k + 1) * CHUNK).min(n);
                if first == 0 {
                    // SAFETY: the chunks are disjoint, and the arrays outlive the loop
                    unsafe { clear_forces::<S>(&views.state, range.clone()) };
                }
                for ((c, spent), sum) in self.forces.iter().zip(&spent).zip(sums).skip(round.start).take(round.len()) {
                    let begun = timed.then(Instant::now);
                    // SAFETY: the chunks are disjoint, and the arrays outlive the loop
                    let done = unsafe { self.chunk_forces(c, views, wanted, range.clone(), sum) };
                    if let Some(begun) = begun {
                        spent.fetch_add(begun.elapsed().as_nanos() as u64, Ordering::Relaxed);
                    }
                    if let Err(e) = done {
                        failed.record(e);
                    }
                }
            });
            if let Some(c) = self.forces.get(round.start)
                && let Err(e) = self.check_force(&c.name, before)
            {
                failed.record(e);
            }
        }
        if timed {
            // the elapsed time is divided in proportion to the threads' times
            let spent: Vec<f64> = spent.into_iter().map(|s| s.into_inner() as f64).collect();
            let share = begun.elapsed().as_secs_f64() / spent.iter().sum::<f64>().max(1.0);
            for (c, s) in self.forces.iter().zip(spent).filter(|(c, _)| c.kind != Kind::Force) {
                self.profile.add(c.name.as_str().into(), "forces", s * share);
            }
        }
        failed.into_result()
    }

    /// Computes the forces of a pair or bonded component on a chunk of particles; does nothing for other components.
    ///
    /// # Safety
    /// No other task writes the forces of these particles, and the arrays of `views` outlive the call.
    unsafe fn chunk_forces(
        &self,
        c: &Component,
        views: &Views,
        wanted: Wanted,
        range: Range<usize>,
        sum: &mut Sums,
    ) -> Result<()> {
        if let Some(pair) = c.pair() {
            let call = pair_call(self, c, &views.state, &views.list, wanted, range.clone());
            // SAFETY: `views` are those of this system, which outlive the call; rows of the list are padded and its entries are
            // particles (`NeighborList::build`); types are below `n_types` (`Snapshot`, `check_types`); no other task accesses
            // forces of `range`; `isa` is an extension of this processor (`vector_extension`)
            unsafe {
                pair.cpu(&call, sum)?;
                self.special_forces(c, pair, views, wanted, range, sum)
            }
        } else if let Some(bonded) = c.bonded() {
            let call = bonded_call(c, &views.state, &views.links, wanted, range);
            // SAFETY: `views` are those of this system, which outlive the call; members of links are particles
            // (`index_rows`); no other task accesses forces of `range`
            unsafe { bonded.cpu(&call, sum) }
        } else {
            Ok(())
        }
    }

    /// Returns the arguments of a component that handles all particles itself.
    fn force_call(&self, c: &Component, views: &Views, wanted: Wanted, quantities: DevicePtr<f64>) -> ForceCall {
        let excluded = self.tables.exclusions.as_ref();
        ForceCall {
            size: size_of::<ForceCall>() as u32,
            component: c.id,
            first_varying: c.first_varying,
            group: c.group,
            wanted,
            state: views.state,
            list: views.list,
            bonds: views.links[0],
            device_sums: Default::default(),
            quantities,
            excluded_count: DevicePtr::new(excluded.map_or(0, |e| e.counts().as_ptr() as u64)),
            excluded: DevicePtr::new(excluded.map_or(0, |e| e.words().as_ptr() as u64)),
            excluded_capacity: excluded.map_or(0, |e| e.capacity as u64),
            special: DevicePtr::new(views.special.as_ref().map_or(0, |s| std::ptr::from_ref(&s.pairs) as u64)),
            moment: Moment::Start as u32,
            reserved0: 0,
            reserved: [0; 2],
        }
    }

    /// Constrains distances, then places particles without mass.
    pub(super) fn place(&mut self, moment: Moment) -> Result<()> {
        if !self.forces.iter().any(|c| c.needs.places) {
            return Ok(());
        }
        let views = self.views();
        let mut placing: Vec<_> = self.forces.iter().filter(|c| c.needs.places).collect();
        placing.sort_by_key(|c| std::cmp::Reverse(c.needs.rank()));
        for c in placing {
            let Some(force) = c.force() else { continue };
            let call =
                ForceCall { moment: moment as u32, ..self.force_call(c, &views, Wanted::FORCE, DevicePtr::default()) };
            // SAFETY: the arrays outlive the call, and nothing else runs meanwhile
            self.profile.time(&format!("{}, placing", c.name), "forces", || unsafe { force.place(&call) })?;
        }
        self.check_fault()
    }

    /// Computes forces of components that handle all particles themselves, one after the other, and the remainders of pair
    /// potentials of long range, which are added to the sums of their pairs.
    fn other_forces(&mut self, views: &Views, wanted: Wanted) -> Result<()> {
        let mut first_quantity = 0;
        let mut order: Vec<_> = self.forces.iter().enumerate().collect();
        order.sort_by_key(|(_, c)| c.needs.rank());
        for (f, c) in order {
            let Some(force) = c.force() else { continue };
            let quantities = &mut self.quantities[first_quantity..first_quantity + c.needs.quantities.len()];
            first_quantity += quantities.len();
            let quantities = quantities_address(quantities);
            let call = self.force_call(c, views, wanted, quantities);
            let before = self.hash_read_only();
            // SAFETY: the arrays outlive the call, and nothing else runs meanwhile
            self.profile.time(&remainder_name(c), "forces", || unsafe { force.compute(&call, &mut self.sums[f]) })?;
            self.check_force(&c.name, before)?;
        }
        Ok(())
    }
}

/// Returns the name of a force in the profile; that of a pair potential is the name of its pair loop.
fn remainder_name(c: &Component) -> String {
    if c.kind == Kind::Pair { format!("{}, long range", c.name) } else { c.name.clone() }
}

/// Sets forces, torques and virials of these particles to 0.
///
/// # Safety
/// No other task writes the forces of these particles, and the arrays of `state` outlive the call.
pub(super) unsafe fn clear_forces<S: Store>(state: &StateView, range: Range<usize>) {
    // SAFETY: the range is inside of both arrays, and no other task accesses it (contract of this function)
    unsafe {
        let force = state.force.cast::<[S::Real; 4]>().host();
        std::slice::from_raw_parts_mut(force.add(range.start), range.len()).fill([S::Real::ZERO; 4]);
        if !state.torque.is_null() {
            let torque = state.torque.cast::<[S::Real; 3]>().host();
            std::slice::from_raw_parts_mut(torque.add(range.start), range.len()).fill([S::Real::ZERO; 3]);
        }
        if !state.virial.is_null() {
            let virial = state.virial.cast::<[S::Real; 6]>().host();
            std::slice::from_raw_parts_mut(virial.add(range.start), range.len()).fill([S::Real::ZERO; 6]);
        }
    }
}

/// Returns the address of the array for a force's additional quantities; null if it has none.
fn quantities_address(quantities: &mut [f64]) -> DevicePtr<f64> {
    if quantities.is_empty() { DevicePtr::null() } else { DevicePtr::new(quantities.as_mut_ptr() as u64) }
}

fn bonded_call(
    c: &Component,
    state: &StateView,
    links: &[LinkView; 4],
    wanted: Wanted,
    range: Range<usize>,
) -> BondedCall {
    BondedCall {
        size: size_of::<BondedCall>() as u32,
        begin: range.start as u32,
        end: range.end as u32,
        first_varying: c.first_varying,
        component: c.id,
        reserved0: 0,
        wanted,
        state,
        links: &links[c.link_list().index()],
        reserved: [0; 4],
    }
}

/// Returns the call of a pair potential for a chunk.
pub(super) fn pair_call<S: Store>(
    system: &CpuSystem<S>,
    c: &Component,
    state: &StateView,
    list: &ListView,
    wanted: Wanted,
    range: Range<usize>,
) -> PairCall {
    PairCall {
        size: size_of::<PairCall>() as u32,
        begin: range.start as u32,
        end: range.end as u32,
        first_varying: c.first_varying,
        isa: system.isa,
        wanted,
        key: RandomKey::new(system.facts.seed, c.id),
        state,
        list,
        reserved: [0; 4],
    }
}
