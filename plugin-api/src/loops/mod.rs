//! The CPU loops, which call the functions of plugins, and the vectors they are made of.

pub(crate) mod angles;
pub mod bonds;
pub(crate) mod external;
pub mod integrator;
pub mod lanes;
pub(crate) mod oriented;
pub mod pair;
pub(crate) mod storage;
