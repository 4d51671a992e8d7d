//! Reading a text file line by line, with line numbers for errors.

use crate::Result;
use crate::open::{Source, open};
use galamost_plugin_api::error::{InputError, Position};
use galamost_plugin_api::input::BYTE_ORDER_MARK;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io::{BufRead as _, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::str::{FromStr, SplitAsciiWhitespace};

/// Longest line, in bytes: a file without line breaks must not fill the memory.
const MAX_LINE: u64 = 1 << 22;

/// The position of a line in a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// Byte offset.
    at: u64,
    /// Number of lines before it.
    line: u32,
}

/// The lines of a text file, one at a time.
#[derive(Debug)]
pub struct Lines {
    source: Source,
    path: PathBuf,
    next: Mark,
    text: String,
    /// Whether the current line ended with a line break.
    complete: bool,
    /// Warnings about contents that are not read.
    notices: RefCell<BTreeSet<String>>,
}

impl Lines {
    /// Opens a file, compressed or not.
    ///
    /// # Errors
    /// Returns the errors of [`open`].
    pub fn open(path: &Path) -> Result<Self> {
        let source = open(path)?;
        let path = path.into();
        Ok(Self {
            source,
            path,
            next: Mark::default(),
            text: String::new(),
            complete: true,
            notices: RefCell::default(),
        })
    }

    /// Reads the next line. Returns `false` at the end of the file. (Not an iterator: the line is borrowed until the next one
    /// is read.)
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or the line is not UTF-8.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<bool> {
        let mut bytes = std::mem::take(&mut self.text).into_bytes();
        bytes.clear();
        let read = self.source.by_ref().take(MAX_LINE).read_until(b'\n', &mut bytes);
        let n = read.map_err(|e| self.io_error(&e))?;
        let first = self.next.at == 0;
        self.advance(n, bytes.last() == Some(&b'\n'));
        self.check_length(n)?;
        if first && bytes.starts_with(BYTE_ORDER_MARK) {
            bytes.drain(..BYTE_ORDER_MARK.len());
        }
        if bytes.contains(&0) {
            return Err(self.wrong("this is not text: it contains a zero byte"));
        }
        while let Some(b'\n' | b'\r') = bytes.last() {
            bytes.pop();
        }
        self.text = String::from_utf8(bytes).map_err(|_| self.wrong("this is not text (UTF-8)"))?;
        Ok(n > 0)
    }

    /// Checks that a line of `n` bytes was read to its end.
    fn check_length(&self, n: usize) -> Result<()> {
        if n as u64 == MAX_LINE && !self.complete {
            return Err(
                self.wrong(format!("the line has more than {MAX_LINE} bytes: this is not a text file of particles"))
            );
        }
        Ok(())
    }

    /// Moves the position by a line of `n` bytes.
    fn advance(&mut self, n: usize, complete: bool) {
        if n > 0 {
            self.next.at += n as u64;
            self.next.line = self.next.line.saturating_add(1);
            self.complete = complete;
        }
    }

    fn io_error(&self, e: &std::io::Error) -> InputError {
        InputError::in_file(&self.path, None, format!("cannot be read: {e}"))
    }

    /// Reads the next line, which must exist.
    ///
    /// # Errors
    /// Returns an error if the file ends here; `what` names the expected line.
    pub fn must(&mut self, what: &str) -> Result<&str> {
        if self.next()? {
            Ok(self.text())
        } else {
            Err(self.wrong(format!("the file ends before {what}; it may be truncated")))
        }
    }

    /// Skips lines, which must exist. The last line of the file may lack its line break if it is the last of the skipped
    /// lines and has at least `words` words; it then is the current line, and [`Self::ended`] returns an error.
    ///
    /// # Errors
    /// Returns an error if the file ends before; `what` names the skipped lines.
    pub fn skip(&mut self, lines: u64, words: usize, what: &str) -> Result<()> {
        for k in 0..lines {
            let begin = self.next;
            let n = self.source.by_ref().take(MAX_LINE).skip_until(b'\n');
            let n = n.map_err(|e| self.io_error(&e))?;
            // only the last line of a file can lack a line break
            let complete = n > 0 && (!self.at_end()? || self.ends_with_break()?);
            self.advance(n, complete);
            if n as u64 == MAX_LINE {
                self.seek(begin)?;
                self.next()?;
            } else if !complete {
                self.text.clear();
                if n > 0 && k + 1 == lines {
                    self.seek(begin)?;
                    self.next()?;
                }
                if self.words().count() < words.max(1) {
                    return Err(self.wrong(format!("the file ends before the end of {what}; it may be truncated")));
                }
            }
        }
        Ok(())
    }

