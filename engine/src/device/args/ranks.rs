//! Arguments of the kernels of runs on several GPUs (`ranks.cuh`).

use super::{Bounds, CellGrid, MAX_SORTED_ARRAYS, StagedView};
use galamost_plugin_api::DeviceStruct;
pub use galamost_plugin_api::services::MAX_RANKS;
use galamost_plugin_api::views::{LinkView, ListView, StateView};

/// Read from every other rank.
pub const ALL_RANKS: u32 = u32::MAX;

/// `RankRanges`: the particles of each rank.
#[repr(C)]
#[derive(Clone, Copy, Debug, DeviceStruct)]
#[device(header)]
pub struct RankRanges {
    pub rank: u32,
    pub count: u32,
    /// First particle of each rank, and the number of particles.
    pub begin: [u32; MAX_RANKS + 2],
}

/// Seconds after which a rank that has not arrived at a barrier is lost.
pub const RANK_LIMIT: u32 = 30;

/// `RankBarrierArgs`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, DeviceStruct)]
#[device(header)]
pub struct RankBarrierArgs {
    #[device(cxx = "Globals*")]
    pub globals: u64,
    /// Epochs so far, releases of ghosts so far, nanoseconds waited, blocks of kernels that have written into the memory of others,
    /// and whether a rank had halted at the last epoch. With messages: time of the last message, and of the last
    /// interior block of the pair loop after it.
    #[device(cxx = "u64*")]
    pub epochs: u64,
    /// Counts the blocks that have ended.
    #[device(cxx = "u32*")]
    pub counter: u64,
    pub rank: u32,
    pub ranks: u32,
    /// The barrier is in this kernel; otherwise the ranks have met on the host.
    pub waits: u32,
    pub reserved: u32,
    /// Address of each rank's mailbox.
    pub mailboxes: [u64; MAX_RANKS],
}

/// `RankPhaseArgs`: arguments of the kernel that adds the sums of a phase, with several ranks.
#[repr(C)]
#[derive(Clone, Copy, Debug, DeviceStruct)]
#[device(header)]
pub struct RankPhaseArgs {
    pub barrier: RankBarrierArgs,
    pub ranges: RankRanges,
    /// Address of the sums of groups of particles in each rank; a rank has the sums of the particles that it propagates.
    pub partial: [u64; MAX_RANKS],
}

/// `PullArgs`.
#[repr(C)]
#[derive(Clone, Copy, Debug, DeviceStruct)]
#[device(header)]
pub struct PullArgs {
    pub barrier: RankBarrierArgs,
    pub ranges: RankRanges,
    /// The rank to read from, or `ALL_RANKS`.
    pub from: u32,
    /// Particles that an element belongs to.
    pub particles: u32,
    /// Words of an element; for `pull_words` of the whole array.
    pub words: u64,
    /// Address of the array in each rank.
    pub data: [u64; MAX_RANKS],
}

/// `AllReduceArgs`: a sum of integers over all ranks.
#[repr(C)]
#[derive(Clone, Copy, Debug, DeviceStruct)]
#[device(header)]
pub struct AllReduceArgs {
    pub barrier: RankBarrierArgs,
    /// The values of each rank.
    pub values: [u64; MAX_RANKS],
    #[device(cxx = "u64*")]
    pub total: u64,
    pub n: u64,
    /// Null, or a number that is 0 if nothing is to be done.
    #[device(cxx = "const u32*")]
    pub when: u64,
}

/// `GhostArgs`; of `list`, `staged` and `links`, a kernel uses one.
#[repr(C)]
#[derive(Clone, Copy, Debug, DeviceStruct)]
#[device(header)]
pub struct GhostArgs {
    pub state: StateView,
    pub list: ListView,
    pub staged: StagedView,
    pub links: LinkView,
    /// A bit for each particle.
    #[device(cxx = "u32*")]
    pub marks: u64,
    pub ranges: RankRanges,
    /// Address in each rank of the bytes that mark ghosts: for each rank that has ghosts, one for each particle of the owner.
    pub wanted: [u64; MAX_RANKS],
    /// Groups of particles that a rank must know together: first members and the end, tags of the members, number of groups.
    #[device(cxx = "const u32*")]
    pub group_starts: u64,
    #[device(cxx = "const u32*")]
    pub group_tags: u64,
    pub n_groups: u32,
    /// Padding; 0.
    pub reserved: u32,
    /// The number of boundary blocks of the staged list, and then these, if it is not null.
    #[device(cxx = "u32*")]
    pub boundary: u64,
}

