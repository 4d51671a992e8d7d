//! File formats, read as initial states and written during a run. One module per format, with a generator that reads and
//! an analyzer that writes.

mod dcd;
mod extended_xyz;
mod galamost_xml;
mod gsd;
mod lammps_data;
mod lammps_dump;
mod mst;
mod pdb;

use galamost_plugin_api::prelude::*;

galamost_plugin_api::plugin!();

/// Checks that no generator ran before one that reads a whole state.
///
/// # Errors
/// Returns an error if the snapshot already has particles.
fn must_be_first(generator: &str, snapshot: &Snapshot) -> Result<()> {
    if snapshot.is_empty() {
        return Ok(());
    }
    Err(Error::input(format!("{generator} reads a whole state: it must be the first generator")))
}
