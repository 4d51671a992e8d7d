//! LAMMPS text dumps: `read.rs` reads a frame, `write.rs` formats one.

mod analyzer;
mod generator;
mod read;
mod write;
