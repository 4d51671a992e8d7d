//! The state of a system: particle arrays, storage of positions, topology, molecules, cell grid.

pub mod arrays;
pub mod buffers;
pub mod cells;
pub mod molecules;
pub mod raw;
pub mod reduction;
pub mod rotation;
pub mod store;
pub mod topology;

pub use raw::{Facts, RawState};