    fn ends_with_break(&mut self) -> Result<bool> {
        let mut last = [0];
        let read = self.source.seek(SeekFrom::End(-1)).and_then(|_| self.source.read_exact(&mut last));
        read.map_err(|e| self.io_error(&e))?;
        Ok(last == [b'\n'])
    }

    /// Returns whether the end of the file is reached.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub fn at_end(&mut self) -> Result<bool> {
        match self.source.fill_buf() {
            Ok(more) => Ok(more.is_empty()),
            Err(e) => Err(self.io_error(&e)),
        }
    }

    /// Checks that the current line ended with a line break; without one it may be truncated.
    ///
    /// # Errors
    /// Returns an error if it did not.
    pub fn ended(&self) -> Result<()> {
        if self.complete { Ok(()) } else { Err(self.wrong("the file ends without a line break; it may be truncated")) }
    }

    /// Returns the position of the next line.
    pub fn mark(&self) -> Mark {
        self.next
    }

    /// Moves to a line.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub fn seek(&mut self, to: Mark) -> Result<()> {
        let sought = self.source.seek(SeekFrom::Start(to.at));
        sought.map_err(|e| self.io_error(&e))?;
        self.next = to;
        Ok(())
    }

    /// Returns the current line without surrounding blanks.
    pub fn text(&self) -> &str {
        self.text.trim_ascii()
    }

    /// Returns the current line with its blanks, for formats with fixed columns.
    pub fn line(&self) -> &str {
        &self.text
    }

    /// Returns the words of the current line.
    pub fn words(&self) -> SplitAsciiWhitespace<'_> {
        self.text.split_ascii_whitespace()
    }

    /// Records a warning about the file, once: something that is not read.
    pub fn warn(&self, message: impl Into<String>) {
        self.notices.borrow_mut().insert(self.wrong_file(message).to_string());
    }

    /// Returns the warnings recorded so far.
    pub fn warnings(&self) -> Vec<String> {
        self.notices.borrow().iter().cloned().collect()
    }

    /// Makes an error in the current line.
    pub fn wrong(&self, message: impl Into<String>) -> InputError {
        self.error_at(1, message)
    }

    /// Makes an error at a word of the current line, or at the start of the line if the word is not from this line.
    pub fn wrong_at(&self, word: &str, message: impl Into<String>) -> InputError {
        let offset = (word.as_ptr() as usize).wrapping_sub(self.text.as_ptr() as usize);
        let column = self.text.get(..offset).map_or(1, |before| before.chars().count() + 1);
        self.error_at(column as u32, message)
    }

    fn error_at(&self, column: u32, message: impl Into<String>) -> InputError {
        InputError::in_file(&self.path, Some(Position { line: self.next.line.max(1), column }), message)
    }

    /// Makes an error of the file as a whole.
    pub fn wrong_file(&self, message: impl Into<String>) -> InputError {
        InputError::in_file(&self.path, None, message)
    }

    /// Parses an integer.
    ///
    /// # Errors
    /// Returns an error at the word if it is not an integer of this type.
    pub fn whole<T: FromStr>(&self, word: &str) -> Result<T> {
        let error = |_| match is_large(word) {
            true => self.wrong_at(word, format!("the number {word} is too large")),
            false => self.wrong_at(word, format!("expected a whole number, found `{word}`")),
        };
        word.parse().map_err(error)
    }

    /// Parses a finite number.
    ///
    /// # Errors
    /// Returns an error at the word if it is not a finite number.
    pub fn real(&self, word: &str) -> Result<f64> {
        let x: f64 = word.parse().map_err(|_| self.wrong_at(word, format!("expected a number, found `{word}`")))?;
        if x.is_finite() { Ok(x) } else { Err(self.wrong_at(word, format!("`{word}` is not a finite number"))) }
    }

    /// Parses the current line as exactly `N` numbers.
    ///
    /// # Errors
    /// Returns an error if there are not `N` words or one of them is not a finite number.
    pub fn reals<const N: usize>(&self) -> Result<[f64; N]> {
        let mut out = [0.0; N];
        let words: Vec<&str> = self.words().collect();
        if words.len() != N {
            return Err(self.wrong(format!("expected {N} numbers, found {}", words.len())));
        }
        for (x, word) in out.iter_mut().zip(words) {
            *x = self.real(word)?;
        }
        Ok(out)
    }
}

