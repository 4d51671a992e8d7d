//! Lags in octaves: which earlier samples are stored, and which of them a new one is compared with.

use galamost_measure::pack::{Unpack, put};
use galamost_plugin_api::error::Position;
use galamost_plugin_api::prelude::*;

/// Parameters that select the lags.
#[derive(Clone, Debug, PartialEq, Params)]
pub struct Lags {
    /// Number of lags of the first level, 1 to `points` samples, for which every sample is an origin; must be even;
    /// default: 8.
    #[param(at_least = 2, at_most = 64)]
    points: Option<Spanned<u32>>,
    /// Number of levels; default: 8. Each further level doubles the longest lag, the lag spacing, and the origin
    /// spacing. The longest lag is points × 2^(levels − 1) samples.
    #[param(at_least = 1, at_most = 40)]
    levels: Option<Spanned<u32>>,
    /// Explicit lags in steps, instead of octaves: ascending multiples of `every`. Lag 0 is always included.
    lags: Option<Spanned<Vec<u64>>>,
    /// Steps between origins for `lags`, a multiple of `every`. The longest lag / `origins` samples are stored.
    /// Default: `every`, or the smallest spacing that stores at most 64 samples.
    origins: Option<Spanned<u64>>,
}

/// A stored sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Origin {
    /// Sample number, from 0.
    pub sample: u64,
    /// Time of the sample.
    pub time: f64,
    /// Storage slot.
    pub slot: u32,
}

/// Two samples to compare.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
    /// Slot of the earlier sample.
    pub slot: u32,
    /// Index of the lag.
    pub lag: u32,
    /// Time difference.
    pub time: f64,
}

/// Maximum number of pairs of samples per launch.
pub const MAX_PAIRS: usize = 160;

impl Pair {
    /// Returns the slots and the lags of at most [`MAX_PAIRS`] pairs, as kernels take them.
    pub fn arrays(pairs: &[Self]) -> [[u32; MAX_PAIRS]; 2] {
        let of = |f: fn(&Self) -> u32| std::array::from_fn(|k| pairs.get(k).map_or(0, f));
        [of(|p| p.slot), of(|p| p.lag)]
    }
}

/// Schedule of stored samples.
///
/// A sample s that is a multiple of 2^l, l < levels, is an origin for lags up to points × 2^l; beyond points × 2^(l−1),
/// only for lags that are multiples of 2^l. Each level above the first thus adds points/2 lags, and origins of a lag
/// are equidistant. The schedule stores points + 1 + (levels − 1) points/2 samples.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Schedule {
    points: u64,
    levels: u32,
    listed: Option<Listed>,
    samples: u64,
    kept: Vec<Origin>,
}

/// Explicit lags in samples, ascending, and the spacing of origins.
#[derive(Clone, Debug, Default, PartialEq)]
struct Listed {
    lags: Vec<u64>,
    origins: u64,
}

impl Listed {
    fn longest(&self) -> u64 {
        self.lags.last().copied().unwrap_or(0)
    }
}

/// Number of samples stored for explicit lags, unless `origins` sets it.
const KEPT: u64 = 64;

impl Lags {
    /// Builds the schedule for samples every `every` steps.
    ///
    /// # Errors
    /// Returns an error if `points` is odd, if lags do not ascend or are not multiples of `every`, or if both octaves
    /// and explicit lags are given.
    pub fn schedule(&self, every: u64) -> Result<Schedule> {
        let fail = |at: Position, message: String| Err(InputError::at(at, message).into());
        if let Some(lags) = &self.lags {
            let octaves =
                self.points.as_ref().map(|p| ("points", p.at)).or(self.levels.as_ref().map(|l| ("levels", l.at)));
            if let Some((name, at)) = octaves {
                return fail(at, format!("`lags` and `{name}` exclude each other; remove one"));
            }
            return self.listed(lags, every);
        }
        if let Some(o) = &self.origins {
            return fail(o.at, "`origins` applies only to explicit `lags`; add `lags` or remove it".into());
        }
        let points = self.points.as_ref().map_or(8, |p| p.value);
        if let Some(p) = self.points.as_ref().filter(|_| !points.is_multiple_of(2)) {
            return fail(p.at, format!("`points` must be even, found {points}"));
        }
        Ok(Schedule::new(points, self.levels.as_ref().map_or(8, |l| l.value)))
    }

