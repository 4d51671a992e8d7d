//! Ghosts: particles of other ranks of which this one has copies.

use super::{FULL, Rank, RankedArray};
use crate::device::args::{GhostArgs, GhostField, GhostPushArgs, MAX_GHOST_FIELDS, MessageField, WantedArgs};
use crate::gpu::arrays::{Buffer, launch};
use crate::gpu::rebuild::Lists;
use crate::gpu::staged::BLOCK;
use galamost_plugin_api::error::Result;
use galamost_plugin_api::views::{LinkView, ListView, StateView};
use std::sync::atomic::Ordering;

/// When ranks exchange the values of ghosts. All have met since they used the former values, or they have `released` them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occasion {
    /// In a step, after particles have moved. Ranks in several processes pause then if one requests a rebuild.
    Step { released: bool },
    /// After another change.
    Change { released: bool },
    /// At the end of a rebuild, which ends unless a rank has halted.
    Rebuild,
}

impl Rank {
    /// Returns whether ghosts get new values of this array in every step.
    fn is_pushed(&self, a: &RankedArray) -> bool {
        a.of_neighbors
            && a.changes
            && !a.distributed
            && (!a.velocities || self.reads_velocities.load(Ordering::Relaxed))
    }

    /// Tells the other ranks that this one no longer uses the present values of its ghosts; with distributed arrays, waits until no
    /// rank uses what others may change.
    pub fn release_ghosts(&self, state: &StateView) -> Result<()> {
        if self.distributes() {
            return self.barrier(state);
        }
        let _part = self.device.profile().within("other GPUs");
        if self.on_host {
            return Ok(());
        }
        launch(&*self.device, self.kernels.release_ghosts, 32, 32, &self.barrier_args(state.globals.address))
    }

    /// Gives the other ranks the values of their ghosts, after this one has moved its particles. Afterwards all have new values.
    pub fn exchange(&self, state: &StateView, when: Occasion) -> Result<()> {
        let pushed: Vec<&RankedArray> = self.arrays()?.iter().filter(|a| self.is_pushed(a)).collect();
        self.exchange_fields(state, &pushed, when, None)
    }

    /// As [`Self::exchange`] in a step, with messages; their transfer overlaps with the launches of `body`.
    pub fn exchange_overlapped(&self, state: &StateView, body: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        let pushed: Vec<&RankedArray> = self.arrays()?.iter().filter(|a| self.is_pushed(a)).collect();
        self.exchange_fields(state, &pushed, Occasion::Step { released: true }, Some(body))
    }

    /// Gives the other ranks the values of their ghosts in the arrays with these addresses. All ranks have met since they used the
    /// former values. Afterwards all have new values.
    pub fn exchange_arrays(&self, state: &StateView, addresses: &[u64]) -> Result<()> {
        if self.distributes() {
            return Ok(());
        }
        let own = self.number();
        let needed = self.arrays()?.iter().filter(|a| a.changes && addresses.contains(&a.data[own])).collect();
        self.exchange_in_parts(state, needed, false)
    }

    /// Gives the other ranks the values of their ghosts in any number of arrays.
    pub(in crate::gpu::ranks) fn exchange_in_parts(
        &self,
        state: &StateView,
        mut arrays: Vec<&RankedArray>,
        released: bool,
    ) -> Result<()> {
        // kernels copy words by fours, so arrays with other numbers of words come last
        arrays.sort_by_key(|a| a.words % 4 != 0);
        for (k, fields) in arrays.chunks(MAX_GHOST_FIELDS).enumerate() {
            self.exchange_fields(state, fields, Occasion::Change { released: released && k == 0 }, None)?;
        }
        Ok(())
    }

