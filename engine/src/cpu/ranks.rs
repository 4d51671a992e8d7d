//! Several processes share a run on the CPU.
//!
//! Every process has the whole state and does the same with it: sorting, integrators, sums. Only the rows of the neighbor
//! list, and pair and bonded forces, are those of a range of chunks; each process then sends its part to all others. Forces
//! that handle all particles themselves are computed by the first process. So every bit is that of one process.

use super::list::CHUNK;
use super::system::CpuSystem;
use crate::backend::balance::equal_parts;
use crate::backend::processes::ProcessRank;
use crate::backend::{Backend as _, Update, reads_all_rows};
use crate::plan::Plan;
use crate::plugins::{self, Component};
use crate::processes::Messages;
use crate::state::RawState;
use crate::state::arrays::ArrayId;
use crate::state::store::Store;
use galamost_plugin_api::device::{bytes_of, from_bytes};
use galamost_plugin_api::error::{Error, Result};
use galamost_plugin_api::views::{Fault, StateView, Sums, Wanted};
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The ranks of a run, seen from one of them.
pub(super) struct Ranks {
    messages: Arc<dyn Messages>,
    /// The rows of all particles are on this rank, because a component that ranks do not share reads them.
    all_rows: bool,
    /// Where the particles of each rank begin, and their number.
    begins: Vec<usize>,
    /// Time for which this rank has waited for the forces of the others.
    waited: Duration,
}

impl Ranks {
    pub fn new(plan: &Plan, messages: &Arc<dyn Messages>) -> Self {
        Self {
            messages: messages.clone(),
            all_rows: messages.rank() == 0 && reads_all_rows(plan, false),
            begins: equal_parts(plan.snapshot.len(), messages.ranks(), CHUNK),
            waited: Duration::ZERO,
        }
    }

    /// Returns them as components see them.
    pub fn for_components(&self) -> Arc<dyn plugins::host::Ranks> {
        Arc::new(Processes(self.messages.clone()))
    }

    /// Returns the chunks of a rank.
    fn chunks(&self, rank: usize) -> Range<usize> {
        self.begins[rank].div_ceil(CHUNK)..self.begins[rank + 1].div_ceil(CHUNK)
    }
}

struct Processes(Arc<dyn Messages>);

impl plugins::host::Ranks for Processes {
    fn gather_bytes(&self, own: &[u8]) -> Result<Vec<Vec<u8>>> {
        self.0.gather_all(own)
    }
}

/// Bytes of the sums of a component.
const SUMS: usize = size_of::<[f64; 7]>();
/// Bytes of a fault.
const FAULT: usize = size_of::<[u32; 4]>();

fn words_of(f: Fault) -> [u32; 4] {
    [f.code, f.component, f.tag, f.detail]
}

fn numbers_of(s: &Sums) -> [f64; 7] {
    std::array::from_fn(|k| if k == 0 { s.energy } else { s.virial[k - 1] })
}

fn sums_of(n: [f64; 7]) -> Sums {
    Sums { energy: n[0], virial: std::array::from_fn(|k| n[k + 1]) }
}

/// Reads the parts of a message in order.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8]> {
        let short = || Error::Run("a message of another process is too short".into());
        let (part, rest) = self.0.split_at_checked(length).ok_or_else(short)?;
        self.0 = rest;
        Ok(part)
    }

    fn fault(&mut self) -> Result<Fault> {
        let [code, component, tag, detail] = from_bytes(self.take(FAULT)?).unwrap_or_default();
        Ok(Fault { code, component, tag, detail })
    }

    fn sums(&mut self) -> Result<Sums> {
        Ok(sums_of(from_bytes(self.take(SUMS)?).unwrap_or_default()))
    }
}

impl<S: Store> CpuSystem<S> {
    /// Returns the chunks whose pair and bonded forces this process computes.
    pub(super) fn own_chunks(&self) -> Range<usize> {
        let n = self.facts.n;
        self.ranks.as_ref().map_or(0..n.div_ceil(CHUNK), |r| r.chunks(r.messages.rank()))
    }

    /// Returns the view of the state in which the own particles are those of [`Self::own_chunks`].
    pub(super) fn own_view(&mut self) -> StateView {
        let (own, n) = (self.own_chunks(), self.facts.n);
        let at = |chunk: usize| (CHUNK * chunk).min(n) as u32;
        StateView { own_begin: at(own.start), own_end: at(own.end), ..self.view() }
    }

    /// Returns the chunks whose rows of the neighbor list this process needs.
    pub(super) fn listed_chunks(&self) -> Range<usize> {
        let all = self.ranks.as_ref().is_some_and(|r| r.all_rows);
        if all { 0..self.facts.n.div_ceil(CHUNK) } else { self.own_chunks() }
    }

    /// Raises a fault of another process.
    fn adopt(&self, fault: Fault) {
        if fault.code != 0 {
            self.globals.raise(fault);
        }
    }

    /// Returns the indices of the arrays that pair and bonded forces write, or with `others` also those that forces with
    /// loops of their own may write.
    fn written(&self, others: bool) -> Vec<usize> {
        let written = |name: &str| ["torque", "virial"].contains(&name);
        let constant = |name: &str| ["charge", "diameter"].contains(&name);
        let mut found = vec![ArrayId::Force as usize];
        for (k, a) in self.arrays.iter().enumerate() {
            let chosen = |name| written(name) || others && !constant(name);
            if a.info.component_name().is_some_and(chosen) && !a.data.bytes().is_empty() {
                found.push(k);
            }
        }
        found
    }

