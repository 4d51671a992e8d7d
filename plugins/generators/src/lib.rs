//! Initial states: lattices, random positions, replication, velocities, and polymers, mixtures and brushes (`polymers`).

mod lattice;
mod polymers;
mod random;
mod replicate;
mod velocities;

galamost_plugin_api::plugin!();
