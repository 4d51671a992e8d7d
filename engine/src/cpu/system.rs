//! The state on the CPU.

use super::list::List;
use super::store::{Store, has_low_bits};
use super::vector_extension;
use crate::buffers::Bytes;
use crate::host::HostServices;
use crate::plan::{Plan, StagePlan, in_group};
use crate::plugins::Component;
use crate::run::{Backend, Columns, ListReport, RawState, SystemSums, list_radius};
use crate::topology::{LinkRows, Topology};
use galamost_plugin_api::abi::WireHost;
use galamost_plugin_api::component::{ArrayNeed, Wants};
use galamost_plugin_api::device::DevicePtr;
use galamost_plugin_api::error::{Error, Result};
use galamost_plugin_api::integrator::{GroupInfo, ProgramInfo};
use galamost_plugin_api::pair::PairCall;
use galamost_plugin_api::precision::Precision;
use galamost_plugin_api::real::Real;
use galamost_plugin_api::snapshot::{Array, Snapshot, Values};
use galamost_plugin_api::updater::{Edit, EditQueue, UpdateCall, changed};
use galamost_plugin_api::views::{Globals, LinkView, ListView, StateView, Sums, Wanted};
use rayon::prelude::*;
use std::collections::BTreeMap;
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
    rows: LinkRows,
    words: Vec<u32>,
    count: Vec<u32>,
}

/// An integrator with its program and state.
pub(super) struct Moving {
    pub component: Arc<Component>,
    pub program: ProgramInfo,
    pub group: u32,
    /// Place of its array in `arrays`.
    pub extra: Option<usize>,
}

/// The CPU backend.
pub struct CpuSystem<S: Store> {
    pub(super) n: usize,
    pub(super) precision: Precision,
    pub(super) isa: u32,
    pub(super) seed: u64,
    pub(super) globals: Box<Globals>,
    pub(super) pos: Vec<S::PosType>,
    low: Vec<[u32; 3]>,
    pub(super) vel: Vec<[S::Real; 4]>,
    pub(super) force: Vec<[S::Real; 4]>,
    image: Vec<[i32; 3]>,
    pub(super) tag: Vec<u32>,
    index_of_tag: Vec<u32>,
    group: Vec<u32>,
    built: Vec<S::PosType>,
    pub(super) arrays: Vec<OptionalArray>,
    /// Arrays no component asked for: they stay on the host, in tag order, for writers.
    idle_arrays: BTreeMap<String, Array>,
    pub(super) list: List,
    buffer: f64,
    topology: Topology,
    exclude: crate::pipeline::Exclusions,
    exclusions: Option<LinkRows>,
    pub(super) links: [Links; 3],
    n_types: u32,
    group_of_tag: Vec<u32>,
    pub(super) forces: Vec<Arc<Component>>,
    pub(super) moving: Vec<Moving>,
    /// State of every integrator of the run by its number.
    pub(super) integrator_states: BTreeMap<u32, Bytes>,
    pub(super) chunk_sums: Vec<Sums>,
    pub(super) sums: Vec<Sums>,
    pub(super) host: HostServices,
    plan_groups: Vec<galamost_plugin_api::component::GroupNeed>,
    dimensions: u32,
    degrees_of_freedom: f64,
}

