//! What analyzers share: tables of CSV, molecules of a frame, eigenvalues of symmetric matrices.

#![deny(missing_docs)]

mod eigen;
mod molecules;
mod table;

pub use eigen::eigen;
pub use molecules::{Molecules, Part};
pub use table::{Rows, bytes, header, number, numbers, replace, text};
