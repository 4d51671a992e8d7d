//! Whether a file is an output of a run in progress, for commands that write files.

use super::SUFFIX;
use super::file::holder;
use crate::plan::files::Target;
use std::path::Path;

/// Returns the process whose run writes this file, if there is one: lock files in its folder list the outputs of runs. Patterns with
/// `{step}` count for all their files.
pub fn writing_process(path: &Path) -> Option<String> {
    let target = Target::resolve(path).ok()?;
    let entries = std::fs::read_dir(&target.folder).ok()?;
    let locks = entries.flatten().filter(|e| e.file_name().to_string_lossy().ends_with(SUFFIX));
    let mut holders = locks.filter_map(|e| holder(&e.path(), false));
    holders.find(|h| h.outputs.iter().any(|output| target.may_be(output))).map(|h| h.to_string())
}
