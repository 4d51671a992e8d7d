//! Improper potentials. φ is the angle of a dihedral of the four particles in their order.
#![allow(clippy::approx_constant)]

mod cvff;
mod harmonic;
mod periodic;
