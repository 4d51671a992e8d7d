//! A barrier of the ranks of a run on their hosts, at which they exchange bytes.

use crate::processes::failed;
use galamost_plugin_api::error::Result;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// A barrier.
pub trait Barrier: Send + Sync {
    /// Waits for all ranks and returns the bytes of each.
    ///
    /// # Errors
    /// Returns an error if a rank has failed.
    fn gather(&self, rank: usize, own: &[u8]) -> Result<Vec<Vec<u8>>>;

    /// Waits for all ranks and returns the number of each.
    ///
    /// # Errors
    /// Returns an error if a rank has failed.
    fn exchange(&self, rank: usize, number: u64) -> Result<Vec<u64>>;
}

#[derive(Default)]
struct State {
    /// The bytes of the ranks that have arrived.
    arrived: Vec<Option<Vec<u8>>>,
    /// The bytes of the last epoch.
    last: Vec<Vec<u8>>,
    /// Completed epochs.
    completed: u64,
    /// A rank has ended with an error.
    failed: bool,
}

/// The barrier of threads of this process.
pub struct HostBarrier {
    state: Mutex<State>,
    changed: Condvar,
}

impl HostBarrier {
    /// Creates a barrier for this many threads.
    pub fn new(ranks: usize) -> Self {
        let state = State { arrived: vec![None; ranks], ..State::default() };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes all present and later calls of [`Barrier::exchange`] fail: a rank has ended.
    pub fn fail(&self) {
        self.lock().failed = true;
        self.changed.notify_all();
    }
}

impl Barrier for HostBarrier {
    fn gather(&self, rank: usize, own: &[u8]) -> Result<Vec<Vec<u8>>> {
        let mut state = self.lock();
        state.arrived[rank] = Some(own.to_vec());
        let epoch = state.completed;
        if state.arrived.iter().all(Option::is_some) {
            state.last = state.arrived.iter_mut().filter_map(Option::take).collect();
            state.completed += 1;
            self.changed.notify_all();
        }
        while state.completed == epoch && !state.failed {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        // the next epoch ends only when this rank has arrived, so the bytes are still those of this one
        if state.completed == epoch { Err(failed()) } else { Ok(state.last.clone()) }
    }

    fn exchange(&self, rank: usize, number: u64) -> Result<Vec<u64>> {
        let all = self.gather(rank, &number.to_ne_bytes())?;
        Ok(all.iter().map(|b| b.as_slice().try_into().map_or(0, u64::from_ne_bytes)).collect())
    }
}
