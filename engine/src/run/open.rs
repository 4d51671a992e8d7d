//! Opens the device of a plan.

use crate::backend::Backend;
use crate::cpu;
use crate::diagnostic::Failure;
use crate::gpu::{GpuSystem, RankedSystem};
use crate::plan::Plan;

/// Opens the device of a plan and uploads the initial state.
///
/// # Errors
/// Returns the driver's error, or a state that does not fit the device.
pub fn open(plan: &Plan) -> Result<Box<dyn Backend>, Failure> {
    open_shared(plan, 1)
}

/// Like [`open`], for one of `runs` simultaneous runs that share the device.
///
/// # Errors
/// As for [`open`].
pub fn open_shared(plan: &Plan, runs: u32) -> Result<Box<dyn Backend>, Failure> {
    let ranks = plan.pipeline.gpus;
    if ranks > 1 || std::env::var_os("GALAMOST_ONE_RANK").is_some() {
        return match plan.device.open_ranks(ranks)? {
            None => Ok(cpu::backend(plan)?),
            Some(devices) => Ok(Box::new(RankedSystem::new(plan, devices)?)),
        };
    }
    match plan.device.open_shared(runs)? {
        None => Ok(cpu::backend(plan)?),
        Some(device) => Ok(Box::new(GpuSystem::new(plan, device)?)),
    }
}
