//! The state on a device.

use super::arrays::{Buffer, words};
use super::forces::Forces;
use super::integrate::{Integrators, PositionScaling};
use super::links::DeviceLinks;
use super::rebuild::{Rebuild, SortedArray};
use super::step::Graphs;
use super::steps_kernel::StepsKernel;
use crate::backend::{Backend, ListReport, Sheared as _, SystemSums, initial_globals, list_radius, lists_members};
use crate::device::{Device, Kernel, PluginServices, SourceUnit};
use crate::plan::initial;
use crate::plan::{Plan, StagePlan};
use crate::plugins::Component;
use crate::plugins::host::HostServices;
use crate::profile::Timing;
use crate::state::topology::{LinkTables, Topology, Touched};
use crate::state::{Facts, RawState};
use galamost_plugin_api::abi::{Extent, Opaque, WireHost};
use galamost_plugin_api::device::{DevicePtr, bytes_of};
use galamost_plugin_api::error::{Error, Result};
use galamost_plugin_api::integrator::When;
use galamost_plugin_api::philox::RandomKey;
use galamost_plugin_api::precision::Precision;
use galamost_plugin_api::updater::{Edit, EditQueue, UpdateCall, changed};
use galamost_plugin_api::views::{Globals, LinkView, ListView, SimBox, StateView, Wanted};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tracing::info;

/// Where the changes begin in the memory of [`GpuSystem::edits`].
const EDITS: usize = 64;

/// Changes that are copied together with their number.
const FEW_EDITS: usize = 126;

/// What a stage has compiled.
pub(super) struct Stage {
    pub forces: Forces,
    pub integrators: Integrators,
    /// Forces are computed once more at the end of each step.
    pub forces_again: bool,
    /// Steps that are done by one kernel.
    pub steps_kernel: Option<StepsKernel>,
    pub graphs: Graphs,
}

impl Stage {
    /// A component, for faults.
    pub fn component(&self, id: u32) -> Option<&Component> {
        self.integrators.component(id).or_else(|| self.forces.component(id))
    }
}

/// The backend of a device.
pub struct GpuSystem {
    /// Graphs and kernels of the stage go before the memory they use.
    pub(super) stage: Option<Stage>,
    pub(super) rebuild: Rebuild,
    pub(super) links: DeviceLinks,
    facts: Facts,
    pub(super) globals: Globals,
    device_globals: Buffer,
    /// Sections of particles, in the device's order.
    sections: BTreeMap<String, Buffer>,
    tag: Buffer,
    index_of_tag: Buffer,
    topology: Topology,
    tables: LinkTables,
    /// Changes that updaters ask for: their number at the head, the changes from [`EDITS`] on.
    edits: Buffer,
    integrator_states: BTreeMap<u32, (Buffer, usize)>,
    motion: (Buffer, Buffer),
    motion_sums: Kernel,
    system: u64,
    buffer: f64,
    host: HostServices,
    scaling: PositionScaling,
    exclude: crate::pipeline::Exclusions,
    pub(super) device: Arc<dyn Device>,
}

