//! Kernel arguments of the engine, and the generated header `galamost/args.cuh` that defines them in CUDA C++.

mod messages;
mod persistent;
mod ranks;
mod virial;

pub use messages::*;
pub use persistent::*;
pub use ranks::*;
pub use virial::*;

use galamost_plugin_api::DeviceStruct;
use galamost_plugin_api::device::{CxxStruct as _, constants};
use galamost_plugin_api::philox::RandomKey;
use galamost_plugin_api::views::{LinkView, ListView, StateView};

/// `CellGrid`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, DeviceStruct)]
#[device(header)]
pub struct CellGrid {
    pub n: [u32; 3],
    pub cells: u32,
    /// Range of neighboring cells along x; whole_x, whole_y, whole_z: all cells are neighbors.
    pub reach_x: i32,
    pub whole_x: u32,
    pub whole_y: u32,
    pub whole_z: u32,
    /// Offsets (y, z) of rows of cells.
    pub n_rows: u32,
    /// 0: cells are numbered with x fastest; else along Hilbert curves through cubes of 2^curve cells per axis.
    pub curve: u32,
    #[device(cxx = "const int2*")]
    pub rows: u64,
    /// First particle of each cell, cells + 1 entries.
    #[device(cxx = "u32*")]
    pub start: u64,
    /// Cell of each particle, in the new order after the sort.
    #[device(cxx = "u32*")]
    pub cell_of: u64,
    /// Particles are sorted at every rebuild whose number is a multiple; 0: at none.
    pub sort_every: u32,
    pub reserved: u32,
}

/// `SortArgs`.
#[repr(C)]
#[derive(Clone, Copy, Debug, DeviceStruct)]
#[device(header)]
pub struct SortArgs {
    pub state: StateView,
    pub grid: CellGrid,
    /// Number of particles in each cell.
    #[device(cxx = "u32*")]
    pub count: u64,
    /// Rank of each particle among those of its cell, in order of arrival.
    #[device(cxx = "u32*")]
    pub arrival: u64,
    /// Unordered: particles of each cell in order of arrival; order: `order[new]` = old.
    #[device(cxx = "u32*")]
    pub unordered: u64,
    #[device(cxx = "u32*")]
    pub order: u64,
    /// Sums of blocks of cells.
    #[device(cxx = "u32*")]
    pub block_sums: u64,
    pub n_blocks: u32,
    pub dimensions: u32,
    /// The grid is valid for boxes with at least these heights.
    pub grid_height: [f64; 3],
    /// The limit of [`galamost_plugin_api::views::is_skewed()`], beyond which the host must replace the box; 0 for none.
    pub most_tilt: f64,
    /// As in [`StagedListArgs`]; then a rank orders its own particles only.
    #[device(cxx = "const RankListArgs*")]
    pub ranks: u64,
    /// Arrays are distributed: a rank counts its own particles only.
    pub distributed: u32,
    /// The cells whose counts this rank sets to 0 afterwards.
    pub first_cell: u32,
    pub end_cell: u32,
    /// A kernel turns the sums of blocks into the start of each block.
    pub scanned: u32,
}

/// `SortedArrayArgs`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, DeviceStruct)]
#[device(header)]
pub struct SortedArrayArgs {
    #[device(cxx = "u32*")]
    pub data: u64,
    #[device(cxx = "u32*")]
    pub scratch: u64,
    pub words: u32,
    pub reserved: u32,
}

/// `MAX_SORTED_ARRAYS`.
pub const MAX_SORTED_ARRAYS: usize = 16;

/// `MoveArgs`.
#[repr(C)]
#[derive(Clone, Copy, Debug, DeviceStruct)]
#[device(header)]
pub struct MoveArgs {
    pub state: StateView,
    pub grid: CellGrid,
    #[device(cxx = "const u32*")]
    pub order: u64,
    pub n_arrays: u32,
    pub reserved: u32,
    pub arrays: [SortedArrayArgs; MAX_SORTED_ARRAYS],
}

/// `LinkTable`: links by index, and what they are made from: number and words of the links of each tag.
#[repr(C)]
#[derive(Clone, Copy, Debug, DeviceStruct)]
#[device(header)]
pub struct LinkTable {
    pub links: LinkView,
    #[device(cxx = "const u32*")]
    pub tag_count: u64,
    #[device(cxx = "const u32*")]
    pub tag_words: u64,
}

