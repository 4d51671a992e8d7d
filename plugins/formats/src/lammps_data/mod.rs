//! Data files of LAMMPS: `read.rs` makes a state of one, `write.rs` the text of one.

mod analyzer;
mod generator;
mod header;
mod read;
mod style;
#[cfg(test)]
mod tests;
mod write;
