//! Adapters from the traits that authors implement to the tables of functions that cross the boundary.

mod bonded;
mod integrator;
mod library;
mod object;
mod pair;
mod simple;
mod tables;

pub use library::root;
