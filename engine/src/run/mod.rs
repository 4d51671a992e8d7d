//! A run: stages, steps, outputs, checkpoints, and what happens when something breaks.

mod backend;
mod execute;
mod frame;
mod progress;
mod setup;

pub use backend::{Backend, Columns, ListReport, RawState, SystemSums};
pub use execute::{RunOptions, Summary, execute};
pub use setup::{degrees_of_freedom, fault_error, group_degrees_of_freedom, list_radius};
