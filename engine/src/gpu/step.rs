//! The sequence of launches of a time step, and its graphs.

mod overlap;

use super::forces::Forces;
use super::ranks::Occasion;
use super::rebuild::{SortWhen, spare_entries};
use super::system::{GpuSystem, Stage};
use crate::backend::queue_search;
use crate::device::Graph;
use crate::state::arrays::ArrayId;
use crate::state::buffers::Bytes;
use crate::state::reduction::Reduction;
use galamost_plugin_api::error::{Error, Result};
use galamost_plugin_api::force::Moment;
use galamost_plugin_api::integrator::When;
use galamost_plugin_api::precision::{Fixed, Float64, Precision};
use galamost_plugin_api::views::{FaultKind, FaultRecord, Wanted};
use std::collections::{BTreeMap, BTreeSet};
use tracing::{debug, info};

/// Steps of the largest graph, a power of two; the gap between two graph launches occurs once per batch.
const BATCH: u64 = 16;

/// Number of steps from which the persistent kernel is launched several times, with rebuilds in between, before a condition ends the
/// launches: a condition takes longer than a launch that does nothing, but there are some of these at the end.
const MANY_STEPS: u64 = 64;

/// The number of these launches.
const ROUNDS: usize = 4;

/// A new cell grid is made for a box that is smaller by this factor, so the grid stays valid while the box shrinks.
const GRID_MARGIN: f64 = 0.95;

/// What a graph contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum GraphContent {
    /// This many steps, forces only.
    Steps(u64),
    /// One step with energies and virials.
    StepWithSums,
    /// The persistent kernel: the requested number of steps, forces only. For `many` of them, several launches follow each other
    /// without a condition.
    StepsKernel { many: bool },
}

/// Graphs of a stage.
#[derive(Default)]
pub(super) struct Graphs {
    captured: BTreeMap<GraphContent, Graph>,
    /// Numbers of steps below [`BATCH`] that were launched before. Capturing takes as long as hundreds of steps.
    seen: BTreeSet<u64>,
    /// Components that cannot be captured.
    not_capturable: Vec<String>,
    /// The device has no graphs.
    unsupported: bool,
}

impl Graphs {
    /// Returns an empty set of graphs; `not_capturable` names the components that cannot be captured.
    pub fn new(not_capturable: Vec<String>) -> Self {
        Self { not_capturable, ..Self::default() }
    }
}

impl GpuSystem {
    fn stage(&self) -> Result<&Stage> {
        self.stage.as_ref().ok_or_else(|| Error::Run("no stage has begun".into()))
    }

    /// Returns the forces of the present stage.
    pub(super) fn forces(&self) -> Result<&Forces> {
        self.stage().map(|stage| &stage.forces)
    }

    /// Launches `steps` steps; each computes what is wanted.
    fn launch_steps(&self, steps: u64, wanted: Wanted) -> Result<()> {
        self.launch_integrators(When::Before)?;
        for left in (0..steps).rev() {
            let has_pairs = self.launch_until_forces(wanted)?;
            self.launch_after_rebuild(wanted, left > 0, has_pairs)?;
        }
        Ok(())
    }

    /// Launches the part of a step from the phases before the forces to a rebuild. Returns whether it has computed the pair forces.
    pub(super) fn launch_until_forces(&self, wanted: Wanted) -> Result<bool> {
        let stage = self.stage()?;
        if self.launch_overlapped_pairs(wanted)? {
            return Ok(true);
        }
        self.launch_place(Moment::Moved)?;
        if let Some(rank) = &self.rank {
            let released = stage.forces.places() || !self.meet_after_forces()?;
            rank.exchange(&self.view(), Occasion::Step { released })?;
            if rank.sends_messages() {
                // a component that works on the host must not see the state before a rebuild
                if self.works_on_host()? {
                    self.end_pause_now()?;
                }
                return Ok(false);
            }
        }
        self.launch_requested_rebuild(!self.meets_before_phases()?).map(|()| false)
    }

