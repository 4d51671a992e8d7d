//! What both backends do alike: saving and restoring the state, and calling updaters.

use super::{Backend, ShearState as _};
use crate::plugins::Component;
use crate::plugins::host::HostServices;
use crate::state::arrays::{ArrayId, ParticleArray, Restored};
use crate::state::raw::check_types;
use crate::state::topology::Topology;
use crate::state::{Facts, RawState};
use galamost_plugin_api::device::DevicePtr;
use galamost_plugin_api::error::{Error, Result};
use galamost_plugin_api::philox::RandomKey;
use galamost_plugin_api::updater::{Edit, EditQueue, UpdateCall, changed, phase};
use galamost_plugin_api::views::{FaultRecord, Globals, SimBox};
use rayon::prelude::*;
use std::sync::atomic::Ordering;

/// The storage of a backend, as [`export`], [`import`] and [`call_updater`] use it.
pub trait Storage: Backend {
    /// Returns the host's globals.
    fn globals(&mut self) -> &mut Globals;

    /// Returns the services that components use.
    fn services(&self) -> &HostServices;

    /// Returns the states of all integrators by component number.
    ///
    /// # Errors
    /// Returns the driver's error.
    fn integrator_states(&self) -> Result<Vec<(u32, Vec<u8>)>>;

    /// Sets the state of an integrator.
    ///
    /// # Errors
    /// Returns the driver's error.
    fn set_integrator_state(&mut self, id: u32, bytes: &[u8]) -> Result<()>;

    /// Returns the box lengths and tilt factors for which the cell grid was made, if it is kept from one list build to the next.
    fn grid_box(&self) -> Option<[[f64; 3]; 2]> {
        None
    }

    /// Prepares for another state: topology and cell grid. The globals are already those of its last list build.
    ///
    /// # Errors
    /// Returns an error if the topology or the grid cannot be set up.
    fn begin_import(&mut self, topology: &Topology, grid_box: [[f64; 3]; 2]) -> Result<()>;

    /// Returns whether the order of particles does not follow from their positions at the last list build, so that
    /// checkpoints must contain it.
    fn keeps_order(&self) -> bool {
        false
    }

    /// Returns whether the run began with a staged list and continues with a plain one.
    fn left_staged_list(&self) -> bool {
        false
    }

    /// Continues with a plain list if the list is staged.
    ///
    /// # Errors
    /// Returns the driver's error.
    fn use_plain_list(&mut self) -> Result<()> {
        Ok(())
    }

    /// Sets the tag of each index.
    ///
    /// # Errors
    /// Returns the driver's error.
    fn write_tags(&mut self, tags: &[u32]) -> Result<()>;

    /// Returns the tags in the current order.
    ///
    /// # Errors
    /// Returns the driver's error.
    fn tags(&self) -> Result<Vec<u32>>;

    /// Writes an array in the current order; does nothing for an array that this precision does not store.
    ///
    /// # Errors
    /// Returns the driver's error.
    fn write_array(&mut self, array: &ParticleArray, bytes: &[u8]) -> Result<()>;

    /// Sorts the particles, unless they are `sorted`, and builds the neighbor list.
    ///
    /// # Errors
    /// Returns the driver's error.
    fn rebuild_list(&mut self, sorted: bool) -> Result<()>;

    /// Copies the host's globals to the device.
    ///
    /// # Errors
    /// Returns the driver's error.
    fn publish_globals(&mut self) -> Result<()>;

    /// Returns an empty queue for an updater's changes of topology.
    ///
    /// # Errors
    /// Returns the driver's error.
    fn edit_queue(&mut self) -> Result<EditQueue>;

    /// Returns the queued changes; `None` if there were too many and the next queue is longer.
    ///
    /// # Errors
    /// Returns the driver's error.
    fn take_edits(&mut self) -> Result<Option<Vec<Edit>>>;

    /// Returns whether changes of topology are queued. If only the device knows it, the answer is `false` unless the host `may_wait`.
    ///
    /// # Errors
    /// Returns the driver's error.
    fn has_edits(&self, may_wait: bool) -> Result<bool>;

    /// Returns an error if the component wrote outside of an array, where this is checked.
    ///
    /// # Errors
    /// See above.
    fn check_memory(&self, component: &str) -> Result<()>;
}

