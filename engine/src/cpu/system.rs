//! The state on the CPU.

use super::list::NeighborList;
use super::vector_extension;
use crate::backend::{Backend, ListReport, Sheared as _, SystemSums, initial_globals, list_radius, state_fits};
use crate::plan::initial;
use crate::plan::{Plan, StagePlan};
use crate::plugins::Component;
use crate::plugins::host::HostServices;
use crate::profile::{Profile, Timing};
use crate::state::buffers::Bytes;
use crate::state::rotation;
use crate::state::store::Store;
use crate::state::topology::{LinkRows, LinkTables, Topology, Touched};
use crate::state::{Facts, RawState};
use galamost_plugin_api::abi::WireHost;
use galamost_plugin_api::component::ArrayNeed;
use galamost_plugin_api::device::DevicePtr;
use galamost_plugin_api::error::{Error, Result};
use galamost_plugin_api::integrator::ProgramInfo;
use galamost_plugin_api::pair::PairCall;
use galamost_plugin_api::philox::RandomKey;
use galamost_plugin_api::precision::Precision;
use galamost_plugin_api::quaternion::Quaternion;
use galamost_plugin_api::real::Real;
use galamost_plugin_api::updater::{Edit, EditQueue, UpdateCall, changed};
use galamost_plugin_api::vector::Vec3;
use galamost_plugin_api::views::{Globals, LinkView, ListView, SimBox, StateView, Sums, Wanted};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// An optional per-particle array.
pub(super) struct OptionalArray {
    pub need: ArrayNeed,
    pub data: Bytes,
}

/// Index-based links of one width.
#[derive(Default)]
pub(super) struct Links {
    words: Vec<u32>,
    count: Vec<u32>,
}

/// An integrator with its program and group.
pub(super) struct Moving {
    pub component: Arc<Component>,
    pub program: ProgramInfo,
    pub group: u32,
    /// Place of its array in `arrays`.
    pub extra: Option<usize>,
}

/// The CPU backend.
pub struct CpuSystem<S: Store> {
    pub(super) profile: Profile,
    pub(super) facts: Facts,
    pub(super) isa: u32,
    pub(super) globals: Box<Globals>,
    pub(super) pos: Vec<S::PosType>,
    pub(super) low: Vec<[u32; 3]>,
    pub(super) vel: Vec<[S::Real; 4]>,
    pub(super) force: Vec<[S::Real; 4]>,
    pub(super) image: Vec<[i32; 3]>,
    pub(super) tag: Vec<u32>,
    pub(super) index_of_tag: Vec<u32>,
    pub(super) group: Vec<u32>,
    pub(super) built: Vec<S::PosType>,
    pub(super) arrays: Vec<OptionalArray>,
    pub(super) list: NeighborList,
    buffer: f64,
    topology: Topology,
    exclude: crate::pipeline::Exclusions,
    tables: LinkTables,
    links: [Links; 3],
    pub(super) forces: Vec<Arc<Component>>,
    pub(super) moving: Vec<Moving>,
    pub(super) forces_again: bool,
    /// State of every integrator of the run by its number.
    pub(super) integrator_states: BTreeMap<u32, Bytes>,
    pub(super) chunk_sums: Vec<Sums>,
    pub(super) sums: Vec<Sums>,
    pub(super) quantities: Vec<f64>,
    host: HostServices,
}

