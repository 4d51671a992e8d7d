//! Anharmonic bonds.
#![allow(non_camel_case_types)]

mod morse;
mod quartic;

galamost_plugin_api::plugin!();
