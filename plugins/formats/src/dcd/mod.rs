//! DCD trajectories, in the form of CHARMM with a unit cell: `layer.rs` has the format.

mod analyzer;
mod generator;
mod layer;
#[cfg(test)]
mod tests;
