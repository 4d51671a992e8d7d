//! Dihedral potentials. φ = 0 is cis, ±180° is trans (IUPAC).
#![allow(non_camel_case_types, clippy::approx_constant)]

mod improper;
mod opls;
mod periodic;
mod ryckaert_bellemans;

galamost_plugin_api::plugin!();
