//! Arguments of loops that add the virial for barostats, and of the kernel that takes it.

use galamost_plugin_api::DeviceStruct;

/// Words of the virial for barostats of each rank: four digits of six numbers; see `virial.cuh`.
pub const RANK_VIRIAL_WORDS: u32 = 24;

/// `VirialArgs`: where loops over pairs and links add the virial for barostats.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, DeviceStruct)]
#[device(header)]
pub struct VirialArgs {
    /// Words of this rank; null without a barostat.
    #[device(cxx = "u64*")]
    pub words: u64,
    /// The scale of the digits, a power of two.
    pub scale: f32,
    /// Always 0.
    pub reserved: u32,
}

/// `TotalVirialArgs`: the sum of the virials of all components.
#[repr(C)]
#[derive(Clone, Copy, Debug, DeviceStruct)]
#[device(header)]
pub struct TotalVirialArgs {
    #[device(cxx = "Globals*")]
    pub globals: u64,
    pub virial: VirialArgs,
    /// Words of all ranks.
    #[device(cxx = "const u64*")]
    pub words: u64,
    /// Components that do not add to the words.
    #[device(cxx = "const Sums*")]
    pub others: u64,
    pub ranks: u32,
    pub n_others: u32,
}
