//! Hybrid particle–field dynamics (MD-SCF), and output of densities.

mod component;
mod cpu;
mod device;
mod density_grid;
mod model;
mod density_profile;
mod spectrum;

galamost_plugin_api::plugin!();
