//! Barostats and prescribed box deformation.
//!
//! `mtk.rs` is the Martyna–Tobias–Klein barostat, `rotational.rs` its version with rotation, and `coupling.rs` the coupling
//! of the box axes. `andersen.rs` and `berendsen.rs` are the other barostats. `box_resize.rs` prescribes box lengths.

mod andersen;
mod berendsen;
mod box_resize;
mod coupling;
mod mtk;
mod rotational;

galamost_plugin_api::plugin!();
