//! Meetings of the threads that drive the ranks of a run.

use galamost_plugin_api::error::{Error, Result};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

#[derive(Default)]
struct State {
    /// What the ranks of the present meeting have brought.
    brought: Vec<Option<u64>>,
    /// The values of the last meeting.
    last: Vec<u64>,
    /// Meetings so far.
    held: u64,
    /// A rank has ended with an error.
    failed: bool,
}

/// A place where all threads meet and exchange a number.
pub struct Meeting {
    state: Mutex<State>,
    changed: Condvar,
}

impl Meeting {
    /// Creates the place for this many threads.
    pub fn new(ranks: usize) -> Self {
        let state = State { brought: vec![None; ranks], ..State::default() };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for all ranks and returns the number of each.
    ///
    /// # Errors
    /// Returns an error if a rank has failed.
    pub fn exchange(&self, rank: usize, number: u64) -> Result<Vec<u64>> {
        let mut state = self.lock();
        state.brought[rank] = Some(number);
        let meeting = state.held;
        if state.brought.iter().all(Option::is_some) {
            state.last = state.brought.iter_mut().filter_map(Option::take).collect();
            state.held += 1;
            self.changed.notify_all();
        }
        while state.held == meeting && !state.failed {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        // the next meeting ends only when this rank has come to it, so the numbers are still those of this one
        if state.held == meeting { Err(failed()) } else { Ok(state.last.clone()) }
    }

    /// Ends all meetings with an error: a rank does not come any more.
    pub fn fail(&self) {
        self.lock().failed = true;
        self.changed.notify_all();
    }
}

/// Returns the error of a rank that ends because of another one. It is not shown beside that one's error.
pub fn failed() -> Error {
    Error::Run("another GPU of this run has failed".into())
}

/// Returns whether this is the error that [`failed`] returns.
pub fn is_failed(e: &Error) -> bool {
    matches!(e, Error::Run(text) if *text == "another GPU of this run has failed")
}
