//! The terminal: log, progress bar, signals, crashes.

pub mod crash;
pub mod log;
mod progress;
mod signals;

pub use progress::bar;
pub use signals::signals;
