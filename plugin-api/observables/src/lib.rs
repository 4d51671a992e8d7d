//! What analyzers with kernels of their own share.
//!
//! An analyzer that measures on the device asks for no columns: it launches kernels over the state at each sample and copies
//! their sums to the host when its file is due ([`Pace`]), so a sample costs its launches and the run does not wait. On the CPU
//! the same numbers are added in the same order ([`tree`]), of the same positions ([`positions`]), so that both devices write
//! the same file wherever they have the same positions.
//!
//! * [`table`]: CSV tables that are replaced as a whole. [`pace`]: how often.
//! * [`positions`]: positions beyond the box, types, masses and velocities by tag, on the host. [`HEADER`]: the same in kernels.
//! * [`molecules`]: who belongs to which molecule, and how to put one together across the box's faces.
//! * [`tasks`]: work on threads. [`tree`]: sums as blocks of a kernel make them. [`pack`]: numbers in a checkpoint.

#![deny(missing_docs)]

pub mod molecules;
pub mod pace;
pub mod pack;
pub mod positions;
pub mod table;
pub mod tasks;
pub mod tree;

pub use molecules::Molecules;
pub use pace::Pace;

/// CUDA C++ that stands before the kernels of an observable.
pub const HEADER: &str = include_str!("observables.cuh");
