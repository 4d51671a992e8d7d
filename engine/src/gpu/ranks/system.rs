//! The backend of a run on several GPUs: a system and a thread for each rank.

use super::barrier::HostBarrier;
use super::{Place, part_unit, ranges, shared};
use crate::backend::balance::{Balance, equal_parts};
use crate::backend::{Backend, ListReport, SystemSums, Update, call_updater, fault_error};
use crate::device::Device;
use crate::gpu::GpuSystem;
use crate::plan::{Plan, StagePlan, initial};
use crate::plugins::Component;
use crate::plugins::host::HostServices;
use crate::processes::is_failed;
use crate::profile::Timing;
use crate::state::topology::Topology;
use crate::state::{Facts, RawState};
use galamost_plugin_api::abi::WireHost;
use galamost_plugin_api::error::{Error, Result};
use galamost_plugin_api::views::{Globals, LinkView, ListView, StateView, Wanted};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;
use tracing::{info, warn};

/// A device, and its services that components use already.
type Part = (Arc<dyn Device>, Option<HostServices>);

/// Returns a system for each rank, with this state. `distributed`: whether arrays were distributed until now.
fn open_ranks(
    plan: &Plan,
    (facts, raw): (&Facts, &RawState),
    parts: Vec<Part>,
    begins: &[usize],
    distributed: Option<bool>,
) -> Result<(Vec<GpuSystem>, Arc<HostBarrier>)> {
    let barrier = Arc::new(HostBarrier::new(parts.len()));
    let ranks = in_threads(&barrier, parts.into_iter().enumerate(), |(number, (device, host))| {
        let place = Place { ranges: ranges(begins, number), distributed, barrier: barrier.clone(), messages: None };
        GpuSystem::of_rank(plan, facts.clone(), raw, device, Some(place), host)
    })?;
    Ok((ranks, barrier))
}

/// A run on several GPUs.
pub struct RankedSystem {
    /// By number; the first one has all arrays complete if `complete` is set.
    ranks: Vec<GpuSystem>,
    barrier: Arc<HostBarrier>,
    /// The arrays of the first rank have the present values of all particles.
    complete: bool,
    /// Where the particles of each rank begin, and their number.
    begins: Vec<usize>,
    balance: Balance,
    /// Seconds that each rank had waited for the others until they were divided last.
    waited: Vec<f64>,
}

/// Lets the other ranks end if this one ends early, by an error or a panic.
struct FailUnlessDone<'a>(&'a HostBarrier, bool);

impl Drop for FailUnlessDone<'_> {
    fn drop(&mut self) {
        if !self.1 {
            self.0.fail();
        }
    }
}

/// Runs a function for each item, each in a separate thread, and returns the results in order. The error is that of the rank
/// that failed first, not of those that ended because of it.
fn in_threads<I: Send, T: Send>(
    barrier: &HostBarrier,
    items: impl Iterator<Item = I>,
    f: impl Fn(I) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let results: Vec<Result<T>> = std::thread::scope(|scope| {
        let start = |item: I| {
            let f = &f;
            scope.spawn(move || {
                let mut guard = FailUnlessDone(barrier, false);
                let result = f(item);
                guard.1 = result.is_ok();
                result
            })
        };
        let threads: Vec<_> = items.map(start).collect();
        let panicked = |_| Err(Error::Run("the thread of a GPU has panicked".into()));
        threads.into_iter().map(|t| t.join().unwrap_or_else(panicked)).collect()
    });
    let mut values = vec![];
    let mut errors = vec![];
    for result in results {
        match result {
            Ok(value) => values.push(value),
            Err(e) => errors.push(e),
        }
    }
    let cause = errors.iter().position(|e| !is_failed(e)).unwrap_or(0);
    if errors.is_empty() { Ok(values) } else { Err(errors.swap_remove(cause)) }
}

