//! A checkpoint that a run resumes from: whether it belongs to the run, and the states that it gives to the components.

use super::changes::changes;
use super::{Checkpoint, Header, had_name, outputs, steps};
use crate::diagnostic::{Diagnostic, Failure};
use crate::plan::Plan;
use galamost_plugin_api::error::InputError;
use galamost_plugin_api::precision::Precision;
use std::path::Path;
use tracing::{info, warn};

/// Returns an error of the checkpoint in a file.
fn wrong(path: &Path, message: String) -> Failure {
    Failure::Input(vec![Diagnostic::new(path, None, message)])
}

impl Checkpoint {
    /// Checks that the checkpoint belongs to a run, and converts it to the run's precision if that is allowed.
    pub(super) fn adopt(&mut self, path: &Path, then: &Header, plan: &Plan, changed: bool) -> Result<(), Failure> {
        let (soft, mut hard) = self.differences(then, plan);
        if !hard.is_empty() {
            hard.extend(soft);
            return Err(wrong(path, format!("belongs to another run: {}", hard.join("; "))));
        }
        if !soft.is_empty() && !changed {
            let taken = self.take_over(path, then, plan);
            let complete = |_: Vec<String>| steps::check_stages(plan, self).map_err(|m| wrong(&plan.pipeline.path, m));
            let (hint, more) = match taken.and_then(complete) {
                Ok(()) => ("; --resume-changed accepts it", vec![]),
                // with the option, these errors would remain
                Err(Failure::Input(more)) => ("", more),
                Err(other) => return Err(other),
            };
            let message = format!("was written with other settings: {}{hint}", soft.join("; "));
            let mut all = vec![Diagnostic::new(path, None, message)];
            all.extend(more);
            return Err(Failure::Input(all));
        }
        let begun_anew = self.take_over(path, then, plan)?;
        for what in soft {
            warn!("{}: {what}: the results will differ from those of an uninterrupted run", path.display());
        }
        for what in begun_anew {
            warn!("{}: {what}", path.display());
        }
        for change in changes(&then.pipeline, &plan.pipeline.text, then.position.stage).iter().filter(|c| c.allowed) {
            info!("changed since {} was written: {}", path.display(), change.what);
        }
        if then.device != plan.device.name() {
            warn!(
                "the checkpoint was written on {}, this run uses {}: results will not be bit-identical",
                then.device,
                plan.device.name()
            );
        }
        Ok(())
    }

    /// Checks what `--resume-changed` does not accept, and gives the components their states. Returns warnings about analyzers that start
    /// anew.
    fn take_over(&mut self, path: &Path, then: &Header, plan: &Plan) -> Result<Vec<String>, Failure> {
        let foreign = then.outputs.as_ref().map_or(vec![], |then| outputs::compare(then, plan));
        self.save_soon = then.outputs.as_ref().is_some_and(|then| outputs::has_new(then, plan));
        if !foreign.is_empty() {
            return Err(Failure::Input(foreign));
        }
        let of = (0..3).filter_map(Precision::from_u32).find(|p| p.name() == then.precision);
        let of = of.ok_or_else(|| wrong(path, format!("has an unknown precision {}", then.precision)))?;
        if plan.pipeline.ensemble.is_empty() {
            self.fits(plan, of).map_err(|e| wrong(path, format!("does not fit this system: {e}")))?;
            if of != plan.pipeline.precision {
                let arrays = plan.components.iter().flat_map(|c| &c.needs.arrays);
                let converted = self.state.convert(of, plan.pipeline.precision, plan.snapshot.len(), arrays);
                converted.map_err(|e| wrong(path, e.to_string()))?;
                // forces and their energies are recomputed
                self.sums = None;
            }
        }
        // an analyzer of a later stage may have replaced another one
        let is_same = |id: &u32| then.names.get(id).zip(plan.component(*id)).is_some_and(|(name, c)| had_name(c, name));
        self.components.retain(|id, _| is_same(id));
        let mut begun_anew = self.drop_other_lags(&then.lags, plan)?;
        begun_anew.extend(self.drop_changed_analyzers(&then.pipeline, plan)?);
        self.load(plan)?;
        Ok(begun_anew)
    }

    /// Gives the components their saved states. They are taken out of the checkpoint.
    fn load(&mut self, plan: &Plan) -> Result<(), Failure> {
        let mut errors: Vec<Diagnostic> = vec![];
        for component in &plan.components {
            let saved = self.components.remove(&component.id).filter(|s| !s.is_empty());
            if let Some(Err(e)) = saved.map(|s| component.load(&s)) {
                let e = InputError::new(e.to_string());
                // components of two stages may share a file
                if errors.iter().any(|other| other.message == e.message) {
                    continue;
                }
                errors.push(Diagnostic::of_component(&plan.pipeline.path, component.at, &component.name, e));
            }
        }
        if errors.is_empty() { Ok(()) } else { Err(Failure::Input(errors)) }
    }
}
