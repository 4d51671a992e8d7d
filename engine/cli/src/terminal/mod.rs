//! The terminal: standard output, log, progress bar, signals, crashes.

pub mod crash;
pub mod log;
mod output;
mod progress;
mod signals;

pub use output::{print, written};
pub use progress::{bar, no_display};
pub use signals::{catch_early, catch_file_size, end_requests, ignore_signals, signals};
