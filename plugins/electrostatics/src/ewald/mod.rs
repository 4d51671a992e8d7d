//! Ewald sums.

mod component;
mod cpu;
mod device;
mod plan;
