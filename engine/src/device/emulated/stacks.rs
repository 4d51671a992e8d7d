//! Memory for the stacks of the threads of emulated kernels.
//!
//! A kernel's library is loaded for one run, and the threads that launch it may end before the run does. Stacks outlive both, so the
//! pages that a process has used once serve all its kernels.

use galamost_plugin_api::abi::Opaque;
use std::alloc::{Layout, alloc, handle_alloc_error};
use std::cell::RefCell;
use std::sync::{Mutex, PoisonError};

/// Lends memory for a stack of this many bytes.
pub(super) type Take = extern "C" fn(usize) -> *mut Opaque;
/// Takes the memory of a stack back.
pub(super) type Give = extern "C" fn(*mut Opaque);

/// The largest number of stacks that a thread takes from the others at once: the threads of a large block.
const BATCH: usize = 256;
/// The alignment of a stack, a cache line.
const ALIGN: usize = 64;

/// Memory that no kernel uses. All stacks have the size that `galamost_blocks.cpp` names.
struct Stack(*mut Opaque);

// SAFETY: nobody has the address of free memory but its owner
unsafe impl Send for Stack {}

/// Stacks of threads that have ended.
static FREE: Mutex<Vec<Stack>> = Mutex::new(vec![]);

/// Stacks of one thread, which it leaves to others when it ends.
struct OfThread(RefCell<Vec<Stack>>);

impl Drop for OfThread {
    fn drop(&mut self) {
        FREE.lock().unwrap_or_else(PoisonError::into_inner).append(&mut self.0.borrow_mut());
    }
}

thread_local! {
    static OWN: OfThread = const { OfThread(RefCell::new(vec![])) };
}

/// Returns memory of `size` bytes.
pub(super) extern "C" fn take(size: usize) -> *mut Opaque {
    let free = OWN.try_with(|own| {
        let mut own = own.0.borrow_mut();
        if own.is_empty() {
            let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
            let rest = free.len().saturating_sub(BATCH);
            own.extend(free.drain(rest..));
        }
        own.pop()
    });
    if let Ok(Some(stack)) = free {
        return stack.0;
    }
    let Ok(layout) = Layout::from_size_align(size.max(1), ALIGN) else { return std::ptr::null_mut() };
    // SAFETY: the size is not 0
    let memory = unsafe { alloc(layout) };
    if memory.is_null() {
        handle_alloc_error(layout);
    }
    memory.cast()
}

/// Keeps memory from [`take`] for the next kernel.
pub(super) extern "C" fn give(stack: *mut Opaque) {
    let mut stack = Some(Stack(stack));
    let kept = OWN.try_with(|own| own.0.borrow_mut().extend(stack.take()));
    // a thread that ends has no stacks any more
    if kept.is_err() {
        FREE.lock().unwrap_or_else(PoisonError::into_inner).extend(stack);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_of_a_thread_that_has_ended_serve_others() {
        const SIZE: usize = 4096;
        let first = std::thread::spawn(|| {
            let two = [take(SIZE), take(SIZE)];
            assert_ne!(two[0], two[1]);
            two.map(|stack| {
                give(stack);
                stack as usize
            })
        });
        let first = first.join().expect("no panic");
        let found = std::thread::spawn(|| [take(SIZE), take(SIZE)].map(|stack| stack as usize));
        let mut found = found.join().expect("no panic");
        found.sort_unstable();
        let mut first = first.to_vec();
        first.sort_unstable();
        assert_eq!(found.to_vec(), first);
    }
}
