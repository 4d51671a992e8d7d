//! Forces with kernels of their own: fields, walls, external potentials.

use crate::abi::services::Host;
use crate::abi::views::Sums;
use crate::error::Result;
use crate::kinds::component::{Needs, SystemInfo};
use crate::params::{FromValue, Params};

pub use crate::abi::calls::ForceCall;

/// A force with its own kernels. Its parameters are the fields of the struct (`#[derive(Params)]`).
pub trait Force: Send + Sized + 'static {
    /// Learns the system; `needs` starts as "CPU and CUDA, capturable, nothing more".
    ///
    /// # Errors
    /// Returns an error if the parameters do not fit the system.
    fn bind(&mut self, _system: &SystemInfo, _needs: &mut Needs) -> Result<()> {
        Ok(())
    }
    /// Receives the engine's services. Compile kernels and allocate memory here.
    ///
    /// # Errors
    /// Returns an error if the component cannot start.
    fn start(&mut self, _host: Host) -> Result<()> {
        Ok(())
    }
    /// Adds forces; on CUDA it only launches, since the launches are captured and replayed.
    ///
    /// # Errors
    /// Returns an error that ends the run.
    ///
    /// # Safety
    /// The views in `call` describe valid arrays of the run's device.
    unsafe fn compute(&mut self, call: &ForceCall, sums: &mut Sums) -> Result<()>;
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
    /// State from a checkpoint; called only with what [`Self::save`] gave, if that was not empty.
    ///
    /// # Errors
    /// Returns an error if the state does not belong to this component.
    fn load(&mut self, _state: &[u8]) -> Result<()> {
        Ok(())
    }
}
