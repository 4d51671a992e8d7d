//! Arguments of the kernels that pack and unpack messages between ranks (`messages.cuh`).

use super::{MAX_GHOST_FIELDS, MAX_RANKS, RankRanges};
use galamost_plugin_api::DeviceStruct;

/// The value of `halt` in all ranks while they wait for the host, which launches the rebuild that one of them requests.
pub const PAUSED: u32 = 2;

/// Words before the records of a rank.
pub const HEAD_WORDS: u32 = 4;

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

/// `MessageHead`: what a rank requests from the others with each message.
#[repr(C)]
#[derive(Clone, Copy, Debug, DeviceStruct)]
#[device(header)]
pub struct MessageHead {
    #[device(cxx = "Globals*")]
    pub globals: u64,
    /// As those of `RankBarrierArgs`; the last one is the time at which this rank has sent a message.
    #[device(cxx = "u64*")]
    pub epochs: u64,
    /// A word for each rank: what it requests.
    #[device(cxx = "u32*")]
    pub requests: u64,
    pub rank: u32,
    pub ranks: u32,
    /// Set if all ranks pause where one of them requests a rebuild.
    pub pauses: u32,
    pub reserved: u32,
}

/// `MessageArgs`.
#[repr(C)]
#[derive(Clone, Copy, Debug, DeviceStruct)]
#[device(header)]
pub struct MessageArgs {
    pub head: MessageHead,
    /// The particle of each record, rank by rank.
    #[device(cxx = "const u32*")]
    pub particles: u64,
    /// For each rank, including this one, [`HEAD_WORDS`] words, the first of which says what is requested, then its records.
    #[device(cxx = "u32*")]
    pub records: u64,
    pub record_words: u32,
    pub n_fields: u32,
    /// Number of the first record of each rank, and the number of records.
    pub begin: [u32; MAX_RANKS + 2],
    pub fields: [MessageField; MAX_GHOST_FIELDS],
}

/// `MarkedArgs`: lists the marked particles by the rank that owns them.
#[repr(C)]
#[derive(Clone, Copy, Debug, DeviceStruct)]
#[device(header)]
pub struct MarkedArgs {
    /// A bit for each particle.
    #[device(cxx = "const u32*")]
    pub marks: u64,
    /// A word for each rank: the number of its particles that are marked.
    #[device(cxx = "u32*")]
    pub counts: u64,
    /// The particles; none to count them only.
    #[device(cxx = "u32*")]
    pub list: u64,
    pub n_words: u32,
    pub reserved: u32,
    pub ranges: RankRanges,
    /// A word that is copied behind the counts, if this is not null.
    #[device(cxx = "const u32*")]
    pub boundary: u64,
    /// Where the particles of each rank begin in the list.
    pub first: [u32; MAX_RANKS],
}
