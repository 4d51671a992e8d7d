//! Sums over chains: integers within a batch, so that the order of threads does not matter, and f64 over batches.
//!
//! Chains belong to blocks by their number, 32 consecutive chains to a block; the spread of the blocks gives all
//! errors. A weight W is added as W/R 2³⁰, where R is a power of two for each bin near the mean weight of the bin. If a
//! weight is too large, the batch is redrawn with a larger R: draws depend on the chain number only, so the chains are
//! the same.

use crate::walk::{Draws, Walk, Weight, nearest};
use galamost_plugin_api::prelude::*;

/// Numbers per bin: chains, ΣW, ΣW², ΣW R², ΣW R_g², ΣW contacts.
pub const NUMBERS: usize = 6;
/// Binary digits of W/R after the point.
pub const DIGITS: i32 = 30;
/// Largest W/R 2³⁰ that is added.
pub const LARGEST: f64 = 4_398_046_511_104.0; // 2⁴²
/// Consecutive chains of a block.
pub const GROUP: u64 = 32;

/// Layout of the sums.
#[derive(Clone, Debug, PartialEq)]
pub struct Layout {
    /// Number of monomers.
    pub n: usize,
    /// Bins for each number of monomers: 1, or one for each number of contacts.
    pub width: usize,
    pub blocks: usize,
    /// Number of histogram bins, and the inverse of their width in units.
    pub bins: usize,
    pub per_unit: f64,
    /// Unit² of the results.
    pub area: f64,
}

impl Layout {
    /// Returns the number of bins of averages.
    pub fn rows(&self) -> usize {
        self.n * self.width
    }
    /// Returns the bin of `n` monomers with this number of contacts.
    pub fn row(&self, n: usize, contacts: u32) -> usize {
        let c = if self.width == 1 { 0 } else { (contacts as usize).min(self.width - 1) };
        (n - 1) * self.width + c
    }
    /// Returns the block of a chain.
    pub fn block(&self, chain: u64) -> usize {
        ((chain / GROUP) % self.blocks as u64) as usize
    }
    /// Returns how many of the chains first … first + n − 1 belong to a block.
    pub fn chains_of(&self, block: usize, first: u64, n: u64) -> u64 {
        let round = GROUP * self.blocks as u64;
        let below = |end: u64| {
            let rest = (end % round).saturating_sub(GROUP * block as u64).min(GROUP);
            end / round * GROUP + rest
        };
        below(first + n) - below(first)
    }
}

/// Sums of one batch.
#[derive(Clone, Debug, PartialEq)]
pub struct Sums {
    /// Sums by block, bin, and number.
    pub rows: Vec<i64>,
    /// Histogram by block and bin.
    pub bins: Vec<i64>,
    /// Largest exponent of a weight that could not be added, for each bin; `i32::MIN` for none.
    pub over: Vec<i32>,
}

/// Value of `over` without overflow.
pub const NOT_OVER: i32 = i32::MIN;

impl Sums {
    pub fn new(l: &Layout, blocks: usize) -> Self {
        Self {
            rows: vec![0; blocks * l.rows() * NUMBERS],
            bins: vec![0; blocks * l.bins],
            over: vec![NOT_OVER; l.rows()],
        }
    }

    /// Adds the sums of one block.
    pub fn absorb(&mut self, l: &Layout, block: usize, of_block: &Self) {
        let add = |to: &mut [i64], from: &[i64]| to.iter_mut().zip(from).for_each(|(a, b)| *a += b);
        add(&mut self.rows[block * l.rows() * NUMBERS..], &of_block.rows);
        add(&mut self.bins[block * l.bins..], &of_block.bins);
        self.over.iter_mut().zip(&of_block.over).for_each(|(a, b)| *a = (*a).max(*b));
    }

    /// Adds a chain to the sums of one block.
    pub fn add(&mut self, l: &Layout, scales: &[i32], walk: &Walk<'_>, weight: Weight, contacts: u32) {
        let n = walk.positions.len();
        let row = l.row(n, contacts);
        let w = weight.scaled(DIGITS - scales[row]);
        if w > LARGEST {
            self.over[row] = self.over[row].max(weight.exponent());
            return;
        }
        let [end, gyration] = walk.squares();
        let per = 1.0 / n as f64;
        let to = &mut self.rows[row * NUMBERS..];
        to[0] += 1;
        to[1] += nearest(w);
        to[2] += nearest(w * w * SQUARE);
        to[3] += nearest(w * (end * (l.area * per)));
        to[4] += nearest(w * (gyration * (l.area * per)));
        to[5] += nearest(w * (f64::from(contacts) * per));
        if l.bins > 0 && n == l.n {
            self.bins[((end.sqrt() * l.per_unit) as usize).min(l.bins - 1)] += nearest(w);
        }
    }
}

