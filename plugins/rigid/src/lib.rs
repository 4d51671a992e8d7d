//! Rotation of rigid bodies: orientations at the start, and integrators that turn particles.

mod langevin;
mod orientations;
mod turn;
mod verlet;

galamost_plugin_api::plugin!();
