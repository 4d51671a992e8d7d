//! Walls: planes, spheres and cylinders that repel or attract particles, or from which they bounce.

mod bounce;
mod harmonic;
mod lennard_jones;
mod params;
mod shape;
