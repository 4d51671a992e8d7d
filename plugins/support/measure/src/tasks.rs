//! Work on the engine's threads.

use galamost_plugin_api::services::Host;
use std::sync::{Mutex, PoisonError};

/// Returns f(0), f(1), …, f(n − 1), computed on the engine's threads.
pub fn map<T: Send>(host: &Host, n: usize, f: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let results: Mutex<Vec<Option<T>>> = Mutex::new((0..n).map(|_| None).collect());
    host.parallel(n, 1, |range| {
        for k in range {
            let result = f(k);
            results.lock().unwrap_or_else(PoisonError::into_inner)[k] = Some(result);
        }
    });
    results.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter().flatten().collect()
}
