//! Walls: planes, spheres and cylinders that attract, repel or reflect particles.

mod bounce;
mod harmonic;
mod lennard_jones;
mod params;
mod shape;
