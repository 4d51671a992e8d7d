//! The GPU backend: state, rebuilds, stages, updates.

use super::arrays::Buffer;
use super::forces::Forces;
use super::integrate::{Integrators, PositionScaling};
use super::links::DeviceLinks;
use super::pair_loop::PairLayout;
use super::ranks::{Place, Rank, RankCollectives};
use super::rebuild::{Rebuild, SortWhen};
use super::step::Graphs;
use super::steps_kernel::StepsKernel;
use super::storage::EDITS;
use crate::backend::{
    Array, Backend, ListReport, ShearState as _, Storage as _, SystemSums, call_updater, export, import,
    initial_globals, list_radius, lists_members, most_tilt, pair_rules, reads_all_rows, state_view,
};
use crate::device::{Device, Kernel, SourceUnit};
use crate::plan::{Plan, StagePlan, initial};
use crate::plugins::Component;
use crate::plugins::host::HostServices;
use crate::profile::Timing;
use crate::state::arrays::{ArrayId, ParticleArray};
use crate::state::topology::{LinkTables, PairRules, Topology};
use crate::state::{Facts, RawState};
use galamost_plugin_api::abi::{Extent, Opaque, WireHost};
use galamost_plugin_api::error::{Error, Result};
use galamost_plugin_api::integrator::When;
use galamost_plugin_api::precision::Precision;
use galamost_plugin_api::snapshot::LinkList;
use galamost_plugin_api::updater::Edit;
use galamost_plugin_api::views::{Globals, LinkView, ListView, StateView, Wanted};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tracing::info;

/// The compiled parts of a stage.
pub(super) struct Stage {
    /// The components of `forces`.
    pub components: Vec<Arc<Component>>,
    pub forces: Forces,
    pub integrators: Integrators,
    /// Forces are evaluated a second time at the end of each step.
    pub forces_again: bool,
    /// The persistent kernel, which does many steps in one launch.
    pub steps_kernel: Option<StepsKernel>,
    pub graphs: Graphs,
}

impl Stage {
    /// Returns a component by its number.
    pub fn component(&self, id: u32) -> Option<&Component> {
        self.integrators.component(id).or_else(|| self.forces.component(id))
    }
}

/// The backend of a device that runs CUDA kernels.
pub struct GpuSystem {
    /// First field, so graphs and kernels are dropped before the memory that they use.
    pub(super) stage: Option<Stage>,
    pub(super) rebuild: Rebuild,
    /// The run began with a staged list and continues with a plain one.
    pub(super) left_staged_list: bool,
    pub(super) links: DeviceLinks,
    pub(super) facts: Facts,
    pub(super) globals: Globals,
    device_globals: Buffer,
    /// The state for plugins and kernels; no address changes as long as there is this system.
    view: StateView,
    /// Particle arrays in the order of the device; `None` for one that the precision does not store.
    pub(super) arrays: Vec<(ParticleArray, Option<Buffer>)>,
    pub(super) topology: Topology,
    pub(super) tables: LinkTables,
    /// Changes of topology that updaters request: their number, and the changes from offset [`EDITS`] on.
    pub(super) edits: Buffer,
    /// An updater may have requested some of them.
    pub(super) edits_are_used: bool,
    /// The updater whose search follows the next steps.
    pub(super) expected: Option<Arc<Component>>,
    /// The number of the updater that has searched the present state.
    pub(super) searched: Option<u32>,
    pub(super) integrator_states: BTreeMap<u32, (Buffer, usize)>,
    motion: (Buffer, Buffer),
    motion_sums: Kernel,
    system: u64,
    buffer: f64,
    pub(super) host: HostServices,
    scaling: PositionScaling,
    pub(super) rules: PairRules,
    /// Set if several GPUs share the run.
    pub(super) rank: Option<Arc<Rank>>,
    pub(super) device: Arc<dyn Device>,
}

impl GpuSystem {
    /// Returns a system with the initial state of a plan.
    ///
    /// # Errors
    /// Returns the driver's error, or an error if the initial state lacks an array that a component requires.
    pub fn new(plan: &Plan, device: Arc<dyn Device>) -> Result<Self> {
        let (facts, raw) = initial(plan)?;
        Self::of_rank(plan, facts, &raw, device, None, None)
    }

