//! LAMMPS text dumps: `read.rs` reads a frame, `write.rs` formats one.

mod analyzer;
pub mod columns;
mod generator;
mod read;
mod rows;
mod write;