/// Converts (W/R 2³⁰)² to (W/R)² 2²⁰.
pub const SQUARE: f64 = 1.0 / 1_099_511_627_776.0; // 2⁻⁴⁰

/// Sums over all batches so far.
#[derive(Clone, Debug, PartialEq)]
pub struct Totals {
    /// Sums by block, bin, and number, in powers of `scale`.
    pub rows: Vec<f64>,
    pub bins: Vec<f64>,
    /// log₂ R of each bin.
    pub scale: Vec<i32>,
    /// Chains started, by block.
    pub begun: Vec<u64>,
    /// Number of batches.
    pub batches: u64,
}

/// Scale of a bin without chains.
pub const NO_SCALE: i32 = i32::MIN;

impl Totals {
    pub fn new(l: &Layout) -> Self {
        Self {
            rows: vec![0.0; l.blocks * l.rows() * NUMBERS],
            bins: vec![0.0; l.blocks * l.bins],
            scale: vec![NO_SCALE; l.rows()],
            begun: vec![0; l.blocks],
            batches: 0,
        }
    }

    /// Adds a batch of chains.
    pub fn absorb(&mut self, l: &Layout, scales: &[i32], sums: &Sums, first: u64, n: u64) {
        let power = |e: i32| f64::from(e.clamp(-1000, 1000)).exp2();
        for block in 0..l.blocks {
            self.begun[block] += l.chains_of(block, first, n);
            for (row, scale) in scales.iter().enumerate() {
                let at = (block * l.rows() + row) * NUMBERS;
                let from = &sums.rows[at..at + NUMBERS];
                if from[0] == 0 {
                    continue;
                }
                if self.scale[row] == NO_SCALE {
                    self.scale[row] = *scale;
                }
                let shift = scale - self.scale[row];
                let [one, two] = [power(shift - DIGITS), power(2 * shift - 20)];
                let area = l.area_of(row);
                let to = &mut self.rows[at..at + NUMBERS];
                to[0] += from[0] as f64;
                to[1] += from[1] as f64 * one;
                to[2] += from[2] as f64 * two;
                to[3] += from[3] as f64 * one * area;
                to[4] += from[4] as f64 * one * area;
                to[5] += from[5] as f64 * one * area;
            }
        }
        let last = l.rows() - 1;
        if l.bins > 0 && self.scale[last] != NO_SCALE {
            let one = power(scales[last] - self.scale[last] - DIGITS);
            self.bins.iter_mut().zip(&sums.bins).for_each(|(a, b)| *a += *b as f64 * one);
        }
        self.batches += 1;
    }

    /// Returns a sum over all blocks.
    pub fn sum(&self, l: &Layout, row: usize, number: usize) -> f64 {
        (0..l.blocks).map(|b| self.rows[(b * l.rows() + row) * NUMBERS + number]).sum()
    }

    /// Returns log₂ of the mean weight of a bin over all chains started; `None` without chains.
    pub fn log2(&self, l: &Layout, row: usize) -> Option<f64> {
        let w = self.sum(l, row, 1);
        let begun: u64 = self.begun.iter().sum();
        (self.scale[row] != NO_SCALE && w > 0.0).then(|| (w / begun as f64).log2() + f64::from(self.scale[row]))
    }

    pub fn save(&self) -> Vec<u8> {
        let mut out = self.batches.to_le_bytes().to_vec();
        out.extend(self.begun.iter().flat_map(|n| n.to_le_bytes()));
        out.extend(self.scale.iter().flat_map(|n| n.to_le_bytes()));
        out.extend(self.rows.iter().chain(&self.bins).flat_map(|x| x.to_le_bytes()));
        out
    }

