//! Output files of analyzers.

use galamost_plugin_api::component::{Needs, SystemInfo};
use galamost_plugin_api::error::{Error, InputError, Result};
use galamost_plugin_api::output::{self, OutputKind, RowFile};
use galamost_plugin_api::resume::check_length;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Returns an error for each type name that a format cannot hold.
fn check_names(system: &SystemInfo, good: fn(&str) -> bool) -> Result<()> {
    let bad = system.type_names().filter(|n| !good(n));
    let error = |n| InputError::new(format!("the type name \"{n}\" cannot be written in this format; rename the type"));
    let errors: Vec<InputError> = bad.map(error).collect();
    if errors.is_empty() { Ok(()) } else { Err(Error::Input(errors)) }
}

/// A trajectory that an analyzer appends frames to. Each frame is written at once. When a run resumes, the file is
/// truncated to its length at the checkpoint.
#[derive(Debug, Default)]
pub struct FrameFile {
    path: PathBuf,
    system: SystemInfo,
    kept: Option<Vec<u8>>,
    rows: Option<RowFile>,
}

impl FrameFile {
    /// Sets the system and the file; `good` returns whether the format can hold a type name.
    ///
    /// # Errors
    /// Returns an error if a type name cannot be written.
    pub fn bind(&mut self, system: &SystemInfo, needs: &mut Needs, file: &str, good: fn(&str) -> bool) -> Result<()> {
        self.path = needs.output(system, file, OutputKind::Growing);
        self.system = system.clone();
        check_names(system, good)
    }

    /// Opens the file.
    ///
    /// # Errors
    /// Returns an error if the file cannot be opened.
    pub fn start(&mut self) -> Result<()> {
        self.rows = None;
        self.rows = Some(RowFile::open(&self.system, &self.path, self.kept.as_deref())?);
        Ok(())
    }

    /// Returns whether the file is empty.
    pub fn is_empty(&self) -> bool {
        self.rows.as_ref().is_none_or(RowFile::is_empty)
    }

    /// Appends a frame.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written; it then ends with the last complete frame.
    pub fn append(&mut self, frame: &[u8]) -> Result<()> {
        match &mut self.rows {
            Some(rows) => rows.append(frame),
            None => Err(Error::io(&self.path, "is not open; call `start` before the first frame")),
        }
    }

    /// Returns the state for a checkpoint.
    ///
    /// # Errors
    /// Returns an error if the file cannot be synced.
    pub fn save(&mut self) -> Result<Vec<u8>> {
        self.rows.as_mut().map_or(Ok(vec![]), RowFile::save)
    }

    /// Restores the state from a checkpoint.
    ///
    /// # Errors
    /// Returns an error if the file is missing or shorter than at the checkpoint.
    pub fn load(&mut self, state: &[u8]) -> Result<()> {
        self.kept = Some(state.to_vec());
        let length = state.try_into().map_or(0, u64::from_le_bytes);
        check_length(&self.path, length)
    }
}

/// A separate file for each state that an analyzer writes. `{step}` in the name is replaced by the step with 10 digits; without
/// it, the file is overwritten each time.
#[derive(Debug, Default)]
pub struct StateFile {
    system: SystemInfo,
    file: String,
}

impl StateFile {
    /// Sets the system and the file; `good` returns whether the format can hold a type name.
    ///
    /// # Errors
    /// Returns an error if a type name cannot be written.
    pub fn bind(&mut self, system: &SystemInfo, needs: &mut Needs, file: &str, good: fn(&str) -> bool) -> Result<()> {
        needs.output(system, file, OutputKind::State);
        (self.system, self.file) = (system.clone(), file.into());
        check_names(system, good)
    }

    fn path(&self, step: u64) -> PathBuf {
        self.system.path(&self.file.replace("{step}", &format!("{step:010}")))
    }

    /// Writes the file of a step.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn write(&self, step: u64, contents: &[u8]) -> Result<()> {
        let path = self.path(step);
        replace(&path, |out| out.write_all(contents)).map_err(|e| Error::io(&path, e))
    }
}

/// Replaces a file as [`output::replace`] and syncs it to the disk.
///
/// # Errors
/// Returns an error if the file cannot be written.
pub fn replace(path: &Path, contents: impl FnOnce(&mut BufWriter<File>) -> std::io::Result<()>) -> std::io::Result<()> {
    output::replace(path, |out| {
        contents(out)?;
        out.flush()?;
        out.get_ref().sync_all()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_truncated_on_resume() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut system = SystemInfo { directory: folder.path().to_string_lossy().into(), ..SystemInfo::default() };
        let begin = |system: &SystemInfo, kept: Option<&[u8]>| {
            let mut f = FrameFile::default();
            f.bind(system, &mut Needs::default(), "t", |_| true).expect("bound");
            kept.into_iter().for_each(|k| f.load(k).expect("loaded"));
            f.start().expect("started");
            f
        };
        let mut f = begin(&system, None);
        assert!(f.is_empty());
        f.append(b"frame 1\n").expect("written");
        let kept = f.save().expect("saved");
        f.append(b"frame 2\nfra").expect("written");
        (system.resumed, system.run) = (true, 1);
        let mut f = begin(&system, Some(&kept));
        assert!(!f.is_empty());
        f.append(b"frame 2\n").expect("written");
        assert_eq!(std::fs::read(folder.path().join("t")).expect("read"), b"frame 1\nframe 2\n");
        system.types = vec!["A".into(), "a b".into()];
        let mut needs = Needs::default();
        let e = f.bind(&system, &mut needs, "t", |n| !n.contains(' ')).map_err(|e| e.to_string());
        assert!(e.is_err_and(|e| e.contains("\"a b\"")));
        let mut s = StateFile::default();
        s.bind(&system, &mut needs, "s.{step}", |_| true).expect("bound");
        assert_eq!(needs.outputs.iter().map(|o| o.kind).collect::<Vec<_>>(), [OutputKind::Growing, OutputKind::State]);
        s.write(7, b"text").expect("written");
        assert_eq!(std::fs::read(folder.path().join("s.0000000007")).expect("read"), b"text");
    }
}
