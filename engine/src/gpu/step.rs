//! The sequence of launches that is one step, and its graphs.

use super::system::{GpuSystem, Stage};
use crate::device::Graph;
use galamost_plugin_api::error::{Error, Result};
use galamost_plugin_api::integrator::When;
use galamost_plugin_api::views::{Fault, FaultKind, Wanted};
use tracing::{debug, info};

/// Steps in the graph that does most of the work: the pause between two graphs counts only once for all of them.
const MANY: u64 = 16;

/// New cells are made for a box this much shorter than it is, so that they hold for a while.
const GRID_SHRINKS: f64 = 0.95;

/// What a graph holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Content {
    /// One step, forces only.
    One,
    /// [`MANY`] steps, forces only.
    Many,
    /// One step with energies and virials.
    Full,
    /// As many steps, forces only, as one kernel is asked for.
    Asked,
}

/// Graphs of a stage.
#[derive(Default)]
pub(super) struct Graphs {
    made: [Option<Graph>; 4],
    /// Components that prevent capture; empty if there are none.
    prevented: Vec<String>,
    /// The device has no graphs.
    unsupported: bool,
}

impl Graphs {
    /// No graphs yet; `prevented` names components that cannot be captured.
    pub fn new(prevented: Vec<String>) -> Self {
        Self { prevented, ..Self::default() }
    }
}

impl GpuSystem {
    fn stage(&self) -> Result<&Stage> {
        self.stage.as_ref().ok_or_else(|| Error::Run("no stage has begun".into()))
    }

    /// Launches one step.
    fn launch_step(&self, wanted: Wanted) -> Result<()> {
        let stage = self.stage()?;
        let view = self.view();
        stage.integrators.run(&view, When::Before)?;
        self.device.if_rebuild(view.globals.address, &mut || self.launch_rebuild())?;
        self.launch_end(wanted)
    }

    /// Launches what follows once particles have moved and the list is good.
    fn launch_end(&self, wanted: Wanted) -> Result<()> {
        if !self.stage()?.forces_again {
            self.launch_forces(wanted)?;
            return self.launch_integrators(When::After);
        }
        self.launch_forces(Wanted::FORCE)?;
        self.launch_integrators(When::After)?;
        self.launch_forces(wanted)
    }

    /// Launches as many steps as were asked for.
    fn launch_asked(&self) -> Result<()> {
        let stage = self.stage()?;
        let Some(many) = &stage.many else { return Ok(()) };
        let links = [self.links.view(0), self.links.view(1), self.links.view(2)];
        let (state, list) = (self.view(), self.rebuild.view());
        many.run(&stage.forces, &stage.integrators, &state, &list, links, &mut || self.launch_rebuild())
    }

    /// Launches a rebuild.
    pub(super) fn launch_rebuild(&self) -> Result<()> {
        self.rebuild.run(&self.view(), &self.links.to_index(), self.links.excluded())
    }

    /// Launches a force evaluation.
    pub(super) fn launch_forces(&self, wanted: Wanted) -> Result<()> {
        let links = [self.links.view(0), self.links.view(1), self.links.view(2)];
        let wanted = if self.stage()?.integrators.changes_box() { Wanted::ALL } else { wanted };
        self.stage()?.forces.run(&self.view(), &self.rebuild.view(), links, wanted)
    }

    /// Launches the phases that are due.
    pub(super) fn launch_integrators(&self, when: When) -> Result<()> {
        self.stage()?.integrators.run(&self.view(), when)
    }

    /// Forgets graphs: an address in them has changed.
    pub(super) fn forget_graphs(&mut self) -> Result<()> {
        if let Some(stage) = &mut self.stage {
            for g in stage.graphs.made.iter_mut().filter_map(Option::take) {
                self.device.forget(g)?;
            }
        }
        Ok(())
    }

