//! What the generators of formats with several frames share.

use galamost_plugin_api::prelude::*;
use galamost_text::{Lines, Trajectory};
use std::path::Path;

/// A text file with frames and the data `H` that apply to all of them, opened on first use.
#[derive(Debug)]
pub struct TextFrames<H>(Option<(Trajectory, H)>);

impl<H> Default for TextFrames<H> {
    fn default() -> Self {
        Self(None)
    }
}

impl<H> TextFrames<H> {
    /// Returns the open file. `skip` skips a frame; `head` reads the data that apply to all frames.
    ///
    /// # Errors
    /// Returns an error if the file cannot be opened or read.
    pub fn open(
        &mut self,
        path: &Path,
        skip: fn(&mut Lines) -> galamost_text::Result<bool>,
        head: impl FnOnce(&mut Trajectory) -> galamost_text::Result<H>,
    ) -> Result<&mut (Trajectory, H)> {
        if self.0.is_none() {
            let mut trajectory = Trajectory::open(path, skip)?;
            let head = head(&mut trajectory)?;
            self.0 = Some((trajectory, head));
        }
        self.0.as_mut().ok_or_else(|| Error::Run("the file is not open".into()))
    }

    /// Returns the warnings of [`Trajectory::warnings`].
    pub fn warnings(&self) -> Vec<String> {
        self.0.as_ref().map(|(t, _)| t.warnings()).unwrap_or_default()
    }
}

/// Implements `Generator` for a type with the field `frame` and the methods `state` (reads a frame), `count` and `notices`
/// (warnings about the file).
macro_rules! frame_generator {
    ($name:ty) => {
        impl Generator for $name {
            const TRICLINIC: bool = true;

            fn generate(&mut self, context: &GeneratorContext, snapshot: &mut Snapshot) -> Result<()> {
                self.state(context, self.frame, snapshot)
            }
            fn frames(&mut self, context: &GeneratorContext) -> Result<Option<u64>> {
                self.count(context).map(Some)
            }
            fn frame(&mut self, context: &GeneratorContext, number: u64, snapshot: &mut Snapshot) -> Result<()> {
                self.state(context, number as i64, snapshot)
            }
            fn warnings(&self) -> Vec<String> {
                self.notices()
            }
        }
    };
}
pub(crate) use frame_generator;
