//! The run loop, the same for every device.

use super::clock::Clock;
use super::frame::{FrameFacts, analyze};
use super::progress::{Progress, ProgressDisplay};
use crate::backend::{Backend, SystemSums, degrees_of_freedom};
use crate::checkpoint::{Checkpoint, Place, Writer, files};
use crate::diagnostic::Failure;
use crate::plan::{Plan, StagePlan};
use crate::profile::{Timing, add_timings};
use galamost_plugin_api::analyzer::Thermo;
use galamost_plugin_api::error::{Error, Result};
use galamost_plugin_api::views::Wanted;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tracing::{debug, info};

/// How a run is done.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// Steps in all, instead of the stages' own numbers: stages keep their order, the last one is cut or stretched.
    pub steps: Option<u64>,
    /// Writes less to the log.
    pub quiet: bool,
    /// Shows progress; `None`: lines in the log.
    pub display: Option<Arc<dyn ProgressDisplay>>,
    /// Set from outside (Ctrl-C, SIGTERM): the run ends after the step under way and writes a checkpoint.
    pub stop: Arc<AtomicBool>,
    /// Set from outside (SIGUSR1): a checkpoint is written now, and the run goes on.
    pub save: Arc<AtomicBool>,
    /// The longest time that the program may take.
    pub walltime: Option<Duration>,
    /// When the program started; by default the run's start.
    pub started: Option<Instant>,
}

/// What a run did.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Steps done.
    pub steps: u64,
    /// Seconds in the step loop.
    pub seconds: f64,
    /// It was stopped from outside.
    pub interrupted: bool,
    /// The checkpoint written at the end, if any.
    pub checkpoint: Option<PathBuf>,
    /// Values of the whole system when they were last asked for.
    pub thermo: Option<Thermo>,
    /// Seconds from the start to the first step.
    pub start_up: f64,
    /// Where the seconds of the step loop went.
    pub shares: Shares,
    /// The same by component.
    pub spent: Spent,
}

/// Seconds of the step loop.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shares {
    /// Steps themselves.
    pub steps: f64,
    /// Analyzers, with the copies that they wait for.
    pub analyzers: f64,
    /// Updaters.
    pub updaters: f64,
    /// What the run waited for its checkpoints.
    pub checkpoints: f64,
}

/// Where the time of some steps went, and that of components between them.
#[derive(Clone, Debug, Default)]
pub struct Spent {
    /// Steps that were looked at.
    pub steps: u64,
    /// Their time, by part and kernel.
    pub timings: Vec<Timing>,
    /// Seconds of each analyzer and updater, over all of the run.
    pub others: BTreeMap<String, f64>,
}

/// Steps of a look at where their time goes.
const LOOK: u64 = 16;
/// Steps of a stage before the first look: lists and caches are then as they stay.
const FIRST_LOOK: u64 = 100;
/// Time from one look to the next.
const LOOKS: Duration = Duration::from_secs(60);

/// The longest time between two looks at the stop flag and the progress bar.
const TICK: Duration = Duration::from_millis(200);

/// Runs a plan on a backend.
///
/// # Errors
/// What broke, with what was saved.
pub fn execute(
    plan: &Plan,
    backend: &mut dyn Backend,
    options: &RunOptions,
    resume: Option<Checkpoint>,
) -> Result<Summary, Failure> {
    let mut run = Run::new(plan, backend, options);
    match run.all(resume) {
        Ok(()) => Ok(run.summary),
        Err(e) => Err(run.failed(e)),
    }
}

struct Run<'a> {
    plan: &'a Plan,
    backend: &'a mut dyn Backend,
    options: &'a RunOptions,
    summary: Summary,
    place: Place,
    /// Step at which each component was last due: a component of two stages is not due twice at their border.
    last_due: BTreeMap<u32, u64>,
    /// Sums of the step at which a resumed run goes on, if the run had them when it was stopped.
    sums: Option<SystemSums>,
    /// Whether the backend's energies and virials are those of the present step.
    sums_are_good: bool,
    /// Something is under way that leaves no state to go on from if it fails: a step, an update, the first forces.
    mid_step: bool,
    /// Components were told that the run ends.
    finished: bool,
    begun: Instant,
    writer: Writer,
    clock: Clock,
}

