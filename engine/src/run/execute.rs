//! The run loop, common to all backends.

use super::clock::Clock;
use super::ends::{Ended, FailedAt};
use super::exchange::ExchangeSeat;
use super::frame::{FrameFacts, analyze, fault};
use super::progress::{Progress, ProgressDisplay};
use super::stage_profile::StageProfile;
use crate::backend::{Backend, SystemSums, degrees_of_freedom};
use crate::checkpoint::{Checkpoint, RunPosition, Writer};
use crate::diagnostic::{Failure, counted};
use crate::plan::{EnergyColumn, Plan, StagePlan, box_warnings::BoxWarnings};
use crate::plugins::Component;
use crate::profile::{Timing, add_timings};
use galamost_plugin_api::analyzer::Thermo;
use galamost_plugin_api::error::Result;
use galamost_plugin_api::views::Wanted;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use tracing::info;

/// Options of a run.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// Total number of steps, instead of those of the stages: stages keep their order, the last one is shortened or
    /// extended.
    pub steps: Option<u64>,
    /// Logs less.
    pub quiet: bool,
    /// Shows progress; `None`: lines in the log.
    pub display: Option<Arc<dyn ProgressDisplay>>,
    /// Set by signals (Ctrl-C, SIGTERM and others): the run ends after the current step and writes a checkpoint.
    pub stop: Arc<AtomicBool>,
    /// Set by signals (SIGUSR1): the run writes a checkpoint and continues.
    pub save: Arc<AtomicBool>,
    /// Wall-time limit of the program.
    pub walltime: Option<Duration>,
    /// Start of the program; by default the start of the run.
    pub started: Option<Instant>,
    /// The part of a replica in the exchange of particles.
    pub exchange: Option<Arc<ExchangeSeat>>,
    /// Set when the run has failed.
    pub failed: Arc<OnceLock<FailedAt>>,
}

/// Results of a run.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Steps done.
    pub steps: u64,
    /// Steps since the start of the run, with those before the checkpoint from which it resumed.
    pub total_steps: u64,
    /// Seconds in the step loop.
    pub seconds: f64,
    /// The run was stopped by a signal or the wall-time limit.
    pub interrupted: bool,
    /// The checkpoint written at the end, if any.
    pub checkpoint: Option<PathBuf>,
    /// Thermodynamic values of the last sample.
    pub thermo: Option<Thermo>,
    /// Seconds from the start to the first step.
    pub start_up: f64,
    /// Seconds of the step loop by activity.
    pub loop_times: LoopTimes,
    /// Seconds by component.
    pub component_times: ComponentTimes,
    /// What the exchange between replicas has achieved, for the record.
    pub exchange: Option<serde_json::Value>,
}

/// Seconds of the step loop by activity.
#[derive(Clone, Copy, Debug, Default)]
pub struct LoopTimes {
    /// Time steps.
    pub steps: f64,
    /// Analyzers, including the copies that they wait for.
    pub analyzers: f64,
    /// Updaters.
    pub updaters: f64,
    /// Waiting for checkpoints.
    pub checkpoints: f64,
}

/// Times of components: profiled steps, and analyzers and updaters.
#[derive(Clone, Debug, Default)]
pub struct ComponentTimes {
    /// Number of profiled steps.
    pub steps: u64,
    /// Their times by component and kernel.
    pub timings: Vec<Timing>,
    /// Seconds of each analyzer and updater in the whole run.
    pub others: BTreeMap<String, f64>,
}

/// Steps of one profile.
const PROFILE_STEPS: u64 = 16;
/// Steps of a stage before the first profile, so lists and caches are in their steady state.
const FIRST_PROFILE: u64 = 100;
/// Time between profiles.
const PROFILE_INTERVAL: Duration = Duration::from_secs(60);

/// The longest time between checks of the stop flag and updates of the progress.
const TICK: Duration = Duration::from_millis(200);

