//! Profiles along an axis or a radius: `geometry.rs` assigns positions to bins, `component.rs` averages.

mod component;
mod geometry;
