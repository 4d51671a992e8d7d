//! Analyzers of charges.

mod conductivity;
mod dielectric;
mod profile;
mod structure;

use galamost_plugin_api::component::ArrayNeed;
use galamost_plugin_api::prelude::*;

/// Declares what all of these analyzers read.
///
/// # Errors
/// Returns an error if particles have no charges.
fn need_charges(system: &SystemInfo, needs: &mut Needs) -> Result<()> {
    if !system.has_array("charge") {
        return Err(Error::input("particles have no `charge`; the initial state must set it"));
    }
    needs.arrays.push(ArrayNeed { name: "charge".into(), width: 1, integer: false, required: true });
    needs.wants.particles = true;
    Ok(())
}

/// Returns the charges of a frame.
///
/// # Errors
/// Returns an error if the frame has none.
fn charges<'a>(frame: &Frame<'a>) -> Result<&'a [f64]> {
    match frame.array("charge") {
        Some((1, charges)) => Ok(charges),
        _ => Err(Error::Run("the frame has no charges".into())),
    }
}

/// Returns the error of a checkpoint with other numbers.
fn other_analyzer() -> Error {
    Error::Run("the checkpoint belongs to another analyzer".into())
}
