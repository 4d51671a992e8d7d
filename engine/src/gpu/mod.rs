//! The backend of a device that runs CUDA kernels: a GPU, or the emulation of its kernels on the CPU.
//!
//! All particle arrays stay on the device. A step is a fixed sequence of launches, captured once as a graph; the device
//! decides whether to rebuild the neighbor list. A kernel whose output does not fit (a row of the neighbor list) raises
//! a fault and halts the run: all later kernels return at once, so nothing is computed from incomplete data. The host
//! then makes room and continues with the same step.
//!
//! Environment variables for measurements and tests:
//!
//! | variable | effect |
//! |---|---|
//! | `GALAMOST_TEAM` | threads per particle in the pair loop: a power of two up to 32 |
//! | `GALAMOST_MANY` | largest number of particles for the persistent kernel; 0 disables it |
//! | `GALAMOST_SORT_EVERY` | rebuilds of a staged list from one sort to the next |
//! | `GALAMOST_QUEUE` | 1 or 0: whether the pair loop over a staged list collects pairs within the cutoff first |
//! | `GALAMOST_GATE` | blocks of the pair loop for each multiprocessor up to which ranks of one process meet in it; 0: no pair loop begins before all positions are known |
//! | `GALAMOST_SPARE` | 0: messages between processes have no room to spare, so that rebuilds often begin again |
//! | `GALAMOST_LIST` | `Plain` or `Staged`: the neighbor list where the pipeline leaves the choice |
//! | `GALAMOST_KERNELS` | a folder with the headers of `kernels/`, instead of those in the program |
//! | `GALAMOST_SHARE_GPU` | all ranks of a run on several GPUs use the first one |
//! | `GALAMOST_ONE_RANK` | runs on one GPU like runs on several |
//! | `GALAMOST_BALANCE` | see [`crate::backend::balance`] |
//! | `GALAMOST_NO_GRAPHS` | launches steps one by one instead of as a graph |
//! | `GALAMOST_EMULATED_STEPS` | enables the persistent kernel on the emulated device, with this number of blocks if it is more than 1 |
//! | `GALAMOST_EMULATED_FAULT` | makes the emulated device fail: `lost:N`, `memory:N` or `barrier:N` |
//! | `GALAMOST_EMULATED_DELAY` | lets the host continue while kernels of the emulated device run, each after a random time with this mean in microseconds |

mod arrays;
mod codegen;
mod forces;
mod integrate;
mod links;
mod pair_loop;
mod ranks;
mod rebuild;
mod staged;
mod step;
mod steps_kernel;
mod storage;
mod system;

pub use codegen::{
    Overlap, PhaseKernel, StepsSource, bond_unit, integrator_functions, integrator_unit, joint_bonds_unit, joint_unit,
    pair_unit, special_unit, staged_pair_unit, steps_unit,
};
pub use ranks::{RankedSystem, messages_unit, unit as ranks_unit};
pub use system::GpuSystem;

use crate::device::{Device, SourceUnit, replicas_unit};
use crate::plan::Plan;
use galamost_plugin_api::error::Result;
use galamost_plugin_api::precision::Precision;

/// Returns the source units that every run compiles, independent of its plugins.
pub fn engine_units(precision: Precision) -> Vec<SourceUnit> {
    let mut units = vec![
        rebuild::unit(precision),
        rebuild::at_once_unit(precision),
        links::unit(precision),
        SourceUnit::new("system", "#include \"galamost/system.cuh\"\n", precision),
    ];
    if precision != Precision::Double {
        units.push(staged::unit(precision));
    }
    if precision == Precision::Mixed {
        units.push(replicas_unit());
    }
    units
}

/// Returns the team size: the number of threads that share a row of the neighbor list. Small systems get large teams,
/// so that they still fill the device. `GALAMOST_TEAM` overrides it.
pub fn team(device: &dyn Device, n: usize) -> u32 {
    tuned("GALAMOST_TEAM").unwrap_or_else(|| {
        let resident = 2048 * device.multiprocessors() as usize;
        let wanted = (resident / n.max(1)).clamp(1, 16);
        1 << wanted.ilog2()
    })
}

/// Returns a power of two up to 32 from an environment variable.
fn tuned(variable: &str) -> Option<u32> {
    std::env::var(variable).ok()?.parse().ok().filter(|t: &u32| t.is_power_of_two() && *t <= 32)
}

/// Selects the code of boxes that are not rectangular.
fn define_macros(plan: &Plan, device: &dyn Device) -> Result<()> {
    if plan.shears()? {
        device.define_macro("GALAMOST_SHEAR");
    }
    if plan.is_triclinic() {
        device.define_macro("GALAMOST_TRICLINIC");
    }
    Ok(())
}