impl<S: Store> CpuSystem<S> {
    /// The initial state of a plan.
    ///
    /// # Errors
    /// An array that a component requires is not there.
    pub fn new(plan: &Plan) -> Result<Self> {
        let s = &plan.snapshot;
        let n = s.len();
        let mut globals = Box::new(Globals::new());
        globals.dimensions = s.dimensions;
        globals.step = s.step;
        globals.box_length = s.box_length;
        let (radius, buffer) = list_radius(plan);
        globals.slack2 = (0.5 * buffer).powi(2);
        for c in &plan.components {
            for (k, v) in c.needs.varyings.iter().enumerate() {
                let slot = c.first_varying as usize + k;
                globals.varyings[slot] = *v;
                globals.n_values = globals.n_values.max(slot as u32 + 1);
            }
        }
        globals.evaluate();
        let mut system = Self {
            n,
            precision: plan.pipeline.precision,
            isa: vector_extension(),
            seed: plan.pipeline.seed,
            globals,
            pos: vec![S::PosType::default(); n],
            low: vec![[0; 3]; n],
            vel: vec![[S::Real::ZERO; 4]; n],
            force: vec![[S::Real::ZERO; 4]; n],
            image: s.image.clone(),
            tag: (0..n as u32).collect(),
            index_of_tag: (0..n as u32).collect(),
            group: vec![0; n],
            built: vec![S::PosType::default(); n],
            arrays: vec![],
            idle_arrays: s.arrays.clone(),
            list: List::new(radius),
            buffer,
            topology: Topology::of(s),
            exclude: plan.pipeline.neighbors.exclude,
            exclusions: None,
            links: Default::default(),
            n_types: s.types.len() as u32,
            group_of_tag: vec![],
            forces: vec![],
            moving: vec![],
            integrator_states: BTreeMap::new(),
            chunk_sums: vec![],
            sums: vec![],
            host: HostServices::cpu(),
            plan_groups: plan.groups.clone(),
            dimensions: s.dimensions,
            degrees_of_freedom: crate::run::degrees_of_freedom(plan),
        };
        system.fill(s);
        system.make_arrays(plan)?;
        system.renew_topology();
        system.rebuild();
        Ok(system)
    }

    fn fill(&mut self, s: &Snapshot) {
        for i in 0..self.n {
            let (p, low, crossed) = S::store(s.position[i], s.kind[i], s.box_length);
            self.pos[i] = p;
            self.low[i] = if has_low_bits(self.precision) { low } else { [0; 3] };
            for (image, crossed) in self.image[i].iter_mut().zip(crossed) {
                *image += crossed;
            }
            let v = s.velocity[i].map(S::Real::lit);
            self.vel[i] = [v[0], v[1], v[2], S::Real::lit(s.mass[i])];
            for (bit, group) in self.plan_groups.iter().enumerate() {
                if in_group(group, i as u32, s) {
                    self.group[i] |= 1 << bit;
                }
            }
        }
        self.group_of_tag = self.group.clone();
    }

    fn make_arrays(&mut self, plan: &Plan) -> Result<()> {
        for component in &plan.components {
            for need in &component.needs.arrays {
                if self.arrays.iter().any(|a| a.need.name == need.name) {
                    continue;
                }
                let given = self.idle_arrays.remove(&need.name);
                if need.required && given.is_none() {
                    return Err(Error::input(format!(
                        "{} needs `{}` of every particle, but the initial state does not have it",
                        component.name, need.name
                    )));
                }
                let size = if need.integer { 4 } else { size_of::<S::Real>() };
                let mut data = Bytes::zeroed(size * need.width as usize, self.n);
                match given.map(|a| a.values) {
                    Some(Values::Real(v)) => write_reals::<S::Real>(data.bytes_mut(), &v),
                    Some(Values::Int(v)) if need.integer => {
                        for (b, x) in data.bytes_mut().chunks_exact_mut(4).zip(v) {
                            b.copy_from_slice(&x.to_ne_bytes());
                        }
                    }
                    Some(Values::Int(v)) => {
                        write_reals::<S::Real>(data.bytes_mut(), &v.iter().map(|x| f64::from(*x)).collect::<Vec<_>>());
                    }
                    None => {}
                }
                self.arrays.push(OptionalArray { need: need.clone(), data });
            }
        }
        Ok(())
    }

    /// Rows and exclusions after a change of topology.
    fn renew_topology(&mut self) {
        let t = &self.topology;
        self.links[0].rows = LinkRows::new(&t.bonds, self.n);
        self.links[1].rows = LinkRows::new(&t.angles, self.n);
        self.links[2].rows = LinkRows::new(&t.dihedrals, self.n);
        self.exclusions = t.exclusions(self.exclude, self.n);
    }

