//! Isotropic pair potentials, one file each.
//!
//! `soft` contains soft repulsions, `coarse` potentials of coarse-grained particles, `coulomb` short-range forms of the Coulomb interaction.
#![allow(non_camel_case_types)]

mod born;
mod buckingham;
mod coarse;
mod coulomb;
mod expanded_mie;
mod lennard_jones;
mod lj96;
mod mie;
mod morse;
mod shifted_lj;
mod soft;
mod wca;

galamost_plugin_api::plugin!();
