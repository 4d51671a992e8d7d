//! The progress of a run, from its record and its tables.

use super::tail::{LiveCurve, Tail};
use crate::common::input_error;
use crate::output::numbers::significant;
use crate::report::{UNREADABLE, outputs, unreadable_record};
use galamost_engine::checkpoint::files;
use galamost_engine::diagnostic::Failure;
use galamost_engine::log::time_of;
use galamost_engine::pipeline::Pipeline;
use galamost_engine::run::{duration, killed_process, record, running_process};
use serde_json::Value;
use std::cmp::Ordering;
use std::collections::VecDeque;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

/// Time over which the speed is averaged.
const SPEED_WINDOW: Duration = Duration::from_secs(30);
/// Age of the last row from which it is shown.
const OLD: Duration = Duration::from_secs(15);

/// Time after which a run that holds its lock has a record: it writes it before it opens the device. A run that begins renames outputs of
/// an earlier one within this time.
const RECORDED: Duration = Duration::from_secs(10);

/// How a run is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunState {
    /// There is no record yet; the name of its file.
    Waiting(String),
    /// The record says so, and no sign speaks against it.
    Running,
    /// The run ended; with the status of its record.
    Ended(String),
    /// The process was killed: its name.
    Killed(String),
    /// The run failed, with the error's message.
    Failed(String),
}

impl RunState {
    /// Returns whether nothing more will happen.
    pub fn is_over(&self) -> bool {
        !matches!(self, Self::Waiting(_) | Self::Running)
    }

    /// Returns the state of a run that has no record.
    fn waiting(pipeline: &Path) -> Self {
        Self::Waiting(record::path_of(pipeline).file_name().unwrap_or_default().to_string_lossy().into_owned())
    }

    fn of(run: Option<&Value>, pipeline: &Pipeline) -> Self {
        let Some(run) = run else { return Self::waiting(&pipeline.path) };
        match run["status"].as_str().unwrap_or_default() {
            "running" => killed_process(&pipeline.checkpoint_path()).map_or(Self::Running, Self::Killed),
            "failed" => Self::Failed(run["error"]["message"].as_str().unwrap_or("unknown error").into()),
            "interrupted" => Self::Ended("stopped, can be resumed".into()),
            other => Self::Ended(other.into()),
        }
    }
}

impl std::fmt::Display for RunState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Waiting(record) => {
                write!(f, "waiting for the run to begin: there is no record {record} yet (--no-record leaves it out)")
            }
            Self::Running => f.write_str("running"),
            Self::Ended(how) => f.write_str(how),
            Self::Killed(process) => write!(f, "killed: {process}, has ended without finishing the run"),
            Self::Failed(message) => write!(f, "failed: {message}"),
        }
    }
}

/// The progress of a run.
pub struct Progress {
    pipeline: Pipeline,
    /// File name of the pipeline.
    pub title: String,
    /// How the run is.
    pub state: RunState,
    /// Since when there is a sign of a run without a record, and who left it: a process, or a run that has ended.
    without_record: Option<(Instant, String)>,
    /// Parts of the run; the last one is the current one.
    parts: Vec<Value>,
    /// Tables with a row for each step that have been found.
    tables: Vec<Tail>,
    /// Steps and when they were written.
    seen: VecDeque<(SystemTime, f64)>,
    /// Steps per second over the steps, as far as they were seen.
    pub speed: LiveCurve,
}

impl Progress {
    /// Starts to follow the run of a pipeline.
    ///
    /// # Errors
    /// Returns an error if the pipeline cannot be read.
    pub fn of(path: &Path) -> Result<Self, Failure> {
        let pipeline = Pipeline::read(path, &[])?;
        Ok(Self {
            title: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            state: RunState::waiting(&pipeline.path),
            pipeline,
            without_record: None,
            parts: vec![],
            tables: vec![],
            seen: VecDeque::new(),
            speed: LiveCurve::new("steps/s"),
        })
    }

