//! Forces with their own loops and kernels.
//!
//! For a force on each particle separately, `#[external_potential]` ([`crate::external`]) is simpler: it needs no loop
//! and no kernel.

use crate::abi::services::Host;
use crate::abi::views::Sums;
use crate::error::Result;
use crate::kinds::component::{Needs, SystemInfo};

pub use crate::abi::calls::{ForceCall, Moment, SpecialPairs};

/// A force with its own loop and kernel. Fields of the struct are its parameters (`#[derive(Params)]`).
pub trait Force: Send + Sized + 'static {
    /// Receives the facts of the system and sets `needs`, which starts as [`Needs::default`].
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
    /// Adds forces. On CUDA it only launches kernels: the launches are captured in a graph and replayed.
    ///
    /// # Errors
    /// Returns an error that ends the run.
    ///
    /// # Safety
    /// The views in `call` describe valid arrays of the run's device.
    unsafe fn compute(&mut self, call: &ForceCall, sums: &mut Sums) -> Result<()>;
    /// Places particles without mass from the positions of others, if `needs.places` is set. Called after integrators have
    /// moved particles, before the neighbor list is used, and again after the last phase of a step, for the velocities
    /// ([`ForceCall::moment`]). On CUDA it only launches kernels.
    ///
    /// [`Self::compute`] of a component that places particles comes after all other forces, and must pass the forces on
    /// these particles to those that they follow.
    ///
    /// A component with `needs.constraints` instead corrects positions and velocities of particles that integrators have
    /// moved. It comes before those that place particles without mass, and its [`Self::compute`] after theirs.
    ///
    /// # Errors
    /// Returns an error that ends the run.
    ///
    /// # Safety
    /// The views in `call` describe valid arrays of the run's device.
    unsafe fn place(&mut self, _call: &ForceCall) -> Result<()> {
        Ok(())
    }
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
    /// Restores the state that [`Self::save`] returned. Not called if that state was empty.
    ///
    /// # Errors
    /// Returns an error if the state does not belong to this component.
    fn load(&mut self, _state: &[u8]) -> Result<()> {
        Ok(())
    }
}