impl GpuSystem {
    /// The initial state of a plan.
    ///
    /// # Errors
    /// The device's words, or an array that a component requires is not there.
    pub fn new(plan: &Plan, device: Arc<dyn Device>) -> Result<Self> {
        let (facts, raw) = initial(plan)?;
        let n = facts.n;
        let (r_list, buffer) = list_radius(plan);
        if plan.shears()? {
            device.define_macro("GALAMOST_SHEAR");
        }
        let system =
            device.compile(&SourceUnit::new("system", "#include \"galamost/system.cuh\"\n", facts.precision))?;
        let mut sections = BTreeMap::new();
        for name in facts.sections() {
            if name == "pos_low" && facts.precision != Precision::Mixed {
                continue;
            }
            let stride = facts.stride(&name).unwrap_or(0);
            sections.insert(name, Buffer::new(&device, stride * n)?);
        }
        let (tag, index_of_tag) = (Buffer::new(&device, 4 * n)?, Buffer::new(&device, 4 * n)?);
        let host = HostServices::new(Box::new(PluginServices::new(device.clone(), facts.precision)));
        let mut sorted_arrays: Vec<SortedArray> = vec![(tag.address(), 1)];
        for (name, b) in &sections {
            // the positions of the build are those of the sort, and forces are computed anew after it
            let follows = name != "pos_at_build" && name != "force" && (name != "group" || !facts.groups.is_empty());
            if follows {
                sorted_arrays.push((b.address(), facts.stride(name).unwrap_or(0) as u32 / 4));
            }
            if let Some(array) = name.strip_prefix("array.") {
                host.set_array(array, b.address());
            }
        }
        let small = plan.molecules.as_ref().filter(|_| lists_members(plan));
        let (length, d) = (raw.box_length, facts.dimensions);
        let rebuild = Rebuild::new(&device, facts.precision, n, length, d, r_list, small, &sorted_arrays)?;
        let tables = LinkTables::new(&raw.topology, plan.pipeline.neighbors.exclude, n);
        let links = DeviceLinks::new(&device, facts.precision, &tables, plan.molecules.as_ref())?;
        let blocks = 4 * device.multiprocessors() as usize;
        let motion = (Buffer::new(&device, 80 * blocks)?, Buffer::new(&device, 4)?);
        let mut s = Self {
            stage: None,
            rebuild,
            links,
            globals: initial_globals(plan),
            device_globals: Buffer::new(&device, size_of::<Globals>())?,
            sections,
            tag,
            index_of_tag,
            topology: raw.topology.clone(),
            tables,
            edits: Buffer::new(&device, EDITS + 4096 * size_of::<Edit>())?,
            integrator_states: BTreeMap::new(),
            motion,
            motion_sums: device.kernel(system, "motion_sums")?,
            scaling: PositionScaling::new(&*device, system)?,
            system,
            buffer,
            host,
            exclude: plan.pipeline.neighbors.exclude,
            facts,
            device,
        };
        s.import(&raw)?;
        Ok(s)
    }

    /// The state as plugins and kernels see it.
    pub(super) fn view(&self) -> StateView {
        fn at<T>(s: &BTreeMap<String, Buffer>, name: &str) -> DevicePtr<T> {
            DevicePtr::new(s.get(name).map_or(0, Buffer::address))
        }
        let s = &self.sections;
        let turning = s.contains_key("array.angular_momentum");
        StateView {
            precision: self.facts.precision as u32,
            n_local: self.facts.n as u32,
            n_types: self.facts.n_types,
            has_groups: u32::from(!self.facts.groups.is_empty()),
            pos_type: at(s, "pos_type"),
            pos_low: at(s, "pos_low"),
            velocity_mass: at(s, "velocity_mass"),
            force: at(s, "force"),
            image: at(s, "image"),
            tag: DevicePtr::new(self.tag.address()),
            index_of_tag: DevicePtr::new(self.index_of_tag.address()),
            group: at(s, "group"),
            pos_at_build: at(s, "pos_at_build"),
            charge: at(s, "array.charge"),
            diameter: at(s, "array.diameter"),
            globals: DevicePtr::new(self.device_globals.address()),
            quaternion: at(s, "array.quaternion"),
            torque: at(s, "array.torque"),
            angular_momentum: at(s, "array.angular_momentum"),
            inertia: if turning { at(s, "array.inert") } else { DevicePtr::null() },
            ..StateView::empty()
        }
    }

    /// Brings the host's copy of the globals up to date, after everything launched before.
    pub(super) fn sync_globals(&mut self) -> Result<()> {
        let bytes = self.device_globals.download()?;
        // SAFETY: Globals is plain data of exactly this size; the read does not rely on alignment
        self.globals = unsafe { std::ptr::read_unaligned(bytes.as_ptr().cast()) };
        Ok(())
    }

    /// Brings the device's copy of the globals up to date.
    pub(super) fn upload_globals(&self) -> Result<()> {
        self.device_globals.upload(bytes_of(&[self.globals]))
    }