    /// Returns a system with this state, also as one rank of several. `host`: services that components use already. All ranks call it.
    ///
    /// # Errors
    /// As for [`Self::new`], or an error if another rank has failed.
    pub(super) fn of_rank(
        plan: &Plan,
        facts: Facts,
        raw: &RawState,
        device: Arc<dyn Device>,
        rank: Option<Place>,
        host: Option<HostServices>,
    ) -> Result<Self> {
        let (n, (r_list, buffer)) = (facts.n, list_radius(plan));
        super::define_macros(plan, &*device)?;
        let staged = super::staged::chosen(plan, &*device)?.then_some(buffer);
        if host.is_none() && rank.as_ref().is_none_or(|place| place.ranges.rank == 0) {
            super::staged::report(plan, staged.is_some())?;
        }
        let rank = rank.map(|place| Rank::new(plan, &device, n, place, staged.is_some()).map(Arc::new)).transpose()?;
        let system =
            device.compile(&SourceUnit::new("system", "#include \"galamost/system.cuh\"\n", facts.precision))?;
        let host = host.unwrap_or_else(|| HostServices::new(device.clone(), facts.precision));
        let (arrays, sorted_arrays) = super::arrays::allocate_particles(&device, rank.as_deref(), &facts, &host)?;
        let small = plan.molecules.as_ref().filter(|_| lists_members(plan));
        let read = reads_all_rows(plan, rank.as_ref().is_some_and(|r| r.shares_forces));
        let mut rebuild = Rebuild::new(
            &device,
            facts.precision,
            n,
            [plan.snapshot.box_length, plan.snapshot.tilt],
            facts.dimensions,
            plan.is_triclinic(),
            r_list,
            small,
            staged,
            &sorted_arrays,
            rank.clone(),
            read,
        )?;
        rebuild.most_tilt = most_tilt(plan);
        let rules = pair_rules(plan);
        let tables = LinkTables::new(&raw.topology, &rules, n);
        let links = DeviceLinks::new(&device, facts.precision, &tables, plan.molecules.as_ref())?;
        let blocks = 4 * device.multiprocessors() as usize;
        let motion = (Buffer::new(&device, 80 * blocks)?, Buffer::new(&device, 4)?);
        let mut s = Self {
            stage: None,
            rebuild,
            left_staged_list: false,
            links,
            globals: initial_globals(plan),
            device_globals: Buffer::new(&device, size_of::<Globals>())?,
            view: StateView::empty(),
            arrays,
            topology: raw.topology.clone(),
            tables,
            edits: Buffer::new(&device, EDITS + 4096 * size_of::<Edit>())?,
            edits_are_used: false,
            expected: None,
            searched: None,
            integrator_states: BTreeMap::new(),
            motion,
            motion_sums: device.kernel(system, "motion_sums")?,
            scaling: PositionScaling::new(&*device, system)?,
            system,
            buffer,
            host,
            rules,
            facts,
            rank,
            device,
        };
        s.view = s.view_of_arrays();
        s.share_arrays(plan)?;
        if let Some(rank) = &s.rank {
            s.host.set_ranks(rank.clone());
            if rank.shares_forces {
                s.host.set_collectives(Arc::new(RankCollectives::new(rank.clone(), s.device_globals.address())?));
            }
        }
        s.import(raw)?;
        Ok(s)
    }

    /// Frees most memory and returns the services that components use, before another system continues with the same state. No device
    /// of the run uses the memory any more.
    pub(super) fn release(&mut self) -> Result<HostServices> {
        self.destroy_graphs()?;
        self.stage = None;
        self.arrays.clear();
        self.rebuild.release()?;
        self.edits = Buffer::new(&self.device, EDITS)?;
        self.rank = None;
        Ok(self.host.for_next_system())
    }

    /// Returns the view of the state for plugins and kernels.
    pub(super) fn view(&self) -> StateView {
        self.view
    }

    fn view_of_arrays(&self) -> StateView {
        let own = self.rank.as_ref().map_or(0..self.facts.n, |r| r.own());
        let view = state_view(&self.facts, self.device_globals.address(), |array| {
            let buffer = match array {
                Array::Fixed(id) => self.arrays[id as usize].1.as_ref(),
                Array::Optional(name) => {
                    self.arrays.iter().find(|(a, _)| a.component_name() == Some(name)).and_then(|(_, b)| b.as_ref())
                }
            };
            buffer.map_or(0, Buffer::address)
        });
        StateView { own_begin: own.start as u32, own_end: own.end as u32, ..view }
    }

    /// Returns an array that is always stored.
    pub(super) fn array(&self, id: ArrayId) -> Result<&Buffer> {
        let buffer = self.arrays.get(id as usize).and_then(|(_, buffer)| buffer.as_ref());
        buffer.ok_or_else(|| Error::Run(format!("the array `{}` is not stored", id.name())))
    }

    /// Copies the globals from the device, after all earlier launches have finished.
    pub(super) fn sync_globals(&mut self) -> Result<()> {
        self.globals = self.download_globals()?;
        Ok(())
    }

    /// Returns the globals of the device, after all earlier launches have finished.
    pub(super) fn download_globals(&self) -> Result<Globals> {
        let bytes = self.device_globals.download()?;
        Globals::from_bytes(&bytes).ok_or_else(|| Error::Run(format!("{} bytes are no globals", bytes.len())))
    }

