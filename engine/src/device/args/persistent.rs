//! Arguments and state of persistent kernels, whose blocks wait for each other.

use super::{LinkTable, MAX_SORTED_ARRAYS, MemberListArgs, SortArgs, SortedArrayArgs};
use galamost_plugin_api::DeviceStruct;

/// `BarrierArgs`: the grid barriers of a persistent kernel, as `BarrierWord`s.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, DeviceStruct)]
#[device(header)]
pub struct BarrierArgs {
    /// Arrivals so far.
    pub arrived: u64,
    /// Value released after the last barrier action.
    pub released: u64,
    /// Value at the end of the last launch.
    pub previous: u64,
}

/// State of the kernel that does many steps, kept between launches.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, DeviceStruct)]
#[device(header)]
pub struct StepsControl {
    /// Time steps still to do; 0 before the first of them.
    pub remaining: u32,
    /// Nonzero if the current step has already moved its particles.
    pub moved: u32,
    pub barrier: BarrierArgs,
    /// Time steps to do.
    pub requested: u32,
    /// Nonzero if they are done: later launches return at once.
    pub done: u32,
}

/// State of the two kernels of a rebuild, kept between launches.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, DeviceStruct)]
#[device(header)]
pub struct RebuildControl {
    pub barrier: BarrierArgs,
    /// Not 0 if the particles have just been sorted: then the list is built.
    pub sorted: u32,
    /// Blocks that have ended.
    pub ended: u32,
}

/// Largest number of threads that find the new index of a particle together and copy its arrays.
pub const MOST_COPIERS: u32 = 8;

/// Number of tables of links, the last of which is that of special pairs.
pub const LINK_TABLES: usize = 5;

/// `RebuildArgs`.
#[repr(C)]
#[derive(Clone, Copy, Debug, DeviceStruct)]
#[device(header)]
pub struct RebuildArgs {
    pub sort: SortArgs,
    /// The list. Positions, tags and cells are the sorted copies. `members` is null if the list is not one of molecules.
    pub list: MemberListArgs,
    pub links: [LinkTable; LINK_TABLES],
    pub arrays: [SortedArrayArgs; MAX_SORTED_ARRAYS],
    #[device(cxx = "RebuildControl*")]
    pub control: u64,
    pub n_links: u32,
    pub n_arrays: u32,
    /// Not 0: the list is rebuilt even if the globals do not request it.
    pub always: u32,
    /// Always 0.
    pub reserved: u32,
}
