//! The kernels of a rebuild in parts.

use crate::device::{Device, Kernel, SourceUnit};
use galamost_plugin_api::error::Result;
use galamost_plugin_api::precision::Precision;
use std::sync::Arc;

/// Kernels of `rebuild.cuh`.
pub(super) struct Kernels {
    pub count_cells: Kernel,
    pub sum_cells: Kernel,
    pub scan_blocks: Kernel,
    pub start_cells: Kernel,
    pub fill_cells: Kernel,
    pub order_cells: Kernel,
    pub gather_arrays: Kernel,
    pub copy_back_arrays: Kernel,
    pub build_list: Kernel,
    pub build_list_excluding: Kernel,
    pub build_list_of_members: Kernel,
    pub end_rebuild: Kernel,
}

impl Kernels {
    /// Compiles the kernels. Returns them, and the one that looks up links.
    pub fn load(device: &Arc<dyn Device>, precision: Precision) -> Result<(Self, Kernel)> {
        let module = device.compile(&unit(precision))?;
        let k = |name: &str| device.kernel(module, name);
        let kernels = Self {
            count_cells: k("count_cells")?,
            sum_cells: k("sum_cells")?,
            scan_blocks: k("scan_blocks")?,
            start_cells: k("start_cells")?,
            fill_cells: k("fill_cells")?,
            order_cells: k("order_cells")?,
            gather_arrays: k("gather_arrays")?,
            copy_back_arrays: k("copy_back_arrays")?,
            build_list: k("build_list")?,
            build_list_excluding: k("build_list_excluding")?,
            build_list_of_members: k("build_list_of_members")?,
            end_rebuild: k("end_rebuild")?,
        };
        Ok((kernels, k("index_links")?))
    }
}

/// Returns the source of the kernels of a rebuild.
pub fn unit(precision: Precision) -> SourceUnit {
    let text = "#include \"galamost/links.cuh\"\n#include \"galamost/rebuild.cuh\"\n";
    SourceUnit::new("rebuild", text, precision)
}
