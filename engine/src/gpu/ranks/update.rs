//! Updaters with `needs.shared`: each rank has its object, which searches the rank's own particles.

use super::Rank;
use crate::backend::call_updater;
use crate::gpu::GpuSystem;
use crate::gpu::arrays::Buffer;
use crate::plugins::Component;
use crate::plugins::host::Ranks;
use crate::state::arrays::{ArrayId, ParticleArray};
use galamost_plugin_api::error::Result;
use galamost_plugin_api::views::Wanted;
use std::sync::Arc;

impl Ranks for Rank {
    fn gather_bytes(&self, own: &[u8]) -> Result<Vec<Vec<u8>>> {
        self.gather(own)
    }
}

impl GpuSystem {
    /// Gives ghosts the present positions, types, and values of the arrays that an updater needs. All ranks call it between steps.
    pub(super) fn refresh_ghosts(&self, updater: &Component) -> Result<()> {
        let Some(rank) = &self.rank else { return Ok(()) };
        let needs = |name: &str| updater.needs.arrays.iter().any(|a| a.name == name);
        let read =
            |array: &ParticleArray| array.name == ArrayId::PosType.name() || array.component_name().is_some_and(needs);
        let needed = self.arrays.iter().filter(|(array, _)| read(array));
        let addresses: Vec<u64> = needed.filter_map(|(_, buffer)| buffer.as_ref().map(Buffer::address)).collect();
        // kernels of other ranks may still use the values before
        self.device.synchronize()?;
        self.gather_threads()?;
        rank.exchange_arrays(&self.view(), &addresses)
    }

    /// Calls this rank's object of an updater, and applies what it did. All ranks call it between steps.
    pub(super) fn update_own(&mut self, updater: &Arc<Component>, wanted: Wanted) -> Result<()> {
        self.refresh_ghosts(updater)?;
        let rank = self.rank.as_ref().map_or(0, |rank| rank.number());
        match call_updater(self, updater.on_rank(rank)?, false)? {
            Some(update) => self.apply_update(updater, update, wanted),
            None => Ok(()),
        }
    }
}
