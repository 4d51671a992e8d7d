//! Particle arrays of which each rank has the memory of its own particles.

use super::{Barrier, Rank};
use crate::device::{Device, Distribution, MemoryKind};
use crate::gpu::arrays::Buffer;
use galamost_plugin_api::error::Result;
use galamost_plugin_api::views::StateView;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Returns the numbers of the GPUs of all ranks, or none if a device takes no part in distributed arrays. All ranks call it.
pub(super) fn ordinals(device: &Arc<dyn Device>, barrier: &dyn Barrier, rank: usize) -> Result<Vec<u32>> {
    let ordinal = match device.memory_kind() {
        MemoryKind::Cuda { ordinal, .. } => ordinal,
        MemoryKind::Host => 0,
    };
    let supports = if device.supports_distributed() { u64::from(ordinal) } else { u64::MAX };
    let all = barrier.exchange(rank, supports)?.into_iter().map(|o| u32::try_from(o).ok());
    Ok(all.collect::<Option<_>>().unwrap_or_default())
}

impl Rank {
    /// Returns whether particle arrays are distributed: each rank has the memory of its own particles and reads that of others
    /// at the same address. It then has no ghosts, but must not change what another may still read.
    pub fn distributes(&self) -> bool {
        !self.ordinals.is_empty()
    }

    /// Returns whether ranks must meet after the forces even if an integrator adds sums of all of them then: it changes velocities,
    /// which others may read.
    pub fn must_meet(&self) -> bool {
        self.distributes() && self.reads_velocities.load(Ordering::Relaxed)
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

    /// Allocates memory with this many bytes for each particle, or for each of `count` other elements. All ranks call it.
    ///
    /// # Errors
    /// As for [`Self::distribute`].
    pub fn distribute_elements(&self, bytes: usize, count: Option<usize>) -> Result<Buffer> {
        let ranks = self.count() as usize;
        self.distribute(match count {
            Some(count) => (1..=ranks).map(|k| bytes * (count * k / ranks)).collect(),
            None => self.ranges().begin[1..=ranks].iter().map(|end| bytes * *end as usize).collect(),
        })
    }

    /// Meets the other ranks if particle arrays are distributed: afterwards all of them have used what they read.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn meet(&self, state: &StateView) -> Result<()> {
        if self.distributes() { self.barrier(state) } else { Ok(()) }
    }
}
