//! Hybrid particle–field dynamics (MD-SCF), and output of densities.

mod component;
mod cpu;
mod density_grid;
mod density_profile;
mod device;
mod model;
mod spectrum;

galamost_plugin_api::plugin!();
