//! Updaters change the state between steps: topology, types, box, momentum.

use crate::abi::services::Host;
use crate::error::Result;
use crate::kinds::component::{Needs, SystemInfo};

pub use crate::abi::calls::{Edit, EditKind, EditQueue, UpdateCall, changed, phase};

/// Changes the state between steps. Fields of the struct are its parameters (`#[derive(Params)]`).
pub trait Updater: Send + Sized + 'static {
    /// Receives the facts of the system and sets `needs`. An updater must set its period.
    ///
    /// # Errors
    /// Returns an error if the parameters do not fit the system.
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()>;
    /// Receives the engine's services.
    ///
    /// # Errors
    /// Returns an error if the component cannot start.
    fn start(&mut self, _host: Host) -> Result<()> {
        Ok(())
    }
    /// Changes the state and reports the changes in [`UpdateCall::changed`].
    ///
    /// With [`Needs::shared`], each rank of the run has an object and calls it at the same time:
    ///
    /// * Rows of the neighbor list and of the bonds are those of the particles from `own_begin` to `own_end`; with a
    ///   [`Needs::cutoff`], the bonds of all particles. Neighbors and bonded partners of own particles have the present positions,
    ///   types, and arrays of [`Needs::arrays`]. Other values of particles of other ranks may be old, except tags, groups, charges
    ///   and diameters.
    /// * [`Host::gather_bytes`] exchanges what the ranks have found. All ranks then make the same changes: they request the
    ///   same edits, and write the same values for each particle that changes, whichever rank propagates it. A rank writes only
    ///   after a call of [`Host::gather_bytes`] that follows all that it reads.
    /// * [`SystemInfo::rank`] is 0 for the object that writes files. Only this one gets [`Self::finish`] and [`Self::save`]; all of
    ///   them get the same state in [`Self::load`].
    ///
    /// With [`Needs::searches`], a call on CUDA may have two parts, see [`UpdateCall::phase`].
    ///
    /// # Errors
    /// Returns an error that ends the run.
    ///
    /// # Safety
    /// The views in `call` describe valid arrays of the run's device.
    unsafe fn update(&mut self, call: &mut UpdateCall) -> Result<()>;
    /// Writes final results; called once, after the last step or an error of the run, and before the last `save`.
    ///
    /// # Errors
    /// Returns an error if the results cannot be written.
    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
    /// Returns the state to store in a checkpoint; empty if there is none.
    ///
    /// # Errors
    /// Returns an error if the state cannot be saved.
    fn save(&mut self) -> Result<Vec<u8>> {
        Ok(vec![])
    }
    /// Restores the state that [`Self::save`] returned.
    ///
    /// # Errors
    /// Returns an error if the state does not belong to this component.
    fn load(&mut self, _state: &[u8]) -> Result<()> {
        Ok(())
    }
}
