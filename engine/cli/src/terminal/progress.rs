//! The progress bar.

use galamost_engine::log;
use galamost_engine::run::ProgressDisplay;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal as _;
use std::sync::{Arc, Mutex, PoisonError};

/// A bar on the terminal for the stage in progress.
#[derive(Debug, Default)]
struct Bar(Mutex<Option<ProgressBar>>);

/// Returns a progress bar if standard error is a terminal that can show one.
pub fn bar(quiet: bool) -> Option<Arc<dyn ProgressDisplay>> {
    let shown = std::io::stderr().is_terminal() && !quiet && !log::is_json() && log::run_name().is_none();
    shown.then(|| Arc::new(Bar::default()) as Arc<dyn ProgressDisplay>)
}

/// Shows nothing.
#[derive(Debug)]
struct NoDisplay;

impl ProgressDisplay for NoDisplay {
    fn begin(&self, _: &str, _: u64) {}
    fn update(&self, _: u64, _: String) {}
    fn end(&self) {}
}

/// Returns a display that shows nothing, for one of many equal runs.
pub fn no_display() -> Arc<dyn ProgressDisplay> {
    Arc::new(NoDisplay)
}

impl Bar {
    fn with(&self, f: impl FnOnce(&mut Option<ProgressBar>)) {
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl ProgressDisplay for Bar {
    fn begin(&self, stage: &str, total: u64) {
        let style = ProgressStyle::with_template("{prefix} {bar:30} {percent:>3}% {msg} {eta} left");
        let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
        self.with(|bar| *bar = Some(ProgressBar::new(total).with_style(style).with_prefix(stage.to_string())));
    }

    fn update(&self, done: u64, message: String) {
        self.with(|bar| {
            if let Some(bar) = bar {
                bar.set_position(done);
                bar.set_message(message);
            }
        });
    }

    fn end(&self) {
        self.with(|bar| {
            if let Some(bar) = bar.take() {
                bar.finish_and_clear();
            }
        });
    }
}
