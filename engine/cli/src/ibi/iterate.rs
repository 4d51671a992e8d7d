//! The iterations: ordinary runs, each in its own folder.

use super::analyzers::{THERMO, column_of, file_of, of_iteration};
use super::spec::{InteractionSpec, Spec, StateSpec};
use crate::common::{file_failure, parse_errors};
use crate::terminal::print;
use galamost_engine::checkpoint::Checkpoint;
use galamost_engine::diagnostic::{Diagnostic, Failure, counted};
use galamost_engine::pipeline::{DeviceChoice, Pipeline};
use galamost_engine::plan::{CheckOptions, Plan, check};
use galamost_engine::plugins::Registry;
use galamost_engine::run::open as open_backend;
use galamost_engine::run::{RunOptions, execute};
use galamost_inversion::{Interaction, normalise, read_target};
use galamost_plugin_api::error::Position;
use galamost_plugin_api::input;
use galamost_plugin_api::output::replace;
use galamost_tables::{Curve, Format, Kind, Mistake, Rows, Unit, write};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;
use tracing::{info, warn};

/// Relative deviation of the temperature of a run from which on a warning is given.
const KT_DEVIATION: f64 = 0.1;

/// The result of a run.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct RunResult {
    /// Seconds of the run, including start-up.
    pub seconds: f64,
    /// Steps of the run.
    pub steps: u64,
    /// Mean pressure of the last stage.
    pub pressure: f64,
    /// Mean kT.
    pub kt: f64,
    /// Step at the end.
    pub end: u64,
}

/// Options of the runs.
pub(super) struct InversionOptions {
    /// Device, overriding that of the pipelines.
    pub device: Option<DeviceChoice>,
    pub run: RunOptions,
    /// Whether to check the files only, without running.
    pub check: bool,
}

/// The state of an inversion.
pub(super) struct Inversion<'a> {
    pub spec: &'a Spec,
    pub registry: &'a Registry,
    pub options: &'a InversionOptions,
    pub numerics: Vec<Interaction>,
    /// Target distributions by state and interaction.
    pub targets: Vec<Vec<Vec<f64>>>,
    /// Potentials by iteration and interaction.
    pub potentials: Vec<Vec<Vec<f64>>>,
    /// Measured distributions by iteration, state and interaction.
    pub measured: Vec<Vec<Vec<Vec<f64>>>>,
    /// Results by iteration and state.
    pub done: Vec<Vec<RunResult>>,
}

/// Returns an error in a table file.
pub(super) fn table_error(path: &Path, e: Mistake) -> Failure {
    Failure::Input(vec![Diagnostic::new(path, e.line.map(|line| Position { line, column: 1 }), e.message)])
}

/// Writes a file so that an interrupted program leaves no incomplete one.
pub(super) fn write_atomically(path: &Path, text: &str) -> Result<(), Failure> {
    replace(path, |out| out.write_all(text.as_bytes())).map_err(|e| file_failure(path, e))
}

/// Reads a text file.
pub(super) fn read_text(path: &Path) -> Result<String, Failure> {
    input::text(path).map_err(|e| parse_errors(path, vec![e]))
}

/// Reads the pipeline of a state.
pub(super) fn read_template(spec: &Spec, state: &StateSpec) -> Result<Pipeline, Failure> {
    let path = spec.directory().join(&state.pipeline.value);
    Pipeline::read(&path, &[]).map_err(|e| match std::fs::metadata(&path) {
        Ok(_) => e,
        Err(e) => spec.error(state.pipeline.at, format!("{} cannot be read: {e}", path.display())),
    })
}

/// Returns a potential as a CSV table.
fn table(i: &Interaction, u: &[f64]) -> Result<String, Failure> {
    let rows = i.rows(u);
    let invalid = |e: Mistake| Failure::run(format!("cannot tabulate a {} potential: {e}", i.kind.name()));
    let curve = Curve::new(i.kind, &rows, Some(Unit::Radians)).map_err(invalid)?;
    let f = rows.x.iter().map(|x| -curve.at(*x)[1]).collect();
    Ok(write(Format::Csv, i.kind, "", &Rows { f: Some(f), ..rows }))
}

