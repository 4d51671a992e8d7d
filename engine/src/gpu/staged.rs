//! The staged list: blocks of consecutive particles with their halo, for large systems. See `kernels/galamost/staged.cuh`.

use super::arrays::{Buffer, launch, words};
use super::ranks::Rank;
use crate::backend::{stages_list, staging_prevented};
use crate::device::args::{
    self, Bounds, COPIED_SLOTS, Excluded, GROUPS, LEVEL, MAX_RANKS, RankListArgs, SLOT_BYTES, StagedListArgs,
    StagedView, TOPS,
};
use crate::device::{Device, Kernel, SourceUnit};
use crate::pipeline::ListChoice;
use crate::plan::Plan;
use galamost_plugin_api::abi::{Extent, Opaque};
use galamost_plugin_api::device::bytes_of;
use galamost_plugin_api::error::{Error, Result};
use galamost_plugin_api::precision::Precision;
use galamost_plugin_api::views::StateView;
use std::ops::Range;
use std::sync::Arc;
use tracing::{info, warn};

/// Particles of a block.
pub const BLOCK: usize = args::BLOCK as usize;
/// Particles of a tile, which is also the number of tiles in a group and of groups in a group of groups.
pub const TILE: usize = LEVEL as usize;
/// Particles of a group of tiles.
pub const GROUP: usize = TILE * TILE;
/// Slots that an entry of 16 bits can address.
const MAX_SLOTS: u32 = 4096;
/// Fewest blocks whose masks are made at once, of few and of many blocks, so that the device is filled.
const FEWEST_BLOCKS: [usize; 2] = [1584, 3168];

/// Returns whether the neighbor list is staged.
pub fn chosen(plan: &Plan, device: &dyn Device) -> Result<bool> {
    Ok(stages_list(plan)? && device.supports_staged_list())
}

/// Logs whether the neighbor list is staged.
pub fn report(plan: &Plan, staged: bool) -> Result<()> {
    if let (ListChoice::Staged, Some(reason)) = (plan.pipeline.neighbors.list, staging_prevented(plan)?) {
        warn!("the neighbor list is not staged: {reason}");
    }
    if staged {
        info!("the neighbor list is staged in blocks of {} particles", BLOCK);
    }
    Ok(())
}

/// Kernels of `staged_list.cuh`.
struct Kernels {
    bound_tiles: Kernel,
    bound_tops: Kernel,
    find_neighbors: Kernel,
    expand_rows: Kernel,
    expand_rows_excluding: Kernel,
}

/// Sizes of buffers and other numbers that follow from the mean density.
struct Sizes {
    slots: u32,
    chunks: usize,
    quantum: f64,
    sort_every: u32,
}

impl Sizes {
    fn new(n: usize, length: [f64; 3], r_list: f64, buffer: f64) -> Self {
        let density = n as f64 / length.iter().product::<f64>();
        // a block is about a cube; a particle at its surface has neighbors up to r_list away
        let edge = (BLOCK as f64 / density).cbrt();
        let pi = std::f64::consts::PI;
        let sphere = 4.0 / 3.0 * pi * r_list.powi(3);
        let reached = edge.powi(3) + 6.0 * edge.powi(2) * r_list + 3.0 * pi * edge * r_list.powi(2) + sphere;
        let slots = (1.4 * density * reached).min(n as f64 + BLOCK as f64) as u32 + 2;
        // staged coordinates reach from the center of a block to the farthest neighbor
        let extent = 1.2 * edge + r_list;
        let longest = length.iter().copied().fold(0.0, f64::max);
        // the fastest particle moves half the buffer between two rebuilds, most a quarter of that; sorted particles stay
        // close in memory until they have moved by a fraction of a tile
        let tile = (TILE as f64 / density).cbrt();
        let sort_every = ((0.12 * tile / (0.216 * buffer)) as u32).clamp(1, 16);
        Self {
            slots: slots.next_multiple_of(256).clamp(512, MAX_SLOTS),
            chunks: (1.12 * ((density * sphere).min(n as f64) + 5.0) / 8.0 * n as f64) as usize
                + 32 * n.div_ceil(BLOCK),
            quantum: (extent / 16_777_216.0).max(longest / 2_000_000_000.0),
            sort_every: std::env::var("GALAMOST_SORT_EVERY")
                .ok()
                .and_then(|k| k.parse().ok())
                .filter(|k| *k > 0)
                .unwrap_or(sort_every),
        }
    }
}

