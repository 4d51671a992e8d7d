//! Sizes of batches.

use crate::sums::GROUP;

/// How chains or tours are divided into batches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Batches {
    /// Number in the first batch, a multiple of [`GROUP`]. Later ones have twice as many each, up to `most`.
    pub first: u64,
    /// Largest number in a batch, a multiple of [`GROUP`].
    pub most: u64,
    /// Number in all batches.
    pub total: u64,
}

impl Batches {
    /// Batches of the same size.
    pub fn equal(most: u64, total: u64) -> Self {
        Self { first: most, most, total }
    }

    /// Small batches first. Tours of PERM are controlled by the means of earlier batches, so those of the first one are
    /// not controlled at all: a large one would spoil the averages of the whole run.
    pub fn growing(most: u64, total: u64) -> Self {
        Self { first: GROUP, most, total }
    }

    /// Returns how many chains or tours precede a batch.
    pub fn start(&self, batch: u64) -> u64 {
        // the sizes of the first batches, until they reach the largest one
        let growing = self.most.div_ceil(self.first).next_power_of_two().ilog2().into();
        let sum = |n: u64| self.first * ((1 << n) - 1);
        if batch <= growing {
            sum(batch)
        } else {
            sum(growing).saturating_add((batch - growing).saturating_mul(self.most))
        }
    }

    /// Returns the size of a batch.
    pub fn size(&self, batch: u64) -> u64 {
        self.start(batch + 1).min(self.total).saturating_sub(self.start(batch))
    }

    /// Returns the number of batches.
    pub fn count(&self) -> u64 {
        let growing: u64 = self.most.div_ceil(self.first).next_power_of_two().ilog2().into();
        let few = (0..growing).find(|batch| self.start(batch + 1) >= self.total);
        few.map_or_else(|| growing + (self.total - self.start(growing)).div_ceil(self.most), |batch| batch + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_cover_all_chains_once() {
        for (first, most, total) in
            [(32, 32, 100), (128, 4096, 16_384), (128, 1000 * 32, 128), (128, 160, 1), (96, 512, 3072)]
        {
            let b = Batches { first, most, total };
            let sizes: Vec<u64> = (0..b.count()).map(|k| b.size(k)).collect();
            assert_eq!(sizes.iter().sum::<u64>(), total, "{b:?}: {sizes:?}");
            assert!(sizes.iter().all(|n| (1..=most).contains(n)), "{b:?}: {sizes:?}");
            let full = &sizes[..sizes.len() - 1];
            assert!(full.iter().all(|n| n.is_multiple_of(GROUP)), "{b:?}: {sizes:?}");
            assert!(full.windows(2).all(|w| w[1] == most.min(2 * w[0])), "{b:?}: {sizes:?}");
        }
    }

    #[test]
    fn the_first_batches_are_small() {
        let b = Batches::growing(1024, 3000);
        let sizes: Vec<u64> = (0..b.count()).map(|k| b.size(k)).collect();
        assert_eq!(sizes, [32, 64, 128, 256, 512, 1024, 984]);
    }
}
