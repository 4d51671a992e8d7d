//! Calls of an integrator's phases on the CPU.

use crate::abi::views::{Globals, SimBox, StateView};
use crate::device::philox::RandomKey;
use galamost_plugin_macros::Layout;

/// Maximum number of sums that a phase can return.
pub const MAX_SUMS: usize = 8;

/// One call of a particle phase on the CPU.
#[repr(C)]
#[derive(Clone, Copy, Debug, Layout)]
pub struct ParticleCall {
    /// Size of this struct in bytes.
    pub size: u32,
    /// Index of the first particle.
    pub begin: u32,
    /// Index after the last particle.
    pub end: u32,
    /// The component's first slot in [`Globals::values`].
    pub first_varying: u32,
    /// Number of the component in the run, reported with faults.
    pub component: u32,
    /// Bit of the group; 32 for all particles.
    pub group: u32,
    /// Key of the component's random numbers.
    pub key: RandomKey,
    /// The particles.
    pub state: *const StateView,
    /// The integrator's state.
    pub integrator: *const u8,
    /// The integrator's per-particle array.
    pub extra: *mut u8,
    /// Output: sums over the range.
    pub sums: *mut [f64; MAX_SUMS],
    /// Number of the phase's first random draw.
    pub first_draw: u32,
    /// Distance in bytes between two particles in `carried`.
    pub carried_stride: u32,
    /// For a correcting integrator: velocities that another integrator carries through the step; null if there are
    /// none.
    pub carried: *mut u8,
    /// Reserved; must be 0.
    pub reserved: [u64; 3],
}

// SAFETY: the call only carries addresses; the loop writes particles begin … end, which no other concurrent call
// accesses, and sets flags by atomic stores
unsafe impl Send for ParticleCall {}
// SAFETY: a shared reference gives only addresses; no other concurrent call accesses particles begin … end, and flags are set by
// atomic stores
unsafe impl Sync for ParticleCall {}

/// One call of a scalar phase on the CPU.
#[repr(C)]
#[derive(Clone, Copy, Debug, Layout)]
pub struct ScalarCall {
    /// Size of this struct in bytes.
    pub size: u32,
    /// The component's first slot in [`Globals::values`].
    pub first_varying: u32,
    /// The integrator's state.
    pub integrator: *mut u8,
    /// Sums of the last particle phase that returned any.
    pub sums: *const [f64; MAX_SUMS],
    /// The global scalars of the run.
    pub globals: *const Globals,
    /// Key of the component's random numbers.
    pub key: RandomKey,
    /// Number of the phase's first random draw.
    pub first_draw: u32,
    /// Reserved; must be 0.
    pub reserved0: u32,
    /// The box, for phases that use it; null for others. The engine applies changes.
    pub sim_box: *mut SimBox,
    /// Reserved; must be 0.
    pub reserved: [u64; 3],
}
