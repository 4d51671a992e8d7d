//! Generators make the initial state.

use super::Check;
use crate::plugins::Component;
use galamost_plugin_api::generator::GeneratorContext;
use galamost_plugin_api::snapshot::Snapshot;
use tracing::warn;

/// Runs the generators. Returns `None` if one of them failed or could not be created.
pub fn generate(c: &mut Check<'_>, generators: &[Option<Component>], existing: Option<Snapshot>) -> Option<Snapshot> {
    if c.pipeline.initial.is_empty() && existing.is_some() {
        return existing;
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
    let result = snapshot.check();
    c.absorb(&last.name, last.at, result)?;
    Some(snapshot)
}
