//! What both backends do alike: saving and restoring the state, and calling updaters.

use super::{Backend, ShearState as _};
use crate::plugins::Component;
use crate::state::arrays::{ArrayId, ParticleArray, Restored};
use crate::state::raw::check_types;
use crate::state::topology::Topology;
use crate::state::{Facts, RawState};
use galamost_plugin_api::device::DevicePtr;
use galamost_plugin_api::error::{Error, Result};
use galamost_plugin_api::philox::RandomKey;
use galamost_plugin_api::updater::{Edit, EditQueue, UpdateCall};
use galamost_plugin_api::views::{Globals, SimBox};

/// The storage of a backend, as [`export`], [`import`] and [`call_updater`] use it.
pub trait Storage: Backend {
    /// Returns the host's globals.
    fn globals(&mut self) -> &mut Globals;

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

    /// Returns the box lengths for which the cell grid was made, if it is kept from one list build to the next.
    fn grid_length(&self) -> Option<[f64; 3]> {
        None
    }

    /// Prepares for another state: topology and cell grid. The globals are already those of its last list build.
    ///
    /// # Errors
    /// Returns an error if the topology or the grid cannot be set up.
    fn begin_import(&mut self, topology: &Topology, grid_length: [f64; 3]) -> Result<()>;

    /// Makes every tag equal to its index.
    ///
    /// # Errors
    /// Returns the driver's error.
    fn reset_tags(&mut self) -> Result<()>;

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

    /// Sorts the particles and builds the neighbor list.
    ///
    /// # Errors
    /// Returns the driver's error.
    fn rebuild_list(&mut self) -> Result<()>;

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
    if let Some(length) = backend.grid_length() {
        out.put("grid_length", length);
    }
    out.put("virial", g.virial);
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
    g.step = state.step;
    // the list is built in the box of its time
    g.box_length = state.numbers("built_length").unwrap_or(state.box_length);
    g.virial = state.numbers("virial").unwrap_or_default();
    g.shear_offset = state.numbers("built_shear").unwrap_or_default()[0];
    g.evaluate();
    let grid_length = state.numbers("grid_length").unwrap_or(g.box_length);
    for position in [ArrayId::PosType, ArrayId::PosAtBuild] {
        let facts = backend.facts();
        check_types(section(state, facts, position.name())?, facts.precision, facts.n_types)?;
    }
    backend.begin_import(&state.topology, grid_length)?;

    // sorting the positions of the last list build in tag order gives the order of that build again
    backend.reset_tags()?;
    backend.write_array(
        &arrays[ArrayId::PosType as usize],
        section(state, backend.facts(), ArrayId::PosAtBuild.name())?,
    )?;
    for array in arrays.iter().filter(|a| a.restored == Restored::BeforeSort) {
        backend.write_array(array, section(state, backend.facts(), &array.name)?)?;
    }
    for (name, bytes) in &state.sections {
        if let Some(id) = name.strip_prefix("integrator.").and_then(|i| i.parse().ok()) {
            backend.set_integrator_state(id, bytes)?;
        }
    }
    backend.rebuild_list()?;
    let tags = backend.tags()?;
    for array in arrays.iter().filter(|a| a.restored == Restored::AfterSort) {
        let bytes = section(state, backend.facts(), &array.name)?;
        let stride = array.element.stride(backend.facts().precision);
        let sorted: Vec<u8> = tags.iter().flat_map(|t| &bytes[*t as usize * stride..][..stride]).copied().collect();
        backend.write_array(array, &sorted)?;
    }

    let g = backend.globals();
    if g.box_length != state.box_length {
        g.set_box(state.box_length, u32::MAX);
        g.scale = [1.0; 3];
    }
    g.import_shear(state);
    g.rebuild.set(0);
    g.rebuilds = state.word("rebuilds").max(1);
    backend.publish_globals()
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

/// Calls an updater, again with a longer queue if it asks for more changes of topology than fit.
///
/// # Errors
/// Returns the updater's error or the driver's.
pub fn call_updater<B: Storage>(backend: &mut B, updater: &Component) -> Result<Update> {
    let part = updater.updater().ok_or_else(|| Error::Run(format!("{} is no updater", updater.name)))?;
    let (step, mut before) = (backend.globals().step, SimBox::of(backend.globals()));
    if updater.needs.wants.thermo {
        before.kinetic = backend.sums()?.kinetic_diagonal();
    }
    loop {
        let edits = backend.edit_queue()?;
        let (state, list, bonds) = backend.views();
        let mut sim_box = before;
        let mut call = UpdateCall {
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
            reserved0: 0,
            sim_box: DevicePtr::new(&raw mut sim_box as u64),
            reserved: [0; 6],
        };
        // SAFETY: every view describes arrays of this backend, which outlive the call; nothing else uses them meanwhile
        let done = unsafe { part.update(&mut call) };
        backend.end_views();
        done?;
        backend.check_memory(&updater.name)?;
        if let Some(edits) = backend.take_edits()? {
            return Ok(Update { edits, changed: call.changed, sim_box });
        }
    }
}
