//! Multiple-tau correlator: time correlation over many decades with little memory.
//!
//! Level 0 stores the last p samples. Level l stores the last p block averages of 2^l samples and computes lags from
//! p/2 to p − 1 in units of its spacing; lower levels provide shorter lags. Block averages smooth changes faster than
//! 2^l samples, at lags of at least p/2 blocks (J. Ramírez, S. K. Sukumaran, B. Vorselaars & A. E. Likhtman, J. Chem.
//! Phys. 133, 154103 (2010)).

use galamost_measure::{bytes, numbers};
use galamost_plugin_api::prelude::*;

/// One sample: the time, then W − 1 values.
type Entry<const W: usize> = [f64; W];

/// Sums for one lag of one level.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sum {
    /// Sum of the products.
    pub product: f64,
    /// Sum of the time differences.
    pub time: f64,
    /// Number of products.
    pub count: f64,
}

#[derive(Clone, Debug, PartialEq)]
struct Level<const W: usize> {
    /// Last p entries, newest first.
    entries: Vec<Entry<W>>,
    /// Entry to be averaged with the following one for the next level.
    waiting: Option<Entry<W>>,
    sums: Vec<Sum>,
}

/// Correlator of W numbers, the first of which is the time.
#[derive(Clone, Debug, PartialEq)]
pub struct MultiTau<const W: usize> {
    points: usize,
    levels: Vec<Level<W>>,
}

impl<const W: usize> MultiTau<W> {
    /// Builds a correlator with `points` (even) lags per level that reaches a lag of at least `longest` samples.
    pub fn new(points: usize, longest: u64) -> Self {
        let level = Level { entries: vec![], waiting: None, sums: vec![Sum::default(); points] };
        let mut levels = vec![level.clone()];
        while ((points - 1) as u64) << (levels.len() - 1) < longest {
            levels.push(level.clone());
        }
        Self { points, levels }
    }

    /// Adds a sample; `product` computes the correlated quantity.
    pub fn add(&mut self, sample: Entry<W>, product: impl Fn(&Entry<W>, &Entry<W>) -> f64) {
        let mut next = Some(sample);
        for (l, level) in self.levels.iter_mut().enumerate() {
            let Some(entry) = next else { break };
            level.entries.truncate(self.points - 1);
            level.entries.insert(0, entry);
            let first = if l == 0 { 0 } else { self.points / 2 };
            for (sum, old) in level.sums.iter_mut().zip(&level.entries).skip(first) {
                sum.product += product(&entry, old);
                sum.time += entry[0] - old[0];
                sum.count += 1.0;
            }
            next = match level.waiting.take() {
                Some(before) => Some(std::array::from_fn(|k| 0.5 * (before[k] + entry[k]))),
                None => {
                    level.waiting = Some(entry);
                    None
                }
            };
        }
    }

    /// Iterates over the lags (in samples) that have products.
    pub fn lags(&self) -> impl Iterator<Item = (u64, Sum)> {
        self.levels.iter().enumerate().flat_map(|(l, level)| {
            level.sums.iter().enumerate().filter(|(_, s)| s.count > 0.0).map(move |(k, s)| ((k as u64) << l, *s))
        })
    }

    /// Serializes the state for a checkpoint.
    pub fn save(&self) -> Vec<u8> {
        let mut out = vec![];
        for level in &self.levels {
            out.push(level.entries.len() as f64);
            out.push(f64::from(u8::from(level.waiting.is_some())));
            level.entries.iter().chain(&level.waiting).for_each(|e| out.extend(e));
            level.sums.iter().for_each(|s| out.extend([s.product, s.time, s.count]));
        }
        bytes(&out)
    }

    /// Restores the state from a checkpoint.
    ///
    /// # Errors
    /// Returns an error if the checkpoint belongs to another correlator.
    pub fn load(&mut self, state: &[u8]) -> Result<()> {
        let mut rest = state;
        let mut take = |n: usize| -> Result<Vec<f64>> {
            let (mine, after) = numbers(rest, n)?;
            rest = after;
            Ok(mine)
        };
        let entry = |v: &[f64]| -> Entry<W> { std::array::from_fn(|k| v[k]) };
        for level in &mut self.levels {
            let head = take(2)?;
            let count = head[0] as usize;
            if count > self.points {
                return Err(Error::Run("the checkpoint belongs to another analyzer".into()));
            }
            level.entries = take(count * W)?.chunks_exact(W).map(entry).collect();
            level.waiting = if head[1] > 0.0 { Some(entry(&take(W)?)) } else { None };
            level.sums = take(3 * self.points)?
                .as_chunks::<3>()
                .0
                .iter()
                .map(|s| Sum { product: s[0], time: s[1], count: s[2] })
                .collect();
        }
        if rest.is_empty() { Ok(()) } else { Err(Error::Run("the checkpoint belongs to another analyzer".into())) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Level 0 is the plain correlation; higher levels correlate block averages.
    #[test]
    fn correlations_of_a_series() {
        let mut x = 3u64;
        let series: Vec<f64> = (0..500)
            .map(|_| {
                x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (x >> 11) as f64 / (1u64 << 53) as f64 - 0.4
            })
            .collect();
        let product = |a: &[f64; 2], b: &[f64; 2]| a[1] * b[1];
        let mut m = MultiTau::<2>::new(8, 50);
        assert_eq!(m.levels.len(), 4);
        for (k, x) in series.iter().enumerate() {
            m.add([0.5 * k as f64, *x], product);
            if k == 271 {
                let saved = m.save();
                m = MultiTau::new(8, 50);
                m.load(&saved).expect("loaded");
                assert!(MultiTau::<2>::new(8, 100).load(&saved).is_err());
            }
        }
        let plain = |data: &[f64], lag: usize| {
            let n = data.len() - lag;
            (0..n).map(|i| data[i] * data[i + lag]).sum::<f64>() / n as f64
        };
        let halves: Vec<f64> = series.chunks_exact(2).map(|c| 0.5 * (c[0] + c[1])).collect();
        let quarters: Vec<f64> = halves.chunks_exact(2).map(|c| 0.5 * (c[0] + c[1])).collect();
        let found: Vec<(u64, Sum)> = m.lags().collect();
        let lags: Vec<u64> = found.iter().map(|f| f.0).collect();
        assert_eq!(lags, [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56]);
        for (lag, sum) in found {
            let expected = match lag {
                0..8 => plain(&series, lag as usize),
                8..16 => plain(&halves, lag as usize / 2),
                16..32 => plain(&quarters, lag as usize / 4),
                _ => continue,
            };
            assert!((sum.product / sum.count - expected).abs() < 1e-13, "{lag}");
            assert!((sum.time / sum.count - 0.5 * lag as f64).abs() < 1e-12, "{lag}");
        }
    }
}
