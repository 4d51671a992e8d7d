//! Initial states: lattices, random positions, replicas, velocities, and polymers, mixtures and brushes (`builder`).

mod builder;
mod lattice;
mod random;
mod replicate;
mod velocities;

galamost_plugin_api::plugin!();