    /// In double precision, takes positions along with the box.
    fn scale_positions(&self) -> Result<()> {
        if self.facts.precision != Precision::Double {
            return Ok(());
        }
        self.scaling.run(&*self.device, &self.view())
    }

    /// After forces outside of a step. The list was long enough before: kernels that stopped met a fault.
    fn sync_after_forces(&mut self) -> Result<()> {
        self.sync_globals()?;
        if self.globals.halt != 0 { self.make_room() } else { Ok(()) }
    }

    /// Rebuilds, with as much room as it takes.
    fn rebuild_now(&mut self) -> Result<()> {
        loop {
            self.launch_rebuild()?;
            self.sync_globals()?;
            if self.globals.halt == 0 {
                return Ok(());
            }
            self.make_room()?;
        }
    }

    fn tags(&self) -> Result<Vec<u32>> {
        Ok(words(&self.tag.download()?))
    }

    /// Puts rows in tag order into the device's order and copies them.
    fn upload_by_tag(&self, name: &str, bytes: &[u8], tags: &[u32]) -> Result<()> {
        let Some(buffer) = self.sections.get(name) else { return Ok(()) };
        let stride = self.facts.stride(name).unwrap_or(0);
        if bytes.len() != stride * self.facts.n {
            return Err(Error::Run(format!("section `{name}` of the checkpoint does not fit this system")));
        }
        if tags.iter().enumerate().all(|(k, t)| k == *t as usize) {
            return buffer.upload(bytes);
        }
        let mut rows = vec![0; bytes.len()];
        // arrays that nobody asked for have no bytes at all
        rows.par_chunks_exact_mut(stride.max(1)).zip(tags).for_each(|(row, t)| {
            row.copy_from_slice(&bytes[*t as usize * stride..][..stride]);
        });
        buffer.upload(&rows)
    }

    /// Runs an updater, with room for as many changes of topology as it asks for.
    fn call_updater(&mut self, updater: &Component) -> Result<(Vec<Edit>, UpdateCall, SimBox)> {
        let part = updater.updater().ok_or_else(|| Error::Run(format!("{} is no updater", updater.name)))?;
        let mut before = SimBox::of(&self.globals);
        if updater.needs.wants.thermo {
            before.kinetic = self.sums()?.kinetic_diagonal();
        }
        loop {
            let room = (self.edits.bytes() - EDITS) / size_of::<Edit>();
            self.device.clear(self.edits.address(), EDITS)?;
            let mut sim_box = before;
            let mut call = UpdateCall {
                size: size_of::<UpdateCall>() as u32,
                component: updater.id,
                first_varying: updater.first_varying,
                changed: 0,
                step: self.globals.step,
                key: RandomKey::new(self.facts.seed, updater.id),
                state: self.view(),
                list: self.rebuild.view(),
                bonds: self.links.view(0),
                edits: EditQueue {
                    edits: DevicePtr::new(self.edits.address() + EDITS as u64),
                    count: DevicePtr::new(self.edits.address()),
                    capacity: room as u32,
                    reserved: 0,
                },
                group: updater.group,
                reserved0: 0,
                sim_box: DevicePtr::new(&raw mut sim_box as u64),
                reserved: [0; 6],
            };
            // SAFETY: every view describes arrays of this device, and nothing else runs meanwhile
            unsafe { part.update(&mut call)? };
            let mut bytes = vec![0; EDITS + FEW_EDITS * size_of::<Edit>()];
            self.edits.download_part(0, &mut bytes)?;
            let asked = words(&bytes[..4])[0] as usize;
            if asked <= room {
                let few = bytes.len();
                if asked > FEW_EDITS {
                    bytes.resize(EDITS + asked * size_of::<Edit>(), 0);
                    self.edits.download_part(few, &mut bytes[few..])?;
                }
                let list = words(&bytes[EDITS..]);
                let all = list.as_chunks::<8>().0.iter().take(asked).map(|w| Edit {
                    remove: w[0],
                    width: w[1],
                    kind: w[2],
                    tags: [w[3], w[4], w[5], w[6]],
                    reserved: 0,
                });
                return Ok((all.collect(), call, sim_box));
            }
            self.edits = Buffer::new(&self.device, EDITS + asked.next_power_of_two() * size_of::<Edit>())?;
        }
    }
}