    /// The graph of this content, captured at its first use; `None` where steps are launched one by one.
    fn graph(&mut self, content: Content) -> Result<Option<Graph>> {
        let graphs = &self.stage()?.graphs;
        // launches are timed one by one
        if self.device.profile().is_on() || graphs.unsupported || !graphs.prevented.is_empty() {
            return Ok(None);
        }
        if let Some(g) = graphs.made[content as usize] {
            return Ok(Some(g));
        }
        let (steps, wanted) = match content {
            Content::One => (1, Wanted::FORCE),
            Content::Many => (MANY, Wanted::FORCE),
            Content::Full => (1, Wanted::ALL),
            Content::Asked => (0, Wanted::FORCE),
        };
        let device = self.device.clone();
        let made = device.capture(&mut || match content {
            Content::Asked => self.launch_asked(),
            _ => (0..steps).try_for_each(|_| self.launch_step(wanted)),
        })?;
        if let Some(stage) = &mut self.stage {
            stage.graphs.made[content as usize] = made;
            stage.graphs.unsupported = made.is_none();
        }
        Ok(made)
    }

    /// Does `steps` steps, the last with what is wanted.
    pub(super) fn run_steps(&mut self, steps: u64, wanted: Wanted) -> Result<()> {
        let target = self.globals.step + steps;
        while self.globals.step < target {
            let left = target - self.globals.step;
            let plain = if wanted.more_than_force() { left - 1 } else { left };
            self.run_plain(plain)?;
            if plain < left {
                match self.graph(Content::Full)? {
                    Some(g) => self.device.replay(g)?,
                    None => self.launch_step(wanted)?,
                }
            }
            self.sync_globals()?;
            if self.globals.halt != 0 {
                let full = self.globals.step == target && wanted.more_than_force();
                self.recover(if full { wanted } else { Wanted::FORCE })?;
            }
        }
        Ok(())
    }

    /// Launches steps that only need forces.
    fn run_plain(&mut self, steps: u64) -> Result<()> {
        if steps > 0
            && !self.device.profile().is_on()
            && let Some(many) = &self.stage()?.many
        {
            let asked = u32::try_from(steps).unwrap_or(u32::MAX);
            many.ask(asked)?;
            match self.graph(Content::Asked)? {
                Some(g) => self.device.replay(g)?,
                None => self.launch_asked()?,
            }
            return self.run_plain(steps - u64::from(asked));
        }
        if steps >= MANY
            && let Some(g) = self.graph(Content::Many)?
        {
            (0..steps / MANY).try_for_each(|_| self.device.replay(g))?;
            return self.run_plain(steps % MANY);
        }
        for _ in 0..steps {
            match self.graph(Content::One)? {
                Some(g) => self.device.replay(g)?,
                None => self.launch_step(Wanted::FORCE)?,
            }
        }
        Ok(())
    }

    /// After a halt: makes room if that is what is missing and ends the step under way; any other fault is an error.
    fn recover(&mut self, wanted: Wanted) -> Result<()> {
        self.make_room()?;
        self.launch_rebuild()?;
        self.launch_end(wanted)?;
        self.sync_globals()?;
        // the new list may be too short as well
        if self.globals.halt != 0 { self.recover(wanted) } else { Ok(()) }
    }

    /// Makes room in the list, or cells for a box that has changed, if that is why kernels stopped.
    ///
    /// # Errors
    /// Every other fault.
    pub(super) fn make_room(&mut self) -> Result<()> {
        let f = self.globals.fault;
        let step = self.globals.step;
        if f.code == FaultKind::ListOverflow as u32 {
            // little more: the longest row of many grows slowly, rows are most of the memory, and have a multiple of 8 anyway
            let entries = f.detail + 1;
            info!("step {step}: the neighbor list grows to {entries} entries per particle");
            self.forget_graphs()?;
            self.rebuild.make_room(entries)?;
        } else if f.code == FaultKind::GridOutgrown as u32 {
            let [x, y, z] = self.globals.box_length;
            info!("step {step}: new cells for the box {x:.3} × {y:.3} × {z:.3}");
            self.forget_graphs()?;
            // with room for it to shrink
            self.rebuild.set_grid(self.globals.box_length.map(|l| GRID_SHRINKS * l))?;
        } else {
            let of = |s| Stage::component(s, f.component);
            return Err(crate::backend::fault_error(step, f, self.stage.as_ref().and_then(of)));
        }
        self.globals.halt = 0;
        self.globals.fault = Fault::default();
        self.globals.longest_row = 0;
        self.upload_globals()?;
        if let Some(stage) = &self.stage {
            stage.forces.reset()?;
            stage.integrators.reset()?;
            if let Some(many) = &stage.many {
                many.reset()?;
            }
        }
        debug!("list: {:?}", self.rebuild.view());
        Ok(())
    }
}
