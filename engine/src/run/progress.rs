//! Progress: a bar on a terminal, plain lines elsewhere.

use crate::log;
use galamost_plugin_api::analyzer::Thermo;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal as _;
use std::time::{Duration, Instant};
use tracing::info;

/// Progress of one stage.
pub struct Progress {
    bar: Option<ProgressBar>,
    name: String,
    total: u64,
    /// Steps that an earlier run had done.
    before: u64,
    done: u64,
    start: Instant,
    last_line: Instant,
    /// Between two lines.
    pause: Duration,
}

impl Progress {
    /// A stage of this many steps, `before` of them done by an earlier run.
    pub fn new(name: &str, before: u64, total: u64, quiet: bool) -> Self {
        let terminal = std::io::stderr().is_terminal() && !quiet && !log::is_json() && log::run_name().is_none();
        let bar = terminal.then(|| {
            let style = ProgressStyle::with_template("{prefix} {bar:30} {percent:>3}% {msg} {eta} left");
            ProgressBar::new(total)
                .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
                .with_prefix(name.to_string())
        });
        let now = Instant::now();
        Self {
            bar,
            name: name.into(),
            total,
            before,
            done: before,
            start: now,
            last_line: now,
            pause: Duration::from_secs(if log::is_json() { 2 } else { 10 }),
        }
    }

    /// Steps per second so far.
    pub fn tps(&self) -> f64 {
        (self.done - self.before) as f64 / self.start.elapsed().as_secs_f64().max(1e-9)
    }

    /// `done` steps are behind us; `thermo` are the values of the last sample, if there was one.
    pub fn set(&mut self, done: u64, thermo: Option<&Thermo>) {
        self.done = done;
        let tps = self.tps();
        if let Some(bar) = &self.bar {
            bar.set_position(done);
            bar.set_message(format!("{tps:.0} TPS{}", sample(thermo)));
        } else if self.last_line.elapsed() > self.pause {
            self.last_line = Instant::now();
            let left = (self.total - done) as f64 / tps.max(1e-9);
            if log::is_json() {
                log::event(
                    "progress",
                    serde_json::json!({
                        "stage": self.name, "step": done, "steps": self.total, "tps": tps, "seconds_left": left,
                        "kT": thermo.map(|t| t.kt), "pressure": thermo.map(|t| t.pressure),
                        "potential": thermo.map(|t| t.potential / t.n as f64),
                    }),
                );
            } else {
                let last = sample(thermo);
                info!("{}: step {done} of {}, {tps:.0} TPS{last}, {} left", self.name, self.total, duration(left));
            }
        }
    }

    /// The stage is over.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// The last sample for a line.
fn sample(thermo: Option<&Thermo>) -> String {
    thermo.map_or(String::new(), |t| {
        let pressure = if t.pressure.is_nan() { String::new() } else { format!(", P {:.4}", t.pressure) };
        format!(", kT {:.4}{pressure}, U/N {:.4}", t.kt, t.potential / t.n as f64)
    })
}

/// Seconds as people say them.
pub fn duration(seconds: f64) -> String {
    match seconds {
        s if !s.is_finite() => "?".into(),
        s if s < 99.5 => format!("{s:.0} s"),
        s if s < 5970.0 => format!("{:.0} min", s / 60.0),
        s if s < 48.0 * 3600.0 => format!("{:.1} h", s / 3600.0),
        s => format!("{:.1} days", s / 86400.0),
    }
}