/// `WantedArgs`.
#[repr(C)]
#[derive(Clone, Copy, Debug, DeviceStruct)]
#[device(header)]
pub struct WantedArgs {
    pub barrier: RankBarrierArgs,
    pub ranges: RankRanges,
    #[device(cxx = "const unsigned char*")]
    pub wanted: u64,
    #[device(cxx = "u32*")]
    pub particles: u64,
    #[device(cxx = "u32*")]
    pub ranks: u64,
    #[device(cxx = "u32*")]
    pub count: u64,
}

/// Arrays whose values of ghosts one kernel exchanges; in every step positions, velocities, orientations.
pub const MAX_GHOST_FIELDS: usize = 6;

/// `GhostField`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, DeviceStruct)]
#[device(header)]
pub struct GhostField {
    /// Words per particle.
    pub words: u32,
    pub reserved: u32,
    /// Address in each rank.
    pub data: [u64; MAX_RANKS],
}

/// `GhostPushArgs`.
#[repr(C)]
#[derive(Clone, Copy, Debug, DeviceStruct)]
#[device(header)]
pub struct GhostPushArgs {
    pub barrier: RankBarrierArgs,
    pub ranges: RankRanges,
    /// Own particles that are ghosts of other ranks, and a bit for each of these.
    #[device(cxx = "const u32*")]
    pub particles: u64,
    #[device(cxx = "const u32*")]
    pub to: u64,
    #[device(cxx = "const u32*")]
    pub count: u64,
    pub n_fields: u32,
    /// This is the end of a rebuild.
    pub ends_rebuild: u32,
    /// Ranks have released their ghosts, and have not met since.
    pub released: u32,
    pub reserved: u32,
    pub fields: [GhostField; MAX_GHOST_FIELDS],
}

/// `RankListArgs`: what ranks read of each other, and tell each other, for a staged list; in device memory.
#[repr(C)]
#[derive(Clone, Copy, Debug, DeviceStruct)]
#[device(header)]
pub struct RankListArgs {
    pub ranges: RankRanges,
    /// In how many arrays a rank stores the boxes of its tiles and groups: those of all ranks, or only its own.
    pub copies: u32,
    pub reserved: u32,
    /// Address of the positions in each rank.
    pub positions: [u64; MAX_RANKS],
    /// Boxes of the tiles and of their groups, in each rank.
    pub tiles: [Bounds; MAX_RANKS],
    pub groups: [Bounds; MAX_RANKS],
}

/// `RankArray`: an array that is sorted with the particles.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, DeviceStruct)]
#[device(header)]
pub struct RankArray {
    pub scratch: u64,
    pub words: u32,
    /// Every rank has the values of all particles.
    pub everywhere: u32,
    /// Address in each rank.
    pub data: [u64; MAX_RANKS],
}

/// `RankMoveArgs`; see [`super::MoveArgs`].
#[repr(C)]
#[derive(Clone, Copy, Debug, DeviceStruct)]
#[device(header)]
pub struct RankMoveArgs {
    pub barrier: RankBarrierArgs,
    pub state: StateView,
    pub grid: CellGrid,
    pub ranges: RankRanges,
    #[device(cxx = "const u32*")]
    pub order: u64,
    /// A bit for each particle, with ranks in several processes: it becomes one of this rank.
    #[device(cxx = "u32*")]
    pub marks: u64,
    pub n_arrays: u32,
    /// Arrays are distributed: a rank moves its own particles only.
    pub distributed: u32,
    /// The list is staged and ranks share it: a rank moves its own particles only, and writes arrays that all ranks have complete
    /// into the memory of all.
    pub shares: u32,
    /// With both: the new places of tags are needed.
    pub indexes_tags: u32,
    pub arrays: [RankArray; MAX_SORTED_ARRAYS],
}
