//! The lock of a run: a second process cannot write the same files.

mod file;
mod held;
mod pulse;

pub use held::writing_process;

use crate::diagnostic::{Diagnostic, Failure};
use crate::plan::Plan;
use crate::plan::files::{FileUse, RunFile, lock_path};
use file::{Holder, LockFile, OTHER_SIMULATION, ended_holder, holder, living_holder};
use pulse::Pulse;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

/// Begin of the names of lock files in folders other than that of the checkpoint.
const PREFIX: &str = ".galamost.";
const SUFFIX: &str = ".lock";

/// The lock of a run: a locked file beside the checkpoint, `NAME.checkpoint.lock`, and one in each other folder to which the
/// run writes. The files list the outputs in their folders, so that another run with one of them is refused.
#[derive(Debug)]
pub struct Lock {
    /// Dropped before the files, which it writes.
    pulse: Option<Pulse>,
    files: Vec<LockFile>,
    /// The number of the file beside the checkpoint.
    of_run: Option<usize>,
}

impl Lock {
    /// Locks the run of a plan, with a warning if a file cannot be created or locked.
    ///
    /// # Errors
    /// Returns an error if another process runs the pipeline or writes one of its outputs.
    pub fn take(plan: &Plan) -> Result<Self, Failure> {
        let path = lock_path(&plan.pipeline.checkpoint_path());
        let (files, paths) = lock(&plan.files, &path)?;
        let of_run = files.iter().position(|f| f.path() == path);
        // every process lists its outputs before it looks for others, so of two that start together one sees the other
        let errors = in_use(&plan.files, &paths);
        if errors.is_empty() { Ok(Self { pulse: None, files, of_run }) } else { Err(Failure::Input(errors)) }
    }

    /// Locks a command that runs several pipelines by its specification: `NAME.lock` beside it, with a warning if the file
    /// cannot be created or locked.
    ///
    /// # Errors
    /// Returns an error if another process runs this specification.
    pub fn of_specification(path: &Path) -> Result<Self, Failure> {
        let file = LockFile::at(&lock_path(path), &Holder::this(vec![]))?;
        Ok(Self { pulse: None, files: file.into_iter().collect(), of_run: None })
    }

    /// Marks the run as one that writes its files from now on. Until the lock is dropped, the file beside the checkpoint has the time of the last
    /// sign of life.
    pub fn begin(&mut self, resumed: bool) {
        let file = self.of_run.and_then(|k| self.files.get_mut(k));
        self.pulse = file.and_then(|f| f.begin(resumed).ok()).map(|(file, text)| Pulse::start(file, text));
    }

    /// Returns until when the killed run may have written its files that has left the lock. `newest` is the time of the newest checkpoint: the
    /// run must have written it, or have resumed.
    pub fn killed_at(&self, newest: SystemTime) -> Option<SystemTime> {
        self.of_run.and_then(|k| self.files.get(k)?.earlier()?.active(newest))
    }
}

/// Returns whether this is the name of a lock file beside outputs. Killed runs leave theirs.
pub(super) fn is_lock(name: &str) -> bool {
    name.starts_with(PREFIX) && name.ends_with(SUFFIX)
}

/// Returns the process that ran a pipeline and was killed: it has left its lock file. `checkpoint` is the pipeline's checkpoint.
pub fn killed_process(checkpoint: &Path) -> Option<String> {
    ended_holder(&lock_path(checkpoint)).map(|h| h.to_string())
}

/// Returns the process that runs a pipeline now, if it is one of this host. `checkpoint` is the pipeline's checkpoint.
pub fn running_process(checkpoint: &Path) -> Option<String> {
    living_holder(&lock_path(checkpoint)).map(|h| h.to_string())
}

/// Creates the lock files: `of_run` and one for each other folder with outputs. Returns them with the paths by folder.
fn lock(files: &[RunFile], of_run: &Path) -> Result<(Vec<LockFile>, BTreeMap<PathBuf, PathBuf>), Failure> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let folder = of_run.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut names: BTreeMap<PathBuf, Vec<String>> = BTreeMap::new();
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.into());
    names.insert(folder.clone(), vec![]);
    for f in files.iter().filter(|f| is_output(f)) {
        names.entry(f.target.folder.clone()).or_default().push(f.target.name.clone());
    }
    let (mut locked, mut paths) = (vec![], BTreeMap::new());
    for (at, outputs) in names {
        let me = Holder::this(outputs);
        let path = if at == folder {
            of_run.to_path_buf()
        } else {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            at.join(format!("{PREFIX}{}.{}.{number}{SUFFIX}", me.host.replace('/', "-"), me.pid))
        };
        locked.extend(LockFile::at(&path, &me)?);
        paths.insert(at, path);
    }
    Ok((locked, paths))
}

fn is_output(f: &RunFile) -> bool {
    matches!(f.usage, FileUse::Output(_) | FileUse::Temporary)
}

/// Returns an error for each output that another run writes. `own` has the lock files of this run by folder.
fn in_use(files: &[RunFile], own: &BTreeMap<PathBuf, PathBuf>) -> Vec<Diagnostic> {
    let mut errors = vec![];
    for (folder, own) in own {
        let outputs = || files.iter().filter(|f| is_output(f) && f.target.folder == *folder);
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let own = own.file_name();
        for entry in entries.filter(|e| outputs().next().is_some() && Some(e.file_name().as_os_str()) != own) {
            let name = entry.file_name().to_string_lossy().into_owned();
            let other = Some(name).filter(|n| n.ends_with(SUFFIX));
            let Some(other) = other.and_then(|n| holder(&entry.path(), n.starts_with(PREFIX))) else { continue };
            let taken = |f: &&RunFile| other.outputs.iter().any(|o| f.target.may_be(o));
            errors.extend(outputs().find(taken).map(|f| refusal(f, &other, &entry.path())));
        }
    }
    errors
}

fn refusal(f: &RunFile, other: &Holder, lock: &Path) -> Diagnostic {
    let (shown, lock) = (&f.shown, lock.display());
    let message = if other.is_this_process() {
        format!("`{shown}` is in use by {OTHER_SIMULATION}, or choose another file")
    } else {
        format!("`{shown}` is in use by {other} ({lock}); wait until it ends, stop it, or choose another file")
    };
    let mut d = Diagnostic::new(&f.pipeline, f.at, message);
    d.component = f.owner.component().map(Into::into);
    d
}