    /// Launches a rebuild if the globals request one. Ranks meet at its end if they `meet`.
    fn launch_requested_rebuild(&self, meet: bool) -> Result<()> {
        let globals = self.view().globals.address;
        self.device.if_rebuild(globals, self.rebuild.sort_every(), &mut |sorts| {
            self.launch_rebuild(if sorts { SortWhen::Due } else { SortWhen::NotDue }, meet)
        })
    }

    /// Returns whether ranks with distributed arrays meet after pair and bonded forces, before anything else changes. Then a rank need not
    /// wait at the end of a rebuild: if another has no room for its list, these forces are computed again.
    fn meets_before_phases(&self) -> Result<bool> {
        let (stage, distributes) = (self.stage()?, self.rank.as_ref().is_some_and(|r| r.distributes()));
        let repeatable = stage.components.iter().all(|c| c.force().is_none());
        let meets = || {
            Ok(stage.forces_again || self.rank.as_ref().is_some_and(|r| r.must_meet()) || !self.meet_after_forces()?)
        };
        if distributes && repeatable { meets() } else { Ok(false) }
    }

    /// Returns whether several ranks meet in each step after the forces, because an integrator adds sums of all of them.
    fn meet_after_forces(&self) -> Result<bool> {
        let stage = self.stage()?;
        Ok(!stage.forces_again && stage.integrators.has_sums(When::After))
    }

    /// Launches the part of a step that follows the rebuild: forces and the phases after them. If another step `follows`, also its phases
    /// before the forces. `has_pairs`: the pair forces are computed.
    pub(super) fn launch_after_rebuild(&self, wanted: Wanted, follows: bool, has_pairs: bool) -> Result<()> {
        let stage = self.stage()?;
        if !stage.forces_again {
            self.launch_forces(wanted, has_pairs)?;
            if let Some(rank) = &self.rank
                && (rank.must_meet() || stage.forces.places() || !self.meet_after_forces()?)
            {
                rank.release_ghosts(&self.view())?;
            }
            if follows && !stage.forces.places() {
                return stage.integrators.run_between(&self.view());
            }
            self.launch_integrators(When::After)?;
            self.launch_place(Moment::End)?;
            return if follows { self.launch_integrators(When::Before) } else { Ok(()) };
        }
        self.launch_forces(Wanted::FORCE, false)?;
        match &self.rank {
            Some(rank) if stage.forces.places() => rank.release_ghosts(&self.view())?,
            _ => self.meet()?,
        }
        self.launch_integrators(When::After)?;
        self.launch_place(Moment::End)?;
        self.launch_forces_anew(wanted)?;
        if let Some(rank) = self.rank.as_ref().filter(|r| !r.distributes()) {
            rank.release_ghosts(&self.view())?;
        }
        if follows { self.launch_integrators(When::Before) } else { Ok(()) }
    }

    /// Launches the persistent kernel.
    fn launch_steps_kernel(&self, many: bool) -> Result<()> {
        let stage = self.stage()?;
        let Some(steps_kernel) = &stage.steps_kernel else { return Ok(()) };
        let links = self.links.views();
        let (state, list) = (self.view(), self.rebuild.view());
        let rounds = if many { ROUNDS } else { 1 };
        steps_kernel.run(&stage.forces, &stage.integrators, &state, &list, links, rounds, &mut || {
            let tests = many && self.rebuild.run_if_requested(&state, &self.links.to_index(), self.links.excluded())?;
            if tests { Ok(()) } else { self.launch_requested_rebuild(true) }
        })
    }

    /// Launches a rebuild.
    pub(super) fn launch_rebuild(&self, when: SortWhen, meet: bool) -> Result<()> {
        self.rebuild.run(&self.view(), &self.links.to_index(), self.links.excluded(), when, meet)
    }

    /// Launches a force evaluation, without pairs if it `has_pairs` already. With several ranks, the ghosts are up to date.
    fn launch_forces(&self, wanted: Wanted, has_pairs: bool) -> Result<()> {
        let links = self.links.views();
        let Stage { forces, integrators, .. } = self.stage()?;
        let barostat = integrators.changes_box();
        let (excluded, special) = (self.links.excluded(), self.links.special());
        forces.run(&self.view(), &self.rebuild.lists(), links, excluded, special, wanted, barostat, has_pairs)
    }

