//! The kinds of components: for each kind the trait that authors implement, its types, and its CPU loop.

pub mod analyzer;
pub mod bonded;
pub mod component;
pub mod external;
pub mod force;
pub mod generator;
pub mod integrator;
pub mod pair;
pub mod place;
pub mod sampler;
pub mod schedule;
mod storage;
#[cfg(test)]
mod threads;
pub mod updater;
