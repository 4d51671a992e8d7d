//! Access to the state for saving and resuming, and what updaters change.

use super::arrays::{Buffer, words};
use super::rebuild::SortWhen;
use super::system::GpuSystem;
use crate::backend::{Storage, Update};
use crate::plugins::Component;
use crate::plugins::host::HostServices;
use crate::state::arrays::{ArrayId, ParticleArray};
use crate::state::topology::{LinkTables, Topology, Touched};
use galamost_plugin_api::device::{DevicePtr, bytes_of};
use galamost_plugin_api::error::Result;
use galamost_plugin_api::force::Moment;
use galamost_plugin_api::integrator::When;
use galamost_plugin_api::updater::{Edit, EditQueue, changed};
use galamost_plugin_api::views::{Globals, Wanted};
use std::sync::Arc;
use tracing::info;

/// Offset of the first change in [`GpuSystem::edits`].
pub(super) const EDITS: usize = 64;

/// Number of changes that are copied together with their count.
const FEW_EDITS: usize = 126;

impl GpuSystem {
    /// Returns how many changes of topology fit into [`Self::edits`].
    fn edit_capacity(&self) -> usize {
        (self.edits.bytes() - EDITS) / size_of::<Edit>()
    }

    /// Copies the values of all particles to an array; those of own particles, if it is distributed.
    fn write_own(&self, array: &Buffer, bytes: &[u8]) -> Result<()> {
        let Some(rank) = self.rank.as_ref().filter(|r| r.distributes()) else { return array.upload(bytes) };
        let (own, stride) = (rank.own(), bytes.len() / self.facts.n.max(1));
        array.upload_part(stride * own.start, &bytes[stride * own.start..stride * own.end])
    }

    /// Applies what an updater did to the state, and recomputes forces if needed. All ranks call it.
    pub(super) fn apply_update(&mut self, updater: &Arc<Component>, update: Update, wanted: Wanted) -> Result<()> {
        let Update { mut edits, changed: changed_now, sim_box } = update;
        if changed_now & changed::HOST_EDITS == 0 {
            self.sync_globals()?;
        }
        let box_changed = changed_now & changed::BOX != 0;
        if box_changed && !self.globals.is_halted() {
            self.globals.set_shape(sim_box.length, sim_box.tilt, updater.id);
            self.upload_globals()?;
            self.scale_positions()?;
        }
        if self.globals.is_halted() {
            let f = self.globals.fault.get();
            let component = (f.component == updater.id).then_some(&**updater);
            return Err(crate::backend::fault_error(self.globals.step, f, component));
        }
        let topology_changed = !edits.is_empty();
        let mut touched = Touched::default();
        if topology_changed {
            let (types, step) = (self.facts.link_types, self.globals.step);
            touched = self.topology.apply_of(&updater.name, &mut self.tables, &mut edits, types, step)?;
            if !self.links.fits(&self.tables) {
                info!("step {}: the topology tables grow", self.globals.step);
                self.destroy_graphs()?;
                self.links.upload_all(&self.tables)?;
                self.rebuild.index_links(&self.view(), &self.links.to_index())?;
            }
            let state = self.rebuild.of_rows(&self.view());
            self.links.update_rows(&state, &self.rebuild.view(), &self.tables, &touched)?;
        }
        let positions = changed_now & changed::POSITIONS != 0 || box_changed;
        if positions || changed_now & changed::VELOCITIES != 0 {
            self.launch_place(Moment::Start)?;
        }
        // rows of a staged list are not patched
        let excluded = self.rebuild.staged.is_some() && !touched.exclusions.is_empty();
        match positions || touched.exclusion_removed || excluded {
            true => self.rebuild_now(SortWhen::Due)?,
            false => self.find_ghosts_after(topology_changed)?,
        }
        if positions || topology_changed || changed_now & changed::FORCES != 0 {
            self.gather_threads()?;
            self.launch_forces_anew(wanted)?;
            if self.rank.is_some() {
                // the next step may replace the ghosts that other ranks still use
                self.device.synchronize()?;
            }
        }
        if changed_now & changed::VELOCITIES != 0 {
            self.launch_integrators(When::Start)?;
        }
        // the next step reports a fault of these forces; only the virial is needed before
        if wanted.more_than_force() { self.sync_after_forces() } else { Ok(()) }
    }
}

impl Storage for GpuSystem {
    fn globals(&mut self) -> &mut Globals {
        &mut self.globals
    }

    fn services(&self) -> &HostServices {
        &self.host
    }

    fn integrator_states(&self) -> Result<Vec<(u32, Vec<u8>)>> {
        let read = |(id, (state, len)): (&u32, &(Buffer, usize))| {
            let mut bytes = state.download()?;
            bytes.truncate(*len);
            Ok((*id, bytes))
        };
        self.integrator_states.iter().map(read).collect()
    }