impl<S: Store> CpuSystem<S> {
    /// The initial state of a plan.
    ///
    /// # Errors
    /// An array that a component requires is not there.
    pub fn new(plan: &Plan) -> Result<Self> {
        let (facts, raw) = initial(plan)?;
        let n = facts.n;
        let (radius, buffer) = list_radius(plan);
        let arrays = facts.arrays.iter().map(|need| OptionalArray {
            need: need.clone(),
            data: Bytes::zeroed(facts.stride(&format!("array.{}", need.name)).unwrap_or(0), n),
        });
        let mut system = Self {
            profile: Profile::default(),
            isa: vector_extension(),
            globals: Box::new(initial_globals(plan)),
            pos: vec![S::PosType::default(); n],
            low: vec![[0; 3]; n],
            vel: vec![[S::Real::ZERO; 4]; n],
            force: vec![[S::Real::ZERO; 4]; n],
            image: vec![[0; 3]; n],
            tag: vec![0; n],
            index_of_tag: vec![0; n],
            group: vec![0; n],
            built: vec![S::PosType::default(); n],
            arrays: arrays.collect(),
            list: NeighborList::new(radius, plan.molecules.clone()),
            buffer,
            topology: Topology::default(),
            exclude: plan.pipeline.neighbors.exclude,
            tables: LinkTables::default(),
            links: Default::default(),
            forces: vec![],
            moving: vec![],
            forces_again: false,
            integrator_states: BTreeMap::new(),
            chunk_sums: vec![],
            sums: vec![],
            quantities: vec![],
            host: HostServices::cpu(),
            facts,
        };
        system.import(&raw)?;
        Ok(system)
    }

    /// The state as plugins see it.
    pub(super) fn view(&mut self) -> StateView {
        fn array(arrays: &mut [OptionalArray], name: &str) -> DevicePtr<u8> {
            let found = arrays.iter_mut().find(|a| a.need.name == name);
            found.map_or(DevicePtr::null(), |a| DevicePtr::new(a.data.address()))
        }
        fn at<T, U>(values: &mut [T]) -> DevicePtr<U> {
            DevicePtr::new(values.as_mut_ptr() as u64)
        }
        let mixed = self.facts.precision == Precision::Mixed;
        let turning = self.arrays.iter().any(|a| a.need.name == "angular_momentum");
        StateView {
            precision: self.facts.precision as u32,
            n_local: self.facts.n as u32,
            n_types: self.facts.n_types,
            has_groups: u32::from(!self.facts.groups.is_empty()),
            pos_type: at(&mut self.pos),
            pos_low: if mixed { at(&mut self.low) } else { DevicePtr::null() },
            velocity_mass: at(&mut self.vel),
            force: at(&mut self.force),
            image: at(&mut self.image),
            tag: at(&mut self.tag),
            index_of_tag: at(&mut self.index_of_tag),
            group: at(&mut self.group),
            pos_at_build: at(&mut self.built),
            charge: array(&mut self.arrays, "charge"),
            diameter: array(&mut self.arrays, "diameter"),
            globals: DevicePtr::new(std::ptr::from_mut(&mut *self.globals) as u64),
            quaternion: array(&mut self.arrays, "quaternion"),
            torque: array(&mut self.arrays, "torque"),
            angular_momentum: array(&mut self.arrays, "angular_momentum"),
            inertia: if turning { array(&mut self.arrays, "inert") } else { DevicePtr::null() },
            ..StateView::empty()
        }
    }

    pub(super) fn link_view(&mut self, which: usize) -> LinkView {
        let l = &mut self.links[which];
        LinkView {
            capacity: self.tables.links(which).capacity as u32,
            stride: self.facts.n as u32,
            words: DevicePtr::new(l.words.as_mut_ptr() as u64),
            count: DevicePtr::new(l.count.as_mut_ptr() as u64),
            ..LinkView::empty(which as u32 + 2)
        }
    }

    /// Sorts particles along the cells and builds the list.
    pub(super) fn rebuild(&mut self) {
        let order = self.list.order::<S>(&self.pos, &self.tag, &self.globals);
        if order.iter().enumerate().any(|(k, i)| k as u32 != *i) {
            permute(&mut self.pos, &order);
            permute(&mut self.low, &order);
            permute(&mut self.vel, &order);
            permute(&mut self.force, &order);
            permute(&mut self.image, &order);
            permute(&mut self.tag, &order);
            permute(&mut self.group, &order);
            let mut scratch = Bytes::default();
            for a in &mut self.arrays {
                a.data.permute(&order, &mut scratch);
            }
        }
        for (i, t) in self.tag.iter().enumerate() {
            self.index_of_tag[*t as usize] = i as u32;
        }
        self.built.copy_from_slice(&self.pos);
        self.globals.begin_list();
        if self.list.r_list > 0.0 {
            let scale = self.globals.scale::<S>();
            self.list.build::<S>(&self.pos, &self.tag, &scale, self.tables.exclusions.as_ref(), self.isa);
        }
        self.index_links();
        self.write_guards();
        for a in &mut self.arrays {
            self.host.set_array(&a.need.name, a.data.address());
        }
        self.globals.rebuild = 0;
        self.globals.rebuilds += 1;
    }

