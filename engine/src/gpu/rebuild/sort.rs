//! The sort of the particles.

use super::{BLOCK, Kernels, Rebuild, SortWhen};
use crate::device::args::{CellGrid, MAX_SORTED_ARRAYS, MoveArgs, SortArgs, SortedArrayArgs};
use crate::gpu::arrays::launch;
use crate::gpu::staged::Staged;
use galamost_plugin_api::error::Result;
use galamost_plugin_api::tilt::heights;
use galamost_plugin_api::views::StateView;

/// Of so few blocks of cells, each adds the sums of those before it; a kernel that does it for all takes longer.
const FEW_BLOCKS: u32 = 1024;

impl Rebuild {
    /// Returns the number of rebuilds from one sort to the next.
    pub(in crate::gpu) fn sort_every(&self) -> u32 {
        self.sort_grid(SortWhen::Due).sort_every
    }

    /// Returns the cell grid with the rebuilds that sort.
    pub(super) fn sort_grid(&self, when: SortWhen) -> CellGrid {
        let sort_every = self.staged.as_ref().filter(|_| when == SortWhen::Due).map_or(1, |s| s.sort_every);
        CellGrid { sort_every, ..self.grid }
    }

    /// Returns when this rebuild sorts; with messages between ranks, so that the host knows it.
    pub(super) fn known(&self, state: &StateView, when: SortWhen) -> Result<SortWhen> {
        let Some(rank) = self.rank.as_ref().filter(|_| when == SortWhen::Due && self.messages().is_some()) else {
            return Ok(when);
        };
        Ok(if rank.sort_is_due(state, self.sort_every())? { SortWhen::Now } else { SortWhen::NotDue })
    }

    /// Returns the address of the scratch memory of a sorted array.
    pub(super) fn scratch_of(&self, array: u64) -> Option<u64> {
        let scratch = self.staged.as_ref().map_or(self.scratch.address(), Staged::scratch);
        // the address is that of particle 0
        let first = self.distributes().map_or(0, |rank| rank.own().start);
        let found = self.moved.iter().find(|((data, _), _)| *data == array);
        found.map(|((_, words), offset)| (scratch + *offset as u64).wrapping_sub((4 * *words as usize * first) as u64))
    }

    /// Returns the arguments of the sort of all particles.
    pub(super) fn sort_args(&self, state: &StateView, grid: CellGrid) -> SortArgs {
        SortArgs {
            state: *state,
            grid,
            count: self.count.address(),
            arrival: self.arrival.address(),
            unordered: self.unordered.address(),
            order: self.order.address(),
            block_sums: self.block_sums.address(),
            n_blocks: self.n_blocks,
            dimensions: self.dimensions,
            grid_height: heights(self.grid_box[0], self.grid_box[1]),
            most_tilt: self.most_tilt,
            ranks: self.staged.as_ref().map_or(0, Staged::ranks),
            distributed: 0,
            first_cell: 0,
            end_cell: 0,
            scanned: u32::from(self.n_blocks > FEW_BLOCKS),
        }
    }

    /// Returns the arrays that are sorted, with their scratch memory.
    pub(super) fn moved_arrays(&self) -> [SortedArrayArgs; MAX_SORTED_ARRAYS] {
        let mut arrays = [SortedArrayArgs::default(); MAX_SORTED_ARRAYS];
        let scratch = self.staged.as_ref().map_or(self.scratch.address(), Staged::scratch);
        for (a, ((data, words), offset)) in arrays.iter_mut().zip(&self.moved) {
            *a = SortedArrayArgs { data: *data, scratch: scratch + *offset as u64, words: *words, reserved: 0 };
        }
        arrays
    }

    /// Launches the kernels that sort the particles and move all arrays.
    pub(super) fn sort(&self, k: &Kernels, state: &StateView, grid: CellGrid) -> Result<()> {
        let (d, n) = (&*self.device, self.n);
        let mut sort = self.sort_args(state, grid);
        let distributes = self.distributes();
        let counted = distributes.map_or(n, |rank| rank.own().len());
        match distributes {
            // each rank has set its part to 0 after the last sort
            Some(rank) => {
                let at = |k: usize| (grid.cells as usize * k / rank.count() as usize) as u32;
                (sort.first_cell, sort.end_cell) = (at(rank.number()), at(rank.number() + 1));
                sort.distributed = 1;
            }
            // messages clear the counts themselves
            None if self.messages().is_some() => {}
            None => self.count.clear()?,
        }
        if let Some(m) = self.messages() {
            m.order(&sort, || self.launch_start_cells(k, &sort))?;
            return self.move_with_ranks(state, grid);
        }
        let meet = || distributes.map_or(Ok(()), |rank| rank.barrier_of_sort(state, grid));
        launch(d, k.count_cells, counted, BLOCK, &sort)?;
        meet()?;
        self.launch_start_cells(k, &sort)?;
        launch(d, k.fill_cells, counted, BLOCK, &sort)?;
        meet()?;
        d.profile().set_part("neighbor list");
        let ordered = self.rank.as_ref().filter(|_| self.shares()).map_or(n, |rank| rank.own().len());
        launch(d, k.order_cells, ordered, BLOCK, &sort)?;
        if self.rank.is_some() {
            return self.move_with_ranks(state, grid);
        }
        let moves = MoveArgs {
            state: *state,
            grid,
            order: self.order.address(),
            n_arrays: self.moved.len() as u32,
            reserved: 0,
            arrays: self.moved_arrays(),
        };
        launch(d, k.gather_arrays, n, BLOCK, &moves)?;
        launch(d, k.copy_back_arrays, n, BLOCK, &moves)
    }

    /// Launches the kernels that find the first particle of each cell.
    fn launch_start_cells(&self, k: &Kernels, sort: &SortArgs) -> Result<()> {
        let d = &*self.device;
        if self.n_blocks > 1 {
            launch(d, k.sum_cells, self.n_blocks as usize * 256, 256, sort)?;
        }
        if sort.scanned != 0 {
            launch(d, k.scan_blocks, 1, 1024, sort)?;
        }
        launch(d, k.start_cells, self.n_blocks as usize * 256, 256, sort)
    }

    /// Moves all arrays of a rank.
    fn move_with_ranks(&self, state: &StateView, grid: CellGrid) -> Result<()> {
        let Some(rank) = &self.rank else { return Ok(()) };
        let indexes = self.indexes_tags;
        rank.sort(state, grid, self.order.address(), self.shares(), indexes, |array| self.scratch_of(array))
    }
}