/// Returns whether a word that is no integer of some type is an integer beyond it. A small negative one is no positive number.
fn is_large(word: &str) -> bool {
    let digits = word.strip_prefix('-').unwrap_or(word);
    let is_whole = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    is_whole && (digits == word || word.parse::<i32>().is_err())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_beyond_their_type_are_named() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("f"), "5000000000 -5000000000 -5 x5\n").expect("written");
        let mut l = Lines::open(&folder.path().join("f")).expect("opened");
        assert_eq!(l.next(), Ok(true));
        let found: Vec<String> = l.words().map(|w| l.whole::<u32>(w).expect_err("no such number").message).collect();
        assert!(found[0] == "the number 5000000000 is too large" && found[1].ends_with("is too large"), "{found:?}");
        assert!(found[2].ends_with("found `-5`") && found[3].ends_with("found `x5`"), "{found:?}");
    }

    #[test]
    fn lines_know_their_positions() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("f");
        std::fs::write(&path, "first 1\r\n\nö 2 x\nlast").expect("written");
        let mut l = Lines::open(&path).expect("opened");
        assert!(l.next() == Ok(true) && l.text() == "first 1" && l.mark() == Mark { at: 9, line: 1 });
        let mark = l.mark();
        l.skip(2, 1, "it").expect("two lines");
        assert!(l.next() == Ok(true) && l.text() == "last" && l.ended().is_err());
        assert!(l.next() == Ok(false) && l.must("more").is_err());
        l.seek(mark).expect("sought");
        // the last line has no line break: it counts if it has enough words
        assert!(l.skip(3, 2, "it").is_err_and(|e| e.message.contains("before the end of it")));
        l.seek(mark).expect("sought");
        assert!(l.skip(4, 1, "it").is_err_and(|e| e.message.contains("before the end of it")));
        l.seek(mark).expect("sought");
        assert!(l.skip(3, 1, "it") == Ok(()) && l.text() == "last" && l.ended().is_err());
        // whatever the length of the file
        for length in [511, 512, 513, 4096] {
            std::fs::write(&path, format!("a\n{}", "1".repeat(length - 2))).expect("written");
            let mut l = Lines::open(&path).expect("opened");
            assert!(l.skip(2, 1, "it") == Ok(()) && l.ended().is_err(), "{length}");
        }
        std::fs::write(&path, "first 1\r\n\nö 2 x\nlast").expect("written");
        let mut l = Lines::open(&path).expect("opened");
        l.seek(mark).expect("sought");
        assert!(l.next() == Ok(true) && l.text().is_empty() && l.next() == Ok(true));
        let word = l.words().nth(2).expect("a word");
        let e = l.real(word).expect_err("no number");
        assert_eq!((e.at, e.message.as_str()), (Some(Position { line: 3, column: 5 }), "expected a number, found `x`"));
    }

    #[test]
    fn files_without_lines_are_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("f");
        let of = |bytes: &[u8]| {
            std::fs::write(&path, bytes).expect("written");
            Lines::open(&path).expect("opened")
        };
        let endless = vec![b' '; MAX_LINE as usize + 1];
        let message = "/f:1:1: the line has more than";
        assert!(of(&endless).next().is_err_and(|e| e.to_string().contains(message)));
        assert!(of(&endless).skip(2, 1, "it").is_err_and(|e| e.to_string().contains(message)));
        assert!(of(b"a\nb\0\n").skip(1, 1, "it").is_ok());
        let mut l = of(b"\xef\xbb\xbfa\nb\0\n");
        assert!(l.next() == Ok(true) && l.text() == "a");
        assert!(l.next().is_err_and(|e| e.to_string().contains("/f:2:1: this is not text")));
    }
}
