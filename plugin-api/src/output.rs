//! Output files of components: what a component writes, text files that grow row by row, and files that are replaced whole.

use crate::error::{Error, Result};
use crate::system::SystemInfo;
use serde::{Deserialize, Serialize};
use std::any::Any;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// How a component writes a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OutputKind {
    /// Rows or frames are appended. Components of the same name may continue the file in different stages.
    Growing,
    /// Each sample replaces the file, or writes another file if the name contains `{step}`.
    State,
    /// The file holds results of all samples of one component.
    Result,
}

/// A file that a component writes; see [`crate::component::Needs::output`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputFile {
    /// Path relative to the folder of the pipeline. `{step}` represents any number of a step.
    pub path: String,
    /// How it is written.
    pub kind: OutputKind,
    /// Bytes of a growing file may change after they are written. When a run resumes, the component itself checks that the file is
    /// that of the checkpoint; the engine does it for other files, by their last bytes.
    #[serde(default)]
    pub rewritten: bool,
}

impl OutputFile {
    /// Returns a file whose bytes stay as they are written.
    pub fn new(path: &str, kind: OutputKind) -> Self {
        Self { path: path.into(), kind, rewritten: false }
    }
}

/// The largest number of symbolic links that are followed.
const MAX_LINKS: usize = 40;

/// Returns the file that a path leads to, which may not exist, so that replacing it keeps a symbolic link.
fn linked(path: &Path) -> PathBuf {
    let mut path = path.to_path_buf();
    for _ in 0..MAX_LINKS {
        let Ok(to) = std::fs::read_link(&path) else { break };
        path = path.parent().unwrap_or(Path::new("")).join(to);
    }
    path
}

/// Returns the name under which a file is written before it is renamed: `.galamost.NAME.part` in the same folder. Files of users have
/// other names, and what a killed run has left is replaced by the next one.
pub fn temporary(path: &Path) -> PathBuf {
    let mut name = OsString::from(".galamost.");
    name.push(path.file_name().unwrap_or_default());
    name.push(".part");
    path.with_file_name(name)
}

/// Checks that an open file has all bytes that were written to it. Call it before more are written: after a file was shortened, they
/// would follow a hole of zeros.
///
/// # Errors
/// Returns an error if the file is shorter than `length`.
pub fn check_not_shortened(file: &File, path: &Path, length: u64) -> Result<()> {
    let found = file.metadata().map_err(|e| Error::io(path, e))?;
    if !found.is_file() || found.len() >= length {
        return Ok(());
    }
    let message = format!(
        "was shortened to {} of {length} bytes while the run was writing it: restore it, or empty it to begin it again, and resume",
        found.len()
    );
    Err(Error::io(path, message))
}

/// Replaces a file: writes it under the name of [`temporary`] and renames it, so that readers see the old file or the new one. Of a
/// symbolic link, the file is replaced that it leads to. `write` may sync the file to the disk.
///
/// # Errors
/// Returns the error of `write` or of the file system.
pub fn replace(path: &Path, write: impl FnOnce(&mut BufWriter<File>) -> std::io::Result<()>) -> std::io::Result<()> {
    let path = linked(path);
    let part = temporary(&path);
    let mut out = BufWriter::with_capacity(1 << 20, File::create(&part)?);
    let written = write(&mut out).and_then(|()| out.flush());
    // dropping the writer would try to write again
    drop(out.into_parts());
    let done = written.and_then(|()| std::fs::rename(&part, &path));
    if done.is_err() {
        // free the space on a full disk; the first error is the one to report
        let _ = std::fs::remove_file(&part);
    }
    done
}

/// An open output that the components of one run and one library share if they write the same file.
///
/// Two stages may have components of the same name that write the same file. Both use the output that the first of them
/// opened, so rows and frames follow each other, and both save the same length in a checkpoint.
#[derive(Debug)]
pub struct SharedOutput<T>(Arc<Mutex<T>>);

/// An open output: its run, its canonical path, the output.
type OpenOutput = (u64, PathBuf, Weak<dyn Any + Send + Sync>);

/// All open outputs of this library.
static OPEN: Mutex<Vec<OpenOutput>> = Mutex::new(vec![]);

