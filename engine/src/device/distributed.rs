//! Arrays whose parts lie on several devices.
//!
//! All devices access such an array at the same address, so an index means the same everywhere. Each device stores its own part.

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

    /// Returns how many bytes after the beginning of a page the array begins, so that two halves of the devices share no page.
    pub(super) fn offset(&self, page: usize) -> usize {
        let middle = self.part(self.ends.len() / 2).0;
        middle.next_multiple_of(page) - middle
    }

    /// Returns where the pages of each device end, from the beginning of the first page on. A page with bytes of two devices belongs
    /// to the first of them.
    pub(super) fn page_ends(&self, offset: usize, page: usize) -> Vec<usize> {
        self.ends.iter().map(|end| (offset + end).next_multiple_of(page)).collect()
    }

    /// Returns the largest share of a device's part that lies in pages of another device.
    pub fn most_foreign(&self, page: usize) -> f64 {
        let offset = self.offset(page);
        let ends = self.page_ends(offset, page);
        let share = |k: usize| {
            let (begin, end) = self.part(k);
            let foreign = ends[k - 1].saturating_sub(offset + begin).min(end - begin);
            foreign as f64 / (end - begin).max(1) as f64
        };
        (1..ends.len()).map(share).fold(0.0, f64::max)
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
        assert_eq!((d.bytes(), d.offset(100)), (600, 44));
        assert_eq!([d.part(0), d.part(1), d.part(2)], [(0, 256), (256, 512), (512, 600)]);
    }

    #[test]
    fn a_page_belongs_to_the_first_device_with_bytes_in_it() {
        // two halves share no page
        let two = Distribution { ordinals: vec![0, 1], ends: vec![130, 260] };
        assert_eq!((two.page_ends(two.offset(100), 100), two.most_foreign(100)), (vec![200, 400], 0.0));
        // the second device has 70 of its 130 bytes on the first one
        let four = Distribution { ordinals: vec![0, 1, 2, 3], ends: vec![130, 260, 390, 520] };
        assert_eq!(four.page_ends(four.offset(100), 100), vec![200, 300, 500, 600]);
        assert_eq!(four.most_foreign(100), 70.0 / 130.0);
    }

    #[test]
    fn the_last_device_gets_the_array_back() {
        let registry = Registry::new();
        registry.insert(4, "array");
        assert_eq!(registry.attach(4, |a| a.len()).expect("an array"), 5);
        registry.attach(4, |_| ()).expect("an array");
        assert!(registry.attach(8, |_| ()).is_err());
        assert_eq!((registry.detach(4), registry.detach(4), registry.detach(4)), (None, Some("array"), None));
    }
}
