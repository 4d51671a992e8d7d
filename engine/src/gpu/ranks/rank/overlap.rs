//! Pair loops that begin before the positions of all ranks are known.

use super::Rank;
use crate::device::args::RankBarrierArgs;
use crate::gpu::codegen::Overlap;
use crate::gpu::staged::BLOCK;
use galamost_plugin_api::views::StateView;
use std::sync::atomic::Ordering;

/// Blocks of the pair loop for each multiprocessor up to which ranks meet in it: each block takes longer for it, which is less than a kernel
/// for the barrier only if there are few.
const MOST_GATED: u32 = 8;

/// Outer blocks of a pair loop that is split, and what this rank has requested with its last message.
#[derive(Clone, Copy, Debug)]
pub struct SplitBlocks {
    /// How many.
    pub count: u32,
    /// Address of their numbers.
    pub outer: u64,
    /// Address of the requests.
    pub requests: u64,
}

/// Returns the environment variable `GALAMOST_GATE`.
fn most_gated() -> u32 {
    std::env::var("GALAMOST_GATE").ok().and_then(|most| most.parse().ok()).unwrap_or(MOST_GATED)
}

impl Rank {
    /// Returns how a pair loop over a staged list can begin early.
    pub fn overlap(&self) -> Overlap {
        match self.messages {
            Some(_) => Overlap::Split,
            None if self.distributes() && !self.on_host => Overlap::Gated,
            None => Overlap::None,
        }
    }

    /// Returns the arguments of the barrier in a pair loop, if it is there.
    pub fn gate(&self, state: &StateView) -> Option<RankBarrierArgs> {
        // the largest part decides for all
        let few = self.largest.div_ceil(BLOCK) as u32 <= most_gated() * self.device.multiprocessors();
        (self.overlap() == Overlap::Gated && few).then(|| self.barrier_args(state.globals.address))
    }

    /// Returns the blocks of a pair loop that is split, if it is and if some blocks are not outer ones.
    pub fn split(&self) -> Option<SplitBlocks> {
        let messages = self.messages.as_ref().filter(|_| most_gated() > 0)?;
        let count = self.n_outer.load(Ordering::Relaxed);
        let (outer, requests) = (self.outer.address() + 4, messages.own_requests());
        ((count as usize) < self.own().len().div_ceil(BLOCK)).then_some(SplitBlocks { count, outer, requests })
    }
}
