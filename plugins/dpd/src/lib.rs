//! Dissipative particle dynamics.
//!
//! | module | contents |
//! |---|---|
//! | `dpd` | the DPD pair force |
//! | `thermostat` | friction and noise without the conservative force |
//! | `groot_warren`, `dpd_verlet` | integrators |
//! | `pairwise` | Lowe-Andersen thermostat and Shardlow splitting |
//! | `many_body` | many-body DPD |
#![allow(non_camel_case_types)]

mod dpd;
mod dpd_verlet;
mod groot_warren;
mod many_body;
mod pairwise;
mod settings;
mod thermostat;

galamost_plugin_api::plugin!();
