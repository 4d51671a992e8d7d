//! What the phases of integrators do with other ranks inside of their kernels: sums over all particles, new values of ghosts,
//! and the release of former ones.

use super::Rank;
use crate::device::Device;
use crate::device::args::{GhostField, MAX_GHOST_FIELDS, MAX_RANKS, RankPhaseArgs, SUM_THREADS};
use crate::gpu::arrays::Buffer;
use crate::gpu::codegen::PhaseKernel;
use galamost_plugin_api::device::bytes_of;
use galamost_plugin_api::error::Result;
use galamost_plugin_api::integrator::When;
use std::sync::Arc;

/// A rank, and the stage of its integrators.
pub struct RankStage {
    /// The rank.
    pub rank: Arc<Rank>,
    /// Address of the globals.
    pub globals: u64,
    /// A component moves particles after the integrators have.
    pub places: bool,
    /// Forces are evaluated a second time at the end of each step.
    pub forces_again: bool,
}

/// What one kernel does; `args` holds a [`RankPhaseArgs`].
pub struct RankPhase {
    args: Buffer,
    _sums: Option<Buffer>,
    /// It writes the new values of ghosts.
    pub pushes: bool,
    /// It begins with the release of ghosts.
    pub releases: bool,
}

impl RankPhase {
    /// Returns the address of the arguments.
    pub fn address(&self) -> u64 {
        self.args.address()
    }
}

/// A kernel by the numbers of integrator and phase.
type At = (usize, usize);

impl RankStage {
    /// Returns which kernels of a stage write the values of ghosts and release them: the last one before the forces, if nothing
    /// moves particles after it; and the first one after the forces, if the ranks do not meet there anyway.
    fn of_ghosts(&self, kernels: &[(At, &PhaseKernel)]) -> [Option<At>; 2] {
        let own = |at: &At| kernels.iter().find(|(a, _)| a == at).map(|(_, p)| *p);
        let last = kernels.iter().rfind(|(_, p)| p.when == When::Before).map(|(at, _)| *at);
        let first = kernels.iter().find(|(_, p)| p.when == When::After).map(|(at, _)| *at);
        let plain = |at: &At| own(at).is_some_and(|p| p.particles && !p.sim_box);
        let pushes = last.filter(|_| std::env::var("GALAMOST_PUSH").is_err()).filter(|at| plain(at) && !self.places && own(at).is_some_and(|p| p.sums == 0));
        let releases = first.filter(|at| plain(at) && self.released(kernels) && !self.forces_again);
        [pushes, releases]
    }

    /// Returns whether ranks release their ghosts in each step: they do not meet after the forces.
    fn released(&self, kernels: &[(At, &PhaseKernel)]) -> bool {
        self.forces_again || !kernels.iter().any(|(_, p)| p.when == When::After && p.sums > 0)
    }

    /// Returns what each kernel of a stage does with other ranks, in order; nothing if they meet on the host. All ranks call it.
    ///
    /// # Errors
    /// Returns the driver's error, or an error if another rank has failed.
    pub fn phases(&self, device: &Arc<dyn Device>, n: usize, kernels: &[(At, &PhaseKernel)]) -> Result<Vec<Option<RankPhase>>> {
        if !self.rank.meets_in_kernels() {
            return Ok(kernels.iter().map(|_| None).collect());
        }
        let [pushes, releases] = self.of_ghosts(kernels);
        let rows = n.div_ceil(SUM_THREADS as usize);
        let phase = |(at, p): &(At, &PhaseKernel)| {
            let (pushes, releases) = (pushes == Some(*at), releases == Some(*at));
            let sums = p.particles && p.sums > 0;
            if !pushes && !releases && !sums {
                return Ok(None);
            }
            let mut args = self.rank.phase_args(self.globals, self.released(kernels))?;
            args.releases = u32::from(releases);
            if !pushes {
                args.wanted = 0;
            }
            // two words for each number, in odd and even epochs
            let memory = sums.then(|| Buffer::new(device, 2 * 2 * 8 * p.sums as usize * rows)).transpose()?;
            if let Some(memory) = &memory {
                args.sums = self.rank.share(memory.address())?;
            }
            let args = Buffer::of_bytes(device, bytes_of(std::slice::from_ref(&args)))?;
            Ok(Some(RankPhase { args, _sums: memory, pushes, releases }))
        };
        kernels.iter().map(phase).collect()
    }
}

impl Rank {
    /// Returns the arguments with which a kernel writes the new values of ghosts; they are `released`, or the ranks have met.
    pub(super) fn phase_args(&self, globals: u64, released: bool) -> Result<RankPhaseArgs> {
        let mut fields = [GhostField::default(); MAX_GHOST_FIELDS];
        let mut n_fields = 0;
        for (f, a) in fields.iter_mut().zip(self.arrays()?.iter().filter(|a| self.is_pushed(a))) {
            *f = GhostField { words: a.words, reserved: 0, data: a.data };
            n_fields += 1;
        }
        Ok(RankPhaseArgs {
            barrier: self.barrier_args(globals),
            ranges: self.ranges(),
            sums: [0; MAX_RANKS],
            wanted: self.wanted(),
            n_fields,
            released: u32::from(released),
            releases: 0,
            reserved: 0,
            fields,
        })
    }
}
