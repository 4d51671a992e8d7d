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

galamost_plugin_api::plugin!();
