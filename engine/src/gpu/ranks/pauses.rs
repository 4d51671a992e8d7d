//! Steps of ranks in several processes.
//!
//! If a rank requests a rebuild, all ranks pause in that step (`messages.cuh`): what follows in the stream does nothing. The host, which
//! launches a step when it knows the answers to the message of the one before, then launches the rebuild and the rest of the step. It knows
//! them early, while the device computes forces, so the device need not wait for it.

use crate::device::args::{ANSWER_HALTED, ANSWER_PAUSED};
use crate::gpu::GpuSystem;
use crate::gpu::rebuild::SortWhen;
use galamost_plugin_api::error::Result;
use galamost_plugin_api::integrator::When;
use galamost_plugin_api::views::Wanted;

impl GpuSystem {
    /// Returns whether ranks in other processes take part in the run.
    pub(in crate::gpu) fn sends_messages(&self) -> bool {
        self.rank.as_ref().is_some_and(|rank| rank.sends_messages())
    }

    /// With ranks in several processes: a halt of one applies to all, not only from the next step on, so that all recover at the same time.
    pub(in crate::gpu) fn meet_after_steps(&self) -> Result<()> {
        let Some(rank) = self.rank.as_ref().filter(|rank| rank.sends_messages()) else { return Ok(()) };
        rank.barrier(&self.view())
    }

    /// Launches the rebuild for which all ranks have paused, after this number of rebuilds.
    pub(in crate::gpu) fn end_pause(&self, rebuilds: u64) -> Result<()> {
        if let Some(messages) = self.rank.as_ref().and_then(|rank| rank.messages()) {
            messages.end_pause(self.view().globals.address)?;
        }
        let sorts = rebuilds.is_multiple_of(self.rebuild.sort_every().into());
        self.launch_rebuild(if sorts { SortWhen::Now } else { SortWhen::NotDue }, true)
    }

    /// As [`Self::end_pause`], if the ranks have paused; before what a component does on the host.
    pub(in crate::gpu) fn end_pause_now(&self) -> Result<()> {
        let messages = self.rank.as_ref().and_then(|rank| rank.messages());
        if messages.map_or(Ok(0), |m| m.answer())? == ANSWER_PAUSED {
            self.end_pause(self.download_globals()?.rebuilds)?;
        }
        Ok(())
    }

    /// Launches steps, the last of which computes what is wanted, or fewer if a rank halts.
    pub(in crate::gpu) fn launch_answered_steps(&self, steps: u64, wanted: Wanted) -> Result<()> {
        let Some(messages) = self.rank.as_ref().and_then(|rank| rank.messages()) else { return Ok(()) };
        let (mut rebuilds, works_on_host) = (self.globals.rebuilds, self.works_on_host()?);
        self.launch_integrators(When::Before)?;
        for left in (0..steps).rev() {
            let wanted = if left == 0 { wanted } else { Wanted::FORCE };
            let has_pairs = self.launch_until_forces(wanted)?;
            self.launch_after_rebuild(wanted, left > 0, has_pairs)?;
            match messages.answer()? {
                ANSWER_PAUSED if !works_on_host => {
                    self.end_pause(rebuilds)?;
                    rebuilds += 1;
                    self.launch_after_rebuild(wanted, left > 0, false)?;
                }
                ANSWER_HALTED => return Ok(()),
                _ => {}
            }
        }
        Ok(())
    }
}
