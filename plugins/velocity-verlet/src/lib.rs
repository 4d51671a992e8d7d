//! Velocity-Verlet integration: constant energy, with a limit of the displacement, and as a minimiser.

mod capped;
mod fire;
mod nve;

galamost_plugin_api::plugin!();
