//! Files of earlier runs: a new run renames them, all together, or removes them; a resumed one renames those that it has not written.

use super::lock::{Lock, is_lock};
use crate::checkpoint::files;
use crate::plan::Plan;
use crate::plan::files::{FileUse, record_path};
use galamost_plugin_api::error::{Error, Result};
use galamost_plugin_api::output::OutputKind;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tracing::{info, warn};

/// Makes room for the files of a new run: outputs, checkpoints and, with `record`, the run record.
///
/// Existing files are renamed to `NAME.old`, or, if one of them exists already, to `NAME.old.2` and so on. All have the
/// same suffix, so the earlier run can be resumed after they are renamed back. With `overwrite`, they are removed after that. Of a symbolic
/// link, the file is renamed or removed that it leads to, because the run writes through the link.
///
/// # Errors
/// Returns an error if a file cannot be renamed, or if it is an input of the run. Then all files keep their names.
pub fn clear(plan: &Plan, overwrite: bool, record: bool) -> Result<()> {
    make_room(&[plan], &[], overwrite, record)
}

/// Like [`clear`], for all new runs of a command together. The files `aside`, such as those of [`foreign`], are always renamed.
///
/// # Errors
/// As for [`clear`].
pub fn make_room(new: &[&Plan], aside: &[PathBuf], overwrite: bool, record: bool) -> Result<()> {
    let mut found = vec![];
    for plan in new {
        found.extend(existing(plan, record)?);
    }
    let found = sorted(found);
    if overwrite {
        found.iter().try_for_each(|path| removable(path))?;
    }
    let all = sorted([&found[..], aside].concat());
    let suffix = free_suffix(&all);
    // whatever cannot be removed usually cannot be renamed either, and renaming can be undone
    rename_all(&all, &suffix)?;
    if !aside.is_empty() {
        let names = listed(aside);
        info!(
            "set aside: {names}, which this run has not written or which were edited: `{suffix}` is appended to each name"
        );
    }
    if overwrite {
        found.iter().for_each(|path| remove(&with_suffix(path, &suffix)));
    }
    match (found.is_empty(), overwrite) {
        (true, _) => {}
        (false, true) => info!("--overwrite: {} of an earlier run removed", listed(&found)),
        (false, false) => info!("{} of an earlier run renamed: `{suffix}` is appended to each name", listed(&found)),
    }
    Ok(())
}

fn sorted(mut paths: Vec<PathBuf>) -> Vec<PathBuf> {
    paths.sort();
    paths.dedup();
    paths
}

/// Returns the existing files that a run will replace when it resumes at `step` from one of the checkpoints `from`, and that it has not written:
/// outputs that do not grow. They have changed since its last sign of life, which is the time of its newest checkpoint or, after a kill, of the
/// lock that it has left.
///
/// # Errors
/// Returns the error of the file system.
pub fn foreign(plan: &Plan, from: &[PathBuf], step: u64, lock: Option<&Lock>) -> Result<Vec<PathBuf>> {
    let active = last_active(plan, from, lock);
    let mut found = vec![];
    for file in plan.files.iter().filter(|f| f.output().is_some_and(|o| o.kind != OutputKind::Growing)) {
        for path in file.target.existing().map_err(|e| Error::io(&file.target.folder, e))? {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            // the run writes no file of an earlier step
            if file.target.step_of(&name).is_some_and(|at| at <= step) {
                continue;
            }
            found.extend(resolved(&path)?.filter(|p| !is_input(plan, p) && is_newer(p, active)));
        }
    }
    Ok(sorted(found))
}

/// Returns until when the run may have written its files; `None` if it does not resume from its last checkpoints.
fn last_active(plan: &Plan, from: &[PathBuf], lock: Option<&Lock>) -> Option<SystemTime> {
    let real = |path: &PathBuf| std::fs::canonicalize(path).ok();
    let own = files::present(&plan.pipeline.checkpoint_path());
    if !from.iter().any(|f| own.iter().any(|o| real(o) == real(f))) {
        return None;
    }
    let newest = own.iter().filter_map(|p| std::fs::metadata(p).ok()?.modified().ok()).max()?;
    Some(lock.and_then(|l| l.killed_at(newest)).map_or(newest, |killed| killed.max(newest)))
}

/// Returns whether a file that is not empty, or its name, has changed after a time. A folder never is an output that does not grow.
fn is_newer(path: &Path, active: Option<SystemTime>) -> bool {
    let Ok(found) = std::fs::metadata(path) else { return false };
    // programs set the time of the last modification, but not this one
    let seconds = u64::try_from(found.ctime()).unwrap_or(0);
    let changed = UNIX_EPOCH + Duration::new(seconds, u32::try_from(found.ctime_nsec()).unwrap_or(0));
    found.is_dir() || (found.len() > 0 && active.is_none_or(|active| changed > active))
}

