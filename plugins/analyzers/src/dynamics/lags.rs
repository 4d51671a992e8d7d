//! Lags in octaves: which earlier samples are kept, and what a new one is compared with.

use galamost_measure::pack::{Unpack, put};
use galamost_plugin_api::error::Position;
use galamost_plugin_api::prelude::*;

/// Lags.
#[derive(Clone, Debug, PartialEq, Params)]
pub struct Lags {
    /// Lags from 1 to `points` samples, every sample an origin; an even number, without it 8.
    #[param(at_least = 2, at_most = 64)]
    points: Option<Spanned<u32>>,
    /// Each further level doubles the longest lag, the distance of lags and that of origins: the longest lag is
    /// points × 2^(levels − 1) samples. Without it 8.
    #[param(at_least = 1, at_most = 40)]
    levels: Option<Spanned<u32>>,
    /// These lags and no others, in steps: ascending multiples of `every`. Lag 0 is always among them.
    lags: Option<Spanned<Vec<u64>>>,
    /// With `lags`: steps from one origin to the next, a multiple of `every`. A system keeps the longest lag / `origins` samples. Without it
    /// `every`, or as much more as it takes to keep 64.
    origins: Option<Spanned<u64>>,
}

/// An earlier sample that is kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Origin {
    /// Its number, from 0.
    pub sample: u64,
    /// Its time.
    pub time: f64,
    /// Where it is kept.
    pub slot: u32,
}

/// Two samples to compare.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
    /// Place of the earlier sample.
    pub slot: u32,
    /// Place of the lag among all.
    pub lag: u32,
    /// Time between them.
    pub time: f64,
}

/// Which samples are kept.
///
/// A sample s that is a multiple of 2^l, l < levels, is an origin for lags up to points × 2^l; beyond points × 2^(l−1)
/// only for those that are multiples of 2^l. So each level has points/2 lags of its own, all
/// origins of a lag are equally far from each other, and a system keeps points + 1 + (levels − 1) points/2 samples.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Schedule {
    points: u64,
    levels: u32,
    listed: Option<Listed>,
    samples: u64,
    kept: Vec<Origin>,
}

/// Lags that were asked for one by one, ascending and in samples, and how far origins are apart.
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

/// Samples that are kept for lags that were asked for, unless `origins` says otherwise.
const KEPT: u64 = 64;

impl Lags {
    /// Checks them, for samples every so many steps.
    ///
    /// # Errors
    /// `points` is odd, or lags do not ascend, are no multiples of `every`, or come with octaves.
    pub fn schedule(&self, every: u64) -> Result<Schedule> {
        let fail = |at: Position, message: String| Err(InputError::at(at, message).into());
        if let Some(lags) = &self.lags {
            let octaves =
                self.points.as_ref().map(|p| ("points", p.at)).or(self.levels.as_ref().map(|l| ("levels", l.at)));
            if let Some((name, at)) = octaves {
                return fail(at, format!("there are either `lags` or {name} in octaves"));
            }
            return self.listed(lags, every);
        }
        if let Some(o) = &self.origins {
            return fail(o.at, "origins are those of `lags`, which are not given".into());
        }
        let points = self.points.as_ref().map_or(8, |p| p.value);
        if let Some(p) = self.points.as_ref().filter(|_| !points.is_multiple_of(2)) {
            return fail(p.at, format!("points must be even, found {points}"));
        }
        Ok(Schedule::new(points, self.levels.as_ref().map_or(8, |l| l.value)))
    }

