//! A run that several processes share: they compare what must be the same, then the first one runs, and the others serve it.

mod agree;

pub use agree::agree;

use crate::backend::Backend;
use crate::backend::processes::{Command, ProcessSystem, serve as serve_rank};
use crate::cpu::CpuSystem;
use crate::device::Chosen;
use crate::diagnostic::Failure;
use crate::gpu::GpuSystem;
use crate::plan::Plan;
use crate::processes::{Messages, Mpi};
use galamost_plugin_api::error::Result;
use galamost_plugin_api::precision::{Fixed, Float64, Precision};
use std::sync::Arc;

/// Opens the devices of all processes. The first process calls it.
///
/// # Errors
/// Returns the driver's error, or the error of another process.
pub fn open(plan: &Plan, mpi: &Arc<Mpi>) -> std::result::Result<Box<dyn Backend>, Failure> {
    let messages: Arc<dyn Messages> = mpi.clone();
    Ok(match (&plan.device, plan.pipeline.precision) {
        (Chosen::Cpu { .. }, Precision::Double) => Box::new(ProcessSystem::<CpuSystem<Float64>>::new(plan, &messages)?),
        (Chosen::Cpu { .. }, _) => Box::new(ProcessSystem::<CpuSystem<Fixed>>::new(plan, &messages)?),
        _ => Box::new(ProcessSystem::<GpuSystem>::new(plan, &messages)?),
    })
}

/// Does what the first process tells, until the run ends, and returns the exit status. All other processes call it.
///
/// # Errors
/// Returns the error of this or another process.
pub fn serve(plan: &Plan, mpi: &Arc<Mpi>) -> Result<u8> {
    let messages: Arc<dyn Messages> = mpi.clone();
    match (&plan.device, plan.pipeline.precision) {
        (Chosen::Cpu { .. }, Precision::Double) => serve_rank::<CpuSystem<Float64>>(plan, &messages),
        (Chosen::Cpu { .. }, _) => serve_rank::<CpuSystem<Fixed>>(plan, &messages),
        _ => serve_rank::<GpuSystem>(plan, &messages),
    }
}

/// Ends the run in all processes with this exit status. The first process calls it.
///
/// # Errors
/// Returns the library's error.
pub fn end(mpi: &Mpi, status: u8) -> Result<()> {
    if mpi.is_broken() {
        mpi.abort(status);
    }
    Command::End { status }.send(mpi)?;
    mpi.leave()
}
