//! Text files that grow row by row, for analyzers. A resumed run truncates them to the state of the checkpoint.

use crate::error::{Error, Result};
use std::fs::{File, OpenOptions};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

/// A text file that an analyzer appends to.
///
/// A killed run may have written rows after its last checkpoint; the resumed run writes those rows again. The analyzer
/// therefore stores the length of the file in the checkpoint ([`RowFile::save`]), and a resumed run truncates the file
/// to that length.
#[derive(Debug)]
pub struct RowFile {
    path: PathBuf,
    file: File,
    /// Length of all complete rows in bytes.
    length: u64,
}

impl RowFile {
    /// Opens the file.
    ///
    /// A new run creates or truncates it. A resumed run truncates it to the length in `kept`, which [`RowFile::save`]
    /// returned; without `kept` the old content stays.
    ///
    /// # Errors
    /// Returns the operating system's error, or an error if the file is shorter than at the checkpoint.
    pub fn open(path: &Path, resumed: bool, kept: Option<&[u8]>) -> Result<Self> {
        let failed = |e: std::io::Error| Error::io(path, e);
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(!resumed);
        let mut file = options.open(path).map_err(failed)?;
        let there = file.metadata().map_err(failed)?;
        let mut length = if there.is_file() { there.len() } else { 0 };
        if resumed && let Some(kept) = kept.and_then(|k| Some(u64::from_le_bytes(k.try_into().ok()?))) {
            // a file that the user moved away is started again
            if length > 0 && length < kept {
                return Err(Error::io(path, "is shorter than at the checkpoint: rename or delete it"));
            }
            if there.is_file() {
                length = length.min(kept);
                file.set_len(length).map_err(failed)?;
            }
        }
        if there.is_file() {
            file.seek(SeekFrom::Start(length)).map_err(failed)?;
        }
        Ok(Self { path: path.into(), file, length })
    }

    /// Returns whether the file has no content yet and needs a header.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Appends `text` and flushes it.
    ///
    /// # Errors
    /// Returns the operating system's error. The file is then truncated to the last complete text, if possible.
    pub fn append(&mut self, text: &[u8]) -> Result<()> {
        match self.file.write_all(text).and_then(|()| self.file.flush()) {
            Ok(()) => {
                self.length += text.len() as u64;
                Ok(())
            }
            Err(e) => {
                // a partial row would be read as a complete one
                let _ = self.file.set_len(self.length);
                let _ = self.file.seek(SeekFrom::Start(self.length));
                Err(Error::io(&self.path, e))
            }
        }
    }

    /// Flushes the file to disk and returns its length, the state for a checkpoint.
    ///
    /// # Errors
    /// Returns the operating system's error.
    pub fn save(&mut self) -> Result<Vec<u8>> {
        if self.file.metadata().is_ok_and(|m| m.is_file()) {
            self.file.sync_data().map_err(|e| Error::io(&self.path, e))?;
        }
        Ok(self.length.to_le_bytes().to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resumed_file_is_cut_to_the_checkpoint() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("rows.csv");
        let mut f = RowFile::open(&path, false, None).expect("opened");
        assert!(f.is_empty());
        f.append(b"step\n1\n").expect("written");
        let kept = f.save().expect("saved");
        f.append(b"2\n3\n").expect("written");
        let mut f = RowFile::open(&path, true, Some(&kept)).expect("opened");
        assert!(!f.is_empty());
        f.append(b"2\n").expect("written");
        assert_eq!(std::fs::read_to_string(&path).expect("text"), "step\n1\n2\n");
        std::fs::write(&path, "st").expect("written");
        assert!(RowFile::open(&path, true, Some(&kept)).is_err());
        std::fs::remove_file(&path).expect("removed");
        assert!(RowFile::open(&path, true, Some(&kept)).expect("opened").is_empty());
        std::fs::write(&path, "kept whole\n").expect("written");
        RowFile::open(&path, true, None).expect("opened").append(b"more\n").expect("written");
        assert_eq!(std::fs::read_to_string(&path).expect("text"), "kept whole\nmore\n");
    }
}
