//! Dihedral and improper potentials. φ = 0 is cis, ±180° is trans (IUPAC).
#![allow(clippy::approx_constant)]

mod improper;
mod opls;
mod periodic;
mod ryckaert_bellemans;
