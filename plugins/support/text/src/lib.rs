//! What plugins that read and write text files of particles share: lines with their numbers, compressed files, the frames of a
//! trajectory, numbers that come back as they were, files that are cut back after a restart.
#![deny(missing_docs)]

mod lines;
mod numbers;
mod open;
mod place;
mod trajectory;
mod write;

pub use lines::{Lines, Mark};
pub use numbers::{real, reals, whole};
pub use open::{Source, open, read_text};
pub use place::fold;
pub use trajectory::Trajectory;
pub use write::{FrameFile, StateFile, replace};

use galamost_plugin_api::error::InputError;

/// What reading gives: the first mistake, with its file and place.
pub type Result<T> = std::result::Result<T, InputError>;
