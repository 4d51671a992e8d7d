//! Writes checkpoints in a thread; the run waits only while the state is copied.

use super::{EncodedCheckpoint, files};
use galamost_plugin_api::error::{Error, Result};
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tracing::info;

/// Writes checkpoints, one at a time.
pub struct Writer {
    path: PathBuf,
    keep: u64,
    thread: Option<JoinHandle<std::io::Result<Duration>>>,
    /// The longest time that writing one took.
    slowest: Option<Duration>,
}

impl Writer {
    /// Returns a writer for checkpoints of this name that keeps the newest `keep`.
    pub fn new(path: PathBuf, keep: u64) -> Self {
        Self { path, keep, thread: None, slowest: None }
    }

    /// Returns the path of the newest checkpoint.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the longest time that writing a checkpoint took, if one was written.
    pub fn slowest(&self) -> Option<Duration> {
        self.slowest
    }

    /// Returns an error if the last checkpoint could not be written; does not wait for one that is being written.
    ///
    /// # Errors
    /// Returns this error.
    pub fn poll(&mut self) -> Result<()> {
        if self.thread.as_ref().is_some_and(JoinHandle::is_finished) { self.end().map(drop) } else { Ok(()) }
    }

    /// Starts writing a checkpoint, after the previous one is complete.
    ///
    /// # Errors
    /// Returns an error if the previous checkpoint could not be written.
    pub fn begin(&mut self, checkpoint: EncodedCheckpoint) -> Result<()> {
        self.end()?;
        let (path, keep) = (self.path.clone(), self.keep);
        let write = move || {
            let begun = Instant::now();
            files::write(&path, &checkpoint, keep)?;
            let facts = serde_json::json!({"step": checkpoint.step, "file": path.to_string_lossy()});
            crate::log::event("checkpoint", facts);
            let (took, megabytes) = (begun.elapsed(), checkpoint.len() as f64 / 1e6);
            info!(
                "checkpoint of step {} written to {} ({megabytes:.1} MB in {:.2} s)",
                checkpoint.step,
                path.display(),
                took.as_secs_f64()
            );
            Ok(took)
        };
        let spawned = std::thread::Builder::new().name("checkpoint".into()).spawn(write);
        self.thread = Some(spawned.map_err(|e| Error::io(&self.path, e))?);
        Ok(())
    }

    /// Waits until writing is complete, and returns the longest time that a checkpoint took.
    ///
    /// # Errors
    /// Returns an error if the checkpoint could not be written.
    pub fn end(&mut self) -> Result<Option<Duration>> {
        let Some(thread) = self.thread.take() else { return Ok(self.slowest) };
        let took = thread.join().unwrap_or_else(|_| Err(std::io::Error::other("the writing thread panicked")));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_known_before_the_next_checkpoint() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut writer = Writer::new(folder.path().join("gone/checkpoint"), 1);
        let checkpoint = EncodedCheckpoint { step: 7, head: vec![], sections: vec![] };
        writer.begin(checkpoint).expect("begun");
        let begun = Instant::now();
        while writer.poll().is_ok() {
            assert!(begun.elapsed() < Duration::from_secs(60), "no error");
            std::thread::yield_now();
        }
        // it is reported once
        assert!(writer.poll().is_ok() && writer.end().is_ok());
    }
}
