//! The rebuild on the device: sorts particles by cell and tag, moves all arrays, builds the neighbor list.

mod at_once;
mod kernels;
mod links;
mod sort;

use super::arrays::{Buffer, launch};
use super::ranks::{MessagePath, Occasion, Rank};
use super::staged::{Staged, curve_grid};
use crate::device::args::{
    CellGrid, Excluded, ListArgs, MAX_SORTED_ARRAYS, MemberListArgs, SCAN_BLOCK, SCAN_ITEMS, StagedView, TILE,
    TILE_WARPS,
};
use crate::device::{Device, Kernel};
use crate::state::cells::Grid;
use crate::state::molecules::MoleculeRule;
use at_once::AtOnce;
pub use at_once::unit as at_once_unit;
use galamost_plugin_api::abi::{Extent, Opaque};
use galamost_plugin_api::device::DevicePtr;
use galamost_plugin_api::error::{Error, Result};
use galamost_plugin_api::precision::Precision;
use galamost_plugin_api::tilt::heights;
use galamost_plugin_api::views::{LinkView, ListView, StateView};
use kernels::Kernels;
pub use kernels::unit;
use std::ops::Range;
use std::sync::Arc;

const BLOCK: u32 = 256;
/// Cells that a block scans.
const SCAN: usize = (SCAN_BLOCK * SCAN_ITEMS) as usize;

/// How a rebuild is launched.
enum Method {
    /// As one kernel for each part.
    Separate(Kernels),
    /// As two kernels.
    AtOnce(AtOnce),
}

impl Method {
    /// Compiles the kernels of a rebuild of `n` particles: two, if the list is `plain`, belongs to one device, and is so small that this is faster.
    /// Returns them, and the one that looks up links.
    fn load(device: &Arc<dyn Device>, precision: Precision, n: usize, plain: bool) -> Result<(Self, Kernel)> {
        if plain && let Some((kernels, index_links)) = AtOnce::load(device, precision, n)? {
            return Ok((Self::AtOnce(kernels), index_links));
        }
        Kernels::load(device, precision).map(|(kernels, index_links)| (Self::Separate(kernels), index_links))
    }
}

/// Cell grid, particle order and neighbor list.
pub struct Rebuild {
    device: Arc<dyn Device>,
    method: Method,
    index_links: Kernel,
    dimensions: u32,
    /// The box is triclinic, or becomes so.
    triclinic: bool,
    /// The limit of [`galamost_plugin_api::views::is_skewed()`]; 0 for none.
    pub most_tilt: f64,
    /// The grid is valid for boxes with at least the heights of the box with these lengths and tilt factors; see `count_cells`.
    grid_box: [[f64; 3]; 2],
    grid: CellGrid,
    count: Buffer,
    arrival: Buffer,
    unordered: Buffer,
    order: Buffer,
    block_sums: Buffer,
    n_blocks: u32,
    /// Kept alive for `grid`.
    grid_memory: [Buffer; 3],
    /// Arrays that are sorted, with their offsets in the scratch memory.
    moved: Vec<(SortedArray, usize)>,
    /// Scratch memory for the sort of a plain list; a staged list lends memory that only its build uses.
    scratch: Buffer,
    n: usize,
    /// Cutoff plus buffer; 0 without a neighbor list.
    pub r_list: f64,
    /// Range of neighbors that the cell grid is made for.
    radius: f64,
    /// Set if the list only holds pairs within small molecules: begin and end of each tag's molecule, and all members.
    members: Option<[Buffer; 3]>,
    team: u32,
    capacity: u32,
    index: Option<Buffer>,
    row_count: Buffer,
    /// Particles whose rows of a plain list are on this device, from a whole block on.
    rows: Range<usize>,
    /// The list, if it is not a plain one.
    pub staged: Option<Staged>,
    rank: Option<Arc<Rank>>,
    /// With distributed arrays: kernels of each step look up particles by tag.
    indexes_tags: bool,
    /// With distributed arrays: kernels of the first rank use the links of all particles in each step.
    links_of_all: bool,
}

/// The lists of a run: the plain one is empty if there is a staged one.
pub struct Lists {
    /// For kernels of plugins and the pair loop.
    pub plain: ListView,
    /// For the pair loop.
    pub staged: Option<StagedView>,
}

