//! Progress of a stage: through a display that the caller supplies, as log lines, or as JSON events.

use crate::log;
use galamost_plugin_api::analyzer::Thermo;
use std::time::{Duration, Instant};
use tracing::info;

/// Shows the progress of one stage at a time, for example as a bar on a terminal.
pub trait ProgressDisplay: std::fmt::Debug + Send + Sync {
    /// Begins a stage of `total` steps.
    fn begin(&self, stage: &str, total: u64);
    /// Shows that `done` steps of the stage are complete; `message` has the speed and the last sample.
    fn update(&self, done: u64, message: String);
    /// Ends the stage.
    fn end(&self);
}

/// Progress of one stage.
pub struct Progress<'a> {
    display: Option<&'a dyn ProgressDisplay>,
    name: String,
    total: u64,
    /// Steps done by an earlier run of the same stage.
    before: u64,
    done: u64,
    start: Instant,
    last_line: Instant,
    /// Time between two log lines.
    interval: Duration,
}

impl<'a> Progress<'a> {
    /// Begins a stage of `total` steps, of which an earlier run has done `before`. Without a display, progress is logged.
    pub fn new(name: &str, before: u64, total: u64, display: Option<&'a dyn ProgressDisplay>) -> Self {
        if let Some(d) = display {
            d.begin(name, total);
        }
        let now = Instant::now();
        Self {
            display,
            name: name.into(),
            total,
            before,
            done: before,
            start: now,
            last_line: now,
            interval: Duration::from_secs(if log::is_json() { 2 } else { 10 }),
        }
    }

    /// Returns the time steps per second so far.
    pub fn tps(&self) -> f64 {
        (self.done - self.before) as f64 / self.start.elapsed().as_secs_f64().max(1e-9)
    }

    /// Reports that `done` steps are complete; `thermo` has the values of the last sample, if there was one.
    pub fn update(&mut self, done: u64, thermo: Option<&Thermo>) {
        self.done = done;
        let tps = self.tps();
        if let Some(display) = self.display {
            display.update(done, format!("{tps:.0} TPS{}", sample(thermo)));
        } else if self.last_line.elapsed() > self.interval {
            self.last_line = Instant::now();
            self.write_line(tps, thermo);
        }
    }

    fn write_line(&self, tps: f64, thermo: Option<&Thermo>) {
        let left = (self.total - self.done) as f64 / tps.max(1e-9);
        if log::is_json() {
            let fields = serde_json::json!({
                "stage": self.name, "step": self.done, "steps": self.total, "tps": tps, "seconds_left": left,
                "kT": thermo.map(|t| t.kt), "pressure": thermo.map(|t| t.pressure),
                "potential": thermo.map(|t| t.potential / t.n as f64),
            });
            log::event("progress", fields);
        } else {
            let (last, left) = (sample(thermo), duration(left));
            info!("{}: step {} of {}, {tps:.0} TPS{last}, {left} left", self.name, self.done, self.total);
        }
    }

    /// Ends the stage.
    pub fn finish(&self) {
        if let Some(display) = self.display {
            display.end();
        }
    }
}

/// Formats the last sample for a line.
fn sample(thermo: Option<&Thermo>) -> String {
    thermo.map_or(String::new(), |t| {
        let defined = |name: &str, x: f64| if x.is_nan() { String::new() } else { format!(", {name} {x:.4}") };
        format!("{}{}, U/N {:.4}", defined("kT", t.kt), defined("P", t.pressure), t.potential / t.n as f64)
    })
}

/// Formats seconds for a reader: `45 s`, `12 min`, `3.5 h`, `2.1 days`.
pub fn duration(seconds: f64) -> String {
    match seconds {
        s if !s.is_finite() => "?".into(),
        s if s < 99.5 => format!("{s:.0} s"),
        s if s < 5970.0 => format!("{:.0} min", s / 60.0),
        s if s < 48.0 * 3600.0 => format!("{:.1} h", s / 3600.0),
        s => format!("{:.1} days", s / 86400.0),
    }
}
