//! Plugins: where they are looked for, how they are loaded, what they hold.

mod component;
pub mod host;
mod library;
mod registry;

pub use component::{
    AnalyzerPart, BondedPart, Component, ForcePart, GeneratorPart, IntegratorPart, MAX_GROUPS, PairPart, UpdaterPart,
};
pub use library::Library;
pub use registry::{Registry, search_path};
