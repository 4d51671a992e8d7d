//! Barostats, and prescribed changes of the box.
//!
//! `mtk.rs` is the Martyna-Tobias-Klein barostat, `rigid.rs` the same with rotation, `couple.rs` the coupling of the axes.
//! `box_resize.rs` changes the box along a given path.

mod andersen;
mod berendsen;
mod box_resize;
mod couple;
mod mtk;
mod rigid;

galamost_plugin_api::plugin!();
