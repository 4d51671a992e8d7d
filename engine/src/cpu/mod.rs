//! The backend of the CPU: sorted arrays, a Verlet list, and plugins' loops over chunks of particles on all threads.

mod forces;
pub mod guards;
mod integrate;
mod links;
mod list;
mod ranks;
mod special;
mod storage;
mod sums;
mod system;

pub use system::CpuSystem;

use galamost_plugin_api::precision::{Fixed, Float64, Precision};

/// Creates a CPU backend of the plan's precision.
///
/// # Errors
/// Returns an error if the initial state cannot be stored.
pub fn backend(plan: &crate::plan::Plan) -> galamost_plugin_api::error::Result<Box<dyn crate::backend::Backend>> {
    Ok(match plan.pipeline.precision {
        Precision::Double => Box::new(CpuSystem::<Float64>::new(plan)?),
        _ => Box::new(CpuSystem::<Fixed>::new(plan)?),
    })
}

/// Returns the highest vector extension of this processor that the loops are compiled for: 4 (x86-64-v4), 3 (x86-64-v3)
/// or 0 (none). The environment variable `GALAMOST_ISA` lowers it, for tests.
pub fn vector_extension() -> u32 {
    let mut best = 0;
    #[cfg(target_arch = "x86_64")]
    {
        // all features that the loops enable with `target_feature`
        if std::is_x86_feature_detected!("avx2")
            && std::is_x86_feature_detected!("fma")
            && std::is_x86_feature_detected!("bmi1")
            && std::is_x86_feature_detected!("bmi2")
            && std::is_x86_feature_detected!("lzcnt")
            && std::is_x86_feature_detected!("popcnt")
        {
            best = 3;
            let v4 = std::is_x86_feature_detected!("avx512f")
                && std::is_x86_feature_detected!("avx512bw")
                && std::is_x86_feature_detected!("avx512cd")
                && std::is_x86_feature_detected!("avx512dq")
                && std::is_x86_feature_detected!("avx512vl");
            if v4 {
                best = 4;
            }
        }
    }
    match std::env::var("GALAMOST_ISA").ok().and_then(|s| s.parse().ok()) {
        Some(wanted) => best.min(wanted),
        None => best,
    }
}
