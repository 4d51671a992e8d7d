//! Distributions of distances, bonds, angles and dihedrals, averaged over a run.
//!
//! `pairs.rs` counts pairs by distance on the CPU, `rdf_device.rs` on a device; `space.rs` computes distances;
//! `which.rs` selects pairs; `links.rs` measures bonds, angles, and dihedrals. `rdf.rs`, `link_distributions.rs`, and
//! `covariance.rs` are the components. Counts are integers, so sums do not depend on the number of threads.

mod covariance;
mod link_distributions;
mod links;
mod pairs;
mod rdf;
mod rdf_device;
mod space;
mod which;