impl RankedSystem {
    /// Returns a system with the initial state of a plan, on these devices.
    ///
    /// # Errors
    /// Returns the driver's error, or an error if there are too few particles.
    pub fn new(plan: &Plan, devices: Vec<Arc<dyn Device>>) -> Result<Self> {
        let start = Instant::now();
        let (facts, raw) = initial(plan)?;
        let begins = equal_parts(facts.n, devices.len(), part_unit(facts.n, devices.len()));
        let parts = devices.into_iter().map(|device| (device, None)).collect();
        let (ranks, barrier) = open_ranks(plan, (&facts, &raw), parts, &begins, None)?;
        if let Some(alone) = shared::alone(plan) {
            info!(
                "{alone}: computed by the first GPU for all particles, with all forces that launch kernels themselves"
            );
        }
        Ok(Self {
            waited: vec![0.0; ranks.len()],
            ranks,
            barrier,
            complete: true,
            begins,
            balance: Balance::new(start.elapsed()),
        })
    }

    /// Returns the seconds that each rank has waited for the others since the particles were divided.
    fn waited(&self) -> Result<Vec<f64>> {
        self.ranks.iter().filter_map(|s| s.rank.as_ref()).map(|rank| rank.waited()).collect()
    }

    /// Continues with the particles of each rank beginning there, in the same state. Returns false if that fails and the ranks continue as before.
    fn divide(&mut self, plan: &Plan, stage: &StagePlan, begins: Vec<usize>) -> Result<bool> {
        let (raw, facts) = (self.export()?, self.facts().clone());
        let distributed = self.ranks[0].rank.as_ref().map(|rank| rank.distributes());
        for rank in &self.ranks {
            rank.device.synchronize()?;
        }
        let mut open = |begins: &[usize]| {
            let release = |s: &mut GpuSystem| Ok((s.device.clone(), Some(s.release()?)));
            let parts = self.ranks.iter_mut().map(release).collect::<Result<_>>()?;
            open_ranks(plan, (&facts, &raw), parts, begins, distributed)
        };
        let divided = open(&begins);
        let done = divided.is_ok();
        (self.ranks, self.barrier) = match divided {
            Ok(systems) => {
                self.begins = begins;
                systems
            }
            Err(e) => {
                warn!("step {}: the particles are not divided again: {e}", raw.step);
                self.balance.stop();
                open(&self.begins)?
            }
        };
        self.begin_stage(stage, true).map(|()| done)
    }

    /// Calls a function for each rank, each in a separate thread.
    fn each<T: Send>(&mut self, f: impl Fn(&mut GpuSystem) -> Result<T> + Sync) -> Result<Vec<T>> {
        if std::mem::take(&mut self.complete) {
            // kernels of analyzers may still read the particles of other ranks, which these would move
            self.first().device.synchronize()?;
        }
        in_threads(&self.barrier, self.ranks.iter_mut(), f)
    }

    fn first(&mut self) -> &mut GpuSystem {
        &mut self.ranks[0]
    }

    /// Completes the arrays of the first rank; the others wait for their next call meanwhile.
    fn complete(&mut self) -> Result<()> {
        if !self.complete {
            for rank in &self.ranks {
                rank.device.synchronize()?;
            }
            let first = self.first();
            if let Some(rank) = &first.rank {
                rank.pull_all()?;
                first.rebuild.complete_index(&first.view(), &first.links.to_index())?;
            }
            first.device.synchronize()?;
            self.complete = true;
        }
        Ok(())
    }
}

impl Drop for RankedSystem {
    fn drop(&mut self) {
        // others may still read what a rank frees
        for rank in &self.ranks {
            let _ = rank.device.synchronize();
        }
    }
}

impl Backend for RankedSystem {
    fn begin_stage(&mut self, stage: &StagePlan, forces_are_valid: bool) -> Result<()> {
        self.each(|s| s.begin_stage(stage, forces_are_valid)).map(drop)
    }

    fn start(&mut self, component: &Component) -> Result<()> {
        let shares_forces = self.ranks[0].rank.as_ref().is_some_and(|r| r.shares_forces);
        if !component.is_shared(shares_forces) {
            return component.start(self.host());
        }
        component.create_for_ranks(self.ranks.len())?;
        let start = |(k, s): (usize, &mut GpuSystem)| component.on_rank(k)?.start(s.host());
        in_threads(&self.barrier, self.ranks.iter_mut().enumerate(), start).map(drop)
    }

    fn evaluate(&mut self) -> Result<()> {
        self.each(GpuSystem::evaluate).map(drop)
    }

    fn step(&self) -> u64 {
        self.ranks[0].step()
    }

