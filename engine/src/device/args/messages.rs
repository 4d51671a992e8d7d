//! Arguments of the kernels that pack and unpack messages between ranks (`messages.cuh`).

use super::{Bounds, LEVEL, MAX_RANKS, MAX_SORTED_ARRAYS, RankRanges, SortArgs};
use galamost_plugin_api::DeviceStruct;
use galamost_plugin_api::views::StateView;

/// The value of `halt` in all ranks while they wait for the host, which launches the rebuild that one of them requests.
pub const PAUSED: u32 = 2;

/// Number of different answers to a message with `pauses`: 0, or what the ranks request with it.
pub const ANSWERS: u64 = 4;
/// All ranks have paused, because one requests a rebuild.
pub const ANSWER_PAUSED: u64 = 1;
/// A rank has halted.
pub const ANSWER_HALTED: u64 = 2;

/// Words before the records of a rank.
pub const HEAD_WORDS: u32 = 4;

/// Constants of `messages.cuh` and the headers that include it.
pub const MESSAGE_CONSTANTS: [(&str, u32); 6] = [
    ("PAUSED", PAUSED),
    ("HEAD_WORDS", HEAD_WORDS),
    ("TILE_WORDS", TILE_WORDS),
    ("ANSWERS", ANSWERS as u32),
    ("ANSWER_PAUSED", ANSWER_PAUSED as u32),
    ("ANSWER_HALTED", ANSWER_HALTED as u32),
];

/// Most arrays of which a record has words.
pub const MAX_MESSAGE_FIELDS: usize = MAX_SORTED_ARRAYS;

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
    /// In memory of the host: [`ANSWERS`] times the number of the last message with `pauses`, and what the ranks request with it.
    #[device(cxx = "u64*")]
    pub answer: u64,
    /// The number of this message, if it is one with `pauses`.
    pub number: u64,
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
    /// How many records each rank has; the others are not used.
    #[device(cxx = "const u32*")]
    pub counts: u64,
    /// For each rank, including this one, [`HEAD_WORDS`] words, the first of which says what is requested, then its records.
    #[device(cxx = "u32*")]
    pub records: u64,
    pub record_words: u32,
    pub n_fields: u32,
    /// Number of the first record of each rank, and the number of records.
    pub begin: [u32; MAX_RANKS + 2],
    pub fields: [MessageField; MAX_MESSAGE_FIELDS],
}

/// `ElementLists`: elements that each rank gets or has sent, rank by rank.
#[repr(C)]
#[derive(Clone, Copy, Debug, DeviceStruct)]
#[device(header)]
pub struct ElementLists {
    /// A word for each rank: how many elements there are.
    #[device(cxx = "u32*")]
    pub counts: u64,
    /// Numbers of the elements; none to count them only.
    #[device(cxx = "u32*")]
    pub list: u64,
    /// Where the elements of each rank begin, and the end of all; for so many there is room.
    pub first: [u32; MAX_RANKS + 2],
}

/// `MarkedArgs`: lists the marked particles by the rank that owns them.
#[repr(C)]
#[derive(Clone, Copy, Debug, DeviceStruct)]
#[device(header)]
pub struct MarkedArgs {
    #[device(cxx = "Globals*")]
    pub globals: u64,
    /// A bit for each particle.
    #[device(cxx = "const u32*")]
    pub marks: u64,
    pub lists: ElementLists,
    pub n_words: u32,
    /// The largest number of boundary blocks that the host expects.
    pub boundary_room: u32,
    pub ranges: RankRanges,
    /// The number of boundary blocks, which is copied behind the counts, if this is not null.
    #[device(cxx = "const u32*")]
    pub boundary: u64,
}

/// Words of the record of a tile: its number and padding, its box, and the positions of its particles.
pub const TILE_WORDS: u32 = 12 + 4 * LEVEL;

/// `NearTilesArgs`: finds the own tiles near groups of other ranks, or reads those that were received.
#[repr(C)]
#[derive(Clone, Copy, Debug, DeviceStruct)]
#[device(header)]
pub struct NearTilesArgs {
    pub state: StateView,
    pub tiles: Bounds,
    pub groups: Bounds,
    pub tops: Bounds,
    pub ranges: RankRanges,
    /// The tiles.
    pub lists: ElementLists,
    /// Records of them.
    #[device(cxx = "u32*")]
    pub records: u64,
    pub r_list: f64,
}

/// `ProcessSortArgs`: the sort by ranks in several processes, each of which orders the particles of its cells.
#[repr(C)]
#[derive(Clone, Copy, Debug, DeviceStruct)]
#[device(header)]
pub struct ProcessSortArgs {
    pub sort: SortArgs,
    pub ranges: RankRanges,
    /// Own particles in cells of other ranks, or places in the order that belong to these.
    pub outgoing: ElementLists,
    /// Particles of other ranks in the cells of this one.
    pub incoming: ElementLists,
    /// The number of particles in the cells of each other rank.
    #[device(cxx = "const u32*")]
    pub totals: u64,
    /// The end of each rank's cells.
    pub end_of_cells: [u32; MAX_RANKS + 1],
    pub reserved: u32,
}
