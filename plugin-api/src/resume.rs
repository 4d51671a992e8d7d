//! Checks of growing output files before a run resumes.
//!
//! A component calls them in `load`, which the engine calls before anything runs: a file that cannot be continued is an
//! error of the input, and no file has been touched. Before the run, the user can replace the file by an empty one, with
//! which the output starts again.

use crate::error::{Error, Result};
use std::io::ErrorKind;
use std::path::Path;

/// What to do with a file that cannot be continued, for the end of a message.
pub const RESTORE: &str = "restore it, or empty it to begin it again";

/// Returns whether a file exists and is not empty.
pub fn has_content(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|m| m.len() > 0)
}

/// Checks that a file or folder exists. `kept` is what it had at the checkpoint: `12 frames`.
///
/// # Errors
/// Returns an error if it is missing.
pub fn check_exists(path: &Path, kept: &str) -> Result<()> {
    match std::fs::metadata(path) {
        Err(e) if e.kind() == ErrorKind::NotFound => {
            let what = if path.extension().is_some_and(|e| e == "parquet") { "folder" } else { "file" };
            let remedy = format!("restore it, or create an empty {what} to start it again");
            Err(Error::io(path, format!("is missing; it had {kept} at the checkpoint: {remedy}")))
        }
        Err(e) => Err(Error::io(path, e)),
        Ok(_) => Ok(()),
    }
}

/// Checks that a file has at least the bytes that it had at the checkpoint, or none. Devices and pipes have no length.
///
/// # Errors
/// Returns an error if the file is missing or shorter.
pub fn check_length(path: &Path, length: u64) -> Result<()> {
    if length == 0 {
        return Ok(());
    }
    check_exists(path, &format!("{length} bytes"))?;
    match std::fs::metadata(path) {
        Ok(m) if m.is_file() && (1..length).contains(&m.len()) => {
            let message = format!("is shorter than at the checkpoint, {} of {length} bytes: {RESTORE}", m.len());
            Err(Error::io(path, message))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_and_shortened_files_are_found() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("rows.csv");
        let said = |length: u64| check_length(&path, length).map_err(|e| e.to_string());
        assert!(said(0).is_ok() && said(5).is_err_and(|e| e.contains("is missing; it had 5 bytes")));
        std::fs::write(&path, "").expect("written");
        assert!(said(5).is_ok() && !has_content(&path));
        std::fs::write(&path, "rows").expect("written");
        assert!(said(4).is_ok() && has_content(&path));
        assert!(said(5).is_err_and(|e| e.contains("is shorter than at the checkpoint, 4 of 5 bytes")));
        assert!(check_length(Path::new("/dev/null"), 5).is_ok());
    }
}
