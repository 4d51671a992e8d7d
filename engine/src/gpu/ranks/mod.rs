//! Several GPUs share a run.
//!
//! A rank (a GPU and the thread that drives it) propagates a range of whole blocks of [`BLOCK`] particles of one global order. What a rank
//! computes does not depend on the number of ranks: rows and halos follow from the global order, and sums add the blocks of all
//! ranks in the order of one. So every bit is that of a run on one GPU.
//!
//! With a staged list, arrays are distributed, if pages allow it ([`Rank::distributes`]): each rank has the memory of its own particles, and
//! reads that of others at the same address. Otherwise every rank has arrays of all particles in the same order, and a rank
//! writes what others need into their memory (peer access), where a particle has the same index; `ranks.cuh` has the kernels:
//!
//! | when | what is written or read |
//! |---|---|
//! | every step, after the particles have moved | own particles that are ghosts of others: neighbors and bonded partners in other ranges |
//! | a rebuild of a staged list | boxes of own tiles are written, positions near the own particles are read; a mark for each ghost in the memory of its owner |
//! | a rebuild of a plain list | all own positions; marks as above |
//! | a force that places particles, before and after the forces | own particles that are ghosts of others: everything from which it places them; then forces |
//! | an updater that ranks share | own particles that are ghosts of others: positions and the arrays that the updater needs |
//! | another updater that changes something | everything is read from the first rank |
//! | an updater that changes links | marks as above, because members of new links may be no neighbors |
//! | a sort with a staged list | all positions and everything of the particles that change the rank are read; tags and charges of own particles are written |
//! | a sort with a plain list | everything of the particles that change the rank is read; positions, tags and charges are sorted by every rank |
//! | an analyzer or checkpoint, a force with its own kernels or an updater that is not shared | everything is read by the first rank |
//!
//! Ranks in several processes have such arrays of all particles, too, and messages in place of reads and writes (`messages.rs`). With a staged list
//! and ranges of whole groups of tiles, they do not even send all positions at a rebuild, but the boxes of groups and the tiles near other
//! ranks (`messages/near.rs`), and sort together (`messages/sort.rs`).
//!
//! In both cases:
//!
//! | when | what is written or read |
//! |---|---|
//! | a phase with sums over all particles | the sums of the own blocks |
//! | a sum over all particles in a force that is shared | integers of all ranks are read, or those of blocks that a rank needs, whose marks are written (`block_sums.cuh`); or the sums of the own blocks are written |

mod arrays;
mod barrier;
mod distributed;
mod messages;
mod pauses;
mod place;
mod process;
mod rank;
mod shared;
mod system;
mod update;

pub use barrier::Barrier;
pub use messages::{MessagePath, unit as messages_unit};
pub use rank::{Addresses, Occasion, Rank, SplitBlocks};
pub use shared::RankCollectives;
pub use system::RankedSystem;

use super::staged::{BLOCK, GROUP};
use crate::device::SourceUnit;
use crate::device::args::RankRanges;
use crate::processes::Messages;
use galamost_plugin_api::precision::Precision;
use std::sync::Arc;

/// The macro under which kernels handle the particles of one rank.
pub const MACRO: &str = "GALAMOST_RANKS";

/// The place of a rank among the others.
pub struct Place {
    /// Its number, and the particles of all ranks.
    pub ranges: RankRanges,
    /// Whether arrays are distributed, if the kernels of components have been compiled.
    pub distributed: Option<bool>,
    /// The barrier of all ranks.
    pub barrier: Arc<dyn Barrier>,
    /// Set if the other ranks are in other processes.
    pub messages: Option<Arc<dyn Messages>>,
}

/// Returns the source unit of the kernels in `ranks.cuh`.
pub fn unit(precision: Precision) -> SourceUnit {
    SourceUnit::new("ranks", "#include \"galamost/ranks.cuh\"\n", precision)
}

/// Blocks of a rank from which it has whole groups of tiles: a rebuild with a sort needs a barrier less then, ranks in several processes need not
/// know all positions, and parts differ by less than 0.8 %.
const MANY_BLOCKS: usize = 512;

/// Returns the particles of which the parts of this many ranks are made: a block or a group of tiles.
fn part_unit(n: usize, ranks: usize) -> usize {
    if n >= MANY_BLOCKS * BLOCK * ranks { GROUP } else { BLOCK }
}

/// Returns the ranges that begin there, as rank number `rank` has them.
fn ranges(begins: &[usize], rank: usize) -> RankRanges {
    let n = begins.last().copied().unwrap_or(0) as u32;
    let begin = std::array::from_fn(|k| begins.get(k).map_or(n, |b| *b as u32));
    RankRanges { rank: rank as u32, count: begins.len() as u32 - 1, begin }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::balance::equal_parts;

    #[test]
    fn ranges_cover_all_particles_in_whole_blocks() {
        for (n, ranks) in [(1000, 3), (256, 1), (4096, 16), (4097, 2), (262_144, 2), (500_000, 3)] {
            let r = ranges(&equal_parts(n, ranks, part_unit(n, ranks)), 0);
            assert_eq!((r.begin[0], r.begin[ranks]), (0, n as u32));
            assert!(r.begin[..ranks].iter().all(|b| (*b as usize).is_multiple_of(BLOCK)));
            assert!(r.begin[..=ranks].is_sorted());
        }
    }
}
