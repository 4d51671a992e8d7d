//! Virtual interaction sites: particles without mass whose positions follow from those of other particles.

mod device;
mod generator;
mod virtual_sites;

galamost_plugin_api::plugin!();
