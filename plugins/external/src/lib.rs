//! External fields, which act on each particle independently: body forces, electric fields, Poiseuille flow and walls.
#![allow(non_camel_case_types)]

mod constant;
mod electric;
mod periodic;
mod poiseuille;
mod walls;

galamost_plugin_api::plugin!();
