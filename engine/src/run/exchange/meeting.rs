//! Where replicas meet: each comes with its energy, the last one to arrive decides for all.

use super::table::Table;
use crate::checkpoint::exchange::ExchangeState;
use crate::plan::Plan;
use crate::state::RawState;
use galamost_plugin_api::error::{Error, Result};
use galamost_plugin_api::philox::RandomKey;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// The number that distinguishes random numbers of exchanges from those of components.
const COMPONENT: u32 = u32::MAX;

/// What a replica does after the energies are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Move {
    /// It keeps its particles.
    Keep,
    /// It takes those of this replica.
    Take(usize),
    /// It takes those of this replica, computes their energy, and learns then whether it keeps them.
    Try(usize),
}

impl Move {
    /// Returns the other replica.
    pub fn partner(self) -> Option<usize> {
        match self {
            Self::Keep => None,
            Self::Take(other) | Self::Try(other) => Some(other),
        }
    }
}

/// What a replica brings to a meeting.
pub(super) struct Arrival {
    pub stage: usize,
    pub step: u64,
    /// Potential energy.
    pub potential: f64,
    /// A checkpoint is due.
    pub save: bool,
}

/// The replicas of a pipeline that exchange particles.
pub struct Meeting {
    /// kT of each replica, by stage.
    kt: Vec<Vec<f64>>,
    /// Whether replicas r and r + 1 have the same forces, by stage.
    same_forces: Vec<Vec<bool>>,
    key: RandomKey,
    inner: Mutex<Inner>,
    changed: Condvar,
}

struct Inner {
    state: ExchangeState,
    table: Table,
    /// Replicas that have arrived.
    arrived: usize,
    /// Number of completed meetings.
    meetings: u64,
    /// The error of the last meeting.
    outcome: Result<()>,
    /// A replica has left for good.
    left: bool,
    save: bool,
    potentials: Vec<f64>,
    /// Potential energies of the particles that were taken.
    taken: Vec<f64>,
    moves: Vec<Move>,
    /// Whether pair r exchanges, if that is known.
    accepted: Vec<bool>,
    offered: Vec<Option<Arc<RawState>>>,
}

impl std::fmt::Debug for Meeting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} replicas", self.replicas())
    }
}

/// Returns whether two plans have the same forces in a stage.
fn same_forces(a: &Plan, b: &Plan, stage: usize) -> bool {
    let texts = |p: &Plan| -> Vec<String> {
        let own = p.stages[stage].stage.forces.as_ref().unwrap_or(&p.pipeline.forces);
        own.iter().map(|e| e.text.clone()).collect()
    };
    let pairs = |p: &Plan| {
        let n = p.pipeline.neighbors;
        (n.exclude, n.special, n.only)
    };
    texts(a) == texts(b) && pairs(a) == pairs(b)
}

impl Meeting {
    /// Returns the meeting of the replicas with these plans, which passed their check. `resumed` is the state in their checkpoints.
    ///
    /// # Errors
    /// Returns an error if a checkpoint belongs to another number of replicas.
    pub fn new(plans: &[&Plan], resumed: Option<ExchangeState>) -> Result<Arc<Self>> {
        let n = plans.len();
        let first = plans.first().ok_or_else(|| Error::Run("there are no replicas".into()))?;
        let state = resumed.unwrap_or_else(|| ExchangeState::new(n));
        if !state.fits(n) {
            return Err(Error::Run(format!("the checkpoints belong to another number of replicas than {n}")));
        }
        let stages = 0..first.stages.len();
        let kt = |s: usize| plans.iter().map(|p| p.stages[s].kt().unwrap_or(f64::NAN)).collect();
        let same = |s: usize| plans.windows(2).map(|p| same_forces(p[0], p[1], s)).collect();
        let inner = Inner {
            table: Table::new(first, n),
            state,
            arrived: 0,
            meetings: 0,
            outcome: Ok(()),
            left: false,
            save: false,
            potentials: vec![0.0; n],
            taken: vec![0.0; n],
            moves: vec![Move::Keep; n],
            accepted: vec![false; n],
            offered: vec![None; n],
        };
        Ok(Arc::new(Self {
            kt: stages.clone().map(kt).collect(),
            same_forces: stages.map(same).collect(),
            key: RandomKey::new(first.pipeline.seed, COMPONENT),
            inner: Mutex::new(inner),
            changed: Condvar::new(),
        }))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of replicas.
    pub fn replicas(&self) -> usize {
        self.kt.first().map_or(0, Vec::len)
    }

    /// Returns kT of a replica.
    pub fn kt(&self, stage: usize, replica: usize) -> f64 {
        self.kt[stage][replica]
    }

    /// Returns kT of a replica in the last stage.
    pub(super) fn final_kt(&self, replica: usize) -> f64 {
        self.kt.last().map_or(f64::NAN, |kt| kt[replica])
    }

    /// Returns the step of the last attempt.
    pub(super) fn last_step(&self) -> u64 {
        self.lock().state.step
    }

    /// Returns the state after the last attempt.
    pub fn state(&self) -> ExchangeState {
        self.lock().state.clone()
    }

    /// Returns the state for a checkpoint. The table is on disk then.
    ///
    /// # Errors
    /// Returns an error if the table cannot be written.
    pub(super) fn saved(&self) -> Result<ExchangeState> {
        let mut inner = self.lock();
        if let Some(table) = inner.table.save()? {
            inner.state.table = table;
        }
        Ok(inner.state.clone())
    }

    /// A replica will not come again. Those that wait for it, or come later, end their runs.
    pub(super) fn leave(&self) {
        self.lock().left = true;
        self.changed.notify_all();
    }

    /// Waits until all replicas have called it; the last one calls `last`. Returns `None` if a replica has left.
    fn meet(
        &self,
        bring: impl FnOnce(&mut Inner),
        last: impl FnOnce(&mut Inner) -> Result<()>,
    ) -> Result<Option<MutexGuard<'_, Inner>>> {
        let mut inner = self.lock();
        bring(&mut inner);
        if inner.left {
            return Ok(None);
        }
        inner.arrived += 1;
        if inner.arrived == self.replicas() {
            inner.arrived = 0;
            inner.meetings += 1;
            inner.outcome = last(&mut inner);
            self.changed.notify_all();
        } else {
            let meetings = inner.meetings;
            while inner.meetings == meetings && !inner.left {
                inner = self.changed.wait(inner).unwrap_or_else(PoisonError::into_inner);
            }
            if inner.meetings == meetings {
                return Ok(None);
            }
        }
        inner.outcome.clone().map(|()| Some(inner))
    }

