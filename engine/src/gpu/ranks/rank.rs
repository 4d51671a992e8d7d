//! One rank of a run on several GPUs: its range of particles, its ghosts, and epochs with the other ranks.

mod ghosts;
mod overlap;
mod sort;

pub use ghosts::Occasion;
use overlap::BoundaryBlocks;
pub use overlap::SplitBlocks;

use super::barrier::Barrier;
use super::messages::MessagePath;
use super::place::Groups;
use super::{MACRO, Place, distributed, unit};
use crate::device::args::{ALL_RANKS, AllReduceArgs, MAX_RANKS, PullArgs, RankBarrierArgs, RankPhaseArgs, RankRanges};
use crate::device::{Chosen, Device, Kernel, shares_gpu};
use crate::gpu::arrays::{Buffer, launch};
use crate::gpu::staged::GROUP;
use crate::plan::Plan;
use crate::processes::failed;
use galamost_plugin_api::device::bytes_of;
use galamost_plugin_api::error::{Error, Result};
use galamost_plugin_api::views::{Globals, StateView};
use std::mem::offset_of;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// Threads that keep the connections between devices busy.
const FULL: usize = 270_336;

/// The address of an array in each rank.
pub type Addresses = [u64; MAX_RANKS];

struct Kernels {
    rank_barrier: Kernel,
    pull_parts: Kernel,
    push_parts: Kernel,
    pull_words: Kernel,
    all_reduce: Kernel,
    find_ghosts_of_list: Kernel,
    find_ghosts_of_blocks: Kernel,
    find_ghosts_of_links: Kernel,
    find_ghosts_of_groups: Kernel,
    list_wanted: Kernel,
    release_ghosts: Kernel,
    push_ghosts: Kernel,
    mark_migrants: Kernel,
    gather_from_ranks: Kernel,
    copy_back_own: Kernel,
    index_tags: Kernel,
    barrier_of_sort: Kernel,
}

/// A particle array and what a rank has of it.
#[derive(Clone, Copy)]
pub struct RankedArray {
    /// Address in each rank.
    pub data: Addresses,
    /// Words per particle.
    pub words: u32,
    /// Every rank sorts the values of all particles, so it must have all of them at that time.
    pub everywhere: bool,
    /// Values change from step to step; a rank changes those of the particles that it propagates.
    pub changes: bool,
    /// The pair loop may read it of neighbors.
    pub of_neighbors: bool,
    /// These are the velocities, which few pair functions read.
    pub velocities: bool,
    /// Components with kernels of their own may change it when they compute forces.
    pub of_forces: bool,
    /// Components place particles from its values.
    pub of_placing: bool,
    /// They need it when they pass on the forces on these particles.
    pub of_collecting: bool,
    /// Each rank has the part of its own particles only.
    pub distributed: bool,
}

/// A rank.
pub struct Rank {
    pub(super) device: Arc<dyn Device>,
    barrier: Arc<dyn Barrier>,
    /// The other ranks are in other processes.
    messages: Option<MessagePath>,
    /// Barriers are on the host, or messages: the ranks share a GPU, where a kernel that waits may block what it waits for, or are in
    /// several processes.
    on_host: bool,
    /// Nanoseconds for which the host has waited for the other ranks at barriers.
    waited_on_host: AtomicU64,
    ranges: RankRanges,
    /// Numbers of the GPUs of all ranks, if particle arrays are distributed over them.
    pub(super) ordinals: Vec<u32>,
    /// The number of particles of the rank with most of them.
    largest: usize,
    kernels: Kernels,
    mailboxes: Addresses,
    mailbox: Buffer,
    epochs: Buffer,
    counter: Buffer,
    /// A bit for each particle: it is a ghost of this rank.
    marks: Buffer,
    /// A byte for each rank and own particle: it is a ghost of this rank. Other ranks write it.
    wanted: Buffer,
    /// The address of `wanted` in each rank; 0 if the ranks are in several processes.
    wanted_of: Addresses,
    /// First members and members of the groups of particles that a rank must know together, and their number.
    groups: [Buffer; 2],
    n_groups: usize,
    /// Own particles that are ghosts of other ranks, the bits of these, and the number of particles.
    pushed: [Buffer; 3],
    /// Blocks of a staged list with ghosts around them, if messages are sent.
    boundary: BoundaryBlocks,
    /// The ranks share the work of forces that launch kernels themselves; otherwise the first one computes these.
    pub shares_forces: bool,
    /// The pair loop of the present stage reads velocities of neighbors.
    pub(super) reads_velocities: AtomicBool,
    /// Forces of the present stage read orientations of other particles.
    pub(super) reads_orientations: AtomicBool,
    /// The positions first.
    arrays: OnceLock<Vec<RankedArray>>,
}

