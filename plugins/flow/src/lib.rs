//! Flow: Lees–Edwards shear, reverse nonequilibrium molecular dynamics, and removal of the center-of-mass momentum.

mod lees_edwards;
mod momentum;
mod reverse_perturbation;

galamost_plugin_api::plugin!();