/// Buffers of the list and their sizes.
pub struct Staged {
    device: Arc<dyn Device>,
    kernels: Kernels,
    n: usize,
    /// The first block that this device builds; the addresses in `view` are those of block 0.
    first_block: usize,
    view: StagedView,
    /// Bytes that the sort needs; it uses the memory of the masks.
    scratch: usize,
    /// Blocks whose masks fit the memory.
    mask_blocks: usize,
    /// Particles are sorted at every rebuild with a multiple of this number.
    pub sort_every: u32,
    /// With several ranks that share the list: a [`RankListArgs`].
    ranks: Option<Buffer>,
    /// Number of groups of tiles that this device bounds, from that of its first particle on.
    own_groups: usize,
    /// Kept alive for `view`: fixed buffers, and those that grow (halo, chunks, masks).
    _fixed: Vec<Buffer>,
    halo: Buffer,
    chunks: Buffer,
    masks: Buffer,
    statistics: Buffer,
}

/// Returns the source unit of the kernels that build the list.
pub fn unit(precision: Precision) -> SourceUnit {
    let headers = "#include \"galamost/staged_bounds.cuh\"\n#include \"galamost/staged_list.cuh\"\n";
    SourceUnit::new("staged list", headers, precision)
}

/// Returns the number of threads that share a row of a staged list: 2 if a multiprocessor has two blocks of particles at most, because
/// one thread for each row would not fill it. `GALAMOST_TEAM` overrides it.
pub fn team(device: &dyn Device, n: usize) -> u32 {
    let few = n.div_ceil(BLOCK) <= 2 * device.multiprocessors() as usize;
    super::tuned("GALAMOST_TEAM").map_or(if few { 2 } else { 1 }, |team| team.min(2))
}

/// Returns the address that block 0 would have in an array of `bytes` per block that begins with block `first`.
fn of_block_0(address: u64, bytes: usize, first: usize) -> u64 {
    address.wrapping_sub((bytes * first) as u64)
}

/// Returns cells for the sort: number per axis, and bits of the Hilbert curve. A cell holds about two particles. A curve
/// jumps where a row of cubes ends, and blocks at jumps have large halos; so there are as few cubes as possible.
pub fn curve_grid(length: [f64; 3], n: usize) -> ([u32; 3], u32) {
    let edge = (2.0 * length.iter().product::<f64>() / n as f64).cbrt();
    let shortest = length.iter().copied().fold(f64::INFINITY, f64::min);
    let bits = (shortest / edge).log2().round().clamp(1.0, 10.0) as u32;
    let cubes = |l: f64| (l / shortest).round().clamp(1.0, 64.0) as u32;
    (length.map(|l| cubes(l) << bits), bits)
}

impl Staged {
    /// Allocates a list for the particles `own` of `n`, and `scratch` bytes for the sort.
    pub fn new(
        device: &Arc<dyn Device>,
        precision: Precision,
        n: usize,
        own: Range<usize>,
        length: [f64; 3],
        r_list: f64,
        buffer: f64,
        scratch: usize,
    ) -> Result<Self> {
        let module = device.compile(&unit(precision))?;
        let k = |name: &str| device.kernel(module, name);
        let kernels = Kernels {
            bound_tiles: k("bound_tiles")?,
            bound_tops: k("bound_tops")?,
            find_neighbors: k("find_neighbors")?,
            expand_rows: k("expand_rows")?,
            expand_rows_excluding: k("expand_rows_excluding")?,
        };
        let (first_block, n_blocks) = (own.start / BLOCK, own.len().div_ceil(BLOCK));
        let mut fixed = vec![];
        let mut allocate = |bytes: usize| -> Result<u64> {
            let b = Buffer::new(device, bytes)?;
            let address = b.address();
            fixed.push(b);
            Ok(address)
        };
        let mut bounds = |count: usize| -> Result<Bounds> {
            Ok(Bounds { center: allocate(16 * count)?, half: allocate(16 * count)?, count: count as u32, reserved: 0 })
        };
        let (tiles, groups) = (bounds(n.div_ceil(TILE))?, bounds(n.div_ceil(GROUP))?);
        let tops = bounds(n.div_ceil(GROUP * TILE))?;
        let sizes = Sizes::new(n, length, r_list, buffer);
        let view = StagedView {
            blocks: of_block_0(allocate(16 * n_blocks)?, 16, first_block),
            rows: of_block_0(allocate(4 * BLOCK * n_blocks)?, 4 * BLOCK, first_block),
            first_chunk: of_block_0(allocate(4 * BLOCK / 32 * n_blocks)?, 4 * BLOCK / 32, first_block),
            n_blocks: n_blocks as u32,
            tile_capacity: 640,
            quantum: sizes.quantum,
            per_length: 1.0 / sizes.quantum,
            tiles,
            groups,
            tops,
            ..StagedView::default()
        };
        let empty = || Buffer::new(device, 4);
        let mut s = Self {
            device: device.clone(),
            kernels,
            n,
            first_block,
            view,
            scratch,
            mask_blocks: 0,
            sort_every: sizes.sort_every,
            ranks: None,
            own_groups: n.div_ceil(GROUP),
            _fixed: fixed,
            halo: empty()?,
            chunks: empty()?,
            masks: empty()?,
            statistics: Buffer::new(device, 64)?,
        };
        s.view.statistics = s.statistics.address();
        s.set_slots(sizes.slots)?;
        // blocks at the surface of a range are no different, but ranges are not quite equal in density
        s.set_chunks(if own.len() < n {
            (1.1 * sizes.chunks as f64 * own.len() as f64 / n as f64) as usize + 4096
        } else {
            sizes.chunks
        })?;
        Ok(s)
    }