impl<'a> Run<'a> {
    fn new(plan: &'a Plan, backend: &'a mut dyn Backend, options: &'a RunOptions) -> Self {
        let settings = &plan.pipeline.checkpoint;
        Self {
            writer: Writer::new(plan.pipeline.checkpoint_path(), settings.keep),
            clock: Clock::new(options.started, options.walltime, settings.minutes),
            plan,
            backend,
            options,
            summary: Summary::default(),
            place: Place::default(),
            last_due: BTreeMap::new(),
            sums: None,
            sums_are_good: false,
            mid_step: false,
            finished: false,
            begun: Instant::now(),
        }
    }

    fn all(&mut self, resume: Option<Checkpoint>) -> Result<()> {
        let resumed = resume.is_some();
        if let Some(c) = resume {
            self.backend.import(&c.state)?;
            for component in &self.plan.components {
                if let Some(state) = c.components.get(&component.id).filter(|s| !s.is_empty()) {
                    component.load(state)?;
                }
            }
            self.place = c.place;
            self.last_due = c.last_due;
            self.sums = c.sums;
        } else {
            files::set_aside(self.writer.path());
        }
        for component in &self.plan.components {
            component.start(self.backend.host())?;
        }
        let stages = self.stage_lengths();
        let first = self.place.stage;
        for (index, steps) in stages.into_iter().enumerate().skip(first as usize) {
            let stage = &self.plan.stages[index];
            if index as u64 != first {
                self.place = Place { stage: index as u64, stage_step: 0, stage_time: self.time() };
            }
            self.stage(stage, steps, resumed && index as u64 == first)?;
            if self.summary.interrupted {
                break;
            }
        }
        self.finish().into_iter().next().map_or(Ok(()), |(_, e)| Err(e))?;
        // a run that is done can be made longer: `--steps` with `--resume`
        if self.summary.interrupted || (self.plan.pipeline.checkpoint.regular() && self.summary.steps > 0) {
            self.checkpoint()?;
        }
        if self.writer.end()?.is_some() {
            self.summary.checkpoint = Some(self.writer.path().into());
        }
        Ok(())
    }

    /// Tells every component once that the run ends, and returns what failed.
    fn finish(&mut self) -> Vec<(String, Error)> {
        if std::mem::replace(&mut self.finished, true) {
            return vec![];
        }
        self.plan.components.iter().filter_map(|c| c.finish().err().map(|e| (c.name.clone(), e))).collect()
    }

    /// Steps of each stage, with `--steps` applied: the stages that are reached, the last of them cut or stretched.
    fn stage_lengths(&self) -> Vec<u64> {
        let mut lengths: Vec<u64> = self.plan.stages.iter().map(|s| s.stage.steps).collect();
        let Some(mut left) = self.options.steps else { return lengths };
        let last = lengths.len() - 1;
        for k in 0..=last {
            if left <= lengths[k] || k == last {
                lengths[k] = left;
                lengths.truncate(k + 1);
                break;
            }
            left -= lengths[k];
        }
        lengths
    }

    /// Time since the start of the run; one product, so that it does not depend on how steps were taken together.
    fn time(&self) -> f64 {
        let dt = self.plan.stages.get(self.place.stage as usize).map_or(0.0, |s| s.stage.dt);
        self.place.stage_time + self.place.stage_step as f64 * dt
    }

    fn facts(&self, stage: &StagePlan) -> FrameFacts {
        FrameFacts {
            n: self.plan.snapshot.len() as u64,
            degrees_of_freedom: degrees_of_freedom(self.plan, stage),
            dimensions: self.plan.snapshot.dimensions,
            time: self.time(),
        }
    }

    /// Analyzers due now, by their place in the stage.
    fn due(&mut self, stage: &StagePlan, step: u64) -> Vec<usize> {
        let due = stage
            .analyzers
            .iter()
            .enumerate()
            .filter(|(_, a)| step.is_multiple_of(a.needs.period.max(1)) && self.last_due.get(&a.id) != Some(&step));
        let due: Vec<usize> = due.map(|(i, _)| i).collect();
        for i in &due {
            self.last_due.insert(stage.analyzers[*i].id, step);
        }
        due
    }

