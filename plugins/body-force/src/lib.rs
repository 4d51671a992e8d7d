//! Forces that act on each particle by itself and do not depend on other particles.

mod constant;
mod electric;
mod periodic;
mod poiseuille;

galamost_plugin_api::plugin!();
