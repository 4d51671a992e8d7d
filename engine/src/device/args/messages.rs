//! Arguments of the kernels that pack and unpack messages between ranks (`messages.cuh`).

use super::MAX_GHOST_FIELDS;
use galamost_plugin_api::DeviceStruct;

/// `MessageField`: an array of which a record has the words of a particle.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, DeviceStruct)]
#[device(header)]
pub struct MessageField {
    #[device(cxx = "u32*")]
    pub data: u64,
    /// Words per particle.
    pub words: u32,
    pub reserved: u32,
}

/// `MessageArgs`.
#[repr(C)]
#[derive(Clone, Copy, Debug, DeviceStruct)]
#[device(header)]
pub struct MessageArgs {
    /// The particle of each record.
    #[device(cxx = "const u32*")]
    pub particles: u64,
    #[device(cxx = "u32*")]
    pub records: u64,
    /// Number of records.
    pub n: u32,
    pub record_words: u32,
    pub n_fields: u32,
    pub reserved: u32,
    pub fields: [MessageField; MAX_GHOST_FIELDS],
}
