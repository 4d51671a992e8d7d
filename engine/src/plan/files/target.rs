//! The place in the file system that a path of a pipeline refers to.

use galamost_plugin_api::output::temporary;
use std::ffi::OsString;
use std::fs::{Metadata, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// The part of a file name that represents the number of a step.
const STEP: &str = "{step}";
/// The largest number of symbolic links that are followed.
const MAX_LINKS: usize = 40;

/// A file, or all files of a pattern with `{step}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The folder, without symbolic links.
    pub folder: PathBuf,
    /// The file name.
    pub file: OsString,
    /// The file name as text, which may contain `{step}`.
    pub name: String,
    /// Device and number of an existing file.
    pub inode: Option<(u64, u64)>,
    /// Whether it is an existing folder.
    pub is_folder: bool,
}

impl Target {
    /// Follows symbolic links, `.` and `..`.
    ///
    /// # Errors
    /// Returns the reason if no file can have this path.
    pub fn resolve(path: &Path) -> Result<Self, String> {
        let mut path = path.to_path_buf();
        for _ in 0..MAX_LINKS {
            let file = path.file_name().ok_or("this is not the name of a file")?.to_os_string();
            let name = file.to_string_lossy().into_owned();
            let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
            let folder = std::fs::canonicalize(parent).map_err(|e| match e.kind() {
                ErrorKind::NotFound => format!("there is no folder {}", parent.display()),
                _ => format!("the folder {} cannot be used: {e}", parent.display()),
            })?;
            if is_special(&folder) {
                return Err("devices and kernel files are not allowed; give a file in a folder of a disk".into());
            }
            let found = if name.contains(STEP) { None } else { std::fs::symlink_metadata(folder.join(&file)).ok() };
            match found {
                Some(m) if m.is_symlink() => {
                    let to = std::fs::read_link(folder.join(&file)).map_err(|e| e.to_string())?;
                    path = folder.join(to);
                }
                other => return Self::of(folder, file, name, other),
            }
        }
        Err("there are too many symbolic links".into())
    }

    fn of(folder: PathBuf, file: OsString, name: String, found: Option<Metadata>) -> Result<Self, String> {
        let special = |m: &Metadata| {
            let t = m.file_type();
            t.is_fifo() || t.is_socket() || t.is_char_device() || t.is_block_device()
        };
        if found.as_ref().is_some_and(special) {
            return Err("this is a pipe, a socket or a device, not a file".into());
        }
        let is_folder = found.as_ref().is_some_and(Metadata::is_dir);
        Ok(Self { folder, file, name, inode: found.map(|m| (m.dev(), m.ino())), is_folder })
    }

    /// Returns whether the name contains `{step}`.
    pub fn is_pattern(&self) -> bool {
        self.name.contains(STEP)
    }

    /// Returns the path.
    pub fn path(&self) -> PathBuf {
        self.folder.join(&self.file)
    }

    /// Returns the target with another name in the same folder.
    pub fn with_suffix(&self, suffix: &str) -> Self {
        let mut file = self.file.clone();
        file.push(suffix);
        let name = file.to_string_lossy().into_owned();
        Self { folder: self.folder.clone(), file, name, inode: None, is_folder: false }
    }

    /// Returns the target under whose name this one is written before it is renamed.
    pub fn temporary(&self) -> Self {
        let file = temporary(Path::new(&self.file)).into_os_string();
        let name = file.to_string_lossy().into_owned();
        Self { folder: self.folder.clone(), file, name, inode: None, is_folder: false }
    }

    /// Checks that a resumed run can continue an existing file, if it `grows`.
    ///
    /// # Errors
    /// Returns the reason if it cannot.
    pub fn check_existing(&self, grows: bool) -> Result<(), String> {
        match (grows && self.inode.is_some(), self.is_folder) {
            (true, true) => super::probe_folder(&self.path()).map_err(|e| format!("no file can be created in it: {e}")),
            (true, false) => OpenOptions::new().append(true).open(self.path()).map(drop).map_err(|e| e.to_string()),
            (false, _) => Ok(()),
        }
    }

    /// Returns whether a file may belong to both targets.
    pub fn overlaps(&self, other: &Self) -> bool {
        let same_inode = self.inode.is_some() && self.inode == other.inode;
        same_inode || self.folder == other.folder && self.may_be(&other.name)
    }

    /// Returns whether this is a file in a folder that the other target is, such as a table in Parquet, or in a folder inside.
    pub fn is_inside(&self, other: &Self) -> bool {
        other.is_folder && self.folder.starts_with(other.path())
    }

    /// Returns whether a file with this name, which may contain `{step}`, in the same folder may belong to the target.
    pub fn may_be(&self, name: &str) -> bool {
        names_overlap(&self.name, name)
    }