/// Runs a plan on a backend.
///
/// # Errors
/// Returns the cause of the failure, and what was saved.
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

/// How a stage advances. It outlives pauses, so a run in many short parts is as fast as one that does not pause.
struct Pace {
    /// Steps that are done at once.
    chunk: u64,
    last_profile: Option<Instant>,
    /// Steps left of the current profile.
    profile_left: u64,
}

impl Default for Pace {
    fn default() -> Self {
        Self { chunk: 1, last_profile: None, profile_left: 0 }
    }
}

pub(super) struct Run<'a> {
    pub(super) plan: &'a Plan,
    pub(super) backend: &'a mut dyn Backend,
    pub(super) options: &'a RunOptions,
    pub(super) summary: Summary,
    pub(super) position: RunPosition,
    /// Steps of each stage.
    pub(super) lengths: Vec<u64>,
    /// The current stage has begun on the backend.
    begun_stage: bool,
    /// Degrees of freedom in the current stage: frames need them, and counting takes a look at all particles.
    degrees_of_freedom: f64,
    /// The run resumed in the current stage.
    pub(super) resumed: bool,
    /// Step at which the run pauses; energies and virials are those of this step.
    pub(super) pause: u64,
    /// Step at which each component was last due, so a component of two stages is not due twice at their boundary.
    pub(super) last_due: BTreeMap<u32, u64>,
    /// Energies that each analyzer lists.
    energies: BTreeMap<u32, Vec<EnergyColumn>>,
    /// Sums of the step at which a resumed run starts, if the checkpoint has them.
    pub(super) sums: Option<SystemSums>,
    /// Whether the backend's energies and virials are those of the current step.
    pub(super) sums_are_valid: bool,
    /// A step, an update or the first force evaluation is in progress; if it fails, the state is invalid.
    pub(super) mid_step: bool,
    pace: Pace,
    /// Profiles of the stages so far.
    profiles: Vec<StageProfile>,
    /// What has been done at the end of the run.
    pub(super) ended: Ended,
    begun: Instant,
    pub(super) writer: Writer,
    pub(super) clock: Clock,
    pub(super) box_warnings: BoxWarnings,
}

impl<'a> Run<'a> {
    pub(super) fn new(plan: &'a Plan, backend: &'a mut dyn Backend, options: &'a RunOptions) -> Self {
        let settings = &plan.pipeline.checkpoint;
        Self {
            writer: Writer::new(plan.pipeline.checkpoint_path(), settings.keep),
            clock: Clock::new(options.started, options.walltime, settings.minutes),
            box_warnings: BoxWarnings::new(plan),
            plan,
            backend,
            options,
            summary: Summary::default(),
            position: RunPosition::default(),
            lengths: vec![],
            begun_stage: false,
            degrees_of_freedom: 0.0,
            resumed: false,
            pause: u64::MAX,
            last_due: BTreeMap::new(),
            energies: plan.components.iter().map(|c| (c.id, plan.energies_of(c.id))).collect(),
            sums: None,
            sums_are_valid: false,
            mid_step: false,
            pace: Pace::default(),
            profiles: vec![],
            ended: Ended::default(),
            begun: Instant::now(),
        }
    }

    fn all(&mut self, resume: Option<Checkpoint>) -> Result<()> {
        self.start(resume)?;
        self.lengths = self.stage_lengths();
        self.stages()?;
        self.end()
    }

    /// Runs the stages to their end, or until the run pauses or is stopped.
    pub(super) fn stages(&mut self) -> Result<()> {
        while let Some(steps) = self.lengths.get(self.position.stage as usize).copied() {
            if self.begun_stage && self.position.stage_step >= steps {
                if self.position.stage + 1 == self.lengths.len() as u64 {
                    break;
                }
                self.position = RunPosition { stage: self.position.stage + 1, stage_step: 0, stage_time: self.time() };
                self.begun_stage = false;
            }
            self.begin()?;
            // the state may have changed since the last step
            self.backend.expect_update(None);
            self.stage(&self.plan.stages[self.position.stage as usize], self.lengths[self.position.stage as usize])?;
            if self.summary.interrupted || self.backend.step() >= self.pause {
                break;
            }
        }
        Ok(())
    }

