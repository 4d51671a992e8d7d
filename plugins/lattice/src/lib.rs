//! Initial positions: lattices, and particles at random.

mod lattice;
mod random;

galamost_plugin_api::plugin!();
