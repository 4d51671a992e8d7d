//! The engine of GALAMOST: loads plugins, checks pipelines, steps, writes checkpoints. It contains no physics.

pub mod bench;
pub mod buffers;
pub mod cells;
pub mod checkpoint;
pub mod cli;
pub mod cpu;
pub mod device;
pub mod doc;
pub mod doctor;
pub mod ensemble;
pub mod gpu;
pub mod host;
mod ibi;
pub mod molecules;
pub mod new;
pub mod pipeline;
pub mod plan;
pub mod plugins;
pub mod report;
pub mod rotation;
pub mod run;
pub mod selftest;
pub mod state;
pub mod store;
mod tables;
pub mod topology;
pub mod watch;
