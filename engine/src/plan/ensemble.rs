//! The check of a pipeline of samplers.

use super::Check;
use crate::device::{self, Chosen};
use crate::diagnostic::Failure;
use crate::plugins::Component;
use galamost_plugin_api::component::SystemInfo;
use galamost_plugin_api::plugin_record::API_MINOR;
use std::sync::Arc;

/// Device, system and samplers of a pipeline that passed its check.
pub(crate) type Checked = (Chosen, SystemInfo, Vec<Arc<Component>>);

/// Makes and binds the samplers of a pipeline.
///
/// # Errors
/// Every mistake found.
pub(crate) fn check(c: &mut Check<'_>, resumed: bool) -> Result<Checked, Failure> {
    let made = c.create("ensemble", &c.pipeline.ensemble);
    let device = match device::choose(c.pipeline.device) {
        Ok(d) => Some(d),
        Err(message) => {
            c.say(c.pipeline.device_at, message);
            None
        }
    };
    let system = SystemInfo {
        seed: c.pipeline.seed,
        precision: c.pipeline.precision as u32,
        device: device.as_ref().map_or("cpu", Chosen::kind).into(),
        directory: c.pipeline.directory().to_string_lossy().into_owned(),
        resumed,
        api_minor: API_MINOR,
        ..SystemInfo::default()
    };
    let mut samplers = vec![];
    for mut sampler in made.into_iter().flatten() {
        let (name, at) = (sampler.name.clone(), sampler.at);
        let told = SystemInfo { component: sampler.id, ..system.clone() };
        if c.absorb(&name, at, sampler.bind(&told)).is_none() {
            continue;
        }
        let (has, what) = match &device {
            Some(Chosen::Cpu { .. }) => (sampler.needs.cpu, "the CPU"),
            _ => (sampler.needs.cuda, "CUDA"),
        };
        if !has {
            c.say(Some(at), format!("{name} has no code for {what}; choose another `device`"));
        }
        samplers.push(Arc::new(sampler));
    }
    match device {
        Some(device) if c.errors.is_empty() => Ok((device, system, samplers)),
        _ => Err(Failure::Input(std::mem::take(&mut c.errors))),
    }
}
