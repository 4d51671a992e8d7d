//! The output files of a run at a checkpoint, so that a resumed run neither continues nor replaces files of another one.
//!
//! A growing file is recognized by its last bytes: rows and frames that are written stay as they are.

use crate::diagnostic::Diagnostic;
use crate::plan::Plan;
use crate::plan::files::{FileUse, RunFile};
use galamost_plugin_api::output::OutputKind;
use galamost_plugin_api::resume::{check_length, has_content};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
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
    for (file, kind) in outputs(plan) {
        let path = file.target.path();
        let mark = if is_compared(file, kind) && has_content(&path) { Some(mark(&path, None)) } else { None };
        let mark = mark.transpose().map_err(|e| galamost_plugin_api::error::Error::io(&path, e))?;
        found.insert(file.shown.clone(), mark);
    }
    Ok(found)
}

/// Compares the outputs of a run that resumes with those at the checkpoint. Files that have been emptied are begun again.
pub fn compare(then: &Outputs, plan: &Plan) -> Vec<Diagnostic> {
    let mut errors = vec![];
    let gone: Vec<_> = then.iter().filter(|(name, _)| outputs(plan).all(|(file, _)| file.shown != **name)).collect();
    for (file, _) in outputs(plan) {
        let path = file.target.path();
        let wrong = match then.get(&file.shown) {
            None if gone.iter().any(|(name, mark)| was_renamed(name, mark.as_ref(), &path)) => None,
            None => foreign(file),
            Some(Some(mark)) => changed(&path, mark),
            Some(None) => None,
        };
        errors.extend(wrong.map(|message| file.error(message)));
    }
    errors
}

/// Returns whether a run has outputs that it did not have.
pub fn has_new(then: &Outputs, plan: &Plan) -> bool {
    outputs(plan).any(|(file, _)| !then.contains_key(&file.shown))
}

fn outputs(plan: &Plan) -> impl Iterator<Item = (&RunFile, OutputKind)> {
    plan.files.iter().filter_map(|f| match f.usage {
        FileUse::Output(kind) => Some((f, kind)),
        _ => None,
    })
}

/// Returns whether the end of a file stays the same while it grows. Files in GSD have an index that moves, tables in Parquet are folders;
/// both are compared by the components that write them.
fn is_compared(file: &RunFile, kind: OutputKind) -> bool {
    kind == OutputKind::Growing
        && file.target.path().is_file()
        && !file.target.name.to_ascii_lowercase().ends_with(".gsd")
}

/// The last record of a PDB file, which the next frame replaces.
const END: &[u8] = b"END\n";

/// Returns the mark of a file, or of its first `length` bytes. Only the second half of a short file is compared, because the first
/// bytes of some formats count the frames.
fn mark(path: &Path, length: Option<u64>) -> Result<Mark> {
    let mut file = File::open(path)?;
    let fresh = length.is_none();
    let length = match length {
        Some(length) => length,
        None => file.metadata()?.len(),
    };
    let compared = length.div_ceil(2).min(COMPARED);
    file.seek(SeekFrom::Start(length - compared))?;
    let mut bytes = vec![];
    file.take(compared).read_to_end(&mut bytes)?;
    if fresh && bytes.ends_with(END) {
        return mark(path, Some(length - END.len() as u64));
    }
    Ok(Mark { length, end: blake3::hash(&bytes).to_hex()[..16].into() })
}

/// Returns what is wrong with a file that the run had at the checkpoint.
fn changed(path: &Path, then: &Mark) -> Option<String> {
    if let Err(e) = check_length(path, then.length) {
        return Some(e.to_string());
    }
    match mark(path, Some(then.length)) {
        Ok(now) if !has_content(path) || now == *then => None,
        Ok(_) => Some(format!(
            "{}: its contents are not those at the checkpoint: another run has written it, or it was edited; restore it, or empty it to begin \
             it again",
            path.display()
        )),
        Err(e) => Some(format!("{}: {e}", path.display())),
    }
}

/// Returns whether a file may be one that had this name at the checkpoint.
fn was_renamed(name: &str, mark: Option<&Mark>, path: &Path) -> bool {
    match mark {
        Some(mark) => changed(path, mark).is_none(),
        None => {
            let ending = |path: &Path| path.extension().map(|e| e.to_string_lossy().to_ascii_lowercase());
            // compared by the components that write them
            let same = ending(path).filter(|e| ending(Path::new(name)).as_ref() == Some(e));
            same.is_some_and(|e| e == "gsd" || e == "parquet")
        }
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
    fn the_end_of_a_pdb_file_is_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("t.pdb");
        std::fs::write(&path, "MODEL 1\nENDMDL\nEND\n").expect("written");
        let then = mark(&path, None).expect("a mark");
        std::fs::write(&path, "MODEL 1\nENDMDL\nMODEL 2\n").expect("written");
        assert_eq!(changed(&path, &then), None);
        std::fs::write(&path, "MODEL 1\nENDM_L\nMODEL 2\n").expect("written");
        assert!(changed(&path, &then).is_some());
    }

    #[test]
    fn files_are_recognized_by_their_ends() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("rows.csv");
        for length in [1usize, 2, 100, 9000] {
            let text: Vec<u8> = (0..length).map(|k| b'0' + (k % 7) as u8).collect();
            std::fs::write(&path, &text).expect("written");
            let then = mark(&path, None).expect("a mark");
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
