//! A look, after every call of a component, at whether it wrote where it may not: `--check-memory`.
//!
//! Behind each array stand bytes that nobody may touch; what forces may only read is compared with what it was. Plugins
//! written in safe Rust cannot do either; those that take addresses from views can.

use super::system::CpuSystem;
use crate::state::store::Store;
use galamost_plugin_api::error::{Error, Result};
use std::hash::{DefaultHasher, Hasher as _};
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes behind an array, and what they hold.
const GUARD: usize = 64;
const GUARD_BYTE: u8 = 0xa5;

static ON: AtomicBool = AtomicBool::new(false);

/// All runs on the CPU from now on are looked after.
pub fn enable() {
    ON.store(true, Ordering::Relaxed);
}

/// Whether runs are looked after.
pub fn on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// Puts guards behind an array, which may move for it.
pub fn arm<T>(array: &mut Vec<T>) {
    array.reserve(GUARD.div_ceil(size_of::<T>().max(1)));
    let guard = array.spare_capacity_mut().as_mut_ptr().cast::<u8>();
    // SAFETY: room for so many bytes was made just now, and it holds no values
    unsafe { guard.write_bytes(GUARD_BYTE, GUARD) };
}

/// Whether nobody has touched them.
pub fn whole<T>(array: &[T]) -> bool {
    // SAFETY: `arm` made room for the guards and filled them
    let guard = unsafe { array.as_ptr_range().end.cast::<[u8; GUARD]>().read() };
    guard == [GUARD_BYTE; GUARD]
}

fn hash_of<T: Copy>(hasher: &mut DefaultHasher, array: &[T]) {
    // SAFETY: arrays of the state are plain numbers without padding
    hasher.write(unsafe { std::slice::from_raw_parts(array.as_ptr().cast::<u8>(), size_of_val(array)) });
}

impl<S: Store> CpuSystem<S> {
    /// Puts guards behind all arrays that components see.
    pub(super) fn arm(&mut self) {
        if !on() {
            return;
        }
        arm(&mut self.pos);
        arm(&mut self.low);
        arm(&mut self.vel);
        arm(&mut self.force);
        arm(&mut self.image);
        arm(&mut self.tag);
        arm(&mut self.index_of_tag);
        arm(&mut self.group);
        arm(&mut self.built);
        for a in &mut self.arrays {
            arm(a.data.words_mut());
        }
    }

    /// An error if a component wrote behind an array.
    pub(super) fn check_guards(&self, component: &str) -> Result<()> {
        if !on() {
            return Ok(());
        }
        let fixed = [
            (whole(&self.pos), "pos_type"),
            (whole(&self.low), "pos_low"),
            (whole(&self.vel), "velocity_mass"),
            (whole(&self.force), "force"),
            (whole(&self.image), "image"),
            (whole(&self.tag), "tag"),
            (whole(&self.index_of_tag), "index_of_tag"),
            (whole(&self.group), "group"),
            (whole(&self.built), "pos_at_build"),
        ];
        let arrays = self.arrays.iter().map(|a| (whole(a.data.words()), a.need.name.as_str()));
        match fixed.into_iter().chain(arrays).find(|(whole, _)| !whole) {
            Some((_, name)) => Err(Error::Run(format!("{component} wrote past the end of the array `{name}`"))),
            None => Ok(()),
        }
    }

    /// A hash of what a force may only read; 0 if nobody looks.
    pub(super) fn read_only(&self) -> u64 {
        if !on() {
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

    /// An error if a force changed it, or wrote behind an array.
    pub(super) fn check_force(&self, component: &str, before: u64) -> Result<()> {
        self.check_guards(component)?;
        if self.read_only() == before {
            return Ok(());
        }
        Err(Error::Run(format!(
            "{component} changed positions, velocities, images or tags, which a force may only read"
        )))
    }
}