    /// Links by index, of all particles.
    fn index_links(&mut self) {
        let n = self.facts.n;
        for (which, l) in self.links.iter_mut().enumerate() {
            let rows = self.tables.links(which);
            l.words.resize(rows.capacity * rows.width * n, 0);
            l.count.clear();
            l.count.resize(n, 0);
            if rows.capacity > 0 {
                index_rows(l, rows, &self.index_of_tag, self.tag.iter().copied());
            }
        }
    }

    /// Brings links by index and the list up to date with changed rows.
    fn follow(&mut self, touched: &Touched) {
        for (which, tags) in [&touched.bonds, &touched.angles, &touched.dihedrals].into_iter().enumerate() {
            let (l, rows) = (&mut self.links[which], self.tables.links(which));
            l.words.resize(rows.capacity * rows.width * self.facts.n, 0);
            index_rows(l, rows, &self.index_of_tag, tags.iter().copied());
        }
        if let Some(exclusions) = &self.tables.exclusions
            && self.list.r_list > 0.0
        {
            self.list.remove_excluded(&touched.exclusions, exclusions, &self.tag, &self.index_of_tag);
        }
    }

    /// Whether an integrator of the stage changes the box, for which it needs the virial of every step.
    pub(super) fn changes_box(&self) -> bool {
        self.moving.iter().any(|m| m.program.phases.iter().any(|p| p.sim_box && !p.shear))
    }

    /// An error if some thread noted a fault.
    pub(super) fn check_fault(&mut self) -> Result<()> {
        self.check_fault_of(None)
    }

    /// The same after an updater's work.
    fn check_fault_of(&mut self, updater: Option<&Component>) -> Result<()> {
        if self.globals.halt == 0 {
            return Ok(());
        }
        let f = self.globals.fault;
        let mut components = self.moving.iter().map(|m| &m.component).chain(&self.forces).map(|c| &**c).chain(updater);
        let component = components.find(|c| c.id == f.component);
        Err(crate::backend::fault_error(self.globals.step, f, component))
    }

    /// Runs an updater, with room for as many changes of topology as it asks for.
    fn call_updater(&mut self, updater: &Component) -> Result<(Vec<Edit>, UpdateCall, SimBox)> {
        let part = updater.updater().ok_or_else(|| Error::Run(format!("{} is no updater", updater.name)))?;
        let mut before = SimBox::of(&self.globals);
        if updater.needs.wants.thermo {
            before.kinetic = self.sums()?.kinetic_diagonal();
        }
        let mut room = 1024;
        loop {
            let mut edits = vec![Edit::default(); room];
            let mut count = 0u32;
            let mut sim_box = before;
            let mut call = UpdateCall {
                size: size_of::<UpdateCall>() as u32,
                component: updater.id,
                first_varying: updater.first_varying,
                changed: 0,
                step: self.globals.step,
                key: RandomKey::new(self.facts.seed, updater.id),
                state: self.view(),
                list: self.list.view(),
                bonds: self.link_view(0),
                edits: EditQueue {
                    edits: DevicePtr::new(edits.as_mut_ptr() as u64),
                    count: DevicePtr::new(std::ptr::from_mut(&mut count) as u64),
                    capacity: room as u32,
                    reserved: 0,
                },
                group: updater.group,
                reserved0: 0,
                sim_box: DevicePtr::new(&raw mut sim_box as u64),
                reserved: [0; 6],
            };
            // SAFETY: every view describes arrays of this system, and nothing else runs meanwhile
            unsafe { part.update(&mut call)? };
            self.check_guards(&updater.name)?;
            if count as usize <= room {
                edits.truncate(count as usize);
                return Ok((edits, call, sim_box));
            }
            room = (count as usize).next_power_of_two();
        }
    }
}