    /// The state as plugins see it.
    pub(super) fn view(&mut self) -> StateView {
        let array = |arrays: &mut Vec<OptionalArray>, name: &str| {
            let found = arrays.iter_mut().find(|a| a.need.name == name);
            found.map_or(DevicePtr::null(), |a| DevicePtr::new(a.data.address()))
        };
        StateView {
            precision: self.precision as u32,
            n_local: self.n as u32,
            n_types: self.n_types,
            has_groups: u32::from(!self.plan_groups.is_empty()),
            pos_type: DevicePtr::new(self.pos.as_mut_ptr() as u64),
            pos_low: if has_low_bits(self.precision) {
                DevicePtr::new(self.low.as_mut_ptr() as u64)
            } else {
                DevicePtr::null()
            },
            velocity_mass: DevicePtr::new(self.vel.as_mut_ptr() as u64),
            force: DevicePtr::new(self.force.as_mut_ptr() as u64),
            image: DevicePtr::new(self.image.as_mut_ptr() as u64),
            tag: DevicePtr::new(self.tag.as_mut_ptr() as u64),
            index_of_tag: DevicePtr::new(self.index_of_tag.as_mut_ptr() as u64),
            group: DevicePtr::new(self.group.as_mut_ptr() as u64),
            pos_at_build: DevicePtr::new(self.built.as_mut_ptr() as u64),
            charge: array(&mut self.arrays, "charge"),
            diameter: array(&mut self.arrays, "diameter"),
            globals: DevicePtr::new(std::ptr::from_mut(&mut *self.globals) as u64),
            ..StateView::empty()
        }
    }

    pub(super) fn link_view(&mut self, which: usize) -> LinkView {
        let l = &mut self.links[which];
        LinkView {
            capacity: l.rows.longest,
            stride: self.n as u32,
            words: DevicePtr::new(l.words.as_mut_ptr() as u64),
            count: DevicePtr::new(l.count.as_mut_ptr() as u64),
            ..LinkView::empty(which as u32 + 2)
        }
    }

    /// Sorts particles along the cells and builds the list.
    pub(super) fn rebuild(&mut self) {
        let length = self.globals.box_length;
        let order = self.list.order::<S>(&self.pos, &self.tag, length, self.dimensions);
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
            for (i, t) in self.tag.iter().enumerate() {
                self.index_of_tag[*t as usize] = i as u32;
            }
        }
        self.built.copy_from_slice(&self.pos);
        if self.list.r_list > 0.0 {
            let scale = S::scale(length);
            self.list.build::<S>(&self.pos, &self.tag, &scale, self.exclusions.as_ref(), self.isa);
        }
        self.index_links();
        for a in &mut self.arrays {
            self.host.set_array(&a.need.name, a.data.address());
        }
        self.globals.rebuild = 0;
        self.globals.rebuilds += 1;
    }

    fn index_links(&mut self) {
        let (n, tag, index_of_tag) = (self.n, &self.tag, &self.index_of_tag);
        for l in &mut self.links {
            let width = l.rows.width.max(2);
            let longest = l.rows.longest as usize;
            l.words.resize(longest * width * n, 0);
            l.count.clear();
            l.count.resize(n, 0);
            if longest == 0 {
                continue;
            }
            for (i, t) in tag.iter().enumerate() {
                let row = l.rows.row(*t);
                l.count[i] = (row.len() / width) as u32;
                for (e, entry) in row.chunks_exact(width).enumerate() {
                    for (w, word) in entry.iter().enumerate() {
                        let value = if w + 1 < width { index_of_tag[*word as usize] } else { *word };
                        l.words[(e * width + w) * n + i] = value;
                    }
                }
            }
        }
    }

    /// An error if some thread noted a fault.
    pub(super) fn check_fault(&mut self) -> Result<()> {
        if self.globals.halt == 0 {
            return Ok(());
        }
        let f = self.globals.fault;
        let name = self.moving.iter().find(|m| m.component.id == f.component).map(|m| m.component.name.as_str());
        Err(crate::run::fault_error(self.globals.step, f, name))
    }

    fn group_info(&self, m: &Moving, dt: f64) -> GroupInfo {
        let n = match m.group {
            32 => self.n,
            bit => self.group.iter().filter(|g| *g >> bit & 1 == 1).count(),
        };
        let first = m.component.first_varying as usize;
        GroupInfo {
            n: n as u64,
            degrees_of_freedom: crate::run::group_degrees_of_freedom(
                self.dimensions,
                n,
                self.n,
                self.degrees_of_freedom,
            ),
            dimensions: self.dimensions,
            dt,
            varying: std::array::from_fn(|k| self.globals.values.get(first + k).copied().unwrap_or(0.0)),
        }
    }
}

