//! Frames, one after the other in a text file.

use crate::Result;
use crate::lines::{Lines, Mark};
use galamost_plugin_api::error::InputError;
use std::path::Path;

/// A file of frames. Where they begin is found as far as it is asked for, and kept.
///
/// What is behind the last whole frame and ends with the file (a run was killed while it wrote) does not count.
pub struct Trajectory {
    lines: Lines,
    /// Passes over one frame; `false`: there is none any more.
    skip: fn(&mut Lines) -> Result<bool>,
    starts: Vec<Mark>,
    /// Where it goes on, if the end was not reached.
    next: Option<Mark>,
    /// What is wrong with what is behind the last whole frame.
    rest: Option<InputError>,
}

impl std::fmt::Debug for Trajectory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Trajectory({} frames found)", self.starts.len())
    }
}

impl Trajectory {
    /// Opens a file. The function passes over a frame, and tells `false` if there is none any more.
    ///
    /// # Errors
    /// As [`crate::open()`].
    pub fn open(path: &Path, skip: fn(&mut Lines) -> Result<bool>) -> Result<Self> {
        let lines = Lines::open(path)?;
        Ok(Self { lines, skip, starts: vec![], next: Some(Mark::default()), rest: None })
    }

    /// Looks for frames until there are so many.
    fn find(&mut self, wanted: usize) -> Result<()> {
        while let (Some(next), true) = (self.next, self.starts.len() < wanted) {
            self.lines.seek(next)?;
            match (self.skip)(&mut self.lines) {
                Ok(true) => {
                    self.starts.push(next);
                    self.next = Some(self.lines.mark());
                }
                Ok(false) => self.next = None,
                Err(e) => {
                    // a mistake in the middle of a file is none of a killed run
                    if !self.lines.at_end()? {
                        return Err(e);
                    }
                    (self.next, self.rest) = (None, Some(e));
                }
            }
        }
        Ok(())
    }

    /// Number of whole frames.
    ///
    /// # Errors
    /// The file is none of this format.
    pub fn count(&mut self) -> Result<u64> {
        self.find(usize::MAX)?;
        match &self.rest {
            Some(e) if self.starts.is_empty() => Err(e.clone()),
            _ => Ok(self.starts.len() as u64),
        }
    }

    /// The lines of a frame, from its first on; a negative number counts from the end.
    ///
    /// # Errors
    /// There is no such frame, or something before it is wrong.
    pub fn frame(&mut self, number: i64) -> Result<&mut Lines> {
        let place = match usize::try_from(number) {
            Ok(k) => {
                self.find(k.saturating_add(1))?;
                Some(k)
            }
            Err(_) => {
                let n = self.count()? as usize;
                n.checked_sub(number.unsigned_abs() as usize)
            }
        };
        let Some(start) = place.and_then(|k| self.starts.get(k)).copied() else {
            let n = self.starts.len();
            return Err(match self.rest.take() {
                Some(e) => InputError { message: format!("there is no whole frame {number}: {}", e.message), ..e },
                None => self.lines.wrong_file(format!("there is no frame {number}: the file has {n}")),
            });
        };
        self.lines.seek(start)?;
        Ok(&mut self.lines)
    }

    /// The lines from the begin of the file on.
    ///
    /// # Errors
    /// The system's words.
    pub fn begin(&mut self) -> Result<&mut Lines> {
        self.lines.seek(Mark::default())?;
        Ok(&mut self.lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame is a line `n` and n lines.
    fn skip(l: &mut Lines) -> Result<bool> {
        if !l.next()? {
            return Ok(false);
        }
        l.ended()?;
        let n = l.whole(l.text())?;
        l.skip(n, "a frame").map(|()| true)
    }

    #[test]
    fn whole_frames_are_found() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("f");
        let of = |text: &str| {
            std::fs::write(&path, text).expect("written");
            Trajectory::open(&path, skip).expect("opened")
        };
        let text = "1\na\n0\n2\nb\nc\n";
        let mut t = of(text);
        assert!(t.frame(0).is_ok_and(|l| l.next() == Ok(true) && l.next() == Ok(true) && l.text() == "a"));
        assert_eq!(t.starts.len(), 1, "no farther than needed");
        assert!(t.frame(-1).is_ok_and(|l| l.next() == Ok(true) && l.text() == "2"));
        assert_eq!((t.count(), t.frame(3).map(|_| ()).map_err(|e| e.message)), {
            (Ok(3), Err("there is no frame 3: the file has 3".into()))
        });
        assert!(t.frame(-4).is_err() && t.frame(-3).is_ok());
        // cut anywhere: the whole frames are there
        for cut in 0..text.len() {
            let mut t = of(&text[..cut]);
            let n = [4, 6, 12].iter().filter(|end| **end <= cut).count() as u64;
            match t.count() {
                Ok(found) => assert_eq!(found, n, "cut at {cut}"),
                Err(e) => assert!(n == 0 && cut > 0, "cut at {cut}: {e}"),
            }
        }
        // a mistake in the middle is one
        let e = of("1\na\nwhat\n1\nb\n").count().expect_err("no number");
        assert_eq!(e.to_string(), format!("{}:3:1: expected a whole number, found `what`", path.display()));
        let e = of("1\na\n2\nb\n").frame(1).map(|_| ()).expect_err("not whole");
        assert!(e.message.starts_with("there is no whole frame 1: the file ends before"), "{e}");
    }
}
