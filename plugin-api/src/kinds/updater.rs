//! Updaters change the state between steps: topology, types, box, momentum.

use crate::abi::services::Host;
use crate::error::Result;
use crate::kinds::component::{Needs, SystemInfo};

pub use crate::abi::calls::{Edit, EditKind, EditQueue, UpdateCall, changed};

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
    /// # Errors
    /// Returns an error that ends the run.
    ///
    /// # Safety
    /// The views in `call` describe valid arrays of the run's device.
    unsafe fn update(&mut self, call: &mut UpdateCall) -> Result<()>;
    /// Writes final results; called once after the last step.
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
