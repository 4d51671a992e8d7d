//! File formats: initial states and trajectories. Each module has a generator that reads and an analyzer that writes.

mod dcd;
mod extended_xyz;
mod forces;
mod frames;
mod galamost_xml;
mod gro;
mod gromacs;
mod gsd;
mod lammps_data;
mod lammps_dump;
mod molecules;
mod mst;
mod names;
mod particle_table;
mod pdb;
mod positions;
mod single;

use galamost_plugin_api::prelude::*;

galamost_plugin_api::plugin!();

/// Returns an error if the snapshot already has particles.
fn require_empty(generator: &str, snapshot: &Snapshot) -> Result<()> {
    if snapshot.is_empty() {
        return Ok(());
    }
    Err(Error::input(format!("{generator} reads a complete state and must be the first generator")))
}
