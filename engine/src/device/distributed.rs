//! Arrays whose parts lie on several devices.
//!
//! All devices access such an array at the same address, so an index means the same everywhere; each device has the memory of its own part.

use galamost_plugin_api::error::{Error, Result};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How an array is distributed over devices.
#[derive(Clone, Debug)]
pub struct Distribution {
    /// Number of the GPU of each device; 0 without a GPU.
    pub ordinals: Vec<u32>,
    /// Where the part of each device ends, in bytes from the start of the array.
    pub ends: Vec<usize>,
}

impl Distribution {
    /// Returns the size of the array in bytes.
    pub fn bytes(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Returns begin and end of the part of device number `rank`.
    pub fn part(&self, rank: usize) -> (usize, usize) {
        (rank.checked_sub(1).map_or(0, |k| self.ends[k]), self.ends[rank])
    }

    /// Returns the byte before which the first half of the devices have their parts.
    pub fn middle(&self) -> usize {
        self.part(self.ends.len() / 2).0
    }
}

/// An array with the number of devices that have it attached.
struct Entry<T> {
    array: T,
    attached: usize,
}

/// The distributed arrays of a kind of device, by address.
pub(super) struct Registry<T>(Mutex<BTreeMap<u64, Entry<T>>>);

impl<T> Registry<T> {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Entry<T>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an array.
    pub(super) fn insert(&self, address: u64, array: T) {
        self.lock().insert(address, Entry { array, attached: 0 });
    }

    /// Counts a device that attaches the array, and returns what `f` returns for it.
    pub(super) fn attach<R>(&self, address: u64, f: impl FnOnce(&T) -> R) -> Result<R> {
        let mut all = self.lock();
        let unknown =
            || Error::Device { what: "memory".into(), message: format!("no distributed array at {address:#x}") };
        let entry = all.get_mut(&address).ok_or_else(unknown)?;
        entry.attached += 1;
        Ok(f(&entry.array))
    }

    /// Counts a device that detaches the array, and returns the array if it was the last one.
    pub(super) fn detach(&self, address: u64) -> Option<T> {
        let mut all = self.lock();
        let entry = all.get_mut(&address)?;
        entry.attached -= 1;
        if entry.attached > 0 { None } else { all.remove(&address).map(|e| e.array) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_follow_each_other() {
        let d = Distribution { ordinals: vec![0, 1, 2], ends: vec![256, 512, 600] };
        assert_eq!((d.bytes(), d.middle()), (600, 256));
        assert_eq!([d.part(0), d.part(1), d.part(2)], [(0, 256), (256, 512), (512, 600)]);
    }

    #[test]
    fn the_last_device_gets_the_array_back() {
        let registry = Registry::new();
        registry.insert(4, "array");
        assert_eq!(registry.attach(4, |a| a.len()).unwrap(), 5);
        registry.attach(4, |_| ()).unwrap();
        assert!(registry.attach(8, |_| ()).is_err());
        assert_eq!((registry.detach(4), registry.detach(4), registry.detach(4)), (None, Some("array"), None));
    }
}