    fn stage(&mut self, stage: &StagePlan, steps: u64, resumed: bool) -> Result<()> {
        if !self.options.quiet {
            info!("stage `{}`: {} steps of dt {}", stage.stage.name, steps, stage.stage.dt);
            let facts = serde_json::json!({"stage": stage.stage.name, "steps": steps, "dt": stage.stage.dt});
            crate::log::event("stage", facts);
        }
        let thermo = self.wanted_at(stage, self.backend.step()) == Wanted::ALL;
        // an analyzer that was not there before, and is due at once, needs energies that the checkpoint does not have
        let fresh = !resumed || (thermo && self.sums.is_none());
        self.mid_step = true;
        self.backend.begin_stage(stage, !fresh)?;
        self.mid_step = false;
        self.sums_are_good = fresh || self.sums.is_some();
        let mut progress =
            Progress::new(&stage.stage.name, self.place.stage_step, steps, self.options.display.as_deref());
        if self.summary.start_up == 0.0 {
            self.summary.start_up = self.begun.elapsed().as_secs_f64();
        }
        let clock = Instant::now();
        let mut chunk = 1;
        let (mut look, mut left) = (None::<Instant>, 0);
        loop {
            let step = self.backend.step();
            let due = self.due(stage, step);
            let tick = Instant::now();
            self.analyze(stage, &due)?;
            self.summary.shares.analyzers += tick.elapsed().as_secs_f64();
            if self.place.stage_step >= steps || self.is_stopped() {
                break;
            }
            let tick = Instant::now();
            self.update(stage, step)?;
            self.summary.shares.updaters += tick.elapsed().as_secs_f64();
            if self.checkpoint_is_due(step) {
                self.checkpoint()?;
            }
            let next = self.next_event(stage, step, steps);
            let wanted = self.wanted_at(stage, next);
            let mut n = (next - step).min(chunk);
            if left == 0 && self.place.stage_step >= FIRST_LOOK && look.is_none_or(|l| l.elapsed() > LOOKS) {
                (look, left) = (Some(Instant::now()), LOOK);
            }
            let looks = left > 0;
            if looks {
                n = n.min(left);
                left -= n;
                self.backend.begin_profile();
            }
            let tick = Instant::now();
            self.mid_step = true;
            let done =
                self.backend.advance(n, if n == next - step { wanted } else { Wanted::FORCE }, &self.options.stop)?;
            self.mid_step = false;
            if looks {
                add_timings(&mut self.summary.spent.timings, self.backend.end_profile()?);
                self.summary.spent.steps += done;
            }
            crate::activity::beat();
            self.sums = None;
            self.sums_are_good = wanted == Wanted::ALL && n == next - step && done == n;
            self.place.stage_step += done;
            self.summary.steps += done;
            // as many steps at once as fit between two ticks
            let took = tick.elapsed();
            self.summary.shares.steps += took.as_secs_f64();
            self.clock.passed(took);
            if n == chunk && took < TICK / 2 && !looks {
                chunk *= 2;
            } else if took > TICK {
                chunk = (chunk / 2).max(1);
            }
            progress.update(self.place.stage_step, self.summary.thermo.as_ref());
        }
        progress.finish();
        self.summary.seconds += clock.elapsed().as_secs_f64();
        self.summary.interrupted = self.place.stage_step < steps;
        Ok(())
    }

    /// Lets the analyzers that are due look at the state. One that fails is still due, and so are those after it: a
    /// checkpoint written now lets them catch up.
    fn analyze(&mut self, stage: &StagePlan, due: &[usize]) -> Result<()> {
        if due.is_empty() {
            return Ok(());
        }
        let facts = self.facts(stage);
        let others = &mut self.summary.spent.others;
        let (thermo, failed) = analyze(self.backend, stage, facts, due, self.sums.as_ref(), others)?;
        if thermo.is_some() {
            self.summary.thermo = thermo;
        }
        let Some((place, e)) = failed else { return Ok(()) };
        for i in &due[place..] {
            self.last_due.remove(&stage.analyzers[*i].id);
        }
        Err(e)
    }

    fn update(&mut self, stage: &StagePlan, step: u64) -> Result<()> {
        for u in &stage.updaters {
            if step.is_multiple_of(u.needs.period.max(1)) && self.last_due.insert(u.id, step) != Some(step) {
                self.mid_step = true;
                let begun = Instant::now();
                // energies that nobody asked for are not kept up to date
                self.backend.update(u, if self.sums_are_good { Wanted::ALL } else { Wanted::FORCE })?;
                self.mid_step = false;
                *self.summary.spent.others.entry(u.name.clone()).or_default() += begun.elapsed().as_secs_f64();
            }
        }
        Ok(())
    }

