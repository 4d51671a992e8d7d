//! Updaters change the state between steps: topology, types, box, momentum.

use crate::abi::services::Host;
use crate::error::Result;
use crate::kinds::component::{Needs, SystemInfo};

pub use crate::abi::calls::{Edit, EditQueue, UpdateCall, changed};

/// Changes state between steps. Its parameters are the fields of the struct (`#[derive(Params)]`).
pub trait Updater: Send + Sized + 'static {
    /// Learns the system; an updater says at least its period.
    ///
    /// # Errors
    /// Mistakes of the input that show only now.
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()>;
    /// Gets the engine's services.
    ///
    /// # Errors
    /// Whatever keeps it from starting.
    fn start(&mut self, _host: Host) -> Result<()> {
        Ok(())
    }
    /// Changes the state.
    ///
    /// # Errors
    /// Whatever breaks the run.
    ///
    /// # Safety
    /// The engine's word: the views describe valid arrays of the run's device.
    unsafe fn update(&mut self, call: &mut UpdateCall) -> Result<()>;
    /// The run ended.
    ///
    /// # Errors
    /// Whatever keeps it from ending.
    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
    /// State for a checkpoint, if there is any.
    ///
    /// # Errors
    /// Whatever keeps it from saving.
    fn save(&mut self) -> Result<Vec<u8>> {
        Ok(vec![])
    }
    /// State from a checkpoint.
    ///
    /// # Errors
    /// The state does not fit.
    fn load(&mut self, _state: &[u8]) -> Result<()> {
        Ok(())
    }
}
