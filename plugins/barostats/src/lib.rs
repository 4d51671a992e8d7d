//! Boxes that follow a pressure.

mod andersen;
mod berendsen;
mod couple;
mod mtk;
mod rigid;

galamost_plugin_api::plugin!();
