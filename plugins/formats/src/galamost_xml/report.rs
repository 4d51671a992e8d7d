//! Collects the errors of a file, with their lines.

use galamost_plugin_api::error::{Error, InputError, Position};
use std::path::Path;

/// A text, its path, and its errors.
pub struct Report<'a> {
    path: &'a Path,
    text: &'a str,
    errors: Vec<InputError>,
    /// Number of errors in the current node.
    here: usize,
    /// Number of errors that were only counted.
    more: usize,
}

impl<'a> Report<'a> {
    /// Maximum number of reported errors per node: a node may have a million similar ones.
    const PER_NODE: usize = 5;
    /// Maximum number of reported errors.
    const MAX_ERRORS: usize = 20;

    /// Creates a report without errors.
    pub fn new(path: &'a Path, text: &'a str) -> Self {
        Self { path, text, errors: vec![], here: 0, more: 0 }
    }

    /// Returns the text.
    pub fn text(&self) -> &'a str {
        self.text
    }

    /// Returns the byte offset of a piece of the text.
    pub fn offset(&self, piece: &str) -> usize {
        (piece.as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize)
    }

    /// Returns line and column of a byte offset. Lines are only counted for errors.
    pub fn place(&self, offset: usize) -> Position {
        let before = &self.text.as_bytes()[..offset.min(self.text.len())];
        let line = before.iter().filter(|b| **b == b'\n').count() + 1;
        let start = before.iter().rposition(|b| *b == b'\n').map_or(0, |n| n + 1);
        let column = String::from_utf8_lossy(&before[start..]).chars().count() + 1;
        Position { line: line as u32, column: column as u32 }
    }

    /// Starts a new node.
    pub fn begin_node(&mut self) {
        self.here = 0;
    }

    /// Records an error at a byte offset.
    pub fn say(&mut self, offset: usize, message: impl FnOnce() -> String) {
        self.say_at(|_| offset, message);
    }

    /// Records an error whose byte offset is expensive to find; `offset` is only called if the error is reported.
    pub fn say_at(&mut self, offset: impl FnOnce(&Self) -> usize, message: impl FnOnce() -> String) {
        self.here += 1;
        if self.here > Self::PER_NODE || self.errors.len() >= Self::MAX_ERRORS {
            self.more += 1;
        } else {
            let place = self.place(offset(self));
            self.errors.push(InputError::in_file(self.path, Some(place), message()));
        }
    }

    /// Returns whether there are no errors.
    pub fn is_clean(&self) -> bool {
        self.errors.is_empty()
    }

    /// Returns all recorded errors.
    pub fn into_error(mut self) -> Error {
        if self.more > 0 {
            let s = if self.more == 1 { "" } else { "s" };
            self.errors.push(InputError::in_file(self.path, None, format!("and {} more error{s}", self.more)));
        }
        Error::Input(self.errors)
    }
}