    /// Begins the current stage, unless it has begun.
    pub(super) fn begin(&mut self) -> Result<()> {
        if !std::mem::replace(&mut self.begun_stage, true) {
            let index = self.position.stage as usize;
            let resumed = std::mem::take(&mut self.resumed);
            self.pace = Pace::default();
            self.profiles.push(StageProfile::default());
            self.degrees_of_freedom = degrees_of_freedom(self.plan, &self.plan.stages[index]);
            self.begin_stage(&self.plan.stages[index], self.lengths[index], resumed)?;
        }
        Ok(())
    }

    /// Returns the steps of each stage. With `--steps`: only the stages that are reached, the last one shortened or
    /// extended.
    fn stage_lengths(&self) -> Vec<u64> {
        let mut lengths: Vec<u64> = self.plan.stages.iter().map(|s| s.stage.steps).collect();
        let Some(mut left) = self.options.steps else { return lengths };
        // stages before that of the checkpoint count with the steps that they took
        let before = lengths.get_mut(..self.position.stage as usize).and_then(<[u64]>::split_last_mut);
        if let Some((latest, earlier)) = before {
            earlier.fill(0);
            *latest = self.stage_begin().saturating_sub(self.plan.snapshot.step);
        }
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

    /// Returns the time since the start of the run. It is computed as one product, so it does not depend on how steps
    /// were grouped.
    fn time(&self) -> f64 {
        let dt = self.plan.stages.get(self.position.stage as usize).map_or(0.0, |s| s.stage.dt);
        self.position.stage_time + self.position.stage_step as f64 * dt
    }

    pub(super) fn facts(&self) -> FrameFacts<'_> {
        FrameFacts {
            energies: &self.energies,
            n: self.plan.snapshot.len() as u64,
            degrees_of_freedom: self.degrees_of_freedom,
            dimensions: self.plan.snapshot.dimensions,
            names: &self.plan.snapshot,
            time: self.time(),
        }
    }

    /// Returns the step at which the current stage began.
    fn stage_begin(&self) -> u64 {
        self.backend.step() - self.position.stage_step
    }

    /// Returns the indices of the analyzers that are due.
    pub(super) fn due(&mut self, stage: &StagePlan, step: u64, end: u64) -> Vec<usize> {
        let begin = self.stage_begin();
        let due = stage
            .analyzers
            .iter()
            .enumerate()
            .filter(|(_, a)| a.needs.is_due(step, begin, end) && self.last_due.get(&a.id) != Some(&step));
        let due: Vec<usize> = due.map(|(i, _)| i).collect();
        for id in due.iter().flat_map(|i| self.plan.group(&stage.analyzers[*i].id)) {
            self.last_due.insert(*id, step);
        }
        due
    }

    /// Begins a stage on the backend. A resumed stage takes forces and energies from the checkpoint.
    fn begin_stage(&mut self, stage: &StagePlan, steps: u64, resumed: bool) -> Result<()> {
        if !self.options.quiet {
            info!("stage `{}`: {}, dt {}", stage.stage.name, counted(steps, "step"), stage.stage.dt);
            let facts = serde_json::json!({"stage": stage.stage.name, "steps": steps, "dt": stage.stage.dt});
            crate::log::event("stage", facts);
        }
        let step = self.backend.step();
        let thermo = self.wanted_at(stage, step, step + (steps - self.position.stage_step)) == Wanted::ALL;
        // a new analyzer that is due at once needs energies that the checkpoint does not have
        let fresh = !resumed || (thermo && self.sums.is_none());
        self.mid_step = true;
        crate::activity::reached(self.backend.step());
        self.backend.begin_stage(stage, !fresh)?;
        self.mid_step = false;
        self.sums_are_valid = fresh || self.sums.is_some();
        Ok(())
    }

