//! Reading and writing text files of particles: lines with line numbers, compressed files, frames of a trajectory, numbers
//! that round-trip exactly, and output files that are truncated to the checkpoint when a run resumes.
#![deny(missing_docs)]

mod lines;
mod numbers;
mod open;
mod periodic;
mod shape;
mod trajectory;
mod write;

pub use lines::{Lines, Mark};
pub use numbers::{real, reals, whole};
pub use open::{Source, open, read_text};
pub use periodic::{fold, tilted};
pub use shape::Shape;
pub use trajectory::Trajectory;
pub use write::{FrameFile, StateFile, replace};

use galamost_plugin_api::error::InputError;

/// Result of reading; the error names the file and the position.
pub type Result<T> = std::result::Result<T, InputError>;
