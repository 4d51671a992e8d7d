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
