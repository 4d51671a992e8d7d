//! Text dumps of LAMMPS: `read.rs` takes a frame out of a file, `write.rs` makes the text of one.

mod analyzer;
mod generator;
mod read;
mod write;
