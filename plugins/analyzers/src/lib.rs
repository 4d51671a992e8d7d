//! Analyzers: thermodynamic output, conformation of molecules, distributions, dynamics, scattering, orientation, profiles,
//! and stress correlation.

mod conformation;
mod distributions;
mod dynamics;
mod orientation;
mod profiles;
mod scattering;
mod selection;
mod stress;
mod thermo;

galamost_plugin_api::plugin!();
