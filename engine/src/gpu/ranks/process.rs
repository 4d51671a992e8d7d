//! A rank of a run that several processes share.

use super::messages::ProcessBarrier;
use super::{Place, part_unit, ranges};
use crate::backend::Update;
use crate::backend::balance::equal_parts;
use crate::backend::processes::ProcessRank;
use crate::gpu::GpuSystem;
use crate::plan::{Plan, initial};
use crate::plugins::Component;
use crate::processes::Messages;
use crate::state::RawState;
use galamost_plugin_api::error::{Error, Result};
use galamost_plugin_api::views::Wanted;
use std::sync::Arc;

/// Returns the place of this process in a run whose ranks begin with these particles.
fn place(messages: &Arc<dyn Messages>, begins: &[usize]) -> Place {
    Place {
        ranges: ranges(begins, messages.rank()),
        distributed: Some(false),
        barrier: Arc::new(ProcessBarrier(messages.clone())),
        messages: Some(messages.clone()),
    }
}

impl ProcessRank for GpuSystem {
    fn of_process(plan: &Plan, messages: &Arc<dyn Messages>) -> Result<Self> {
        let device = plan.device.open_process()?.ok_or_else(|| Error::Run("the run uses the CPU".into()))?;
        let (facts, raw) = initial(plan)?;
        let begins = equal_parts(facts.n, messages.ranks(), Self::unit(facts.n, messages.ranks()));
        Self::of_rank(plan, facts, &raw, device, Some(place(messages, &begins)), None)
    }

    fn unit(n: usize, ranks: usize) -> usize {
        part_unit(n, ranks)
    }

    fn waited(&self) -> Result<f64> {
        self.rank.as_ref().map_or(Ok(0.0), |rank| rank.waited())
    }

    fn divide(&mut self, plan: &Plan, messages: &Arc<dyn Messages>, begins: &[usize], state: &RawState) -> Result<()> {
        self.device.synchronize()?;
        let host = self.release()?;
        let (facts, place) = (self.facts.clone(), place(messages, begins));
        *self = Self::of_rank(plan, facts, state, self.device.clone(), Some(place), Some(host))?;
        Ok(())
    }

    fn complete_first(&mut self) -> Result<()> {
        let Some(rank) = &self.rank else { return Ok(()) };
        rank.complete_first()?;
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