impl<T: Send + 'static> SharedOutput<T> {
    /// Returns the output at `path` that another component of this run has opened, or opens it.
    ///
    /// # Errors
    /// Returns the error of `open`.
    pub fn open(system: &SystemInfo, path: &Path, open: impl FnOnce() -> Result<T>) -> Result<Self> {
        let mut all = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(.., output)| output.strong_count() > 0);
        let canonical = std::fs::canonicalize(path).ok();
        let found = all.iter().filter(|(run, p, _)| *run == system.run && Some(p) == canonical.as_ref());
        if let Some(shared) = found.filter_map(|(.., o)| o.upgrade()?.downcast::<Mutex<T>>().ok()).next() {
            return Ok(Self(shared));
        }
        let opened = Arc::new(Mutex::new(open()?));
        let canonical = std::fs::canonicalize(path).map_err(|e| Error::io(path, e))?;
        let weak: Weak<Mutex<T>> = Arc::downgrade(&opened);
        all.push((system.run, canonical, weak));
        Ok(Self(opened))
    }

    /// Returns the output for exclusive use.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A text file that an analyzer appends to.
///
/// A killed run may have written rows after its last checkpoint; the resumed run writes those rows again. The analyzer
/// therefore stores the length of the file in the checkpoint ([`RowFile::save`]), and a resumed run truncates the file
/// to that length. Components of several stages that write the same file share it; see [`SharedOutput`].
#[derive(Debug)]
pub struct RowFile(SharedOutput<Rows>);

#[derive(Debug)]
struct Rows {
    path: PathBuf,
    file: File,
    /// Length of all complete rows in bytes.
    length: u64,
    /// The header that the file is known to begin with.
    header: Vec<u8>,
}

impl Rows {
    fn open(system: &SystemInfo, path: &Path, kept: Option<&[u8]>) -> Result<Self> {
        let failed = |e: std::io::Error| Error::io(path, e);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(!system.resumed);
        let mut file = options.open(path).map_err(failed)?;
        let mut length = file.metadata().map_err(failed)?.len();
        if system.resumed
            && let Some(kept) = kept.and_then(|k| Some(u64::from_le_bytes(k.try_into().ok()?)))
        {
            // a file that the user moved away is started again
            if length > 0 && length < kept {
                return Err(Error::io(
                    path,
                    "is shorter than at the checkpoint: restore it, or empty it to begin it again",
                ));
            }
            length = length.min(kept);
            file.set_len(length).map_err(failed)?;
        }
        file.seek(SeekFrom::Start(length)).map_err(failed)?;
        Ok(Self { path: path.into(), file, length, header: vec![] })
    }

    fn append(&mut self, text: &[u8]) -> Result<()> {
        check_not_shortened(&self.file, &self.path, self.length)?;
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

    fn begin(&mut self, header: &[u8]) -> Result<()> {
        if self.header == header {
            return Ok(());
        }
        if self.length == 0 {
            self.append(header)?;
        } else {
            let mut first = vec![];
            let read = self.file.rewind().and_then(|()| {
                (&self.file).take(header.len() as u64).read_to_end(&mut first)?;
                self.file.seek(SeekFrom::Start(self.length))
            });
            read.map_err(|e| Error::io(&self.path, e))?;
            if first != header {
                let [old, new] =
                    [&first[..], header].map(|h| String::from_utf8_lossy(h).lines().next().unwrap_or("").to_string());
                let message =
                    format!("begins with the columns {old}…, but the new rows have {new}; write them to another file");
                return Err(Error::io(&self.path, message));
            }
        }
        self.header = header.into();
        Ok(())
    }
}

impl RowFile {
    /// Opens the file.
    ///
    /// A new run creates or truncates it. A resumed run truncates it to the length in `kept`, which [`RowFile::save`]
    /// returned; without `kept` the old content stays.
    ///
    /// # Errors
    /// Returns the operating system's error, or an error if the file is shorter than at the checkpoint.
    pub fn open(system: &SystemInfo, path: &Path, kept: Option<&[u8]>) -> Result<Self> {
        SharedOutput::open(system, path, || Rows::open(system, path, kept)).map(Self)
    }

    /// Writes the header line of an empty file. Call this before rows are appended.
    ///
    /// # Errors
    /// Returns an error if the file begins with another header, or the operating system's error.
    pub fn begin(&mut self, header: &[u8]) -> Result<()> {
        self.0.lock().begin(header)
    }

    /// Returns whether the file has no content yet.
    pub fn is_empty(&self) -> bool {
        self.0.lock().length == 0
    }

    /// Appends `text` and flushes it.
    ///
    /// # Errors
    /// Returns the operating system's error. The file is then truncated to the last complete text, if possible. Returns an error, and
    /// changes nothing, if another program has shortened the file.
    pub fn append(&mut self, text: &[u8]) -> Result<()> {
        self.0.lock().append(text)
    }

