//! XTC and TRR, the binary trajectories of GROMACS. Both consist of frames of big-endian numbers (XDR), which have their own
//! lengths and no index: `index.rs` finds them. `system.rs` reads topologies.

mod compression;
mod fields;
mod index;
mod system;
#[cfg(test)]
mod tests;
mod trr;
mod trr_analyzer;
mod trr_generator;
mod xtc;
mod xtc_analyzer;
mod xtc_generator;

use galamost_plugin_api::prelude::{Error, Frame};

/// Returns an error if a frame has another number of particles than the first one, since frames only move the particles of
/// another file.
fn require_number(f: &Frame<'_>, n: u64) -> Result<(), Error> {
    let found = f.position().len() as u64;
    if found == n {
        return Ok(());
    }
    Err(Error::Run(format!("all frames of XTC and TRR files have the same number of particles: {n}, not {found}")))
}
