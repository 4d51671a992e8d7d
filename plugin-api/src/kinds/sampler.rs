//! Samplers draw independent configurations: static Monte Carlo, without particles and time steps.
//!
//! They are listed under `ensemble` of a pipeline, which then has no initial state, forces or stages. The engine
//! requests batches in the order of their numbers. Between batches it updates the progress display, handles signals and
//! writes checkpoints.
//!
//! A sampler draws a batch on the CPU or with its own kernels. Its random numbers are keyed by the run's seed and the
//! component's number ([`SystemInfo::component`]), with counters that the sampler chooses. A batch must not depend on
//! when or where it is drawn.

use crate::abi::services::Host;
use crate::error::Result;
use crate::kinds::component::{Needs, SystemInfo};

/// Draws independent configurations. Fields of the struct are its parameters (`#[derive(Params)]`).
pub trait Sampler: Send + Sized + 'static {
    /// Receives seed, device and directory, and sets the number of batches ([`Needs::batches`]). There are no
    /// particles.
    ///
    /// # Errors
    /// Returns an error if the parameters do not fit the system.
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()>;
    /// Receives the engine's services, after [`Self::load`] in a resumed run.
    ///
    /// # Errors
    /// Returns an error if the component cannot start.
    fn start(&mut self, _host: Host) -> Result<()> {
        Ok(())
    }
    /// Draws the batch with this number; the batch is complete when the call returns.
    ///
    /// # Errors
    /// Returns an error that ends the run.
    fn sample(&mut self, batch: u64) -> Result<()>;
    /// Writes results. Called once at the end of the run, also after an early stop.
    ///
    /// # Errors
    /// Returns an error if the results cannot be written.
    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
    /// Returns the state to store in a checkpoint: the results of all batches drawn so far.
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
