//! Numbers of steps of a checkpoint and of the run that resumes from it.

use super::Checkpoint;
use crate::diagnostic::counted;
use crate::plan::Plan;

impl Checkpoint {
    /// Checks that a run has at least as many steps as the checkpoint, and that complete stages or samplers have the same.
    /// `steps` is the total number of steps, if it is not that of the pipeline.
    ///
    /// # Errors
    /// Returns a message with both numbers, or with the complete stages or samplers.
    pub fn check_steps(&self, plan: &Plan, steps: Option<u64>) -> Result<(), String> {
        check_stages(plan, self)?;
        let done = self.state.step.saturating_sub(plan.snapshot.step);
        let (noun, of_pipeline) = match plan.pipeline.ensemble.is_empty() {
            true => ("step", plan.stages.iter().fold(0, |n: u64, s| n.saturating_add(s.stage.steps))),
            false => ("batch", plan.components.iter().map(|c| c.needs.batches).sum()),
        };
        if done <= steps.unwrap_or(of_pipeline) {
            return Ok(());
        }
        let end = match steps {
            Some(n) => format!("--steps {n}"),
            None => format!("the {} of the pipeline; give --steps", counted(of_pipeline, noun)),
        };
        Err(format!("the checkpoint is at {noun} {done}, which is beyond {end}"))
    }
}

/// Checks that the stages before that of a checkpoint have the steps that the run took in them, and samplers their batches.
///
/// # Errors
/// Returns a message with the stages or samplers and both lengths.
pub(super) fn check_stages(plan: &Plan, checkpoint: &Checkpoint) -> Result<(), String> {
    let position = checkpoint.position;
    let stage = position.stage as usize;
    let ensemble = !plan.pipeline.ensemble.is_empty();
    let (part, noun, field) = if ensemble { ("sampler", "batch", "chains") } else { ("stage", "step", "steps") };
    let all: Vec<(&str, u64)> = match ensemble {
        true => plan.components.iter().map(|c| (c.name.as_str(), c.needs.batches)).collect(),
        false => plan.stages.iter().map(|s| (s.stage.name.as_str(), s.stage.steps)).collect(),
    };
    // removed stages are another difference
    let Some(complete) = all.get(..stage) else { return Ok(()) };
    let taken = checkpoint.state.step.saturating_sub(plan.snapshot.step).saturating_sub(position.stage_step);
    let planned = complete.iter().fold(0, |n: u64, (_, length)| n.saturating_add(*length));
    if stage > 0 && planned != taken {
        let names: Vec<String> = complete.iter().map(|(name, _)| format!("`{name}`")).collect();
        let (plural, ended) = if stage == 1 { ("", "is") } else { ("s", "are") };
        let (taken, planned) = (counted(taken, noun), counted(planned, noun));
        return Err(format!(
            "{part}{plural} {} {ended} complete with {taken}, but the pipeline has {planned}; restore the earlier `{field}`",
            names.join(", ")
        ));
    }
    Ok(())
}
