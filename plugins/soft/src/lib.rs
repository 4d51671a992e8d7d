//! Soft repulsions: particles may pass through each other.
#![allow(non_camel_case_types)]

mod gaussian;
mod gem;
mod harmonic_repulsion;

galamost_plugin_api::plugin!();
