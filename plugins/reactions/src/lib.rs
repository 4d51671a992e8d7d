//! Reactions: bonds that form and break during a run, chain-length statistics, and surfaces for grafted chains.

mod component;
mod energy;
mod law;
mod lengths;
mod link_types;
mod resolve;
mod search;
mod surface;
mod table;

galamost_plugin_api::plugin!();
