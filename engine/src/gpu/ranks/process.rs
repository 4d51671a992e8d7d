//! A rank of a run that several processes share.

use super::{Place, equal_parts, ranges};
use super::messages::ProcessBarrier;
use crate::backend::Update;
use crate::backend::processes::ProcessRank;
use crate::gpu::GpuSystem;
use crate::plan::{Plan, initial};
use crate::plugins::Component;
use crate::processes::Messages;
use galamost_plugin_api::error::{Error, Result};
use galamost_plugin_api::views::Wanted;
use std::sync::Arc;

impl ProcessRank for GpuSystem {
    fn of_process(plan: &Plan, messages: &Arc<dyn Messages>) -> Result<Self> {
        let device = plan.device.open_process()?.ok_or_else(|| Error::Run("the run uses the CPU".into()))?;
        let (facts, raw) = initial(plan)?;
        let place = Place {
            ranges: ranges(&equal_parts(facts.n, messages.ranks()), messages.rank()),
            distributed: None,
            barrier: Arc::new(ProcessBarrier(messages.clone())),
            messages: Some(messages.clone()),
        };
        Self::of_rank(plan, facts, &raw, device, Some(place), None)
    }

    fn complete_first(&mut self) -> Result<()> {
        self.rank.as_ref().map_or(Ok(()), |rank| rank.complete_first())?;
        self.device.synchronize()
    }

    fn copy_first(&mut self) -> Result<()> {
        self.rank.as_ref().map_or(Ok(()), |rank| rank.pull_from_first())
    }

    fn refresh_ghosts(&self, updater: &Component) -> Result<()> {
        self.refresh_ghosts(updater)
    }

    fn sync_globals(&mut self) -> Result<()> {
        self.sync_globals()
    }

    fn apply_update(&mut self, updater: &Arc<Component>, update: Update, wanted: Wanted) -> Result<()> {
        self.apply_update(updater, update, wanted)
    }
}