    /// Returns whether the next steps belong to a profile, and begins one when it is due.
    fn profile_is_due(&mut self) -> bool {
        let due = self.pace.last_profile.is_none_or(|l| l.elapsed() > PROFILE_INTERVAL);
        if due && self.pace.profile_left == 0 && self.position.stage_step >= FIRST_PROFILE {
            (self.pace.last_profile, self.pace.profile_left) = (Some(Instant::now()), PROFILE_STEPS);
        }
        self.pace.profile_left > 0
    }

    /// Runs a stage to its end, or until the run pauses or is stopped.
    fn stage(&mut self, stage: &StagePlan, steps: u64) -> Result<()> {
        let mut progress =
            Progress::new(&stage.stage.name, self.position.stage_step, steps, self.options.display.as_deref());
        if self.summary.start_up == 0.0 {
            self.summary.start_up = self.begun.elapsed().as_secs_f64();
        }
        let clock = Instant::now();
        loop {
            let step = self.backend.step();
            crate::activity::reached(step);
            self.writer.poll().and_then(|()| self.check_walls(stage)).and_then(|()| self.poll_files())?;
            let end = step + (steps - self.position.stage_step);
            let due = self.due(stage, step, end);
            let tick = Instant::now();
            self.analyze(stage, &due)?;
            self.summary.loop_times.analyzers += tick.elapsed().as_secs_f64();
            if self.position.stage_step >= steps
                || step >= self.pause
                || (self.is_stopped() && !self.exchange_is_due(step))
            {
                break;
            }
            let tick = Instant::now();
            self.update(stage, step)?;
            self.summary.loop_times.updaters += tick.elapsed().as_secs_f64();
            if self.exchange_is_due(step) && !self.exchange(stage)? {
                break;
            }
            self.checkpoint_if_due(step)?;
            self.balance(stage, step, end)?;
            let next = self.next_event(stage, step, end);
            let wanted = if next == self.pause { Wanted::ALL } else { self.wanted_at(stage, next, end) };
            let mut n = (next - step).min(self.pace.chunk);
            let profiling = self.profile_is_due();
            if profiling {
                n = n.min(self.pace.profile_left);
                self.pace.profile_left -= n;
                self.backend.begin_profile();
            }
            self.backend.expect_update(self.updater_after(stage, step + n, end));
            let tick = Instant::now();
            self.mid_step = true;
            let done =
                self.backend.advance(n, if n == next - step { wanted } else { Wanted::FORCE }, &self.options.stop)?;
            self.mid_step = false;
            if let Some(profile) = self.profiles.last_mut() {
                profile.steps += done;
                if profiling {
                    add_timings(&mut profile.timings, self.backend.end_profile()?);
                    profile.profiled += done;
                }
            }
            crate::activity::beat();
            // asked to stop before the first of these steps, the run still knows the energies of this one; without them in
            // its checkpoint, a resumed run would compute forces anew
            if done > 0 {
                self.sums = None;
                self.sums_are_valid = wanted == Wanted::ALL && n == next - step && done == n;
            }
            self.position.stage_step += done;
            self.summary.steps += done;
            // advance by as many steps at once as fit between two ticks
            let took = tick.elapsed();
            self.summary.loop_times.steps += took.as_secs_f64();
            self.clock.passed(took);
            if n == self.pace.chunk && took < TICK / 2 && !profiling {
                self.pace.chunk *= 2;
            } else if took > TICK {
                self.pace.chunk = (self.pace.chunk / 2).max(1);
            }
            progress.update(self.position.stage_step, self.summary.thermo.as_ref());
        }
        progress.finish();
        let times = &mut self.summary.component_times;
        (times.steps, times.timings) = StageProfile::weighted(&self.profiles);
        self.summary.seconds += clock.elapsed().as_secs_f64();
        self.summary.interrupted = self.position.stage_step < steps && self.backend.step() < self.pause;
        Ok(())
    }

