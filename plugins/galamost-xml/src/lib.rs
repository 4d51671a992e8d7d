galamost_plugin_api::plugin!();