    /// Copies the globals to the device.
    pub(super) fn upload_globals(&mut self) -> Result<()> {
        self.device_globals.upload(self.globals.bytes())
    }

    /// Scales positions with the box, where they are stored as lengths.
    pub(super) fn scale_positions(&self) -> Result<()> {
        if self.facts.precision != Precision::Double {
            return Ok(());
        }
        self.scaling.run(&*self.device, &self.view())
    }

    /// Compiles forces for the present list.
    fn compile_forces(&self, components: &[Arc<Component>]) -> Result<Forces> {
        let f = &self.facts;
        let layout = match &self.rebuild.staged {
            Some(_) => {
                let team = super::staged::team(&*self.device, self.facts.n);
                PairLayout::staged(self.globals.r_cut, self.globals.r_list, team)
            }
            None => PairLayout::Plain { team: self.rebuild.team() },
        };
        Forces::new(
            &self.device,
            self.system,
            components,
            f.precision,
            f.n,
            f.n_types,
            layout,
            self.rules.special,
            f.seed,
            f.mass * (self.globals.r_cut / self.globals.dt).powi(2),
            self.rank.clone(),
        )
    }

    /// Continues with a plain list: the particles have become too uneven for a staged one.
    pub(super) fn use_plain_list(&mut self) -> Result<()> {
        if self.rank.as_ref().is_none_or(|rank| rank.number() == 0) {
            info!("step {}: the density is uneven; the run continues with a plain neighbor list", self.globals.step);
        }
        self.destroy_graphs()?;
        self.rebuild.make_plain(self.globals.box_length)?;
        self.left_staged_list = true;
        if let Some(stage) = self.stage.take() {
            let forces = self.compile_forces(&stage.components)?;
            self.stage = Some(Stage { forces, ..stage });
        }
        Ok(())
    }

    /// Checks for faults after a force evaluation outside of a step. The neighbor list is valid, so a halt means a fault.
    pub(super) fn sync_after_forces(&mut self) -> Result<()> {
        if let Some(rank) = &self.rank {
            // a fault of one rank halts all
            rank.barrier(&self.view())?;
        }
        self.sync_globals()?;
        if self.globals.is_halted() { self.make_room() } else { Ok(()) }
    }

    /// Rebuilds the neighbor list, with larger buffers if needed.
    pub(super) fn rebuild_now(&mut self, when: SortWhen) -> Result<()> {
        loop {
            self.gather_threads()?;
            self.launch_rebuild(when, true)?;
            self.sync_globals()?;
            if !self.globals.is_halted() {
                return Ok(());
            }
            self.make_room()?;
        }
    }
}

impl Backend for GpuSystem {
    fn begin_stage(&mut self, stage: &StagePlan, forces_are_valid: bool) -> Result<()> {
        self.destroy_graphs()?;
        self.stage = None;
        self.globals.dt = stage.stage.dt;
        self.globals.evaluate();
        self.globals.begin_shear(stage, &self.facts)?;
        self.upload_globals()?;
        let mut forces = self.compile_forces(&stage.forces)?;
        if let Some(rank) = &self.rank {
            rank.set_reads(forces.reads_velocities(), forces.reads_orientations());
        }
        let f = &self.facts;
        let (team, device) = (self.rebuild.team(), &self.device);
        let optional = |(a, b): &(ParticleArray, Option<Buffer>)| {
            Some((a.component_name()?.to_string(), b.as_ref().map_or(0, Buffer::address)))
        };
        let arrays = self.arrays.iter().filter_map(optional).collect();
        let mut integrators = Integrators::new(
            device,
            self.system,
            stage,
            f,
            &self.globals,
            &arrays,
            &mut self.integrator_states,
            self.rank.clone(),
        )?;
        let prevented: Vec<String> =
            forces.not_capturable().into_iter().chain(integrators.not_capturable()).map(String::from).collect();
        if !prevented.is_empty() {
            info!("steps are launched one by one, not as a graph, because of {}", prevented.join(", "));
        }
        let forces_again = stage.forces_again();
        let steps_kernel =
            if forces_again || !prevented.is_empty() || self.rebuild.staged.is_some() || self.rank.is_some() {
                None
            } else {
                StepsKernel::new(device, &forces, &integrators, f.precision, f.n, f.n_types, team)?
            };
        if steps_kernel.is_none() && !forces_again && !forces.places() {
            integrators.join_steps(f.precision)?;
        }
        if steps_kernel.is_none() {
            forces.join_bonds(f.precision)?;
        }
        let components = stage.forces.clone();
        self.stage =
            Some(Stage { components, forces, integrators, forces_again, steps_kernel, graphs: Graphs::new(prevented) });
        if forces_are_valid { Ok(()) } else { self.evaluate() }
    }

