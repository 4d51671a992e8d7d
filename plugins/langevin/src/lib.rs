//! Motion in a viscous medium at constant temperature, with inertia (Langevin) and without (Brownian).

mod brownian;
mod langevin;

galamost_plugin_api::plugin!();
