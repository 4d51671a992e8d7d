//! Generators make the initial state.

use super::Check;
use crate::plan::fits_precision;
use crate::plugins::Component;
use galamost_plugin_api::error::Error;
use galamost_plugin_api::generator::GeneratorContext;
use galamost_plugin_api::snapshot::Snapshot;
use tracing::warn;

/// Runs the generators. Returns `None` if one of them failed or could not be created.
pub fn generate(c: &mut Check<'_>, generators: &[Option<Component>], existing: Option<Snapshot>) -> Option<Snapshot> {
    if let Some(state) = existing.as_ref().filter(|_| c.pipeline.initial.is_empty()) {
        return is_valid(c, state, None).then_some(existing)?;
    }
    if c.pipeline.initial.is_empty() {
        // errors of the pipeline's own fields may be the reason
        if c.errors.is_empty() {
            c.error(None, "`initial` is empty; add a generator that creates or reads particles");
        }
        return None;
    }
    let mut snapshot = existing.unwrap_or_default();
    for g in generators {
        let g = g.as_ref()?;
        let context = GeneratorContext {
            seed: c.pipeline.seed,
            component: g.id,
            directory: c.pipeline.directory().to_string_lossy().into_owned(),
            threads: rayon::current_num_threads(),
        };
        let part = g.generator()?;
        c.absorb(&g.name, g.at, part.generate(&context, &mut snapshot))?;
        for warning in c.absorb(&g.name, g.at, part.warnings())? {
            warn!("{}: {warning}", g.name);
        }
    }
    let last = generators.last()?.as_ref()?;
    is_valid(c, &snapshot, Some(last)).then_some(snapshot)
}

/// Checks a state, which the last generator has completed.
fn is_valid(c: &mut Check<'_>, state: &Snapshot, last: Option<&Component>) -> bool {
    let result = state.check().and_then(|()| fits_precision(state, c.pipeline.precision));
    match (last, result) {
        (_, Ok(())) => true,
        (Some(g), result) => c.absorb(&g.name, g.at, result).is_some(),
        (None, Err(Error::Input(errors))) => {
            errors.into_iter().for_each(|e| c.error(None, e.message));
            false
        }
        (None, Err(e)) => {
            c.error(None, e.to_string());
            false
        }
    }
}
