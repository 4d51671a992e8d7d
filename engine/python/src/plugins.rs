//! The plugins that all simulations of the process share.

use crate::errors::collect_warnings;
use galamost_engine::plugins::{Registry, trial};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::{LazyLock, PoisonError, RwLock, RwLockReadGuard};

static REGISTRY: LazyLock<RwLock<Registry>> = LazyLock::new(RwLock::default);

/// Returns the plugins.
pub fn registry() -> RwLockReadGuard<'static, Registry> {
    REGISTRY.read().unwrap_or_else(PoisonError::into_inner)
}

/// Loads one library, if it is not loaded.
pub fn add_library(file: &std::path::Path) {
    REGISTRY.write().unwrap_or_else(PoisonError::into_inner).add(file);
}

/// Loads the plugins of folders. `program` is the `galamost` command, which tries unknown libraries first.
#[pyfunction]
pub fn load_plugins(py: Python<'_>, folders: Vec<PathBuf>, named: usize, program: Option<PathBuf>) {
    collect_warnings();
    if let Some(program) = program {
        trial::set_program(program);
    }
    py.detach(|| REGISTRY.write().unwrap_or_else(PoisonError::into_inner).load_more(&folders, named));
}

/// Returns all components with their pages and fields as JSON.
#[pyfunction]
pub fn describe_components(py: Python<'_>) -> String {
    py.detach(|| galamost::plugins::to_json(&registry().components()))
}
