//! A locked file that names its process.

use super::pulse::INTERVAL;
use crate::diagnostic::{Diagnostic, Failure};
use crate::log::now;
use serde::{Deserialize, Serialize};
use std::fs::{File, TryLockError};
use std::io::{ErrorKind, Read as _, Seek as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tracing::{debug, warn};

/// Largest size of a file that is read.
const MAX_SIZE: u64 = 1 << 26;

/// How lock files begin. A killed run may have left one that is incomplete.
const BEGIN: &str = "{\"host\":";

/// The longest time between the last sign of life of a killed run and its end.
const LATE: Duration = INTERVAL.saturating_add(Duration::from_secs(1));

/// The holder of a file, and how to release it, if it is this process: only a program in Python has several runs.
pub const OTHER_SIMULATION: &str = "another Simulation of this program: call its close(), or use `with`";

/// A locked file. The kernel releases the lock when the process ends, however it ends. The file is removed at the end of the
/// run; one that a killed run has left is taken over.
///
/// Some network file systems release or hide locks of other hosts. There, a file of another host is not taken over.
#[derive(Debug)]
pub struct LockFile {
    path: PathBuf,
    file: Arc<File>,
    /// That of the killed run that has left the file, until this run writes its files.
    earlier: Option<SignOfLife>,
}

/// The last sign of life of a run that was killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignOfLife {
    /// When it began to write its files; 0 for a run that had resumed.
    since: u64,
    /// Until when it may have written them.
    active: SystemTime,
}

impl SignOfLife {
    /// Returns until when the run may have written its files, if it belongs to checkpoints of which the newest has this time: it has written
    /// them, or it has resumed from one of them.
    pub fn active(self, newest: SystemTime) -> Option<SystemTime> {
        (UNIX_EPOCH + Duration::from_secs(self.since) <= newest).then_some(self.active + LATE)
    }
}

/// The content of the file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Holder {
    pub host: String,
    pub pid: u32,
    started: String,
    /// Names of the files in this folder that the process writes; they may contain `{step}`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<String>,
    /// Seconds since 1970 when the run began to write its files; 0 for a run that has resumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    since: Option<u64>,
}

impl Holder {
    /// Returns this process, which writes these outputs.
    pub fn this(outputs: Vec<String>) -> Self {
        Self { host: host(), pid: std::process::id(), started: now(), outputs, since: None }
    }

    /// Returns whether this host has a process with this number.
    fn is_living(&self) -> bool {
        Path::new(&format!("/proc/{}", self.pid)).exists()
    }

    /// Returns whether the process is this one.
    pub fn is_this_process(&self) -> bool {
        self.pid == std::process::id() && self.host == host()
    }
}

impl std::fmt::Display for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "process {} on {}, started {}", self.pid, self.host, self.started)
    }
}

fn host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    if name.trim().is_empty() { "an unknown host".into() } else { name.trim().into() }
}