    pub fn load(&mut self, bytes: &[u8]) -> Result<()> {
        let room = 8 + 8 * self.begun.len() + 4 * self.scale.len() + 8 * (self.rows.len() + self.bins.len());
        if bytes.len() != room {
            return Err(Error::input("the checkpoint has different numbers of monomers, contacts, or bins"));
        }
        let mut at = 0;
        let mut eight = || {
            at += 8;
            <[u8; 8]>::try_from(&bytes[at - 8..at]).unwrap_or_default()
        };
        self.batches = u64::from_le_bytes(eight());
        self.begun.iter_mut().for_each(|n| *n = u64::from_le_bytes(eight()));
        for (s, b) in self.scale.iter_mut().zip(bytes[at..].as_chunks::<4>().0) {
            *s = i32::from_le_bytes(*b);
        }
        at += 4 * self.scale.len();
        let numbers = self.rows.iter_mut().chain(&mut self.bins);
        for (x, b) in numbers.zip(bytes[at..].as_chunks::<8>().0) {
            *x = f64::from_le_bytes(*b);
        }
        Ok(())
    }
}

impl Layout {
    /// Returns the divisor of R², R_g², and contacts in the sums of a bin.
    fn area_of(&self, row: usize) -> f64 {
        (row / self.width + 1) as f64
    }
}

/// Returns the exponent of R for each bin of the next batch: from known means, otherwise from the nearest known bin.
///
/// `pilot` is log₂ Z by number of monomers, from chains grown on the host before the first batch.
pub fn scales(l: &Layout, totals: &Totals, pilot: &[f64]) -> Vec<i32> {
    let mut out = vec![0; l.rows()];
    for n in 1..=l.n {
        let row = |c: usize| (n - 1) * l.width + c;
        let known: Vec<Option<f64>> = (0..l.width).map(|c| totals.log2(l, row(c))).collect();
        for c in 0..l.width {
            let nearest = || {
                let by = (0..l.width).filter_map(|k| known[k].map(|x| (k.abs_diff(c), x)));
                by.min_by_key(|(d, _)| *d).map_or(pilot[n - 1], |(_, x)| x)
            };
            out[row(c)] = known[c].unwrap_or_else(nearest).floor() as i32;
        }
    }
    out
}

/// Minimum number of binary digits of the mean weight of a bin.
const MIN_DIGITS: u32 = 12;

/// Returns better scales if a batch overflowed or lost precision; `None` if the batch is valid.
pub fn rescaled(l: &Layout, scales: &[i32], sums: &Sums) -> Option<Vec<i32>> {
    let mut out = scales.to_vec();
    let mut changed = false;
    for (row, scale) in out.iter_mut().enumerate() {
        let number = |k: usize| (0..l.blocks).map(|b| sums.rows[(b * l.rows() + row) * NUMBERS + k]).sum::<i64>();
        if sums.over[row] != NOT_OVER {
            *scale = sums.over[row] - 4;
            changed = true;
        } else if number(1) < number(0) << MIN_DIGITS {
            // too few digits: rounding errors would be significant
            *scale -= if number(1) == 0 { 40 } else { DIGITS - (number(1) / number(0).max(1)).max(1).ilog2() as i32 };
            changed = true;
        }
    }
    changed.then_some(out)
}

/// Returns log₂ Z by number of monomers from a few chains on the host, extrapolated linearly to lengths that none
/// reached.
pub fn pilot(model: &crate::model::Model, chains: u64) -> Vec<f64> {
    let mut logs: Vec<Vec<f64>> = vec![vec![]; model.n];
    let mut walk = Walk::new(model);
    for chain in 0..chains {
        // chain numbers that the run does not use
        let draws = Draws { key: model.key.key, chain: (1 << 63) + chain };
        walk.begin();
        let mut weight = Weight::ONE;
        logs[0].push(0.0);
        while walk.positions.len() < model.n {
            let Some(g) = walk.grow(&draws, walk.positions.len() as u32) else { break };
            weight = weight.times(g.factor);
            logs[walk.positions.len() - 1].push(weight.ln() / std::f64::consts::LN_2);
        }
    }
    let mut out = vec![0.0f64; model.n];
    for n in 0..model.n {
        let most = logs[n].iter().copied().fold(f64::NEG_INFINITY, f64::max);
        out[n] = if logs[n].is_empty() {
            let half = (n - 1) / 2;
            out[n - 1] + (out[n - 1] - out[half]) / (n - 1 - half).max(1) as f64
        } else {
            most + (logs[n].iter().map(|x| (x - most).exp2()).sum::<f64>() / chains as f64).log2()
        };
    }
    out
}