/// Rows of these tags as links by index.
fn index_rows(l: &mut Links, rows: &LinkRows, index_of_tag: &[u32], tags: impl Iterator<Item = u32>) {
    let (n, width) = (index_of_tag.len(), rows.width);
    for tag in tags {
        let i = index_of_tag[tag as usize] as usize;
        l.count[i] = rows.count(tag) as u32;
        for (e, entry) in rows.row(tag).chunks_exact(width).enumerate() {
            for (w, word) in entry.iter().enumerate() {
                let value = if w + 1 < width { index_of_tag[*word as usize] } else { *word };
                l.words[(e * width + w) * n + i] = value;
            }
        }
    }
}

/// Elements in another order.
fn permute<T: Copy + Send + Sync>(values: &mut Vec<T>, order: &[u32]) {
    let sorted: Vec<T> = order.par_iter().with_min_len(1024).map(|i| values[*i as usize]).collect();
    *values = sorted;
}

impl<S: Store> Backend for CpuSystem<S> {
    fn begin_stage(&mut self, stage: &StagePlan, forces_are_good: bool) -> Result<()> {
        self.globals.dt = stage.stage.dt;
        self.globals.evaluate();
        self.forces = stage.forces.clone();
        self.sums = vec![Sums::default(); self.forces.len()];
        self.quantities = vec![0.0; self.forces.iter().map(|c| c.needs.quantities.len()).sum()];
        self.moving.clear();
        self.forces_again = stage.forces_again();
        let conserved = stage.conserves_momentum();
        for component in &stage.integrators {
            let part =
                component.integrator().ok_or_else(|| Error::Run(format!("{} is no integrator", component.name)))?;
            let program = part.program()?;
            let group = component.group;
            let extra = program.extra.as_ref().and_then(|e| self.arrays.iter().position(|a| a.need.name == e.name));
            let info = self.facts.group_info(group, &self.globals, component.first_varying, conserved);
            let first = part.state(&info)?;
            match self.integrator_states.entry(component.id) {
                Entry::Vacant(place) => {
                    place.insert(Bytes::from_bytes(&first));
                }
                Entry::Occupied(kept) => state_fits(component, kept.get().bytes().len(), first.len())?,
            }
            self.moving.push(Moving { component: component.clone(), program, group, extra });
        }
        if forces_are_good {
            return Ok(());
        }
        if self.globals.rebuild != 0 {
            self.rebuild();
        }
        self.compute_forces(Wanted::ALL)?;
        self.start_integrators()
    }

    fn step(&self) -> u64 {
        self.globals.step
    }

    fn advance(&mut self, steps: u64, wanted: Wanted, stop: &AtomicBool) -> Result<u64> {
        // on one of the threads that compute: from another every loop would be handed over, and its end waited for asleep
        rayon::scope(|_| {
            for k in 0..steps {
                if stop.load(Ordering::Relaxed) {
                    return Ok(k);
                }
                let last = k + 1 == steps;
                self.one_step(if last { wanted } else { Wanted::FORCE })?;
            }
            Ok(steps)
        })
    }

