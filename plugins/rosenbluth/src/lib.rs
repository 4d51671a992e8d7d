//! Chains by Rosenbluth sampling and PERM, on lattices and off.

mod component;
mod device;
mod grow;
mod model;
mod params;
mod perm;
mod results;
mod sums;
mod walk;

galamost_plugin_api::plugin!();
