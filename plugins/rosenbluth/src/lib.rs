//! Single chains by Rosenbluth sampling and PERM, on and off lattice.

mod batches;
mod component;
mod device;
mod grow;
mod model;
mod params;
mod perm;
mod results;
mod run;
mod sums;
mod walk;

galamost_plugin_api::plugin!();
