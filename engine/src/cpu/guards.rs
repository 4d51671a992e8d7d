//! Checks after every call of a component whether it wrote to memory it must not change: `--check-memory`.
//!
//! Each array has guard bytes after its data; arrays that forces may only read are compared by their hash. Plugins
//! written in safe Rust cannot do either; plugins that take addresses from views can.

use super::system::CpuSystem;
use crate::state::store::Store;
use galamost_plugin_api::error::{Error, Result};
use std::hash::{DefaultHasher, Hasher as _};
use std::sync::atomic::{AtomicBool, Ordering};

static ON: AtomicBool = AtomicBool::new(false);

/// Checks the memory of all runs on the CPU from now on.
pub fn enable() {
    ON.store(true, Ordering::Relaxed);
}

/// Returns whether the memory of runs is checked.
pub fn enabled() -> bool {
    ON.load(Ordering::Relaxed)
}

impl<S: Store> CpuSystem<S> {
    /// Fills the guard bytes of all arrays that components see.
    pub(super) fn write_guards(&mut self) {
        if enabled() {
            self.arrays.iter_mut().for_each(|a| a.data.write_guard());
        }
    }

    /// Returns an error if a component wrote past the end of an array.
    pub(super) fn check_guards(&self, component: &str) -> Result<()> {
        if !enabled() {
            return Ok(());
        }
        match self.arrays.iter().find(|a| !a.data.is_intact()) {
            Some(a) => {
                let name = a.info.component_name().unwrap_or(&a.info.name);
                Err(Error::Run(format!("{component} wrote past the end of the array `{name}`")))
            }
            None => Ok(()),
        }
    }

    /// Returns a hash of the arrays that forces may only read; 0 if memory is not checked.
    pub(super) fn hash_read_only(&self) -> u64 {
        if !enabled() {
            return 0;
        }
        let mut h = DefaultHasher::new();
        self.arrays.iter().filter(|a| a.info.read_only_for_forces()).for_each(|a| h.write(a.data.bytes()));
        h.finish()
    }

    /// Returns an error if a force changed a read-only array or wrote past the end of an array.
    pub(super) fn check_force(&self, component: &str, before: u64) -> Result<()> {
        self.check_guards(component)?;
        if self.hash_read_only() == before {
            return Ok(());
        }
        Err(Error::Run(format!(
            "{component} changed positions, velocities, images or tags, which a force may only read"
        )))
    }
}