/// Elements in another order.
fn permute<T: Copy + Send + Sync>(values: &mut Vec<T>, order: &[u32]) {
    let sorted: Vec<T> = order.par_iter().with_min_len(1024).map(|i| values[*i as usize]).collect();
    *values = sorted;
}

fn write_reals<R: Real>(bytes: &mut [u8], values: &[f64]) {
    let size = size_of::<R>();
    let mut one = Vec::with_capacity(8);
    for (b, x) in bytes.chunks_exact_mut(size).zip(values) {
        one.clear();
        R::lit(*x).push_bytes(&mut one);
        b.copy_from_slice(&one);
    }
}

/// Numbers of type `R` as f64.
fn read_reals<R: Real>(bytes: &[u8]) -> impl Iterator<Item = f64> + '_ {
    let size = size_of::<R>();
    bytes.chunks_exact(size).map(move |b| match *b {
        [a, b, c, d] => f64::from(f32::from_ne_bytes([a, b, c, d])),
        [a, b, c, d, e, f, g, h] => f64::from_ne_bytes([a, b, c, d, e, f, g, h]),
        _ => f64::NAN,
    })
}

impl<S: Store> Backend for CpuSystem<S> {
    fn begin_stage(&mut self, stage: &StagePlan, forces_are_good: bool) -> Result<()> {
        self.globals.dt = stage.stage.dt;
        self.globals.evaluate();
        self.forces = stage.forces.clone();
        self.sums = vec![Sums::default(); self.forces.len()];
        self.moving.clear();
        for component in &stage.integrators {
            let part =
                component.integrator().ok_or_else(|| Error::Run(format!("{} is no integrator", component.name)))?;
            let program = part.program()?;
            let group = self.plan_groups.iter().position(|g| *g == component.needs.group).map_or(32, |b| b as u32);
            let extra = program.extra.as_ref().and_then(|e| self.arrays.iter().position(|a| a.need.name == e.name));
            let moving = Moving { component: component.clone(), program, group, extra };
            if !self.integrator_states.contains_key(&component.id) {
                let bytes = part.state(&self.group_info(&moving, stage.stage.dt))?;
                let mut state = Bytes::zeroed(bytes.len(), 1);
                state.bytes_mut().copy_from_slice(&bytes);
                self.integrator_states.insert(component.id, state);
            }
            self.moving.push(moving);
        }
        if forces_are_good {
            return Ok(());
        }
        if self.globals.rebuild != 0 {
            self.rebuild();
        }
        // the forces of the state as it is: drawn with the key of the step that led here
        self.globals.step = self.globals.step.wrapping_sub(1);
        let done = self.compute_forces(Wanted::ALL);
        self.globals.step = self.globals.step.wrapping_add(1);
        done?;
        self.start_integrators()
    }

    fn step(&self) -> u64 {
        self.globals.step
    }

    fn advance(&mut self, steps: u64, wanted: Wanted, stop: &AtomicBool) -> Result<u64> {
        for k in 0..steps {
            if stop.load(Ordering::Relaxed) {
                return Ok(k);
            }
            let last = k + 1 == steps;
            self.one_step(if last { wanted } else { Wanted::FORCE })?;
        }
        Ok(steps)
    }

    fn sums(&mut self) -> Result<SystemSums> {
        let mut out = SystemSums { components: self.sums.clone(), ..SystemSums::default() };
        for v in &self.vel {
            let [x, y, z, m] = v.map(Real::f64);
            for (sum, term) in out.kinetic_tensor.iter_mut().zip([x * x, x * y, x * z, y * y, y * z, z * z]) {
                *sum += m * term;
            }
            for (sum, v) in out.momentum.iter_mut().zip([x, y, z]) {
                *sum += m * v;
            }
        }
        for m in &self.moving {
            if let (Some(part), Some(state)) = (m.component.integrator(), self.integrator_states.get(&m.component.id)) {
                out.reservoir += part.conserved(state.bytes());
            }
        }
        Ok(out)
    }

