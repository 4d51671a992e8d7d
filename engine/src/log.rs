//! Events of a run as JSON lines, and the warnings that its record keeps.
//!
//! The program chooses the format with [`set_json`]. In JSON mode every line on standard error is one object with `time` (UTC)
//! and `event`; if several pipelines run at once, also `pipeline`. The book's chapter on commands lists the fields.

use crate::diagnostic::{Diagnostic, Failure, counted};
use serde_json::{Map, Value, json};
use std::cell::RefCell;
use std::io::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

static JSON: AtomicBool = AtomicBool::new(false);
/// Warnings, each with the name of its run if several runs share the process.
static WARNINGS: Mutex<Vec<(Option<String>, String)>> = Mutex::new(vec![]);
thread_local! {
    /// The run of this thread, if several runs share the process.
    static RUN: RefCell<Option<String>> = const { RefCell::new(None) };
}
/// The largest number of warnings kept for the record of a run.
const MAX_WARNINGS: usize = 100;

/// Chooses JSON lines or text.
pub fn set_json(json: bool) {
    JSON.store(json, Ordering::Relaxed);
}

/// Assigns everything this thread logs to one of several simultaneous runs.
pub fn set_run_name(name: &str) {
    RUN.set(Some(name.into()));
}

/// Returns the run of this thread, if it is one of several.
pub fn run_name() -> Option<String> {
    RUN.with_borrow(Clone::clone)
}

/// Returns whether the log is written as JSON lines.
pub fn is_json() -> bool {
    JSON.load(Ordering::Relaxed)
}

/// Writes an event in JSON mode; does nothing in text mode.
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
    // one write per line, so that lines of several threads do not mix; a closed standard error is ignored
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// Describes a failure as JSON.
pub fn describe(failure: &Failure) -> Value {
    match failure {
        Failure::Run(message, notes) => json!({"status": failure.exit_code(), "message": message, "notes": notes}),
        Failure::Input(list) => {
            let one = |d: &Diagnostic| {
                let read_by = d.read_by.as_ref().map(|(file, at)| {
                    json!({"file": file.to_string_lossy(), "line": at.map(|p| p.line), "column": at.map(|p| p.column)})
                });
                json!({
                    "file": d.file.to_string_lossy(), "line": d.at.map(|p| p.line), "column": d.at.map(|p| p.column),
                    "component": d.component, "message": d.message, "read_by": read_by,
                })
            };
            let errors: Vec<Value> = list.iter().map(one).collect();
            let message = format!("{}; nothing was done", counted(list.len() as u64, "error"));
            json!({"status": failure.exit_code(), "message": message, "errors": errors})
        }
    }
}

/// Keeps a warning for the record of this thread's run.
pub fn keep_warning(message: String) {
    if let Ok(mut kept) = WARNINGS.lock()
        && kept.len() < MAX_WARNINGS
    {
        kept.push((run_name(), message));
    }
}

/// Returns the warnings of this thread's run since the program started, at most the first hundred.
pub fn warnings() -> Vec<String> {
    let own = run_name();
    let kept = WARNINGS.lock().map(|w| w.clone()).unwrap_or_default();
    kept.into_iter().filter(|(run, _)| run.is_none() || *run == own).map(|(_, w)| w).collect()
}

/// Returns the current time as `2026-01-31T23:59:59Z`.
pub fn now() -> String {
    humantime::format_rfc3339_seconds(SystemTime::now()).to_string()
}

/// Returns the time that [`now`] wrote.
pub fn time_of(text: &str) -> Option<SystemTime> {
    humantime::parse_rfc3339(text).ok()
}