impl LockFile {
    /// Creates and locks a file. Returns `None` with a warning if the file cannot be created or locked.
    ///
    /// # Errors
    /// Returns an error if another process has locked it, or if it is not a lock file.
    pub fn at(path: &Path, holder: &Holder) -> Result<Option<Self>, Failure> {
        let unlocked = |e: std::io::Error| {
            warn!("{}: the run cannot be locked: {e}; do not start it a second time", path.display());
            Ok(None)
        };
        loop {
            // never write through a link, and never wait for the other side of a pipe
            match std::fs::symlink_metadata(path) {
                Ok(m) if !m.is_file() => return Err(no_lock(path)),
                Err(e) if e.kind() != ErrorKind::NotFound => return unlocked(e),
                _ => {}
            }
            let file = match File::options().read(true).write(true).create(true).truncate(false).open(path) {
                Ok(file) => file,
                Err(e) => return unlocked(e),
            };
            if !is_lock_file(&file) {
                return Err(no_lock(path));
            }
            let other = read(&mut &file);
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Err(refusal(path, other.as_ref(), false)),
                Err(TryLockError::Error(e)) => return unlocked(e),
            }
            // the file may have been removed after it was opened
            if !is_at(&file, path) {
                continue;
            }
            let other = read(&mut &file);
            if let Some(other) = &other {
                if other.host != holder.host && !is_local(path) {
                    return Err(refusal(path, Some(other), true));
                }
                debug!("{}: {other} has ended without removing it", path.display());
            }
            let active = file.metadata().and_then(|m| m.modified()).ok();
            let earlier = other.and_then(|o| o.since).zip(active).map(|(since, active)| SignOfLife { since, active });
            let locked = Self { path: path.into(), file: Arc::new(file), earlier };
            return match locked.write(&Holder { since: earlier.map(|l| l.since), ..holder.clone() }) {
                Ok(()) => {
                    // if this run is killed before it writes, the sign of life remains that of the earlier one
                    let _ = active.filter(|_| earlier.is_some()).map(|time| locked.file.set_modified(time));
                    Ok(Some(locked))
                }
                Err(e) => unlocked(e),
            };
        }
    }

    /// Returns the path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the last sign of life of the killed run that has left the file.
    pub fn earlier(&self) -> Option<SignOfLife> {
        self.earlier
    }

    /// Marks the run as one that writes its files from now on. Returns the file and its text for [`sign`].
    pub fn begin(&mut self, resumed: bool) -> std::io::Result<(Arc<File>, String)> {
        let holder = read(&mut &*self.file).ok_or(ErrorKind::InvalidData)?;
        let start = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let holder = Holder { since: Some(if resumed { 0 } else { start }), ..holder };
        self.earlier = None;
        self.write(&holder)?;
        Ok((self.file.clone(), serde_json::to_string(&holder).unwrap_or_default()))
    }

    fn write(&self, holder: &Holder) -> std::io::Result<()> {
        let text = serde_json::to_string(holder).unwrap_or_default();
        sign(&self.file, &text)?;
        self.file.set_len(text.len() as u64)
    }
}

/// Writes the text of a lock file, so that the file gets the present time: that of the file system, which other files have, too.
pub fn sign(file: &File, text: &str) -> std::io::Result<()> {
    file.write_all_at(text.as_bytes(), 0)
}

/// Returns whether a file is empty or begins like a lock file.
fn is_lock_file(file: &File) -> bool {
    let mut begin = vec![0; BEGIN.len()];
    let read = file.read_at(&mut begin, 0).unwrap_or(0);
    // after a power failure, a file may consist of zeros
    BEGIN.as_bytes().starts_with(&begin[..read]) || begin.iter().all(|b| *b == 0)
}

fn no_lock(path: &Path) -> Failure {
    let message = "is no lock of a run, but the run needs a file of this name; move it away, or rename the pipeline";
    Failure::Input(vec![Diagnostic::new(path, None, message)])
}

/// Returns the process that holds a file of [`LockFile`], if there is one. A file that a killed process has left is removed
/// if `remove` is set.
pub fn holder(path: &Path, remove: bool) -> Option<Holder> {
    // opening a pipe would wait for its writer
    if !std::fs::metadata(path).ok()?.is_file() {
        return None;
    }
    let file = File::open(path).ok()?;
    let holder = read(&mut &file)?;
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Some(holder),
        _ if holder.host != host() && !is_local(path) => Some(holder),
        Ok(()) if remove && is_at(&file, path) => {
            let _ = std::fs::remove_file(path);
            None
        }
        _ => None,
    }
}

/// Returns the process that a lock file names, if it is one of this host that has ended without removing the file. Takes no
/// lock, so a run that begins at the same time is not refused.
pub fn ended_holder(path: &Path) -> Option<Holder> {
    local_holder(path).filter(|h| !h.is_living())
}

/// Returns the process that a lock file names, if it is one of this host that has not ended. Takes no lock either.
pub fn living_holder(path: &Path) -> Option<Holder> {
    local_holder(path).filter(Holder::is_living)
}

/// Returns the process that a lock file names, if it is one of this host.
fn local_holder(path: &Path) -> Option<Holder> {
    read(&mut &File::open(path).ok()?).filter(|h| h.host == host())
}

