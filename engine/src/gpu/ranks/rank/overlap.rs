//! Overlap of pair loops with the communication of ranks.

use super::Rank;
use crate::device::Device;
use crate::device::args::RankBarrierArgs;
use crate::gpu::arrays::Buffer;
use crate::gpu::codegen::Overlap;
use crate::gpu::staged::BLOCK;
use galamost_plugin_api::error::Result;
use galamost_plugin_api::views::StateView;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tracing::debug;

/// Boundary blocks of a pair loop that is split.
#[derive(Clone, Copy, Debug)]
pub struct SplitBlocks {
    /// How many at most.
    pub count: u32,
    /// Address of their number, which these follow.
    pub boundary: u64,
    /// Address of what this rank has requested with its last message.
    pub requests: u64,
    /// Arguments of a barrier, for the time of the last interior block.
    pub barrier: RankBarrierArgs,
}

/// The boundary blocks of a rank that sends messages.
pub(super) struct BoundaryBlocks {
    /// Their number, and then these.
    memory: Buffer,
    /// The most that are expected, and the number of all blocks.
    most: AtomicU32,
    all: u32,
}

impl BoundaryBlocks {
    /// Allocates memory for the blocks of this many particles.
    pub fn new(device: &Arc<dyn Device>, particles: usize) -> Result<Self> {
        let all = particles.div_ceil(BLOCK);
        Ok(Self { memory: Buffer::new(device, 4 * (1 + all))?, most: AtomicU32::new(0), all: all as u32 })
    }

    /// Returns the address of their number, which these follow.
    pub fn address(&self) -> u64 {
        self.memory.address()
    }

    /// Forgets the blocks on the device.
    pub fn clear(&self) -> Result<()> {
        self.memory.clear()
    }

    /// Notes their number at a rebuild, which may grow until it is counted again.
    pub fn note(&self, count: u32) {
        debug!("{count} of {} blocks have particles of other ranks around them", self.all);
        self.most.store((count + count / 8 + 8).min(self.all), Ordering::Relaxed);
    }

    /// Returns the most that are expected.
    pub fn most(&self) -> u32 {
        self.most.load(Ordering::Relaxed)
    }
}

impl Rank {
    /// Returns how a pair loop over a staged list overlaps with communication. All ranks call it. Ranks of one process have a barrier in it if each
    /// has at most `most_gated` blocks per multiprocessor; the environment variable `GALAMOST_GATE` overrides this limit.
    ///
    /// # Errors
    /// Returns an error if another rank has failed.
    pub fn overlap(&self, most_gated: u16) -> Result<Overlap> {
        let most = std::env::var("GALAMOST_GATE").ok().and_then(|most| most.parse::<u16>().ok()).unwrap_or(most_gated);
        if self.messages.is_some() {
            let split = std::env::var("GALAMOST_GATE").as_deref() != Ok("0");
            return Ok(if split { Overlap::Split } else { Overlap::None });
        }
        // the largest part and the smallest GPU decide for all
        let multiprocessors = self.smallest(self.device.multiprocessors().into())?;
        let few = self.largest.div_ceil(BLOCK) as u64 <= u64::from(most) * multiprocessors;
        let gated = self.distributes() && !self.on_host && few;
        Ok(if gated { Overlap::Gated } else { Overlap::None })
    }

    /// Returns the arguments of the barrier in a pair loop, if ranks do not send messages.
    pub fn gate(&self, state: &StateView) -> Option<RankBarrierArgs> {
        self.messages.is_none().then(|| self.barrier_args(state.globals.address))
    }

    /// Returns the blocks of a pair loop that is split, if some of them are not boundary ones.
    pub fn split(&self, state: &StateView) -> Option<SplitBlocks> {
        let messages = self.messages.as_ref()?;
        let count = self.boundary.most();
        let split = SplitBlocks {
            count,
            boundary: self.boundary.address(),
            requests: messages.own_requests(),
            barrier: self.barrier_args(state.globals.address),
        };
        (count < self.boundary.all).then_some(split)
    }
}
