//! The CPU backend: state, rebuilds, stages, updates.

use super::links::Links;
use super::list::{CHUNK, NeighborList, as_atomics};
use super::ranks::Ranks;
use super::special::SpecialLists;
use super::storage::Edits;
use super::vector_extension;
use crate::backend::{
    Array, Backend, ListReport, ShearState as _, SystemSums, Update, call_updater, check_state_length, export, import,
    initial_globals, list_radius, most_tilt, pair_rules, state_view,
};
use crate::plan::{Plan, StagePlan, initial};
use crate::plugins::Component;
use crate::plugins::host::HostServices;
use crate::profile::{Profile, Timing};
use crate::state::arrays::{ArrayId, ParticleArray, Sort};
use crate::state::buffers::{Bytes, Plain};
use crate::state::raw::check_types;
use crate::state::reduction::Reduction;
use crate::state::store::Store;
use crate::state::topology::{LinkTables, PairRules, Topology, Touched};
use crate::state::{Facts, RawState};
use galamost_plugin_api::abi::WireHost;
use galamost_plugin_api::error::{Error, Result};
use galamost_plugin_api::force::Moment;
use galamost_plugin_api::integrator::ProgramInfo;
use galamost_plugin_api::snapshot::LinkList;
use galamost_plugin_api::updater::changed;
use galamost_plugin_api::views::{Globals, LinkView, ListView, StateView, Sums, Wanted};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes of an array that one task copies.
const COPIED: usize = 1 << 16;

/// A particle array in the current order.
pub(super) struct StoredArray {
    pub info: ParticleArray,
    pub data: Bytes,
}

/// An integrator of the stage, with its program and group.
pub(super) struct StageIntegrator {
    pub component: Arc<Component>,
    pub program: ProgramInfo,
    pub group: u32,
    /// Index of its array in [`CpuSystem::arrays`].
    pub extra: Option<usize>,
}

/// The CPU backend.
pub struct CpuSystem<S: Store> {
    pub(super) profile: Profile,
    pub(super) facts: Facts,
    /// Set if several processes share the run.
    pub(super) ranks: Option<Ranks>,
    pub(super) isa: u32,
    pub(super) globals: Box<Globals>,
    /// Particle arrays in the order of [`crate::state::arrays::table`]; one that the precision does not store is empty.
    pub(super) arrays: Vec<StoredArray>,
    pub(super) list: NeighborList<S>,
    buffer: f64,
    /// The limit of [`galamost_plugin_api::views::is_skewed()`]; 0 for none.
    most_tilt: f64,
    pub(super) topology: Topology,
    pub(super) rules: PairRules,
    pub(super) tables: LinkTables,
    pub(super) links: [Links; 4],
    /// Set if forces of special pairs are scaled.
    pub(super) special: Option<SpecialLists>,
    pub(super) forces: Vec<Arc<Component>>,
    pub(super) integrators: Vec<StageIntegrator>,
    pub(super) forces_again: bool,
    /// State of every integrator of the run, by component number.
    pub(super) integrator_states: BTreeMap<u32, Bytes>,
    pub(super) edits: Edits,
    pub(super) chunk_sums: Vec<Sums>,
    pub(super) sums: Vec<Sums>,
    pub(super) quantities: Vec<f64>,
    pub(super) host: HostServices,
    storage: PhantomData<S>,
}

impl<S: Store> CpuSystem<S> {
    /// Returns a system with the initial state of a plan.
    ///
    /// # Errors
    /// Returns an error if the initial state lacks an array that a component requires.
    pub fn new(plan: &Plan) -> Result<Self> {
        Self::of_rank(plan, None)
    }

    /// As [`Self::new`], for one of several processes.
    pub(super) fn of_rank(plan: &Plan, ranks: Option<Ranks>) -> Result<Self> {
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
            most_tilt: most_tilt(plan),
            topology: Topology::default(),
            rules: pair_rules(plan),
            tables: LinkTables::default(),
            links: Default::default(),
            special: SpecialLists::new(plan.pipeline.neighbors.special),
            forces: vec![],
            integrators: vec![],
            forces_again: false,
            integrator_states: BTreeMap::new(),
            edits: Edits::default(),
            chunk_sums: vec![],
            sums: vec![],
            quantities: vec![],
            host: HostServices::cpu(),
            storage: PhantomData,
            facts,
            ranks,
        };
        if let Some(ranks) = &system.ranks {
            system.host.set_ranks(ranks.for_components());
        }
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