impl Backend for GpuSystem {
    fn begin_stage(&mut self, stage: &StagePlan, forces_are_good: bool) -> Result<()> {
        self.destroy_graphs()?;
        self.stage = None;
        self.globals.dt = stage.stage.dt;
        self.globals.evaluate();
        self.upload_globals()?;
        let f = &self.facts;
        let (team, device) = (self.rebuild.team(), &self.device);
        let forces = Forces::new(device, self.system, &stage.forces, f.precision, f.n, f.n_types, team, f.seed)?;
        let arrays = self
            .sections
            .iter()
            .filter_map(|(name, b)| Some((name.strip_prefix("array.")?.to_string(), b.address())))
            .collect();
        let integrators =
            Integrators::new(device, self.system, stage, f, &self.globals, &arrays, &mut self.integrator_states)?;
        let prevented: Vec<String> =
            forces.not_capturable().into_iter().chain(integrators.not_capturable()).map(String::from).collect();
        if !prevented.is_empty() {
            info!("steps are launched one by one, not as a graph, because of {}", prevented.join(", "));
        }
        let forces_again = stage.forces_again();
        let steps_kernel = if forces_again || !prevented.is_empty() {
            None
        } else {
            StepsKernel::new(device, &forces, &integrators, f.precision, f.n, f.n_types, team)?
        };
        self.stage = Some(Stage { forces, integrators, forces_again, steps_kernel, graphs: Graphs::new(prevented) });
        if forces_are_good {
            return Ok(());
        }
        self.launch_forces(Wanted::ALL)?;
        self.launch_integrators(When::Start)?;
        self.sync_after_forces()
    }

    fn step(&self) -> u64 {
        self.globals.step
    }

