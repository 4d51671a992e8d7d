//! Thermostats that multiply all velocities with one number.

mod berendsen;
mod bussi;

galamost_plugin_api::plugin!();
