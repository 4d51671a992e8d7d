//! Velocities that are undefined.

use crate::backend::{Backend, SystemSums, columns};
use galamost_plugin_api::component::Wants;
use galamost_plugin_api::error::{Error, Result};

/// What is wrong if a velocity is undefined.
pub const UNDEFINED: &str = "the velocity of a particle is NaN or infinite: the force on it was so in this step";

/// Returns an error if a velocity is NaN or infinite. An integrator only notices it in the next step, when it moves the particle. `known`
/// are the sums of this step, if available.
///
/// # Errors
/// See above, or the driver's error.
pub fn check(backend: &mut dyn Backend, known: Option<&SystemSums>) -> Result<()> {
    let kinetic = match known {
        Some(sums) => sums.kinetic_tensor,
        None => backend.sums()?.kinetic_tensor,
    };
    if kinetic.iter().all(|k| k.is_finite()) {
        return Ok(());
    }
    let facts = backend.facts().clone();
    let found = columns(backend, &facts, Wants { particles: true, ..Wants::default() })?;
    let tag = found.velocity.iter().position(|v| v.iter().any(|x| !x.is_finite()));
    Err(Error::Unstable { step: backend.step(), tag: tag.map(|t| t as u32), what: UNDEFINED.into() })
}
