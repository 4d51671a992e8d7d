//! Progress: a bar on a terminal, plain lines elsewhere.

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
}

impl Progress {
    /// A stage of this many steps, `before` of them done by an earlier run.
    pub fn new(name: &str, before: u64, total: u64, quiet: bool) -> Self {
        let terminal = std::io::stderr().is_terminal() && !quiet;
        let bar = terminal.then(|| {
            let style = ProgressStyle::with_template("{prefix} {bar:30} {percent:>3}% {msg} {eta} left");
            ProgressBar::new(total)
                .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
                .with_prefix(name.to_string())
        });
        let now = Instant::now();
        Self { bar, name: name.into(), total, before, done: before, start: now, last_line: now }
    }

    /// Steps per second so far.
    pub fn tps(&self) -> f64 {
        (self.done - self.before) as f64 / self.start.elapsed().as_secs_f64().max(1e-9)
    }

    /// `done` steps are behind us.
    pub fn set(&mut self, done: u64) {
        self.done = done;
        let tps = self.tps();
        if let Some(bar) = &self.bar {
            bar.set_position(done);
            bar.set_message(format!("{tps:.0} TPS"));
        } else if self.last_line.elapsed() > Duration::from_secs(10) {
            self.last_line = Instant::now();
            let left = (self.total - done) as f64 / tps.max(1e-9);
            info!("{}: step {done} of {}, {tps:.0} TPS, {left:.0} s left", self.name, self.total);
        }
    }

    /// The stage is over.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
