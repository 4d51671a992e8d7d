//! The checkpoint files of a run: the newest is `NAME`, older ones are `NAME.1`, `NAME.2`, …
//!
//! A new checkpoint is written to `.galamost.NAME.part` and synced. Then `NAME.1` becomes `NAME.2`, `NAME` becomes `NAME.1`, and
//! `.galamost.NAME.part` becomes `NAME`. If the run is killed at any point, every valid file still has one of these names. If `NAME` is a symbolic
//! link, all of them are beside the file that it leads to.

use super::EncodedCheckpoint;
use crate::pipeline::MAX_CHECKPOINTS;
use crate::plan::files::Target;
use galamost_plugin_api::output::temporary;
use std::ffi::OsString;
use std::fs::File;
use std::io::{BufWriter, Result, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

fn with(path: &Path, ending: &str) -> PathBuf {
    let mut name: OsString = path.as_os_str().into();
    name.push(ending);
    name.into()
}

/// Returns the file that a symbolic link leads to, which may not exist. Other paths are returned unchanged.
fn resolved(path: &Path) -> PathBuf {
    let target = if path.is_symlink() { Target::resolve(path).ok() } else { None };
    target.map_or_else(|| path.into(), |t| t.path())
}

/// Returns the name of the checkpoint `k` before the newest.
fn older(path: &Path, k: u64) -> PathBuf {
    if k == 0 { path.into() } else { with(path, &format!(".{k}")) }
}

/// Returns the existing files, newest first.
pub fn present(path: &Path) -> Vec<PathBuf> {
    let path = resolved(path);
    (0..MAX_CHECKPOINTS).map(|k| older(&path, k)).filter(|p| p.is_file()).collect()
}

/// Writes a checkpoint and keeps the `keep − 1` before it.
///
/// # Errors
/// Returns the error of the file system. Earlier checkpoints remain.
pub fn write(path: &Path, checkpoint: &EncodedCheckpoint, keep: u64) -> Result<()> {
    let path = &resolved(path);
    let temporary = temporary(path);
    let written = File::create(&temporary).and_then(|file| {
        let mut out = BufWriter::with_capacity(1 << 20, file);
        checkpoint.write(&mut out)?;
        out.flush()?;
        out.get_ref().sync_all()
    });
    if let Err(e) = written {
        // an incomplete file is useless and may fill the disk
        let _ = std::fs::remove_file(&temporary);
        return Err(e);
    }
    for k in (1..keep).rev() {
        match std::fs::rename(older(path, k - 1), older(path, k)) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
    }
    std::fs::rename(&temporary, path)?;
    for k in keep..MAX_CHECKPOINTS {
        // files of a run that kept more checkpoints
        if std::fs::remove_file(older(path, k)).is_err() {
            break;
        }
    }
    // sync the folder, so the names survive a power failure
    File::open(folder(path)).and_then(|f| f.sync_all())
}

/// Gives the newest checkpoint the present time, if there is one: a resumed run takes files that have changed since then for those of others.
pub fn touch(path: &Path) {
    // writing a byte that the file has gives it the time of the file system, which other files have, too
    let sign = |file: File| {
        let mut first = [0];
        file.read_exact_at(&mut first, 0).and_then(|()| file.write_all_at(&first, 0))
    };
    // without it, a resumed run sets some files aside, which loses nothing
    let _ = File::options().read(true).write(true).open(resolved(path)).and_then(sign);
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Checks that a checkpoint can be written at this path.
///
/// # Errors
/// Returns the error of the file system.
pub fn probe(path: &Path) -> Result<()> {
    crate::plan::files::probe_folder(folder(&resolved(path)))
}