    /// Returns the step in the name of a file of the pattern.
    pub fn step_of(&self, name: &str) -> Option<u64> {
        let (before, after) = ends(&self.name)?;
        name.strip_prefix(before)?.strip_suffix(after)?.parse().ok()
    }

    /// Returns the existing files, sorted.
    ///
    /// # Errors
    /// Returns the error of the file system.
    pub fn existing(&self) -> std::io::Result<Vec<PathBuf>> {
        if !self.is_pattern() {
            let path = self.path();
            return Ok(if std::fs::symlink_metadata(&path).is_ok() { vec![path] } else { vec![] });
        }
        let mut found = vec![];
        for entry in std::fs::read_dir(&self.folder)? {
            let name = entry?.file_name();
            if name.to_str().is_some_and(|n| names_overlap(&self.name, n)) {
                found.push(self.folder.join(name));
            }
        }
        found.sort();
        Ok(found)
    }
}

/// Returns the path that a file has after it was written under the path of [`temporary`].
pub fn without_temporary(path: &str) -> String {
    let name = Path::new(path).file_name().unwrap_or_default().to_string_lossy();
    let name = name.strip_prefix(".galamost.").and_then(|n| n.strip_suffix(".part")).unwrap_or(&name);
    Path::new(path).with_file_name(name).to_string_lossy().into_owned()
}

/// Returns whether a folder contains devices or files of the kernel.
fn is_special(folder: &Path) -> bool {
    let special = ["/dev", "/proc", "/sys"].iter().any(|s| folder.starts_with(s));
    special && !folder.starts_with("/dev/shm")
}

/// Returns the text before the first `{step}` and after the last one.
fn ends(name: &str) -> Option<(&str, &str)> {
    Some((name.split_once(STEP)?.0, name.rsplit_once(STEP)?.1))
}

fn digits(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit())
}

/// Returns whether two names may be the same if `{step}` is any number.
fn names_overlap(a: &str, b: &str) -> bool {
    match (ends(a), ends(b)) {
        (None, None) => a == b,
        (Some((before, after)), None) => matches(before, after, b),
        (None, Some((before, after))) => matches(before, after, a),
        (Some((before_a, after_a)), Some((before_b, after_b))) => {
            let starts = |x: &str, y: &str| x.strip_prefix(y).is_some_and(digits);
            let stops = |x: &str, y: &str| x.strip_suffix(y).is_some_and(digits);
            (starts(before_a, before_b) || starts(before_b, before_a))
                && (stops(after_a, after_b) || stops(after_b, after_a))
        }
    }
}

fn matches(before: &str, after: &str, name: &str) -> bool {
    let step = name.strip_prefix(before).and_then(|n| n.strip_suffix(after));
    step.is_some_and(|s| !s.is_empty() && digits(s))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_overlap_if_a_number_makes_them_equal() {
        for (a, b, same) in [
            ("t.csv", "t.csv", true),
            ("t.csv", "u.csv", false),
            ("{step}.xml", "0000000010.xml", true),
            ("{step}.xml", "x.xml", false),
            ("{step}.xml", ".xml", false),
            ("{step}.xml", "a{step}.xml", false),
            ("{step}.xml", "{step}-v.xml", false),
            ("{step}.xml", "1{step}.xml", true),
            ("a{step}.xml", "a{step}.xml", true),
            ("a{step}.xml", "a{step}.gsd", false),
        ] {
            assert_eq!((names_overlap(a, b), names_overlap(b, a)), (same, same), "{a} {b}");
        }
    }

    #[test]
    fn links_and_dots_are_followed() {
        let f = tempfile::tempdir().expect("a folder");
        let root = f.path().canonicalize().expect("a path");
        std::fs::create_dir(root.join("data")).expect("a folder");
        std::os::unix::fs::symlink(root.join("data"), root.join("link")).expect("a link");
        std::os::unix::fs::symlink("data/new.csv", root.join("t.csv")).expect("a link");
        let of = |p: &str| Target::resolve(&root.join(p)).expect("resolved");
        assert_eq!(of("link/../data/./new.csv"), of("t.csv"));
        assert!(of("t.csv").overlaps(&of("link/new.csv")) && !of("t.csv").overlaps(&of("link/old.csv")));
        std::fs::write(root.join("a"), "a").expect("written");
        std::fs::hard_link(root.join("a"), root.join("b")).expect("a link");
        assert!(of("a").overlaps(&of("b")));
        assert!(Target::resolve(&root.join("none/t.csv")).is_err_and(|e| e.contains("there is no folder")));
        for special in ["/dev/stdout", "/dev/null", "/proc/self/fd/1", "/"] {
            assert!(Target::resolve(Path::new(special)).is_err(), "{special}");
        }
    }
}