/// `LinkArgs`.
#[repr(C)]
#[derive(Clone, Copy, Debug, DeviceStruct)]
#[device(header)]
pub struct LinkArgs {
    pub state: StateView,
    pub table: LinkTable,
    /// Indices of particles change at rebuilds with a multiple of this number only.
    pub sort_every: u32,
    pub reserved: u32,
}

/// `PatchArgs`.
#[repr(C)]
#[derive(Clone, Copy, Debug, DeviceStruct)]
#[device(header)]
pub struct PatchArgs {
    pub state: StateView,
    pub links: LinkView,
    #[device(cxx = "u32*")]
    pub count: u64,
    #[device(cxx = "u32*")]
    pub words: u64,
    #[device(cxx = "const u32*")]
    pub patch: u64,
    pub rows: u64,
}

/// `PatchExclusionsArgs`.
#[repr(C)]
#[derive(Clone, Copy, Debug, DeviceStruct)]
#[device(header)]
pub struct PatchExclusionsArgs {
    pub state: StateView,
    pub list: ListView,
    #[device(cxx = "u32*")]
    pub count: u64,
    #[device(cxx = "u32*")]
    pub words: u64,
    #[device(cxx = "const u32*")]
    pub patch: u64,
    pub rows: u32,
    pub capacity: u32,
}

/// `ListArgs`.
#[repr(C)]
#[derive(Clone, Copy, Debug, DeviceStruct)]
#[device(header)]
pub struct ListArgs {
    pub state: StateView,
    pub grid: CellGrid,
    pub list: ListView,
    pub excluded: Excluded,
}

/// `MemberListArgs`.
#[repr(C)]
#[derive(Clone, Copy, Debug, DeviceStruct)]
#[device(header)]
pub struct MemberListArgs {
    pub list: ListArgs,
    /// By tag: begin and end of its molecule in `members`, which holds the tags of one molecule after the other.
    #[device(cxx = "const u32*")]
    pub first: u64,
    #[device(cxx = "const u32*")]
    pub end: u64,
    #[device(cxx = "const u32*")]
    pub members: u64,
}

/// `Excluded`: pairs that are no neighbors. Excluded tags are in rows of `excluded_capacity` entries; `excluded_count` is
/// null without exclusions. `molecule` is the molecule of each tag, or null. With `molecule`, only pairs within a molecule
/// are neighbors or, if `other` is set, only pairs of different molecules.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, DeviceStruct)]
#[device(header)]
pub struct Excluded {
    #[device(cxx = "const u32*")]
    pub excluded_count: u64,
    #[device(cxx = "const u32*")]
    pub excluded: u64,
    #[device(cxx = "const u32*")]
    pub molecule: u64,
    pub other: u32,
    pub excluded_capacity: u32,
}

/// Bounding boxes of consecutive particles: centers in units of the box, and half lengths.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, DeviceStruct)]
#[device(header)]
pub struct Bounds {
    #[device(cxx = "int4*")]
    pub center: u64,
    #[device(cxx = "float4*")]
    pub half: u64,
    pub count: u32,
    pub reserved: u32,
}

/// The staged list; see `kernels/galamost/staged.cuh`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, DeviceStruct)]
#[device(header)]
pub struct StagedView {
    /// x, y, z: center of each block. w: number of slots in use (own particles included), `WIDE` and `BOUNDARY`.
    #[device(cxx = "int4*")]
    pub blocks: u64,
    /// Particle of each slot from `BLOCK` on, in ascending order: `slots` - `BLOCK` entries for each block.
    #[device(cxx = "u32*")]
    pub halo: u64,
    /// Particle of the block and length << 16 for each row, in descending order of length.
    #[device(cxx = "u32*")]
    pub rows: u64,
    /// First chunk of each warp of rows.
    #[device(cxx = "u32*")]
    pub first_chunk: u64,
    /// 8 entries of 32 rows: entry = 16 * slot.
    #[device(cxx = "uint4*")]
    pub chunks: u64,
    /// 0: chunks in use, 1: tiles of a block, 2: slots of a block, 3: longest row (maxima of the last rebuild), 4 and 5:
    /// number of entries.
    #[device(cxx = "u32*")]
    pub statistics: u64,
    pub n_blocks: u32,
    /// Slots of a block, a multiple of 256.
    pub slots: u32,
    pub chunk_capacity: u32,
    pub tile_capacity: u32,
    /// Unit of staged coordinates, and its inverse.
    pub quantum: f64,
    pub per_length: f64,
    pub tiles: Bounds,
    pub groups: Bounds,
    pub tops: Bounds,
    /// Bit 8 * (slot / 8 % 32) of word (slot / 256 * 8 + slot % 8): the slot is a neighbor of the row. Four words of a row
    /// are adjacent; the rows of a block follow each other.
    #[device(cxx = "uint4*")]
    pub masks: u64,
}