    /// Completes pair and bonded forces, and the sums of all chunks, with those of the other processes.
    pub(super) fn gather_forces(&mut self, sums: &mut [Sums]) -> Result<()> {
        let Some(ranks) = &self.ranks else { return Ok(()) };
        let (messages, n, components) = (ranks.messages.clone(), self.facts.n, self.forces.len().max(1));
        let chunks: Vec<_> = (0..messages.ranks()).map(|r| ranks.chunks(r)).collect();
        let written = self.written(false);
        let strides: Vec<usize> = written.iter().map(|k| self.arrays[*k].data.bytes().len() / n.max(1)).collect();
        let of_sums = |r: usize| chunks[r].start * components..chunks[r].end * components;
        let bytes = |r: usize, stride: usize| {
            (chunks[r].start * CHUNK).min(n) * stride..(chunks[r].end * CHUNK).min(n) * stride
        };
        let length = |r: usize| {
            let arrays: usize = strides.iter().map(|s| bytes(r, *s).len()).sum();
            FAULT + SUMS * of_sums(r).len() + arrays
        };
        let rank = messages.rank();
        let mut own = bytes_of(&words_of(self.globals.fault.get())).to_vec();
        sums[of_sums(rank)].iter().for_each(|s| own.extend_from_slice(bytes_of(&numbers_of(s))));
        for (k, stride) in written.iter().zip(&strides) {
            own.extend_from_slice(&self.arrays[*k].data.bytes()[bytes(rank, *stride)]);
        }
        let lengths: Vec<usize> = (0..messages.ranks()).map(length).collect();
        let start = Instant::now();
        let all = messages.all_gather(&own, &lengths)?;
        if let Some(ranks) = &mut self.ranks {
            ranks.waited += start.elapsed();
        }
        for (r, message) in all.iter().enumerate().filter(|(r, _)| *r != rank) {
            let mut reader = Reader(message);
            self.adopt(reader.fault()?);
            for s in &mut sums[of_sums(r)] {
                *s = reader.sums()?;
            }
            for (k, stride) in written.iter().zip(&strides) {
                let part = bytes(r, *stride);
                self.arrays[*k].data.bytes_mut()[part.clone()].copy_from_slice(reader.take(part.len())?);
            }
        }
        Ok(())
    }

    /// Returns whether this process computes the forces of components that handle all particles themselves.
    pub(super) fn computes_others(&self) -> bool {
        self.ranks.as_ref().is_none_or(|r| r.messages.rank() == 0)
    }

    /// Copies the forces of components that handle all particles themselves from the first process to the others.
    pub(super) fn copy_other_forces(&mut self) -> Result<()> {
        let Some(ranks) = self.ranks.as_ref().filter(|_| self.forces.iter().any(|c| c.force().is_some())) else {
            return Ok(());
        };
        let messages = ranks.messages.clone();
        let written = self.written(true);
        let mut own = vec![];
        if messages.rank() == 0 {
            own.extend_from_slice(bytes_of(&words_of(self.globals.fault.get())));
            self.sums.iter().for_each(|s| own.extend_from_slice(bytes_of(&numbers_of(s))));
            own.extend_from_slice(bytes_of(&self.quantities));
            written.iter().for_each(|k| own.extend_from_slice(self.arrays[*k].data.bytes()));
        }
        let message = messages.broadcast(own)?;
        if messages.rank() == 0 {
            return Ok(());
        }
        let mut reader = Reader(&message);
        self.adopt(reader.fault()?);
        for s in &mut self.sums {
            *s = reader.sums()?;
        }
        for q in &mut self.quantities {
            *q = from_bytes(reader.take(size_of::<f64>())?).unwrap_or_default();
        }
        for k in written {
            let to = self.arrays[k].data.bytes_mut();
            to.copy_from_slice(reader.take(to.len())?);
        }
        Ok(())
    }
}

impl<S: Store> ProcessRank for CpuSystem<S> {
    fn of_process(plan: &Plan, messages: &Arc<dyn Messages>) -> Result<Self> {
        Self::of_rank(plan, Some(Ranks::new(plan, messages)))
    }

    fn unit(_: usize, _: usize) -> usize {
        CHUNK
    }

    fn waited(&self) -> Result<f64> {
        Ok(self.ranks.as_ref().map_or(0.0, |ranks| ranks.waited.as_secs_f64()))
    }

    fn divide(&mut self, _: &Plan, _: &Arc<dyn Messages>, begins: &[usize], state: &RawState) -> Result<()> {
        if let Some(ranks) = &mut self.ranks {
            (ranks.begins, ranks.waited) = (begins.to_vec(), Duration::ZERO);
        }
        self.import(state)
    }

    /// They are complete on every rank.
    fn complete_first(&mut self) -> Result<()> {
        Ok(())
    }

    fn copy_first(&mut self) -> Result<()> {
        let Some(messages) = self.ranks.as_ref().map(|r| r.messages.clone()) else { return Ok(()) };
        for a in self.arrays.iter_mut().filter(|a| !a.data.bytes().is_empty()) {
            let own = if messages.rank() == 0 { a.data.bytes().to_vec() } else { vec![] };
            let bytes = messages.broadcast(own)?;
            if messages.rank() != 0 {
                a.data.bytes_mut().copy_from_slice(&bytes);
            }
        }
        Ok(())
    }

    /// Every rank has all present values.
    fn refresh_ghosts(&self, _: &Component) -> Result<()> {
        Ok(())
    }

    fn sync_globals(&mut self) -> Result<()> {
        Ok(())
    }

    fn apply_update(&mut self, updater: &Arc<Component>, update: Update, wanted: Wanted) -> Result<()> {
        self.apply(updater, update, wanted)
    }
}
