//! Tabulated potentials: rows of r (or an angle) and U, from files or from the pipeline.
//!
//! `source` reads the user's rows, `splines` holds the spline coefficients that the loops read, `pair` and `bonded` are the
//! components. The crate `galamost-tables` provides file formats, splines and grids.

mod bonded;
mod pair;
mod source;
mod splines;

galamost_plugin_api::plugin!();