    /// With several ranks: waits until the threads of all of them are here. A kernel that waits for another rank must not
    /// run while that one allocates memory or loads code, for which a driver may wait until all kernels have ended.
    pub(super) fn gather_threads(&self) -> Result<()> {
        self.rank.as_ref().map_or(Ok(()), |rank| rank.any(false).map(drop))
    }

    /// With several ranks: finds further ghosts if links have changed and the neighbor list has not. A new angle or dihedral needs
    /// positions of particles that are no neighbors.
    pub(super) fn find_ghosts_after(&self, topology_changed: bool) -> Result<()> {
        let Some(rank) = self.rank.as_ref().filter(|_| topology_changed) else { return Ok(()) };
        rank.find_ghosts(&self.view(), None, self.links.to_index().iter().map(|(view, _, _)| *view))
    }

    /// Launches a force evaluation after a change of the state.
    pub(super) fn launch_forces_anew(&self, wanted: Wanted) -> Result<()> {
        if let Some(rank) = &self.rank {
            rank.release_ghosts(&self.view())?;
            rank.exchange(&self.view(), Occasion::Change { released: true })?;
        }
        self.launch_forces(wanted, false)?;
        self.meet()
    }

    /// With several ranks and distributed arrays: waits until all have used what this one changes next.
    fn meet(&self) -> Result<()> {
        self.rank.as_ref().map_or(Ok(()), |rank| rank.meet(&self.view()))
    }

    /// Launches the integrators' phases that run at this point of a step.
    pub(super) fn launch_integrators(&self, when: When) -> Result<()> {
        self.stage()?.integrators.run(&self.view(), when)
    }

    /// Constrains distances and places particles without mass after a change of the state, and makes the list anew if they are far from where it knows
    /// them.
    pub(super) fn place_anew(&mut self) -> Result<()> {
        if !self.stage()?.forces.places() {
            return Ok(());
        }
        self.launch_place(Moment::Start)?;
        if let Some(rank) = &self.rank {
            // a rebuild that one rank requests is done by all
            rank.barrier(&self.view())?;
        }
        self.launch_requested_rebuild(true)?;
        self.sync_globals()?;
        if !self.globals.is_halted() {
            return Ok(());
        }
        // no room in the list, or in messages
        self.make_room()?;
        self.rebuild_now(SortWhen::Due)
    }

    /// Destroys all graphs; needed when an address in them changes.
    pub(super) fn destroy_graphs(&mut self) -> Result<()> {
        if let Some(stage) = &mut self.stage {
            for g in std::mem::take(&mut stage.graphs.captured).into_values() {
                self.device.destroy_graph(g)?;
            }
        }
        Ok(())
    }

    /// Returns the graph of this content and captures it at its first use. Returns `None` if steps are launched one by
    /// one.
    fn graph(&mut self, content: GraphContent) -> Result<Option<Graph>> {
        let graphs = &self.stage()?.graphs;
        // a profile times single launches
        if self.device.profile().is_on() || graphs.unsupported || !graphs.not_capturable.is_empty() {
            return Ok(None);
        }
        if let Some(g) = graphs.captured.get(&content) {
            return Ok(Some(*g));
        }
        let (steps, wanted) = match content {
            GraphContent::Steps(steps) => (steps, Wanted::FORCE),
            GraphContent::StepWithSums => (1, Wanted::ALL),
            GraphContent::StepsKernel { .. } => (0, Wanted::FORCE),
        };
        let device = self.device.clone();
        let captured = device.capture(&mut || match content {
            GraphContent::StepsKernel { many } => self.launch_steps_kernel(many),
            _ => self.launch_steps(steps, wanted),
        })?;
        if let Some(stage) = &mut self.stage {
            stage.graphs.unsupported = captured.is_none();
            stage.graphs.captured.extend(captured.map(|g| (content, g)));
        }
        self.gather_threads()?;
        Ok(captured)
    }