/// Returns the existing files of an earlier run, without symbolic links in their paths.
fn existing(plan: &Plan, record: bool) -> Result<Vec<PathBuf>> {
    let mut found = vec![];
    for file in plan.files.iter().filter(|f| f.output().is_some()) {
        found.extend(file.target.existing().map_err(|e| Error::io(&file.target.folder, e))?);
    }
    found.extend(files::present(&plan.pipeline.checkpoint_path()));
    let record = Some(record_path(&plan.pipeline.path)).filter(|r| record && r.is_file());
    found.extend(record);
    let real = found.iter().filter_map(|path| resolved(path).transpose());
    let found = real.collect::<Result<Vec<PathBuf>>>()?;
    // the check excludes inputs by name and number, but the files of a pattern are known only now
    if let Some(path) = found.iter().find(|path| is_input(plan, path)) {
        return Err(Error::io(
            path,
            "is read by this run, and a symbolic link with the name of an output leads to it; remove the link",
        ));
    }
    Ok(found)
}

fn is_input(plan: &Plan, path: &Path) -> bool {
    plan.files.iter().any(|f| f.usage == FileUse::Input && f.target.path() == path)
}

/// Returns the file that a path leads to; `None` if there is none.
fn resolved(path: &Path) -> Result<Option<PathBuf>> {
    match std::fs::canonicalize(path) {
        Ok(file) => Ok(Some(file)),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Error::io(path, format!("belongs to an earlier run and cannot be renamed: {e}"))),
    }
}

/// Names a few files and the number of the others.
fn listed(found: &[PathBuf]) -> String {
    const SHOWN: usize = 4;
    let name = |p: &PathBuf| p.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let few = found.iter().take(SHOWN).map(name).collect::<Vec<_>>().join(", ");
    match found.len().saturating_sub(SHOWN) {
        0 => few,
        n => format!("{few} and {n} more files"),
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}

/// Returns the first of `.old`, `.old.2`, … that none of the files has yet.
fn free_suffix(found: &[PathBuf]) -> String {
    let taken = |suffix: &str| found.iter().any(|p| std::fs::symlink_metadata(with_suffix(p, suffix)).is_ok());
    let mut suffix = ".old".to_string();
    let mut n = 2u64;
    while taken(&suffix) {
        suffix = format!(".old.{n}");
        n += 1;
    }
    suffix
}

/// Renames all files, or none.
fn rename_all(found: &[PathBuf], suffix: &str) -> Result<()> {
    for (k, path) in found.iter().enumerate() {
        let Err(e) = std::fs::rename(path, with_suffix(path, suffix)) else { continue };
        let mut message = format!("belongs to an earlier run and cannot be renamed: {e}");
        for done in found[..k].iter().rev() {
            if let Err(e) = std::fs::rename(with_suffix(done, suffix), done) {
                message.push_str(&format!("; {}{suffix} cannot be renamed back: {e}", done.display()));
            }
        }
        return Err(Error::io(path, message));
    }
    Ok(())
}

/// Checks that a folder is a growing table, so that it can be removed with its files.
fn removable(path: &Path) -> Result<()> {
    let failed = |e: std::io::Error| Error::io(path, format!("belongs to an earlier run and cannot be removed: {e}"));
    if !path.is_dir() {
        return Ok(());
    }
    let is_part = |n: &str| n.starts_with("part-") && n.ends_with(".parquet");
    for entry in std::fs::read_dir(path).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        if !name.to_str().is_some_and(|n| is_part(n) || is_lock(n)) {
            let what =
                format!("is a folder that has other files than a table, such as {}; move it away", name.display());
            return Err(Error::io(path, what));
        }
    }
    Ok(())
}

/// Removes a renamed file or table. If that fails, it keeps its new name, where it disturbs no run.
fn remove(path: &Path) {
    let removed = if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
    if let Err(e) = removed {
        warn!("{}: belongs to an earlier run and cannot be removed: {e}; delete it", path.display());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_files_are_renamed_or_none() {
        let f = tempfile::tempdir().expect("a folder");
        let file = |name: &str| f.path().join(name);
        let write = |name: &str| std::fs::write(file(name), name).expect("written");
        let names = || {
            let entries = std::fs::read_dir(f.path()).expect("a folder");
            let mut all: Vec<String> =
                entries.map(|e| e.expect("an entry").file_name().to_string_lossy().into()).collect();
            all.sort();
            all
        };
        write("a");
        write("b");
        let found = [file("a"), file("b")];
        assert_eq!(free_suffix(&found), ".old");
        rename_all(&found, ".old").expect("renamed");
        assert_eq!(names(), ["a.old", "b.old"]);
        write("b");
        assert_eq!(free_suffix(&found), ".old.2");
        // `a` does not exist: `b`, which comes first here, keeps its name
        let e = rename_all(&[file("b"), file("a")], ".old.2").expect_err("`a` is missing");
        assert!(e.to_string().contains("cannot be renamed"), "{e}");
        assert_eq!(names(), ["a.old", "b", "b.old"]);
    }

    #[test]
    fn folders_with_other_files_are_not_removed() {
        let f = tempfile::tempdir().expect("a folder");
        let table = f.path().join("t.parquet");
        std::fs::create_dir(&table).expect("a folder");
        std::fs::write(table.join("part-000000.parquet"), "").expect("written");
        std::fs::write(table.join("notes.txt"), "").expect("written");
        assert!(removable(&table).is_err_and(|e| e.to_string().contains("notes.txt")));
        std::fs::remove_file(table.join("notes.txt")).expect("removed");
        // left by a killed run that wrote into the folder
        std::fs::write(table.join(".galamost.host.1.0.lock"), "").expect("written");
        removable(&table).expect("a table");
        remove(&table);
        assert!(!table.exists());
    }
}
