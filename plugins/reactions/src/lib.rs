//! Reactions: bonds that form and break during a run, chain-length statistics, and surfaces for grafted chains.

mod component;
mod cpu;
mod device;
mod energy;
mod law;
mod lengths;
mod link_types;
mod ranks;
mod resolve;
mod surface;
mod table;

galamost_plugin_api::plugin!();