    /// Flushes the file to disk and returns its length, the state for a checkpoint. If another program has shortened the file, a run that
    /// resumes from this state notices it.
    ///
    /// # Errors
    /// Returns the operating system's error.
    pub fn save(&mut self) -> Result<Vec<u8>> {
        let rows = self.0.lock();
        rows.file.sync_data().map_err(|e| Error::io(&rows.path, e))?;
        Ok(rows.length.to_le_bytes().to_vec())
    }
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
        assert_eq!(std::fs::read_dir(folder.path()).expect("read").count(), 1, "no temporary file is left");
    }

    /// A file with the name that temporary files had in earlier versions is the user's.
    #[test]
    fn files_of_the_user_are_not_taken_as_temporary_ones() {
        let folder = tempfile::tempdir().expect("a folder");
        let mine = folder.path().join("a.part");
        std::fs::write(&mine, "mine").expect("written");
        replace(&folder.path().join("a"), |out| out.write_all(b"new")).expect("written");
        assert_eq!(std::fs::read(&mine).expect("read"), b"mine");
        assert_eq!(temporary(Path::new("b/a")), Path::new("b/.galamost.a.part"));
    }

    /// Rows after a file was emptied would follow zeros, and a checkpoint would have a length that the file does not have.
    #[test]
    fn a_file_that_another_program_shortens_gets_no_rows() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("rows.csv");
        let mut f = RowFile::open(&system(false), &path, None).expect("opened");
        f.append(b"step\n1\n").expect("written");
        std::fs::write(&path, "st").expect("shortened");
        let expected = "was shortened to 2 of 7 bytes while the run was writing it";
        assert!(f.append(b"2\n").is_err_and(|e| e.to_string().contains(expected)));
        // a checkpoint after that has the length that the file should have
        assert_eq!(f.save().expect("saved"), 7u64.to_le_bytes());
        assert_eq!(std::fs::read(&path).expect("read"), b"st");
    }

    #[test]
    fn a_link_remains_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, link) = (folder.path().join("disk/a"), folder.path().join("b"));
        std::fs::create_dir(folder.path().join("disk")).expect("a folder");
        std::os::unix::fs::symlink("disk/a", &link).expect("a link");
        for text in [b"old", b"new"] {
            replace(&link, |out| out.write_all(text)).expect("written");
            assert!(link.is_symlink());
            assert_eq!(std::fs::read(&path).expect("read"), text);
        }
    }

    fn system(resumed: bool) -> SystemInfo {
        SystemInfo { resumed, ..SystemInfo::default() }
    }

    #[test]
    fn a_resumed_file_is_cut_to_the_checkpoint() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("rows.csv");
        let mut f = RowFile::open(&system(false), &path, None).expect("opened");
        assert!(f.is_empty());
        f.append(b"step\n1\n").expect("written");
        let kept = f.save().expect("saved");
        f.append(b"2\n3\n").expect("written");
        drop(f);
        let mut f = RowFile::open(&system(true), &path, Some(&kept)).expect("opened");
        assert!(!f.is_empty());
        f.append(b"2\n").expect("written");
        drop(f);
        assert_eq!(std::fs::read_to_string(&path).expect("text"), "step\n1\n2\n");
        std::fs::write(&path, "st").expect("written");
        assert!(RowFile::open(&system(true), &path, Some(&kept)).is_err());
        std::fs::remove_file(&path).expect("removed");
        assert!(RowFile::open(&system(true), &path, Some(&kept)).expect("opened").is_empty());
        std::fs::write(&path, "kept whole\n").expect("written");
        RowFile::open(&system(true), &path, None).expect("opened").append(b"more\n").expect("written");
        assert_eq!(std::fs::read_to_string(&path).expect("text"), "kept whole\nmore\n");
    }

    #[test]
    fn components_of_a_run_share_a_file_with_one_header() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("rows.csv");
        let mut a = RowFile::open(&system(false), &path, None).expect("opened");
        let mut b = RowFile::open(&system(false), &path, None).expect("opened");
        a.begin(b"step,x\n").expect("a header");
        a.append(b"1,1\n").expect("written");
        b.begin(b"step,x\n").expect("the same header");
        b.append(b"2,2\n").expect("written");
        let wrong = b.begin(b"step,y\n").map_err(|e| e.to_string());
        assert!(wrong.is_err_and(|e| e.contains("step,x…, but the new rows have step,y")));
        assert_eq!(a.save().expect("saved"), b.save().expect("saved"));
        assert_eq!(std::fs::read_to_string(&path).expect("text"), "step,x\n1,1\n2,2\n");
        // another run has its own file
        let other = SystemInfo { run: 1, ..system(false) };
        assert!(RowFile::open(&other, &path, None).expect("opened").is_empty());
    }
}
