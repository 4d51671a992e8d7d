//! LAMMPS data files: `read.rs` reads a state (`atoms.rs` the particles, `shapes.rs` what only some styles have), `write.rs` formats one.

mod analyzer;
mod atoms;
mod generator;
mod header;
mod read;
mod shapes;
mod style;
#[cfg(test)]
mod tests;
mod write;