impl Rank {
    /// Creates a rank of a run with `n` particles, which may be distributed with a staged list. All ranks call it at the same time.
    ///
    /// # Errors
    /// Returns the driver's error, or an error if another rank has failed.
    pub fn new(plan: &Plan, device: &Arc<dyn Device>, n: usize, place: Place, staged: bool) -> Result<Self> {
        let Place { ranges, distributed, barrier, messages } = place;
        let (rank, ranks) = (ranges.rank as usize, ranges.count as usize);
        // a constraint changes positions that other ranks read for theirs
        let constrains = plan.components.iter().any(|c| !c.needs.constraints.is_empty());
        let ordinals = if messages.is_none() && staged && !constrains {
            distributed::ordinals(device, &*barrier, &ranges, distributed)?
        } else {
            vec![]
        };
        device.define_macro(MACRO);
        if !ordinals.is_empty() {
            device.define_macro(distributed::MACRO);
        }
        let on_host = messages.is_some() || shares_gpu() && plan.device != Chosen::Emulated;
        let precision = plan.pipeline.precision;
        let module = device.compile(&unit(precision))?;
        let k = |name: &str| device.kernel(module, name);
        let kernels = Kernels {
            rank_barrier: k("rank_barrier")?,
            pull_parts: k("pull_parts")?,
            push_parts: k("push_parts")?,
            pull_words: k("pull_words")?,
            all_reduce: k("all_reduce")?,
            find_ghosts_of_list: k("find_ghosts_of_list")?,
            find_ghosts_of_blocks: k("find_ghosts_of_blocks")?,
            find_ghosts_of_links: k("find_ghosts_of_links")?,
            find_ghosts_of_groups: k("find_ghosts_of_groups")?,
            list_wanted: k("list_wanted")?,
            release_ghosts: k("release_ghosts")?,
            push_ghosts: k("push_ghosts")?,
            mark_migrants: k("mark_migrants")?,
            gather_from_ranks: k("gather_from_ranks")?,
            copy_back_own: k("copy_back_own")?,
            index_tags: k("index_tags")?,
            barrier_of_sort: k("barrier_of_sort")?,
        };
        // the words of `RankBarrierArgs`
        let epochs = Buffer::new(device, 56)?;
        let messages =
            messages.map(|m| MessagePath::new(device, m, ranges, epochs.address(), precision)).transpose()?;
        let (own, sends) = ((ranges.begin[rank + 1] - ranges.begin[rank]) as usize, messages.is_some());
        let with_ghosts = usize::from(ordinals.is_empty());
        let groups = if ordinals.is_empty() { Groups::of(plan) } else { Groups::default() };
        let mut new = Self {
            device: device.clone(),
            barrier,
            messages,
            waited_on_host: AtomicU64::new(0),
            on_host,
            ranges,
            largest: ranges.begin[..=ranks].windows(2).map(|w| w[1] - w[0]).max().unwrap_or(0) as usize,
            kernels,
            mailboxes: [0; MAX_RANKS],
            mailbox: Buffer::new(device, 5 * 8 * MAX_RANKS)?,
            epochs,
            counter: Buffer::new(device, 4)?,
            ordinals,
            marks: Buffer::new(device, with_ghosts * n.div_ceil(32) * 4)?,
            wanted: Buffer::new(device, with_ghosts * ranks * own)?,
            wanted_of: [0; MAX_RANKS],
            n_groups: groups.len(),
            groups: [Buffer::of_words(device, &groups.starts)?, Buffer::of_words(device, &groups.tags)?],
            pushed: [
                Buffer::new(device, with_ghosts * 4 * own)?,
                Buffer::new(device, with_ghosts * 4 * own)?,
                Buffer::new(device, 4)?,
            ],
            boundary: BoundaryBlocks::new(device, if sends { own } else { 0 })?,
            shares_forces: super::shared::shares_forces(plan),
            reads_velocities: AtomicBool::new(true),
            reads_orientations: AtomicBool::new(true),
            arrays: OnceLock::new(),
        };
        new.mailboxes = new.share(new.mailbox.address())?;
        if new.messages.is_none() {
            new.wanted_of = new.share(new.wanted.address())?;
        }
        Ok(new)
    }

