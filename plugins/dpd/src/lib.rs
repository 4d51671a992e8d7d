//! Dissipative particle dynamics.
#![allow(non_camel_case_types)]

mod dpd;
mod settings;
mod thermostat;

galamost_plugin_api::plugin!();