/// When a rebuild sorts the particles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SortWhen {
    /// At every rebuild of a plain list; at some rebuilds of a staged list, by their number.
    Due,
    /// At this rebuild.
    Now,
    /// Not at this rebuild: the particles are in order.
    Never,
    /// Not at this rebuild of a staged list, as its number says.
    NotDue,
}

/// An array that is sorted with the particles: address and number of 32-bit words per particle.
pub type SortedArray = (u64, u32);

/// Returns how many entries a row gets in addition to the longest one. In a large system one is enough: the longest row grows slowly, rows
/// take most of the memory, and their length is rounded up to a multiple of 8. In a small one they are a quarter: an overflow takes as
/// long as hundreds of its steps, and the other replicas wait while one that overflowed does its remaining steps.
pub fn spare_entries(n: usize, longest: u32) -> u32 {
    if n > 100_000 { 1 } else { (longest / 4).max(1) }
}

/// Returns the mean number of neighbors within `r_list` at this number density.
fn mean_neighbors(density: f64, dimensions: u32, r_list: f64) -> f64 {
    if dimensions == 2 {
        density * std::f64::consts::PI * r_list.powi(2)
    } else {
        density * 4.0 / 3.0 * std::f64::consts::PI * r_list.powi(3)
    }
}

/// Returns the offset of each array in the scratch memory for `n` particles, and the size of that memory.
fn scratch_offsets(arrays: &[SortedArray], n: usize) -> (Vec<(SortedArray, usize)>, usize) {
    let mut size = 0;
    let mut moved = vec![];
    for array in arrays {
        moved.push((*array, size));
        size += (4 * array.1 as usize * n).next_multiple_of(256);
    }
    (moved, size)
}

impl Rebuild {
    /// Creates grid and list for `n` particles. `molecules` is set if the list only holds pairs within small molecules.
    /// The box has lengths and tilt factors; `staged` is the buffer of a staged list. A rank builds the rows of the particles
    /// that it propagates; the first one all rows of a plain list if a component reads them (`read`).
    pub fn new(
        device: &Arc<dyn Device>,
        precision: Precision,
        n: usize,
        [length, tilt]: [[f64; 3]; 2],
        dimensions: u32,
        triclinic: bool,
        r_list: f64,
        molecules: Option<&MoleculeRule>,
        staged: Option<f64>,
        sorted_arrays: &[SortedArray],
        rank: Option<Arc<Rank>>,
        read: bool,
    ) -> Result<Self> {
        let (method, index_links) = Method::load(device, precision, n, rank.is_none() && staged.is_none())?;
        let arrays = sorted_arrays.len();
        if arrays > MAX_SORTED_ARRAYS {
            return Err(Error::Run(format!("{arrays} per-particle arrays; at most {MAX_SORTED_ARRAYS} are supported")));
        }
        let own = rank.as_ref().map_or(0..n, |r| r.own());
        let moves_all = rank.as_ref().is_none_or(|r| !r.distributes());
        let (moved, scratch) = scratch_offsets(sorted_arrays, if moves_all { n } else { own.len() });
        let rows = rank.as_ref().filter(|r| !read || r.number() > 0).map_or(0..n, |r| r.own());
        let staged = staged.map(|buffer| Staged::new(device, precision, n, own, length, r_list, buffer, scratch));
        let staged = staged.transpose()?;
        let volume: f64 = length.iter().take(dimensions as usize).product();
        let neighbors = mean_neighbors(n as f64 / volume, dimensions, r_list);
        // a liquid fluctuates less than a gas, so three standard deviations suffice; an overflow only costs a pause
        let mut room = 1.1 * neighbors + 3.0 * neighbors.sqrt() + 8.0;
        room = (room + f64::from(spare_entries(n, room as u32))).min(n as f64);
        // the rows of a list of molecules have a fixed maximal length; its cells only keep close particles close in
        // memory
        let mut radius = if r_list > 0.0 { r_list } else { length[0].max(1.0) / 8.0 };
        let mut members = None;
        if let Some(rule) = molecules {
            let (all, range) = rule.members();
            let column = |k: usize| Buffer::of_words(device, &range.iter().map(|r| r[k]).collect::<Vec<u32>>());
            room = range.iter().map(|r| r[1] - r[0]).max().map_or(0.0, |most| f64::from(most.saturating_sub(1)));
            radius = radius.min((n as f64 / volume).powf(-1.0 / f64::from(dimensions)) * 2.0);
            members = Some([column(0)?, column(1)?, Buffer::of_words(device, &all)?]);
        }
        let words = || Buffer::of_particles(device, rank.as_deref(), 4, n);
        let mut r = Self {
            method,
            index_links,
            dimensions,
            triclinic,
            most_tilt: 0.0,
            grid_box: [length, tilt],
            grid: CellGrid::default(),
            count: Buffer::new(device, 4)?,
            arrival: words()?,
            unordered: words()?,
            order: words()?,
            block_sums: Buffer::new(device, 4)?,
            n_blocks: 0,
            grid_memory: [Buffer::new(device, 4)?, Buffer::new(device, 4)?, words()?],
            moved,
            scratch: Buffer::new(device, if staged.is_some() { 4 } else { scratch })?,
            n,
            r_list,
            radius,
            members,
            team: super::team(&**device, n),
            capacity: 0,
            index: None,
            row_count: Buffer::new(device, if staged.is_some() { 4 } else { 4 * rows.len() })?,
            rows,
            staged,
            rank,
            indexes_tags: true,
            links_of_all: true,
            device: device.clone(),
        };
        r.set_grid([length, tilt])?;
        if r_list > 0.0 && r.staged.is_none() {
            r.make_room(room as u32)?;
        }
        Ok(r)
    }

