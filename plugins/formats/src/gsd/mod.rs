//! GSD trajectories (schema hoomd): written while a run goes on, and read as initial states.

mod analyzer;
mod generator;
mod layer;
mod orientation;
mod read;
mod write;

#[cfg(test)]
mod tests;
