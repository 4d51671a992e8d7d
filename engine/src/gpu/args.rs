//! Kernel arguments, with the layout of their structs in `kernels/galamost/*.cuh`.

use galamost_plugin_api::philox::RandomKey;
use galamost_plugin_api::views::{LinkView, ListView, StateView};

/// `CellGrid`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct CellGrid {
    pub n: [u32; 3],
    pub cells: u32,
    pub reach_x: i32,
    pub whole: [u32; 3],
    pub n_rows: u32,
    pub curve: u32,
    pub rows: u64,
    pub start: u64,
    pub cell_of: u64,
    pub sort_every: u32,
    pub reserved: u32,
}

/// `SortArgs`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SortArgs {
    pub state: StateView,
    pub grid: CellGrid,
    pub count: u64,
    pub arrival: u64,
    pub unordered: u64,
    pub order: u64,
    pub block_sums: u64,
    pub n_blocks: u32,
    pub dimensions: u32,
    pub grid_length: [f64; 3],
}

/// `SortedArrayArgs`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct SortedArrayArgs {
    pub data: u64,
    pub scratch: u64,
    pub words: u32,
    pub reserved: u32,
}

/// `MAX_SORTED_ARRAYS`.
pub const MAX_SORTED_ARRAYS: usize = 16;

/// `MoveArgs`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct MoveArgs {
    pub state: StateView,
    pub grid: CellGrid,
    pub order: u64,
    pub n_arrays: u32,
    pub reserved: u32,
    pub arrays: [SortedArrayArgs; MAX_SORTED_ARRAYS],
}

/// `LinkArgs`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LinkArgs {
    pub state: StateView,
    pub links: LinkView,
    pub tag_count: u64,
    pub tag_words: u64,
}

/// `PatchArgs`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PatchArgs {
    pub state: StateView,
    pub links: LinkView,
    pub count: u64,
    pub words: u64,
    pub patch: u64,
    pub rows: u64,
}

/// `PatchExclusionsArgs`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PatchExclusionsArgs {
    pub state: StateView,
    pub list: ListView,
    pub count: u64,
    pub words: u64,
    pub patch: u64,
    pub rows: u32,
    pub capacity: u32,
}

/// `ListArgs`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ListArgs {
    pub state: StateView,
    pub grid: CellGrid,
    pub list: ListView,
    pub excluded: Excluded,
}

/// `MemberListArgs`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct MemberListArgs {
    pub list: ListArgs,
    pub first: u64,
    pub end: u64,
    pub members: u64,
}

/// `Excluded`: pairs that are no neighbors.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Excluded {
    pub excluded_count: u64,
    pub excluded: u64,
    pub molecule: u64,
    pub other: u32,
    pub excluded_capacity: u32,
}

/// `Bounds`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Bounds {
    pub center: u64,
    pub half: u64,
    pub count: u32,
    pub reserved: u32,
}

/// `StagedView`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct StagedView {
    pub blocks: u64,
    pub halo: u64,
    pub rows: u64,
    pub first_chunk: u64,
    pub chunks: u64,
    pub statistics: u64,
    pub n_blocks: u32,
    pub slots: u32,
    pub chunk_capacity: u32,
    pub tile_capacity: u32,
    pub quantum: f64,
    pub per_length: f64,
    pub tiles: Bounds,
    pub groups: Bounds,
    pub tops: Bounds,
    pub masks: u64,
}

/// `StagedListArgs`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct StagedListArgs {
    pub state: StateView,
    pub list: StagedView,
    pub excluded: Excluded,
    pub r_list: f64,
    pub first_block: u32,
    pub reserved: u32,
}

/// `PairTerm`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PairTerm {
    pub rows: u64,
    pub cutoff_rows: u64,
    pub key: RandomKey,
    pub first_varying: u32,
    pub reserved: u32,
}

/// Largest number of pair components in one fused loop.
pub const MAX_PAIR_TERMS: usize = 8;

/// `PairArgs`; a kernel with fewer terms reads only the first of them.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PairArgs {
    pub state: StateView,
    pub list: ListView,
    pub partial: u64,
    pub counter: u64,
    pub sums: u64,
    pub terms: [PairTerm; MAX_PAIR_TERMS],
}

/// `StagedPairArgs`; see [`PairArgs`].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct StagedPairArgs {
    pub list: StagedView,
    pub cutoff2: f32,
    pub reserved: u32,
    pub pair: PairArgs,
}

/// `BondArgs`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BondArgs {
    pub state: StateView,
    pub links: LinkView,
    pub rows: u64,
    pub first_varying: u32,
    pub component: u32,
    pub partial: u64,
    pub counter: u64,
    pub sums: u64,
}

/// `PhaseArgs`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PhaseArgs {
    pub state: StateView,
    pub integrator: u64,
    pub extra: u64,
    pub key: RandomKey,
    pub component: u32,
    pub group: u32,
    pub first_varying: u32,
    pub reserved: u32,
    pub partial: u64,
    pub counter: u64,
    pub sums: u64,
    pub carried: u64,
    pub carried_width: u32,
    pub reserved1: u32,
}

/// Returns C++ assertions that the sizes of these structs agree between Rust and C++.
pub fn size_checks(header: &str) -> String {
    let sizes: &[(&str, &str, usize)] = &[
        ("rebuild.cuh", "SortArgs", size_of::<SortArgs>()),
        ("rebuild.cuh", "MoveArgs", size_of::<MoveArgs>()),
        ("rebuild.cuh", "LinkArgs", size_of::<LinkArgs>()),
        ("rebuild.cuh", "Excluded", size_of::<Excluded>()),
        ("rebuild.cuh", "ListArgs", size_of::<ListArgs>()),
        ("rebuild.cuh", "MemberListArgs", size_of::<MemberListArgs>()),
        ("patch.cuh", "PatchArgs", size_of::<PatchArgs>()),
        ("patch.cuh", "PatchExclusionsArgs", size_of::<PatchExclusionsArgs>()),
        ("staged_list.cuh", "StagedView", size_of::<StagedView>()),
        ("staged_list.cuh", "StagedListArgs", size_of::<StagedListArgs>()),
        ("pair.cuh", "PairTerm", size_of::<PairTerm>()),
        ("bonded.cuh", "BondArgs", size_of::<BondArgs>()),
        ("integrate.cuh", "PhaseArgs", size_of::<PhaseArgs>()),
    ];
    let line = |(_, name, size): &(&str, &str, usize)| {
        format!("static_assert(sizeof({name}) == {size}, \"{name} differs between Rust and C++\");\n")
    };
    sizes.iter().filter(|(h, ..)| *h == header).map(line).collect()
}
