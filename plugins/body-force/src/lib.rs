//! Forces that act on each particle by itself and do not depend on other particles.

mod constant;
mod poiseuille;

galamost_plugin_api::plugin!();
