//! Access to the state for saving, resuming and updaters.

use super::system::{CpuSystem, tags};
use crate::backend::Storage;
use crate::plugins::host::HostServices;
use crate::state::arrays::{ArrayId, ParticleArray};
use crate::state::buffers::Bytes;
use crate::state::store::Store;
use crate::state::topology::{LinkTables, Topology};
use galamost_plugin_api::device::DevicePtr;
use galamost_plugin_api::error::Result;
use galamost_plugin_api::updater::{Edit, EditQueue};
use galamost_plugin_api::views::Globals;

/// Changes of topology that an updater requests.
#[derive(Default)]
pub(super) struct Edits {
    queue: Vec<Edit>,
    /// Number of requested changes. On the heap, because updaters write to its address.
    count: Box<u32>,
}

impl<S: Store> Storage for CpuSystem<S> {
    fn globals(&mut self) -> &mut Globals {
        &mut self.globals
    }

    fn services(&self) -> &HostServices {
        &self.host
    }

    fn integrator_states(&self) -> Result<Vec<(u32, Vec<u8>)>> {
        Ok(self.integrator_states.iter().map(|(id, state)| (*id, state.bytes().to_vec())).collect())
    }

    fn set_integrator_state(&mut self, id: u32, bytes: &[u8]) -> Result<()> {
        self.integrator_states.insert(id, Bytes::from_bytes(bytes));
        Ok(())
    }

    fn begin_import(&mut self, topology: &Topology, _: [[f64; 3]; 2]) -> Result<()> {
        self.topology = topology.clone();
        self.tables = LinkTables::new(&self.topology, &self.rules, self.facts.n);
        Ok(())
    }

    fn write_tags(&mut self, tags: &[u32]) -> Result<()> {
        self.arrays[ArrayId::Tag as usize].data.values_mut::<u32>().copy_from_slice(tags);
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

    fn rebuild_list(&mut self, _: bool) -> Result<()> {
        self.rebuild()
    }

    fn publish_globals(&mut self) -> Result<()> {
        Ok(())
    }

    fn edit_queue(&mut self) -> Result<EditQueue> {
        let Edits { queue, count } = &mut self.edits;
        let capacity = (**count as usize).next_power_of_two().max(1024);
        *queue = vec![Edit::default(); capacity];
        **count = 0;
        Ok(EditQueue {
            edits: DevicePtr::new(queue.as_mut_ptr() as u64),
            count: DevicePtr::new(&raw mut **count as u64),
            capacity: capacity as u32,
            reserved: 0,
        })
    }

    fn take_edits(&mut self) -> Result<Option<Vec<Edit>>> {
        let Edits { queue, count } = &mut self.edits;
        let n = **count as usize;
        if n > queue.len() {
            return Ok(None);
        }
        **count = 0;
        let mut edits = std::mem::take(queue);
        edits.truncate(n);
        Ok(Some(edits))
    }

    fn has_edits(&self, _: bool) -> Result<bool> {
        Ok(*self.edits.count > 0)
    }

    fn check_memory(&self, component: &str) -> Result<()> {
        self.check_guards(component)
    }
}
