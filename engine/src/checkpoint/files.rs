//! The files of a run's checkpoints: the newest under its own name, older ones with a number behind it.
//!
//! A new one is written as `NAME.part`, synced, and renamed to `NAME` after `NAME` has become `NAME.1`, that `NAME.2`, and
//! so on. Wherever a run is killed, all whole files are there under one of these names.

use super::Image;
use crate::pipeline::MAX_CHECKPOINTS;
use std::ffi::OsString;
use std::fs::File;
use std::io::{BufWriter, Result, Write as _};
use std::path::{Path, PathBuf};
use tracing::{info, warn};

fn with(path: &Path, ending: &str) -> PathBuf {
    let mut name: OsString = path.as_os_str().into();
    name.push(ending);
    name.into()
}

/// The name of the checkpoint before the newest, the one before that, …
fn older(path: &Path, k: u64) -> PathBuf {
    if k == 0 { path.into() } else { with(path, &format!(".{k}")) }
}

/// The files that are there, newest first.
pub fn present(path: &Path) -> Vec<PathBuf> {
    (0..MAX_CHECKPOINTS).map(|k| older(path, k)).filter(|p| p.is_file()).collect()
}

/// Writes a checkpoint and keeps the `keep − 1` before it.
///
/// # Errors
/// The system's words; the checkpoints that were there before still are.
pub fn write(path: &Path, image: &Image, keep: u64) -> Result<()> {
    let temporary = with(path, ".part");
    let written = File::create(&temporary).and_then(|file| {
        let mut out = BufWriter::with_capacity(1 << 20, file);
        image.write(&mut out)?;
        out.flush()?;
        out.get_ref().sync_all()
    });
    if let Err(e) = written {
        // half a file is of no use, and may be what fills the disk
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
        // left by a run that kept more
        if std::fs::remove_file(older(path, k)).is_err() {
            break;
        }
    }
    // the names, too, survive a loss of power
    File::open(folder(path)).and_then(|f| f.sync_all())
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Whether a checkpoint can be written here.
///
/// # Errors
/// The system's words.
pub fn probe(path: &Path) -> Result<()> {
    let temporary = with(path, ".part");
    File::create(&temporary)?;
    std::fs::remove_file(&temporary)
}

/// A run begins anew: the checkpoints of an earlier one are none of its own. The newest of them is kept as `NAME.old`.
pub fn set_aside(path: &Path) {
    let files = present(path);
    let Some((newest, others)) = files.split_first() else { return };
    let old = with(path, ".old");
    match std::fs::rename(newest, &old) {
        Ok(()) => info!("the checkpoint of an earlier run is now {}", old.display()),
        Err(e) => warn!("{} is of an earlier run, and cannot be renamed: {e}", newest.display()),
    }
    for file in others {
        if let Err(e) = std::fs::remove_file(file) {
            warn!("{} is of an earlier run, and cannot be removed: {e}", file.display());
        }
    }
}
