//! The GRO format of GROMACS. A frame is a title, the number of atoms, a line with fixed columns for each atom, and the box.

mod analyzer;
mod generator;
pub(crate) mod read;
#[cfg(test)]
mod tests;
mod write;
