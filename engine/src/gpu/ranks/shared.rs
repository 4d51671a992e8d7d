//! Forces that launch kernels themselves, on several ranks.
//!
//! A force with `needs.shared` handles a range of particles. Each rank has an object of it, which computes the forces on the rank's own
//! particles. Sums of integers over particles, such as densities on a grid, are added over all ranks in any order; sums of
//! floating-point numbers are made of one number for each block of particles, which every rank adds in the order of the blocks.

use super::{Addresses, Rank};
use crate::gpu::arrays::Buffer;
use crate::plan::Plan;
use crate::plugins::host::Collectives;
use galamost_plugin_api::device::DevicePtr;
use galamost_plugin_api::error::Result;
use galamost_plugin_api::views::StateView;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Returns the names of the forces of a plan that launch kernels themselves and need all particles.
pub fn alone(plan: &Plan) -> Option<String> {
    let forces = plan.stages.iter().flat_map(|s| &s.forces).filter(|c| c.force().is_some() && !c.needs.shared);
    let mut names: Vec<&str> = forces.map(|c| c.name.as_str()).collect();
    names.dedup();
    (!names.is_empty()).then(|| names.join(", "))
}

/// Returns whether ranks share the work of forces that launch kernels themselves: all of these handle a range of particles, and
/// the ranks are threads of this process.
pub fn shares_forces(plan: &Plan) -> bool {
    plan.pipeline.processes.count == 1 && alone(plan).is_none()
}

/// Collective operations of a rank for its components.
pub struct RankCollectives {
    rank: Arc<Rank>,
    /// The globals of the rank.
    state: StateView,
    /// Where others have what this rank has at an address.
    known: Mutex<BTreeMap<u64, Addresses>>,
    /// The arguments of a barrier, for kernels of components.
    barrier: Buffer,
}

impl RankCollectives {
    /// Returns those of a rank whose globals have this address.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn new(rank: Arc<Rank>, globals: u64) -> Result<Self> {
        let state = StateView { globals: DevicePtr::new(globals), ..StateView::empty() };
        let barrier = rank.barrier_memory(globals)?;
        Ok(Self { rank, state, known: Mutex::default(), barrier })
    }

    /// Returns the addresses of an array in all ranks, which exchange them at the first call.
    fn addresses(&self, own: u64) -> Result<Addresses> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known.get(&own) {
            return Ok(*found);
        }
        let found = self.rank.share(own)?;
        known.insert(own, found);
        Ok(found)
    }
}

impl Collectives for RankCollectives {
    fn ranks(&self) -> u32 {
        self.rank.count()
    }
    fn all_reduce(&self, values: u64, total: u64, n: u64, when: u64) -> Result<()> {
        self.rank.all_reduce(&self.state, self.addresses(values)?, total, n as usize, when)
    }
    fn all_gather(&self, values: u64, size: u64, particles: u32) -> Result<()> {
        self.rank.push(&self.state, self.addresses(values)?, size as usize / 4, particles as usize)
    }
    fn peers(&self, own: u64) -> Result<(Addresses, u32)> {
        // others may write there at once, so it must have its first contents
        self.rank.synchronize()?;
        Ok((self.rank.share(own)?, self.rank.number() as u32))
    }
    fn rank_barrier(&self) -> Result<u64> {
        self.rank.barrier(&self.state)?;
        Ok(self.barrier.address())
    }
}
