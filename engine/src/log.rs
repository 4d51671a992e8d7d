//! The log on standard error: lines for people, or with `--log json` one JSON object a line for programs.
//!
//! Every object has `time` (UTC) and `event`; where several pipelines are run at once, also `pipeline`:
//!
//! | event | fields |
//! |---|---|
//! | `message` | `level` (error, warn, info, debug, trace), `message`: what people read |
//! | `run` | `engine`, `pipeline`, `device`, `precision`, `seed`, `particles`, `bonds`, `box`, `plugins` |
//! | `stage` | `stage`, `steps`, `dt` |
//! | `progress` | `stage`, `step` and `steps` of the stage, `tps`, `seconds_left`; `kT`, `pressure`, `potential` of the last sample |
//! | `checkpoint` | `step`, `file` |
//! | `summary` | `steps`, `seconds`, `tps`, `interrupted`, `kT`, `pressure`, `potential`, `list` |
//! | `error` | `status`, `message`, `notes`; for wrong input `errors`: `file`, `line`, `column`, `component`, `message` of each |
//! | `end` | `status`: the exit status; the last line |

use crate::report::Failure;
use clap::ValueEnum;
use serde_json::{Map, Value, json};
use std::cell::RefCell;
use std::fmt::Write as _;
use std::io::{IsTerminal as _, Write as _};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer};

/// How the log is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Lines for people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

static JSON: AtomicBool = AtomicBool::new(false);
/// Warnings, with the run whose they are, where several go on at once.
static WARNINGS: Mutex<Vec<(Option<String>, String)>> = Mutex::new(vec![]);
thread_local! {
    /// The run of this thread, where several go on at once.
    static RUN: RefCell<Option<String>> = const { RefCell::new(None) };
}
/// Warnings that are kept for the record of a run.
const KEPT: usize = 100;

/// Starts the log. `level`: what is shown, unless `GALAMOST_LOG` says otherwise.
pub fn start(format: Format, level: &str) {
    let filter = EnvFilter::try_from_env("GALAMOST_LOG").unwrap_or_else(|_| EnvFilter::new(level));
    let json = format == Format::Json;
    JSON.store(json, Ordering::Relaxed);
    let text = (!json).then(|| {
        tracing_subscriber::fmt::layer()
            .with_target(false)
            .with_ansi(std::io::stderr().is_terminal())
            .without_time()
            .with_writer(std::io::stderr)
    });
    // a second start in one process (tests) keeps the first log
    let _ = tracing_subscriber::registry().with(filter).with(text).with(Lines).try_init();
}

/// What this thread logs belongs to this run, one of several.
pub fn name_run(name: &str) {
    RUN.set(Some(name.into()));
}

/// The run of this thread, if it is one of several.
pub fn run_name() -> Option<String> {
    RUN.with_borrow(Clone::clone)
}

/// Whether lines are JSON.
pub fn is_json() -> bool {
    JSON.load(Ordering::Relaxed)
}

/// Writes an event with these fields, if lines are JSON.
pub fn event(name: &str, fields: Value) {
    if !is_json() {
        return;
    }
    let mut line = Map::new();
    line.insert("time".into(), json!(now()));
    line.insert("event".into(), json!(name));
    if let Some(run) = run_name() {
        line.insert("pipeline".into(), json!(run));
    }
    if let Value::Object(fields) = fields {
        line.extend(fields);
    }
    let text = format!("{}\n", Value::Object(line));
    // as a whole, so that lines of threads do not mix; nobody can be told that nobody reads
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// Tells the user why a command failed.
pub fn failure(failure: &Failure) {
    if !is_json() {
        eprint!("{}", failure.render());
        return;
    }
    event("error", describe(failure));
}

/// A failure as JSON.
pub fn describe(failure: &Failure) -> Value {
    match failure {
        Failure::Run(message, notes) => json!({"status": failure.exit_code(), "message": message, "notes": notes}),
        Failure::Input(list) => {
            let one = |d: &crate::report::Diagnostic| {
                json!({
                    "file": d.file, "line": d.at.map(|p| p.line), "column": d.at.map(|p| p.column),
                    "component": d.component, "message": d.message,
                })
            };
            let errors: Vec<Value> = list.iter().map(one).collect();
            let s = if list.len() == 1 { "" } else { "s" };
            let message = format!("{} error{s}; nothing was run", list.len());
            json!({"status": failure.exit_code(), "message": message, "errors": errors})
        }
    }
}

/// Warnings since the start, at most the first hundred; those of other runs, of several, are not among them.
pub fn warnings() -> Vec<String> {
    let own = run_name();
    let kept = WARNINGS.lock().map(|w| w.clone()).unwrap_or_default();
    kept.into_iter().filter(|(run, _)| run.is_none() || *run == own).map(|(_, w)| w).collect()
}

/// Keeps warnings, and writes messages as JSON.
struct Lines;

#[derive(Default)]
struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        if field.name() == "message" {
            let _ = write!(self.0, "{value:?}");
        }
    }
}

impl<S: Subscriber> Layer<S> for Lines {
    fn on_event(&self, e: &Event<'_>, _: Context<'_, S>) {
        let level = *e.metadata().level();
        if level > Level::WARN && !is_json() {
            return;
        }
        let mut message = Message::default();
        e.record(&mut message);
        if level <= Level::WARN
            && let Ok(mut kept) = WARNINGS.lock()
            && kept.len() < KEPT
        {
            kept.push((run_name(), message.0.clone()));
        }
        event("message", json!({"level": level.as_str().to_lowercase(), "message": message.0}));
    }
}

/// The time, as `2026-01-31T23:59:59Z`.
pub fn now() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    utc(seconds)
}

/// Seconds since 1970 as a date and a time.
fn utc(seconds: u64) -> String {
    let (day, rest) = (seconds / 86_400, seconds % 86_400);
    // years begin in March, so that the leap day comes last
    let z = day + 719_468;
    let (era, of_era) = (z / 146_097, z % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let m = (5 * of_year + 2) / 153;
    let (d, month) = (of_year - (153 * m + 2) / 5 + 1, if m < 10 { m + 3 } else { m - 9 });
    let year = era * 400 + year + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{d:02}T{:02}:{:02}:{:02}Z", rest / 3600, rest / 60 % 60, rest % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_counted_right() {
        for (s, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_799, "2000-02-29T23:59:59Z"),
            (1_709_251_200, "2024-03-01T00:00:00Z"),
            (4_107_542_399, "2100-02-28T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(utc(s), text);
        }
    }
}
