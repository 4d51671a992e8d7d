//! Memory checks after every call of a component: `--check-memory`.
//!
//! Guard bytes after each array detect writes past its end, and a hash detects changes of arrays that a force may only
//! read. Plugins in safe Rust cannot cause either; plugins that use raw addresses from views can.

use super::system::CpuSystem;
use crate::state::store::Store;
use galamost_plugin_api::error::{Error, Result};
use std::hash::{DefaultHasher, Hasher as _};
use std::sync::atomic::{AtomicBool, Ordering};

/// Number of guard bytes after an array, and their value.
const GUARD: usize = 64;
const GUARD_BYTE: u8 = 0xa5;

static ON: AtomicBool = AtomicBool::new(false);

/// Enables memory checks for all runs on the CPU from now on.
pub fn enable() {
    ON.store(true, Ordering::Relaxed);
}

/// Returns true if memory checks are enabled.
pub fn enabled() -> bool {
    ON.load(Ordering::Relaxed)
}

/// Writes guard bytes after an array; may reallocate it.
pub fn write_guard<T>(array: &mut Vec<T>) {
    array.reserve(GUARD.div_ceil(size_of::<T>().max(1)));
    let guard = array.spare_capacity_mut().as_mut_ptr().cast::<u8>();
    // SAFETY: the spare capacity has room for the bytes and holds no values
    unsafe { guard.write_bytes(GUARD_BYTE, GUARD) };
}

/// Returns true if the guard bytes after an array are unchanged.
pub fn intact<T>(array: &[T]) -> bool {
    // SAFETY: `write_guard` reserved and filled the guard
    let guard = unsafe { array.as_ptr_range().end.cast::<[u8; GUARD]>().read() };
    guard == [GUARD_BYTE; GUARD]
}

fn hash_of<T: Copy>(hasher: &mut DefaultHasher, array: &[T]) {
    // SAFETY: the element types of state arrays are numbers without padding
    hasher.write(unsafe { std::slice::from_raw_parts(array.as_ptr().cast::<u8>(), size_of_val(array)) });
}

impl<S: Store> CpuSystem<S> {
    /// Writes guard bytes after all arrays that components see.
    pub(super) fn write_guards(&mut self) {
        if !enabled() {
            return;
        }
        write_guard(&mut self.pos);
        write_guard(&mut self.low);
        write_guard(&mut self.vel);
        write_guard(&mut self.force);
        write_guard(&mut self.image);
        write_guard(&mut self.tag);
        write_guard(&mut self.index_of_tag);
        write_guard(&mut self.group);
        write_guard(&mut self.built);
        for a in &mut self.arrays {
            write_guard(a.data.words_mut());
        }
    }

    /// Returns an error if a component wrote past the end of an array.
    pub(super) fn check_guards(&self, component: &str) -> Result<()> {
        if !enabled() {
            return Ok(());
        }
        let fixed = [
            (intact(&self.pos), "pos_type"),
            (intact(&self.low), "pos_low"),
            (intact(&self.vel), "velocity_mass"),
            (intact(&self.force), "force"),
            (intact(&self.image), "image"),
            (intact(&self.tag), "tag"),
            (intact(&self.index_of_tag), "index_of_tag"),
            (intact(&self.group), "group"),
            (intact(&self.built), "pos_at_build"),
        ];
        let arrays = self.arrays.iter().map(|a| (intact(a.data.words()), a.need.name.as_str()));
        match fixed.into_iter().chain(arrays).find(|(intact, _)| !intact) {
            Some((_, name)) => Err(Error::Run(format!("{component} wrote past the end of the array `{name}`"))),
            None => Ok(()),
        }
    }

    /// Returns a hash of the arrays that a force may only read; 0 if checks are disabled.
    pub(super) fn hash_read_only(&self) -> u64 {
        if !enabled() {
            return 0;
        }
        let mut h = DefaultHasher::new();
        hash_of(&mut h, &self.pos);
        hash_of(&mut h, &self.low);
        hash_of(&mut h, &self.vel);
        hash_of(&mut h, &self.image);
        hash_of(&mut h, &self.tag);
        hash_of(&mut h, &self.index_of_tag);
        hash_of(&mut h, &self.group);
        h.finish()
    }

    /// Returns an error if a force changed these arrays or wrote past the end of an array.
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
