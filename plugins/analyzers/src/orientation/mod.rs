//! Analyzers of oriented particles: order parameters, clusters by patches, correlations in time and space.

mod chosen;
mod clusters;
mod correlation;
mod order;
mod pair_orientation;
mod pairs;