    /// Sorts the particles along the cells and builds the neighbor list.
    ///
    /// # Errors
    /// Returns an error if there is no memory for the list.
    pub(super) fn rebuild(&mut self) -> Result<()> {
        self.list.sort(values(&self.arrays, ArrayId::PosType), tags(&self.arrays), &self.globals);
        let order = self.list.order();
        if order.iter().enumerate().any(|(k, i)| k as u32 != *i) {
            for a in self.arrays.iter_mut().filter(|a| a.info.sort == Sort::Follows && !a.data.bytes().is_empty()) {
                a.data.permute(order);
            }
        }
        let [tag, index_of_tag] = two(&mut self.arrays, ArrayId::Tag, ArrayId::IndexOfTag);
        let index_of_tag = as_atomics(index_of_tag.values_mut::<u32>());
        tag.values::<u32>().par_iter().enumerate().with_min_len(CHUNK).for_each(|(i, t)| {
            index_of_tag[*t as usize].store(i as u32, Ordering::Relaxed);
        });
        let [pos, built] = two(&mut self.arrays, ArrayId::PosType, ArrayId::PosAtBuild);
        let (to, from) = (built.bytes_mut().par_chunks_mut(COPIED), pos.bytes().par_chunks(COPIED));
        to.zip(from).for_each(|(to, from)| to.copy_from_slice(from));
        self.globals.begin_list();
        if self.list.r_list > 0.0 {
            let scale = self.globals.scale::<S>();
            let pos = values(&self.arrays, ArrayId::PosType);
            let chunks = self.listed_chunks();
            let excluded = self.tables.exclusions.as_ref();
            self.list.build(pos, tags(&self.arrays), &scale, excluded, chunks, self.isa)?;
        }
        self.index_links();
        self.write_guards();
        for a in &mut self.arrays {
            if let Some(name) = a.info.component_name() {
                self.host.set_array(name, a.data.address());
            }
        }
        self.globals.rebuild.set(0);
        self.globals.rebuilds += 1;
        Ok(())
    }

    /// Replaces a box that is too skewed; see [`crate::state::reduction`]. The neighbor list must be rebuilt.
    pub(super) fn reduce_box(&mut self) {
        let Some(reduction) = Reduction::of(&self.globals, self.most_tilt) else { return };
        let ids = [ArrayId::PosType, ArrayId::PosLow, ArrayId::Image].map(|id| id as usize);
        let arrays = self.arrays.get_disjoint_mut(ids).expect("different arrays of the table");
        reduction.apply::<S>(arrays.map(|a| &mut a.data));
        self.globals.tilt = reduction.tilt;
    }

    /// Returns whether an integrator of the stage changes the box and therefore needs the virial of every step.
    pub(super) fn changes_box(&self) -> bool {
        self.integrators.iter().any(|m| m.program.phases.iter().any(|p| p.sim_box && !p.shear))
    }

    /// Applies what an updater did to the state, and recomputes forces if needed.
    pub(super) fn apply(&mut self, updater: &Arc<Component>, update: Update, wanted: Wanted) -> Result<()> {
        let Update { mut edits, changed: changed_now, sim_box } = update;
        let box_changed = changed_now & changed::BOX != 0;
        if box_changed {
            let ratio = self.globals.set_shape(sim_box.length, sim_box.tilt, updater.id);
            scale_positions::<S>(&mut self.arrays, ratio);
        }
        self.check_fault_of(Some(updater))?;
        if changed_now & changed::FORCES != 0 {
            let pos = self.arrays[ArrayId::PosType as usize].data.bytes();
            let who = format!("{}: a particle", updater.name);
            check_types(pos, self.facts.precision, self.facts.n_types, &who)?;
        }
        let topology_changed = !edits.is_empty();
        let mut touched = Touched::default();
        if topology_changed {
            let (types, step) = (self.facts.link_types, self.globals.step);
            touched = self.topology.apply_of(&updater.name, &mut self.tables, &mut edits, types, step)?;
        }
        let positions = changed_now & changed::POSITIONS != 0 || box_changed;
        if positions || changed_now & changed::VELOCITIES != 0 {
            self.place(Moment::Start)?;
        }
        if positions || touched.exclusion_removed {
            self.reduce_box();
            self.rebuild()?;
        } else if topology_changed {
            self.update_links(&touched);
        }
        if positions || topology_changed || changed_now & changed::FORCES != 0 {
            self.compute_forces(wanted)?;
        }
        if changed_now & changed::VELOCITIES != 0 {
            self.start_integrators()?;
        }
        Ok(())
    }

    /// Returns an error if a fault was raised.
    pub(super) fn check_fault(&mut self) -> Result<()> {
        self.check_fault_of(None)
    }

    /// Like [`Self::check_fault`], after a call of an updater.
    fn check_fault_of(&mut self, updater: Option<&Component>) -> Result<()> {
        if !self.globals.is_halted() {
            return Ok(());
        }
        let f = self.globals.fault.get();
        let mut components =
            self.integrators.iter().map(|m| &m.component).chain(&self.forces).map(|c| &**c).chain(updater);
        let component = components.find(|c| c.id == f.component);
        Err(crate::backend::fault_error(self.globals.step, f, component))
    }
}

