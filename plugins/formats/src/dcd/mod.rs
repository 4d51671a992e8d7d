//! DCD trajectories, in the CHARMM format with unit cell: `layer.rs` implements the format.

mod analyzer;
mod generator;
mod layer;
#[cfg(test)]
mod tests;
