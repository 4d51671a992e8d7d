//! Trial loads of plugin libraries in a child process, so that a damaged library cannot crash the program.
//!
//! The program names itself with [`set_program`] and calls [`child`] if its first argument is [`COMMAND`]. Libraries that
//! loaded are remembered in the cache by length and CRC-32 of their contents: a changed bit makes a library unknown again.
//! Failures are not remembered, because they may have other causes than the file.

use super::Library;
use crate::device::cache;
use galamost_plugin_api::plugin_record::{API_MAJOR, API_MINOR};
use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;
use tracing::warn;

/// The first argument of a child process; the others are the files to load.
pub const COMMAND: &str = "load-plugins-in-child";
/// The longest time that a library may take to load.
const PATIENCE: Duration = Duration::from_secs(60);
/// What the child writes and the cache stores for a library that loaded.
const LOADED: &[u8] = b"loaded";

static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Names the program that runs as a child. Without one, libraries are loaded without a trial.
pub fn set_program(program: PathBuf) {
    let _ = PROGRAM.set(program);
}

/// A library and the key of its contents.
#[derive(Debug)]
pub struct Candidate<'a> {
    /// The file.
    pub path: &'a Path,
    /// The key of its contents in the cache.
    pub key: String,
}

/// Returns the key of a library with these contents. A change of a few bits always changes the CRC-32, and computing it
/// takes less than reading the file.
pub fn key(bytes: &[u8]) -> String {
    let contents = format!("{:08x} {}", crc32fast::hash(bytes), bytes.len());
    cache::key(&["plugin", env!("CARGO_PKG_VERSION"), &format!("{API_MAJOR}.{API_MINOR}"), &contents])
}

/// Loads libraries that are not known in a child process. Returns for each file how the child ended, if it did not survive.
pub fn failures(files: &[Candidate<'_>]) -> Vec<Option<String>> {
    let mut failures = vec![None; files.len()];
    let Some(program) = PROGRAM.get() else { return failures };
    let known = |k: &usize| cache::get(&files[*k].key, "plugin").is_some_and(|b| b == LOADED);
    let mut left: Vec<usize> = (0..files.len()).filter(|k| !known(k)).collect();
    while !left.is_empty() {
        let paths: Vec<&Path> = left.iter().map(|k| files[*k].path).collect();
        let (loaded, ended) = match run(program, &paths) {
            Ok(result) => result,
            Err(e) => {
                warn!("plugin libraries are loaded without a trial: {} does not start: {e}", program.display());
                return failures;
            }
        };
        left.iter().take(loaded).for_each(|k| cache::put(&files[*k].key, "plugin", LOADED));
        // the library after the last one that loaded ended the child; the others get a new child
        if let Some(k) = left.get(loaded) {
            failures[*k] = Some(ended);
        }
        left.drain(..left.len().min(loaded + 1));
    }
    failures
}

/// Runs a child. Returns how many of the libraries it survived, and how it ended.
fn run(program: &Path, files: &[&Path]) -> std::io::Result<(usize, String)> {
    // paths are absolute, and a core file must not appear in the folder of the run
    let mut child = Command::new(program)
        .arg(COMMAND)
        .args(files)
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let lines = lines(&mut child);
    let mut loaded = 0;
    while loaded < files.len() {
        match lines.recv_timeout(PATIENCE) {
            Ok(()) => loaded += 1,
            Err(RecvTimeoutError::Timeout) => {
                let _ = child.kill();
                let _ = child.wait();
                return Ok((loaded, format!("does not finish loading within {} s", PATIENCE.as_secs())));
            }
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    Ok((loaded, describe(child.wait()?)))
}

/// Returns a channel that receives a message for each library that loaded. What libraries print themselves is ignored.
fn lines(child: &mut Child) -> Receiver<()> {
    let (send, receive) = channel();
    if let Some(output) = child.stdout.take() {
        std::thread::spawn(move || {
            let reports = BufReader::new(output).lines().map_while(Result::ok).filter(|l| l.as_bytes() == LOADED);
            reports.map(|_| send.send(())).all(|sent| sent.is_ok())
        });
    }
    receive
}

/// Describes how a child ended.
fn describe(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt as _;
    let name = match status.signal() {
        None => return format!("ends the program when it is loaded ({status})"),
        Some(4) => "SIGILL, illegal instruction".into(),
        Some(6) => "SIGABRT".into(),
        Some(7) => "SIGBUS, invalid memory access".into(),
        Some(8) => "SIGFPE".into(),
        Some(11) => "SIGSEGV, invalid memory access".into(),
        Some(n) => format!("signal {n}"),
    };
    format!("crashes when it is loaded ({name})")
}

/// Loads libraries as a child process and writes a line after each. Errors that a library reports are left to the parent,
/// which gets them as well.
pub fn child(files: &[OsString]) {
    for file in files {
        let path = Path::new(file);
        if let Ok(bytes) = std::fs::read(path) {
            let _ = Library::inspect(path, &bytes).and_then(|record| Library::load(path, record));
        }
        let _ = std::io::stdout().write_all(&[LOADED, b"\n"].concat());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flipped_bit_changes_the_key() {
        let mut bytes: Vec<u8> = (0..5000u32).map(|k| (k * 7) as u8).collect();
        let before = key(&bytes);
        assert_eq!(key(&bytes), before);
        for at in [0, 4999, 2500] {
            bytes[at] ^= 16;
            assert_ne!(key(&bytes), before);
            bytes[at] ^= 16;
        }
    }
}
