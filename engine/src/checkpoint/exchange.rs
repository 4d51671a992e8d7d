//! Replica exchange in checkpoints: which walker is where, and what has been counted so far.
//!
//! The particles that began in replica w are walker w. They move from replica to replica; parameters, random numbers, thermostats
//! and files stay with the replica. All replicas save the same [`ExchangeState`] after the same attempt.

use super::Checkpoint;
use crate::diagnostic::Diagnostic;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::PathBuf;
use tracing::warn;

/// Attempts of a pair of neighboring replicas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempts {
    /// Their number.
    pub made: u64,
    /// Those that were accepted.
    pub accepted: u64,
}

impl Attempts {
    /// Returns the acceptance ratio; `None` without attempts.
    pub fn ratio(self) -> Option<f64> {
        (self.made > 0).then(|| self.accepted as f64 / self.made as f64)
    }
}

/// The end of the row of replicas that a walker visited last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum LastEnd {
    /// None yet.
    #[default]
    None,
    /// The first replica.
    First,
    /// The last replica, without the first one before it.
    Last,
    /// The last replica, after the first one: half a round trip.
    LastAfterFirst,
}

impl LastEnd {
    /// Returns the value after a visit of a replica, and whether the visit completes a round trip.
    fn visit(self, replica: usize, replicas: usize) -> (Self, bool) {
        if replica == 0 {
            (Self::First, self == Self::LastAfterFirst)
        } else if replica + 1 < replicas {
            (self, false)
        } else if matches!(self, Self::First | Self::LastAfterFirst) {
            (Self::LastAfterFirst, false)
        } else {
            (Self::Last, false)
        }
    }
}

/// The state of the exchange between replicas.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExchangeState {
    /// Step of the last attempt; 0 before the first.
    pub step: u64,
    /// Number of steps with attempts.
    pub rounds: u64,
    /// The walker in each replica.
    pub walkers: Vec<u32>,
    /// Attempts of replicas r and r + 1.
    pub pairs: Vec<Attempts>,
    /// The end that each walker visited last.
    pub ends: Vec<LastEnd>,
    /// Numbers of rounds after which a replica held a walker that had last visited the first replica, and the last one.
    pub visits: Vec<[u64; 2]>,
    /// Number of round trips of each walker: from the first replica to the last one and back.
    pub round_trips: Vec<u64>,
    /// State of the table.
    pub table: Vec<u8>,
}

impl ExchangeState {
    /// Returns the state at the start of a run.
    pub fn new(replicas: usize) -> Self {
        let mut ends = vec![LastEnd::None; replicas];
        for (r, end) in ends.iter_mut().enumerate() {
            *end = end.visit(r, replicas).0;
        }
        Self {
            walkers: (0..replicas as u32).collect(),
            pairs: vec![Attempts::default(); replicas.saturating_sub(1)],
            ends,
            visits: vec![[0; 2]; replicas],
            round_trips: vec![0; replicas],
            ..Self::default()
        }
    }

    /// Returns the pairs (r, r + 1) of the next attempt: even and odd r in turn. Two replicas attempt every time.
    pub fn next_pairs(&self) -> impl Iterator<Item = usize> + use<> {
        let n = self.walkers.len();
        let first = if n > 2 { (self.rounds % 2) as usize } else { 0 };
        (first..n.saturating_sub(1)).step_by(2)
    }

    /// Counts the attempts at a step; `accepted` has the result of each pair of [`Self::next_pairs`].
    pub fn count(&mut self, step: u64, accepted: impl IntoIterator<Item = bool>) {
        let n = self.walkers.len();
        for (r, accepted) in self.next_pairs().zip(accepted) {
            self.pairs[r].made += 1;
            if accepted {
                self.pairs[r].accepted += 1;
                self.walkers.swap(r, r + 1);
            }
        }
        for (r, walker) in self.walkers.iter().enumerate() {
            let w = *walker as usize;
            let (end, trip) = self.ends[w].visit(r, n);
            self.ends[w] = end;
            self.round_trips[w] += u64::from(trip);
            match end {
                LastEnd::None => {}
                LastEnd::First => self.visits[r][0] += 1,
                LastEnd::Last | LastEnd::LastAfterFirst => self.visits[r][1] += 1,
            }
        }
        (self.step, self.rounds) = (step, self.rounds + 1);
    }

