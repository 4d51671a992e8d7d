//! Barostats and prescribed box deformation.
//!
//! `mtk.rs` is the Martyna–Tobias–Klein barostat, `rotational.rs` its version with rotation, `chains.rs` their thermostats, and `coupling.rs` the
//! coupling of the box axes. `triclinic.rs` is its version for all lengths and tilt factors. `andersen.rs` and `berendsen.rs` are the other barostats. `box_resize.rs` prescribes box lengths.

mod andersen;
mod berendsen;
mod box_resize;
mod chains;
mod coupling;
mod mtk;
mod rotational;
mod triclinic;

galamost_plugin_api::plugin!();
