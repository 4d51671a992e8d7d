//! Sums on the CPU in the order of a kernel's blocks (`galamost/reduce.cuh`), so both devices get the same result.

/// Threads per block.
pub const BLOCK: usize = 256;
/// Entries that a block adds. Each thread takes [`PER_THREAD`] entries that are [`BLOCK`] apart.
pub const ITEMS: usize = BLOCK * PER_THREAD;
/// Entries per thread.
pub const PER_THREAD: usize = 4;

/// Adds the values of a block's threads as the kernel function `block_sum` does: a tree in each warp of 32, then the warps in
/// order.
pub fn block_sum(threads: &[f64; BLOCK]) -> f64 {
    let mut sum = 0.0;
    for warp in threads.as_chunks::<32>().0 {
        let mut lanes = *warp;
        let mut d = 16;
        while d > 0 {
            for l in 0..d {
                lanes[l] += lanes[l + d];
            }
            d /= 2;
        }
        sum += lanes[0];
    }
    sum
}

/// Adds `n` partial sums as the kernel function `sum_partials` does: thread t takes the rows t, t + 256, ….
pub fn sum_rows(n: usize, row: impl Fn(usize) -> f64) -> f64 {
    let mut threads = [0.0; BLOCK];
    for r in 0..n {
        threads[r % BLOCK] += row(r);
    }
    block_sum(&threads)
}

/// Sums `values` numbers over the [`ITEMS`] entries of a block. `add(entry, sums)` adds an entry to the sums of its thread.
pub fn block(values: usize, add: impl Fn(usize, &mut [f64])) -> Vec<f64> {
    let mut threads = vec![[0.0; BLOCK]; values];
    let mut mine = vec![0.0; values];
    for t in 0..BLOCK {
        mine.fill(0.0);
        for r in 0..PER_THREAD {
            add(r * BLOCK + t, &mut mine);
        }
        for (column, x) in threads.iter_mut().zip(&mine) {
            column[t] = *x;
        }
    }
    threads.iter().map(block_sum).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_added_once() {
        let sums = block(2, |k, s| {
            s[0] += k as f64;
            s[1] += 1.0;
        });
        assert_eq!(sums, [(ITEMS * (ITEMS - 1) / 2) as f64, ITEMS as f64]);
        assert_eq!(sum_rows(1000, |r| r as f64), 499_500.0);
        assert_eq!(sum_rows(0, |_| 1.0), 0.0);
    }
}
