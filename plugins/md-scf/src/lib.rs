//! Hybrid particle–field dynamics, and the densities it works with as output.

mod component;
mod cpu;
mod device;
mod grid_file;
mod law;
mod profile;
mod spectrum;

galamost_plugin_api::plugin!();
