//! Reactions: bonds that form and break while particles move, what they make, and surfaces from which chains grow.

mod component;
mod cpu;
mod device;
mod energy;
mod law;
mod lengths;
mod link_types;
mod resolve;
mod surface;
mod table;

galamost_plugin_api::plugin!();
