//! Samplers draw independent configurations: static Monte Carlo, without particles and without time steps.
//!
//! They stand in the list `ensemble` of a pipeline, in place of its initial state, forces and stages. The engine calls a
//! sampler batch by batch, in the order of their numbers, and between two batches shows progress, looks at signals and
//! writes checkpoints. How a batch is drawn, on the CPU or by kernels, is the sampler's own matter; its random numbers
//! come from the run's seed and the component's number ([`SystemInfo::component`]) with numbers of its own as counters,
//! so that a batch is the same whenever and wherever it is drawn.

use crate::abi::SamplerAdapter;
use crate::component::{Kind, Needs, Registration, SystemInfo};
use crate::error::Result;
use crate::force::parse;
use crate::guard::Object;
use crate::params::{FromValue, Params};
use crate::services::Host;

/// Draws independent configurations. Its parameters are the fields of the struct (`#[derive(Params)]`).
pub trait Sampler: Send + Sized + 'static {
    /// Learns seed, device and folder (there are no particles), and says how many batches there are
    /// ([`Needs::batches`]).
    ///
    /// # Errors
    /// Mistakes of the input that show only now.
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()>;
    /// Gets the engine's services, after [`Self::load`] if the run goes on.
    ///
    /// # Errors
    /// Whatever keeps it from starting.
    fn start(&mut self, _host: Host) -> Result<()> {
        Ok(())
    }
    /// Draws the batch of this number, and has it done when it returns.
    ///
    /// # Errors
    /// Whatever breaks the run.
    fn sample(&mut self, batch: u64) -> Result<()>;
    /// The run ended, after all batches or some: time to write results.
    ///
    /// # Errors
    /// Whatever keeps it from ending.
    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
    /// State for a checkpoint: all that the batches drawn have left.
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

impl Registration {
    /// A sampler.
    pub const fn sampler<T: Sampler + Params + FromValue>(name: &'static str, doc: &'static str) -> Self {
        Self {
            name,
            former_names: &[],
            kind: Kind::Sampler,
            doc,
            fields: T::docs,
            create: |name, value| parse::<T>(value).map(|c| Object::new(name, SamplerAdapter(c))),
        }
    }
}