    /// Returns lengths and tilt factors of the flattest box for which the grid is valid.
    pub fn grid_box(&self) -> [[f64; 3]; 2] {
        self.grid_box
    }

    /// Makes a cell grid that is valid for boxes with at least the heights of this one.
    pub fn set_grid(&mut self, grid_box: [[f64; 3]; 2]) -> Result<()> {
        let [length, tilt] = grid_box;
        // particles are sorted even without a list, so that neighbors in space are neighbors in memory
        let mut grid = Grid::of_heights(heights(length, tilt), self.triclinic, self.dimensions, self.radius, 2, self.n);
        let mut curve = 0;
        if self.staged.is_some() {
            (grid.n, curve) = curve_grid(length, self.n);
        }
        let cells = grid.cells();
        let rows: Vec<u32> = grid.rows.iter().flatten().map(|o| *o as u32).collect();
        let device = &self.device;
        self.grid_memory[0] = Buffer::of_words(device, &rows)?;
        self.grid_memory[1] = Buffer::new(device, 4 * (cells + 1))?;
        self.count = match self.distributes() {
            Some(rank) => rank.distribute_words(cells)?,
            None => Buffer::new(device, 4 * cells)?,
        };
        let n_blocks = cells.div_ceil(SCAN);
        self.block_sums = Buffer::new(device, 4 * n_blocks)?;
        self.n_blocks = n_blocks as u32;
        let whole = |k: usize| u32::from(2 * grid.reach[k] + 1 >= grid.n[k]);
        let [rows, start, cell_of] = &self.grid_memory;
        self.grid = CellGrid {
            n: grid.n,
            cells: cells as u32,
            reach_x: grid.reach[0] as i32,
            whole_x: whole(0),
            whole_y: whole(1),
            whole_z: whole(2),
            n_rows: grid.rows.len() as u32,
            curve,
            rows: rows.address(),
            start: start.address(),
            cell_of: cell_of.address(),
            sort_every: 1,
            reserved: 0,
        };
        self.grid_box = grid_box;
        Ok(())
    }

    /// Replaces the staged list by a plain one, in a box of these lengths. The list overflows at its first rebuild and
    /// gets the room that it needs.
    pub fn make_plain(&mut self, length: [f64; 3]) -> Result<()> {
        self.staged = None;
        // a plain list is sorted by every rank
        let arrays: Vec<SortedArray> = self.moved.iter().map(|(array, _)| *array).collect();
        let scratch;
        (self.moved, scratch) = scratch_offsets(&arrays, self.n);
        self.scratch = Buffer::new(&self.device, scratch)?;
        let words = || Buffer::new(&self.device, 4 * self.n);
        (self.arrival, self.unordered, self.order) = (words()?, words()?, words()?);
        self.grid_memory[2] = words()?;
        self.row_count = Buffer::new(&self.device, 4 * self.rows.len())?;
        self.set_grid([length, [0.0; 3]])?;
        self.make_room(8)
    }

