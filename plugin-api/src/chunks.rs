//! Work on ranges of many values, on several threads.

use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Values in a range: fewer are not worth the start of a thread.
pub const CHUNK: usize = 1 << 16;

/// Calls a function for each range of [`CHUNK`] indices below `n`, on at most this number of threads, and returns the results in the
/// order of the ranges. The ranges do not depend on the number of threads, so neither do the bits of a sum of the results.
pub fn in_chunks<T: Send>(n: usize, threads: usize, f: impl Fn(Range<usize>) -> T + Sync) -> Vec<T> {
    let count = n.div_ceil(CHUNK);
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = vec![];
        loop {
            let k = next.fetch_add(1, Ordering::Relaxed);
            if k >= count {
                return done;
            }
            done.push((k, f(k * CHUNK..n.min((k + 1) * CHUNK))));
        }
    };
    let mut all = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads.min(count)).map(|_| scope.spawn(work)).collect();
        let mut all = work();
        for other in others {
            all.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        all
    });
    all.sort_by_key(|(k, _)| *k);
    all.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_do_not_depend_on_threads() {
        for n in [0, 1, CHUNK, 2 * CHUNK + 1] {
            let one = in_chunks(n, 1, |range| range);
            assert_eq!(one.iter().map(Range::len).sum::<usize>(), n);
            assert!(one.windows(2).all(|w| w[0].end == w[1].start && w[0].len() == CHUNK));
            for threads in [0, 2, 7] {
                assert_eq!(in_chunks(n, threads, |range| range), one);
            }
        }
    }
}
