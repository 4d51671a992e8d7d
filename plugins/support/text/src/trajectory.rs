//! Frames of a text trajectory.

use crate::Result;
use crate::lines::{Lines, Mark};
use galamost_plugin_api::error::InputError;
use std::path::Path;

/// A text file of frames. The positions of frames are found on demand and stored.
///
/// An incomplete frame at the end of the file, left by a run that was killed while writing, is ignored with a warning.
pub struct Trajectory {
    lines: Lines,
    /// Skips one frame; returns `false` at the end of the file.
    skip: fn(&mut Lines) -> Result<bool>,
    starts: Vec<Mark>,
    /// Position of the first frame that is not found yet; `None` after the end was reached.
    next: Option<Mark>,
    /// Error in the incomplete frame at the end of the file.
    incomplete: Option<InputError>,
    /// Error of a complete last frame whose last line has no line break.
    unended: Option<InputError>,
}

impl std::fmt::Debug for Trajectory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Trajectory({} frames found)", self.starts.len())
    }
}

impl Trajectory {
    /// Opens a file. `skip` skips one frame and returns `false` at the end of the file.
    ///
    /// # Errors
    /// Returns the errors of [`crate::open()`].
    pub fn open(path: &Path, skip: fn(&mut Lines) -> Result<bool>) -> Result<Self> {
        let lines = Lines::open(path)?;
        Ok(Self { lines, skip, starts: vec![], next: Some(Mark::default()), incomplete: None, unended: None })
    }

    /// Finds frames until `wanted` are known or the file ends.
    fn find(&mut self, wanted: usize) -> Result<()> {
        while let (Some(next), true) = (self.next, self.starts.len() < wanted) {
            self.lines.seek(next)?;
            match (self.skip)(&mut self.lines) {
                Ok(true) => {
                    self.starts.push(next);
                    if self.lines.at_end()? {
                        self.unended = self.lines.ended().err();
                    }
                    self.next = Some(self.lines.mark());
                }
                Ok(false) => self.next = None,
                Err(e) => {
                    // only an error at the end of the file can come from a killed run
                    if !self.lines.at_end()? {
                        return Err(e);
                    }
                    (self.next, self.incomplete) = (None, Some(e));
                }
            }
        }
        Ok(())
    }

    /// Returns the number of complete frames.
    ///
    /// # Errors
    /// Returns an error if the file does not have this format.
    pub fn count(&mut self) -> Result<u64> {
        self.find(usize::MAX)?;
        match &self.incomplete {
            Some(e) if self.starts.is_empty() => Err(e.clone()),
            _ => Ok(self.starts.len() as u64),
        }
    }

    /// Moves to the first line of a frame. A negative number counts from the end.
    ///
    /// # Errors
    /// Returns an error if there is no such frame or a frame before it is malformed.
    pub fn frame(&mut self, number: i64) -> Result<&mut Lines> {
        let index = match usize::try_from(number) {
            Ok(k) => {
                self.find(k.saturating_add(1))?;
                Some(k)
            }
            Err(_) => {
                let n = self.count()? as usize;
                n.checked_sub(number.unsigned_abs() as usize)
            }
        };
        let Some(start) = index.and_then(|k| self.starts.get(k)).copied() else {
            let n = self.starts.len();
            return Err(match self.incomplete.clone() {
                Some(e) => InputError { message: format!("there is no complete frame {number}: {}", e.message), ..e },
                None => self.lines.wrong_file(format!("there is no frame {number}: the file has {n}")),
            });
        };
        self.lines.seek(start)?;
        Ok(&mut self.lines)
    }

    /// Returns warnings about contents that were not read and about the end of the file, if it was reached: an ignored
    /// incomplete frame, or a last line that may be incomplete.
    pub fn warnings(&self) -> Vec<String> {
        let frames = self.starts.len();
        let ignored = self.incomplete.iter().map(|e| InputError {
            message: format!("frame {frames} is incomplete and was ignored: {}", e.message),
            ..e.clone()
        });
        let unended = self.unended.iter().map(|e| InputError {
            message: "the last line has no line break; its last value may be truncated".into(),
            ..e.clone()
        });
        self.lines.warnings().into_iter().chain(ignored.chain(unended).map(|e| e.to_string())).collect()
    }

    /// Moves to the first line of the file.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
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
        l.skip(n, 1, "a frame").map(|()| true)
    }

    #[test]
    fn complete_frames_are_found() {
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
        // truncated anywhere: the complete frames are found
        for cut in 0..text.len() {
            let mut t = of(&text[..cut]);
            // the last line of a frame of one word counts without its line break
            let n = [3, 6, 11].iter().filter(|end| **end <= cut).count() as u64;
            match t.count() {
                Ok(found) => {
                    assert_eq!(found, n, "cut at {cut}");
                    let warned = t.warnings().len();
                    assert_eq!(warned, usize::from(![0, 4, 6].contains(&cut)), "cut at {cut}: {:?}", t.warnings());
                }
                Err(e) => assert!(n == 0 && cut > 0, "cut at {cut}: {e}"),
            }
        }
        // an error in the middle is reported
        let e = of("1\na\nwhat\n1\nb\n").count().expect_err("no number");
        assert_eq!(e.to_string(), format!("{}:3:1: expected a whole number, found `what`", path.display()));
        let e = of("1\na\n2\nb\n").frame(1).map(|_| ()).expect_err("not whole");
        assert!(e.message.starts_with("there is no complete frame 1: the file ends before"), "{e}");
    }
}
