//! A device that runs CUDA kernels as a backend: a GPU, or the emulation of its kernels on the CPU.
//!
//! All arrays of particles stay on the device. A step is a fixed sequence of launches, captured once as a graph and
//! replayed; whether the list is rebuilt is decided on the device. When a kernel finds that something does not fit
//! (a row of the list), it raises a fault and every later kernel returns at once, so nothing is computed from
//! incomplete data; the host then makes room and goes on with the same step.

mod args;
mod arrays;
mod codegen;
mod forces;
mod integrate;
mod links;
mod rebuild;
mod step;
mod steps_kernel;
mod system;

pub use codegen::{PhaseKernel, StepsSource, bond_unit, integrator_functions, integrator_unit, pair_unit, steps_unit};
pub use system::GpuSystem;

use crate::device::{Device, SourceUnit};
use galamost_plugin_api::precision::Precision;

/// Units that every run compiles, whatever its plugins.
pub fn engine_units(precision: Precision) -> Vec<SourceUnit> {
    vec![
        SourceUnit::new("rebuild", "#include \"galamost/rebuild.cuh\"\n", precision),
        links::unit(precision),
        SourceUnit::new("system", "#include \"galamost/system.cuh\"\n", precision),
    ]
}

/// Threads that share a row of the list: enough that few particles still fill the device. `GALAMOST_TEAM` overrides
/// it, for measurements.
pub fn team(device: &dyn Device, n: usize) -> u32 {
    tuned("GALAMOST_TEAM").unwrap_or_else(|| {
        let resident = 2048 * device.multiprocessors() as usize;
        let wanted = (resident / n.max(1)).clamp(1, 16);
        1 << wanted.ilog2()
    })
}

/// A power of two up to 32 from the environment.
fn tuned(variable: &str) -> Option<u32> {
    std::env::var(variable).ok()?.parse().ok().filter(|t: &u32| t.is_power_of_two() && *t <= 32)
}
