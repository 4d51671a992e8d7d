//! Dissipative particle dynamics.
//!
//! `dpd.rs` is the pair force, `thermostat.rs` its thermostat without the conservative force. `groot_warren.rs` and
//! `dpd_verlet.rs` are integrators. `lowe_andersen` holds the pairwise thermostats of Lowe-Andersen and Shardlow,
//! `many_body` many-body DPD.
#![allow(non_camel_case_types)]

mod dpd;
mod dpd_verlet;
mod groot_warren;
mod lowe_andersen;
mod many_body;
mod settings;
mod thermostat;

galamost_plugin_api::plugin!();