/// `StagedListArgs`.
#[repr(C)]
#[derive(Clone, Copy, Debug, DeviceStruct)]
#[device(header)]
pub struct StagedListArgs {
    pub state: StateView,
    pub list: StagedView,
    pub excluded: Excluded,
    pub r_list: f64,
    pub first_block: u32,
    pub reserved: u32,
    /// What a rank reads of others and tells them; null if each bounds all tiles.
    #[device(cxx = "const RankListArgs*")]
    pub ranks: u64,
}

/// `PairTerm`.
#[repr(C)]
#[derive(Clone, Copy, Debug, DeviceStruct)]
#[device(header)]
pub struct PairTerm {
    #[device(cxx = "const void*")]
    pub rows: u64,
    #[device(cxx = "const CutoffRow<real>*")]
    pub cutoff_rows: u64,
    pub key: RandomKey,
    pub first_varying: u32,
    pub reserved: u32,
}

/// Largest number of pair components in one fused loop.
pub const MAX_PAIR_TERMS: usize = 8;

/// `PairArgs`; a kernel with fewer terms uses only the first of them.
#[repr(C)]
#[derive(Clone, Copy, Debug, DeviceStruct)]
#[device(header)]
pub struct PairArgs {
    pub state: StateView,
    pub list: ListView,
    #[device(cxx = "double*")]
    pub partial: u64,
    #[device(cxx = "u32*")]
    pub counter: u64,
    /// Energy of each component; the first entry holds the virial of all components.
    #[device(cxx = "Sums*")]
    pub sums: u64,
    pub virial: VirialArgs,
    pub terms: [PairTerm; MAX_PAIR_TERMS],
}

/// Number of weights in [`SpecialArgs`].
pub const SPECIAL_WEIGHTS: usize = 3 * MAX_PAIR_TERMS;

/// `SpecialArgs`; see [`PairArgs`].
#[repr(C)]
#[derive(Clone, Copy, Debug, DeviceStruct)]
#[device(header)]
pub struct SpecialArgs {
    pub pair: PairArgs,
    /// The pairs in the form of bonds.
    pub links: LinkView,
    /// Three for each component: those of the types of `links`.
    pub weights: [f64; SPECIAL_WEIGHTS],
}

/// `StagedPairArgs`; see [`PairArgs`].
#[repr(C)]
#[derive(Clone, Copy, Debug, DeviceStruct)]
#[device(header)]
pub struct StagedPairArgs {
    pub list: StagedView,
    /// The largest cutoff, squared.
    pub cutoff2: f32,
    pub reserved: u32,
    /// The barrier in the loop, if it `waits` (`ranks_gate.cuh`). Interior blocks note when they end in its epochs.
    pub gate: RankBarrierArgs,
    /// The number of boundary blocks and these, and what this rank has requested with its last message, if ranks send messages.
    #[device(cxx = "const u32*")]
    pub boundary: u64,
    #[device(cxx = "const u32*")]
    pub requests: u64,
    pub pair: PairArgs,
}

/// `BondArgs`.
#[repr(C)]
#[derive(Clone, Copy, Debug, DeviceStruct)]
#[device(header)]
pub struct BondArgs {
    pub state: StateView,
    pub links: LinkView,
    #[device(cxx = "const void*")]
    pub rows: u64,
    pub first_varying: u32,
    pub component: u32,
    #[device(cxx = "double*")]
    pub partial: u64,
    #[device(cxx = "u32*")]
    pub counter: u64,
    #[device(cxx = "Sums*")]
    pub sums: u64,
    pub virial: VirialArgs,
}

/// `PhaseArgs`.
#[repr(C)]
#[derive(Clone, Copy, Debug, DeviceStruct)]
#[device(header)]
pub struct PhaseArgs {
    pub state: StateView,
    #[device(cxx = "void*")]
    pub integrator: u64,
    #[device(cxx = "void*")]
    pub extra: u64,
    pub key: RandomKey,
    pub component: u32,
    pub group: u32,
    pub first_varying: u32,
    pub reserved: u32,
    #[device(cxx = "double*")]
    pub partial: u64,
    #[device(cxx = "u32*")]
    pub counter: u64,
    /// Sums of the last particle phase that returned any, for scalar functions.
    #[device(cxx = "double*")]
    pub sums: u64,
    /// For integrators with `corrects`: the velocities that another integrator carries through the step, in the first three numbers of each carried_width; null if there are none.
    #[device(cxx = "real*")]
    pub carried: u64,
    pub carried_width: u32,
    pub reserved1: u32,
}