/// Returns the values of a fixed array.
pub(super) fn values<T: Plain>(arrays: &[StoredArray], id: ArrayId) -> &[T] {
    arrays[id as usize].data.values()
}

pub(super) fn tags(arrays: &[StoredArray]) -> &[u32] {
    values(arrays, ArrayId::Tag)
}

/// Multiplies positions by the ratio of box lengths, where they are stored as lengths.
pub(super) fn scale_positions<S: Store>(arrays: &mut [StoredArray], ratio: [f64; 3]) {
    S::stretch(arrays[ArrayId::PosType as usize].data.values_mut(), ratio);
}

/// Returns two different fixed arrays.
fn two(arrays: &mut [StoredArray], a: ArrayId, b: ArrayId) -> [&mut Bytes; 2] {
    let both = arrays.get_disjoint_mut([a as usize, b as usize]);
    both.expect("two different arrays of the table").map(|a| &mut a.data)
}

impl<S: Store> Backend for CpuSystem<S> {
    fn begin_stage(&mut self, stage: &StagePlan, forces_are_valid: bool) -> Result<()> {
        self.globals.dt = stage.stage.dt;
        self.globals.evaluate();
        self.globals.begin_shear(stage, &self.facts)?;
        self.forces = stage.forces.clone();
        self.sums = vec![Sums::default(); self.forces.len()];
        self.quantities = vec![0.0; self.forces.iter().map(|c| c.needs.quantities.len()).sum()];
        self.integrators.clear();
        self.forces_again = stage.forces_again();
        let conserved = stage.conserves_momentum();
        for (component, constraints) in stage.integrators.iter().zip(&stage.constraints) {
            let part =
                component.integrator().ok_or_else(|| Error::Run(format!("{} is no integrator", component.name)))?;
            let program = part.program()?;
            let group = component.group;
            let extra = program.extra.as_ref().and_then(|e| self.optional_array(&e.name));
            let info = self.facts.group_info(group, &self.globals, component.first_varying, conserved, *constraints);
            let first = part.state(&info)?;
            match self.integrator_states.entry(component.id) {
                Entry::Vacant(slot) => {
                    slot.insert(Bytes::from_bytes(&first));
                }
                Entry::Occupied(restored) => check_state_length(component, restored.get().bytes().len(), first.len())?,
            }
            self.integrators.push(StageIntegrator { component: component.clone(), program, group, extra });
        }
        if forces_are_valid { Ok(()) } else { self.evaluate() }
    }

    fn evaluate(&mut self) -> Result<()> {
        self.place(Moment::Start)?;
        if self.globals.needs_rebuild() {
            self.rebuild()?;
        }
        self.compute_forces(Wanted::ALL)?;
        self.start_integrators()
    }

    fn sums(&mut self) -> Result<SystemSums> {
        self.system_sums()
    }

    fn step(&self) -> u64 {
        self.globals.step
    }

    fn advance(&mut self, steps: u64, wanted: Wanted, stop: &AtomicBool) -> Result<u64> {
        // run on a worker thread: from outside the pool, every parallel loop would be handed over and waited for
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
        let Some(update) = call_updater(self, updater, false)? else { return Ok(()) };
        self.apply(updater, update, wanted)
    }

    fn export(&mut self) -> Result<RawState> {
        export(self)
    }

    fn import(&mut self, state: &RawState) -> Result<()> {
        import(self, state)
    }

    fn globals(&self) -> Globals {
        (*self.globals).clone()
    }

    fn box_length(&self) -> [f64; 3] {
        self.globals.box_length
    }

    fn views(&mut self) -> Result<(StateView, ListView, LinkView)> {
        let (state, list, bonds) = (self.own_view(), self.list.view(), self.link_view(LinkList::Bonds));
        let arrays = self.arrays.iter_mut().map(|a| (a.data.address(), a.data.bytes().len() as u64));
        let words = self.list.arrays().into_iter().chain(self.links[0].arrays());
        let lent = arrays.chain(words.map(|w| (w.as_ptr() as u64, size_of_val(w) as u64)));
        self.host.lend(lent.filter(|(_, bytes)| *bytes > 0).collect());
        Ok((state, list, bonds))
    }

    fn end_views(&mut self) {
        self.host.lend(vec![]);
    }

    fn host(&self) -> &WireHost {
        self.host.wire()
    }

    fn list_report(&mut self) -> Result<ListReport> {
        let (mean, longest) = self.list.statistics(&self.listed_chunks());
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
