//! Source units of CUDA C++ and the generated header `galamost/api.cuh`.

use galamost_plugin_api::device::{CxxStruct, assemble};
use galamost_plugin_api::error::{Error, Result};
use galamost_plugin_api::pair::CutoffRow;
use galamost_plugin_api::precision::Precision;
use galamost_plugin_api::updater::{Edit, EditQueue};
use galamost_plugin_api::views::{Fault, Globals, LinkView, ListView, SimBox, StateView, Sums, Wanted};

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
}

impl SourceUnit {
    /// Returns a unit without macros.
    pub fn new(name: &str, text: &str, precision: Precision) -> Self {
        Self { name: name.into(), text: text.into(), precision, macros: vec![] }
    }

    /// Returns the unit with these macros.
    #[must_use]
    pub fn with_macros(&self, macros: &[&'static str]) -> Self {
        Self { macros: macros.to_vec(), ..self.clone() }
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

    /// Returns all headers by name, the generated one included.
    ///
    /// # Errors
    /// Returns an error if a struct is defined twice.
    pub fn headers() -> Result<Vec<(&'static str, String)>> {
        let mut list = vec![("galamost/api.cuh", api_header()?)];
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

/// Generates `galamost/api.cuh`: the structs shared by Rust and CUDA, from their Rust definitions.
///
/// # Errors
/// Returns an error if a struct is defined twice.
pub fn api_header() -> Result<String> {
    let structs = assemble(&[
        Fault::text(),
        Globals::text(),
        StateView::text(),
        ListView::text(),
        LinkView::text(),
        Wanted::text(),
        Sums::text(),
        CutoffRow::<f32>::text(),
        Edit::text(),
        EditQueue::text(),
        SimBox::text(),
    ])
    .map_err(Error::Run)?;
    let checks = [
        ("Globals", size_of::<Globals>()),
        ("StateView", size_of::<StateView>()),
        ("ListView", size_of::<ListView>()),
        ("LinkView", size_of::<LinkView>()),
        ("Sums", size_of::<Sums>()),
        ("EditQueue", size_of::<EditQueue>()),
        ("SimBox", size_of::<SimBox>()),
    ]
    .map(|(name, size)| format!("static_assert(sizeof({name}) == {size}, \"{name} differs between Rust and C++\");\n"));
    Ok(format!(
        "// Generated from the Rust definitions of these structs.\n#pragma once\n#include \"galamost/types.cuh\"\n\n{structs}\n{}",
        checks.concat()
    ))
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
        ] {
            assert!(h.contains(line), "{line} is missing in\n{h}");
        }
        assert!(h.find("struct Varying").expect("there") < h.find("struct Globals").expect("there"));
    }
}
