//! When the particles of a run are divided among its ranks again, and how.
//!
//! A rank that waits less than the others has more work. Bits do not depend on how particles are divided, so the cuts can follow what
//! was measured.

use std::time::Duration;
use tracing::info;

/// Seconds of steps before the first look at the times that ranks have waited, and the longest time between two looks.
const FIRST_LOOK: f64 = 1.0;
const LONGEST: f64 = 300.0;
/// Load of the busiest rank over the mean load, from which a new division is worth it.
const SMALLEST: f64 = 1.02;
/// A new division must save this many times what it takes.
const GAIN: f64 = 2.0;

/// Returns where the particles of each rank begin, and their number: as many for each rank as possible, in multiples of `unit`.
pub fn equal_parts(n: usize, ranks: usize, unit: usize) -> Vec<usize> {
    let units = n.div_ceil(unit);
    (0..ranks).map(|k| units * k / ranks * unit).chain([n]).collect()
}

/// What is known of the loads of the ranks of a run.
pub struct Balance {
    /// Seconds that a new division takes.
    cost: f64,
    /// Seconds of steps from one look to the next.
    interval: f64,
    /// Seconds and steps since the last look.
    seconds: f64,
    steps: u64,
    /// Seconds that each rank had waited at the last look.
    waited: Vec<f64>,
    /// The work of each block of particles in any unit, as far as known.
    work: Vec<f64>,
    looks: u64,
    /// `GALAMOST_BALANCE`: steps from one look to the next, at which loads are made up; 0: particles are not divided again.
    forced: Option<u64>,
}

impl Balance {
    /// Returns that of a run in which a new division takes as long as the beginning.
    pub fn new(cost: Duration) -> Self {
        let forced = std::env::var("GALAMOST_BALANCE").ok().and_then(|steps| steps.parse().ok());
        Self {
            cost: cost.as_secs_f64(),
            interval: FIRST_LOOK,
            seconds: 0.0,
            steps: 0,
            waited: vec![],
            work: vec![],
            looks: 0,
            forced,
        }
    }

    /// Adds steps and their time.
    pub fn advanced(&mut self, steps: u64, time: Duration) {
        self.steps += steps;
        self.seconds += time.as_secs_f64();
    }

    /// Returns whether it is time to look at what ranks have waited.
    pub fn is_due(&self) -> bool {
        match self.forced {
            Some(steps) => steps > 0 && self.steps >= steps,
            None => self.seconds > self.interval,
        }
    }

    /// Returns where the particles of each rank begin in a new division, and the load of the busiest rank over the mean load so far;
    /// nothing if it does not pay off within `left` steps. `begin`: the present division, in multiples of `unit` particles; `waited`:
    /// seconds that each rank has waited since it was made.
    pub fn divide(&mut self, waited: Vec<f64>, begin: &[usize], unit: usize, left: u64) -> Option<(Vec<usize>, f64)> {
        let loads = self.loads(&waited);
        let (seconds, steps) = (std::mem::take(&mut self.seconds), std::mem::take(&mut self.steps));
        self.waited = waited;
        self.interval = (2.0 * self.interval).min(LONGEST);
        self.looks += 1;
        let mean = loads.iter().sum::<f64>() / loads.len() as f64;
        let largest = loads.iter().copied().fold(0.0, f64::max);
        let saves = (1.0 - mean / largest) * seconds / steps as f64 * left as f64;
        let pays = largest > SMALLEST * mean && saves > GAIN * self.cost;
        if !pays && self.forced.is_none() {
            return None;
        }
        let n = begin[loads.len()];
        let units: Vec<usize> = begin.iter().map(|b| b.div_ceil(unit)).collect();
        self.work.resize(units[loads.len()], 1.0);
        learn(&mut self.work, &units, &loads);
        let divided: Vec<usize> = divided(&self.work, loads.len()).into_iter().map(|u| (u * unit).min(n)).collect();
        (divided != begin).then_some((divided, largest / mean))
    }

    /// Keeps the present division until the end.
    pub fn stop(&mut self) {
        self.forced = Some(0);
    }

    /// Logs a new division, and notes how long it took. Since then ranks have waited for 0 seconds.
    pub fn begins_again(&mut self, step: u64, begin: &[usize], imbalance: f64, cost: Duration) {
        let numbers: Vec<usize> = begin.windows(2).map(|w| w[1] - w[0]).collect();
        info!(
            "step {step}: the busiest rank has worked {imbalance:.2} times as long as the mean; the ranks now have {numbers:?} particles ({:.2} s)",
            cost.as_secs_f64()
        );
        self.cost = cost.as_secs_f64();
        self.waited.clear();
    }

    /// Returns the seconds in which each rank has worked since the last look.
    fn loads(&self, waited: &[f64]) -> Vec<f64> {
        let load = |(rank, waited): (usize, &f64)| match self.forced {
            Some(_) => 1.0 + ((self.looks + rank as u64) % 2) as f64,
            None => {
                let before = self.waited.get(rank).copied().unwrap_or(0.0);
                (self.seconds - (waited - before)).max(1e-3 * self.seconds)
            }
        };
        waited.iter().enumerate().map(load).collect()
    }
}