    fn advance(&mut self, steps: u64, wanted: Wanted, stop: &AtomicBool) -> Result<u64> {
        let start = Instant::now();
        self.each(|s| s.advance(steps, wanted, stop))?;
        self.balance.advanced(steps, start.elapsed());
        Ok(steps)
    }

    fn balance(&mut self, plan: &Plan, stage: &StagePlan, left: u64) -> Result<()> {
        if !self.balance.is_due() {
            return Ok(());
        }
        let waited = self.waited()?;
        let unit = part_unit(self.facts().n, self.ranks.len());
        let found = self.balance.divide(waited.clone(), &self.begins, unit, left);
        let Some((begins, imbalance)) = found else { return Ok(()) };
        let start = Instant::now();
        if !self.divide(plan, stage, begins)? {
            return Ok(());
        }
        self.waited.iter_mut().zip(waited).for_each(|(total, w)| *total += w);
        self.balance.begins_again(self.step(), &self.begins, imbalance, start.elapsed());
        Ok(())
    }

    fn sums(&mut self) -> Result<SystemSums> {
        self.complete()?;
        self.first().sums()
    }

    fn read(&mut self, section: &str) -> Result<Vec<u8>> {
        self.complete()?;
        self.first().read(section)
    }

    fn facts(&self) -> &Facts {
        self.ranks[0].facts()
    }

    fn topology(&self) -> &Topology {
        self.ranks[0].topology()
    }

    fn update(&mut self, updater: &Arc<Component>, wanted: Wanted) -> Result<()> {
        if updater.needs.shared {
            return self.each(|s| s.update_own(updater, wanted)).map(drop);
        }
        self.complete()?;
        let first = self.first();
        let Some(update) = call_updater(first, updater, false)? else { return Ok(()) };
        first.sync_globals()?;
        if first.globals.is_halted() {
            let f = first.globals.fault.get();
            let component = (f.component == updater.id).then_some(&**updater);
            return Err(fault_error(first.globals.step, f, component));
        }
        first.device.synchronize()?;
        let globals = first.globals.clone();
        let Update { edits, changed, sim_box } = update;
        self.each(|s| {
            s.globals = globals.clone();
            s.upload_globals()?;
            let rank = s.rank.clone().ok_or_else(|| Error::Run("not a rank".into()))?;
            rank.pull_from_first()?;
            s.device.synchronize()?;
            // the first rank must not change anything that others still read
            rank.any(false)?;
            s.apply_update(updater, Update { edits: edits.clone(), changed, sim_box }, wanted)
        })
        .map(drop)
    }

    fn export(&mut self) -> Result<RawState> {
        self.complete()?;
        self.first().export()
    }

    fn import(&mut self, state: &RawState) -> Result<()> {
        self.each(|s| s.import(state)).map(drop)
    }

    fn globals(&self) -> Globals {
        self.ranks[0].globals()
    }

    fn box_length(&self) -> [f64; 3] {
        self.ranks[0].box_length()
    }

    fn views(&mut self) -> Result<(StateView, ListView, LinkView)> {
        self.complete()?;
        self.first().views()
    }

    fn end_views(&mut self) {
        self.first().end_views();
    }

    fn host(&self) -> &WireHost {
        self.ranks[0].host()
    }

    fn list_report(&mut self) -> Result<ListReport> {
        let reports = self.ranks.iter_mut().map(Backend::list_report).collect::<Result<Vec<_>>>()?;
        for (rank, (before, waited)) in self.waited.iter().zip(self.waited()?).enumerate() {
            info!("GPU {rank} of this run has waited {:.3} s for the others", before + waited);
        }
        let mean = reports.iter().map(|r| r.mean).sum::<f64>() / reports.len() as f64;
        let longest = reports.iter().map(|r| r.longest).max().unwrap_or(0);
        Ok(ListReport { mean, longest, ..reports[0] })
    }

    fn device(&self) -> Option<Arc<dyn Device>> {
        self.ranks[0].device()
    }

    fn memory(&self) -> u64 {
        self.ranks.iter().map(Backend::memory).sum()
    }

    fn begin_profile(&mut self) {
        self.ranks.iter_mut().for_each(Backend::begin_profile);
    }

    fn end_profile(&mut self) -> Result<Vec<Timing>> {
        let mut timings = self.ranks.iter_mut().map(Backend::end_profile).collect::<Result<Vec<_>>>()?;
        Ok(timings.swap_remove(0))
    }
}