    /// Frees the list and the memory of the sort, which are not used any more.
    pub fn release(&mut self) -> Result<()> {
        (self.staged, self.index, self.rank) = (None, None, None);
        let memory = [&mut self.count, &mut self.arrival, &mut self.unordered, &mut self.order, &mut self.scratch];
        for buffer in memory.into_iter().chain([&mut self.row_count]).chain(&mut self.grid_memory) {
            *buffer = Buffer::new(&self.device, 4)?;
        }
        Ok(())
    }

    /// Allocates rows with room for `entries` neighbors.
    pub fn make_room(&mut self, entries: u32) -> Result<()> {
        // each thread of a team handles the same number of entries
        self.capacity = entries.next_multiple_of(self.team.max(8));
        // free the old list first: both together may not fit
        self.index = None;
        let rows = self.rows.len().next_multiple_of(32);
        self.index = Some(Buffer::new(&self.device, 4 * rows * self.capacity as usize)?);
        Ok(())
    }

    /// Returns the view of the state in which the particles with rows of a plain list on this device are the own ones.
    pub fn of_rows(&self, state: &StateView) -> StateView {
        StateView { own_begin: self.rows.start as u32, own_end: self.rows.end as u32, ..*state }
    }

    /// Returns the team size: the number of threads that share a row.
    pub fn team(&self) -> u32 {
        self.team
    }

    /// Returns the neighbor list for plugins and kernels.
    pub fn view(&self) -> ListView {
        // the addresses are those of particle 0
        let of_0 = |address: u64, bytes: usize| address.wrapping_sub((bytes * self.rows.start) as u64);
        let index = self.index.as_ref().map_or(0, |b| of_0(b.address(), 4 * self.capacity as usize));
        ListView {
            capacity: self.capacity,
            team: self.team,
            index: DevicePtr::new(index),
            count: DevicePtr::new(of_0(self.row_count.address(), 4)),
            r_list: self.r_list,
            ..ListView::empty()
        }
    }

    /// Returns the lists for the pair loop.
    pub fn lists(&self) -> Lists {
        Lists { plain: self.view(), staged: self.staged.as_ref().map(Staged::view) }
    }

    /// Returns the mean and the largest number of neighbors.
    pub fn neighbors(&self) -> Result<(f64, u32)> {
        if let Some(staged) = &self.staged {
            return staged.neighbors();
        }
        let counts = super::arrays::words(&self.row_count.download()?);
        let sum: u64 = counts.iter().map(|c| u64::from(*c)).sum();
        Ok((sum as f64 / counts.len().max(1) as f64, counts.iter().copied().max().unwrap_or(0)))
    }

