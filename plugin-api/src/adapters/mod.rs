//! Adapters from the traits that authors implement to the tables that cross the boundary.
//!
//! [`crate::component::Registration`] has one constructor for each kind; the macros call it. Authors do not use this
//! module directly.

mod bonded;
mod integrator;
mod library;
mod long_range;
mod object;
mod pair;
mod simple;
mod tables;
#[cfg(test)]
mod tests;

pub use library::root;
