//! Mistakes of a file, each with its line.

use galamost_plugin_api::error::{Error, InputError, Position};
use std::path::Path;

/// A text, where it came from, and what is wrong with it.
pub struct Report<'a> {
    path: &'a Path,
    text: &'a str,
    errors: Vec<InputError>,
    /// Mistakes of the node being read.
    here: usize,
    /// Mistakes that were only counted.
    more: usize,
}

impl<'a> Report<'a> {
    /// Most mistakes of one node that are told: a node may have a million of the same.
    const PER_NODE: usize = 5;
    /// Most mistakes that are told.
    const MOST: usize = 20;

    /// Nothing is wrong yet.
    pub fn new(path: &'a Path, text: &'a str) -> Self {
        Self { path, text, errors: vec![], here: 0, more: 0 }
    }

    /// The text.
    pub fn text(&self) -> &'a str {
        self.text
    }

    /// A piece of the text begins here (in bytes).
    pub fn offset(&self, piece: &str) -> usize {
        (piece.as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize)
    }

    /// Line and column of a byte; lines are counted only when something is wrong.
    pub fn place(&self, offset: usize) -> Position {
        let before = &self.text.as_bytes()[..offset.min(self.text.len())];
        let line = before.iter().filter(|b| **b == b'\n').count() + 1;
        let start = before.iter().rposition(|b| *b == b'\n').map_or(0, |n| n + 1);
        let column = String::from_utf8_lossy(&before[start..]).chars().count() + 1;
        Position { line: line as u32, column: column as u32 }
    }

    /// Another node begins.
    pub fn begin_node(&mut self) {
        self.here = 0;
    }

    /// Notes a mistake at a byte of the text.
    pub fn say(&mut self, offset: usize, message: impl FnOnce() -> String) {
        self.say_at(|_| offset, message);
    }

    /// Notes a mistake at a byte that takes some time to find, so it is looked for only if the mistake will be told.
    pub fn say_at(&mut self, offset: impl FnOnce(&Self) -> usize, message: impl FnOnce() -> String) {
        self.here += 1;
        if self.here > Self::PER_NODE || self.errors.len() >= Self::MOST {
            self.more += 1;
        } else {
            let place = self.place(offset(self));
            self.errors.push(InputError::in_file(self.path, Some(place), message()));
        }
    }

    /// Whether nothing is wrong.
    pub fn is_clean(&self) -> bool {
        self.errors.is_empty()
    }

    /// Everything noted.
    pub fn into_error(mut self) -> Error {
        if self.more > 0 {
            let s = if self.more == 1 { "" } else { "s" };
            self.errors.push(InputError::in_file(self.path, None, format!("and {} more error{s}", self.more)));
        }
        Error::Input(self.errors)
    }
}