    fn listed(&self, lags: &Spanned<Vec<u64>>, every: u64) -> Result<Schedule> {
        let fail = |at: Position, message: String| Err(InputError::at(at, message).into());
        if lags.value.iter().all(|l| *l == 0) {
            return fail(lags.at, "there is no lag but 0".into());
        }
        if let Some(w) = lags.value.windows(2).find(|w| w[0] >= w[1]) {
            return fail(lags.at, format!("lags must ascend: {} comes after {}", w[1], w[0]));
        }
        if let Some(l) = lags.value.iter().find(|l| !l.is_multiple_of(every)) {
            return fail(lags.at, format!("the lag {l} is no multiple of `every`, {every}"));
        }
        if let Some(o) = self.origins.as_ref().filter(|o| o.value == 0 || !o.value.is_multiple_of(every)) {
            return fail(o.at, format!("origins must be a multiple of `every`, {every}, found {}", o.value));
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
    /// For an even number of points.
    pub fn new(points: u32, levels: u32) -> Self {
        Self { points: u64::from(points), levels, ..Self::default() }
    }

    /// The most samples that are kept at once, the newest included.
    pub fn slots(&self) -> usize {
        if let Some(l) = &self.listed {
            // the newest sample need not be an origin
            return (l.longest() / l.origins + if l.origins > 1 { 2 } else { 1 }) as usize;
        }
        (self.points + 1 + (u64::from(self.levels) - 1) * self.points / 2) as usize
    }

    /// Number of lags, with 0.
    pub fn lags(&self) -> usize {
        self.listed.as_ref().map_or_else(|| self.slots(), |l| l.lags.len())
    }

    /// A lag in samples.
    pub fn lag(&self, place: usize) -> u64 {
        if let Some(l) = &self.listed {
            return l.lags[place];
        }
        let (place, half) = (place as u64, self.points / 2);
        if place <= self.points {
            return place;
        }
        let beyond = place - self.points - 1;
        (half + 1 + beyond % half) << (1 + beyond / half)
    }

    /// The place of the lag between a kept sample and a later one, if it is one of theirs.
    fn place(&self, origin: u64, now: u64) -> Option<u32> {
        let age = now - origin;
        if let Some(l) = &self.listed {
            let place = l.lags.binary_search(&age).ok()?;
            return (age == 0 || origin.is_multiple_of(l.origins)).then_some(place as u32);
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

    /// How long a sample is kept.
    fn life(&self, sample: u64) -> u64 {
        if let Some(l) = &self.listed {
            return if sample.is_multiple_of(l.origins) { l.longest() } else { 0 };
        }
        self.points << sample.trailing_zeros().min(self.levels - 1)
    }

    /// A new sample: where it is to be kept, and what it is compared with, itself first.
    pub fn next(&mut self, time: f64) -> (u32, Vec<Pair>) {
        let now = self.samples;
        self.samples += 1;
        let mut kept = std::mem::take(&mut self.kept);
        kept.retain(|o| now - o.sample <= self.life(o.sample));
        let free = (0..).find(|s| kept.iter().all(|o| o.slot != *s)).unwrap_or(0);
        kept.push(Origin { sample: now, time, slot: free });
        let pair = |o: &Origin| self.place(o.sample, now).map(|lag| Pair { slot: o.slot, lag, time: time - o.time });
        let pairs = kept.iter().rev().filter_map(pair).collect();
        self.kept = kept;
        (free, pairs)
    }

    /// The samples that are kept.
    pub fn kept(&self) -> &[Origin] {
        &self.kept
    }

    /// For a checkpoint.
    pub fn save(&self, to: &mut Vec<u8>) {
        put(to, &[self.samples]);
        put(to, &self.kept.iter().map(|o| o.sample).collect::<Vec<_>>());
        put(to, &self.kept.iter().map(|o| o.time).collect::<Vec<_>>());
        put(to, &self.kept.iter().map(|o| o.slot).collect::<Vec<_>>());
    }

    /// From a checkpoint.
    ///
    /// # Errors
    /// It is of another analyzer.
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
            Err(Error::Run("the checkpoint is of another analyzer".into()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_lag_has_its_origins_and_there_is_room() {
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
    fn lags_that_were_asked_for_have_their_origins_and_there_is_room() {
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
    fn a_checkpoint_brings_it_back() {
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
