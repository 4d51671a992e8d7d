//! The native part of the Python package `galamost`, thin over the engine. The package's Python code gives it its public
//! form: arrays, properties, documentation.
//!
//! Every simulation runs in a separate thread, so the interpreter's lock is free while it runs.

mod convert;
mod device;
mod errors;
mod files;
mod force;
mod forked;
mod notation;
mod plugins;
mod simulation;
mod worker;

use pyo3::prelude::*;

galamost_plugin_api::plugin!();

/// The native part of the package `galamost`; see the documentation of that package.
#[pymodule]
mod _galamost {
    #[pymodule_export]
    use crate::convert::known_arrays;
    #[pymodule_export]
    use crate::device::DeviceArray;
    #[pymodule_export]
    use crate::errors::take_warnings;
    #[pymodule_export]
    use crate::files::{Reader, read_table, render, statistics, table_statistics};
    #[pymodule_export]
    use crate::force::{compile_kernels, load_forces};
    #[pymodule_export]
    use crate::notation::parse_ron;
    #[pymodule_export]
    use crate::plugins::{describe_components, load_plugins};
    #[pymodule_export]
    use crate::simulation::{Simulation, check_pipeline};

    /// Version of the engine.
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}