    fn evaluate(&mut self) -> Result<()> {
        self.place_anew()?;
        self.gather_threads()?;
        self.launch_forces_anew(Wanted::ALL)?;
        self.launch_integrators(When::Start)?;
        self.sync_after_forces()
    }

    fn step(&self) -> u64 {
        self.globals.step
    }

    fn advance(&mut self, steps: u64, wanted: Wanted, _: &AtomicBool) -> Result<u64> {
        let agreed = self.device.agree_on_steps(steps)?;
        self.run_steps(agreed, if agreed == steps { wanted } else { Wanted::FORCE })?;
        Ok(agreed)
    }

    fn sums(&mut self) -> Result<SystemSums> {
        let kernel = self.motion_sums;
        let view = self.view();
        let Some(stage) = &self.stage else { return Err(Error::Run("no stage has begun".into())) };
        let (partial, counter, result) =
            (self.motion.0.address(), self.motion.1.address(), stage.forces.motion_address());
        let pointer = |p: *const u8| p.cast_mut().cast::<Opaque>();
        let args = [
            pointer(std::ptr::from_ref(&view).cast()),
            pointer(std::ptr::from_ref(&partial).cast()),
            pointer(std::ptr::from_ref(&counter).cast()),
            pointer(std::ptr::from_ref(&result).cast()),
        ];
        let blocks = (4 * self.device.multiprocessors()).min(self.facts.n.div_ceil(256) as u32);
        // SAFETY: the kernel takes the view of the state and the addresses of its partial sums, its counter and its result
        unsafe { self.device.launch(kernel, Extent::from(blocks), Extent::from(256), 0, &args)? };
        let reported = stage.forces.reported()?;
        Ok(SystemSums {
            kinetic_tensor: std::array::from_fn(|k| reported.motion[k]),
            momentum: std::array::from_fn(|k| reported.motion[6 + k]),
            rotational: reported.motion[9],
            components: reported.components,
            quantities: reported.quantities,
            reservoir: stage.integrators.reservoir(&self.integrator_states)?,
        })
    }

    fn read(&mut self, section: &str) -> Result<Vec<u8>> {
        let found = self.arrays.iter().find(|(a, _)| a.name == section);
        let (array, buffer) = found.ok_or_else(|| Error::Run(format!("there is no section `{section}`")))?;
        let stride = array.element.stride(self.facts.precision);
        let Some(buffer) = buffer else { return Ok(vec![0; stride * self.facts.n]) };
        let bytes = buffer.download()?;
        let mut out = vec![0; stride * self.facts.n];
        for (row, tag) in bytes.chunks_exact(stride).zip(self.tags()?) {
            out[tag as usize * stride..][..stride].copy_from_slice(row);
        }
        Ok(out)
    }

    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn topology(&self) -> &Topology {
        &self.topology
    }

    fn expect_update(&mut self, updater: Option<&Arc<Component>>) {
        (self.expected, self.searched) = (updater.filter(|u| u.needs.searches).cloned(), None);
    }

    fn update(&mut self, updater: &Arc<Component>, wanted: Wanted) -> Result<()> {
        let searched = self.searched.take() == Some(updater.id);
        let Some(update) = call_updater(self, updater, searched)? else { return Ok(()) };
        self.apply_update(updater, update, wanted)
    }

    fn export(&mut self) -> Result<RawState> {
        export(self)
    }

    fn import(&mut self, state: &RawState) -> Result<()> {
        import(self, state)
    }

    fn globals(&self) -> Globals {
        self.globals.clone()
    }

    fn box_length(&self) -> [f64; 3] {
        self.globals.box_length
    }

    fn views(&mut self) -> Result<(StateView, ListView, LinkView)> {
        Ok((self.view(), self.rebuild.view(), self.links.view(LinkList::Bonds)))
    }

    fn end_views(&mut self) {}

    fn host(&self) -> &WireHost {
        self.host.wire()
    }

    fn list_report(&mut self) -> Result<ListReport> {
        self.sync_globals()?;
        let (mean, longest) = self.rebuild.neighbors()?;
        Ok(ListReport {
            r_list: self.rebuild.r_list,
            buffer: self.buffer,
            builds: self.globals.rebuilds,
            mean,
            longest,
        })
    }

    fn device(&self) -> Option<Arc<dyn Device>> {
        Some(self.device.clone())
    }

    fn memory(&self) -> u64 {
        self.device.memory()
    }

    fn begin_profile(&mut self) {
        self.device.profile().begin();
    }

    fn end_profile(&mut self) -> Result<Vec<Timing>> {
        self.device.end_profile()
    }
}