/// Scales the work of the blocks of each rank to what was measured. `begin`: the first block of each rank, and the number of blocks.
fn learn(work: &mut [f64], begin: &[usize], loads: &[f64]) {
    let total: f64 = loads.iter().sum();
    for (range, load) in begin.windows(2).zip(loads) {
        let blocks = &mut work[range[0]..range[1]];
        let factor = load / total / blocks.iter().sum::<f64>();
        blocks.iter_mut().for_each(|w| *w *= factor);
    }
}

/// Returns the first block of each rank, and the number of blocks, so that all ranks have about the same work.
fn divided(work: &[f64], ranks: usize) -> Vec<usize> {
    let total: f64 = work.iter().sum();
    let mut begin = vec![0];
    let mut before = 0.0;
    for (block, w) in work.iter().enumerate() {
        let next = begin.len();
        // the block belongs to the rank in whose part its middle is; every rank has one
        let reached = before + 0.5 * w >= total * next as f64 / ranks as f64 && block > begin[next - 1];
        if next < ranks && (reached || work.len() - block == ranks - next) {
            begin.push(block);
        }
        before += w;
    }
    begin.push(work.len());
    begin
}

#[cfg(test)]
mod tests {
    use super::*;

    fn division(begin: &[usize], loads: &[f64]) -> Vec<usize> {
        let mut work = vec![1.0; begin[loads.len()]];
        learn(&mut work, begin, loads);
        divided(&work, loads.len())
    }

    #[test]
    fn cuts_move_towards_the_rank_with_most_load() {
        assert_eq!(division(&[0, 500, 1000], &[1.0, 1.0]), [0, 500, 1000]);
        // 3 for each; the first rank has 4 in 500
        assert_eq!(division(&[0, 500, 1000], &[4.0, 2.0]), [0, 375, 1000]);
        assert_eq!(division(&[0, 500, 1000], &[2.0, 4.0]), [0, 625, 1000]);
        // 3 for each: after 1 of the second rank's 7, after 4 of them, and at the end of these 7
        assert_eq!(division(&[0, 100, 800, 900, 1000], &[2.0, 7.0, 2.0, 1.0]), [0, 200, 500, 800, 1000]);
    }

    #[test]
    fn every_rank_keeps_a_block() {
        assert_eq!(division(&[0, 1, 2, 3, 4], &[1e6, 1.0, 1.0, 1.0]), [0, 1, 2, 3, 4]);
        // the two blocks with nearly all work are on two ranks
        assert_eq!(division(&[0, 1, 2, 3, 5], &[1.0, 1.0, 1.0, 1e6]), [0, 2, 3, 4, 5]);
        assert_eq!(division(&[0, 10, 11, 12], &[1.0, 1.0, 1e6]), [0, 10, 11, 12]);
    }

    /// Work of blocks: five times as much in the second half of the first tenth.
    fn work(begin: usize, end: usize) -> f64 {
        let dense = end.clamp(200, 400) - begin.clamp(200, 400);
        (end - begin + 4 * dense) as f64
    }

    #[test]
    fn loads_that_depend_on_the_place_become_equal() {
        let mut begin: Vec<usize> = (0..=8).map(|k| 500 * k).collect();
        let (mut known, mut imbalance) = (vec![1.0; 4000], vec![]);
        for _ in 0..8 {
            let loads: Vec<f64> = begin.windows(2).map(|w| work(w[0], w[1])).collect();
            imbalance.push(8.0 * loads.iter().copied().fold(0.0, f64::max) / loads.iter().sum::<f64>());
            learn(&mut known, &begin, &loads);
            begin = divided(&known, 8);
        }
        // 500 + 4 · 200 blocks of 4000 + 4 · 200 in eight parts
        assert!((imbalance[0] - 8.0 * 1300.0 / 4800.0).abs() < 1e-12, "{imbalance:?}");
        // where work begins to differ is found by halves and slower; each division is better than the one before
        assert!(
            imbalance.is_sorted_by(|a, b| a > b) && imbalance[7] < 1.0 + 0.05 * (imbalance[0] - 1.0),
            "{imbalance:?}"
        );
    }

    #[test]
    fn a_new_division_must_pay_off() {
        let begin = [0, 51_200, 102_400];
        let look = |left| {
            let mut b = Balance { forced: None, ..Balance::new(Duration::from_secs(3)) };
            b.advanced(1000, Duration::from_secs(10));
            assert!(b.is_due());
            // loads of 10 and 6 seconds: 2 of 10 seconds are saved, and 2 · 3 are needed
            let found = b.divide(vec![0.0, 4.0], &begin, 256, left);
            assert!(!b.is_due());
            found
        };
        assert!(look(2900).is_none());
        let (divided, imbalance) = look(3100).expect("a division");
        assert_eq!((divided[1], imbalance), (40_960, 1.25));
    }
}