    /// Allocates halos and masks for this many slots of a block.
    fn set_slots(&mut self, slots: u32) -> Result<()> {
        let n_blocks = self.view.n_blocks as usize;
        let of_block = BLOCK * slots as usize / 8;
        let fewest = (n_blocks / 3).clamp(FEWEST_BLOCKS[0], FEWEST_BLOCKS[1]);
        let most = (self.scratch / of_block).max(fewest);
        // about as many in each launch, and as many for each multiprocessor
        let even = n_blocks.div_ceil(n_blocks.div_ceil(most).max(1));
        self.mask_blocks = even.next_multiple_of(4 * self.device.multiprocessors() as usize).min(n_blocks);
        // free the old buffers first: both together may not fit
        (self.halo, self.masks) = (Buffer::new(&self.device, 4)?, Buffer::new(&self.device, 4)?);
        self.halo = Buffer::new(&self.device, 4 * (slots as usize - BLOCK) * n_blocks + 4)?;
        self.masks = Buffer::new(&self.device, (of_block * self.mask_blocks).max(self.scratch))?;
        self.view.slots = slots;
        self.view.halo = of_block_0(self.halo.address(), 4 * (slots as usize - BLOCK), self.first_block);
        self.view.masks = self.masks.address();
        Ok(())
    }

    /// Allocates this many chunks of 8 entries.
    fn set_chunks(&mut self, chunks: usize) -> Result<()> {
        self.chunks = Buffer::new(&self.device, 4)?;
        self.chunks = Buffer::new(&self.device, 16 * chunks)?;
        self.view.chunks = self.chunks.address();
        self.view.chunk_capacity =
            u32::try_from(chunks).map_err(|_| Error::Run("the neighbor list is too long".into()))?;
        Ok(())
    }

    /// Returns the address of memory for the sort.
    pub fn scratch(&self) -> u64 {
        self.masks.address()
    }

    /// Returns the list for kernels.
    pub fn view(&self) -> StagedView {
        self.view
    }

    /// Returns the statistics of the last rebuild; see `StagedView`.
    fn statistics(&self) -> Result<Vec<u32>> {
        Ok(words(&self.statistics.download()?))
    }

    /// Returns the mean and the largest number of neighbors.
    pub fn neighbors(&self) -> Result<(f64, u32)> {
        let s = self.statistics()?;
        let entries = u64::from(s[4]) | u64::from(s[5]) << 32;
        let own = (self.n - self.first_block * BLOCK).min(self.view.n_blocks as usize * BLOCK);
        Ok((entries as f64 / own.max(1) as f64, s[3]))
    }

    /// Makes room for the list that did not fit. Returns a description for the log, or `None` if a block has more
    /// neighbors than a row can address, or too many tiles around it.
    pub fn make_room(&mut self) -> Result<Option<String>> {
        let s = self.statistics()?;
        let (chunks, tiles, slots) = (s[0], s[1], s[2]);
        let mut grown = vec![];
        if tiles > self.view.tile_capacity {
            self.view.tile_capacity = (tiles + tiles / 8).next_multiple_of(64);
            grown.push(format!("{} tiles around a block", self.view.tile_capacity));
        }
        if slots > self.view.slots {
            let wanted = slots.next_multiple_of(256);
            if wanted > MAX_SLOTS {
                return Ok(None);
            }
            self.set_slots(wanted)?;
            grown.push(format!("{wanted} particles around a block"));
        }
        if chunks > self.view.chunk_capacity {
            self.set_chunks(chunks as usize + chunks as usize / 32)?;
            grown
                .push(format!("{:.1} entries per particle", 8.0 * f64::from(self.view.chunk_capacity) / self.n as f64));
        }
        Ok((!grown.is_empty()).then(|| grown.join(", ")))
    }

