//! The sort by ranks in several processes: each orders the particles of its cells, a part of all cells. Others send it the numbers of the particles
//! that have come into these, and get the entries of the order that belong to their particles.

use super::MessagePath;
use super::exchange::{Exchange, Spare, lock};
use crate::device::args::{ElementLists, MAX_RANKS, MessageField, ProcessSortArgs, SortArgs};
use crate::device::{Device, Kernel};
use crate::gpu::arrays::{Buffer, launch};
use galamost_plugin_api::error::Result;
use std::sync::{Arc, Mutex};
use tracing::debug;

/// Room to spare for particles in cells of other ranks: as many, depending on the time since the last sort.
const SPARE_INCOMING: Spare = Spare { part: 2, few: 256, least: 64, adjacent: 256 };
/// Room to spare for entries of the order: the number of particles in the cells of a rank fluctuates, so that some belong to the rank
/// before it or after it.
const SPARE_ENTRIES: Spare = Spare { part: 2, few: 8192, least: 64, adjacent: 8192 };

/// Kernels of `messages_sort.cuh`, and messages.
pub(super) struct SortKernels {
    find_cells: Kernel,
    count_incoming: Kernel,
    fill_own_cells: Kernel,
    order_own_cells: Kernel,
    /// The number of particles in the cells of each rank.
    totals: Buffer,
    /// Particles in the cells of other ranks.
    pub incoming: Mutex<Exchange>,
    /// Places in the order that belong to other ranks.
    pub entries: Mutex<Exchange>,
}

impl SortKernels {
    pub fn new(device: &Arc<dyn Device>, module: u64, rank: usize, ranks: usize) -> Result<Self> {
        let k = |name: &str| device.kernel(module, name);
        Ok(Self {
            find_cells: k("find_cells")?,
            count_incoming: k("count_incoming")?,
            fill_own_cells: k("fill_own_cells")?,
            order_own_cells: k("order_own_cells")?,
            totals: Buffer::new(device, 4 * MAX_RANKS)?,
            incoming: Exchange::new(device, rank, ranks, SPARE_INCOMING)?,
            entries: Exchange::new(device, rank, ranks, SPARE_ENTRIES)?,
        })
    }
}

impl ProcessSortArgs {
    /// Returns the arguments with these lists.
    fn listing(&self, outgoing: ElementLists) -> Self {
        Self { outgoing, ..*self }
    }
}

impl MessagePath {
    /// Finds the order of the own particles after a sort; its entries are the present numbers of particles. `start_cells` launches the
    /// kernels that find where cells begin, from their counts, which are 0 before.
    pub fn order(&self, sort: &SortArgs, start_cells: impl FnOnce() -> Result<()>) -> Result<()> {
        let (d, k, own) = (&*self.device, &self.sort, self.own().len());
        let (ranks, cells, globals) = (self.messages.ranks(), sort.grid.cells as usize, sort.state.globals.address);
        let none = ElementLists { counts: 0, list: 0, first: [0; MAX_RANKS + 2] };
        let args = ProcessSortArgs {
            sort: *sort,
            ranges: self.ranges,
            outgoing: none,
            incoming: none,
            totals: k.totals.address(),
            end_of_cells: std::array::from_fn(|r| (cells * (r + 1).min(ranks) / ranks) as u32),
            reserved: 0,
        };
        let field = |data: u64| [MessageField { data, words: 1, reserved: 0 }];
        let mut incoming = lock(&k.incoming);
        let found = self.exchange_elements(&mut incoming, globals, &field(sort.grid.cell_of), |lists| {
            // if particles were counted first, those of the own cells are counted twice
            d.clear(sort.count, 4 * cells)?;
            launch(d, k.find_cells, own, 256, &args.listing(lists))
        })?;
        if let Some(found) = found {
            debug!("particles in cells of other ranks: {found}; own particles: {own}");
        }
        let args = ProcessSortArgs { incoming: incoming.lists_in(), ..args };
        let most = own + incoming.most_received();
        launch(d, k.count_incoming, incoming.most_received(), 256, &args)?;
        start_cells()?;
        let total = sort.grid.start + 4 * sort.grid.cells as u64;
        let send: Vec<_> = self.others().map(|r| (r, total, 4)).collect();
        self.transfer(&send, &self.words_of_ranks(&k.totals).collect::<Vec<_>>())?;
        launch(d, k.fill_own_cells, most, 256, &args)?;
        self.exchange_elements(&mut lock(&k.entries), globals, &field(sort.order), |lists| {
            launch(d, k.order_own_cells, most, 256, &args.listing(lists))
        })?;
        Ok(())
    }
}