    fn columns(&mut self, wants: Wants) -> Result<Columns> {
        let mut c = Columns::default();
        if wants.particles {
            let length = self.globals.box_length;
            let index = |t: usize| self.index_of_tag[t] as usize;
            c.position = (0..self.n).map(|t| S::load(&self.pos[index(t)], self.low[index(t)], length)).collect();
            c.image = (0..self.n).map(|t| self.image[index(t)]).collect();
            c.velocity = (0..self.n)
                .map(|t| {
                    let v = self.vel[index(t)];
                    [v[0].f64(), v[1].f64(), v[2].f64()]
                })
                .collect();
            c.kind = (0..self.n).map(|t| S::kind(&self.pos[index(t)])).collect();
            c.mass = (0..self.n).map(|t| self.vel[index(t)][3].f64()).collect();
            c.arrays = self.idle_arrays.clone();
            for a in self.arrays.iter().filter(|a| !a.need.name.contains('.')) {
                let rows = (0..self.n).flat_map(|t| a.data.element(index(t)).to_vec()).collect::<Vec<u8>>();
                let values = if a.need.integer {
                    Values::Int(rows.chunks_exact(4).map(|b| i32::from_ne_bytes([b[0], b[1], b[2], b[3]])).collect())
                } else {
                    Values::Real(read_reals::<S::Real>(&rows).collect())
                };
                c.arrays.insert(a.need.name.clone(), Array { width: a.need.width, values });
            }
        }
        if wants.topology {
            c.bonds = self.topology.bonds.clone();
            c.angles = self.topology.angles.clone();
            c.dihedrals = self.topology.dihedrals.clone();
        }
        Ok(c)
    }

    fn update(&mut self, updater: &Arc<Component>, wanted: Wanted) -> Result<()> {
        let part = updater.updater().ok_or_else(|| Error::Run(format!("{} is no updater", updater.name)))?;
        let mut room = 1024;
        let (mut edits, changed_now) = loop {
            let mut edits = vec![Edit::default(); room];
            let mut count = 0u32;
            let queue = EditQueue {
                edits: DevicePtr::new(edits.as_mut_ptr() as u64),
                count: DevicePtr::new(std::ptr::from_mut(&mut count) as u64),
                capacity: room as u32,
                reserved: 0,
            };
            let mut call = UpdateCall {
                size: size_of::<UpdateCall>() as u32,
                component: updater.id,
                first_varying: updater.first_varying,
                changed: 0,
                step: self.globals.step,
                key: galamost_plugin_api::philox::RandomKey::new(self.seed, updater.id),
                state: self.view(),
                list: self.list.view(),
                bonds: self.link_view(0),
                edits: queue,
                reserved: [0; 8],
            };
            // SAFETY: every view describes arrays of this system, and nothing else runs meanwhile
            unsafe { part.update(&mut call)? };
            if count as usize <= room {
                edits.truncate(count as usize);
                break (edits, call.changed);
            }
            room = (count as usize).next_power_of_two();
        };
        self.check_fault()?;
        let topology_changed = !edits.is_empty();
        if topology_changed {
            self.topology.apply(&mut edits, self.n, self.globals.step)?;
            self.renew_topology();
        }
        let positions = changed_now & changed::POSITIONS != 0;
        if positions || (topology_changed && self.exclude != Default::default()) {
            self.rebuild();
        } else if topology_changed {
            self.index_links();
        }
        if positions || topology_changed || changed_now & changed::FORCES != 0 {
            self.globals.step = self.globals.step.wrapping_sub(1);
            let done = self.compute_forces(wanted);
            self.globals.step = self.globals.step.wrapping_add(1);
            done?;
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
            bonds: self.topology.bonds.clone(),
            angles: self.topology.angles.clone(),
            dihedrals: self.topology.dihedrals.clone(),
            ..RawState::default()
        };
        let order = &self.index_of_tag;
        let mut put = |name: &str, bytes: Vec<u8>| out.sections.insert(name.into(), bytes);
        put("pos_type", by_tag(&self.pos, order));
        put("pos_at_build", by_tag(&self.built, order));
        put("pos_low", by_tag(&self.low, order));
        put("velocity_mass", by_tag(&self.vel, order));
        put("force", by_tag(&self.force, order));
        put("image", by_tag(&self.image, order));
        for a in &self.arrays {
            let rows = order.iter().flat_map(|i| a.data.element(*i as usize).to_vec()).collect();
            put(&format!("array.{}", a.need.name), rows);
        }
        for (id, state) in &self.integrator_states {
            put(&format!("integrator.{id}"), state.bytes().to_vec());
        }
        put("rebuild", self.globals.rebuild.to_ne_bytes().to_vec());
        put("rebuilds", self.globals.rebuilds.to_ne_bytes().to_vec());
        Ok(out)
    }

