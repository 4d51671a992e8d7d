//! Soft repulsions with a finite energy at r = 0: particles can pass through each other.

mod expanded_gaussian;
mod gaussian;
mod gem;
mod harmonic_repulsion;
mod ufm;