    /// Calls the analyzers that are due. If one fails, it and those after it remain due, so a run resumed from a
    /// checkpoint written now calls them again.
    pub(super) fn analyze(&mut self, stage: &StagePlan, due: &[usize]) -> Result<()> {
        if due.is_empty() {
            return Ok(());
        }
        let facts = FrameFacts { energies: &self.energies, names: &self.plan.snapshot, ..self.facts() };
        let others = &mut self.summary.component_times.others;
        let (thermo, failed) = analyze(self.backend, stage, facts, due, self.sums.as_ref(), others)?;
        self.warn_of_box();
        if thermo.is_some() {
            self.summary.thermo = thermo;
        }
        let Some((index, e)) = failed else { return Ok(()) };
        for id in due[index..].iter().flat_map(|i| self.plan.group(&stage.analyzers[*i].id)) {
            self.last_due.remove(id);
        }
        Err(e)
    }

    fn update(&mut self, stage: &StagePlan, step: u64) -> Result<()> {
        for u in &stage.updaters {
            if step.is_multiple_of(u.needs.period.max(1)) && self.last_due.insert(u.id, step) != Some(step) {
                self.mid_step = true;
                let tick = Instant::now();
                // energies are updated only if they are in use
                let wanted = if self.sums_are_valid { Wanted::ALL } else { Wanted::FORCE };
                self.backend.update(u, wanted).map_err(|e| fault(&u.name, e))?;
                self.mid_step = false;
                *self.summary.component_times.others.entry(u.name.clone()).or_default() += tick.elapsed().as_secs_f64();
            }
        }
        self.check_walls(stage)
    }

    /// Returns the next step at which a component or a checkpoint is due.
    fn next_event(&self, stage: &StagePlan, step: u64, end: u64) -> u64 {
        let begin = self.stage_begin();
        let parts = stage.analyzers.iter().chain(&stage.updaters).map(|c| c.needs.next_due(step, begin));
        let checkpoint = self.plan.pipeline.checkpoint.every.map(|p| (step / p.max(1) + 1) * p.max(1));
        parts.chain(checkpoint).chain(self.next_exchange(step)).fold(end.min(self.pause), u64::min)
    }

    /// Lets ranks share the work of the next steps equally.
    fn balance(&mut self, stage: &StagePlan, step: u64, end: u64) -> Result<()> {
        // a session does not know its end: it may last as long again
        let left = (end - step).min(self.summary.steps.max(self.pause - step));
        self.mid_step = true;
        self.backend.balance(self.plan, stage, left)?;
        self.mid_step = false;
        Ok(())
    }

    /// Returns the updater that is called first at `step`, before anything else changes the state. The stage ends at step `end`.
    fn updater_after<'s>(&self, stage: &'s StagePlan, step: u64, end: u64) -> Option<&'s Arc<Component>> {
        let due = |u: &&Arc<Component>| step.is_multiple_of(u.needs.period.max(1));
        stage.updaters.iter().find(due).filter(|_| step < end.min(self.pause))
    }

    /// Returns what the force evaluation at `step` must compute. The stage ends at step `end`.
    fn wanted_at(&self, stage: &StagePlan, step: u64, end: u64) -> Wanted {
        let mut parts = stage.analyzers.iter().chain(&stage.updaters);
        let begin = self.stage_begin();
        let thermo = parts.any(|c| (c.needs.wants.thermo || c.needs.wants.forces) && c.needs.is_due(step, begin, end));
        if thermo || self.exchanges_at(step) { Wanted::ALL } else { Wanted::FORCE }
    }

    /// Returns whether the run must end now: a signal was received, or the wall time is used up.
    fn is_stopped(&self) -> bool {
        let over = self.clock.out_of_time(self.writer.slowest());
        if over {
            info!("the wall time is nearly over: writing the last checkpoint");
        }
        over || self.options.stop.load(Ordering::Relaxed)
    }
}