    /// Does `steps` steps; the last one computes what is wanted.
    pub(super) fn run_steps(&mut self, steps: u64, wanted: Wanted) -> Result<()> {
        self.gather_threads()?;
        self.searched = None;
        let target = self.globals.step + steps;
        while self.globals.step < target {
            let remaining = target - self.globals.step;
            if self.sends_messages() {
                self.launch_answered_steps(remaining, wanted)?;
            } else {
                self.launch_all_steps(remaining, wanted)?;
            }
            let searches = self.expected.clone();
            if let Some(updater) = &searches {
                self.device.profile().set_part(&updater.name);
                queue_search(self, updater, target)?;
            }
            self.meet_after_steps()?;
            self.sync_globals()?;
            if !self.globals.is_halted() {
                self.searched = searches.map(|updater| updater.id);
            } else {
                let full = self.globals.step == target && wanted.more_than_force();
                self.recover(if full { wanted } else { Wanted::FORCE })?;
            }
        }
        Ok(())
    }

    /// Launches steps, the last of which computes what is wanted.
    fn launch_all_steps(&mut self, steps: u64, wanted: Wanted) -> Result<()> {
        let force_steps = if wanted.more_than_force() { steps - 1 } else { steps };
        self.run_force_steps(force_steps)?;
        if force_steps == steps {
            return Ok(());
        }
        match self.graph(GraphContent::StepWithSums)? {
            Some(g) => self.device.launch_graph(g),
            None => self.launch_steps(1, wanted),
        }
    }

    /// Launches steps that only compute forces.
    fn run_force_steps(&mut self, steps: u64) -> Result<()> {
        if steps > 0
            && !self.device.profile().is_on()
            && let Some(steps_kernel) = &self.stage()?.steps_kernel
        {
            let requested = u32::try_from(steps).unwrap_or(u32::MAX);
            steps_kernel.request(requested)?;
            let many = steps >= MANY_STEPS;
            match self.graph(GraphContent::StepsKernel { many })? {
                Some(g) => self.device.launch_graph(g)?,
                None => self.launch_steps_kernel(many)?,
            }
            return self.run_force_steps(steps - u64::from(requested));
        }
        if steps == 0 {
            return Ok(());
        }
        // few sizes, so that few graphs are captured; small ones when they are needed for the second time
        let mut batch = 1 << steps.min(BATCH).ilog2();
        if batch < BATCH && self.stage.as_mut().is_some_and(|stage| stage.graphs.seen.insert(batch)) {
            batch = 1;
        }
        match self.graph(GraphContent::Steps(batch))? {
            Some(g) => (0..steps / batch).try_for_each(|_| self.device.launch_graph(g))?,
            // a profile times the phases of each step
            None if self.device.profile().is_on() => {
                return (0..steps).try_for_each(|_| self.launch_steps(1, Wanted::FORCE));
            }
            None => return self.launch_steps(steps, Wanted::FORCE),
        }
        self.run_force_steps(steps % batch)
    }

    /// Recovers from a halt: makes room in the neighbor list or a new cell grid, then finishes the current step.
    ///
    /// # Errors
    /// Returns an error for any other fault.
    fn recover(&mut self, wanted: Wanted) -> Result<()> {
        self.make_room()?;
        debug!("step {}: the rebuild begins again", self.globals.step);
        self.gather_threads()?;
        self.launch_rebuild(SortWhen::Due, true)?;
        self.launch_after_rebuild(wanted, false, false)?;
        self.meet_after_steps()?;
        self.sync_globals()?;
        // the longer list may overflow again
        if self.globals.is_halted() { self.recover(wanted) } else { Ok(()) }
    }

