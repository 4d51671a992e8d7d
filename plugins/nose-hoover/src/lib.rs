//! Nosé-Hoover thermostats: canonical ensemble by one friction, or by a chain of them.

mod chain;
mod single;

galamost_plugin_api::plugin!();
