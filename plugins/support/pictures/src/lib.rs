//! Pictures without a screen: plots as SVG and PNG, particles as PNG.
//!
//! * [`Plot`] draws curves over axes into a [`Drawing`]. A drawing is written as SVG, or as PNG with the font of this
//!   crate, so pictures look the same on every machine.
//! * [`View`] holds the options of a picture of particles. [`View::picture`] renders a
//!   [`Snapshot`](galamost_plugin_api::snapshot::Snapshot) on the CPU.

mod color;
mod image;
mod parallel;
mod plot;
mod render;

pub use color::Rgb;
pub use image::{Animation, Image};
pub use parallel::{Parallel, one_thread};
pub use plot::drawing::{Anchor, Drawing, Paint, Shape, Theme, escape};
pub use plot::{Axis, Curve, Panel, Plot, Style};
pub use render::{ColorBy, Direction, Glyph, Slice, View, solvent_types};
