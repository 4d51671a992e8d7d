//! Pictures without a screen: plots as SVG and PNG, particles as PNG.
//!
//! * [`Plot`] makes a [`Drawing`] of curves and axes; a drawing is written as SVG, or as PNG with the font of this crate, so
//!   pictures look the same on every machine.
//! * [`View`] says how particles are looked at; [`View::picture`] draws a [`Snapshot`](galamost_plugin_api::snapshot::Snapshot)
//!   on the CPU.

mod camera;
mod color;
mod drawing;
mod font;
mod image;
mod key;
mod parallel;
mod parse;
mod plot;
mod raster;
mod scene;
mod shade;
mod ticks;
mod view;

pub use color::Rgb;
pub use drawing::{Anchor, Drawing, Paint, Shape, Theme, escape};
pub use image::Image;
pub use parallel::{Parallel, one_thread};
pub use plot::{Axis, Curve, Panel, Plot, Style};
pub use view::{ColorBy, Direction, Glyph, Slice, View};