    fn sums(&mut self) -> Result<SystemSums> {
        let mut out =
            SystemSums { components: self.sums.clone(), quantities: self.quantities.clone(), ..SystemSums::default() };
        for v in &self.vel {
            let [x, y, z, m] = v.map(Real::f64);
            for (sum, term) in out.kinetic_tensor.iter_mut().zip([x * x, x * y, x * z, y * y, y * z, z * z]) {
                *sum += m * term;
            }
            for (sum, v) in out.momentum.iter_mut().zip([x, y, z]) {
                *sum += m * v;
            }
        }
        let view = self.view();
        if !view.inertia.is_null() {
            for i in 0..self.facts.n {
                // SAFETY: the arrays are those of this system, with an element for each particle
                let (q, l, inertia) = unsafe {
                    (
                        *view.quaternion.cast::<Quaternion<S::Real>>().host().add(i),
                        *view.angular_momentum.cast::<Vec3<S::Real>>().host().add(i),
                        *view.inertia.cast::<Vec3<S::Real>>().host().add(i),
                    )
                };
                let double = |v: Vec3<S::Real>| Vec3::from(v.f64());
                let q = Quaternion::new(q.x.f64(), q.y.f64(), q.z.f64(), q.w.f64());
                out.rotational += rotation::energy(q, double(l), double(inertia));
            }
        }
        for m in &self.moving {
            if let (Some(part), Some(state)) = (m.component.integrator(), self.integrator_states.get(&m.component.id)) {
                out.reservoir += part.conserved(state.bytes())?;
            }
        }
        Ok(out)
    }

    fn read(&mut self, section: &str) -> Result<Vec<u8>> {
        let order = &self.index_of_tag;
        Ok(match section {
            "pos_type" => by_tag(&self.pos, order),
            "pos_at_build" => by_tag(&self.built, order),
            "pos_low" => by_tag(&self.low, order),
            "velocity_mass" => by_tag(&self.vel, order),
            "force" => by_tag(&self.force, order),
            "image" => by_tag(&self.image, order),
            "group" => by_tag(&self.group, order),
            other => {
                let found = self.arrays.iter().find(|a| Some(a.need.name.as_str()) == other.strip_prefix("array."));
                let a = found.ok_or_else(|| Error::Run(format!("there is no section `{other}`")))?;
                order.iter().flat_map(|i| a.data.element(*i as usize).to_vec()).collect()
            }
        })
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
        let stretched = changed_now & changed::BOX != 0;
        if stretched {
            let ratio = self.globals.set_box(sim_box.length, updater.id);
            S::stretch(&mut self.pos, ratio);
        }
        self.check_fault_of(Some(updater))?;
        let topology_changed = !edits.is_empty();
        let mut touched = Touched::default();
        if topology_changed {
            touched = self.topology.apply(&mut self.tables, &mut edits, self.globals.step)?;
        }
        let positions = changed_now & changed::POSITIONS != 0 || stretched;
        if positions || touched.lost {
            self.rebuild();
        } else if topology_changed {
            self.follow(&touched);
        }
        if positions || topology_changed || changed_now & changed::FORCES != 0 {
            self.compute_forces(wanted)?;
        }
        if changed_now & changed::VELOCITIES != 0 {
            self.start_integrators()?;
        }
        Ok(())
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
        for (id, state) in &self.integrator_states {
            out.sections.insert(format!("integrator.{id}"), state.bytes().to_vec());
        }
        out.sections.insert("rebuild".into(), self.globals.rebuild.to_le_bytes().to_vec());
        out.sections.insert("rebuilds".into(), self.globals.rebuilds.to_le_bytes().to_vec());
        out.put("built_length", self.globals.built_length);
        out.put("virial", self.globals.virial);
        self.globals.export_shear(&mut out);
        Ok(out)
    }

