//! Work on several threads, provided by the engine or, in a plugin, by the engine's services.

use std::sync::Mutex;

/// Calls a function for every number below the first argument, on any threads, and waits for all calls.
pub type Parallel<'a> = &'a dyn Fn(usize, &(dyn Fn(usize) + Sync));

/// Runs all calls on the current thread.
pub fn one_thread(n: usize, f: &(dyn Fn(usize) + Sync)) {
    (0..n).for_each(f);
}

/// Returns f(0), f(1), …, f(n − 1).
pub fn map<T: Send>(parallel: Parallel<'_>, n: usize, f: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let slots: Vec<Mutex<Option<T>>> = (0..n).map(|_| Mutex::new(None)).collect();
    parallel(n, &|k| {
        let value = f(k);
        if let Ok(mut slot) = slots[k].lock() {
            *slot = Some(value);
        }
    });
    slots.into_iter().filter_map(|s| s.into_inner().ok().flatten()).collect()
}

/// Returns the results for all elements of a list, in order; threads work on chunks of it.
pub fn map_slice<T: Sync, U: Send>(parallel: Parallel<'_>, list: &[T], f: impl Fn(&T) -> U + Sync) -> Vec<U> {
    const CHUNK: usize = 8192;
    let chunks = map(parallel, list.len().div_ceil(CHUNK), |k| {
        list[k * CHUNK..list.len().min((k + 1) * CHUNK)].iter().map(&f).collect::<Vec<U>>()
    });
    chunks.into_iter().flatten().collect()
}