    /// Launches all kernels of a rebuild, at whose end ranks meet if they `meet`. `links` holds the link tables with the addresses of their counts and words by
    /// tag; `excluded` describes pairs that are no neighbors.
    pub fn run(
        &self,
        state: &StateView,
        links: &[(LinkView, u64, u64)],
        excluded: Excluded,
        when: SortWhen,
        meet: bool,
    ) -> Result<()> {
        let d = &*self.device;
        let k = match &self.method {
            Method::Separate(kernels) => kernels,
            Method::AtOnce(k) => return k.run(self, &k.arguments(self, state, links, excluded, true)?),
        };
        if let Some(rank) = &self.rank {
            rank.clear_wanted()?;
            if !self.shares() {
                rank.push_positions(state)?;
            }
        }
        d.profile().set_part("neighbor list");
        let when = self.known(state, when)?;
        let sorts = !matches!(when, SortWhen::Never | SortWhen::NotDue) || self.staged.is_none();
        let grid = self.sort_grid(when);
        if sorts {
            self.sort(k, state, grid)?;
            match &self.rank {
                // a group of tiles at the end of a range may have particles of two ranks; a plain list reads those of others at once
                Some(r) if self.shares() && !r.has_whole_groups() || r.distributes() && !self.shares() => {
                    r.barrier_of_sort(state, grid)?
                }
                _ => {}
            }
        }
        if let Some(staged) = &self.staged {
            staged.bound(state)?;
            if let Some(rank) = self.rank.as_ref().filter(|_| self.shares()) {
                match rank.messages() {
                    Some(m) => m.complete_groups(&staged.view().groups)?,
                    None => rank.barrier(state)?,
                }
                if sorts && self.indexes_tags && !rank.distributes() {
                    rank.index_tags(state, grid)?;
                }
            }
        }
        if when != SortWhen::NotDue {
            self.launch_index_links(self.indexed(state), links, if sorts { grid.sort_every } else { 1 })?;
        }
        if let Some(staged) = &self.staged {
            staged.bound_tops(state)?;
            if let Some(m) = self.messages() {
                m.exchange_near_tiles(state, &staged.view(), self.r_list)?;
            }
            staged.build(state, excluded, self.r_list)?;
        } else if self.r_list > 0.0 {
            let (n, state) = (self.rows.len(), self.of_rows(state));
            let args = ListArgs { state, grid: self.grid, list: self.view(), excluded };
            let whole = excluded.excluded_count == 0 && excluded.molecule == 0;
            if let Some([first, end, members]) = &self.members {
                let (first, end, members) = (first.address(), end.address(), members.address());
                launch(d, k.build_list_of_members, n, BLOCK, &MemberListArgs { list: args, first, end, members })?;
            } else {
                let kernel = if whole { k.build_list } else { k.build_list_excluding };
                launch(d, kernel, n.div_ceil(TILE as usize) * 32, 32 * TILE_WARPS, &args)?;
            }
        }
        if let Some(rank) = &self.rank {
            rank.find_ghosts(state, Some(&self.lists()), links.iter().map(|(view, _, _)| *view))?;
            if meet {
                rank.exchange(state, Occasion::Rebuild)?;
                if !rank.sends_messages() {
                    return Ok(());
                }
            }
        }
        let globals = state.globals.address;
        let pointer = [std::ptr::from_ref(&globals).cast_mut().cast::<Opaque>()];
        // SAFETY: the kernel takes the address of the globals
        unsafe { d.launch(k.end_rebuild, Extent::from(1), Extent::from(1), 0, &pointer) }
    }

    /// As [`Self::run`], if the globals request a rebuild, which the kernels test. Returns false, and launches nothing, if they cannot.
    ///
    /// # Errors
    /// Returns the device's error.
    pub fn run_if_requested(
        &self,
        state: &StateView,
        links: &[(LinkView, u64, u64)],
        excluded: Excluded,
    ) -> Result<bool> {
        match &self.method {
            Method::Separate(_) => Ok(false),
            Method::AtOnce(k) => k.run(self, &k.arguments(self, state, links, excluded, false)?).map(|()| true),
        }
    }

    /// Returns whether ranks share the list.
    fn shares(&self) -> bool {
        self.staged.as_ref().is_some_and(|s| s.ranks() != 0)
    }

    /// Returns the rank if arrays are distributed and the list is staged; then ranks share the whole sort.
    fn distributes(&self) -> Option<&Rank> {
        self.rank.as_deref().filter(|r| r.distributes() && self.staged.is_some())
    }

    /// Returns the messages if ranks in several processes share the list.
    fn messages(&self) -> Option<&MessagePath> {
        self.rank.as_deref().filter(|_| self.shares()).and_then(Rank::messages)
    }

    /// Lets ranks share the list; with `indexes_tags`, kernels of each step look up particles by tag. With `links_of_all`, the first
    /// rank looks up the links of all particles, even if arrays are distributed.
    ///
    /// # Errors
    /// Returns the driver's error, or an error if another rank has failed.
    pub fn share(&mut self, indexes_tags: bool, links_of_all: bool) -> Result<()> {
        self.indexes_tags = indexes_tags || self.rank.as_ref().is_some_and(|rank| rank.sends_messages());
        self.links_of_all = links_of_all;
        match (&mut self.staged, &self.rank) {
            // a group of tiles that has particles of two processes is bounded by both
            (Some(staged), Some(rank)) if rank.reads_others() || rank.has_whole_groups() => staged.share(rank),
            _ => Ok(()),
        }
    }
}
