//! How often a table is written.

use std::time::{Duration, Instant};

/// The shortest time between two versions of a file.
const BETWEEN: Duration = Duration::from_secs(1);

/// When a table is due: after the first sample, then at most once a second, and at the end of the run.
///
/// Copying sums off a device makes the run wait and writing a file takes longer than most samples, so a run with many
/// samples a second shows what it has once a second. What is in the file at the end, and in every checkpoint, does not depend on it.
#[derive(Debug, Default)]
pub struct Pace {
    last: Option<Instant>,
    /// There is something that no file has yet.
    fresh: bool,
}

impl Pace {
    /// A sample was taken, or came out of a checkpoint.
    pub fn sampled(&mut self) {
        self.fresh = true;
    }

    /// Whether the file is to be written now; at the end of a run, whenever it lacks a sample.
    pub fn due(&mut self, at_the_end: bool) -> bool {
        let due = self.fresh && (at_the_end || self.last.is_none_or(|l| l.elapsed() >= BETWEEN));
        if due {
            self.last = Some(Instant::now());
            self.fresh = false;
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
