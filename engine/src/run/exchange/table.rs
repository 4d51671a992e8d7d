//! The table of exchanges: a row for each step with attempts.

use crate::checkpoint::exchange::ExchangeState;
use crate::plan::Plan;
use galamost_plugin_api::component::SystemInfo;
use galamost_plugin_api::error::Result;
use galamost_plugin_api::output::RowFile;
use std::fmt::Write as _;
use std::path::PathBuf;

/// The table. The file is opened with the first row, when the files of an earlier run have been renamed.
pub(super) struct Table {
    path: PathBuf,
    system: SystemInfo,
    replicas: usize,
    file: Option<RowFile>,
}

impl Table {
    /// Returns the table of replicas; `first` is the plan of the first one.
    pub fn new(first: &Plan, replicas: usize) -> Self {
        let pipeline = &first.pipeline;
        let path = pipeline.exchange.as_ref().map(|e| e.table(pipeline.common_path())).unwrap_or_default();
        Self { path, system: first.system.clone(), replicas, file: None }
    }

    /// Appends a row: the step, the walker in each replica afterwards, and the potential energy in each replica before.
    ///
    /// # Errors
    /// Returns the operating system's error.
    pub fn append(&mut self, state: &ExchangeState, potentials: &[f64]) -> Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            None => {
                let kept = Some(&state.table[..]).filter(|t| !t.is_empty());
                self.file.insert(RowFile::open(&self.system, &self.path, kept)?)
            }
        };
        let mut header = String::from("step");
        for what in ["walker", "potential"] {
            (0..self.replicas).for_each(|r| header.push_str(&format!(",{what}_{r}")));
        }
        file.begin(format!("{header}\n").as_bytes())?;
        let mut row = state.step.to_string();
        for walker in &state.walkers {
            let _ = write!(row, ",{walker}");
        }
        for potential in potentials {
            let _ = write!(row, ",{potential}");
        }
        row.push('\n');
        file.append(row.as_bytes())
    }

    /// Flushes the file to disk and returns its state for a checkpoint; `None` if no row was written.
    ///
    /// # Errors
    /// Returns the operating system's error.
    pub fn save(&mut self) -> Result<Option<Vec<u8>>> {
        self.file.as_mut().map(RowFile::save).transpose()
    }
}