impl Drop for LockFile {
    fn drop(&mut self) {
        // remove the name before the lock is released, but never the file of another process; a run that was refused before it wrote its
        // files leaves the sign of life of the one before
        if self.earlier.is_none() && is_at(&self.file, &self.path) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Returns the content of a file, if it is one of [`LockFile`].
fn read(file: &mut &File) -> Option<Holder> {
    let mut text = String::new();
    file.rewind().ok()?;
    file.take(MAX_SIZE).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

/// Returns whether a path still refers to an open file.
fn is_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), std::fs::symlink_metadata(path)) {
        (Ok(a), Ok(b)) => (a.dev(), a.ino()) == (b.dev(), b.ino()),
        _ => false,
    }
}

fn refusal(path: &Path, holder: Option<&Holder>, elsewhere: bool) -> Failure {
    if holder.is_some_and(Holder::is_this_process) {
        let message = format!(
            "this run is in use by {OTHER_SIMULATION}; a pipeline without a file can also have another name: give `name=`"
        );
        return Failure::Input(vec![Diagnostic::new(path, None, message)]);
    }
    let who = holder.map_or("another process".into(), ToString::to_string);
    let hint = if elsewhere {
        format!("; if it has ended, delete {}", path.display())
    } else {
        "; wait until it ends, or stop it".into()
    };
    Failure::Input(vec![Diagnostic::new(path, None, format!("this run is in use by {who}{hint}"))])
}

