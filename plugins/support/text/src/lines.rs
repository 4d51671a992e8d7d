//! Lines with their numbers.

use crate::Result;
use crate::open::{Source, open};
use galamost_plugin_api::error::{InputError, Position};
use std::io::{BufRead as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::str::{FromStr, SplitAsciiWhitespace};

/// Where a line begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// Byte.
    at: u64,
    /// Lines before it.
    line: u32,
}

/// The lines of a text file, one at a time.
#[derive(Debug)]
pub struct Lines {
    source: Source,
    path: PathBuf,
    next: Mark,
    text: String,
    /// The line ended with a line break.
    whole: bool,
}

impl Lines {
    /// Opens a file, compressed or not.
    ///
    /// # Errors
    /// As [`open`].
    pub fn open(path: &Path) -> Result<Self> {
        Ok(Self { source: open(path)?, path: path.into(), next: Mark::default(), text: String::new(), whole: true })
    }

    /// Reads the next line; `false` at the end of the file. (No iterator: the line is lent until the next one is read.)
    ///
    /// # Errors
    /// The system's words, or the line is no text.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<bool> {
        let mut bytes = std::mem::take(&mut self.text).into_bytes();
        bytes.clear();
        let read = self.source.read_until(b'\n', &mut bytes);
        let n = read.map_err(|e| self.cannot(&e))?;
        self.pass(n, bytes.last() == Some(&b'\n'));
        while let Some(b'\n' | b'\r') = bytes.last() {
            bytes.pop();
        }
        self.text = String::from_utf8(bytes).map_err(|_| self.wrong("this is not text (UTF-8)"))?;
        Ok(n > 0)
    }

    fn pass(&mut self, n: usize, whole: bool) {
        if n > 0 {
            self.next.at += n as u64;
            self.next.line = self.next.line.saturating_add(1);
            self.whole = whole;
        }
    }

    fn cannot(&self, e: &std::io::Error) -> InputError {
        InputError::in_file(&self.path, None, format!("cannot be read: {e}"))
    }

    /// Reads the next line, which must be there.
    ///
    /// # Errors
    /// The file ends here.
    pub fn must(&mut self, what: &str) -> Result<&str> {
        if self.next()? {
            Ok(self.text())
        } else {
            Err(self.wrong(format!("the file ends before {what}: is it cut off?")))
        }
    }

    /// Passes over lines, which must be there and end with a line break.
    ///
    /// # Errors
    /// The file ends before.
    pub fn skip(&mut self, lines: u64, what: &str) -> Result<()> {
        for _ in 0..lines {
            let n = self.source.skip_until(b'\n');
            let n = n.map_err(|e| self.cannot(&e))?;
            // only the last line of a file can be without a break
            let whole = n > 0 && (!self.at_end()? || self.ends_with_break()?);
            self.pass(n, whole);
            if !whole {
                self.text.clear();
                return Err(self.wrong(format!("the file ends before the end of {what}: is it cut off?")));
            }
        }
        Ok(())
    }

    fn ends_with_break(&mut self) -> Result<bool> {
        use std::io::Read as _;
        let mut last = [0];
        let read = self.source.seek(SeekFrom::End(-1)).and_then(|_| self.source.read_exact(&mut last));
        read.map_err(|e| self.cannot(&e))?;
        Ok(last == [b'\n'])
    }

    /// Whether there is nothing more to read.
    ///
    /// # Errors
    /// The system's words.
    pub fn at_end(&mut self) -> Result<bool> {
        match self.source.fill_buf() {
            Ok(more) => Ok(more.is_empty()),
            Err(e) => Err(InputError::in_file(&self.path, None, format!("cannot be read: {e}"))),
        }
    }

    /// The current line must have ended with a line break: without one it may be cut off.
    ///
    /// # Errors
    /// It has not.
    pub fn ended(&self) -> Result<()> {
        if self.whole { Ok(()) } else { Err(self.wrong("the file ends without a line break: is it cut off?")) }
    }

    /// Where the next line begins.
    pub fn mark(&self) -> Mark {
        self.next
    }

    /// Goes to a line.
    ///
    /// # Errors
    /// The system's words.
    pub fn seek(&mut self, to: Mark) -> Result<()> {
        let sought = self.source.seek(SeekFrom::Start(to.at));
        sought.map_err(|e| self.cannot(&e))?;
        self.next = to;
        Ok(())
    }

    /// The current line, without blanks at its ends.
    pub fn text(&self) -> &str {
        self.text.trim_ascii()
    }

    /// The current line as it stands, for formats of fixed columns.
    pub fn line(&self) -> &str {
        &self.text
    }

    /// Words of the current line.
    pub fn words(&self) -> SplitAsciiWhitespace<'_> {
        self.text.split_ascii_whitespace()
    }

    /// A mistake of the current line.
    pub fn wrong(&self, message: impl Into<String>) -> InputError {
        self.mistake(1, message)
    }

    /// A mistake at a word of the current line, or at its begin if the word is from elsewhere.
    pub fn wrong_at(&self, word: &str, message: impl Into<String>) -> InputError {
        let offset = (word.as_ptr() as usize).wrapping_sub(self.text.as_ptr() as usize);
        let column = self.text.get(..offset).map_or(1, |before| before.chars().count() + 1);
        self.mistake(column as u32, message)
    }

    fn mistake(&self, column: u32, message: impl Into<String>) -> InputError {
        InputError::in_file(&self.path, Some(Position { line: self.next.line.max(1), column }), message)
    }

    /// A mistake of the file as a whole.
    pub fn wrong_file(&self, message: impl Into<String>) -> InputError {
        InputError::in_file(&self.path, None, message)
    }

    /// The whole number that a word says.
    ///
    /// # Errors
    /// It says none of this type.
    pub fn whole<T: FromStr>(&self, word: &str) -> Result<T> {
        word.parse().map_err(|_| self.wrong_at(word, format!("expected a whole number, found `{word}`")))
    }

    /// The number that a word says, which must be finite.
    ///
    /// # Errors
    /// It says none.
    pub fn real(&self, word: &str) -> Result<f64> {
        let x: f64 = word.parse().map_err(|_| self.wrong_at(word, format!("expected a number, found `{word}`")))?;
        if x.is_finite() { Ok(x) } else { Err(self.wrong_at(word, format!("`{word}` is no finite number"))) }
    }

    /// All numbers of the current line, which must be so many.
    ///
    /// # Errors
    /// There are others, or some are none.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_know_their_places() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("f");
        std::fs::write(&path, "first 1\r\n\nö 2 x\nlast").expect("written");
        let mut l = Lines::open(&path).expect("opened");
        assert!(l.next() == Ok(true) && l.text() == "first 1" && l.mark() == Mark { at: 9, line: 1 });
        let mark = l.mark();
        l.skip(2, "it").expect("two lines");
        assert!(l.next() == Ok(true) && l.text() == "last" && l.ended().is_err());
        assert!(l.next() == Ok(false) && l.must("more").is_err());
        l.seek(mark).expect("sought");
        assert!(l.skip(3, "it").is_err_and(|e| e.message.contains("before the end of it")));
        l.seek(mark).expect("sought");
        assert!(l.next() == Ok(true) && l.text().is_empty() && l.next() == Ok(true));
        let word = l.words().nth(2).expect("a word");
        let e = l.real(word).expect_err("no number");
        assert_eq!((e.at, e.message.as_str()), (Some(Position { line: 3, column: 5 }), "expected a number, found `x`"));
    }
}
