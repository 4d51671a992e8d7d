//! The field `exchange` of a pipeline.

use galamost_plugin_api::error::{Errors, Position};
use galamost_plugin_api::params::{Fields, FromValue, Range, Value};
use std::path::{Path, PathBuf};

/// `exchange: (…)`: replicas exchange their particles.
#[derive(Clone, Debug, PartialEq)]
pub struct ExchangeSettings {
    /// Steps between attempts.
    pub every: u64,
    /// File with a row for each attempt; by default the pipeline's path with the extension `.exchange.csv`.
    pub file: Option<String>,
    /// Position in the file.
    pub at: Position,
}

impl ExchangeSettings {
    /// Returns the path of the table. `pipeline` is that of all replicas.
    pub fn table(&self, pipeline: &Path) -> PathBuf {
        match &self.file {
            Some(f) => super::folder_of(pipeline).join(f),
            None => pipeline.with_extension("exchange.csv"),
        }
    }
}

impl FromValue for ExchangeSettings {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        let mut fields = Fields::new(value, errors)?;
        let every = fields.required("every", Range { at_least: 1.0, ..Range::ANY });
        let file = fields.required("file", Range::ANY);
        fields.finish();
        Some(Self { every: every?, file: file?, at: value.at() })
    }
    fn describe() -> String {
        "(every: 1_000, file: \"exchange.csv\")".into()
    }
}