    fn set_integrator_state(&mut self, id: u32, bytes: &[u8]) -> Result<()> {
        match self.integrator_states.get(&id) {
            // kernels of the current stage have its address
            Some((buffer, length)) if *length == bytes.len() => return buffer.upload(bytes),
            _ => {}
        }
        self.integrator_states.insert(id, (Buffer::of_bytes(&self.device, bytes)?, bytes.len()));
        Ok(())
    }

    fn grid_box(&self) -> Option<[[f64; 3]; 2]> {
        Some(self.rebuild.grid_box())
    }

    fn begin_import(&mut self, topology: &Topology, grid_box: [[f64; 3]; 2]) -> Result<()> {
        self.destroy_graphs()?;
        self.upload_globals()?;
        if grid_box != self.rebuild.grid_box() {
            self.rebuild.set_grid(grid_box)?;
        }
        self.topology = topology.clone();
        self.tables = LinkTables::new(&self.topology, &self.rules, self.facts.n);
        self.links.upload_all(&self.tables)
    }

    fn keeps_order(&self) -> bool {
        self.rebuild.staged.is_some()
    }

    fn left_staged_list(&self) -> bool {
        self.left_staged_list
    }

    fn use_plain_list(&mut self) -> Result<()> {
        if self.rebuild.staged.is_some() { self.use_plain_list() } else { Ok(()) }
    }

    fn write_tags(&mut self, tags: &[u32]) -> Result<()> {
        let mut index_of_tag = vec![0; tags.len()];
        for (i, tag) in tags.iter().enumerate() {
            index_of_tag[*tag as usize] = i as u32;
        }
        self.write_own(self.array(ArrayId::IndexOfTag)?, bytes_of(&index_of_tag))?;
        self.write_own(self.array(ArrayId::Tag)?, bytes_of(tags))
    }

    fn tags(&self) -> Result<Vec<u32>> {
        Ok(words(&self.array(ArrayId::Tag)?.download()?))
    }

    fn write_array(&mut self, array: &ParticleArray, bytes: &[u8]) -> Result<()> {
        let buffer = self.arrays.iter().find(|(a, _)| a.name == array.name).and_then(|(_, b)| b.as_ref());
        buffer.map_or(Ok(()), |b| self.write_own(b, bytes))
    }

    fn rebuild_list(&mut self, sorted: bool) -> Result<()> {
        // arrays that follow belong to the box of the checkpoint
        let most_tilt = std::mem::take(&mut self.rebuild.most_tilt);
        let done = self.rebuild_now(if sorted { SortWhen::Never } else { SortWhen::Now });
        self.rebuild.most_tilt = most_tilt;
        done
    }

    fn publish_globals(&mut self) -> Result<()> {
        self.upload_globals()
    }

    fn edit_queue(&mut self) -> Result<EditQueue> {
        if std::mem::take(&mut self.edits_are_used) {
            self.device.clear(self.edits.address(), EDITS)?;
        }
        self.host.set_queue(self.edits.address(), self.edits.bytes());
        Ok(EditQueue {
            edits: DevicePtr::new(self.edits.address() + EDITS as u64),
            count: DevicePtr::new(self.edits.address()),
            capacity: self.edit_capacity() as u32,
            reserved: 0,
        })
    }

    fn take_edits(&mut self) -> Result<Option<Vec<Edit>>> {
        self.edits_are_used = true;
        let mut bytes = vec![0; EDITS + FEW_EDITS * size_of::<Edit>()];
        self.edits.download_part(0, &mut bytes)?;
        let requested = words(&bytes[..4])[0] as usize;
        if requested > self.edit_capacity() {
            self.edits = Buffer::new(&self.device, EDITS + requested.next_power_of_two() * size_of::<Edit>())?;
            return Ok(None);
        }
        let few = bytes.len();
        if requested > FEW_EDITS {
            bytes.resize(EDITS + requested * size_of::<Edit>(), 0);
            self.edits.download_part(few, &mut bytes[few..])?;
        }
        let list = words(&bytes[EDITS..]);
        let edits = list.as_chunks::<8>().0.iter().take(requested).map(|w| Edit {
            remove: w[0],
            width: w[1],
            kind: w[2],
            tags: [w[3], w[4], w[5], w[6]],
            improper: w[7],
        });
        Ok(Some(edits.collect()))
    }

    fn has_edits(&self, may_wait: bool) -> Result<bool> {
        if !may_wait {
            return Ok(false);
        }
        let mut count = [0; 4];
        self.edits.download_part(0, &mut count)?;
        Ok(count != [0; 4])
    }

    fn check_memory(&self, _: &str) -> Result<()> {
        Ok(())
    }
}
