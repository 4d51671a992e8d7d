//! Input files. A file with the wrong contents is refused at its first wrong byte, before all of it is read.

use crate::error::{InputError, Position};
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

/// Bytes that are read, checked and kept at a time.
const PIECE: usize = 1 << 16;
/// The byte order mark, which some editors write at the start of UTF-8 files.
pub const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Opens a file. Devices and pipes are refused, because they may never end and cannot be read twice.
///
/// # Errors
/// Returns an error if the path is not a regular file or cannot be opened.
pub fn open(path: &Path) -> Result<File, InputError> {
    let fail = |message: String| InputError::in_file(path, None, message);
    let kind = std::fs::metadata(path).map_err(|e| fail(format!("cannot be read: {e}")))?.file_type();
    if kind.is_dir() {
        return Err(fail("is a folder, expected a file".into()));
    }
    if !kind.is_file() {
        return Err(fail("is a device or a pipe, expected a file; copy its contents to a file first".into()));
    }
    File::open(path).map_err(|e| fail(format!("cannot be read: {e}")))
}

/// Reads a text file: UTF-8, with or without a byte order mark.
///
/// # Errors
/// Returns the errors of [`open()`] and [`text_from`].
pub fn text(path: &Path) -> Result<String, InputError> {
    text_from(path, open(path)?, u64::MAX)
}

/// Reads text to the end of `from`, at most `limit` bytes, and removes a byte order mark. `path` names the file in errors.
///
/// Memory is bounded by the text that was read, and reading stops at the first byte that cannot be text.
///
/// # Errors
/// Returns an error with the line if the contents are not UTF-8 or have a zero byte, or an error if `from` fails or has
/// more than `limit` bytes.
pub fn text_from(path: &Path, mut from: impl Read, limit: u64) -> Result<String, InputError> {
    let mut text: Vec<u8> = vec![];
    // all bytes before this one are text
    let mut checked = 0;
    let mut piece = vec![0; PIECE];
    loop {
        let n = match from.read(&mut piece) {
            Ok(0) => break,
            Ok(n) => n,
            Err(e) if e.kind() == ErrorKind::Interrupted => continue,
            Err(e) => return Err(InputError::in_file(path, None, stopped(&e, &text))),
        };
        text.extend_from_slice(&piece[..n]);
        checked = check(path, &text, checked)?;
        if text.len() as u64 > limit {
            return Err(InputError::in_file(path, None, format!("has more than {limit} bytes")));
        }
    }
    if checked < text.len() {
        return Err(wrong(path, &text, checked, "this is not text (UTF-8): a character is incomplete"));
    }
    if text.starts_with(BYTE_ORDER_MARK) {
        text.drain(..BYTE_ORDER_MARK.len());
    }
    String::from_utf8(text).map_err(|e| wrong(path, e.as_bytes(), e.utf8_error().valid_up_to(), NO_TEXT))
}

const NO_TEXT: &str = "this is not text (UTF-8)";

/// Checks the bytes from `checked` on. Returns the number of bytes that are text; the last character may be incomplete.
fn check(path: &Path, bytes: &[u8], checked: usize) -> Result<usize, InputError> {
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        return Err(wrong(path, bytes, 0, "this is UTF-16 text; save the file as UTF-8"));
    }
    let rest = &bytes[checked..];
    let valid = match std::str::from_utf8(rest) {
        Ok(_) => rest.len(),
        Err(e) if e.error_len().is_none() => e.valid_up_to(),
        Err(e) => return Err(wrong(path, bytes, checked + e.valid_up_to(), NO_TEXT)),
    };
    match rest.iter().position(|b| *b == 0) {
        Some(zero) => Err(wrong(path, bytes, checked + zero, "this is not text: it contains a zero byte")),
        None => Ok(checked + valid),
    }
}

/// Returns an error at the position of a byte.
fn wrong(path: &Path, bytes: &[u8], at: usize, message: &str) -> InputError {
    let line = bytes[..at].iter().filter(|b| **b == b'\n').count() + 1;
    let last_line = bytes[..at].rsplit(|b| *b == b'\n').next().unwrap_or_default();
    let last_line = last_line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(last_line);
    let column = String::from_utf8_lossy(last_line).chars().count() + 1;
    let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let at = Position { line: number(line), column: number(column) };
    InputError::in_file(path, Some(at), message)
}

/// Returns the message for a file that could not be read to its end.
fn stopped(e: &std::io::Error, text: &[u8]) -> String {
    let lines = text.iter().filter(|b| **b == b'\n').count();
    match e.kind() {
        ErrorKind::UnexpectedEof => format!(
            "is truncated: its compressed data end after {} bytes of text ({lines} complete lines); copy the file again",
            text.len()
        ),
        _ if text.is_empty() => format!("cannot be read: {e}"),
        _ => format!("cannot be read beyond {} bytes of text ({lines} complete lines): {e}", text.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Result<String, String> {
        text_from(Path::new("f"), bytes, 1 << 20).map_err(|e| e.to_string())
    }

    #[test]
    fn text_is_read_and_anything_else_is_refused_at_its_line() {
        assert_eq!(read(b"\xef\xbb\xbfa\n\xc3\xb6"), Ok("a\nö".into()));
        assert_eq!(read(b""), Ok(String::new()));
        assert_eq!(read(b"a\nb\xff\n"), Err("f:2:2: this is not text (UTF-8)".into()));
        assert_eq!(read(b"a\n\nb\0\n"), Err("f:3:2: this is not text: it contains a zero byte".into()));
        assert_eq!(read(b"a\n\xc3"), Err("f:2:1: this is not text (UTF-8): a character is incomplete".into()));
        assert_eq!(read(b"\xff\xfea\0"), Err("f:1:1: this is UTF-16 text; save the file as UTF-8".into()));
        // a character across two pieces
        let long = "x".repeat(PIECE - 1) + "öö";
        assert_eq!(read(long.as_bytes()), Ok(long));
    }

    #[test]
    fn endless_input_is_refused_early() {
        let zeros = text_from(Path::new("f"), std::io::repeat(0), u64::MAX).map_err(|e| e.to_string());
        assert_eq!(zeros, Err("f:1:1: this is not text: it contains a zero byte".into()));
        let blanks = text_from(Path::new("f"), std::io::repeat(b' '), 1 << 20).map_err(|e| e.to_string());
        assert_eq!(blanks, Err("f: has more than 1048576 bytes".into()));
        for path in ["/dev/zero", "/"] {
            assert!(open(Path::new(path)).is_err_and(|e| e.message.contains("expected a file")), "{path}");
        }
    }
}