/// Returns the state bit for bit.
///
/// # Errors
/// Returns the driver's error.
pub fn export<B: Storage>(backend: &mut B) -> Result<RawState> {
    let g = backend.globals().clone();
    let topology = backend.topology().clone();
    let mut out = RawState { step: g.step, box_length: g.box_length, topology, ..RawState::default() };
    for array in backend.facts().particle_arrays().into_iter().filter(ParticleArray::saved) {
        let bytes = backend.read(&array.name)?;
        out.sections.insert(array.name, bytes);
    }
    for (id, bytes) in backend.integrator_states()? {
        out.sections.insert(format!("integrator.{id}"), bytes);
    }
    out.sections.insert("rebuild".into(), g.rebuild.get().to_le_bytes().to_vec());
    out.sections.insert("rebuilds".into(), g.rebuilds.to_le_bytes().to_vec());
    out.put("built_length", g.built_length);
    if backend.keeps_order() {
        out.sections.insert(ORDER.into(), backend.tags()?.iter().flat_map(|t| t.to_le_bytes()).collect());
    }
    if backend.left_staged_list() {
        out.sections.insert(PLAIN_LIST.into(), vec![]);
    }
    if let Some([length, tilt]) = backend.grid_box() {
        out.put("grid_length", length);
        if tilt != g.tilt {
            out.put("grid_tilt", tilt);
        }
    }
    out.put("virial", g.virial);
    out.set_tilt(g.tilt);
    if g.built_tilt != g.tilt {
        out.put("built_tilt", g.built_tilt);
    }
    if g.shear_virial != [0.0; 3] {
        out.put("shear_virial", g.shear_virial);
    }
    g.export_shear(&mut out);
    Ok(out)
}

/// Restores a state bit for bit, including the order of particles and the neighbor list of the last build, on which the
/// sums of the next steps depend to the last bit.
///
/// # Errors
/// Returns an error if the state does not fit this system.
pub fn import<B: Storage>(backend: &mut B, state: &RawState) -> Result<()> {
    let arrays = backend.facts().particle_arrays();
    let g = backend.globals();
    // a fault is one of the state before
    g.halt.set(0);
    g.fault = FaultRecord::default();
    g.step = state.step;
    // the list is built in the box of its time
    g.box_length = state.numbers("built_length").unwrap_or(state.box_length);
    g.virial = state.numbers("virial").unwrap_or_default();
    g.shear_virial = state.numbers("shear_virial").unwrap_or_default();
    g.tilt = state.numbers("built_tilt").unwrap_or(state.tilt());
    g.shear_offset = state.numbers("built_shear").unwrap_or_default()[0];
    g.evaluate();
    let grid_length = state.numbers("grid_length").unwrap_or(g.box_length);
    let grid_tilt = state.numbers("grid_tilt").unwrap_or(state.tilt());
    if state.sections.contains_key(PLAIN_LIST) {
        backend.use_plain_list()?;
    }
    // a state without positions of the last list build is one at a list build
    let resumes = state.sections.contains_key(ArrayId::PosAtBuild.name());
    let built = if resumes { ArrayId::PosAtBuild } else { ArrayId::PosType };
    for position in [ArrayId::PosType, built] {
        let facts = backend.facts();
        check_types(section(state, facts, position.name())?, facts.precision, facts.n_types, "the checkpoint")?;
    }
    backend.begin_import(&state.topology, [grid_length, grid_tilt])?;

    // without a saved order, sorting the positions of the last list build gives the order of that build again
    let order = if backend.keeps_order() { saved_order(state, backend.facts().n)? } else { None };
    let n = backend.facts().n as u32;
    backend.write_tags(&order.clone().unwrap_or_else(|| (0..n).collect()))?;
    let in_order = |bytes: &[u8]| order.as_ref().map(|order| permuted(bytes, order));
    let mut write = |array: &ParticleArray, name: &str| -> Result<()> {
        let bytes = section(state, backend.facts(), name)?;
        backend.write_array(array, in_order(bytes).as_deref().unwrap_or(bytes))
    };
    write(&arrays[ArrayId::PosType as usize], built.name())?;
    for array in arrays.iter().filter(|a| a.restored == Restored::BeforeSort) {
        write(array, if array.name == ArrayId::PosAtBuild.name() { built.name() } else { &array.name })?;
    }
    for (name, bytes) in &state.sections {
        if let Some(id) = name.strip_prefix("integrator.").and_then(|i| i.parse().ok()) {
            backend.set_integrator_state(id, bytes)?;
        }
    }
    backend.rebuild_list(order.is_some())?;
    if resumes {
        let tags = backend.tags()?;
        for array in arrays.iter().filter(|a| a.restored == Restored::AfterSort) {
            let bytes = section(state, backend.facts(), &array.name)?;
            backend.write_array(array, &permuted(bytes, &tags))?;
        }
    }

    let g = backend.globals();
    if (g.box_length, g.tilt) != (state.box_length, state.tilt()) {
        g.set_shape(state.box_length, state.tilt(), u32::MAX);
        g.scale = [1.0; 3];
    }
    g.import_shear(state);
    g.rebuild.set(0);
    g.rebuilds = state.word("rebuilds").max(1);
    backend.publish_globals()
}

