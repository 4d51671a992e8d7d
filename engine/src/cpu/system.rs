//! The state on the CPU.

use super::list::NeighborList;
use super::vector_extension;
use crate::backend::{
    Array, Backend, ListReport, Storage, SystemSums, Update, call_updater, check_state_length, export, import,
    initial_globals, list_radius, state_view,
};
use crate::plan::{Plan, StagePlan, initial};
use crate::plugins::Component;
use crate::plugins::host::HostServices;
use crate::profile::{Profile, Timing};
use crate::state::arrays::{ArrayId, ParticleArray, Sort};
use crate::state::buffers::{Bytes, Plain};
use crate::state::rotation;
use crate::state::store::Store;
use crate::state::topology::{LinkRows, LinkTables, Topology, Touched};
use crate::state::{Facts, RawState};
use galamost_plugin_api::abi::WireHost;
use galamost_plugin_api::device::DevicePtr;
use galamost_plugin_api::error::{Error, Result};
use galamost_plugin_api::integrator::ProgramInfo;
use galamost_plugin_api::pair::PairCall;
use galamost_plugin_api::philox::RandomKey;
use galamost_plugin_api::quaternion::Quaternion;
use galamost_plugin_api::real::Real;
use galamost_plugin_api::updater::{Edit, EditQueue, changed};
use galamost_plugin_api::vector::Vec3;
use galamost_plugin_api::views::{Globals, LinkView, ListView, StateView, Sums, Wanted};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A particle array in the current order.
pub(super) struct StoredArray {
    pub info: ParticleArray,
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
    /// Particle arrays in the order of [`crate::state::arrays::table`]; one that the precision does not store is empty.
    pub(super) arrays: Vec<StoredArray>,
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
    edits: Vec<Edit>,
    edit_count: u32,
    pub(super) chunk_sums: Vec<Sums>,
    pub(super) sums: Vec<Sums>,
    pub(super) quantities: Vec<f64>,
    host: HostServices,
    storage: PhantomData<S>,
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
        let store = |info: ParticleArray| {
            let stored = if info.stored(facts.precision) { n } else { 0 };
            StoredArray { data: Bytes::zeroed(info.element.stride(facts.precision), stored), info }
        };
        let arrays = facts.particle_arrays().into_iter().map(store).collect();
        let mut system = Self {
            profile: Profile::default(),
            isa: vector_extension(),
            globals: Box::new(initial_globals(plan)),
            arrays,
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
            edits: vec![],
            edit_count: 0,
            chunk_sums: vec![],
            sums: vec![],
            quantities: vec![],
            host: HostServices::cpu(),
            storage: PhantomData,
            facts,
        };
        system.import(&raw)?;
        Ok(system)
    }

    /// Returns the view of the state for plugins.
    pub(super) fn view(&mut self) -> StateView {
        let (fixed, optional) = self.arrays.split_at_mut(ArrayId::COUNT);
        state_view(&self.facts, std::ptr::from_mut(&mut *self.globals) as u64, |array| match array {
            Array::Fixed(id) => fixed[id as usize].data.address(),
            Array::Optional(name) => {
                let found = optional.iter_mut().find(|a| a.info.component_name() == Some(name));
                found.map_or(0, |a| a.data.address())
            }
        })
    }

    /// Returns the index of an optional array in [`Self::arrays`].
    fn optional_array(&self, name: &str) -> Option<usize> {
        self.arrays.iter().position(|a| a.info.component_name() == Some(name))
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
        let order = self.list.order::<S>(values(&self.arrays, ArrayId::PosType), tags(&self.arrays), &self.globals);
        if order.iter().enumerate().any(|(k, i)| k as u32 != *i) {
            for a in self.arrays.iter_mut().filter(|a| a.info.sort == Sort::Follows && !a.data.bytes().is_empty()) {
                a.data.permute(&order);
            }
        }
        let [tag, index_of_tag] = two(&mut self.arrays, ArrayId::Tag, ArrayId::IndexOfTag);
        let index_of_tag = index_of_tag.values_mut::<u32>();
        for (i, t) in tag.values::<u32>().iter().enumerate() {
            index_of_tag[*t as usize] = i as u32;
        }
        let [pos, built] = two(&mut self.arrays, ArrayId::PosType, ArrayId::PosAtBuild);
        built.bytes_mut().copy_from_slice(pos.bytes());
        self.globals.begin_list();
        if self.list.r_list > 0.0 {
            let scale = self.globals.scale::<S>();
            let pos = values(&self.arrays, ArrayId::PosType);
            self.list.build::<S>(pos, tags(&self.arrays), &scale, self.tables.exclusions.as_ref(), self.isa);
        }
        self.index_links();
        self.write_guards();
        for a in &mut self.arrays {
            if let Some(name) = a.info.component_name() {
                self.host.set_array(name, a.data.address());
            }
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
                index_rows(l, rows, values(&self.arrays, ArrayId::IndexOfTag), tags(&self.arrays).iter().copied());
            }
        }
    }

    /// Brings links by index and the list up to date with changed rows.
    fn follow(&mut self, touched: &Touched) {
        for (which, touched_tags) in [&touched.bonds, &touched.angles, &touched.dihedrals].into_iter().enumerate() {
            let (l, rows) = (&mut self.links[which], self.tables.links(which));
            l.words.resize(rows.capacity * rows.width * self.facts.n, 0);
            index_rows(l, rows, values(&self.arrays, ArrayId::IndexOfTag), touched_tags.iter().copied());
        }
        if let Some(exclusions) = &self.tables.exclusions
            && self.list.r_list > 0.0
        {
            let index_of_tag = values(&self.arrays, ArrayId::IndexOfTag);
            self.list.remove_excluded(&touched.exclusions, exclusions, tags(&self.arrays), index_of_tag);
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
}

/// Returns the values of a fixed array.
fn values<T: Plain>(arrays: &[StoredArray], id: ArrayId) -> &[T] {
    arrays[id as usize].data.values()
}

fn tags(arrays: &[StoredArray]) -> &[u32] {
    values(arrays, ArrayId::Tag)
}

/// Multiplies positions by the ratio of box lengths, where they are stored as lengths.
pub(super) fn stretch<S: Store>(arrays: &mut [StoredArray], ratio: [f64; 3]) {
    S::stretch(arrays[ArrayId::PosType as usize].data.values_mut(), ratio);
}

/// Returns two different fixed arrays.
fn two(arrays: &mut [StoredArray], a: ArrayId, b: ArrayId) -> [&mut Bytes; 2] {
    let both = arrays.get_disjoint_mut([a as usize, b as usize]);
    both.expect("two different arrays of the table").map(|a| &mut a.data)
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
            let extra = program.extra.as_ref().and_then(|e| self.optional_array(&e.name));
            let info = self.facts.group_info(group, &self.globals, component.first_varying, conserved);
            let first = part.state(&info)?;
            match self.integrator_states.entry(component.id) {
                Entry::Vacant(place) => {
                    place.insert(Bytes::from_bytes(&first));
                }
                Entry::Occupied(kept) => check_state_length(component, kept.get().bytes().len(), first.len())?,
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
        for v in values::<[S::Real; 4]>(&self.arrays, ArrayId::VelocityMass) {
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
        let found = self.arrays.iter().find(|a| a.info.name == section);
        let StoredArray { info, data } = found.ok_or_else(|| Error::Run(format!("there is no section `{section}`")))?;
        let stride = info.element.stride(self.facts.precision);
        if data.bytes().is_empty() {
            return Ok(vec![0; stride * self.facts.n]);
        }
        let order = values::<u32>(&self.arrays, ArrayId::IndexOfTag);
        let mut out = Vec::with_capacity(stride * self.facts.n);
        order.iter().for_each(|i| out.extend_from_slice(&data.bytes()[*i as usize * stride..][..stride]));
        Ok(out)
    }

    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn topology(&self) -> &Topology {
        &self.topology
    }

    fn update(&mut self, updater: &Arc<Component>, wanted: Wanted) -> Result<()> {
        let Update { mut edits, changed: changed_now, sim_box } = call_updater(self, updater)?;
        let stretched = changed_now & changed::BOX != 0;
        if stretched {
            let ratio = self.globals.set_box(sim_box.length, updater.id);
            stretch::<S>(&mut self.arrays, ratio);
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
        export(self)
    }

    fn import(&mut self, state: &RawState) -> Result<()> {
        import(self, state)
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
        let fixed = self.arrays.iter().take(ArrayId::COUNT);
        let per: usize = fixed.map(|a| a.info.element.stride(self.facts.precision)).sum();
        (per * self.facts.n + self.list.memory()) as u64
    }

    fn begin_profile(&mut self) {
        self.profile.begin();
    }

    fn end_profile(&mut self) -> Result<Vec<Timing>> {
        Ok(self.profile.end())
    }
}

impl<S: Store> Storage for CpuSystem<S> {
    fn globals(&mut self) -> &mut Globals {
        &mut self.globals
    }

    fn integrator_states(&self) -> Result<Vec<(u32, Vec<u8>)>> {
        Ok(self.integrator_states.iter().map(|(id, state)| (*id, state.bytes().to_vec())).collect())
    }

    fn set_integrator_state(&mut self, id: u32, bytes: &[u8]) -> Result<()> {
        self.integrator_states.insert(id, Bytes::from_bytes(bytes));
        Ok(())
    }

    fn begin_import(&mut self, topology: &Topology, _: [f64; 3]) -> Result<()> {
        self.topology = topology.clone();
        self.tables = LinkTables::new(&self.topology, self.exclude, self.facts.n);
        Ok(())
    }

    fn reset_tags(&mut self) -> Result<()> {
        let tags = self.arrays[ArrayId::Tag as usize].data.values_mut::<u32>();
        tags.iter_mut().zip(0..).for_each(|(tag, index)| *tag = index);
        Ok(())
    }

    fn tags(&self) -> Result<Vec<u32>> {
        Ok(tags(&self.arrays).to_vec())
    }

    fn write_array(&mut self, array: &ParticleArray, bytes: &[u8]) -> Result<()> {
        let found = self.arrays.iter_mut().find(|a| a.info.name == array.name);
        if let Some(a) = found.filter(|a| a.info.stored(self.facts.precision)) {
            a.data.bytes_mut().copy_from_slice(bytes);
        }
        Ok(())
    }

    fn rebuild_list(&mut self) -> Result<()> {
        self.rebuild();
        Ok(())
    }

    fn publish_globals(&mut self) -> Result<()> {
        Ok(())
    }

    fn edit_queue(&mut self) -> Result<EditQueue> {
        let capacity = (self.edit_count as usize).next_power_of_two().max(1024);
        self.edits = vec![Edit::default(); capacity];
        self.edit_count = 0;
        Ok(EditQueue {
            edits: DevicePtr::new(self.edits.as_mut_ptr() as u64),
            count: DevicePtr::new(&raw mut self.edit_count as u64),
            capacity: capacity as u32,
            reserved: 0,
        })
    }

    fn take_edits(&mut self) -> Result<Option<Vec<Edit>>> {
        let count = self.edit_count as usize;
        if count > self.edits.len() {
            return Ok(None);
        }
        self.edit_count = 0;
        let mut edits = std::mem::take(&mut self.edits);
        edits.truncate(count);
        Ok(Some(edits))
    }

    fn check_memory(&self, component: &str) -> Result<()> {
        self.check_guards(component)
    }
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
