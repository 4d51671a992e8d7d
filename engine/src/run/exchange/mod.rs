//! Replica exchange: at regular steps, neighboring replicas exchange their particles with the Metropolis probability.
//!
//! Every replica runs in its own thread. At a step with attempts they meet three times ([`Meeting`]): with their energies, with
//! their states, and with the energies of the particles that they took. The replicas that exchange particles restore each other's
//! state as a resumed run restores that of its checkpoint, and compute the forces.

mod meeting;
mod report;
mod table;

pub use meeting::Meeting;
pub use report::log_exchange;

use super::execute::Run;
use crate::backend::{SystemSums, with_particles_of};
use crate::checkpoint::exchange::ExchangeState;
use crate::plan::StagePlan;
use galamost_plugin_api::error::{Error, Result};
use meeting::{Arrival, Move};
use report::of_replica;
use std::sync::Arc;
use tracing::info;

/// The part of one replica in the exchange. Dropping it ends the exchange for all.
#[derive(Debug)]
pub struct ExchangeSeat {
    meeting: Arc<Meeting>,
    replica: usize,
}

impl ExchangeSeat {
    /// Returns the seat of a replica.
    pub fn new(meeting: Arc<Meeting>, replica: usize) -> Self {
        Self { meeting, replica }
    }
}

impl Drop for ExchangeSeat {
    fn drop(&mut self) {
        self.meeting.leave();
    }
}

fn potential(sums: &SystemSums) -> f64 {
    sums.components.iter().map(|c| c.energy).sum()
}

impl Run<'_> {
    /// Returns the number of steps between attempts; `None` if the run is no replica that exchanges particles.
    fn exchange_period(&self) -> Option<u64> {
        let settings = self.plan.pipeline.exchange.as_ref();
        settings.filter(|_| self.options.exchange.is_some()).map(|e| e.every)
    }

    /// Returns whether replicas attempt to exchange particles at a step.
    pub(super) fn exchanges_at(&self, step: u64) -> bool {
        step > self.plan.snapshot.step && self.exchange_period().is_some_and(|every| step.is_multiple_of(every))
    }

    /// Returns the next step with attempts.
    pub(super) fn next_exchange(&self, step: u64) -> Option<u64> {
        self.exchange_period().map(|every| (step / every + 1) * every)
    }

    /// Returns whether replicas attempt to exchange particles at this step and have not done so.
    pub(super) fn exchange_is_due(&self, step: u64) -> bool {
        let seat = self.options.exchange.as_ref();
        self.exchanges_at(step) && seat.is_some_and(|s| s.meeting.last_step() != step)
    }

    /// Returns the state of the exchange for a checkpoint.
    ///
    /// # Errors
    /// Returns an error if the table cannot be written.
    pub(super) fn saved_exchange(&self) -> Result<Option<ExchangeState>> {
        self.options.exchange.as_ref().map(|s| s.meeting.saved()).transpose()
    }

    /// Returns the entry of the record.
    pub(super) fn exchange_record(&self) -> Option<serde_json::Value> {
        self.options.exchange.as_ref().map(|s| of_replica(&s.meeting.state(), s.replica))
    }

    /// Attempts to exchange particles, and writes a checkpoint if one of any replica is due: checkpoints of the same attempt
    /// resume together. Returns false if another replica has ended its run.
    ///
    /// # Errors
    /// Returns an error of a component, of the device, or of another replica.
    pub(super) fn exchange(&mut self, stage: &StagePlan) -> Result<bool> {
        let Some(seat) = self.options.exchange.clone() else { return Ok(true) };
        let ExchangeSeat { meeting, replica } = &*seat;
        let (step, replica) = (self.backend.step(), *replica);
        let sums = match &self.sums {
            Some(sums) => sums.clone(),
            None => self.backend.sums()?,
        };
        // all replicas have complete checkpoints of an earlier attempt before one of them writes the next
        self.writer.end()?;
        let arrival =
            Arrival { stage: stage.number, step, potential: potential(&sums), save: self.checkpoint_is_due(step) };
        let device = self.backend.device();
        let await_this = |awaited| device.iter().for_each(|d| d.set_awaited(awaited));
        await_this(false);
        let begun = meeting.begin(replica, arrival);
        await_this(true);
        let Some((what, save)) = begun? else {
            info!("step {step}: another replica has ended its run, so this one ends, too");
            return Ok(false);
        };
        self.mid_step = true;
        self.take_particles(stage, meeting, replica, what, sums)?;
        self.mid_step = false;
        if save {
            self.checkpoint()?;
        }
        Ok(true)
    }

    /// Takes the particles of another replica, and gives them back if the attempt is rejected. `sums` are those before.
    fn take_particles(
        &mut self,
        stage: &StagePlan,
        meeting: &Meeting,
        replica: usize,
        what: Move,
        sums: SystemSums,
    ) -> Result<()> {
        let step = self.backend.step();
        let own = what.partner().map(|_| self.backend.export().map(Arc::new)).transpose()?;
        let other = meeting.swap(replica, own.clone())?;
        let (Some(own), Some(other), Some(partner)) = (own, other, what.partner()) else {
            return meeting.end(replica, stage.number, step, 0.0).map(drop);
        };
        let kt = |r| meeting.kt(stage.number, r);
        let factor = (kt(replica) / kt(partner)).sqrt();
        let taken = with_particles_of(&own, &other, self.backend.facts(), factor)?;
        self.backend.import(&taken)?;
        let energy = match self.backend.evaluate().and_then(|()| self.backend.sums()) {
            Ok(sums) => Some(potential(&sums)),
            // these forces do not allow these positions
            Err(Error::Unstable { .. }) if matches!(what, Move::Try(_)) => None,
            Err(e) => return Err(e),
        };
        if meeting.end(replica, stage.number, step, energy.unwrap_or(f64::INFINITY))? {
            (self.sums, self.sums_are_valid) = (None, true);
            return Ok(());
        }
        self.backend.import(&own)?;
        if energy.is_none() {
            self.backend.begin_stage(stage, true)?;
        }
        self.sums = Some(sums);
        Ok(())
    }
}
