//! Words that several threads write while others read them: flags and the fault of [`super::views::Globals`].

use super::globals::Fault;
use galamost_plugin_macros::Layout;
use std::sync::atomic::{AtomicU32, Ordering};

/// A 32-bit word that several threads may read and write at the same time. On the device it is a plain word.
#[repr(transparent)]
#[derive(Debug, Default)]
pub struct SharedWord(AtomicU32);

impl Clone for SharedWord {
    fn clone(&self) -> Self {
        Self::new(self.get())
    }
}

impl SharedWord {
    /// Creates a word with this value.
    pub const fn new(value: u32) -> Self {
        Self(AtomicU32::new(value))
    }
    /// Returns the value.
    pub fn get(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
    /// Sets the value.
    pub fn set(&self, value: u32) {
        self.0.store(value, Ordering::Relaxed);
    }
}

/// The [`Fault`] of a run, as several threads record it: the one with the smallest tag is kept.
#[repr(C)]
#[derive(Clone, Debug, Layout)]
pub struct FaultRecord {
    /// [`Fault::code`].
    code: SharedWord,
    /// [`Fault::component`].
    component: SharedWord,
    /// [`Fault::tag`].
    tag: SharedWord,
    /// [`Fault::detail`].
    detail: SharedWord,
}

impl Default for FaultRecord {
    fn default() -> Self {
        Self::new(Fault::default())
    }
}

/// The value of [`FaultRecord::code`] while a thread changes the record.
const LOCKED: u32 = u32::MAX;

impl FaultRecord {
    /// Creates a record of this fault.
    pub const fn new(fault: Fault) -> Self {
        Self {
            code: SharedWord::new(fault.code),
            component: SharedWord::new(fault.component),
            tag: SharedWord::new(fault.tag),
            detail: SharedWord::new(fault.detail),
        }
    }

    /// Returns the fault. Call it when no thread records one.
    pub fn get(&self) -> Fault {
        let [code, component, tag, detail] =
            [&self.code, &self.component, &self.tag, &self.detail].map(SharedWord::get);
        Fault { code, component, tag, detail }
    }

    /// Records a fault. Of several faults in a step the one with the smallest tag is kept, then that with the smallest
    /// detail and component, so the result does not depend on the order of the threads.
    pub fn record(&self, fault: Fault) {
        let before = loop {
            let code = self.code.get();
            let locked = code != LOCKED
                && self.code.0.compare_exchange_weak(code, LOCKED, Ordering::Acquire, Ordering::Relaxed).is_ok();
            if locked {
                break Fault { code, ..self.get() };
            }
            std::hint::spin_loop();
        };
        let order = |f: &Fault| (f.tag, f.detail, f.component, f.code);
        let kept = if before.code == 0 || order(&fault) < order(&before) { fault } else { before };
        self.component.set(kept.component);
        self.tag.set(kept.tag);
        self.detail.set(kept.detail);
        self.code.0.store(kept.code, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fault_with_the_smallest_tag_is_kept_whole() {
        let fault = |tag: u32| Fault { code: 1 + tag % 7, component: 10 * tag, tag, detail: 3 * tag };
        let record = FaultRecord::default();
        std::thread::scope(|s| {
            for first in 1..5 {
                let record = &record;
                s.spawn(move || (0..8).rev().for_each(|k| record.record(fault(first + 4 * k))));
            }
        });
        assert_eq!(record.get(), fault(1));
    }

    #[test]
    fn equal_tags_are_ordered_by_the_other_words() {
        for faults in [[2, 5], [5, 2]] {
            let record = FaultRecord::default();
            faults.into_iter().for_each(|detail| record.record(Fault { code: 4, component: 0, tag: 9, detail }));
            assert_eq!(record.get(), Fault { code: 4, component: 0, tag: 9, detail: 2 });
        }
    }
}
