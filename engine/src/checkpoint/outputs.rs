//! The output files of a run at a checkpoint, so that a resumed run neither continues nor replaces files of another one.
//!
//! A growing file is recognized by its last bytes: rows and frames that are written do not change. What components append when a run
//! ends is not compared, because a resumed run replaces it.

use crate::diagnostic::Diagnostic;
use crate::plan::Plan;
use crate::plan::files::{RunFile, Target};
use galamost_plugin_api::output::{OutputFile, OutputKind};
use galamost_plugin_api::resume::{check_length, has_content};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{Read as _, Result, Seek as _, SeekFrom};
use std::path::Path;

/// The largest number of bytes that are compared.
const COMPARED: u64 = 4096;

/// A growing file at a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// Its length.
    length: u64,
    /// Hash of its last bytes.
    end: String,
}

/// Output files by the name that the pipeline gives them; those that are not compared have no mark.
pub type Outputs = BTreeMap<String, Option<Mark>>;

/// Returns the outputs of a run with their marks.
///
/// # Errors
/// Returns the error of a file that cannot be read.
pub fn marks(plan: &Plan) -> galamost_plugin_api::error::Result<Outputs> {
    let mut found = Outputs::new();
    for (file, output) in outputs(plan) {
        let path = file.target.path();
        let compared = output.kind == OutputKind::Growing && !output.rewritten && has_content(&path);
        let mark = compared.then(|| present(&path)).transpose();
        found.insert(file.shown.clone(), mark.map_err(|e| galamost_plugin_api::error::Error::io(&path, e))?);
    }
    Ok(found)
}

/// Compares the outputs of a run that resumes with those at the checkpoint. Files that have been emptied are begun again.
pub fn compare(then: &Outputs, plan: &Plan) -> Vec<Diagnostic> {
    let mut errors = vec![];
    let gone: Vec<_> = then.iter().filter(|(name, _)| outputs(plan).all(|(file, _)| file.shown != **name)).collect();
    let mut compared = BTreeSet::new();
    for (file, output) in outputs(plan) {
        let path = file.target.path();
        // two stages may share a file
        if !compared.insert(path.clone()) {
            continue;
        }
        let renamed = |(old, mark): &(&String, &Option<Mark>)| match mark {
            Some(mark) => changed(&path, mark).is_none(),
            // the component compares it, or its folder has another name
            None => output.rewritten || is_moved(old, file, plan),
        };
        let wrong = match then.get(&file.shown) {
            None if gone.iter().any(renamed) => None,
            None => foreign(file),
            Some(Some(mark)) => changed(&path, mark),
            Some(None) => None,
        };
        errors.extend(wrong.map(|message| file.error(message)));
    }
    errors
}

/// Returns whether a file has the name of an earlier output of the run in another folder, and the earlier one does not exist: the folder
/// was renamed, or the file moved.
fn is_moved(earlier: &str, file: &RunFile, plan: &Plan) -> bool {
    let exists = Target::resolve(&plan.pipeline.directory().join(earlier))
        .is_ok_and(|target| target.existing().is_ok_and(|files| !files.is_empty()));
    !exists && Path::new(earlier).file_name() == Path::new(&file.shown).file_name()
}

/// Returns whether a run has outputs that it did not have.
pub fn has_new(then: &Outputs, plan: &Plan) -> bool {
    outputs(plan).any(|(file, _)| !then.contains_key(&file.shown))
}

fn outputs(plan: &Plan) -> impl Iterator<Item = (&RunFile, &OutputFile)> {
    plan.files.iter().filter_map(|f| Some((f, f.output()?)))
}

fn present(path: &Path) -> Result<Mark> {
    mark(path, std::fs::metadata(path)?.len())
}

/// Returns the mark of the first `length` bytes of a file. Only the second half of a short file is compared, because the first bytes of
/// some formats count the frames.
fn mark(path: &Path, length: u64) -> Result<Mark> {
    let compared = length.div_ceil(2).min(COMPARED);
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(length - compared))?;
    let mut bytes = vec![];
    file.take(compared).read_to_end(&mut bytes)?;
    Ok(Mark { length, end: blake3::hash(&bytes).to_hex()[..16].into() })
}

/// Returns what is wrong with a file that the run had at the checkpoint.
fn changed(path: &Path, then: &Mark) -> Option<String> {
    if let Err(e) = check_length(path, then.length) {
        return Some(e.to_string());
    }
    match mark(path, then.length) {
        Ok(now) if !has_content(path) || now == *then => None,
        Ok(_) => Some(format!(
            "{}: its contents are not those at the checkpoint: another run has written it, or it was edited; restore it, or empty it to begin \
             it again",
            path.display()
        )),
        Err(e) => Some(format!("{}: {e}", path.display())),
    }
}

/// Returns what is wrong if a file that the run did not have exists.
fn foreign(file: &RunFile) -> Option<String> {
    let found = file.target.existing().ok()?.into_iter().find(|path| path.is_dir() || has_content(path))?;
    Some(format!(
        "{} exists, but the run of the checkpoint has not written it; move it away, or choose another name",
        found.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_recognized_by_their_ends() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("rows.csv");
        for length in [1usize, 2, 100, 9000] {
            let text: Vec<u8> = (0..length).map(|k| b'0' + (k % 7) as u8).collect();
            std::fs::write(&path, &text).expect("written");
            let then = present(&path).expect("a mark");
            assert_eq!(then.length, length as u64);
            assert_eq!(changed(&path, &then), None);
            // it may grow, its header may change, and it may be emptied
            std::fs::write(&path, [&text[..], b"more"].concat()).expect("written");
            assert_eq!(changed(&path, &then), None);
            let mut other = text.clone();
            other[0] = b'x';
            std::fs::write(&path, &other).expect("written");
            assert_eq!(changed(&path, &then).is_none(), length > 1, "{length}");
            std::fs::write(&path, "").expect("written");
            assert_eq!(changed(&path, &then), None);
            *other.last_mut().expect("a byte") = b'x';
            std::fs::write(&path, &other).expect("written");
            assert!(changed(&path, &then).is_some_and(|e| e.contains("another run has written it")));
            std::fs::remove_file(&path).expect("removed");
            assert!(changed(&path, &then).is_some_and(|e| e.contains("is missing")));
        }
    }
}
