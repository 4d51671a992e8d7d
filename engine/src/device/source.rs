//! Source units of CUDA C++ and the generated header `galamost/api.cuh`.

use super::args::args_header;
use galamost_plugin_api::device::{CxxStruct, DeviceFn as _, assemble_header, constants, layout_checks};
use galamost_plugin_api::error::{Error, Result};
use galamost_plugin_api::integrator::MAX_SUMS;
use galamost_plugin_api::layout::Layout;
use galamost_plugin_api::pair::{CutoffRow, ModeNumber, apply_mode, inputs, smooth_oriented};
use galamost_plugin_api::philox::{NO_TAG, RandomKey};
use galamost_plugin_api::precision::{PosTypeF64, PosTypeFixed, Precision};
use galamost_plugin_api::services::BlockSums;
use galamost_plugin_api::updater::{Edit, EditKind, EditQueue};
use galamost_plugin_api::varying::varying_at;
use galamost_plugin_api::views::{
    COMPONENT_VARYINGS, Fault, FaultKind, Globals, LinkView, ListView, MAX_VARYINGS, SimBox, StateView, Step, Sums,
    Wanted, is_skewed, is_valid_length, start_list, update_box, update_shear,
};

/// A translation unit of CUDA C++.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceUnit {
    /// Name for messages.
    pub name: String,
    /// CUDA C++.
    pub text: String,
    /// Precision; it selects the type `real`.
    pub precision: Precision,
    /// Macros besides those of the precision; see [`super::Services::define_macro`].
    pub macros: Vec<&'static str>,
    /// Every compilation has separate variables, as plugins expect.
    pub separate: bool,
}

impl SourceUnit {
    /// Returns a unit without macros.
    pub fn new(name: &str, text: &str, precision: Precision) -> Self {
        Self { name: name.into(), text: text.into(), precision, macros: vec![], separate: false }
    }

    /// Returns the unit, of which every compilation has separate variables.
    #[must_use]
    pub fn separate(self) -> Self {
        Self { separate: true, ..self }
    }

    /// Returns the unit with these additional macros.
    #[must_use]
    pub fn with_macros(&self, macros: &[&'static str]) -> Self {
        Self { macros: [&self.macros, macros].concat(), ..self.clone() }
    }

    /// Returns all macros, those of the precision included.
    pub fn defines(&self) -> Vec<&'static str> {
        let precision = match self.precision {
            Precision::Single => None,
            Precision::Mixed => Some("GALAMOST_MIXED"),
            Precision::Double => Some("GALAMOST_DOUBLE"),
        };
        precision.into_iter().chain(self.macros.iter().copied()).collect()
    }

    /// Returns all headers by name, the generated ones included.
    ///
    /// # Errors
    /// Returns an error if a struct is defined twice.
    pub fn headers() -> Result<Vec<(&'static str, String)>> {
        let mut list = vec![("galamost/api.cuh", api_header()?), ("galamost/args.cuh", args_header())];
        let folder = std::env::var_os("GALAMOST_KERNELS").map(std::path::PathBuf::from);
        for (name, text) in galamost_kernels::HEADERS {
            // for development: headers of a folder instead of those of the program
            let text = match &folder {
                Some(f) => std::fs::read_to_string(f.join(name)).map_err(|e| Error::Run(format!("{name}: {e}")))?,
                None => (*text).to_string(),
            };
            list.push((*name, text));
        }
        Ok(list)
    }
}

/// Generates `galamost/api.cuh`: the structs, enums, constants and functions shared by Rust and CUDA, from their Rust
/// definitions. Where it is compiled, it asserts the layouts that the Rust compiler chose.
///
/// # Errors
/// Returns an error if a struct is defined twice.
pub fn api_header() -> Result<String> {
    let definitions = assemble_header(&[
        Fault::text(),
        FaultKind::text(),
        Globals::text(),
        StateView::text(),
        ListView::text(),
        LinkView::text(),
        Wanted::text(),
        Sums::text(),
        BlockSums::text(),
        CutoffRow::<f32>::text(),
        Edit::text(),
        EditKind::text(),
        EditQueue::text(),
        SimBox::text(),
        RandomKey::text(),
        Step::<f32>::text(),
        ModeNumber::text(),
        apply_mode::text(),
        smooth_oriented::text(),
        is_valid_length::text(),
        is_skewed::text(),
        update_box::text(),
        update_shear::text(),
        start_list::text(),
        varying_at::text(),
    ])
    .map_err(Error::Run)?;
    let constants = constants(&[
        ("MAX_VARYINGS", MAX_VARYINGS as u32),
        ("COMPONENT_VARYINGS", COMPONENT_VARYINGS as u32),
        ("MAX_SUMS", MAX_SUMS as u32),
        ("NO_TAG", NO_TAG),
        ("INPUT_VELOCITY", inputs::VELOCITY),
        ("INPUT_RANDOM", inputs::RANDOM),
        ("INPUT_CHARGE", inputs::CHARGE),
        ("INPUT_DIAMETER", inputs::DIAMETER),
        ("INPUT_ORIENTATION", inputs::ORIENTATION),
        ("INPUT_STEP", inputs::STEP),
    ]);
    let positions = [("#ifndef", layout_of::<PosTypeFixed>()), ("#ifdef", layout_of::<PosTypeF64>())]
        .map(|(condition, checks)| format!("{condition} GALAMOST_DOUBLE\n{checks}#endif\n"));
    Ok(format!(
        "// Generated from the Rust definitions.\n#pragma once\n#include \"galamost/types.cuh\"\n\n{constants}{definitions}\n{}",
        positions.concat()
    ))
}

/// Returns assertions that `PosType` of `types.cuh` has the layout of a Rust struct, which has an array `position`.
fn layout_of<T: Layout>() -> String {
    let layout = T::layout();
    let members: Vec<_> = layout
        .members
        .iter()
        .map(|(name, offset, _)| (if name == "position" { "x" } else { name }, *offset as usize))
        .collect();
    layout_checks("PosType", layout.size as usize, layout.align as usize, &members)
}

/// Returns the names of the kernels in a text: functions declared `extern "C" __global__ void`.
pub fn kernel_names(text: &str) -> Vec<String> {
    let mut names = vec![];
    for part in text.split("extern \"C\" __global__ void").skip(1) {
        let mut rest = part.trim_start();
        if rest.starts_with("__launch_bounds__") {
            rest = rest.find(')').map_or("", |n| &rest[n + 1..]).trim_start();
        }
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
        if end > 0 {
            names.push(rest[..end].to_string());
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_found_by_their_declaration() {
        let text = "extern \"C\" __global__ void a(int x) {}\n__device__ void b();\nextern \"C\" __global__ void __launch_bounds__(128) c_2(Args a) {}";
        assert_eq!(kernel_names(text), ["a", "c_2"]);
    }

    #[test]
    fn the_header_declares_what_rust_declares() {
        let h = api_header().expect("no clashes");
        for line in [
            "struct Globals {",
            "double values[32];",
            "Varying varyings[32];",
            "PosType* pos_type;",
            "struct CutoffRow {",
            "static_assert(GALAMOST_OFFSET(Globals, slack2) == ",
            "namespace FaultKind {",
            "static constexpr u32 NO_TAG = 4294967295u;",
            " apply_mode(",
        ] {
            assert!(h.contains(line), "{line} is missing in\n{h}");
        }
        assert!(h.find("struct Varying").expect("there") < h.find("struct Globals").expect("there"));
    }
}