/// An empty section: the run began with a staged list and continues with a plain one.
const PLAIN_LIST: &str = "plain_list";

/// The section with the tags in the order of the particles.
pub(super) const ORDER: &str = "order";

/// Leaves out the neighbor list of a state: importing it builds one, in the box of this step and in the order of the positions.
pub fn forget_list(state: &mut RawState) {
    state.sections.remove(ORDER);
    state.sections.remove(ArrayId::PosAtBuild.name());
    state.sections.remove("built_tilt");
    state.put("built_length", state.box_length);
    if let Some([offset, ..]) = state.numbers("shear") {
        state.put("built_shear", [offset, 0.0, 0.0]);
    }
}

/// Returns the saved order of the particles, as tags.
fn saved_order(state: &RawState, n: usize) -> Result<Option<Vec<u32>>> {
    let Some(bytes) = state.sections.get(ORDER) else { return Ok(None) };
    let order: Vec<u32> = bytes.as_chunks::<4>().0.iter().map(|b| u32::from_le_bytes(*b)).collect();
    let mut seen = vec![false; n];
    for tag in &order {
        if let Some(seen) = seen.get_mut(*tag as usize) {
            *seen = true;
        }
    }
    if order.len() == n && seen.iter().all(|s| *s) {
        return Ok(Some(order));
    }
    Err(Error::Run(format!("section `{ORDER}` of the checkpoint does not fit this system")))
}

/// Returns the elements of an array in tag order, in the order of `tags`.
fn permuted(bytes: &[u8], tags: &[u32]) -> Vec<u8> {
    let stride = bytes.len() / tags.len().max(1);
    let mut out = vec![0; bytes.len()];
    let rows = out.par_chunks_exact_mut(stride.max(1)).zip(tags).with_min_len(4096);
    rows.for_each(|(row, tag)| row.copy_from_slice(&bytes[*tag as usize * stride..][..stride]));
    out
}

/// Returns the section of an array, if it has the size that this system needs.
fn section<'a>(state: &'a RawState, facts: &Facts, name: &str) -> Result<&'a [u8]> {
    let bytes = state.section(name)?;
    if facts.stride(name).map(|s| s * facts.n) == Some(bytes.len()) {
        return Ok(bytes);
    }
    Err(Error::Run(format!("section `{name}` of the checkpoint does not fit this system")))
}

/// What an updater did.
pub struct Update {
    /// Changes of topology.
    pub edits: Vec<Edit>,
    /// Bits of [`galamost_plugin_api::updater::changed`].
    pub changed: u32,
    /// The box that it set.
    pub sim_box: SimBox,
}

/// A queue of changes of topology in host memory.
struct HostQueue {
    edits: Vec<Edit>,
    count: u32,
}

impl HostQueue {
    fn new(capacity: usize) -> Self {
        Self { edits: vec![Edit::default(); capacity], count: 0 }
    }

    fn view(&mut self) -> EditQueue {
        EditQueue {
            edits: DevicePtr::new(self.edits.as_mut_ptr() as u64),
            count: DevicePtr::new(&raw mut self.count as u64),
            capacity: self.edits.len() as u32,
            reserved: 0,
        }
    }

