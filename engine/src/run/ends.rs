//! The start and the end of a run, and its checkpoints.

mod cause;
mod failed_at;
mod growing;
pub(super) mod motion;

pub use failed_at::FailedAt;

use super::execute::Run;
use super::frame::fault;
use super::outputs;
use crate::activity;
use crate::checkpoint::outputs::{Outputs, marks};
use crate::checkpoint::{Checkpoint, files};
use crate::diagnostic::Failure;
use crate::plan::{StagePlan, wall_outside};
use crate::state::arrays::optional_name;
use crate::state::raw::reals;
use crate::state::{RawState, rotation};
use galamost_plugin_api::error::{Error, Result};
use growing::GrowingFiles;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Instant;
use tracing::debug;

/// What has been done at the end of a run.
#[derive(Default)]
pub(super) struct Ended {
    /// Components have been finished.
    finished: bool,
    /// The output files before that.
    outputs: Option<Outputs>,
    /// The growing files that components have open.
    growing: GrowingFiles,
    /// One of them is no longer the file of the run, so no checkpoint may have its length.
    lost: bool,
    /// The marks of the growing files at the last check that found all of them.
    sound: Option<Outputs>,
    /// The program has saved the present state in a checkpoint.
    pub(super) saved: bool,
    /// The program has replaced the state since the run began, or resumed.
    pub(super) replaced: bool,
}

