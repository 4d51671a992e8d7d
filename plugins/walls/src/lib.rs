//! Walls: planes, spheres and cylinders that repel or attract particles, or from which they bounce.
#![allow(non_camel_case_types)]

mod bounce;
mod harmonic;
mod lennard_jones;
mod params;
mod shape;

galamost_plugin_api::plugin!();