/// Returns whether a file is on a file system of this host, whose locks all its processes respect.
fn is_local(path: &Path) -> bool {
    const LOCAL: [&str; 9] = ["ext2", "ext3", "ext4", "xfs", "btrfs", "tmpfs", "overlay", "zfs", "f2fs"];
    let Ok(device) = std::fs::metadata(path).map(|m| m.dev()) else { return false };
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    mounts.lines().any(|line| {
        // fields: ID, parent, major:minor, …, `-`, type, …
        let number = line.split(' ').nth(2).and_then(|n| n.split_once(':'));
        let number = number.and_then(|(a, b)| Some((a.parse::<u64>().ok()?, b.parse::<u64>().ok()?)));
        let kind = line.split(" - ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap_or_default();
        number.is_some_and(|(major, minor)| device_number(major, minor) == device) && LOCAL.contains(&kind)
    })
}

/// Combines the numbers of a device as Linux does in `st_dev`.
fn device_number(major: u64, minor: u64) -> u64 {
    (minor & 0xff) | (major & 0xfff) << 8 | (minor & !0xff) << 12 | (major & !0xfff) << 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_lock_is_refused_and_a_stale_one_is_taken_over() {
        let f = tempfile::tempdir().expect("a folder");
        let path = f.path().join("p.checkpoint.lock");
        let me = Holder { host: "here".into(), pid: 7, started: "now".into(), ..Holder::default() };
        let first = LockFile::at(&path, &me).expect("locked").expect("a file");
        let refused = LockFile::at(&path, &me).expect_err("it is locked").render();
        assert!(refused.contains("process 7 on here, started now"), "{refused}");
        drop(first);
        assert!(!path.exists());
        // left by a killed process
        std::fs::write(&path, serde_json::to_string(&me).expect("text")).expect("written");
        drop(LockFile::at(&path, &me).expect("taken over").expect("a file"));
        for damaged in ["", "{\"ho", "{\"host\":\"he", "\0\0\0\0\0\0\0\0\0\0\0\0"] {
            std::fs::write(&path, damaged).expect("written");
            drop(LockFile::at(&path, &me).expect("taken over").expect("a file"));
            assert!(!path.exists());
        }
    }

    #[test]
    fn other_files_are_no_locks() {
        let f = tempfile::tempdir().expect("a folder");
        let path = f.path().join("p.checkpoint.lock");
        let refused = |what: &str| {
            let said = LockFile::at(&path, &Holder::this(vec![])).expect_err(what).render();
            assert!(said.contains("is no lock of a run") && said.contains("move it away"), "{what}: {said}");
        };
        std::fs::write(&path, "mine").expect("written");
        refused("a file of the user");
        assert_eq!(std::fs::read(&path).expect("a file"), b"mine");
        std::fs::rename(&path, f.path().join("t.csv")).expect("renamed");
        for target in ["t.csv", "none"] {
            std::os::unix::fs::symlink(target, &path).expect("a link");
            refused("a link");
            assert!(path.is_symlink() && !f.path().join("none").exists());
            std::fs::remove_file(&path).expect("removed");
        }
        assert_eq!(std::fs::read(f.path().join("t.csv")).expect("a file"), b"mine");
        std::fs::create_dir(&path).expect("a folder");
        refused("a folder");
    }

    #[test]
    fn a_killed_run_leaves_its_last_sign_of_life() {
        let f = tempfile::tempdir().expect("a folder");
        let path = f.path().join("p.checkpoint.lock");
        let (now, me) = (SystemTime::now(), Holder::this(vec![]));
        let hour = Duration::from_secs(3600);
        let lock = || LockFile::at(&path, &me).expect("locked").expect("a file");
        // a killed run does not remove its lock
        let kill = |lock: LockFile| {
            let text = std::fs::read(&path).expect("a lock");
            let time = std::fs::metadata(&path).and_then(|m| m.modified()).expect("a time");
            drop(lock);
            std::fs::write(&path, text).expect("written");
            File::options().write(true).open(&path).and_then(|f| f.set_modified(time)).expect("set");
        };
        let first = lock();
        assert_eq!(first.earlier(), None);
        kill(first);
        // it was killed before it wrote its files
        let mut second = lock();
        assert_eq!(second.earlier(), None);
        second.begin(false).expect("begun");
        kill(second);
        let third = lock();
        let left = third.earlier().expect("a sign of life");
        assert!(left.active(now + hour).is_some_and(|t| t > now));
        // the checkpoints are those of an earlier run
        assert_eq!(left.active(now - hour), None);
        // killed or refused before it wrote its files, it leaves the earlier sign
        kill(third);
        drop(lock());
        let mut fourth = lock();
        assert_eq!(fourth.earlier(), Some(left));
        fourth.begin(true).expect("begun");
        kill(fourth);
        assert!(lock().earlier().is_some_and(|l| l.active(now - hour).is_some()));
    }

    #[test]
    fn a_second_run_of_this_process_is_named_as_such() {
        let f = tempfile::tempdir().expect("a folder");
        let path = f.path().join("p.checkpoint.lock");
        let me = Holder::this(vec![]);
        let first = LockFile::at(&path, &me).expect("locked").expect("a file");
        let refused = LockFile::at(&path, &me).expect_err("it is locked").render();
        assert!(refused.contains("another Simulation of this program: call its close()"), "{refused}");
        assert!(refused.contains("`name=`") && !refused.contains("stop it"), "{refused}");
        drop(first);
    }

    #[test]
    fn the_lock_of_a_killed_process_names_it() {
        let f = tempfile::tempdir().expect("a folder");
        let path = f.path().join("p.checkpoint.lock");
        let mut me = Holder::this(vec![]);
        let write = |h: &Holder| std::fs::write(&path, serde_json::to_string(h).expect("text")).expect("written");
        assert_eq!(ended_holder(&path), None);
        write(&me);
        assert_eq!((ended_holder(&path), living_holder(&path)), (None, Some(me.clone())));
        // no process has this number: the largest one is 2²²
        me.pid = 1 << 30;
        write(&me);
        assert_eq!((ended_holder(&path), living_holder(&path)), (Some(me.clone()), None));
        me.host = "elsewhere".into();
        write(&me);
        assert_eq!(ended_holder(&path), None);
    }

    #[test]
    fn a_lock_of_another_host_counts_on_network_file_systems() {
        let refused = refusal(Path::new("p.lock"), Some(&Holder::default()), true).render();
        assert!(refused.contains("if it has ended, delete p.lock"), "{refused}");
        assert!(!is_local(Path::new("/proc/self/status")));
        assert_eq!(device_number(8, 1), 0x801);
        assert_eq!(device_number(259, 300), 0x0010_0000 | 259 << 8 | 44);
    }
}
