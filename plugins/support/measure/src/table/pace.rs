//! How often a table is written.

use std::time::{Duration, Instant};

/// Shortest time between two writes of a file.
const INTERVAL: Duration = Duration::from_secs(1);

/// Decides when a table is written: after the first sample, then at most once a second, and at the end of the run.
///
/// Copying sums from a device stalls the run, and writing a file takes longer than most samples. A run with many samples per
/// second therefore updates its file once a second. The final file and all checkpoints do not depend on this timing.
#[derive(Debug, Default)]
pub struct Pace {
    last: Option<Instant>,
    /// Whether a sample is not in the file yet.
    pending: bool,
}

impl Pace {
    /// Records that a sample was taken, or restored from a checkpoint.
    pub fn sampled(&mut self) {
        self.pending = true;
    }

    /// Returns whether to write the file now. At the end of a run, this is true whenever the file lacks a sample.
    pub fn due(&mut self, at_the_end: bool) -> bool {
        let due = self.pending && (at_the_end || self.last.is_none_or(|l| l.elapsed() >= INTERVAL));
        if due {
            self.last = Some(Instant::now());
            self.pending = false;
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_and_the_last_sample_are_written() {
        let mut pace = Pace::default();
        assert!(!pace.due(true), "nothing was sampled");
        pace.sampled();
        assert!(pace.due(false) && !pace.due(true));
        pace.sampled();
        assert!(pace.due(true) && !pace.due(true));
    }
}
