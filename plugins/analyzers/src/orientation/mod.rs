//! What particles that turn do together: order, clusters by patches, correlations in time and space.

mod chosen;
mod clusters;
mod correlation;
mod order;
mod pair_orientation;
mod pairs;