    fn listed(&self, lags: &Spanned<Vec<u64>>, every: u64) -> Result<Schedule> {
        let fail = |at: Position, message: String| Err(InputError::at(at, message).into());
        if lags.value.iter().all(|l| *l == 0) {
            return fail(lags.at, "`lags` must contain a nonzero lag".into());
        }
        if let Some(w) = lags.value.windows(2).find(|w| w[0] >= w[1]) {
            return fail(lags.at, format!("`lags` must ascend: {} follows {}", w[1], w[0]));
        }
        if let Some(l) = lags.value.iter().find(|l| !l.is_multiple_of(every)) {
            return fail(lags.at, format!("the lag {l} is not a multiple of `every`, {every}"));
        }
        if let Some(o) = self.origins.as_ref().filter(|o| o.value == 0 || !o.value.is_multiple_of(every)) {
            return fail(o.at, format!("`origins` must be a multiple of `every`, {every}, found {}", o.value));
        }
        let mut all: Vec<u64> = lags.value.iter().map(|l| l / every).collect();
        if all[0] != 0 {
            all.insert(0, 0);
        }
        let longest = all.last().copied().unwrap_or(0);
        let origins = self.origins.as_ref().map_or(longest.div_ceil(KEPT), |o| o.value / every);
        Ok(Schedule { listed: Some(Listed { lags: all, origins }), ..Schedule::default() })
    }
}

impl Schedule {
    /// Builds a schedule in octaves; `points` is even.
    pub fn new(points: u32, levels: u32) -> Self {
        Self { points: u64::from(points), levels, ..Self::default() }
    }

    /// Returns the maximum number of samples stored at once, including the newest.
    pub fn slots(&self) -> usize {
        if let Some(l) = &self.listed {
            // the newest sample is not always an origin
            return (l.longest() / l.origins + if l.origins > 1 { 2 } else { 1 }) as usize;
        }
        (self.points + 1 + (u64::from(self.levels) - 1) * self.points / 2) as usize
    }

    /// Returns the number of lags, including 0.
    pub fn lags(&self) -> usize {
        self.listed.as_ref().map_or_else(|| self.slots(), |l| l.lags.len())
    }

    /// Returns a lag in samples.
    pub fn lag(&self, index: usize) -> u64 {
        if let Some(l) = &self.listed {
            return l.lags[index];
        }
        let (index, half) = (index as u64, self.points / 2);
        if index <= self.points {
            return index;
        }
        let beyond = index - self.points - 1;
        (half + 1 + beyond % half) << (1 + beyond / half)
    }

    /// Returns the index of the lag between a stored sample and a later one, if it is scheduled.
    fn index(&self, origin: u64, now: u64) -> Option<u32> {
        let age = now - origin;
        if let Some(l) = &self.listed {
            let index = l.lags.binary_search(&age).ok()?;
            return (age == 0 || origin.is_multiple_of(l.origins)).then_some(index as u32);
        }
        if age <= self.points {
            return Some(age as u32);
        }
        let level = ((age - 1) / self.points).ilog2() + 1;
        let step = 1u64 << level;
        if level >= self.levels || !age.is_multiple_of(step) || !origin.is_multiple_of(step) {
            return None;
        }
        let half = self.points / 2;
        Some((self.points + u64::from(level - 1) * half + (age / step - half)) as u32)
    }

    /// Returns how many samples long a sample is stored.
    fn life(&self, sample: u64) -> u64 {
        if let Some(l) = &self.listed {
            return if sample.is_multiple_of(l.origins) { l.longest() } else { 0 };
        }
        self.points << sample.trailing_zeros().min(self.levels - 1)
    }

    /// Registers a new sample. Returns its slot and the pairs to compare, starting with the sample itself.
    pub fn next(&mut self, time: f64) -> (u32, Vec<Pair>) {
        let now = self.samples;
        self.samples += 1;
        let mut kept = std::mem::take(&mut self.kept);
        kept.retain(|o| now - o.sample <= self.life(o.sample));
        let free = (0..).find(|s| kept.iter().all(|o| o.slot != *s)).unwrap_or(0);
        kept.push(Origin { sample: now, time, slot: free });
        let pair = |o: &Origin| self.index(o.sample, now).map(|lag| Pair { slot: o.slot, lag, time: time - o.time });
        let pairs = kept.iter().rev().filter_map(pair).collect();
        self.kept = kept;
        (free, pairs)
    }

    /// Returns the stored samples.
    pub fn kept(&self) -> &[Origin] {
        &self.kept
    }

