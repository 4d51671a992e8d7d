//! Profiles along an axis or a radius: `geometry.rs` says into which bin a place falls, `component.rs` sums up.

mod component;
mod geometry;
