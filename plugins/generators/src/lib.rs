//! Initial states: lattices, random positions, counter-ions, replication, velocities, and polymers, mixtures and brushes (`polymers`).

mod counter_ions;
mod lattice;
mod polymers;
mod random;
mod replicate;
mod velocities;

galamost_plugin_api::plugin!();
