//! The log on standard error: text, or with `--log json` one JSON object per line.

use clap::ValueEnum;
use galamost_engine::diagnostic::Failure;
use galamost_engine::log::{describe, event, is_json, keep_warning, run_name, set_json};
use serde_json::json;
use std::fmt::Write as _;
use std::io::{IsTerminal as _, Write as _};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Context, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

/// Format of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Lines of text.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

/// Starts the log at a level; the environment variable `GALAMOST_LOG` overrides the level.
pub fn start(format: Format, level: &str) {
    let requested = std::env::var("GALAMOST_LOG").ok().and_then(|s| s.parse::<Targets>().ok());
    let filter = requested.or_else(|| level.parse().ok()).unwrap_or_default();
    set_json(format == Format::Json);
    let text = (!is_json()).then(|| {
        tracing_subscriber::fmt::layer()
            .with_target(false)
            .with_ansi(std::io::stderr().is_terminal())
            .without_time()
            .with_writer(std::io::stderr)
    });
    // a second call in one process (tests) keeps the first log
    let _ = tracing_subscriber::registry().with(filter).with(text).with(Messages).try_init();
}

/// Prints the error of a command.
pub fn failure(failure: &Failure) {
    if is_json() {
        event("error", describe(failure));
    } else {
        let run = run_name().map_or_else(String::new, |name| format!("{name}: "));
        // one write, and no panic if standard error is closed or full
        let _ = std::io::stderr().lock().write_all(format!("{run}{}", failure.render()).as_bytes());
    }
}

/// Keeps warnings for the run record and writes messages as JSON events.
struct Messages;

#[derive(Default)]
struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        if field.name() == "message" {
            let _ = write!(self.0, "{value:?}");
        }
    }
}

impl<S: Subscriber> Layer<S> for Messages {
    fn on_event(&self, e: &Event<'_>, _: Context<'_, S>) {
        let level = *e.metadata().level();
        if level > Level::WARN && !is_json() {
            return;
        }
        let mut message = Message::default();
        e.record(&mut message);
        if level <= Level::WARN {
            keep_warning(message.0.clone());
        }
        event("message", json!({"level": level.as_str().to_lowercase(), "message": message.0}));
    }
}
