//! Distributions of distances, bonds, angles and dihedrals, averaged over a run.
//!
//! `pairs.rs` counts pairs by distance on the engine's threads, `rdf_device.rs` on a device, `space.rs` measures distances, `which.rs` says which pairs, `links.rs` measures bonds, angles and
//! dihedrals; `rdf.rs`, `link_distributions.rs` and `covariance.rs` are the components. Counts are whole numbers, so that sums do not depend on threads.

mod covariance;
mod link_distributions;
mod links;
mod pairs;
mod rdf;
mod rdf_device;
mod space;
mod which;