impl Run<'_> {
    /// Starts the components, from a checkpoint if there is one.
    pub(super) fn start(&mut self, resume: Option<Checkpoint>) -> Result<()> {
        self.resumed = resume.is_some();
        if let Some(c) = resume {
            self.backend.import(&c.state)?;
            for component in &self.plan.components {
                if let Some(state) = c.components.get(&component.id).filter(|s| !s.is_empty()) {
                    component.load(state)?;
                }
            }
            self.position = c.position;
            self.last_due = c.last_due;
            self.sums = c.sums;
            // if this part is killed, the next one must recognize its files
            self.options.save.fetch_or(c.save_soon, Ordering::Relaxed);
        } else {
            outputs::clear(self.plan, false, false)?;
        }
        for component in &self.plan.components {
            self.backend.start(component).map_err(|e| fault(&component.name, e))?;
        }
        self.ended.growing = GrowingFiles::of(self.plan);
        Ok(())
    }

    /// Checks now and then that the growing files are those that components have open.
    pub(super) fn poll_files(&mut self) -> Result<()> {
        match self.ended.growing.poll() {
            Ok(false) => Ok(()),
            checked => self.keep_marks(checked.map(drop)),
        }
    }

    fn check_files(&mut self) -> Result<()> {
        // a state that is saved after a file was lost has the marks from before
        if self.ended.lost {
            return Ok(());
        }
        let checked = self.ended.growing.check();
        self.keep_marks(checked)
    }

    /// Keeps the marks of the files if all are those that components have open.
    fn keep_marks(&mut self, checked: Result<()>) -> Result<()> {
        match &checked {
            Ok(()) => self.ended.sound = marks(self.plan).ok(),
            Err(_) => self.ended.lost = true,
        }
        checked
    }

    /// Ends the run: components finish their files, and a checkpoint is written.
    pub(super) fn end(&mut self) -> Result<()> {
        self.check_motion()?;
        self.finish().into_iter().next().map_or(Ok(()), |(name, e)| Err(fault(&name, e)))?;
        self.check_files()?;
        // a completed run can be extended with `--steps` and `--resume`; a checkpoint of an earlier part would repeat the rest
        let kept = self.plan.pipeline.checkpoint.regular() || self.writer.path().exists();
        // what components append at the end is not part of a checkpoint, so one from before is the same
        let changed = self.summary.steps > 0 || self.ended.replaced;
        if !self.ended.saved && (self.summary.interrupted || (kept && changed)) {
            self.checkpoint()?;
        }
        self.summary.exchange = self.exchange_record();
        self.summary.total_steps = self.backend.step().saturating_sub(self.plan.snapshot.step);
        self.written()?;
        files::touch(self.writer.path());
        Ok(())
    }

    /// Waits until the checkpoint that is being written is complete.
    pub(super) fn written(&mut self) -> Result<()> {
        if self.writer.end()?.is_some() {
            self.summary.checkpoint = Some(self.writer.path().into());
        }
        Ok(())
    }

    /// Finishes every component once, and returns the errors.
    pub(super) fn finish(&mut self) -> Vec<(String, Error)> {
        if std::mem::replace(&mut self.ended.finished, true) {
            return vec![];
        }
        activity::finishing();
        // files that another program has removed or replaced must be found wrong by a resumed run
        self.ended.outputs = if self.ended.lost { self.ended.sound.take() } else { marks(self.plan).ok() };
        self.plan.components.iter().filter_map(|c| c.finish().err().map(|e| (c.name.clone(), e))).collect()
    }

    /// Ends a failed run and saves what can be saved.
    pub(super) fn failed(&mut self, e: Error) -> Failure {
        // a component may have noticed first that its file has changed
        let _ = self.check_files();
        let mut notes = vec![];
        for (name, e) in self.finish() {
            notes.push(format!("{name} could not finish its files: {e}"));
        }
        notes.extend(self.cause(&e));
        // after a NaN, or in the middle of a step, the state is invalid
        let valid = !self.mid_step && !matches!(e, Error::Unstable { .. } | Error::Device { .. });
        let path = self.writer.path().to_path_buf();
        if let Err(e) = self.writer.end() {
            notes.push(e.to_string());
        }
        let earlier = || match files::present(&path).first() {
            Some(p) => format!("; an earlier checkpoint is in {}", p.display()),
            None => String::new(),
        };
        if valid && self.summary.steps > 0 {
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
            notes.push(format!(
                "resume with: galamost --pipeline {} --resume",
                self.plan.pipeline.resumed_path().display()
            ));
        }
        files::touch(&path);
        let at = match &e {
            Error::Unstable { .. } => String::new(),
            _ => format!("step {}: ", self.backend.step()),
        };
        let message = format!("{at}{e}");
        // a second failure does not hide the first
        let _ = self.options.failed.set(FailedAt::of(self, &e, &message));
        Failure::Run(message, notes)
    }

    /// Logs warnings of components about the present box, if it has changed.
    pub(super) fn warn_of_box(&mut self) {
        let Some(stage) = self.plan.stages.get(self.position.stage as usize) else { return };
        if !stage.forces.iter().any(|f| f.needs.box_warnings) {
            return;
        }
        let (present, step) = (self.backend.box_length(), self.backend.step());
        self.box_warnings.log(self.plan, stage.forces.iter().map(|f| &**f), present, step);
    }

    /// Returns an error that names a wall if the box has become too small for it.
    pub(super) fn check_walls(&self, stage: &StagePlan) -> Result<()> {
        wall_outside(stage, self.backend.box_length()).map_or(Ok(()), |message| Err(Error::Run(message)))
    }

    /// Checks that no velocity is undefined after the steps so far.
    pub(super) fn check_motion(&mut self) -> Result<()> {
        if self.summary.steps > 0 { motion::check(self.backend, None) } else { Ok(()) }
    }

    /// Checks that no rotation is undefined, so that a run does not resume from such a state.
    fn check_rotation(&self, state: &RawState) -> Result<()> {
        let facts = self.backend.facts();
        for need in facts.arrays.iter().filter(|a| rotation::CHANGING.contains(&a.name.as_str())) {
            let values = reals(state.section(&optional_name(&need.name))?, facts.precision);
            rotation::check(state.step, &values, need.width)?;
        }
        Ok(())
    }

    /// Writes a checkpoint if one is due at this step; replicas write theirs together.
    pub(super) fn checkpoint_if_due(&mut self, step: u64) -> Result<()> {
        if self.options.exchange.is_none() && self.checkpoint_is_due(step) { self.checkpoint() } else { Ok(()) }
    }

    /// Returns whether a checkpoint is due at this step.
    pub(super) fn checkpoint_is_due(&mut self, step: u64) -> bool {
        let every = self.plan.pipeline.checkpoint.every;
        let by_step = every.is_some_and(|e| step.is_multiple_of(e))
            && step > self.plan.snapshot.step
            && self.last_due.insert(u32::MAX, step) != Some(step);
        let requested = self.options.save.swap(false, Ordering::Relaxed);
        by_step || requested || self.clock.checkpoint_due(self.writer.slowest().is_some())
    }

    /// Copies the state and starts writing it; the run continues meanwhile.
    pub(super) fn checkpoint(&mut self) -> Result<()> {
        let begun = Instant::now();
        self.warn_of_box();
        // a run must not resume from a state that is undefined
        self.check_motion()?;
        self.check_files()?;
        let state = self.backend.export()?;
        self.check_rotation(&state)?;
        let mut components = BTreeMap::new();
        for c in &self.plan.components {
            components.insert(c.id, c.save().map_err(|e| fault(&c.name, e))?);
        }
        let sums = match &self.sums {
            Some(s) => Some(s.clone()),
            None if self.sums_are_valid => Some(self.backend.sums()?),
            None => None,
        };
        let outputs = match &self.ended.outputs {
            Some(outputs) => outputs.clone(),
            None => marks(self.plan)?,
        };
        let (position, last_due) = (self.position, self.last_due.clone());
        let exchange = self.saved_exchange()?;
        let encoded = Checkpoint { position, last_due, sums, exchange, state, components, save_soon: false }
            .encode(self.plan, outputs)?;
        self.writer.begin(encoded)?;
        self.clock.saved(begun.elapsed());
        self.summary.loop_times.checkpoints += begun.elapsed().as_secs_f64();
        debug!("the run waited {:.3} s for its checkpoint", begun.elapsed().as_secs_f64());
        Ok(())
    }
}
