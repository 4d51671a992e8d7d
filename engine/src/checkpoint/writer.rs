//! Checkpoints are hashed and written beside the run, which waits only while the state is copied.

use super::{Image, files};
use galamost_plugin_api::error::{Error, Result};
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tracing::info;

/// Writes checkpoints, one at a time.
pub struct Writer {
    path: PathBuf,
    keep: u64,
    under_way: Option<JoinHandle<std::io::Result<Duration>>>,
    /// The longest time that one took.
    slowest: Option<Duration>,
}

impl Writer {
    /// For checkpoints of this name, of which so many are kept.
    pub fn new(path: PathBuf, keep: u64) -> Self {
        Self { path, keep, under_way: None, slowest: None }
    }

    /// The name of the newest.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The longest time that writing one took, if one was written.
    pub fn slowest(&self) -> Option<Duration> {
        self.slowest
    }

    /// Begins to write; waits for the one before if that is still under way.
    ///
    /// # Errors
    /// The one before could not be written.
    pub fn begin(&mut self, image: Image) -> Result<()> {
        self.end()?;
        let (path, keep) = (self.path.clone(), self.keep);
        let write = move || {
            let begun = Instant::now();
            files::write(&path, &image, keep)?;
            let (took, megabytes) = (begun.elapsed(), image.len() as f64 / 1e6);
            info!(
                "checkpoint of step {} written to {} ({megabytes:.1} MB in {:.2} s)",
                image.step,
                path.display(),
                took.as_secs_f64()
            );
            Ok(took)
        };
        let spawned = std::thread::Builder::new().name("checkpoint".into()).spawn(write);
        self.under_way = Some(spawned.map_err(|e| Error::io(&self.path, e))?);
        Ok(())
    }

    /// Waits for what is under way, and returns how long the slowest one took.
    ///
    /// # Errors
    /// It could not be written.
    pub fn end(&mut self) -> Result<Option<Duration>> {
        let Some(thread) = self.under_way.take() else { return Ok(self.slowest) };
        let took = thread.join().unwrap_or_else(|_| Err(std::io::Error::other("the thread that writes it panicked")));
        let took = took.map_err(|e| Error::io(&self.path, format!("the checkpoint cannot be written: {e}")))?;
        self.slowest = self.slowest.max(Some(took));
        Ok(self.slowest)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let _ = self.end();
    }
}
