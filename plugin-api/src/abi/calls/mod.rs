//! Arguments of the calls that the engine makes in every step.
//!
//! The structs cross the boundary behind raw pointers. [`crate::layout`] compares their members when a library is
//! loaded.

mod forces;
mod frame;
mod integrator;
mod updater;

pub use forces::{BondedCall, CutoffRow, ForceCall, Moment, PairCall, PairConfiguration, SpecialPairs};
pub use frame::{FrameArray, FrameCall, FrameColumn, Thermo};
pub use integrator::{MAX_SUMS, ParticleCall, ScalarCall};
pub use updater::{Edit, EditKind, EditQueue, UpdateCall, changed, phase};
