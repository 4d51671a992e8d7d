//! Initial positions: lattices, particles at random, and copies side by side.

mod lattice;
mod random;
mod replicate;

galamost_plugin_api::plugin!();