    /// Returns the fraction of walkers in a replica that came from the first replica and not from the last one; `None` before a
    /// walker with an origin has been there.
    pub fn from_first(&self, replica: usize) -> Option<f64> {
        let [first, last] = self.visits[replica];
        (first + last > 0).then(|| first as f64 / (first + last) as f64)
    }

    /// Returns whether the state belongs to this number of replicas.
    pub fn fits(&self, replicas: usize) -> bool {
        let sorted: BTreeSet<u32> = self.walkers.iter().copied().collect();
        let lengths = [self.ends.len(), self.visits.len(), self.round_trips.len(), self.pairs.len() + 1];
        sorted.into_iter().eq(0..replicas as u32) && lengths == [replicas; 4] && self.walkers.len() == replicas
    }
}

/// Returns the checkpoints of each replica from which all can resume together: those after the newest attempt to exchange that
/// every replica has saved. `files` are those of each replica from newest to oldest; damaged ones are skipped. Returns `None` if
/// there is no such attempt.
pub fn common(files: &[Vec<PathBuf>]) -> Option<Vec<Vec<PathBuf>>> {
    let found: Vec<Vec<(u64, &PathBuf)>> = files.iter().map(|files| with_steps(files)).collect();
    let (first, others) = found.split_first()?;
    let has = |list: &[(u64, &PathBuf)], step: u64| list.iter().any(|(s, _)| *s == step);
    let newest = first.iter().map(|(s, _)| *s).filter(|s| others.iter().all(|o| has(o, *s))).max()?;
    let chosen = |list: &Vec<(u64, &PathBuf)>| {
        list.iter().filter(|(s, _)| *s == newest).map(|(_, path)| (*path).clone()).collect()
    };
    Some(found.iter().map(chosen).collect())
}

/// Returns the valid files of a replica, each with the step of its last attempt.
fn with_steps(files: &[PathBuf]) -> Vec<(u64, &PathBuf)> {
    let step = |path: &PathBuf| match Checkpoint::exchange_of(path) {
        Ok(exchange) => Some(exchange.map_or(0, |e| e.step)),
        Err(e) => {
            warn!("{}; using an earlier checkpoint", Diagnostic::new(path, None, e));
            None
        }
    };
    files.iter().filter_map(|path| Some((step(path)?, path))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_alternate_and_walkers_are_followed() {
        let mut s = ExchangeState::new(4);
        assert_eq!(s.next_pairs().collect::<Vec<_>>(), [0, 2]);
        s.count(10, [true, false]);
        assert_eq!(s.walkers, [1, 0, 2, 3]);
        assert_eq!(s.next_pairs().collect::<Vec<_>>(), [1]);
        s.count(20, [true]);
        assert_eq!((&s.walkers[..], s.step, s.rounds), (&[1, 2, 0, 3][..], 20, 2));
        assert_eq!(s.pairs.iter().map(|p| (p.made, p.accepted)).collect::<Vec<_>>(), [(1, 1), (1, 1), (1, 0)]);
        assert!(s.fits(4) && !s.fits(3));
        // two replicas attempt every time
        let two = ExchangeState { rounds: 1, ..ExchangeState::new(2) };
        assert_eq!(two.next_pairs().collect::<Vec<_>>(), [0]);
    }

    /// Walker 0 goes to the last replica and back; walker 2 starts at the last one, so its way to the first is none.
    #[test]
    fn round_trips_begin_at_the_first_replica() {
        let mut s = ExchangeState::new(3);
        s.count(1, [true]);
        s.count(2, [true]);
        assert_eq!(s.walkers, [1, 2, 0]);
        s.count(3, [true]);
        assert_eq!((&s.walkers[..], &s.round_trips[..]), (&[2, 1, 0][..], &[0, 0, 0][..]));
        s.count(4, [true]);
        s.count(5, [true]);
        assert_eq!((&s.walkers[..], &s.round_trips[..]), (&[0, 2, 1][..], &[1, 0, 0][..]));
        assert_eq!(s.from_first(0), Some(1.0));
        assert_eq!(s.from_first(2), Some(0.0));
    }
}