    /// Returns the number of this rank.
    pub fn number(&self) -> usize {
        self.ranges.rank as usize
    }

    /// Returns the number of ranks.
    pub fn count(&self) -> u32 {
        self.ranges.count
    }

    /// Returns the particles that this rank propagates.
    pub fn own(&self) -> Range<usize> {
        let r = self.number();
        self.ranges.begin[r] as usize..self.ranges.begin[r + 1] as usize
    }

    /// Returns whether no group of tiles has particles of two ranks.
    pub fn has_whole_groups(&self) -> bool {
        self.ranges.begin[..self.ranges.count as usize].iter().all(|b| (*b as usize).is_multiple_of(GROUP))
    }

    /// Returns the seconds that this rank has waited for the others at barriers.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn waited(&self) -> Result<f64> {
        let bytes = self.epochs.download()?;
        let nanoseconds = bytes.as_chunks().0.get(2).copied().map_or(0, u64::from_ne_bytes);
        let on_host = self.messages.as_ref().map_or(0, MessagePath::waited);
        Ok((nanoseconds + on_host + self.waited_on_host.load(Ordering::Relaxed)) as f64 * 1e-9)
    }

    /// Tells the other ranks the address of an array, and returns its address in each of them. All ranks call it.
    ///
    /// # Errors
    /// Returns an error if another rank has failed.
    pub fn share(&self, address: u64) -> Result<Addresses> {
        let all = self.barrier.exchange(self.number(), address)?;
        let mut addresses = [0; MAX_RANKS];
        addresses[..all.len()].copy_from_slice(&all);
        Ok(addresses)
    }

    /// Returns the bytes of each rank. All ranks call it.
    ///
    /// # Errors
    /// Returns an error if another rank has failed.
    pub fn gather(&self, own: &[u8]) -> Result<Vec<Vec<u8>>> {
        self.barrier.gather(self.number(), own)
    }

    /// Returns whether any rank says so. All ranks call it.
    ///
    /// # Errors
    /// Returns an error if another rank has failed.
    pub fn any(&self, own: bool) -> Result<bool> {
        Ok(self.barrier.exchange(self.number(), u64::from(own))?.contains(&1))
    }

    /// Returns the smallest number of all ranks. All ranks call it.
    ///
    /// # Errors
    /// Returns an error if another rank has failed.
    pub fn smallest(&self, own: u64) -> Result<u64> {
        Ok(self.barrier.exchange(self.number(), own)?.into_iter().fold(own, u64::min))
    }

    /// Returns `own`, or an error if that of another rank is one. All ranks call it.
    ///
    /// # Errors
    /// See above.
    pub fn agree<T>(&self, own: Result<T>) -> Result<T> {
        let fails = self.any(own.is_err())?;
        own.and_then(|value| if fails { Err(failed()) } else { Ok(value) })
    }

    /// Sets the arrays, the positions first; done once.
    pub fn set_arrays(&self, arrays: Vec<RankedArray>) {
        let _ = self.arrays.set(arrays);
    }

    /// Says whether the pair loop reads velocities of neighbors, and whether forces read orientations.
    pub fn set_reads(&self, velocities: bool, orientations: bool) {
        self.reads_velocities.store(velocities, Ordering::Relaxed);
        self.reads_orientations.store(orientations, Ordering::Relaxed);
    }

    /// Returns whether a rank reads what others own from their memory; otherwise they send it.
    pub fn reads_others(&self) -> bool {
        self.messages.is_none()
    }

    /// Returns the particles of each rank.
    pub fn ranges(&self) -> RankRanges {
        self.ranges
    }

    pub(in crate::gpu) fn arrays(&self) -> Result<&Vec<RankedArray>> {
        self.arrays.get().ok_or_else(|| Error::Run("the arrays of the ranks are not known".into()))
    }

    fn barrier_args(&self, globals: u64) -> RankBarrierArgs {
        RankBarrierArgs {
            globals,
            epochs: self.epochs.address(),
            counter: self.counter.address(),
            rank: self.ranges.rank,
            ranks: self.ranges.count,
            waits: u32::from(!self.on_host),
            reserved: 0,
            mailboxes: self.mailboxes,
        }
    }

    /// Returns whether barriers of the ranks are in kernels; otherwise they are on the host.
    pub fn has_barriers_in_kernels(&self) -> bool {
        !self.on_host
    }

    /// Returns the arguments of the kernel that adds the sums of a phase. `partial`: addresses of the sums of groups in all ranks.
    pub fn phase_args(&self, state: &StateView, partial: Addresses) -> RankPhaseArgs {
        RankPhaseArgs { barrier: self.barrier_args(state.globals.address), ranges: self.ranges, partial }
    }

    /// A barrier over all ranks on their devices. A rebuild or a halt that one rank requests applies to all.
    pub fn barrier(&self, state: &StateView) -> Result<()> {
        let _part = self.device.profile().within("other GPUs");
        if let Some(m) = &self.messages {
            return m.barrier(state.globals.address);
        }
        let args = self.begin_barrier(state)?;
        if self.on_host {
            return Ok(());
        }
        launch(&*self.device, self.kernels.rank_barrier, 32, 32, &args)
    }

    /// Returns memory with the arguments of a barrier, for kernels of components.
    pub fn barrier_memory(&self, globals: u64) -> Result<Buffer> {
        Buffer::of_bytes(&self.device, bytes_of(&[self.barrier_args(globals)]))
    }

    /// Waits until the device has done everything before.
    pub fn synchronize(&self) -> Result<()> {
        self.device.synchronize()
    }

    /// Returns the arguments of a kernel with a barrier. If barriers are on the host, the ranks have met there before. Ranks that send messages
    /// need no barrier, because none reads the memory of another.
    fn begin_barrier(&self, state: &StateView) -> Result<RankBarrierArgs> {
        if self.on_host && self.messages.is_none() {
            self.barrier_on_host(state)?;
        }
        Ok(self.barrier_args(state.globals.address))
    }

    /// The barrier on the host, after the device has done everything before.
    fn barrier_on_host(&self, state: &StateView) -> Result<()> {
        self.device.synchronize()?;
        let words =
            [offset_of!(Globals, rebuild), offset_of!(Globals, halt)].map(|at| state.globals.address + at as u64);
        let mut wanted = 0;
        for (bit, address) in words.iter().enumerate() {
            let mut word = [0; 4];
            self.device.download(*address, &mut word)?;
            wanted |= u64::from(word != [0; 4]) << bit;
        }
        let start = Instant::now();
        let all = self.barrier.exchange(self.number(), wanted)?.into_iter().fold(0, |all, w| all | w);
        self.waited_on_host.fetch_add(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
        for (bit, address) in words.iter().enumerate() {
            if all >> bit & 1 == 1 {
                self.device.set_word(*address, 1)?;
            }
        }
        Ok(())
    }

    /// Reads the parts of an array that other ranks compute, or with `from` this rank's part from that rank. An element
    /// of `words` words belongs to this many particles.
    pub fn pull(&self, data: Addresses, words: usize, particles: usize, from: Option<usize>) -> Result<()> {
        if let Some(m) = &self.messages {
            return m.complete(data[self.number()], words, particles);
        }
        let args = self.pull_args(data, words, particles, from.map_or(ALL_RANKS, |r| r as u32));
        launch(&*self.device, self.kernels.pull_parts, FULL, 256, &args)
    }

    /// Completes an array in all ranks: each writes the part that it computes into the memory of the others. Afterwards all
    /// have written; before, all must have used what the array held.
    pub fn push(&self, state: &StateView, data: Addresses, words: usize, particles: usize) -> Result<()> {
        let _part = self.device.profile().within("other GPUs");
        if let Some(m) = &self.messages {
            return m.complete_and_meet(state.globals.address, data[self.number()], words, particles);
        }
        let barrier = self.barrier_args(state.globals.address);
        let args = PullArgs { barrier, ..self.pull_args(data, words, particles, ALL_RANKS) };
        // as many blocks in all ranks; one alone needs no counter
        let quads = self.largest / particles * words / 4;
        let (threads, block) = if quads <= 8192 { (1024, 1024) } else { (quads.min(FULL), 256) };
        launch(&*self.device, self.kernels.push_parts, threads, block, &args)?;
        if self.on_host { self.barrier_on_host(state) } else { Ok(()) }
    }

    /// As [`Self::push`] for an array with an element of `words` words for each rank.
    pub fn push_own(&self, state: &StateView, data: Addresses, words: usize) -> Result<()> {
        let _part = self.device.profile().within("other GPUs");
        if let Some(m) = &self.messages {
            return m.complete_elements(state.globals.address, data[self.number()], words);
        }
        let barrier = self.barrier_args(state.globals.address);
        let RankRanges { rank, count, .. } = self.ranges;
        let ranges = RankRanges { rank, count, begin: std::array::from_fn(|k| k as u32) };
        let args = PullArgs { barrier, ranges, ..self.pull_args(data, words, 1, ALL_RANKS) };
        launch(&*self.device, self.kernels.push_parts, 128, 128, &args)?;
        if self.on_host { self.barrier_on_host(state) } else { Ok(()) }
    }

    fn pull_args(&self, data: Addresses, words: usize, particles: usize, from: u32) -> PullArgs {
        let barrier = self.barrier_args(0);
        PullArgs { barrier, ranges: self.ranges, from, particles: particles as u32, words: words as u64, data }
    }

    /// Adds the integers of all ranks; see [`galamost_plugin_api::services::Host::all_reduce`].
    pub fn all_reduce(&self, state: &StateView, values: Addresses, total: u64, n: usize, when: u64) -> Result<()> {
        let _part = self.device.profile().within("other GPUs");
        let barrier = self.begin_barrier(state)?;
        let args = AllReduceArgs { barrier, values, total, n: n as u64, when };
        launch(&*self.device, self.kernels.all_reduce, n.min(FULL), 256, &args)?;
        if self.on_host { self.barrier_on_host(state) } else { Ok(()) }
    }

    /// Reads the first words of an array of another rank.
    pub fn pull_words(&self, data: Addresses, words: usize, from: usize) -> Result<()> {
        if let Some(m) = &self.messages {
            return m.broadcast(data[self.number()], words);
        }
        let args = self.pull_args(data, words, 1, from as u32);
        launch(&*self.device, self.kernels.pull_words, FULL, 256, &args)
    }

    /// Completes the arrays of this rank with the parts of the others.
    pub fn pull_all(&self) -> Result<()> {
        let mut changing = self.arrays()?.iter().filter(|a| a.changes && !a.distributed);
        changing.try_for_each(|a| self.pull(a.data, a.words as usize, 1, None))
    }

    /// Completes the arrays of the first rank with the parts of the others. All ranks call it.
    pub fn complete_first(&self) -> Result<()> {
        match &self.messages {
            Some(m) => m.complete_first(self.arrays()?),
            None if self.number() == 0 => self.pull_all(),
            None => Ok(()),
        }
    }

    /// Reads the forces of own particles from the first rank.
    pub fn pull_forces(&self) -> Result<()> {
        if let Some(m) = &self.messages {
            return m.send_forces(self.arrays()?);
        }
        if self.number() == 0 {
            return Ok(());
        }
        let mut forces = self.arrays()?.iter().filter(|a| a.of_forces && !a.distributed);
        forces.try_for_each(|a| self.pull(a.data, a.words as usize, 1, Some(0)))
    }

    /// Reads all that may have changed from the first rank, which has all of it.
    pub fn pull_from_first(&self) -> Result<()> {
        if self.number() == 0 && self.messages.is_none() {
            return Ok(());
        }
        let n = self.ranges.begin[self.ranges.count as usize] as usize;
        let mut copied = self.arrays()?.iter().filter(|a| !a.distributed);
        copied.try_for_each(|a| self.pull_words(a.data, a.words as usize * n, 0))
    }

    /// Returns the messages to ranks in other processes.
    pub fn messages(&self) -> Option<&MessagePath> {
        self.messages.as_ref()
    }

    /// Returns whether the other ranks are in other processes. Then [`Self::exchange`] does not end a rebuild; all ranks do it
    /// themselves unless they have halted. And steps pause if a rank requests a rebuild.
    pub fn sends_messages(&self) -> bool {
        self.messages.is_some()
    }
}
