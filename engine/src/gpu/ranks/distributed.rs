//! Particle arrays of which each rank has the memory of its own particles.

use super::{Barrier, Rank};
use crate::device::args::RankRanges;
use crate::device::{Device, Distribution, MemoryKind};
use crate::gpu::arrays::Buffer;
use galamost_plugin_api::error::Result;
use galamost_plugin_api::views::StateView;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The macro under which all ranks find all particles at the same addresses.
pub(super) const MACRO: &str = "GALAMOST_DISTRIBUTED";

/// Bytes of a particle in the smallest arrays, and the largest share of a rank's own particles that may lie on another GPU there. Four
/// GPUs were slower than with ghosts where it was about a half, and faster where it was 0; nothing between was measured.
const WORD: usize = 4;
const MOST_FOREIGN: f64 = 0.125;

/// Returns the numbers of the GPUs of all ranks, or none if arrays are not distributed over them: a device takes no part, or pages
/// are so large that too many particles of a rank would be in the memory of another. `before`: whether they have been until now. All
/// ranks call it.
pub(super) fn ordinals(
    device: &Arc<dyn Device>,
    barrier: &dyn Barrier,
    ranges: &RankRanges,
    before: Option<bool>,
) -> Result<Vec<u32>> {
    let ordinal = match device.memory_kind() {
        MemoryKind::Cuda { ordinal, .. } => u64::from(ordinal),
        MemoryKind::Host => 0,
    };
    let words = Distribution { ordinals: vec![], ends: ends(ranges, WORD) };
    let fits = device.page().is_some_and(|page| words.most_foreign(page) <= MOST_FOREIGN);
    let fits = before.unwrap_or(fits && std::env::var("GALAMOST_GHOSTS").as_deref() != Ok("1"));
    let all = barrier.exchange(ranges.rank as usize, if fits { ordinal } else { u64::MAX })?;
    Ok(all.into_iter().map(|o| u32::try_from(o).ok()).collect::<Option<_>>().unwrap_or_default())
}

/// Returns where the parts of the ranks end in an array with this many bytes per particle.
fn ends(ranges: &RankRanges, bytes: usize) -> Vec<usize> {
    ranges.begin[1..=ranges.count as usize].iter().map(|end| bytes * *end as usize).collect()
}

impl Rank {
    /// Returns whether particle arrays are distributed: each rank has the memory of its own particles and reads that of others
    /// at the same address. It then has no ghosts, but must not change what another may still read.
    pub fn distributes(&self) -> bool {
        !self.ordinals.is_empty()
    }

    /// Returns whether ranks must meet after the forces even if an integrator adds sums of all of them then: before that it changes
    /// velocities and normalizes orientations, which others may read.
    pub fn must_meet(&self) -> bool {
        let reads = [&self.reads_velocities, &self.reads_orientations];
        self.distributes() && reads.iter().any(|r| r.load(Ordering::Relaxed))
    }

    /// Allocates memory of which each rank has the part before its end, in bytes. All ranks call it.
    ///
    /// # Errors
    /// Returns the driver's error, or an error if another rank has failed.
    pub fn distribute(&self, ends: Vec<usize>) -> Result<Buffer> {
        let distribution = Distribution { ordinals: self.ordinals.clone(), ends };
        let first = self.number() == 0;
        let allocated = if first { self.device.allocate_distributed(&distribution) } else { Ok(0) };
        let address = self.share(self.agree(allocated)?)?[0];
        let buffer = self.agree(Buffer::attach(&self.device, address, distribution.bytes(), self.number()))?;
        // others write into this part
        self.device.synchronize()?;
        self.any(false)?;
        Ok(buffer)
    }

    /// Allocates memory with this many bytes for each particle. All ranks call it.
    ///
    /// # Errors
    /// As for [`Self::distribute`].
    pub fn distribute_particles(&self, bytes: usize) -> Result<Buffer> {
        self.distribute(ends(&self.ranges(), bytes))
    }

    /// Allocates this many words, about as many on each device. All ranks call it.
    ///
    /// # Errors
    /// As for [`Self::distribute`].
    pub fn distribute_words(&self, count: usize) -> Result<Buffer> {
        let ranks = self.count() as usize;
        // kernels load them by fours
        self.distribute((1..=ranks).map(|k| WORD * (count * k / ranks).next_multiple_of(4).min(count)).collect())
    }

    /// Meets the other ranks if particle arrays are distributed: afterwards all of them have used what they read.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn meet(&self, state: &StateView) -> Result<()> {
        if self.distributes() { self.barrier(state) } else { Ok(()) }
    }
}