    /// Returns the queued changes, or their number if there were too many.
    fn take(mut self) -> std::result::Result<Vec<Edit>, usize> {
        let n = self.count as usize;
        if n > self.edits.len() {
            return Err(n);
        }
        self.edits.truncate(n);
        Ok(self.edits)
    }
}

/// Returns a call of an updater. `sim_box` and `host_edits` outlive it.
fn update_call<B: Storage>(
    backend: &mut B,
    updater: &Component,
    step: u64,
    phase: u32,
    sim_box: &mut SimBox,
    host_edits: EditQueue,
) -> Result<UpdateCall> {
    let edits = backend.edit_queue()?;
    let (state, list, bonds) = backend.views()?;
    Ok(UpdateCall {
        size: size_of::<UpdateCall>() as u32,
        component: updater.id,
        first_varying: updater.first_varying,
        changed: 0,
        step,
        key: RandomKey::new(backend.facts().seed, updater.id),
        state,
        list,
        bonds,
        edits,
        group: updater.group,
        phase,
        sim_box: DevicePtr::new(std::ptr::from_mut(sim_box) as u64),
        host_edits,
        reserved: [0; 3],
    })
}

/// Lets an updater queue its search behind steps that are queued up to `step`; see [`phase::SEARCH`].
///
/// # Errors
/// Returns the updater's error or the driver's.
pub fn queue_search<B: Storage>(backend: &mut B, updater: &Component, step: u64) -> Result<()> {
    let part = updater.updater().ok_or_else(|| Error::Run(format!("{} is no updater", updater.name)))?;
    let mut sim_box = SimBox::of(backend.globals());
    let mut queue = HostQueue::new(0);
    let mut call = update_call(backend, updater, step, phase::SEARCH, &mut sim_box, queue.view())?;
    // SAFETY: every view describes arrays of this backend, which outlive the kernels that the call launches
    unsafe { part.update(&mut call) }
}

/// Calls an updater, again with a longer queue if it asks for more changes of topology than fit. Returns `None` if it
/// reports that it changed nothing. `searched` says that [`queue_search`] was called for this state, and that its kernels have ended.
///
/// # Errors
/// Returns the updater's error or the driver's.
pub fn call_updater<B: Storage>(backend: &mut B, updater: &Component, searched: bool) -> Result<Option<Update>> {
    let part = updater.updater().ok_or_else(|| Error::Run(format!("{} is no updater", updater.name)))?;
    let (step, mut before) = (backend.globals().step, SimBox::of(backend.globals()));
    if updater.needs.wants.thermo {
        before.kinetic = backend.sums()?.kinetic_diagonal();
    }
    let mut now = if searched { phase::DECIDE } else { phase::ALL };
    loop {
        let room = backend.services().edit_room.load(Ordering::Relaxed);
        let (mut sim_box, mut queue) = (before, HostQueue::new(room));
        let mut call = update_call(backend, updater, step, now, &mut sim_box, queue.view())?;
        backend.services().set_alone(!updater.needs.shared);
        // SAFETY: every view describes arrays of this backend, which outlive the call; nothing else uses them meanwhile
        let done = unsafe { part.update(&mut call) };
        backend.services().set_alone(false);
        backend.end_views();
        done?;
        backend.check_memory(&updater.name)?;
        if call.changed == changed::NOTHING {
            // one that searches has its changes in the queue of the host, so that a call needs no further wait
            if queue.count > 0 || backend.has_edits(!updater.needs.searches)? {
                let what = format!(
                    "{} has requested changes of the topology and set `changed::NOTHING`; set it only without requests",
                    updater.name
                );
                return Err(Error::Unstable { step, tag: None, what });
            }
            return Ok(None);
        }
        now = phase::ALL;
        let edits = if call.changed & changed::HOST_EDITS == 0 {
            backend.take_edits()?
        } else {
            let enlarge = |n: usize| backend.services().edit_room.store(n.next_power_of_two(), Ordering::Relaxed);
            queue.take().map_err(enlarge).ok()
        };
        if let Some(edits) = edits {
            return Ok(Some(Update { edits, changed: call.changed, sim_box }));
        }
    }
}