impl Inversion<'_> {
    fn iteration_folder(&self, k: usize) -> PathBuf {
        self.spec.folder().join(format!("iter-{k:03}"))
    }

    pub fn state_folder(&self, k: usize, state: &StateSpec) -> PathBuf {
        self.iteration_folder(k).join(&state.name.value)
    }

    /// Iterates over specification and numerics of the interactions.
    pub fn interactions(&self) -> impl Iterator<Item = (&InteractionSpec, &Interaction)> {
        self.spec.interactions.value.iter().zip(&self.numerics)
    }

    pub fn states(&self) -> impl Iterator<Item = &StateSpec> {
        self.spec.states.value.iter().map(|s| &s.value)
    }

    /// Returns the text of the pipeline of an iteration: the template with further analyzers in its last stage.
    fn pipeline(&self, k: usize, state: &StateSpec, end: u64) -> Result<String, Failure> {
        let path = self.spec.directory().join(&state.pipeline.value);
        let template = Pipeline::read(&path, &[])?;
        let last = template.stages.len() - 1;
        let own = template.stages[last].analyzers.as_ref().unwrap_or(&template.analyzers);
        let mut list: Vec<String> = own.iter().map(|e| e.text.clone()).collect();
        list.extend(of_iteration(self.spec, state.every));
        if self.spec.from_last {
            list.push(format!("Gsd(every: {end}, file: \"last.gsd\")"));
        }
        let mut overrides = vec![format!("stages[{last}].analyzers=[{}]", list.join(", "))];
        if self.spec.from_last && k > 1 {
            let before = format!("../../iter-{:03}/{}/last.gsd", k - 1, state.name.value);
            overrides.push(format!("initial=[Gsd(file: {before:?})]"));
        }
        let text = read_text(&path)?;
        Ok(Pipeline::parse(&path, &text, &overrides).map_err(|e| parse_errors(&path, e))?.text)
    }

    /// Writes the folder of an iteration and checks its run. Returns whether the run can resume from a checkpoint,
    /// which must have been written with the same files.
    fn prepare(&self, k: usize, state: &StateSpec) -> Result<(Plan, bool), Failure> {
        let folder = self.state_folder(k, state);
        std::fs::create_dir_all(&folder).map_err(|e| file_failure(&folder, e))?;
        let mut same = true;
        let mut update = |name: &str, text: &str| {
            let path = folder.join(name);
            if std::fs::read_to_string(&path).is_ok_and(|t| t == text) {
                return Ok(());
            }
            same = false;
            write_atomically(&path, text)
        };
        for ((s, i), u) in self.interactions().zip(&self.potentials[k - 1]) {
            update(&format!("{}.csv", s.stem()), &table(i, u)?)?;
        }
        for file in &state.files {
            let (from, to) = (self.spec.directory().join(&file.value), folder.join(&file.value));
            let real = from
                .canonicalize()
                .map_err(|e| self.spec.error(file.at, format!("{} cannot be read: {e}", from.display())))?;
            if let Some(parent) = to.parent() {
                std::fs::create_dir_all(parent).map_err(|e| file_failure(parent, e))?;
            }
            if to.symlink_metadata().is_err() {
                std::os::unix::fs::symlink(&real, &to).map_err(|e| file_failure(&to, e))?;
            }
        }
        let begun = match k {
            _ if !self.spec.from_last => None,
            1 => None,
            _ => {
                let s = self.states().position(|s| s.name == state.name).unwrap_or(0);
                Some(self.done[k - 2][s].end)
            }
        };
        let steps = |p: &Pipeline| p.stages.iter().map(|s| s.steps).sum::<u64>();
        let path = folder.join("pipeline.ron");
        // the last configuration is written at the last step, which depends on the step of the initial state
        let template = Pipeline::read(&self.spec.directory().join(&state.pipeline.value), &[])?;
        let mut end = begun.unwrap_or(0) + steps(&template);
        if self.spec.from_last && begun.is_none() {
            write_atomically(&path, &self.pipeline(k, state, end.max(1))?)?;
            end += self.checked(&path, false)?.snapshot.step;
        }
        update("pipeline.ron", &self.pipeline(k, state, end.max(1))?)?;
        let plan = self.checked(&path, false)?;
        if plan.snapshot.dimensions != self.spec.dimensions {
            let message = format!("the system has {} dimensions: set `dimensions: {0}`", plan.snapshot.dimensions);
            return Err(self.spec.error(state.pipeline.at, message));
        }
        if k == 1 {
            self.check_samples(state, plan.snapshot.step)?;
        }
        let checkpoint = plan.pipeline.checkpoint_path();
        if !same && checkpoint.exists() {
            std::fs::remove_file(&checkpoint).map_err(|e| file_failure(&checkpoint, e))?;
        }
        Ok((plan, same && checkpoint.exists()))
    }

    /// Checks a pipeline for the selected device.
    fn checked(&self, path: &Path, resumed: bool) -> Result<Plan, Failure> {
        let mut pipeline = Pipeline::read(path, &[])?;
        if let Some(device) = self.options.device {
            pipeline.device = device;
            pipeline.device_at = None;
        }
        check(pipeline, self.registry, CheckOptions { resumed, ..CheckOptions::default() })
    }

    /// Runs one state of an iteration. Returns `None` if the run was interrupted.
    fn run(&self, k: usize, state: &StateSpec) -> Result<Option<RunResult>, Failure> {
        let marker = self.state_folder(k, state).join("done.ron");
        if let Ok(text) = std::fs::read_to_string(&marker) {
            return ron::from_str(&text).map(Some).map_err(|e| file_failure(&marker, e));
        }
        let (mut plan, resumable) = self.prepare(k, state)?;
        let mut resume = None;
        if resumable {
            plan = self.checked(&plan.pipeline.path, true)?;
            match Checkpoint::read(&plan.pipeline.checkpoint_path(), &plan) {
                Ok(c) => {
                    info!("iteration {k}, {}: resumes from its checkpoint", state.name.value);
                    resume = Some(c);
                }
                Err(e) => {
                    warn!("iteration {k}, {}: starts from scratch: {}", state.name.value, e.render().trim_end());
                    plan = self.checked(&plan.pipeline.path, false)?;
                }
            }
        }
        let clock = Instant::now();
        let mut backend = open_backend(&plan)?;
        let summary = execute(&plan, &mut *backend, &self.options.run, resume)?;
        if summary.interrupted {
            return Ok(None);
        }
        let mean = self.thermo(&self.state_folder(k, state).join(THERMO))?;
        if (mean[0] / state.kt - 1.0).abs() > KT_DEVIATION {
            warn!(
                "iteration {k}, {}: the mean kT is {:.3}, and the potentials are derived for {:.3}; use a shorter dt, a stronger \
                 thermostat or a longer equilibration",
                state.name.value, mean[0], state.kt
            );
        }
        let end = backend.step();
        let done = RunResult {
            seconds: clock.elapsed().as_secs_f64(),
            steps: summary.steps,
            pressure: mean[1],
            kt: mean[0],
            end,
        };
        let text = ron::to_string(&done).map_err(|e| file_failure(&marker, e))?;
        write_atomically(&marker, &text)?;
        Ok(Some(done))
    }

    /// Returns mean kT and pressure of the samples.
    fn thermo(&self, path: &Path) -> Result<[f64; 2], Failure> {
        let text = read_text(path)?;
        let names: Vec<&str> = text.lines().next().unwrap_or_default().split(',').collect();
        let mut out = [0.0; 2];
        for (mean, name) in out.iter_mut().zip(["kT", "pressure"]) {
            let column = names.iter().position(|n| *n == name).unwrap_or(0);
            let values = text.lines().skip(1).filter_map(|l| l.split(',').nth(column)?.parse::<f64>().ok());
            let (n, sum) = values.fold((0.0, 0.0), |(n, s), v| (n + 1.0, s + v));
            *mean = sum / n;
        }
        Ok(out)
    }

    /// Reads the distributions that a run has written.
    fn read_measured(&self, k: usize, state: &StateSpec) -> Result<Vec<Vec<f64>>, Failure> {
        let mut all = vec![];
        for (s, i) in self.interactions() {
            let path = self.state_folder(k, state).join(file_of(s));
            let text = read_text(&path)?;
            let mut p = match read_target(&text, i.kind, &i.bins, Some(column_of(s)), None) {
                Ok(p) => p,
                // an empty histogram counts as distance from the target, which the update reduces
                Err(e) if e.message.starts_with("nothing lies") => vec![0.0; i.bins.n],
                Err(e) => return Err(table_error(&path, e)),
            };
            if i.kind != Kind::Pair {
                normalise(&mut p, &i.bins);
            }
            all.push(p);
        }
        Ok(all)
    }

    /// Writes the potentials of an iteration, as its runs have read them, as the result. Returns the folder.
    fn write_result(&self, k: usize) -> Result<PathBuf, Failure> {
        let folder = self.spec.folder().join("result");
        std::fs::create_dir_all(&folder).map_err(|e| file_failure(&folder, e))?;
        let Some(state) = self.states().next() else { return Ok(folder) };
        for (s, _) in self.interactions() {
            let name = format!("{}.csv", s.stem());
            write_atomically(&folder.join(&name), &read_text(&self.state_folder(k, state).join(name))?)?;
        }
        Ok(folder)
    }

    /// Makes the first potentials and checks the first iteration, before anything runs.
    pub fn begin(&mut self) -> Result<(), Failure> {
        self.potentials.push(self.first_potentials()?);
        // report the errors of all states before the first step
        if !self.iteration_folder(1).join("done.ron").exists() {
            for state in self.states() {
                self.check_template(state)?;
                if !self.state_folder(1, state).join("done.ron").exists() {
                    self.prepare(1, state)?;
                }
            }
        }
        Ok(())
    }

    /// Runs all iterations and writes the result.
    pub fn run_all(&mut self) -> Result<(), Failure> {
        let spec = self.spec;
        if self.options.check {
            let (states, interactions) = (self.targets.len() as u64, self.numerics.len() as u64);
            let facts = format!("{}, {}", counted(states, "state"), counted(interactions, "interaction"));
            print(format!("{}: {facts}\n", spec.path.display()))?;
            return Ok(());
        }
        let mut converged = false;
        for k in 1..=spec.iterations as usize {
            if self.states().all(|s| self.state_folder(k, s).join("done.ron").exists()) {
                // use the potentials that were run, even if the specification has changed
                self.potentials.truncate(k - 1);
                self.potentials.push(self.stored_potentials(k)?);
            } else if k > 1 {
                self.potentials.push(self.next_potentials(k - 1)?);
            }
            let (mut done, mut measured) = (vec![], vec![]);
            for state in self.states() {
                let Some(d) = self.run(k, state)? else {
                    info!("stopped in iteration {k}; resume with: galamost ibi {}", spec.path.display());
                    return Ok(());
                };
                done.push(d);
                measured.push(self.read_measured(k, state)?);
            }
            self.done.push(done);
            self.measured.push(measured);
            self.report_progress(k)?;
            if self.worst(k) <= spec.tolerance {
                converged = true;
                break;
            }
        }
        self.finish(converged)
    }

    /// Selects the best iteration and writes its potentials.
    fn finish(&self, converged: bool) -> Result<(), Failure> {
        let spec = self.spec;
        // the last iteration close to the best one: distances of good potentials differ by noise only
        let last = self.measured.len();
        let nearest = (1..=last).map(|k| self.worst(k)).fold(f64::INFINITY, f64::min);
        let k = (1..=last).rev().find(|k| self.worst(*k) <= 1.5 * nearest).unwrap_or(last);
        let folder = self.write_result(k)?;
        if converged {
            info!("all distributions are within {} of their targets after iteration {k}", spec.tolerance);
        } else {
            info!(
                "the tolerance {} was not reached in {last} iterations; the result is iteration {k}, distance {:.5}",
                spec.tolerance,
                self.worst(k)
            );
        }
        info!("potentials: {}, report: {}", folder.display(), spec.folder().join("report.html").display());
        Ok(())
    }

    /// Checks that the template reads every table, without which all iterations would be the same.
    fn check_template(&self, state: &StateSpec) -> Result<(), Failure> {
        let path = self.spec.directory().join(&state.pipeline.value);
        let template = read_template(self.spec, state)?;
        for (s, _) in self.interactions() {
            let file = format!("{}.csv", s.stem());
            if !template.text.contains(&format!("\"{file}\"")) {
                let message =
                    format!("{} does not read \"{file}\", the table of the potential {}", path.display(), s.name());
                return Err(self.spec.error(s.at, message));
            }
        }
        Ok(())
    }

    /// Checks that the last stage of each iteration has a step at which samples are taken, a multiple of `every`. `first` is the step of
    /// the initial state.
    fn check_samples(&self, state: &StateSpec, first: u64) -> Result<(), Failure> {
        let template = read_template(self.spec, state)?;
        let steps = template.stages.last().map_or(0, |s| s.steps);
        let all: u64 = template.stages.iter().map(|s| s.steps).sum();
        // with `from_last`, an iteration begins at the step at which the one before ended
        let iterations = if self.spec.from_last { u64::from(self.spec.iterations) } else { 1 };
        let end = |k: u64| first.saturating_add(all.saturating_mul(k));
        let is_empty = |k: &u64| (end(*k) - steps) / state.every == end(*k) / state.every;
        let Some(k) = (1..=iterations).find(is_empty) else { return Ok(()) };
        let which = if k == 1 { String::new() } else { format!(" in iteration {k}") };
        let message = format!(
            "`every: {}` takes no sample{which}: the last stage of {} has {}, from step {} to step {}; reduce `every`",
            state.every,
            self.spec.directory().join(&state.pipeline.value).display(),
            counted(steps, "step"),
            end(k) - steps,
            end(k)
        );
        Err(self.spec.error(state.pipeline.at, message))
    }
}
