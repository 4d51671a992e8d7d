//! Soft repulsions: particles may pass through each other.

mod gaussian;
mod gem;
mod harmonic_repulsion;
