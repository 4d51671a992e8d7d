//! What analyzers share: tables, molecules, sums in a fixed order.
//!
//! An analyzer either looks at the columns of a frame in tag order, or has kernels of its own: then it asks for no columns, launches
//! kernels over the state at each sample and copies their sums to the host when its file is due ([`Pace`]), so a sample costs its
//! launches and the run does not wait. On the CPU the same numbers are added in the same order ([`tree`]), of the same positions
//! ([`positions`]), so that both devices write the same file wherever they have the same positions.
//!
//! * [`Table`]: a table that grows. [`replace`]: one that is replaced as a whole. [`Pace`]: how often. All are CSV, or Parquet
//!   where a file is called so; [`columns`] reads that.
//! * [`Whole`]: molecules of a frame as whole pieces. [`molecules`]: the same on a device. [`eigen`]: symmetric matrices.
//! * [`positions`]: positions beyond the box, types, masses and velocities by tag, on the host. [`HEADER`]: the same in kernels.
//! * [`tasks`]: work on threads. [`tree`]: sums as blocks of a kernel make them. [`pack`]: numbers in a checkpoint.

#![deny(missing_docs)]

pub mod columns;
mod dataset;
mod eigen;
pub mod molecules;
mod pace;
pub mod pack;
pub mod positions;
mod table;
pub mod tasks;
pub mod tree;
mod whole;

pub use columns::Cell;
pub use dataset::Dataset;
pub use eigen::eigen;
pub use pace::Pace;
pub use table::{Table, bytes, header, number, numbers, replace, replace_text};
pub use whole::{Part, Whole};

/// CUDA C++ that stands before the kernels of an analyzer.
pub const HEADER: &str = include_str!("measure.cuh");
