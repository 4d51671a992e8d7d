//! Correlation of stresses: `multi_tau.rs` correlates, `component.rs` reads the pressure tensor and writes.

mod component;
mod multi_tau;