    /// Makes room in the neighbor list, or a new cell grid for a changed box, if that is why kernels halted.
    ///
    /// # Errors
    /// Returns an error for any other fault.
    pub(super) fn make_room(&mut self) -> Result<()> {
        if self.rank.is_some() {
            // the graphs of all ranks, because all must capture them again at the same time
            self.destroy_graphs()?;
        }
        let made = self.make_own_room();
        let uneven = match &self.rank {
            None => made?,
            Some(rank) => {
                let own = rank.agree(made)?;
                rank.any(own)?
            }
        };
        if let Some(rank) = &self.rank {
            // those that had room have ended the rebuild, and build the list again with the others
            self.globals.rebuilds = rank.smallest(self.globals.rebuilds)?;
            let is_fault = rank.any(self.globals.fault.get().code != 0)?;
            if let Some(messages) = rank.messages() {
                // without a fault, there was no room in messages
                messages.forget_sizes(!is_fault);
            }
        }
        if uneven {
            self.use_plain_list()?;
        }
        self.globals.halt.set(0);
        self.globals.fault = FaultRecord::default();
        self.globals.longest_row = 0;
        self.upload_globals()?;
        if let Some(stage) = &self.stage {
            stage.forces.reset()?;
            stage.integrators.reset()?;
            if let Some(steps_kernel) = &stage.steps_kernel {
                steps_kernel.reset()?;
            }
        }
        debug!("neighbor list: {:?}", self.rebuild.view());
        Ok(())
    }

    /// Makes room for the fault of this device. Returns whether the list must become a plain one.
    fn make_own_room(&mut self) -> Result<bool> {
        let f = self.globals.fault.get();
        let step = self.globals.step;
        if f.code == 0 && self.rank.is_some() {
            // another rank has halted
            return Ok(false);
        }
        if f.code == FaultKind::ListOverflow as u32 && self.rebuild.staged.is_some() {
            self.destroy_graphs()?;
            let grown = self.rebuild.staged.as_mut().map_or(Ok(None), |staged| staged.make_room())?;
            match grown {
                Some(grown) => info!("step {step}: the neighbor list grows to {grown}"),
                None => return Ok(true),
            }
        } else if f.code == FaultKind::ListOverflow as u32 {
            let entries = f.detail + spare_entries(self.facts.n, f.detail);
            info!("step {step}: the neighbor list grows to {entries} entries per particle");
            self.destroy_graphs()?;
            self.rebuild.make_room(entries)?;
        } else if f.code == FaultKind::GridOutgrown as u32 {
            let [x, y, z] = self.globals.box_length;
            info!("step {step}: new cell grid for the box {x:.3} × {y:.3} × {z:.3}");
            self.destroy_graphs()?;
            self.reduce_box()?;
            let tilt = self.globals.tilt;
            self.rebuild.set_grid([self.globals.box_length.map(|l| GRID_MARGIN * l), tilt])?;
        } else {
            let of = |s| Stage::component(s, f.component);
            return Err(crate::backend::fault_error(step, f, self.stage.as_ref().and_then(of)));
        }
        Ok(false)
    }

    /// Replaces a box that is too skewed; see [`crate::state::reduction`]. The neighbor list must be rebuilt.
    fn reduce_box(&mut self) -> Result<()> {
        let Some(reduction) = Reduction::of(&self.globals, self.rebuild.most_tilt) else { return Ok(()) };
        let array = |s: &Self, id: ArrayId| -> Result<Bytes> {
            let Some(buffer) = &s.arrays[id as usize].1 else { return Ok(Bytes::default()) };
            let data = buffer.download()?;
            let mut bytes = Bytes::zeroed(data.len() / s.facts.n.max(1), s.facts.n);
            bytes.bytes_mut().copy_from_slice(&data);
            Ok(bytes)
        };
        let ids = [ArrayId::PosType, ArrayId::PosLow, ArrayId::Image];
        let [mut pos, mut low, mut image] = [array(self, ids[0])?, array(self, ids[1])?, array(self, ids[2])?];
        match self.facts.precision {
            Precision::Double => reduction.apply::<Float64>([&mut pos, &mut low, &mut image]),
            _ => reduction.apply::<Fixed>([&mut pos, &mut low, &mut image]),
        }
        for (id, bytes) in ids.into_iter().zip([pos, low, image]) {
            if let Some(buffer) = &self.arrays[id as usize].1 {
                buffer.upload(bytes.bytes())?;
            }
        }
        self.globals.tilt = reduction.tilt;
        Ok(())
    }
}
