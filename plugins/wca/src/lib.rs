//! Forms of the Lennard-Jones potential with another cutoff or another distance.
#![allow(non_camel_case_types)]

mod shifted_lj;
mod wca;

galamost_plugin_api::plugin!();
