//! Tools for analyzers: output tables, molecules, positions, and reproducible sums.
//!
//! An analyzer works in one of two ways:
//!
//! * It reads the columns of a frame in tag order.
//! * It launches its own kernels over the state at each sample and requests no columns. It copies the sums to the host only
//!   when its file is due ([`Pace`]), so a sample costs its launches and the run does not wait.
//!
//! On the CPU, the same numbers are added in the same order ([`tree`]) from the same positions ([`positions`]). Both devices
//! therefore write the same file for the same positions.
//!
//! * [`GrowingTable`]: a table that grows row by row. [`replace`]: a table that is rewritten as a whole. [`Pace`]: how often a
//!   table is rewritten. All tables are CSV, or Parquet if the file name ends in `.parquet`; [`columns`] reads Parquet.
//! * [`WholeMolecules`]: the molecules of a frame, not cut by the box boundaries. [`molecules`]: molecules in the state of a
//!   run. [`eigen`]: eigenvalues of symmetric matrices.
//! * [`positions`]: unwrapped positions, types, masses and velocities by tag, on the host. [`HEADER`]: the same in kernels.
//! * [`tasks`]: work on the engine's threads. [`tree`]: sums in the order of a kernel's blocks. [`pack`]: arrays of numbers in
//!   a checkpoint.

#![deny(missing_docs)]

mod eigen;
pub mod molecules;
pub mod pack;
pub mod positions;
mod table;
pub mod tasks;
pub mod tree;

pub use eigen::eigen;
pub use molecules::whole::{Molecule, WholeMolecules};
pub use table::columns::{self, TableValue};
pub use table::dataset::Dataset;
pub use table::pace::Pace;
pub use table::{GrowingTable, bytes, header, number, numbers, replace, replace_text};

// short names that plugins and commands use
pub use molecules::whole::{Molecule as Part, WholeMolecules as Whole};
pub use table::GrowingTable as Table;
pub use table::columns::TableValue as Cell;

/// CUDA C++ source that precedes the kernels of an analyzer.
pub const HEADER: &str = include_str!("measure.cuh");
