//! GSD trajectories (schema hoomd): `layer.rs` implements the file layer, `read.rs` reads frames, `write.rs` appends
//! them.

mod analyzer;
mod generator;
mod layer;
mod orientation;
mod read;
mod write;

#[cfg(test)]
mod tests;
