//! LAMMPS data files: `read.rs` reads a state, `write.rs` formats one.

mod analyzer;
mod generator;
mod header;
mod read;
mod style;
#[cfg(test)]
mod tests;
mod write;