    /// The next step at which anything is due.
    fn next_event(&self, stage: &StagePlan, step: u64, steps: u64) -> u64 {
        let end = step + (steps - self.place.stage_step);
        let parts = stage.analyzers.iter().chain(&stage.updaters).map(|c| c.needs.period);
        parts.chain(self.plan.pipeline.checkpoint.every).map(|p| (step / p.max(1) + 1) * p.max(1)).fold(end, u64::min)
    }

    /// What forces at `step` must come with.
    fn wanted_at(&self, stage: &StagePlan, step: u64) -> Wanted {
        let mut parts = stage.analyzers.iter().chain(&stage.updaters);
        let thermo = parts.any(|c| c.needs.wants.thermo && step.is_multiple_of(c.needs.period.max(1)));
        if thermo { Wanted::ALL } else { Wanted::FORCE }
    }

    /// Whether the run has to end here: it was told to, or its time is over.
    fn is_stopped(&self) -> bool {
        let over = self.clock.out_of_time(self.writer.slowest());
        if over {
            info!("the time is over: the rest of it is for the checkpoint");
        }
        over || self.options.stop.load(Ordering::Relaxed)
    }

    fn checkpoint_is_due(&mut self, step: u64) -> bool {
        let every = self.plan.pipeline.checkpoint.every;
        let by_step = every.is_some_and(|e| step.is_multiple_of(e))
            && step > self.plan.snapshot.step
            && self.last_due.insert(u32::MAX, step) != Some(step);
        let told = self.options.save.swap(false, Ordering::Relaxed);
        by_step || told || self.clock.checkpoint_due(self.writer.slowest().is_some())
    }

    /// Copies the state; it is written while the run goes on.
    fn checkpoint(&mut self) -> Result<()> {
        let begun = Instant::now();
        let state = self.backend.export()?;
        let mut components = BTreeMap::new();
        for c in &self.plan.components {
            components.insert(c.id, c.save()?);
        }
        let sums = match &self.sums {
            Some(s) => Some(s.clone()),
            None if self.sums_are_good => Some(self.backend.sums()?),
            None => None,
        };
        let (place, last_due) = (self.place, self.last_due.clone());
        let image = Checkpoint { place, last_due, sums, state, components }.image(self.plan)?;
        self.writer.begin(image)?;
        self.clock.saved(begun.elapsed());
        self.summary.shares.checkpoints += begun.elapsed().as_secs_f64();
        let (step, file) = (self.backend.step(), self.writer.path());
        crate::log::event("checkpoint", serde_json::json!({"step": step, "file": file}));
        debug!("the run waited {:.3} s for its checkpoint", begun.elapsed().as_secs_f64());
        Ok(())
    }

    /// Ends a run that broke: everything that can be saved is saved.
    fn failed(&mut self, e: Error) -> Failure {
        let mut notes = vec![];
        for (name, e) in self.finish() {
            notes.push(format!("{name} could not end its files: {e}"));
        }
        // after a NaN, or with half of the particles moved, there is no sound state to save
        let sound = !self.mid_step && !matches!(e, Error::Unstable { .. } | Error::Device { .. });
        let path = self.writer.path().to_path_buf();
        if let Err(e) = self.writer.end() {
            notes.push(e.to_string());
        }
        let earlier = || match files::present(&path).first() {
            Some(p) => format!("; an earlier checkpoint is in {}", p.display()),
            None => String::new(),
        };
        if sound && self.summary.steps > 0 {
            match self.checkpoint().and_then(|()| self.writer.end()) {
                Ok(_) => {
                    notes.push(format!("the state of step {} is saved in {}", self.backend.step(), path.display()))
                }
                Err(e) => notes.push(format!("no checkpoint could be written: {e}{}", earlier())),
            }
        } else if !files::present(&path).is_empty() {
            notes.push(earlier().trim_start_matches("; ").into());
        }
        if !files::present(&path).is_empty() {
            notes.push(format!("go on with: galamost --pipeline {} --resume", self.plan.pipeline.path.display()));
        }
        let at = match &e {
            Error::Unstable { .. } => String::new(),
            _ => format!("step {}: ", self.backend.step()),
        };
        Failure::Run(format!("{at}{e}"), notes)
    }
}
