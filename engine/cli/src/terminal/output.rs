//! Standard output: every command prints through [`print`].

use galamost_engine::diagnostic::Failure;
use std::io::{ErrorKind, Write as _};

/// Prints a text. A reader that has closed the pipe, like `head`, wants no more: the rest is dropped.
///
/// # Errors
/// Returns the error of the system, for example of a full disk.
pub fn print(text: impl AsRef<str>) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    written(out.write_all(text.as_ref().as_bytes()).and_then(|()| out.flush()))
}

/// Judges the result of writing to standard output, as [`print()`] does.
///
/// # Errors
/// Returns the error of the system, unless the reader has closed the pipe.
pub fn written(result: std::io::Result<()>) -> Result<(), Failure> {
    match result {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => Err(Failure::run(format!("standard output: {e}"))),
        _ => Ok(()),
    }
}
