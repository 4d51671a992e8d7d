//! Forked processes. A fork copies the memory of a process but not its threads, so that work of the engine would wait
//! forever for the copied thread pool.

use crate::errors::exception;
use galamost_engine::diagnostic::Failure;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicU32, Ordering};

/// The process that first used the engine's threads; 0: none yet.
static USER: AtomicU32 = AtomicU32::new(0);

const MESSAGE: &str = "this process was forked from one that has used galamost, and a fork does not copy threads; start \
                       the process with multiprocessing.get_context(\"spawn\")";

/// Returns whether this process was forked from one that has used the engine's threads.
pub fn lacks_threads() -> bool {
    let user = USER.load(Ordering::Relaxed);
    user != 0 && user != std::process::id()
}

/// Records that this process uses the engine's threads. Every function that does work on them calls this first.
///
/// # Errors
/// Returns a `galamost.RunError` in a process that was forked from one that has used the threads.
pub fn require_threads(py: Python<'_>) -> PyResult<()> {
    let me = std::process::id();
    match USER.compare_exchange(0, me, Ordering::Relaxed, Ordering::Relaxed) {
        Err(user) if user != me => Err(exception(py, &Failure::run(MESSAGE))),
        _ => Ok(()),
    }
}
