//! Plugins: search, loading, components, and the services of the engine.

mod component;
mod cpu_services;
pub mod host;
mod library;
mod needs;
mod rank_objects;
mod registry;
pub mod trial;

pub use component::{
    AnalyzerHandle, BondedHandle, Component, ForceHandle, GeneratorHandle, IntegratorHandle, MAX_GROUPS, PairHandle,
    UpdaterHandle,
};
pub use library::Library;
pub use registry::{Registry, search_path};
