//! Opens the device of a plan.

use crate::backend::Backend;
use crate::cpu;
use crate::diagnostic::Failure;
use crate::gpu::GpuSystem;
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
    match plan.device.open_shared(runs)? {
        None => Ok(cpu::backend(plan)?),
        Some(device) => Ok(Box::new(GpuSystem::new(plan, device)?)),
    }
}
