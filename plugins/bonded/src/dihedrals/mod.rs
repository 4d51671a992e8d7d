//! Dihedral potentials. φ = 0 is cis, ±180° is trans (IUPAC).
#![allow(clippy::approx_constant)]

pub mod harmonic;
mod opls;
pub mod periodic;
mod ryckaert_bellemans;
