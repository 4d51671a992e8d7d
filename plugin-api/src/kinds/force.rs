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
    /// Mistakes of the input that show only now.
    fn bind(&mut self, _system: &SystemInfo, _needs: &mut Needs) -> Result<()> {
        Ok(())
    }
    /// Gets the engine's services: time to compile kernels and allocate memory.
    ///
    /// # Errors
    /// Whatever keeps it from starting.
    fn start(&mut self, _host: Host) -> Result<()> {
        Ok(())
    }
    /// Adds forces; on CUDA it only launches, since the launches are captured and replayed.
    ///
    /// # Errors
    /// Whatever breaks the run.
    ///
    /// # Safety
    /// The engine's word: the views describe valid arrays of the run's device.
    unsafe fn compute(&mut self, call: &ForceCall, sums: &mut Sums) -> Result<()>;
    /// The run ended well.
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
    /// State from a checkpoint; called only with what [`Self::save`] gave, if that was not empty.
    ///
    /// # Errors
    /// The state does not fit.
    fn load(&mut self, _state: &[u8]) -> Result<()> {
        Ok(())
    }
}
