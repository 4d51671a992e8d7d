//! Numerical potentials: rows of r (or an angle) and U from files or from the pipeline.
//!
//! `source.rs` is what the user writes, `cells.rs` the coefficients of all tables of a component as its loops read them;
//! `pair.rs` and `links.rs` are the components. Files, splines and grids are those of `galamost-tables`.

mod cells;
mod links;
mod pair;
mod source;

galamost_plugin_api::plugin!();
