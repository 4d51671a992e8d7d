//! Rows of CSV, and tables that are replaced as a whole.

use galamost_plugin_api::prelude::*;
use std::path::Path;

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

/// Replaces a file: readers see the old table or the new one, never a part.
///
/// # Errors
/// The system's words.
pub fn replace(path: &Path, rows: &[Vec<String>]) -> Result<()> {
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

/// Numbers of a checkpoint.
///
/// # Errors
/// There are not `expected` of them at the front.
pub fn numbers(bytes: &[u8], expected: usize) -> Result<(Vec<f64>, &[u8])> {
    let Some((mine, rest)) = bytes.split_at_checked(8 * expected) else {
        return Err(Error::Run("the checkpoint is of another analyzer".into()));
    };
    Ok((mine.as_chunks::<8>().0.iter().map(|b| f64::from_le_bytes(*b)).collect(), rest))
}

/// A header.
pub fn header(names: &[&str]) -> Vec<String> {
    names.iter().map(|n| (*n).into()).collect()
}
