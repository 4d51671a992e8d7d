//! The engine of GALAMOST: loads plugins, checks pipelines, runs them on a device, writes checkpoints. It contains no physics.
//!
//! Folders depend on each other in this order only; `tests/house.rs` checks it:
//! [`pipeline`] → [`device`] → [`plugins`] → [`state`] → [`plan`] → [`backend`] → [`checkpoint`] → [`cpu`], [`gpu`] → [`run`].
//! [`processes`] uses no other folder.

pub mod activity;
pub mod backend;
pub mod checkpoint;
pub mod cpu;
pub mod device;
pub mod diagnostic;
pub mod gpu;
pub mod log;
pub mod pipeline;
pub mod plan;
pub mod plugins;
pub mod processes;
pub mod profile;
pub mod run;
pub mod state;
