//! Pair loops that overlap with the communication of ranks.

use crate::gpu::GpuSystem;
use crate::gpu::forces::PairBlocks;
use crate::gpu::rebuild::SortWhen;
use crate::gpu::system::Stage;
use galamost_plugin_api::error::Result;
use galamost_plugin_api::views::Wanted;

impl GpuSystem {
    /// Exchanges ghosts or passes the barrier after the move, rebuilds the list if requested, and computes pair forces, those of interior blocks
    /// without waiting for other ranks. Returns false, without a launch, if the stage does not allow it.
    pub(super) fn launch_overlapped_pairs(&self, wanted: Wanted) -> Result<bool> {
        let Stage { forces, integrators, forces_again, .. } = self.stage()?;
        let Some(rank) = self.rank.as_ref().filter(|_| forces.may_overlap(wanted, integrators.changes_box())) else {
            return Ok(false);
        };
        if *forces_again || forces.places() || self.works_on_host()? {
            return Ok(false);
        }
        let (state, lists) = (self.view(), self.rebuild.lists());
        if let Some(gate) = rank.gate(&state) {
            // in most steps no rank requests a rebuild
            forces.run_pairs_alone(&state, &lists, PairBlocks::Gated(gate))?;
            let meet = !self.meets_before_phases()?;
            self.device.if_rebuild(state.globals.address, self.rebuild.sort_every(), &mut |sorts| {
                self.launch_rebuild(if sorts { SortWhen::Due } else { SortWhen::NotDue }, meet)?;
                forces.run_pairs_alone(&state, &lists, PairBlocks::All)
            })?;
            return Ok(true);
        }
        let Some(split) = rank.split(&state) else { return Ok(false) };
        rank.exchange_overlapped(&state, &mut || forces.run_pairs_alone(&state, &lists, PairBlocks::Interior(split)))?;
        forces.run_pairs_alone(&state, &lists, PairBlocks::Boundary(split)).map(|()| true)
    }

    /// Returns whether a component of the stage works on the host.
    pub(in crate::gpu) fn works_on_host(&self) -> Result<bool> {
        self.stage().map(|stage| !stage.graphs.not_capturable.is_empty())
    }
}
