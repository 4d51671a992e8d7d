//! Rows of CSV, and tables that are replaced as a whole.

use galamost_plugin_api::prelude::*;
use std::path::{Path, PathBuf};

/// Rows as CSV.
///
/// # Errors
/// Never, in memory; the writer's words.
pub fn text<R: AsRef<[String]>>(rows: &[R]) -> Result<Vec<u8>> {
    let mut w = csv::Writer::from_writer(vec![]);
    for row in rows {
        w.write_record(row.as_ref()).map_err(|e| Error::Run(e.to_string()))?;
    }
    w.into_inner().map_err(|e| Error::Run(e.to_string()))
}

/// A header.
pub fn header(names: &[&str]) -> Vec<String> {
    names.iter().map(|n| (*n).into()).collect()
}

/// A number with all its digits.
pub fn number(x: f64) -> String {
    format!("{x:?}")
}

/// Replaces a file: readers see the old table or the new one, never a part.
///
/// # Errors
/// The system's words.
pub fn replace<R: AsRef<[String]>>(path: &Path, rows: &[R]) -> Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".part");
    let part = path.with_file_name(name);
    std::fs::write(&part, text(rows)?).map_err(|e| Error::io(&part, e))?;
    std::fs::rename(&part, path).map_err(|e| Error::io(path, e))
}

/// Numbers for a checkpoint.
pub fn bytes(numbers: &[f64]) -> Vec<u8> {
    numbers.iter().flat_map(|x| x.to_le_bytes()).collect()
}

/// Numbers of a checkpoint, and what follows them.
///
/// # Errors
/// There are not `expected` of them at the front.
pub fn numbers(bytes: &[u8], expected: usize) -> Result<(Vec<f64>, &[u8])> {
    let Some((mine, rest)) = bytes.split_at_checked(8 * expected) else {
        return Err(Error::Run("the checkpoint is of another analyzer".into()));
    };
    Ok((mine.as_chunks::<8>().0.iter().map(|b| f64::from_le_bytes(*b)).collect(), rest))
}

/// A CSV file that an analyzer appends to, row by row, with a header where it begins.
#[derive(Debug, Default)]
pub struct Rows {
    path: PathBuf,
    resumed: bool,
    kept: Option<Vec<u8>>,
    file: Option<RowFile>,
}

impl Rows {
    /// In `bind`: a file of the pipeline.
    pub fn bind(&mut self, system: &SystemInfo, file: &str) {
        self.path = system.path(file);
        self.resumed = system.resumed;
    }

    /// In `start`: opens it, cut to what the checkpoint knows.
    ///
    /// # Errors
    /// The system's words, or the file is shorter than it was.
    pub fn start(&mut self) -> Result<()> {
        self.file = Some(RowFile::open(&self.path, self.resumed, self.kept.as_deref())?);
        Ok(())
    }

    /// Writes rows, below `names` where the file begins.
    ///
    /// # Errors
    /// The system's words, or there was no `start`.
    pub fn append(&mut self, names: &[&str], rows: &[Vec<String>]) -> Result<()> {
        let file = self.file.as_mut().ok_or_else(|| Error::Run("the analyzer was not started".into()))?;
        let mut all = if file.is_empty() { text(&[header(names)])? } else { vec![] };
        all.extend(text(rows)?);
        file.append(&all)
    }

    /// In `save`.
    ///
    /// # Errors
    /// The system's words.
    pub fn save(&mut self) -> Result<Vec<u8>> {
        self.file.as_mut().map_or(Ok(vec![]), RowFile::save)
    }

    /// In `load`, with what `save` gave.
    pub fn load(&mut self, state: &[u8]) {
        self.kept = Some(state.to_vec());
    }
}
