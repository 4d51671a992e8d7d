//! Particle–particle particle–mesh (PPPM).

mod assignment;
mod component;
mod cpu;
mod device;
mod influence;
mod plan;
mod transform;
mod window;