    /// First meeting: energies. Returns what the replica does, and whether all write a checkpoint afterwards; `None` if another
    /// replica has ended its run.
    ///
    /// # Errors
    /// Returns an error if an energy is not a number.
    pub(super) fn begin(&self, replica: usize, arrival: Arrival) -> Result<Option<(Move, bool)>> {
        let Arrival { stage, step, potential, save } = arrival;
        let bring = |inner: &mut Inner| {
            inner.potentials[replica] = potential;
            inner.save |= save;
        };
        let decide = |inner: &mut Inner| {
            inner.moves.fill(Move::Keep);
            if let Some(r) = inner.potentials.iter().position(|u| !u.is_finite()) {
                return Err(Error::Run(format!("the potential energy of replica {r} is {}", inner.potentials[r])));
            }
            for r in inner.state.next_pairs() {
                let [a, b] = if self.same_forces[stage][r] {
                    inner.accepted[r] =
                        self.accepts(stage, step, r, &inner.potentials, [r + 1, r].map(|k| inner.potentials[k]));
                    if inner.accepted[r] { [Move::Take(r + 1), Move::Take(r)] } else { [Move::Keep; 2] }
                } else {
                    [Move::Try(r + 1), Move::Try(r)]
                };
                (inner.moves[r], inner.moves[r + 1]) = (a, b);
            }
            Ok(())
        };
        Ok(self.meet(bring, decide)?.map(|inner| (inner.moves[replica], inner.save)))
    }

    /// Second meeting: replicas offer their states. Returns that of the partner.
    ///
    /// # Errors
    /// Returns an error if another replica has failed.
    pub(super) fn swap(&self, replica: usize, own: Option<Arc<RawState>>) -> Result<Option<Arc<RawState>>> {
        let inner = self.meet(|inner| inner.offered[replica] = own, |_| Ok(()))?.ok_or_else(failed)?;
        Ok(inner.moves[replica].partner().and_then(|other| inner.offered[other].clone()))
    }

    /// Third meeting: `taken` is the energy of the particles that the replica took. Returns whether it keeps them.
    ///
    /// # Errors
    /// Returns an error if another replica has failed, or if the table cannot be written.
    pub(super) fn end(&self, replica: usize, stage: usize, step: u64, taken: f64) -> Result<bool> {
        let decide = |inner: &mut Inner| {
            inner.offered.fill(None);
            inner.save = false;
            let pairs: Vec<usize> = inner.state.next_pairs().collect();
            for r in pairs.iter().copied().filter(|r| matches!(inner.moves[*r], Move::Try(_))) {
                let taken = [inner.taken[r], inner.taken[r + 1]];
                inner.accepted[r] = self.accepts(stage, step, r, &inner.potentials, taken);
            }
            inner.state.count(step, pairs.iter().map(|r| inner.accepted[*r]));
            inner.table.append(&inner.state, &inner.potentials)
        };
        let inner = self.meet(|inner| inner.taken[replica] = taken, decide)?.ok_or_else(failed)?;
        let kept = inner.moves[replica].partner().is_some_and(|other| inner.accepted[replica.min(other)]);
        Ok(kept)
    }

    /// Returns whether replicas r and r + 1 exchange their particles: with the probability min(1, exp(−Δ)),
    /// Δ = β_r [U_r(x′) − U_r(x)] + β_r+1 [U_r+1(x) − U_r+1(x′)], where x and x′ are the particles of the two before. `taken` are
    /// U_r(x′) and U_r+1(x).
    fn accepts(&self, stage: usize, step: u64, r: usize, potentials: &[f64], taken: [f64; 2]) -> bool {
        let change = |k: usize| {
            let taken = if taken[k].is_finite() { taken[k] } else { f64::INFINITY };
            (taken - potentials[r + k]) / self.kt(stage, r + k)
        };
        let delta = change(0) + change(1);
        let words = self.key.single(step, r as u32, 0);
        // the centers of 2⁵² equal intervals of (0, 1)
        let number = (u64::from(words[0] >> 6) << 26 | u64::from(words[1] >> 6)) as f64 + 0.5;
        number / (1u64 << 52) as f64 <= (-delta).exp()
    }
}

fn failed() -> Error {
    Error::Run("another replica has failed during an exchange".into())
}