    /// Reads what is new.
    pub fn update(&mut self) {
        let parts = record::read(&self.pipeline.path).unwrap_or_default();
        let begun = |parts: &[Value]| parts.last().map(|r| r["begun"].clone());
        if begun(&parts) != begun(&self.parts) {
            // another run, or a resumed one
            self.speed = LiveCurve::new("steps/s");
            self.tables.clear();
            self.seen.clear();
        }
        self.parts = parts;
        self.state = RunState::of(self.parts.last(), &self.pipeline);
        // without a record, tables are those of another run
        if matches!(self.state, RunState::Waiting(_)) {
            let process = running_process(&self.pipeline.checkpoint_path()).map(|name| format!("{name}, runs it"));
            let sign = process.or_else(|| self.written().map(|file| format!("a run that has ended wrote {file}")));
            let since = self.without_record.as_ref().map_or_else(Instant::now, |(since, _)| *since);
            self.without_record = sign.map(|sign| (since, sign));
        } else {
            self.without_record = None;
            self.find_tables();
        }
        self.tables.iter_mut().for_each(Tail::update);
        let newest = self.newest().and_then(|t| Some((t.modified, t.step?)));
        let Some((modified, step)) = newest.filter(|n| self.seen.back().is_none_or(|b| b.1 != n.1)) else { return };
        self.seen.push_back((modified, step));
        let old = |first: &(SystemTime, f64)| modified.duration_since(first.0).is_ok_and(|age| age > SPEED_WINDOW);
        while self.seen.len() > 2 && self.seen.front().is_some_and(old) {
            self.seen.pop_front();
        }
        if let Some(tps) = self.recent_speed() {
            self.speed.push(step, tps);
        }
    }

    /// Returns the error that the record cannot be read, or that the run writes none, if it has begun and should have one.
    pub fn unrecorded(&self) -> Option<Failure> {
        if matches!(self.state, RunState::Waiting(_))
            && let Some(path) = unreadable_record(&self.pipeline.path)
        {
            return Some(input_error(path, UNREADABLE));
        }
        let (_, sign) = self.without_record.as_ref().filter(|(since, _)| since.elapsed() > RECORDED)?;
        let message = format!("{sign} without a record, probably with --no-record; such a run cannot be followed");
        Some(input_error(&self.pipeline.path, message))
    }

    /// Returns the name of an output or a checkpoint that exists. Tables of forces are inputs.
    fn written(&self) -> Option<String> {
        let is_force = |name: &str| self.pipeline.forces.iter().any(|f| f.name == name);
        let outputs = outputs::find(&self.pipeline).into_iter().filter(|o| !is_force(&o.component));
        let tables = outputs.flat_map(|o| o.files).filter(|file| outputs::is_table(file));
        let file = tables.chain(files::present(&self.pipeline.checkpoint_path())).next()?;
        Some(file.file_name()?.to_string_lossy().into_owned())
    }

    /// Adds tables that have been created.
    fn find_tables(&mut self) {
        let found = outputs::find(&self.pipeline);
        for file in found.iter().flat_map(|o| &o.files).filter(|f| outputs::is_table(f)) {
            if !self.tables.iter().any(|t| t.path() == file) {
                self.tables.push(Tail::new(file));
            }
        }
    }

    /// Returns the table with the largest step.
    fn newest(&self) -> Option<&Tail> {
        let tables = self.tables.iter().filter(|t| t.step.is_some());
        tables.max_by(|a, b| a.step.partial_cmp(&b.step).unwrap_or(Ordering::Equal))
    }

    /// Returns the table that is shown: the newest one with temperature, pressure or energy, or otherwise the newest one.
    fn shown(&self) -> Option<&Tail> {
        let is_thermo = |t: &&Tail| t.curves.iter().any(|c| ["kT", "pressure", "potential"].contains(&c.name.as_str()));
        let thermo = self.tables.iter().filter(is_thermo).max_by_key(|t| t.modified);
        thermo.or_else(|| self.newest())
    }

    /// Returns the step of the last row, and at the end that of the record.
    fn step(&self) -> Option<f64> {
        let run = self.parts.last();
        let ended = run.and_then(|r| Some(r["from_step"].as_f64()? + r["steps"].as_f64()?));
        ended.or(self.newest().and_then(|t| t.step))
    }