/// Threads of a block that scans cells, and cells of each.
pub const SCAN_BLOCK: u32 = 256;
pub const SCAN_ITEMS: u32 = 8;
/// Particles whose rows of the neighbor list one warp builds, and warps per block.
pub const TILE: u32 = 4;
pub const TILE_WARPS: u32 = 4;
/// Particles of a block of the staged list; one thread handles one row.
pub const BLOCK: u32 = 256;
/// Particles of a tile, and tiles in a group or groups in a group of groups.
pub const LEVEL: u32 = 32;
/// Bytes of the half-precision coordinates of 32 slots, with padding against bank conflicts.
pub const SLOT_BYTES: u32 = 400;
/// Slots whose mask words `expand_rows` copies to shared memory. The few words of later slots are read where they are, so that blocks
/// with a larger halo than most do not need more of that memory.
pub const COPIED_SLOTS: u32 = 2048;
/// Groups of groups and groups around a block that the search can hold.
pub const TOPS: u32 = 128;
pub const GROUPS: u32 = 256;
/// Sums of an integrator's phase are taken over groups of this many particles, independent of the block size. It is the
/// block size of the kernels of single steps.
pub const SUM_THREADS: u32 = 256;

/// Generates `galamost/args.cuh`.
pub fn args_header() -> String {
    let structs = [
        RankRanges::text(),
        RankBarrierArgs::text(),
        RankPhaseArgs::text(),
        Bounds::text(),
        RankListArgs::text(),
        CellGrid::text(),
        SortArgs::text(),
        SortedArrayArgs::text(),
        MoveArgs::text(),
        LinkTable::text(),
        LinkArgs::text(),
        Excluded::text(),
        ListArgs::text(),
        MemberListArgs::text(),
        PatchArgs::text(),
        PatchExclusionsArgs::text(),
        StagedView::text(),
        StagedListArgs::text(),
        VirialArgs::text(),
        TotalVirialArgs::text(),
        PairTerm::text(),
        PairArgs::text(),
        SpecialArgs::text(),
        StagedPairArgs::text(),
        BondArgs::text(),
        GhostField::text(),
        PhaseArgs::text(),
        BarrierArgs::text(),
        StepsControl::text(),
        RebuildControl::text(),
        RebuildArgs::text(),
        PullArgs::text(),
        AllReduceArgs::text(),
        GhostArgs::text(),
        WantedArgs::text(),
        GhostPushArgs::text(),
        RankArray::text(),
        RankMoveArgs::text(),
        MessageField::text(),
        MessageHead::text(),
        MessageArgs::text(),
        ElementLists::text(),
        MarkedArgs::text(),
        NearTilesArgs::text(),
        ProcessSortArgs::text(),
    ];
    let structs: String = structs.iter().map(|s| (s.text)()).collect();
    let constants = constants(&[
        ("SCAN_BLOCK", SCAN_BLOCK),
        ("SCAN_ITEMS", SCAN_ITEMS),
        ("TILE", TILE),
        ("TILE_WARPS", TILE_WARPS),
        ("SUM_THREADS", SUM_THREADS),
        ("RANK_LIMIT", RANK_LIMIT),
        ("MOST_COPIERS", MOST_COPIERS),
        ("LINK_TABLES", LINK_TABLES as u32),
        ("BLOCK", BLOCK),
        ("LEVEL", LEVEL),
        ("SLOT_BYTES", SLOT_BYTES),
        ("COPIED_SLOTS", COPIED_SLOTS),
        ("TOPS", TOPS),
        ("GROUPS", GROUPS),
        ("MAX_RANKS", MAX_RANKS as u32),
        ("ALL_RANKS", ALL_RANKS),
        ("RANK_VIRIAL_WORDS", RANK_VIRIAL_WORDS),
    ]) + &constants(&MESSAGE_CONSTANTS);
    format!(
        "// Generated from the Rust definitions.\n#pragma once\n#include \"galamost/api.cuh\"\n\n{constants}{structs}"
    )
}
