//! The part of a sort that moves the arrays, with several ranks.

use super::{Rank, RankedArray};
use crate::device::args::{CellGrid, MAX_RANKS, MAX_SORTED_ARRAYS, MessageField, RankArray, RankMoveArgs};
use crate::gpu::arrays::launch;
use galamost_plugin_api::error::Result;
use galamost_plugin_api::views::{Globals, StateView};
use std::mem::offset_of;

impl Rank {
    /// Before a sort, if the other ranks are in other processes: gets everything of the particles that become those of this rank from
    /// the ranks that have them, as far as it `moves` with the particles. All ranks sort at the same rebuilds.
    fn get_migrants(&self, args: &RankMoveArgs, moves: impl Fn(u64) -> bool) -> Result<()> {
        let Some(m) = &self.messages else { return Ok(()) };
        let state = &args.state;
        if !self.sort_is_due(state, args.grid.sort_every)? {
            return Ok(());
        }
        self.marks.clear()?;
        launch(&*self.device, self.kernels.mark_migrants, self.own().len(), 256, args)?;
        let globals = state.globals.address;
        m.request(globals, &self.marks, true, [0; 2], false)?;
        let mut all: Vec<_> = self
            .arrays()?
            .iter()
            .filter(|a| a.changes && (!a.everywhere || args.shares != 0) && moves(a.data[self.number()]))
            .collect();
        // kernels copy words by fours, so arrays with other numbers of words come last
        all.sort_by_key(|a| a.words % 4 != 0);
        let field = |a: &&RankedArray| MessageField { data: a.data[self.number()], words: a.words, reserved: 0 };
        m.exchange_migrants(globals, &all.iter().map(field).collect::<Vec<_>>())
    }

    /// Returns whether this rebuild sorts: each with a multiple of `sort_every`.
    pub fn sort_is_due(&self, state: &StateView, sort_every: u32) -> Result<bool> {
        if sort_every < 2 {
            return Ok(sort_every == 1);
        }
        let mut rebuilds = [0; 8];
        self.device.download(state.globals.address + offset_of!(Globals, rebuilds) as u64, &mut rebuilds)?;
        Ok(u64::from_ne_bytes(rebuilds).is_multiple_of(sort_every.into()))
    }

    /// Moves all arrays to the order of a sort; if they are distributed or ranks share the list (`shares`), only the values of own
    /// particles. With `indexes`, kernels look up particles by tag. `scratch` returns the memory for the array at an address, if it
    /// moves with the particles.
    pub fn sort(
        &self,
        state: &StateView,
        grid: CellGrid,
        order: u64,
        shares: bool,
        indexes: bool,
        scratch: impl Fn(u64) -> Option<u64>,
    ) -> Result<()> {
        let mut args = RankMoveArgs {
            order,
            marks: self.marks.address(),
            distributed: u32::from(self.distributes()),
            indexes_tags: u32::from(indexes),
            ..self.move_args(state, grid, shares)
        };
        self.get_migrants(&args, |array| scratch(array).is_some())?;
        let sorted = self.arrays()?.iter().filter_map(|a| Some((a, scratch(a.data[self.number()])?)));
        for (to, (a, scratch)) in args.arrays.iter_mut().zip(sorted) {
            // a rank in another process has sent what this one needs of the particles that it had, and sends its part of other arrays
            let complete = a.everywhere && !a.distributed && !(shares && (a.changes || self.messages.is_some()));
            let data = if self.messages.is_some() { [a.data[self.number()]; MAX_RANKS] } else { a.data };
            *to = RankArray { scratch, words: a.words, everywhere: u32::from(complete), data };
            args.n_arrays += 1;
        }
        let n = if shares || self.distributes() { self.own().len() } else { state.n_local as usize };
        launch(&*self.device, self.kernels.gather_from_ranks, n, 256, &args)?;
        self.begin_barrier(state)?;
        launch(&*self.device, self.kernels.copy_back_own, n, 256, &args)?;
        let Some(m) = self.messages.as_ref().filter(|_| shares) else { return Ok(()) };
        m.complete_constant(self.arrays()?)
    }

    /// A barrier if this rebuild sorts.
    pub fn barrier_of_sort(&self, state: &StateView, grid: CellGrid) -> Result<()> {
        let _part = self.device.profile().within("other GPUs");
        self.begin_barrier(state)?;
        if self.on_host {
            return Ok(());
        }
        launch(&*self.device, self.kernels.barrier_of_sort, 32, 32, &self.move_args(state, grid, true))
    }

    /// Notes where each tag is after a sort that ranks share. They have met since.
    pub fn index_tags(&self, state: &StateView, grid: CellGrid) -> Result<()> {
        launch(&*self.device, self.kernels.index_tags, state.n_local as usize, 256, &self.move_args(state, grid, true))
    }

    /// Returns the arguments of a sort without arrays.
    fn move_args(&self, state: &StateView, grid: CellGrid, shares: bool) -> RankMoveArgs {
        RankMoveArgs {
            barrier: self.barrier_args(state.globals.address),
            state: *state,
            grid,
            ranges: self.ranges,
            order: 0,
            marks: 0,
            n_arrays: 0,
            distributed: 0,
            shares: u32::from(shares),
            indexes_tags: 0,
            arrays: [RankArray::default(); MAX_SORTED_ARRAYS],
        }
    }
}
