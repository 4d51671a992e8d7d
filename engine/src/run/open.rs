//! Opens the device of a plan.

use crate::backend::Backend;
use crate::cpu;
use crate::device::{Chosen, Device, ReplicaDevice, open_replicas};
use crate::diagnostic::Failure;
use crate::gpu::{GpuSystem, RankedSystem};
use crate::plan::Plan;
use std::sync::Arc;
use tracing::warn;

/// Number of particles from which several GPUs are faster than one.
const FEWEST: usize = 200_000;

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
            Some(devices) => {
                let n = plan.snapshot.len();
                if n < FEWEST && plan.device != Chosen::Emulated {
                    warn!(
                        "{n} particles on {ranks} GPUs: a run with fewer than {FEWEST} particles is usually faster on one"
                    );
                }
                Ok(Box::new(RankedSystem::new(plan, devices)?))
            }
        };
    }
    match plan.device.open_shared(runs)? {
        None => Ok(cpu::backend(plan)?),
        Some(device) => Ok(Box::new(GpuSystem::new(plan, device)?)),
    }
}

/// Opens the device of the replicas of a pipeline. Returns the device of each, or nothing for the CPU.
///
/// # Errors
/// Returns the driver's error.
pub fn open_replica_devices(plans: &[&Plan]) -> Result<Vec<ReplicaDevice>, Failure> {
    let Some(first) = plans.first() else { return Ok(vec![]) };
    match first.device.open()? {
        None => Ok(vec![]),
        Some(device) => Ok(open_replicas(device, plans.len())?),
    }
}

/// Like [`open`], on the device of a replica, if it has one.
///
/// # Errors
/// As for [`open`].
pub fn open_replica(plan: &Plan, device: Option<ReplicaDevice>) -> Result<Box<dyn Backend>, Failure> {
    match device {
        None => Ok(cpu::backend(plan)?),
        Some(device) => Ok(Box::new(GpuSystem::new(plan, Arc::new(device) as Arc<dyn Device>)?)),
    }
}