    /// Serializes the state for a checkpoint.
    pub fn save(&self, to: &mut Vec<u8>) {
        put(to, &[self.samples]);
        put(to, &self.kept.iter().map(|o| o.sample).collect::<Vec<_>>());
        put(to, &self.kept.iter().map(|o| o.time).collect::<Vec<_>>());
        put(to, &self.kept.iter().map(|o| o.slot).collect::<Vec<_>>());
    }

    /// Restores the state from a checkpoint.
    ///
    /// # Errors
    /// Returns an error if the checkpoint belongs to another analyzer.
    pub fn load(&mut self, from: &mut Unpack<'_>) -> Result<()> {
        self.samples = from.row_of::<u64>(1)?[0];
        let samples = from.row::<u64>()?;
        let (times, slots) = (from.row_of::<f64>(samples.len())?, from.row_of::<u32>(samples.len())?);
        self.kept = samples
            .into_iter()
            .zip(times)
            .zip(slots)
            .map(|((sample, time), slot)| Origin { sample, time, slot })
            .collect();
        let sound = |o: &Origin| o.sample < self.samples && (o.slot as usize) < self.slots();
        if self.kept.iter().all(sound) {
            Ok(())
        } else {
            Err(Error::Run("the checkpoint belongs to another analyzer".into()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_lag_has_its_origins_and_fits_the_slots() {
        for (points, levels) in [(2, 1), (2, 5), (8, 4), (6, 3)] {
            let mut s = Schedule::new(points, levels);
            let mut origins = vec![0u64; s.lags()];
            let n = 300u64;
            for now in 0..n {
                let (slot, pairs) = s.next(now as f64);
                assert!((slot as usize) < s.slots(), "{points} {levels}: {slot} of {}", s.slots());
                assert_eq!((pairs[0].slot, pairs[0].lag), (slot, 0));
                let mut lags: Vec<u32> = pairs.iter().map(|p| p.lag).collect();
                lags.sort_unstable();
                lags.dedup();
                assert_eq!(lags.len(), pairs.len(), "no lag twice");
                for p in pairs {
                    assert_eq!(p.time, s.lag(p.lag as usize) as f64);
                    let from = s.kept().iter().find(|o| o.slot == p.slot).expect("kept");
                    assert_eq!(from.sample + s.lag(p.lag as usize), now);
                    origins[p.lag as usize] += 1;
                }
            }
            for (k, count) in origins.iter().enumerate() {
                let lag = s.lag(k);
                // every 2^l-th sample is an origin
                let level = if lag <= u64::from(points) { 0 } else { ((lag - 1) / u64::from(points)).ilog2() + 1 };
                let expected = (0..n).filter(|o| o.is_multiple_of(1 << level) && o + lag < n).count() as u64;
                assert_eq!(*count, expected, "{points} {levels}: lag {lag}");
            }
            assert_eq!(s.lag(s.lags() - 1), u64::from(points) << (levels - 1));
        }
    }

    #[test]
    fn explicit_lags_have_their_origins_and_fit_the_slots() {
        for (lags, origins) in [(vec![0, 1, 10, 23], 1), (vec![0, 7], 3), (vec![0, 2, 6, 40], 4), (vec![0, 5], 9)] {
            let mut s = Schedule { listed: Some(Listed { lags: lags.clone(), origins }), ..Schedule::default() };
            let (n, mut counts) = (200u64, vec![0u64; lags.len()]);
            for now in 0..n {
                let (slot, pairs) = s.next(now as f64);
                assert!((slot as usize) < s.slots(), "{lags:?} {origins}: {slot} of {}", s.slots());
                assert_eq!((pairs[0].slot, pairs[0].lag), (slot, 0));
                for p in pairs {
                    assert_eq!(p.time, s.lag(p.lag as usize) as f64);
                    counts[p.lag as usize] += 1;
                }
            }
            for (lag, count) in lags.iter().zip(counts) {
                let expected =
                    if *lag == 0 { n } else { (0..n).filter(|o| o % origins == 0 && o + lag < n).count() as u64 };
                assert_eq!(count, expected, "{lags:?} {origins}: lag {lag}");
            }
        }
    }

    #[test]
    fn a_checkpoint_restores_the_schedule() {
        let mut s = Schedule::new(4, 4);
        let mut other = s.clone();
        (0..37).for_each(|k| drop(s.next(f64::from(k))));
        let mut bytes = vec![];
        s.save(&mut bytes);
        let mut unpack = Unpack(&bytes);
        other.load(&mut unpack).expect("loaded");
        assert!(unpack.end().is_ok());
        assert_eq!(other, s);
        assert_eq!(other.next(37.0), s.next(37.0));
    }
}
