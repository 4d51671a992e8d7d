//! The check of a pipeline of samplers.

use super::{Bound, Check};
use crate::diagnostic::Failure;
use galamost_plugin_api::component::SystemInfo;
use galamost_plugin_api::snapshot::Snapshot;
use std::sync::Arc;

/// Creates and binds the samplers of a pipeline.
///
/// # Errors
/// Returns every error found.
pub fn check(c: &mut Check<'_>) -> Result<Bound, Failure> {
    let created = c.create("ensemble", &c.pipeline.ensemble);
    let device = c.choose_device();
    let processes = c.pipeline.processes.count;
    if c.pipeline.gpus != 1 {
        let message = format!("{} GPUs; a pipeline of samplers runs on one device; remove `--gpus`", c.pipeline.gpus);
        c.error(c.pipeline.gpus_at, message);
    }
    if processes > 1 {
        let advice = "samplers run in one process; start `galamost` without `mpiexec` or `srun`";
        let message = format!("{processes} processes; {advice}");
        c.error(None, message);
    }
    let system = c.system_info(None, device.as_ref());
    let mut samplers = vec![];
    for mut sampler in created.into_iter().flatten() {
        let (name, at) = (sampler.name.clone(), sampler.at);
        let own = SystemInfo { component: sampler.id, ..system.clone() };
        if c.absorb(&name, at, sampler.bind(&own)).is_none() {
            continue;
        }
        c.require_code(&sampler, device.as_ref());
        samplers.push(Arc::new(sampler));
    }
    let files = c.files(&samplers, &[]);
    match device {
        Some(device) if c.errors.is_empty() => Ok(Bound {
            device,
            snapshot: Snapshot::default(),
            system,
            generators: vec![],
            stages: vec![],
            components: samplers,
            groups: vec![],
            molecules: None,
            files,
        }),
        _ => Err(c.failure()),
    }
}
