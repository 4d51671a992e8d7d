//! Bonded potentials: bonds, angles, dihedrals and impropers.
#![allow(non_camel_case_types)]

mod angles;
mod bonds;
mod dihedrals;
mod impropers;

galamost_plugin_api::plugin!();
