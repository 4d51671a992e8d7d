//! Work on several threads, whoever has them: the engine, or the engine's services in a plugin.

use std::sync::Mutex;

/// Calls a function for every number below the first argument, on any threads, and returns when all calls have.
pub type Parallel<'a> = &'a dyn Fn(usize, &(dyn Fn(usize) + Sync));

/// Everything on the caller's thread.
pub fn one_thread(n: usize, f: &(dyn Fn(usize) + Sync)) {
    (0..n).for_each(f);
}

/// The results for all numbers below n, in their order.
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

/// The results for pieces of a list, one after the other.
pub fn pieces<T: Sync, U: Send>(parallel: Parallel<'_>, list: &[T], f: impl Fn(&T) -> U + Sync) -> Vec<U> {
    const PIECE: usize = 8192;
    let parts = map(parallel, list.len().div_ceil(PIECE), |k| {
        list[k * PIECE..list.len().min((k + 1) * PIECE)].iter().map(&f).collect::<Vec<U>>()
    });
    parts.into_iter().flatten().collect()
}
