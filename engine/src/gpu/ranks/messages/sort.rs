//! The sort by ranks in several processes: they send each other the numbers of particles that have come into another one's cells.

use super::MessagePath;
use crate::device::args::{MessageField, ProcessSortArgs, SortArgs};
use crate::device::{Device, Kernel};
use crate::gpu::arrays::{Buffer, launch};
use crate::processes::Piece;
use galamost_plugin_api::error::{Error, Result};
use galamost_plugin_api::views::Globals;
use std::mem::offset_of;
use std::ops::Range;
use std::sync::Arc;
use tracing::debug;

/// Kernels of `messages_sort.cuh`, and their memory.
pub(super) struct SortKernels {
    pub list_offered: Kernel,
    find_cells: Kernel,
    count_received: Kernel,
    fill_own_cells: Kernel,
    order_own_cells: Kernel,
    /// A word for each own particle: the bit of the rank that orders it, if that is another one.
    offers: Buffer,
}

impl SortKernels {
    pub fn new(device: &Arc<dyn Device>, module: u64, own: usize) -> Result<Self> {
        let k = |name: &str| device.kernel(module, name);
        Ok(Self {
            list_offered: k("list_offered")?,
            find_cells: k("find_cells")?,
            count_received: k("count_received")?,
            fill_own_cells: k("fill_own_cells")?,
            order_own_cells: k("order_own_cells")?,
            offers: Buffer::new(device, 4 * own)?,
        })
    }
}

/// The part of `a` that is in `b`.
fn common(a: &Range<usize>, b: &Range<usize>) -> Range<usize> {
    let begin = a.start.max(b.start);
    begin..a.end.min(b.end).max(begin)
}

impl MessagePath {
    /// Finds the order of the own particles after a sort; its entries are the present numbers of particles. Each rank orders the
    /// particles of its cells, a part of all. `start_cells` launches the kernels that find where cells begin, from their counts, which
    /// are 0 before. Returns false if the ranks have halted.
    pub fn order(&self, sort: &SortArgs, start_cells: impl FnOnce() -> Result<()>) -> Result<bool> {
        let (d, k, own) = (&*self.device, &self.sort, self.own());
        let (ranks, cells) = (self.messages.ranks(), sort.grid.cells as usize);
        let mut args = ProcessSortArgs {
            sort: *sort,
            ranges: self.ranges,
            offers: k.offers.address(),
            received: 0,
            n_received: 0,
            first_slot: 0,
            n_slots: 0,
            end_of_cells: std::array::from_fn(|r| (cells * (r + 1).min(ranks) / ranks) as u32),
        };
        launch(d, k.find_cells, own.len(), 256, &args)?;
        let others = self.offer(k.offers.address(), own.start as u32, own.len())?;
        debug!("{others} of {} particles are ordered by other ranks", own.len());
        let cell_of = MessageField { data: sort.grid.cell_of, words: 1, reserved: 0 };
        let (received, n_received) = self.exchange_offered(sort.state.globals.address, &[cell_of])?;
        (args.received, args.n_received) = (received, n_received as u32);
        launch(d, k.count_received, n_received, 256, &args)?;
        start_cells()?;
        let Some(slots) = self.slots(sort)? else { return Ok(false) };
        let filled = slots[self.rank()].clone();
        (args.first_slot, args.n_slots) = (filled.start as u32, filled.len() as u32);
        launch(d, k.fill_own_cells, own.len() + n_received, 256, &args)?;
        launch(d, k.order_own_cells, filled.len(), 256, &args)?;
        let piece = |rank: usize, part: Range<usize>| (rank, sort.order + 4 * part.start as u64, 4 * part.len());
        let send: Vec<Piece> = self.others().map(|r| piece(r, common(&filled, &self.range(r)))).collect();
        let receive: Vec<Piece> = self.others().map(|r| piece(r, common(&slots[r], &own))).collect();
        self.transfer(&send, &receive).map(|()| true)
    }

    /// Returns the places in the new order of the particles in the cells of each rank, unless the ranks have halted.
    fn slots(&self, sort: &SortArgs) -> Result<Option<Vec<Range<usize>>>> {
        let [mut counted, mut halt] = [[0; 4]; 2];
        self.device.download(sort.grid.start + 4 * u64::from(sort.grid.cells), &mut counted)?;
        self.device.download(sort.state.globals.address + offset_of!(Globals, halt) as u64, &mut halt)?;
        let own = if halt == [0; 4] { u64::from(u32::from_ne_bytes(counted)) } else { u64::MAX };
        let counts = self.messages.all_numbers(own)?;
        if counts.contains(&u64::MAX) {
            return Ok(None);
        }
        let mut end = 0;
        let slots: Vec<Range<usize>> = counts
            .iter()
            .map(|n| {
                let begin = end;
                end += *n as usize;
                begin..end
            })
            .collect();
        if end != sort.state.n_local as usize {
            return Err(Error::Run(format!("a sort found {end} of {} particles", sort.state.n_local)));
        }
        Ok(Some(slots))
    }
}
