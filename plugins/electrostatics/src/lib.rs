//! Coulomb interactions of long range under periodic boundary conditions: Ewald sums, and particle–mesh (PPPM).

#![allow(non_camel_case_types)]

mod analysis;
mod charges;
mod correction;
mod device_charges;
mod ewald;
mod params;
mod pppm;
mod series;
mod short_range;
mod split;

galamost_plugin_api::plugin!();
