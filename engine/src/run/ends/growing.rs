//! Growing output files of a run in progress: each must remain the file that its component has open.

use crate::plan::Plan;
use galamost_plugin_api::error::{Error, Result};
use galamost_plugin_api::output::OutputKind;
use galamost_plugin_api::resume::RESTORE;
use std::fs::Metadata;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Time between two checks while a run advances. Checkpoints and the end of the run have one each.
const INTERVAL: Duration = Duration::from_secs(5);

/// Time before a second look: a network file system may be without an answer for a moment.
const SECOND_LOOK: Duration = Duration::from_millis(500);

/// A file that a component has open.
struct GrowingFile {
    owner: String,
    /// Its path as components use it, and without symbolic links: the folder of a run may be renamed, and a program may change its
    /// working folder.
    paths: [PathBuf; 2],
    /// Its device and number, once it exists.
    inode: Option<(u64, u64)>,
    /// Its length at the last check.
    length: u64,
    /// It has become longer since it was first seen. Before, a component that opens its file with the first row may cut it to its
    /// checkpoint.
    grown: bool,
    /// The component may remove bytes.
    rewritten: bool,
}

/// The growing files of a run.
#[derive(Default)]
pub(in crate::run) struct GrowingFiles {
    files: Vec<GrowingFile>,
    last: Option<Instant>,
}

impl GrowingFiles {
    /// Returns the files of a run. Call it when its components have opened them.
    pub(in crate::run) fn of(plan: &Plan) -> Self {
        let growing = plan.files.iter().filter_map(|f| Some((f, f.output()?)));
        let growing = growing.filter(|(_, output)| output.kind == OutputKind::Growing);
        let files = growing.map(|(file, output)| {
            let resolved = file.target.path();
            let named = match file.owner.component() {
                Some(_) => plan.pipeline.directory().join(&file.shown),
                None => resolved.clone(),
            };
            let (owner, rewritten) = (file.owner.to_string(), output.rewritten);
            GrowingFile { owner, paths: [named, resolved], inode: None, length: 0, grown: false, rewritten }
        });
        let mut all = Self { files: files.collect(), last: None };
        // files that exist by now are those that the components have opened, so this finds no fault
        let _ = all.check();
        all
    }

    /// Checks the files if the last check is some time ago. Returns whether it is.
    ///
    /// # Errors
    /// As [`Self::check`].
    pub(in crate::run) fn poll(&mut self) -> Result<bool> {
        if self.last.is_some_and(|last| last.elapsed() < INTERVAL) { Ok(false) } else { self.check().map(|()| true) }
    }

    /// Checks that each path leads to the file to which it led at the last check, and that no file has become shorter.
    ///
    /// # Errors
    /// Returns an error if another program has removed, replaced or shortened a file.
    pub(in crate::run) fn check(&mut self) -> Result<()> {
        self.last = Some(Instant::now());
        self.files.iter_mut().try_for_each(|file| match file.check() {
            Ok(()) => Ok(()),
            Err(_) => {
                std::thread::sleep(SECOND_LOOK);
                file.check()
            }
        })
    }
}

fn inode(m: &Metadata) -> (u64, u64) {
    (m.dev(), m.ino())
}

impl GrowingFile {
    fn check(&mut self) -> Result<()> {
        let found = self.paths.each_ref().map(std::fs::metadata);
        let Some(open) = self.inode else {
            if let Some(m) = found.iter().find_map(|m| m.as_ref().ok()) {
                (self.inode, self.length) = (Some(inode(m)), m.len());
            }
            return Ok(());
        };
        let same = found.iter().filter_map(|m| m.as_ref().ok()).find(|m| inode(m) == open);
        let is_missing = |m: &std::io::Result<Metadata>| m.as_ref().is_err_and(|e| e.kind() == ErrorKind::NotFound);
        let what = match same {
            Some(m) if self.grown && !self.rewritten && m.is_file() && m.len() < self.length => {
                format!("was shortened from {} to {} bytes", self.length, m.len())
            }
            Some(m) => {
                self.grown |= m.len() > self.length;
                self.length = m.len();
                return Ok(());
            }
            None if found.iter().any(|m| m.is_ok()) => "was replaced by another file".into(),
            None if found.iter().all(is_missing) => {
                let remedy = "restore it, or create an empty one to begin it again, and resume";
                return Err(self.error("was removed or moved", remedy));
            }
            // the file system does not answer
            None => return Ok(()),
        };
        Err(self.error(&what, &format!("{RESTORE}, and resume")))
    }

    fn error(&self, what: &str, remedy: &str) -> Error {
        let (owner, path) = (&self.owner, self.paths[0].display());
        Error::Run(format!("{owner}: {path}: {what} while the run was writing it: {remedy}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn of(path: &Path) -> GrowingFiles {
        let file = GrowingFile {
            owner: "Thermo".into(),
            paths: [path.into(), path.into()],
            inode: None,
            length: 0,
            grown: false,
            rewritten: false,
        };
        GrowingFiles { files: vec![file], last: None }
    }

    #[test]
    fn a_file_must_remain_the_one_that_is_open() {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, other) = (folder.path().join("t.csv"), folder.path().join("u.csv"));
        let mut files = of(&path);
        // a table that is opened with its first row, in a resumed run by cutting it to the checkpoint
        files.check().expect("no file yet");
        std::fs::write(&path, "step\n1\n2\n").expect("written");
        files.check().expect("a file");
        std::fs::write(&path, "step\n1\n").expect("written");
        files.check().expect("it is cut");
        std::fs::write(&path, "step\n1\n2\n").expect("written");
        files.check().expect("it has grown");
        let said = |files: &mut GrowingFiles| files.check().expect_err("changed").to_string();
        std::fs::rename(&path, &other).expect("moved");
        let moved = said(&mut files);
        assert!(moved.contains("Thermo: ") && moved.contains("t.csv: was removed or moved while"), "{moved}");
        std::fs::write(&path, "step\n1\n2\n").expect("written");
        assert!(said(&mut files).contains("was replaced by another file while the run was writing it"));
        // back in its place
        std::fs::rename(&other, &path).expect("moved");
        files.check().expect("the file");
        std::fs::write(&path, "").expect("emptied");
        assert!(said(&mut files).contains("was shortened from 9 to 0 bytes while"));
        // not more often than the interval
        assert!(!files.poll().expect("just checked"));
    }
}