    /// Lets the ranks of a run bound the tiles of their own particles only. All ranks call it.
    ///
    /// # Errors
    /// Returns the driver's error, or an error if another rank has failed.
    pub fn share(&mut self, rank: &Rank) -> Result<()> {
        let mut args = RankListArgs {
            ranges: rank.ranges(),
            copies: if rank.reads_others() { rank.count() } else { 1 },
            reserved: 0,
            positions: rank.arrays()?.first().map_or([0; MAX_RANKS], |a| a.data),
            tiles: [self.view.tiles; MAX_RANKS],
            groups: [self.view.groups; MAX_RANKS],
        };
        if rank.reads_others() {
            for (of_ranks, own) in [(&mut args.tiles, self.view.tiles), (&mut args.groups, self.view.groups)] {
                let (centers, halves) = (rank.share(own.center)?, rank.share(own.half)?);
                for (b, (center, half)) in of_ranks.iter_mut().zip(centers.into_iter().zip(halves)) {
                    (b.center, b.half) = (center, half);
                }
            }
        } else {
            args.positions = [args.positions[rank.number()]; MAX_RANKS];
        }
        let own = rank.own();
        self.own_groups = own.end.div_ceil(GROUP) - own.start / GROUP;
        self.ranks = Some(Buffer::of_bytes(&self.device, bytes_of(std::slice::from_ref(&args)))?);
        Ok(())
    }

    /// Returns the address of what ranks read of each other and tell each other; 0 if each bounds all tiles.
    pub fn ranks(&self) -> u64 {
        self.ranks.as_ref().map_or(0, Buffer::address)
    }

    fn args(&self, state: &StateView, excluded: Excluded, r_list: f64) -> StagedListArgs {
        StagedListArgs {
            state: *state,
            list: self.view,
            excluded,
            r_list,
            first_block: 0,
            reserved: 0,
            ranks: self.ranks(),
        }
    }

    /// Launches the kernel that bounds tiles and groups. Ranks that read each other's memory must meet after it.
    pub fn bound(&self, state: &StateView) -> Result<()> {
        let args = self.args(state, Excluded::default(), 0.0);
        launch(&*self.device, self.kernels.bound_tiles, self.own_groups * GROUP, GROUP as u32, &args)
    }

    /// Launches the kernel that bounds groups of groups, after [`Self::bound`].
    pub fn bound_tops(&self, state: &StateView) -> Result<()> {
        let args = self.args(state, Excluded::default(), 0.0);
        launch(&*self.device, self.kernels.bound_tops, self.view.tops.count as usize * 32, 128, &args)
    }

    /// Launches the kernels that build the list after [`Self::bound_tops`].
    pub fn build(&self, state: &StateView, excluded: Excluded, r_list: f64) -> Result<()> {
        let (d, k) = (&*self.device, &self.kernels);
        let mut args = self.args(state, excluded, r_list);
        let search = self.view.slots / 32 * SLOT_BYTES + 4 * (TOPS + GROUPS + self.view.tile_capacity);
        let expand = if excluded.excluded_count == 0 { k.expand_rows } else { k.expand_rows_excluding };
        for first in (0..self.view.n_blocks as usize).step_by(self.mask_blocks) {
            args.first_block = (self.first_block + first) as u32;
            let blocks = self.mask_blocks.min(self.view.n_blocks as usize - first) as u32;
            let pointer = [std::ptr::from_ref(&args).cast_mut().cast::<Opaque>()];
            let (grid, block) = (Extent::from(blocks), Extent::from(BLOCK as u32));
            // SAFETY: both kernels take one `StagedListArgs`, whose views describe arrays of this device
            unsafe {
                d.launch(k.find_neighbors, grid, block, search, &pointer)?;
                d.launch(expand, grid, block, self.view.slots.min(COPIED_SLOTS) * BLOCK as u32 / 8, &pointer)?;
            }
        }
        Ok(())
    }
}
