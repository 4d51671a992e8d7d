//! A run: stages, steps, outputs, checkpoints, and what happens when something breaks.

mod backend;
mod clock;
mod execute;
mod frame;
mod progress;
mod setup;

pub use backend::{Backend, Columns, ListReport, SystemSums};
pub use clock::{Clock, parse_walltime};
pub use execute::{RunOptions, Shares, Spent, Summary, execute};
pub use progress::{Progress, duration};
pub use setup::{Sheared, degrees_of_freedom, fault_error, initial_globals, list_radius, lists_members, state_fits};
