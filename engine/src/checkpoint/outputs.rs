//! The output files of a run at a checkpoint, so that a resumed run neither continues nor replaces files of another one.
//!
//! A growing file is recognized by its last bytes, and a table also by its header: rows and frames that are written do not change. What
//! components append when a run ends is not compared, because a resumed run replaces it.

use crate::diagnostic::Diagnostic;
use crate::plan::Plan;
use crate::plan::files::{RunFile, Target};
use galamost_plugin_api::output::{OutputFile, OutputKind};
use galamost_plugin_api::resume::{RESTORE, check_length, has_content};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{Read as _, Result, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use tracing::warn;

/// The largest number of bytes that are compared.
const COMPARED: u64 = 4096;

/// A growing file at a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// Its length; 1 if the component compares the file, because what it keeps in memory then depends on the time.
    length: u64,
    /// Hash of its last bytes; empty if the component compares the file.
    end: String,
    /// Hash of its first line, if it is a line of text; empty in checkpoints of earlier versions.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    header: String,
}

impl Mark {
    /// Returns whether the engine compares the contents.
    fn is_compared(&self) -> bool {
        !self.end.is_empty()
    }
}

/// Output files by the name that the pipeline gives them. Growing files with contents have a mark.
pub type Outputs = BTreeMap<String, Option<Mark>>;

/// Returns the outputs of a run with their marks.
///
/// # Errors
/// Returns the error of a file that cannot be read.
pub fn marks(plan: &Plan) -> galamost_plugin_api::error::Result<Outputs> {
    let mut found = Outputs::new();
    for (file, output) in outputs(plan) {
        let path = file.target.path();
        let mark = match (output.kind == OutputKind::Growing).then(|| content(&path)) {
            None | Some(0) => None,
            Some(_) if output.rewritten => Some(Mark { length: 1, end: String::new(), header: String::new() }),
            Some(_) => Some(present(&path).map_err(|e| galamost_plugin_api::error::Error::io(&path, e))?),
        };
        found.insert(file.shown.clone(), mark);
    }
    Ok(found)
}

/// Returns the length of a file or the number of files in a folder; 0 if there is none.
fn content(path: &Path) -> u64 {
    match std::fs::metadata(path) {
        Ok(m) if m.is_dir() => std::fs::read_dir(path).map_or(0, |files| files.count() as u64),
        Ok(m) => m.len(),
        Err(_) => 0,
    }
}

/// Returns the path of an output for messages: as components name it.
fn named(file: &RunFile, plan: &Plan) -> PathBuf {
    match file.owner.component() {
        Some(_) => plan.pipeline.directory().join(&file.shown),
        None => file.target.path(),
    }
}

/// Compares the outputs of a run that resumes with those at the checkpoint. Files that have been emptied are begun again, with a warning.
pub fn compare(then: &Outputs, plan: &Plan) -> Vec<Diagnostic> {
    let mut errors = vec![];
    let gone: Vec<_> = then.iter().filter(|(name, _)| outputs(plan).all(|(file, _)| file.shown != **name)).collect();
    let (mut compared, mut emptied) = (BTreeSet::new(), BTreeSet::new());
    for (file, output) in outputs(plan) {
        let path = named(file, plan);
        // two stages may share a file
        if !compared.insert(path.clone()) {
            continue;
        }
        let renamed = |(old, mark): &(&String, &Option<Mark>)| match mark {
            Some(mark) if mark.is_compared() => changed(&path, mark).is_none(),
            // the component compares it, or its folder has another name
            _ => output.rewritten || is_moved(old, file, plan),
        };
        let wrong = match then.get(&file.shown) {
            None if gone.iter().any(renamed) => None,
            None => foreign(file, &path),
            Some(Some(mark)) => {
                if path.exists() && content(&path) == 0 {
                    emptied.insert(path.display().to_string());
                }
                if mark.is_compared() { changed(&path, mark) } else { None }
            }
            Some(None) => None,
        };
        errors.extend(wrong.map(|message| file.error(message)));
    }
    if errors.is_empty() {
        for path in emptied {
            warn!("{path} is empty, but had content at the checkpoint: it is begun again");
        }
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
    (&file).take(compared).read_to_end(&mut bytes)?;
    let end = blake3::hash(&bytes).to_hex()[..16].into();
    file.rewind()?;
    bytes.clear();
    file.take(length.min(COMPARED)).read_to_end(&mut bytes)?;
    Ok(Mark { length, end, header: header(&bytes) })
}

/// Returns the hash of the first line, if it is text. Binary formats may count their frames there.
fn header(bytes: &[u8]) -> String {
    let line = bytes.iter().position(|b| *b == b'\n').map(|end| &bytes[..end]);
    let is_text = |line: &str| !line.contains(|c: char| c.is_control() && c != '\r');
    let text = line.filter(|line| std::str::from_utf8(line).is_ok_and(is_text));
    text.map_or(String::new(), |l| blake3::hash(l).to_hex()[..16].into())
}

/// Returns what is wrong with a file that the run had at the checkpoint.
fn changed(path: &Path, then: &Mark) -> Option<String> {
    if let Err(e) = check_length(path, then.length) {
        return Some(e.to_string());
    }
    match mark(path, then.length) {
        Ok(_) if !has_content(path) => None,
        Ok(now) if !then.header.is_empty() && now.header != then.header => {
            Some(format!("{}: its first line is not that at the checkpoint: it was edited; {RESTORE}", path.display()))
        }
        Ok(now) if now.end == then.end => None,
        Ok(_) => Some(format!(
            "{}: its contents are not those at the checkpoint: another run has written it, or it was edited; {RESTORE}",
            path.display()
        )),
        Err(e) => Some(format!("{}: {e}", path.display())),
    }
}

/// Returns what is wrong if a file that the run did not have exists; `named` is its path for messages, unless it is a pattern.
fn foreign(file: &RunFile, named: &Path) -> Option<String> {
    let found = file.target.existing().ok()?.into_iter().find(|path| path.is_dir() || has_content(path))?;
    Some(format!(
        "{} exists, but the run of the checkpoint has not written it; move it away, or choose another name",
        if file.target.is_pattern() { found.display() } else { named.display() }
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

    #[test]
    fn a_table_is_recognized_by_its_header_too() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("rows.csv");
        let rows = "1,2.5\n".repeat(20);
        std::fs::write(&path, format!("step,kT\n{rows}")).expect("written");
        let then = present(&path).expect("a mark");
        std::fs::write(&path, format!("step,T_\n{rows}")).expect("written");
        assert!(changed(&path, &then).is_some_and(|e| e.contains("its first line is not that at the checkpoint")));
        // checkpoints of earlier versions have no header; binary formats count frames there
        assert_eq!(changed(&path, &Mark { header: String::new(), ..then }), None);
        assert_eq!(header(b"T\0\0\0CORD\n"), "");
    }
}