    fn import(&mut self, state: &RawState) -> Result<()> {
        self.globals.step = state.step;
        // the list is built in the box of its time
        self.globals.box_length = state.numbers("built_length").unwrap_or(state.box_length);
        self.globals.virial = state.numbers("virial").unwrap_or_default();
        self.globals.shear_offset = state.numbers("built_shear").unwrap_or_default()[0];
        self.globals.evaluate();
        self.topology = state.topology.clone();
        self.tables = LinkTables::new(&self.topology, self.exclude, self.facts.n);
        // in tag order, with the positions of the last list build: sorting these gives the order and the list of that
        // build again, on which the sums of the next steps depend to the last bit
        self.tag = (0..self.facts.n as u32).collect();
        from_bytes(&mut self.pos, state.section("pos_at_build")?)?;
        from_bytes(&mut self.low, state.section("pos_low")?)?;
        from_bytes(&mut self.vel, state.section("velocity_mass")?)?;
        from_bytes(&mut self.force, state.section("force")?)?;
        from_bytes(&mut self.image, state.section("image")?)?;
        from_bytes(&mut self.group, state.section("group")?)?;
        for a in &mut self.arrays {
            from_bytes(a.data.bytes_mut(), state.section(&format!("array.{}", a.need.name))?)?;
        }
        for (name, bytes) in &state.sections {
            if let Some(id) = name.strip_prefix("integrator.").and_then(|i| i.parse().ok()) {
                self.integrator_states.insert(id, Bytes::from_bytes(bytes));
            }
        }
        self.rebuild();
        let mut now = vec![S::PosType::default(); self.facts.n];
        from_bytes(&mut now, state.section("pos_type")?)?;
        for (i, t) in self.tag.iter().enumerate() {
            self.pos[i] = now[*t as usize];
        }
        if self.globals.box_length != state.box_length {
            self.globals.set_box(state.box_length, u32::MAX);
        }
        self.globals.import_shear(state);
        self.globals.rebuild = 0;
        self.globals.rebuilds = state.word("rebuilds").max(1);
        Ok(())
    }

    fn box_length(&self) -> [f64; 3] {
        self.globals.box_length
    }

    fn views(&mut self) -> (StateView, ListView, LinkView) {
        (self.view(), self.list.view(), self.link_view(0))
    }

    fn host(&self) -> &WireHost {
        self.host.wire()
    }

    fn list_report(&mut self) -> Result<ListReport> {
        let (mean, longest) = self.list.statistics();
        Ok(ListReport { r_list: self.list.r_list, buffer: self.buffer, builds: self.globals.rebuilds, mean, longest })
    }

    fn memory(&self) -> u64 {
        let per = size_of::<S::PosType>() * 2 + 12 + 2 * size_of::<[S::Real; 4]>() + 12 + 12;
        (per * self.facts.n + self.list.memory()) as u64
    }

    fn begin_profile(&mut self) {
        self.profile.begin();
    }

    fn end_profile(&mut self) -> Result<Vec<Timing>> {
        Ok(self.profile.end())
    }
}

/// Bytes of an array in tag order.
fn by_tag<T: Copy>(values: &[T], index_of_tag: &[u32]) -> Vec<u8> {
    let size = size_of::<T>();
    let mut out = Vec::with_capacity(size_of_val(values));
    for i in index_of_tag {
        // SAFETY: arrays of the state are plain numbers
        let bytes = unsafe { std::slice::from_raw_parts(std::ptr::from_ref(&values[*i as usize]).cast::<u8>(), size) };
        out.extend_from_slice(bytes);
    }
    out
}

/// An array from bytes.
fn from_bytes<T: Copy>(values: &mut [T], bytes: &[u8]) -> Result<()> {
    if size_of_val(values) != bytes.len() {
        return Err(Error::Run("an array of the checkpoint does not fit this system".into()));
    }
    // SAFETY: the lengths agree, and arrays of the state are plain numbers for which every bit pattern is valid
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), values.as_mut_ptr().cast::<u8>(), bytes.len()) };
    Ok(())
}

/// A `PairCall` for a chunk.
pub(super) fn pair_call<S: Store>(
    system: &CpuSystem<S>,
    c: &Component,
    state: &StateView,
    list: &ListView,
    wanted: Wanted,
    range: std::ops::Range<usize>,
) -> PairCall {
    PairCall {
        size: size_of::<PairCall>() as u32,
        begin: range.start as u32,
        end: range.end as u32,
        first_varying: c.first_varying,
        isa: system.isa,
        wanted,
        key: RandomKey::new(system.facts.seed, c.id),
        state,
        list,
        reserved: [0; 4],
    }
}
