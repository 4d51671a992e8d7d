//! Progress as lines, for output that is no terminal.

use super::progress::Progress;
use crate::terminal::print;
use galamost_engine::diagnostic::Failure;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Longest time until a request to end is noticed.
const TICK: Duration = Duration::from_millis(50);

/// Prints a line for each update in which something has changed, until the run ends.
///
/// # Errors
/// Returns an error if standard output cannot be written, or if the run has no record that can be read.
pub fn print_until_end(progress: &mut Progress, interval: Duration, stop: &AtomicBool) -> Result<(), Failure> {
    let mut last = String::new();
    loop {
        progress.update();
        if let Some(failure) = progress.unrecorded() {
            return Err(failure);
        }
        let line = format!("{}\n", line(progress));
        if line != last {
            print(&line)?;
            last = line;
        }
        if progress.state.is_over() {
            return Ok(());
        }
        let next = Instant::now() + interval;
        while Instant::now() < next {
            if stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            std::thread::sleep(TICK.min(interval));
        }
    }
}

/// Returns the progress and the values of the last row as one line.
fn line(p: &Progress) -> String {
    let mut parts = vec![p.state.to_string()];
    parts.extend(p.position());
    parts.extend(p.speed_and_rest());
    parts.extend(p.age());
    let values: Vec<String> =
        p.curves().iter().filter_map(|c| Some(format!("{} {}", c.name, c.last_value()?))).collect();
    let mut line = parts.join(", ");
    if !values.is_empty() {
        line += &format!("; {}", values.join(", "));
    }
    line
}
