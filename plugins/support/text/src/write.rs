//! Files that analyzers write.

use galamost_plugin_api::component::SystemInfo;
use galamost_plugin_api::error::{Error, InputError, Result};
use galamost_plugin_api::output::RowFile;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Whether a file can stand there, as far as its folder tells.
fn check_folder(path: &Path) -> Option<InputError> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty())?;
    (!folder.is_dir()).then(|| InputError::new(format!("there is no folder {} for `file`", folder.display())))
}

/// Names of types that a format cannot hold.
fn check_names(system: &SystemInfo, good: fn(&str) -> bool) -> impl Iterator<Item = InputError> {
    let names = [&system.types, &system.bond_types, &system.angle_types, &system.dihedral_types];
    names
        .into_iter()
        .flatten()
        .filter(move |n| !good(n))
        .map(|n| InputError::new(format!("the type name \"{n}\" cannot be written in this format")))
}

fn all(errors: Vec<InputError>) -> Result<()> {
    if errors.is_empty() { Ok(()) } else { Err(Error::Input(errors)) }
}

/// A text trajectory that an analyzer appends frames to. Each frame is handed to the system as a whole; after a restart the file is
/// cut to what the checkpoint knows.
#[derive(Debug, Default)]
pub struct FrameFile {
    path: PathBuf,
    resumed: bool,
    kept: Option<Vec<u8>>,
    rows: Option<RowFile>,
}

impl FrameFile {
    /// Learns the system and the file's name; `good` tells which names of types the format can hold.
    ///
    /// # Errors
    /// There is no such folder, or a name cannot be written.
    pub fn bind(&mut self, system: &SystemInfo, file: &str, good: fn(&str) -> bool) -> Result<()> {
        self.path = system.path(file);
        self.resumed = system.resumed;
        all(check_names(system, good).chain(check_folder(&self.path)).collect())
    }

    /// Opens the file.
    ///
    /// # Errors
    /// The system's words.
    pub fn start(&mut self) -> Result<()> {
        self.rows = Some(RowFile::open(&self.path, self.resumed, self.kept.as_deref())?);
        Ok(())
    }

    /// Whether nothing was written yet.
    pub fn is_empty(&self) -> bool {
        self.rows.as_ref().is_none_or(RowFile::is_empty)
    }

    /// Appends a frame.
    ///
    /// # Errors
    /// The system's words; the file then ends with the last whole frame.
    pub fn append(&mut self, frame: &[u8]) -> Result<()> {
        match &mut self.rows {
            Some(rows) => rows.append(frame),
            None => Err(Error::io(&self.path, "was not opened")),
        }
    }

    /// State for a checkpoint.
    ///
    /// # Errors
    /// The system's words.
    pub fn save(&mut self) -> Result<Vec<u8>> {
        self.rows.as_mut().map_or(Ok(vec![]), RowFile::save)
    }

    /// State from a checkpoint.
    pub fn load(&mut self, state: &[u8]) {
        self.kept = Some(state.to_vec());
    }
}

/// A file for each of the states that an analyzer writes: `{step}` in its name stands for the step with 10 digits; without it the
/// file is written anew each time.
#[derive(Debug, Default)]
pub struct StateFile {
    system: SystemInfo,
    file: String,
}

impl StateFile {
    /// Learns the system and the file's name; `good` tells which names of types the format can hold.
    ///
    /// # Errors
    /// There is no such folder, or a name cannot be written.
    pub fn bind(&mut self, system: &SystemInfo, file: &str, good: fn(&str) -> bool) -> Result<()> {
        (self.system, self.file) = (system.clone(), file.into());
        all(check_names(system, good).chain(check_folder(&self.path(0))).collect())
    }

    /// The system.
    pub fn system(&self) -> &SystemInfo {
        &self.system
    }

    fn path(&self, step: u64) -> PathBuf {
        self.system.path(&self.file.replace("{step}", &format!("{step:010}")))
    }

    /// Writes the file of a step as a whole.
    ///
    /// # Errors
    /// The system's words.
    pub fn write(&self, step: u64, contents: &[u8]) -> Result<()> {
        let path = self.path(step);
        replace(&path, |out| out.write_all(contents)).map_err(|e| Error::io(&path, e))
    }
}

/// Writes a file under another name, brings it to the disk and renames it, so that there is always a whole one.
///
/// # Errors
/// The system's words.
pub fn replace(path: &Path, contents: impl FnOnce(&mut BufWriter<File>) -> std::io::Result<()>) -> std::io::Result<()> {
    let mut part = path.as_os_str().to_owned();
    part.push(".part");
    let part = PathBuf::from(part);
    let mut out = BufWriter::with_capacity(1 << 20, File::create(&part)?);
    let written = contents(&mut out).and_then(|()| out.flush()).and_then(|()| out.get_ref().sync_all());
    // without a last try to write, which dropping it would be
    drop(out.into_parts());
    let done = written.and_then(|()| std::fs::rename(&part, path));
    if done.is_err() {
        // a full disk needs the room; the first error is the one to tell
        let _ = std::fs::remove_file(&part);
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_replaced_whole() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a");
        replace(&path, |out| out.write_all(b"old")).expect("written");
        let full = replace(&path, |_| Err(std::io::ErrorKind::StorageFull.into()));
        assert_eq!(full.map_err(|e| e.kind()), Err(std::io::ErrorKind::StorageFull));
        assert_eq!(std::fs::read(&path).expect("read"), b"old");
        assert_eq!(std::fs::read_dir(folder.path()).expect("read").count(), 1, "nothing is left behind");
    }

    #[test]
    fn frames_are_cut_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut system = SystemInfo { directory: folder.path().to_string_lossy().into(), ..SystemInfo::default() };
        let begin = |system: &SystemInfo, kept: Option<&[u8]>| {
            let mut f = FrameFile::default();
            f.bind(system, "t", |_| true).expect("bound");
            kept.into_iter().for_each(|k| f.load(k));
            f.start().expect("started");
            f
        };
        let mut f = begin(&system, None);
        assert!(f.is_empty());
        f.append(b"frame 1\n").expect("written");
        let kept = f.save().expect("saved");
        f.append(b"frame 2\nfra").expect("written");
        system.resumed = true;
        let mut f = begin(&system, Some(&kept));
        assert!(!f.is_empty());
        f.append(b"frame 2\n").expect("written");
        assert_eq!(std::fs::read(folder.path().join("t")).expect("read"), b"frame 1\nframe 2\n");
        system.types = vec!["A".into(), "a b".into()];
        let e = f.bind(&system, "no/t", |n| !n.contains(' ')).map_err(|e| e.to_string());
        assert!(e.is_err_and(|e| e.contains("\"a b\"") && e.contains("there is no folder")));
        let mut s = StateFile::default();
        s.bind(&system, "s.{step}", |_| true).expect("bound");
        s.write(7, b"text").expect("written");
        assert_eq!(std::fs::read(folder.path().join("s.0000000007")).expect("read"), b"text");
    }
}