    fn advance(&mut self, steps: u64, wanted: Wanted, _: &AtomicBool) -> Result<u64> {
        self.run_steps(steps, wanted)?;
        Ok(steps)
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
        self.device.launch(kernel, Extent::from(blocks), Extent::from(256), 0, &args)?;
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
        let stride =
            self.facts.stride(section).ok_or_else(|| Error::Run(format!("there is no section `{section}`")))?;
        let Some(buffer) = self.sections.get(section) else { return Ok(vec![0; stride * self.facts.n]) };
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

    fn update(&mut self, updater: &Arc<Component>, wanted: Wanted) -> Result<()> {
        let (mut edits, call, sim_box) = self.call_updater(updater)?;
        let changed_now = call.changed;
        self.sync_globals()?;
        let stretched = changed_now & changed::BOX != 0;
        if stretched && self.globals.halt == 0 {
            self.globals.set_box(sim_box.length, updater.id);
            self.upload_globals()?;
            self.scale_positions()?;
        }
        if self.globals.halt != 0 {
            let f = self.globals.fault;
            let component = (f.component == updater.id).then_some(&**updater);
            return Err(crate::backend::fault_error(self.globals.step, f, component));
        }
        let topology_changed = !edits.is_empty();
        let mut touched = Touched::default();
        if topology_changed {
            touched = self.topology.apply(&mut self.tables, &mut edits, self.globals.step)?;
            if self.links.fits(&self.tables) {
                self.links.update_rows(&self.view(), &self.rebuild.view(), &self.tables, &touched)?;
            } else {
                info!("step {}: the tables of links get more room", self.globals.step);
                self.destroy_graphs()?;
                self.links.upload_all(&self.tables)?;
                self.rebuild.index_links(&self.view(), &self.links.to_index())?;
                self.links.update_rows(&self.view(), &self.rebuild.view(), &self.tables, &touched)?;
            }
        }
        let positions = changed_now & changed::POSITIONS != 0 || stretched;
        if positions || touched.lost {
            self.rebuild_now()?;
        }
        if positions || topology_changed || changed_now & changed::FORCES != 0 {
            self.launch_forces(wanted)?;
        }
        if changed_now & changed::VELOCITIES != 0 {
            self.launch_integrators(When::Start)?;
        }
        // a fault of these forces stops the next step, which tells it; only a virial is needed before
        if wanted.more_than_force() { self.sync_after_forces() } else { Ok(()) }
    }

    fn export(&mut self) -> Result<RawState> {
        let mut out = RawState {
            step: self.globals.step,
            box_length: self.globals.box_length,
            topology: self.topology.clone(),
            ..RawState::default()
        };
        for name in self.facts.sections() {
            let bytes = self.read(&name)?;
            out.sections.insert(name, bytes);
        }
        for (id, (state, len)) in &self.integrator_states {
            let mut bytes = state.download()?;
            bytes.truncate(*len);
            out.sections.insert(format!("integrator.{id}"), bytes);
        }
        out.sections.insert("rebuild".into(), self.globals.rebuild.to_le_bytes().to_vec());
        out.sections.insert("rebuilds".into(), self.globals.rebuilds.to_le_bytes().to_vec());
        out.put("built_length", self.globals.built_length);
        out.put("grid_length", self.rebuild.grid_length());
        out.put("virial", self.globals.virial);
        self.globals.export_shear(&mut out);
        Ok(out)
    }

    fn import(&mut self, state: &RawState) -> Result<()> {
        self.destroy_graphs()?;
        self.globals.step = state.step;
        // the list is built in the box and with the cells of its time
        self.globals.box_length = state.numbers("built_length").unwrap_or(state.box_length);
        self.globals.virial = state.numbers("virial").unwrap_or_default();
        self.globals.shear_offset = state.numbers("built_shear").unwrap_or_default()[0];
        self.globals.evaluate();
        self.upload_globals()?;
        let grid_length = state.numbers("grid_length").unwrap_or(self.globals.box_length);
        if grid_length != self.rebuild.grid_length() {
            self.rebuild.set_grid(grid_length)?;
        }
        self.topology = state.topology.clone();
        self.tables = LinkTables::new(&self.topology, self.exclude, self.facts.n);
        self.links.upload_all(&self.tables)?;
        // in tag order, with the positions of the last list build: sorting these gives the order and the list of that
        // build again, on which the sums of the next steps depend to the last bit
        let identity: Vec<u32> = (0..self.facts.n as u32).collect();
        self.tag.upload_words(&identity)?;
        for name in self.facts.sections() {
            let from = if name == "pos_type" { "pos_at_build" } else { &name };
            self.upload_by_tag(&name, state.section(from)?, &identity)?;
        }
        for (name, bytes) in &state.sections {
            if let Some(id) = name.strip_prefix("integrator.").and_then(|i| i.parse().ok()) {
                self.integrator_states.insert(id, (Buffer::of_bytes(&self.device, bytes)?, bytes.len()));
            }
        }
        self.rebuild_now()?;
        let tags = self.tags()?;
        // what does not follow the order by itself
        self.upload_by_tag("pos_type", state.section("pos_type")?, &tags)?;
        self.upload_by_tag("force", state.section("force")?, &tags)?;
        if self.globals.box_length != state.box_length {
            self.globals.set_box(state.box_length, u32::MAX);
            self.globals.scale = [1.0; 3];
        }
        self.globals.import_shear(state);
        self.globals.rebuild = 0;
        self.globals.rebuilds = state.word("rebuilds").max(1);
        self.upload_globals()
    }

    fn box_length(&self) -> [f64; 3] {
        self.globals.box_length
    }

    fn views(&mut self) -> (StateView, ListView, LinkView) {
        (self.view(), self.rebuild.view(), self.links.view(0))
    }

    fn host(&self) -> &WireHost {
        self.host.wire()
    }

    fn list_report(&mut self) -> Result<ListReport> {
        self.sync_globals()?;
        let counts = self.rebuild.counts()?;
        let sum: u64 = counts.iter().map(|c| u64::from(*c)).sum();
        Ok(ListReport {
            r_list: self.rebuild.r_list,
            buffer: self.buffer,
            builds: self.globals.rebuilds,
            mean: sum as f64 / counts.len().max(1) as f64,
            longest: counts.iter().copied().max().unwrap_or(0),
        })
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