    fn exchange_fields(
        &self,
        state: &StateView,
        arrays: &[&RankedArray],
        when: Occasion,
        overlapped: Option<&mut dyn FnMut() -> Result<()>>,
    ) -> Result<()> {
        if let Some(m) = &self.messages {
            let _part = self.device.profile().within("other GPUs");
            let field = |a: &&RankedArray| MessageField { data: a.data[self.number()], words: a.words, reserved: 0 };
            let fields: Vec<_> = arrays.iter().map(field).collect();
            return m.exchange_ghosts(
                state.globals.address,
                &fields,
                matches!(when, Occasion::Step { .. }),
                overlapped,
            );
        }
        let released = matches!(when, Occasion::Step { released: true } | Occasion::Change { released: true });
        if self.on_host && released {
            self.barrier_on_host(state)?;
        }
        let _part = self.device.profile().within("other GPUs");
        let [particles, to, count] = self.pushed.each_ref().map(Buffer::address);
        let mut args = GhostPushArgs {
            barrier: self.barrier_args(state.globals.address),
            ranges: self.ranges,
            particles,
            to,
            count,
            n_fields: 0,
            ends_rebuild: u32::from(when == Occasion::Rebuild),
            released: u32::from(released && !self.distributes()),
            reserved: 0,
            fields: [GhostField::default(); MAX_GHOST_FIELDS],
        };
        for (f, a) in args.fields.iter_mut().zip(arrays) {
            *f = GhostField { words: a.words, reserved: 0, data: a.data };
            args.n_fields += 1;
        }
        let threads = if args.n_fields == 0 { 256 } else { FULL / 8 };
        launch(&*self.device, self.kernels.push_ghosts, threads, 256, &args)?;
        if self.on_host { self.barrier_on_host(state) } else { Ok(()) }
    }

    /// Finds the ghosts: neighbors and bonded partners of own particles in the ranges of others. Their owners list them. Without
    /// `lists`, these are those of before, and bonded partners.
    pub fn find_ghosts(
        &self,
        state: &StateView,
        lists: Option<&Lists>,
        links: impl Iterator<Item = LinkView>,
    ) -> Result<()> {
        if self.distributes() {
            return Ok(());
        }
        let (d, k, own) = (&*self.device, &self.kernels, self.own().len());
        match lists {
            Some(_) => {
                self.marks.clear()?;
                if self.sends_messages() {
                    self.boundary.clear()?;
                }
            }
            // the owners list all of them again
            None => self.pushed[2].clear()?,
        }
        let mut args = GhostArgs {
            state: *state,
            list: lists.map_or_else(ListView::empty, |lists| lists.plain),
            staged: lists.and_then(|lists| lists.staged).unwrap_or_default(),
            links: LinkView::empty(2),
            marks: self.marks.address(),
            ranges: self.ranges,
            wanted: self.wanted_of,
            group_starts: self.groups[0].address(),
            group_tags: self.groups[1].address(),
            n_groups: self.n_groups as u32,
            reserved: 0,
            boundary: if self.sends_messages() { self.boundary.address() } else { 0 },
        };
        if lists.is_some_and(|lists| lists.staged.is_some()) {
            launch(d, k.find_ghosts_of_blocks, own.div_ceil(BLOCK) * 256, 256, &args)?;
        } else if !args.list.index.is_null() {
            launch(d, k.find_ghosts_of_list, own, 128, &args)?;
        }
        for view in links {
            args.links = view;
            launch(d, k.find_ghosts_of_links, own, 128, &args)?;
        }
        if lists.is_some() && self.n_groups > 0 {
            launch(d, k.find_ghosts_of_groups, self.n_groups, 128, &args)?;
        }
        let _part = self.device.profile().within("other GPUs");
        if let Some(m) = &self.messages {
            let staged = lists.is_some_and(|lists| lists.staged.is_some());
            let boundary = if staged { [self.boundary.address(), self.boundary.most().into()] } else { [0; 2] };
            // outside of a rebuild, messages must have room
            let found = m.request(state.globals.address, &self.marks, false, boundary, lists.is_none())?;
            found.filter(|_| staged).into_iter().for_each(|n| self.boundary.note(n));
            return Ok(());
        }
        let barrier = self.begin_barrier(state)?;
        let [particles, ranks, count] = self.pushed.each_ref().map(Buffer::address);
        let wanted = self.wanted.address();
        let args = WantedArgs { barrier, ranges: self.ranges, wanted, particles, ranks, count };
        launch(d, k.list_wanted, own.min(FULL), 256, &args)
    }

    /// Completes the positions in all ranks.
    pub fn push_positions(&self, state: &StateView) -> Result<()> {
        if self.distributes() {
            return Ok(());
        }
        self.arrays()?.iter().take(1).try_for_each(|a| match &self.messages {
            Some(m) => m.complete(a.data[self.number()], a.words as usize, 1),
            None => self.push(state, a.data, a.words as usize, 1),
        })
    }

    /// Forgets of which ranks the own particles are ghosts. No rank has begun to find its ghosts.
    pub fn clear_wanted(&self) -> Result<()> {
        if self.distributes() {
            return Ok(());
        }
        self.wanted.clear()?;
        self.pushed[2].clear()
    }
}
