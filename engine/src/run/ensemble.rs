//! Runs pipelines of samplers: static Monte Carlo without particles and time steps.
//!
//! The loop is that of a run, with batches in place of steps: samplers run one after the other, batch by batch, with
//! progress, the stop flag, checkpoints and `--resume`. In a checkpoint, the stage is the index of the sampler and the
//! stage step is the number of batches it has drawn.

use crate::checkpoint::outputs::marks;
use crate::checkpoint::{Checkpoint, RunPosition, Writer, files};
use crate::diagnostic::Failure;
use crate::plan::Plan;
use crate::plugins::Component;
use crate::plugins::host::HostServices;
use crate::run::frame::fault;
use crate::run::outputs;
use crate::run::{Clock, Progress, RunOptions, Summary};
use crate::state::RawState;
use galamost_plugin_api::error::{Error, Result};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Draws all batches of a plan, or the number that the options give.
///
/// # Errors
/// Returns the cause of the failure, and what was saved.
pub fn run(plan: &Plan, options: &RunOptions, resume: Option<Checkpoint>) -> std::result::Result<Summary, Failure> {
    let host = match plan.device.open()? {
        None => HostServices::cpu(),
        Some(device) => HostServices::new(device, plan.pipeline.precision),
    };
    let settings = &plan.pipeline.checkpoint;
    let mut run = Run {
        plan,
        options,
        summary: Summary::default(),
        position: RunPosition::default(),
        total: 0,
        saved: None,
        writer: Writer::new(plan.pipeline.checkpoint_path(), settings.keep),
        clock: Clock::new(options.started, options.walltime, settings.minutes),
    };
    match run.all(&host, resume) {
        Ok(()) => Ok(run.summary),
        Err(e) => Err(run.failed(&e)),
    }
}

/// Returns a checkpoint in the first sampler of a plan, with its saved state.
pub fn checkpoint_at(plan: &Plan, batches: u64, saved: Vec<u8>) -> Checkpoint {
    let position = RunPosition { stage: 0, stage_step: batches, stage_time: 0.0 };
    let components = plan.components.first().map(|c| (c.id, saved)).into_iter().collect();
    Checkpoint {
        position,
        last_due: BTreeMap::new(),
        sums: None,
        exchange: None,
        state: state(batches),
        components,
        save_soon: false,
    }
}

fn state(batches: u64) -> RawState {
    RawState { step: batches, ..RawState::default() }
}

struct Run<'a> {
    plan: &'a Plan,
    options: &'a RunOptions,
    summary: Summary,
    position: RunPosition,
    /// Batches of all samplers, including earlier runs.
    total: u64,
    /// Batches of all samplers at the last checkpoint that this run has written.
    saved: Option<u64>,
    writer: Writer,
    clock: Clock,
}

/// The longest time between two updates of the progress bar.
const TICK: Duration = Duration::from_millis(200);

impl Run<'_> {
    fn all(&mut self, host: &HostServices, resume: Option<Checkpoint>) -> Result<()> {
        if let Some(c) = resume {
            for sampler in &self.plan.components {
                if let Some(state) = c.components.get(&sampler.id).filter(|s| !s.is_empty()) {
                    sampler.load(state)?;
                }
            }
            (self.position, self.total) = (c.position, c.state.step);
        } else {
            outputs::clear(self.plan, false, false)?;
        }
        for sampler in &self.plan.components {
            sampler.start(host.wire()).map_err(|e| fault(&sampler.name, e))?;
        }
        let first = self.position.stage;
        for (k, sampler) in self.plan.components.iter().enumerate().skip(first as usize) {
            if k as u64 != first {
                self.position = RunPosition { stage: k as u64, ..RunPosition::default() };
            }
            self.sampler(sampler)?;
            if self.summary.interrupted || self.left() == 0 {
                break;
            }
        }
        for sampler in &self.plan.components {
            sampler.finish().map_err(|e| fault(&sampler.name, e))?;
        }
        let wanted = self.summary.interrupted || (self.plan.pipeline.checkpoint.regular() && self.summary.steps > 0);
        if wanted && self.saved != Some(self.total) {
            self.checkpoint()?;
        }
        self.summary.total_steps = self.total;
        if self.writer.end()?.is_some() {
            self.summary.checkpoint = Some(self.writer.path().into());
        }
        files::touch(self.writer.path());
        Ok(())
    }

    /// Returns how many batches `--steps` still allows.
    fn left(&self) -> u64 {
        self.options.steps.map_or(u64::MAX, |n| n.saturating_sub(self.total))
    }

    fn sampler(&mut self, sampler: &Component) -> Result<()> {
        let part = sampler.sampler().ok_or_else(|| Error::Run(format!("{} is no sampler", sampler.name)))?;
        let batches = sampler.needs.batches;
        let mut progress =
            Progress::new(&sampler.name, self.position.stage_step, batches, self.options.display.as_deref());
        let (clock, mut tick) = (Instant::now(), Instant::now());
        while self.position.stage_step < batches && self.left() > 0 {
            if self.options.stop.load(Ordering::Relaxed) || self.clock.out_of_time(self.writer.slowest()) {
                self.summary.interrupted = true;
                break;
            }
            let begun = Instant::now();
            part.sample(self.position.stage_step)?;
            self.clock.passed(begun.elapsed());
            crate::activity::beat();
            self.position.stage_step += 1;
            self.total += 1;
            self.summary.steps += 1;
            if tick.elapsed() > TICK {
                progress.update(self.position.stage_step, None);
                tick = Instant::now();
            }
            let due = self.plan.pipeline.checkpoint.every.is_some_and(|every| self.total.is_multiple_of(every))
                || self.options.save.swap(false, Ordering::Relaxed)
                || self.clock.checkpoint_due(self.writer.slowest().is_some());
            if due && self.position.stage_step < batches {
                self.checkpoint()?;
            }
        }
        progress.finish();
        self.summary.seconds += clock.elapsed().as_secs_f64();
        Ok(())
    }

    fn checkpoint(&mut self) -> Result<()> {
        let begun = Instant::now();
        let mut components = BTreeMap::new();
        for c in &self.plan.components {
            components.insert(c.id, c.save().map_err(|e| fault(&c.name, e))?);
        }
        let (position, last_due) = (self.position, BTreeMap::new());
        let checkpoint = Checkpoint {
            position,
            last_due,
            sums: None,
            exchange: None,
            state: state(self.total),
            components,
            save_soon: false,
        };
        self.writer.begin(checkpoint.encode(self.plan, marks(self.plan)?)?)?;
        self.saved = Some(self.total);
        self.clock.saved(begun.elapsed());
        Ok(())
    }

    /// Ends a failed run. Nothing is saved, because the sums of an interrupted batch may be incomplete.
    fn failed(&mut self, e: &Error) -> Failure {
        let mut notes = vec![];
        if let Err(e) = self.writer.end() {
            notes.push(e.to_string());
        }
        files::touch(self.writer.path());
        if let Some(newest) = files::present(self.writer.path()).first() {
            notes.push(format!("an earlier checkpoint is in {}", newest.display()));
            notes.push(format!("resume with: galamost --pipeline {} --resume", self.plan.pipeline.path.display()));
        }
        Failure::Run(format!("batch {}: {e}", self.total), notes)
    }
}
