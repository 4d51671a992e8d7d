//! A run: stages, steps, outputs, checkpoints, and what happens when something breaks.

mod clock;
pub mod ensemble;
mod execute;
mod frame;
mod open;
mod progress;
pub mod record;

pub use clock::{Clock, parse_walltime};
pub use execute::{RunOptions, Shares, Spent, Summary, execute};
pub use open::{open, open_shared};
pub use progress::{Progress, ProgressDisplay, duration};
