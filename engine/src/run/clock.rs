//! Timing of a run: checkpoints at intervals of minutes, and the end before the wall-time limit.

use std::time::{Duration, Instant};

/// Parses the wall-time limit of the program in the formats of batch systems: `minutes`, `minutes:seconds`, `hours:minutes:seconds`,
/// `days-hours`, `days-hours:minutes` or `days-hours:minutes:seconds`.
///
/// # Errors
/// Returns an error for any other format.
pub fn parse_walltime(text: &str) -> Result<Duration, String> {
    let wrong = || {
        format!(
            "`{text}` is not a time; use minutes, minutes:seconds, hours:minutes:seconds or days-hours:minutes:seconds"
        )
    };
    let (days, rest) = match text.split_once('-') {
        Some((d, r)) => (d.parse::<u64>().map_err(|_| wrong())?, r),
        None => (0, text),
    };
    let parts = rest.split(':').map(str::parse).collect::<Result<Vec<u64>, _>>().map_err(|_| wrong())?;
    let [h, m, s] = match (text.contains('-'), parts.as_slice()) {
        (_, [h, m, s]) => [*h, *m, *s],
        (true, [h, m]) => [*h, *m, 0],
        (true, [h]) => [*h, 0, 0],
        (false, [m, s]) => [0, *m, *s],
        (false, [m]) => [0, *m, 0],
        _ => return Err(wrong()),
    };
    let seconds = |count: u64, of: u64| count.checked_mul(of).ok_or_else(wrong);
    let all = [seconds(days, 86400)?, seconds(h, 3600)?, seconds(m, 60)?, s];
    let all = all.into_iter().try_fold(0u64, u64::checked_add).ok_or_else(wrong)?;
    if all == 0 { Err(wrong()) } else { Ok(Duration::from_secs(all)) }
}

/// The clock of a run.
#[derive(Debug)]
pub struct Clock {
    /// Start of the program, and its wall-time limit.
    walltime: Option<(Instant, Duration)>,
    minutes: Option<Duration>,
    last_checkpoint: Instant,
    /// Longest time for copying the state.
    copying: Duration,
    /// Longest time between two checks of the clock.
    between: Duration,
}

impl Clock {
    /// Returns a clock that starts now.
    pub fn new(started: Option<Instant>, walltime: Option<Duration>, minutes: Option<f64>) -> Self {
        Self {
            walltime: walltime.map(|w| (started.unwrap_or_else(Instant::now), w)),
            minutes: minutes.map(|m| Duration::from_secs_f64((60.0 * m).min(1e9))),
            last_checkpoint: Instant::now(),
            copying: Duration::ZERO,
            between: Duration::ZERO,
        }
    }

    /// Records the time since the last check of the clock.
    pub fn passed(&mut self, time: Duration) {
        self.between = self.between.max(time);
    }

    /// Records a checkpoint, for which the run waited this long.
    pub fn saved(&mut self, copying: Duration) {
        self.copying = self.copying.max(copying);
        self.last_checkpoint = Instant::now();
    }

    /// Returns whether a checkpoint is due. With a wall-time limit, one is written early to measure how long it takes.
    pub fn checkpoint_due(&self, written: bool) -> bool {
        let by_minutes = self.minutes.is_some_and(|m| self.last_checkpoint.elapsed() >= m);
        let trial = |(started, limit): (Instant, Duration)| {
            !written && self.copying.is_zero() && started.elapsed() >= (limit / 10).min(Duration::from_secs(60))
        };
        by_minutes || self.walltime.is_some_and(trial)
    }

    /// Returns whether the remaining time is needed for the last checkpoint: twice the time of the slowest one, plus two
    /// intervals between checks.
    pub fn out_of_time(&self, slowest: Option<Duration>) -> bool {
        self.walltime.is_some_and(|(started, limit)| {
            let writing = slowest.map_or(limit / 20, |s| 2 * (s + self.copying));
            started.elapsed() + writing + 2 * self.between + Duration::from_secs(1).min(limit / 10) >= limit
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batch_system_formats_are_parsed() {
        for (text, seconds) in [
            ("90", 5400),
            ("2:30", 150),
            ("23:50:00", 85800),
            ("1-12", 129_600),
            ("1-12:30", 131_400),
            ("2-00:00:05", 172_805),
        ] {
            assert_eq!(parse_walltime(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in ["", "0", "x", "1:2:3:4", "-5", "1-", "1.5", "99999999999999999999", "9999999999999999-0"] {
            assert!(parse_walltime(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_end_leaves_room_for_the_checkpoint() {
        let second = Duration::from_secs(1);
        let begun = |ago: u32| Instant::now().checked_sub(ago * second);
        let clock = |ago: u32| {
            let mut c = Clock::new(begun(ago), Some(1000 * second), None);
            c.passed(second / 5);
            c
        };
        // a trial early on
        assert!(!clock(10).checkpoint_due(false) && clock(61).checkpoint_due(false) && !clock(61).checkpoint_due(true));
        // 2 · (100 + 20) + 0.4 + 1 seconds before the end
        let mut c = clock(755);
        c.saved(20 * second);
        assert!(!c.out_of_time(Some(100 * second)));
        let mut c = clock(762);
        c.saved(20 * second);
        assert!(c.out_of_time(Some(100 * second)));
        assert!(!Clock::new(begun(5000), None, None).out_of_time(None));
        assert!(Clock::new(None, None, Some(1e-12)).checkpoint_due(true));
    }
}
