//! Stress correlation: `multi_tau.rs` correlates, `component.rs` samples the pressure tensor and writes the table.

mod component;
mod multi_tau;