    fn import(&mut self, state: &RawState) -> Result<()> {
        self.globals.step = state.step;
        self.globals.box_length = state.box_length;
        self.globals.evaluate();
        self.topology =
            Topology { bonds: state.bonds.clone(), angles: state.angles.clone(), dihedrals: state.dihedrals.clone() };
        self.renew_topology();
        // back to tag order, with the positions of the last list build: sorting these gives the order and the list
        // of that build again, on which the sums of the next steps depend to the last bit
        self.tag = (0..self.n as u32).collect();
        self.index_of_tag = self.tag.clone();
        let section = |name: &str| {
            state.sections.get(name).ok_or_else(|| Error::Run(format!("the checkpoint has no section `{name}`")))
        };
        from_bytes(&mut self.pos, section("pos_at_build")?)?;
        from_bytes(&mut self.low, section("pos_low")?)?;
        from_bytes(&mut self.vel, section("velocity_mass")?)?;
        from_bytes(&mut self.force, section("force")?)?;
        from_bytes(&mut self.image, section("image")?)?;
        for a in &mut self.arrays {
            let bytes = section(&format!("array.{}", a.need.name))?;
            if bytes.len() != a.data.bytes().len() {
                return Err(Error::Run(format!("the checkpoint's array {} does not fit", a.need.name)));
            }
            a.data.bytes_mut().copy_from_slice(bytes);
        }
        self.group.copy_from_slice(&self.group_of_tag);
        for (name, bytes) in &state.sections {
            if let Some(id) = name.strip_prefix("integrator.").and_then(|i| i.parse().ok()) {
                let mut b = Bytes::zeroed(bytes.len(), 1);
                b.bytes_mut().copy_from_slice(bytes);
                self.integrator_states.insert(id, b);
            }
        }
        self.rebuild();
        let mut now = vec![S::PosType::default(); self.n];
        from_bytes(&mut now, section("pos_type")?)?;
        for (i, t) in self.tag.iter().enumerate() {
            self.pos[i] = now[*t as usize];
        }
        let word = |name: &str| Ok::<_, Error>(section(name)?.first().copied().unwrap_or(0));
        self.globals.rebuild = u32::from(word("rebuild")?);
        if let Ok(b) = section("rebuilds")?.as_slice().try_into() {
            self.globals.rebuilds = u64::from_ne_bytes(b);
        }
        Ok(())
    }

    fn box_length(&self) -> [f64; 3] {
        self.globals.box_length
    }

    fn views(&self) -> (StateView, ListView, LinkView) {
        (StateView::empty(), ListView::empty(), LinkView::empty(2))
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
        (per * self.n + self.list.memory()) as u64
    }
}

/// Bytes of an array in tag order.
fn by_tag<T: Copy>(values: &[T], index_of_tag: &[u32]) -> Vec<u8> {
    let size = size_of::<T>();
    let mut out = Vec::with_capacity(size * values.len());
    for i in index_of_tag {
        // SAFETY: arrays of the state are plain numbers without padding that matters
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
        key: galamost_plugin_api::philox::RandomKey::new(system.seed, c.id),
        state,
        list,
    }
}
