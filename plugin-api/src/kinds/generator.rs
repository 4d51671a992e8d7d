//! Generators create or read the initial state.

use crate::chunks::{CHUNK, in_chunks};
use crate::error::{Error, Result};
use crate::snapshot::Snapshot;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// The context of a generator.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct GeneratorContext {
    /// The run's seed.
    pub seed: u64,
    /// Number of the generator in the pipeline.
    pub component: u32,
    /// Directory that relative paths start from.
    pub directory: String,
    /// Number of threads that the generator may use; 0 counts as 1.
    pub threads: usize,
}

impl GeneratorContext {
    /// Resolves a path of the pipeline relative to its directory.
    pub fn path(&self, path: &str) -> std::path::PathBuf {
        std::path::Path::new(&self.directory).join(path)
    }

    /// Calls a function for ranges of indices below `n`, on the threads of the run, and returns the results in order; see [`in_chunks`].
    pub fn in_chunks<T: Send>(&self, n: usize, f: impl Fn(Range<usize>) -> T + Sync) -> Vec<T> {
        in_chunks(n, self.threads, f)
    }

    /// Changes each value by `change(index, value)`, on the threads of the run. What it does must not depend on the order.
    pub fn for_each<T: Send>(&self, values: &mut [T], change: impl Fn(usize, &mut T) + Sync) {
        let length = values.len().div_ceil(self.threads.max(1)).max(CHUNK);
        let change = &change;
        std::thread::scope(|scope| {
            let mut chunks = values.chunks_mut(length).enumerate();
            let first = chunks.next();
            let work = move |(chunk, values): (usize, &mut [T])| {
                values.iter_mut().enumerate().for_each(|(k, value)| change(chunk * length + k, value));
            };
            for chunk in chunks {
                scope.spawn(move || work(chunk));
            }
            first.into_iter().for_each(work);
        });
    }
}

/// Creates, reads or changes the initial state. Fields of the struct are its parameters (`#[derive(Params)]`).
pub trait Generator: Send + Sized + 'static {
    /// Whether the generator accepts a snapshot with a triclinic box; see [`Snapshot::tilt`]. It may create one in any case.
    const TRICLINIC: bool = false;

    /// Changes the snapshot. It is empty for the first generator of the list.
    ///
    /// # Errors
    /// Returns all mistakes in the input, each with its position.
    fn generate(&mut self, context: &GeneratorContext, snapshot: &mut Snapshot) -> Result<()>;
    /// Returns the number of complete frames in the file; `None` if the generator does not read trajectories.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    fn frames(&mut self, _context: &GeneratorContext) -> Result<Option<u64>> {
        Ok(None)
    }
    /// Reads the frame with this number, starting from 0, regardless of the parameters. Frames are requested in
    /// sequence, so a generator may cache their positions in the file.
    ///
    /// # Errors
    /// As [`Self::generate`].
    fn frame(&mut self, _context: &GeneratorContext, _number: u64, _snapshot: &mut Snapshot) -> Result<()> {
        Err(Error::Run("this generator has no frames".into()))
    }
    /// Returns warnings about what was read so far, for the log: an incomplete last frame, a header that does not fit.
    fn warnings(&self) -> Vec<String> {
        vec![]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_change_each_value_once() {
        for (threads, n) in [(0, 0), (1, 5), (3, 2 * CHUNK + 1), (64, 3 * CHUNK)] {
            let mut values: Vec<usize> = (0..n).collect();
            GeneratorContext { threads, ..Default::default() }.for_each(&mut values, |k, v| *v += 3 * k + 1);
            assert!(values.iter().enumerate().all(|(k, v)| *v == 4 * k + 1), "{threads} threads, {n} values");
        }
    }
}