    /// Returns the steps done and planned by all parts of the run.
    pub fn steps(&self) -> Option<[f64; 2]> {
        let (first, run) = (self.parts.first()?, self.parts.last()?);
        let stages = || run["stages"].as_array().into_iter().flatten().filter_map(|s| s["steps"].as_f64()).sum();
        let planned: f64 = run["planned"].as_f64().unwrap_or_else(stages);
        let done = self.step()? - first["from_step"].as_f64().unwrap_or(0.0);
        (planned > 0.0).then_some([done.clamp(0.0, planned), planned])
    }

    /// Returns the speed between rows that were seen while watching.
    fn recent_speed(&self) -> Option<f64> {
        let (first, last) = (self.seen.front()?, self.seen.back()?);
        let seconds = last.0.duration_since(first.0).ok()?.as_secs_f64();
        (last.1 > first.1 && seconds > 0.0).then(|| (last.1 - first.1) / seconds)
    }

    /// Returns the steps per second: of the record at the end, over the last half minute, or on average since the start.
    pub fn tps(&self) -> Option<f64> {
        let run = self.parts.last()?;
        let since_start = || {
            let table = self.newest()?;
            let seconds = table.modified.duration_since(time_of(run["begun"].as_str()?)?).ok()?.as_secs_f64();
            let steps = table.step? - run["from_step"].as_f64().unwrap_or(0.0);
            (steps > 0.0 && seconds > 0.0).then(|| steps / seconds)
        };
        run["tps"].as_f64().or_else(|| self.recent_speed()).or_else(since_start)
    }

    /// Returns the stage of the current step.
    fn stage(&self) -> Option<&str> {
        let mut left = self.steps()?[0];
        let stages = self.parts.last()?["stages"].as_array()?;
        let within = |s: &&Value| {
            left -= s["steps"].as_f64().unwrap_or(0.0);
            left < 0.0
        };
        let current = if stages.len() > 1 { stages.iter().find(within).or(stages.last()) } else { None };
        current.and_then(|s| s["name"].as_str())
    }

    /// Returns stage and step as text.
    pub fn position(&self) -> Option<String> {
        let [done, planned] = self.steps()?;
        let stage = self.stage().filter(|_| !self.state.is_over()).map_or(String::new(), |s| format!("stage {s}, "));
        Some(format!("{stage}step {done} of {planned} ({:.0} %)", (100.0 * done / planned).floor()))
    }

    /// Returns the speed and the remaining time as text.
    pub fn speed_and_rest(&self) -> Option<String> {
        let tps = self.tps()?;
        let speed = format!("{} TPS", significant(tps, 4));
        let rest =
            self.steps().filter(|_| !self.state.is_over()).map(|[done, planned]| duration((planned - done) / tps));
        Some(rest.map_or(speed.clone(), |rest| format!("{speed}, {rest} left")))
    }

    /// Returns how old the last row is, if it is old for a running simulation.
    pub fn age(&self) -> Option<String> {
        let table = self.newest().filter(|_| self.state == RunState::Running)?;
        let age = SystemTime::now().duration_since(table.modified).ok().filter(|a| *a > OLD)?;
        Some(format!("last row {} ago", duration(age.as_secs_f64())))
    }

    /// Returns device and system as text.
    pub fn system(&self) -> Option<String> {
        let run = self.parts.last()?;
        let n = run["particles"].as_u64().filter(|n| *n > 0)?;
        Some(format!("{n} particles, {}", run["device"].as_str().unwrap_or("unknown device")))
    }

    /// Returns the columns that are shown.
    pub fn curves(&self) -> &[LiveCurve] {
        self.shown().map_or(&[], |t| &t.curves)
    }

    /// Returns the name of the horizontal axis and of the table.
    pub fn source(&self) -> Option<(&str, String)> {
        let table = self.shown()?;
        Some((&table.x, table.path().file_name().unwrap_or_default().to_string_lossy().into_owned()))
    }
}
