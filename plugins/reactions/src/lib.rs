//! Reactions: bonds that form and break during a run, chain-length statistics, and surfaces for grafted chains.

mod component;
mod cpu;
mod device;
mod energy;
mod generators;
mod law;
mod lengths;
mod ranks;
mod resolve;
mod table;

galamost_plugin_api::plugin!();
