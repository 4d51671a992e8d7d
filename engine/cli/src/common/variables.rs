//! Environment variables that hold numbers or choices: a value that cannot be read would be ignored.

use super::input_error;
use galamost_engine::diagnostic::Failure;
use std::str::FromStr;
use std::time::Duration;
use tracing_subscriber::filter::Targets;

/// Name, what its value must be, and whether a value is that.
type Variable = (&'static str, &'static str, fn(&str) -> bool);

const VARIABLES: [Variable; 14] = [
    // with less, a run that makes progress would be reported many times in a second
    ("GALAMOST_PATIENCE", "a number of seconds from 1", is_duration),
    ("GALAMOST_LOG", "a filter of the log, such as `debug`", is::<Targets>),
    ("GALAMOST_ISA", "a number from 0 to 4", is::<u32>),
    ("GALAMOST_TEAM", "a power of two up to 32", is_team),
    ("GALAMOST_MANY", "a number of particles", is::<usize>),
    ("GALAMOST_SORT_EVERY", "a number of rebuilds", is::<u32>),
    ("GALAMOST_GATE", "a number of blocks", is::<u16>),
    ("GALAMOST_QUEUE", "0 or 1", |value| matches!(value, "0" | "1")),
    ("GALAMOST_EARLY", "0 or 1", |value| matches!(value, "0" | "1")),
    ("GALAMOST_SPARE", "0 or 1", |value| matches!(value, "0" | "1")),
    ("GALAMOST_GHOSTS", "0 or 1", |value| matches!(value, "0" | "1")),
    ("GALAMOST_BALANCE", "a number of steps, or 0", is::<u64>),
    ("GALAMOST_EMULATED_FAULT", "lost:N, memory:N or barrier:N", is_fault),
    ("GALAMOST_LIST", "Auto, Plain or Staged", |value| matches!(value, "Auto" | "Plain" | "Staged")),
];

fn is<T: FromStr>(value: &str) -> bool {
    value.parse::<T>().is_ok()
}

fn is_duration(value: &str) -> bool {
    value.parse().is_ok_and(|seconds: f64| seconds >= 1.0 && Duration::try_from_secs_f64(seconds).is_ok())
}

fn is_fault(value: &str) -> bool {
    let known = |what: &str| matches!(what, "lost" | "memory" | "barrier");
    value.split_once(':').is_some_and(|(what, n)| known(what) && is::<u64>(n))
}

fn is_team(value: &str) -> bool {
    value.parse().is_ok_and(|n: u32| n.is_power_of_two() && n <= 32)
}

/// Checks the variables that are set. An empty value counts as none.
///
/// # Errors
/// Returns an error for the first value that cannot be read.
pub(crate) fn check() -> Result<(), Failure> {
    for (name, what, is_valid) in VARIABLES {
        let value = std::env::var_os(name).unwrap_or_default();
        let value = value.to_string_lossy();
        if !value.is_empty() && !is_valid(&value) {
            return Err(input_error(name, format!("`{value}` is not {what}; correct or unset the variable")));
        }
    }
    Ok(())
}
