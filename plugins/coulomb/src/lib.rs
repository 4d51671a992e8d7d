//! Short-range forms of the Coulomb interaction.
#![allow(non_camel_case_types)]

mod debye_hueckel;
mod reaction_field;
mod yukawa;

galamost_plugin_api::plugin!();
