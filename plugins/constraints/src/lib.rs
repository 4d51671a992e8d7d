//! Distance constraints: bonds of fixed length, by SHAKE and RATTLE.

mod clusters;
mod constraints;
mod device;
mod solver;

galamost_plugin_api::plugin!();

/// Array of the vector from each particle's predecessor in its cluster, at the last time its positions were constrained.
pub const REFERENCE: &str = "constraints.reference";

/// Largest number of passes over the constraints of a cluster.
pub const PASSES: u32 = 10_000;

/// Smallest cosine of the angle by which a bond may turn in a step.
pub const COSINE: f64 = 0.1;
