//! Potentials like Lennard-Jones with other exponents, and Buckingham's.
#![allow(non_camel_case_types)]

mod buckingham;
mod lj96;
mod mie;

galamost_plugin_api::plugin!();
