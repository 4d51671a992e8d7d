//! One force evaluation: chunks of particles, every component in turn, on all threads.

use super::guards;
use super::list::CHUNK;
use super::system::{CpuSystem, pair_call};
use crate::state::store::Store;
use galamost_plugin_api::bonded::BondedCall;
use galamost_plugin_api::component::Kind;
use galamost_plugin_api::device::DevicePtr;
use galamost_plugin_api::error::{Error, Result};
use galamost_plugin_api::force::ForceCall;
use galamost_plugin_api::real::Real;
use galamost_plugin_api::views::{LinkView, Sums, Wanted};
use rayon::prelude::*;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

impl<S: Store> CpuSystem<S> {
    /// Computes the forces of the state as it is.
    pub(super) fn compute_forces(&mut self, wanted: Wanted) -> Result<()> {
        let (n, parts) = (self.facts.n, self.forces.len());
        let chunks = n.div_ceil(CHUNK);
        let mut sums = std::mem::take(&mut self.chunk_sums);
        sums.clear();
        sums.resize(chunks * parts.max(1), Sums::default());
        let state = self.view();
        let list = self.list.view();
        let links = [self.link_view(0), self.link_view(1), self.link_view(2)];
        let failed: Mutex<Option<Error>> = Mutex::new(None);
        let this = &*self;
        let timed = self.profile.is_on();
        let spent: Vec<AtomicU64> = (0..parts).map(|_| AtomicU64::new(0)).collect();
        let begun = Instant::now();
        // all components of a chunk in turn, or, to see which of them writes where it may not, one after the other
        let rounds = if guards::on() { parts.max(1) } else { 1 };
        for first in 0..rounds {
            let round = if rounds == 1 { 0..parts } else { first..first + 1 };
            let before = this.read_only();
            sums.par_chunks_mut(parts.max(1)).enumerate().for_each(|(k, sums)| {
                let range = k * CHUNK..((k + 1) * CHUNK).min(n);
                if first == 0 {
                    // SAFETY: this task alone writes the forces of its chunk; the views describe arrays of this system that
                    // stay where they are until the loop ends
                    unsafe {
                        let force = state.force.cast::<[S::Real; 4]>().host();
                        std::slice::from_raw_parts_mut(force.add(range.start), range.len()).fill([S::Real::ZERO; 4]);
                        if !state.torque.is_null() {
                            let torque = state.torque.cast::<[S::Real; 3]>().host();
                            std::slice::from_raw_parts_mut(torque.add(range.start), range.len())
                                .fill([S::Real::ZERO; 3]);
                        }
                    }
                }
                for ((c, spent), sum) in this.forces.iter().zip(&spent).zip(sums).skip(round.start).take(round.len()) {
                    let begun = timed.then(Instant::now);
                    let done = if let Some(pair) = c.pair() {
                        let call = pair_call(this, c, &state, &list, wanted, range.clone());
                        // SAFETY: as above
                        unsafe { pair.cpu(&call, sum) }
                    } else if let Some(bonded) = c.bonded() {
                        let call = bonded_call(c, &state, &links, wanted, range.clone());
                        // SAFETY: as above
                        unsafe { bonded.cpu(&call, sum) }
                    } else {
                        Ok(())
                    };
                    if let Some(begun) = begun {
                        spent.fetch_add(begun.elapsed().as_nanos() as u64, Ordering::Relaxed);
                    }
                    if let Err(e) = done {
                        failed.lock().unwrap_or_else(std::sync::PoisonError::into_inner).get_or_insert(e);
                    }
                }
            });
            if let Some(c) = this.forces.get(round.start)
                && let Err(e) = this.check_force(&c.name, before)
            {
                failed.lock().unwrap_or_else(std::sync::PoisonError::into_inner).get_or_insert(e);
            }
        }
        if timed {
            // threads' time, as shares of the time that passed
            let spent: Vec<f64> = spent.into_iter().map(|s| s.into_inner() as f64).collect();
            let share = begun.elapsed().as_secs_f64() / spent.iter().sum::<f64>().max(1.0);
            for (c, s) in self.forces.iter().zip(spent).filter(|(c, _)| c.kind != Kind::Force) {
                self.profile.add(c.name.as_str().into(), "forces", s * share);
            }
        }
        if let Some(e) = failed.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner) {
            self.chunk_sums = sums;
            return Err(e);
        }
        for (f, total) in self.sums.iter_mut().enumerate() {
            *total = Sums::default();
            // in the order of the chunks: the sum does not depend on the number of threads
            sums.iter().skip(f).step_by(parts.max(1)).for_each(|s| total.add(s));
        }
        self.chunk_sums = sums;
        let mut first_quantity = 0;
        for (f, c) in self.forces.iter().enumerate().filter(|(_, c)| c.kind == Kind::Force) {
            let Some(force) = c.force() else { continue };
            let quantities = &mut self.quantities[first_quantity..first_quantity + c.needs.quantities.len()];
            first_quantity += quantities.len();
            let call = ForceCall {
                size: size_of::<ForceCall>() as u32,
                component: c.id,
                first_varying: c.first_varying,
                group: c.group,
                wanted,
                state,
                list,
                bonds: links[0],
                device_sums: Default::default(),
                quantities: quantities_at(quantities),
                reserved: [0; 7],
            };
            let before = self.read_only();
            // SAFETY: as above; forces run one after the other
            self.profile.time(&c.name, "forces", || unsafe { force.compute(&call, &mut self.sums[f]) })?;
            self.check_force(&c.name, before)?;
        }
        if wanted.virial != 0 {
            let mut total = Sums::default();
            self.sums.iter().for_each(|s| total.add(s));
            self.globals.virial = [0, 3, 5].map(|k| total.virial[k]);
        }
        self.check_fault()
    }
}

/// Where a force puts its further numbers.
fn quantities_at(quantities: &mut [f64]) -> DevicePtr<f64> {
    if quantities.is_empty() { DevicePtr::null() } else { DevicePtr::new(quantities.as_mut_ptr() as u64) }
}

fn bonded_call(
    c: &crate::plugins::Component,
    state: &galamost_plugin_api::views::StateView,
    links: &[LinkView; 3],
    wanted: Wanted,
    range: std::ops::Range<usize>,
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
        links: &links[(c.needs.link_width as usize).clamp(2, 4) - 2],
        reserved: [0; 4],
    }
}
