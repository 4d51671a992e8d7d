//! A run that several processes share: each drives a rank. The first one runs the loop and writes the files; the others do
//! what it tells them ([`serve`]).

mod command;

pub use command::Command;

use super::balance::{Balance, equal_parts};
use super::{Backend, ListReport, Storage, SystemSums, Update, call_updater, fault_error};
use crate::device::{Chosen, Device};
use crate::plan::{Plan, StagePlan};
use crate::plugins::Component;
use crate::processes::{Messages, is_failed};
use crate::profile::Timing;
use crate::state::topology::Topology;
use crate::state::{Facts, RawState};
use command::broadcast_state;
use galamost_plugin_api::abi::WireHost;
use galamost_plugin_api::device::{bytes_of, from_bytes};
use galamost_plugin_api::error::{Error, Result};
use galamost_plugin_api::updater::Edit;
use galamost_plugin_api::views::{Globals, LinkView, ListView, SimBox, StateView, Wanted};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Time that steps on a GPU wait for a rank that is alive: it hangs.
const STEP_LIMIT: Duration = Duration::from_secs(50);
/// The same on the CPU, where steps may take long.
const CPU_LIMIT: Duration = Duration::from_secs(1800);
/// Time that a rank waits for the error of the one that failed.
const CAUSE: Duration = Duration::from_secs(10);

/// A backend that is one rank of a run in several processes. All ranks call each function at the same time.
pub trait ProcessRank: Storage + Sized {
    /// Returns a system with the initial state of a plan.
    ///
    /// # Errors
    /// Returns the driver's error, or the error of another process.
    fn of_process(plan: &Plan, messages: &Arc<dyn Messages>) -> Result<Self>;

    /// Returns the number of particles of which the parts of ranks are made.
    fn unit(n: usize, ranks: usize) -> usize;

    /// Returns the seconds that this rank has waited for the others since the last call of [`Self::divide`].
    ///
    /// # Errors
    /// Returns the driver's error.
    fn waited(&self) -> Result<f64>;

    /// Continues with this state and other particles of each rank; see [`super::balance`]. A stage must begin afterwards.
    ///
    /// # Errors
    /// Returns the driver's error, or the error of another process.
    fn divide(&mut self, plan: &Plan, messages: &Arc<dyn Messages>, begins: &[usize], state: &RawState) -> Result<()>;

    /// Completes the arrays of the first rank.
    ///
    /// # Errors
    /// Returns the driver's error, or the error of another process.
    fn complete_first(&mut self) -> Result<()>;

    /// Copies the arrays of the first rank to the others.
    ///
    /// # Errors
    /// Returns the driver's error, or the error of another process.
    fn copy_first(&mut self) -> Result<()>;

    /// Gives ghosts the present values that an updater needs.
    ///
    /// # Errors
    /// Returns the driver's error, or the error of another process.
    fn refresh_ghosts(&self, updater: &Component) -> Result<()>;

    /// Copies the globals from the device to the host.
    ///
    /// # Errors
    /// Returns the driver's error.
    fn sync_globals(&mut self) -> Result<()>;

    /// Applies what an updater did, and recomputes forces if needed.
    ///
    /// # Errors
    /// Returns an error of a component, of the device, or of another process.
    fn apply_update(&mut self, updater: &Arc<Component>, update: Update, wanted: Wanted) -> Result<()>;
}

/// One rank of several processes.
struct Process<S> {
    system: S,
    messages: Arc<dyn Messages>,
    /// Time that steps wait for a rank that is alive.
    limit: Duration,
}

impl<S: ProcessRank> Process<S> {
    fn new(plan: &Plan, messages: &Arc<dyn Messages>) -> Result<Self> {
        let limit = if matches!(plan.device, Chosen::Cuda { .. }) { STEP_LIMIT } else { CPU_LIMIT };
        let made = guarded(&**messages, || S::of_process(plan, messages));
        Ok(Self { system: made?, messages: messages.clone(), limit })
    }

    /// Does what all ranks do at the same time. If it fails on one of them, it fails on all, with the error of that rank.
    fn together<T>(&mut self, limited: bool, f: impl FnOnce(&mut S, &dyn Messages) -> Result<T>) -> Result<T> {
        let messages = self.messages.clone();
        messages.set_limit(limited.then_some(self.limit));
        let done = guarded(&*messages, || {
            let value = f(&mut self.system, &*messages)?;
            // a rank must not go on before all others have done the same
            messages.all_numbers(0).map(|_| value)
        });
        messages.set_limit(None);
        done
    }

    fn advance(&mut self, steps: u64, wanted: Wanted) -> Result<u64> {
        self.together(true, |s, _| s.advance(steps, wanted, &AtomicBool::new(false)))
    }

    fn complete(&mut self) -> Result<()> {
        self.together(true, |s, _| s.complete_first())
    }

    /// Returns the seconds that each rank has waited for the others.
    fn waited(&mut self) -> Result<Vec<f64>> {
        self.together(false, |s, messages| {
            let all = messages.all_numbers(s.waited()?.to_bits())?;
            Ok(all.into_iter().map(f64::from_bits).collect())
        })
    }

    /// Continues with other particles of each rank. `state`: that of the first rank; others give none.
    fn divide(&mut self, plan: &Plan, begins: &[usize], state: Option<&RawState>) -> Result<()> {
        let messages = self.messages.clone();
        self.together(false, |s, _| {
            let received = broadcast_state(&*messages, state)?;
            s.divide(plan, &messages, begins, state.unwrap_or(&received))
        })
    }

    /// Applies on all ranks what an updater did on the first one, whose arrays are complete. The others have no edits.
    fn apply(&mut self, updater: &Arc<Component>, update: Update, wanted: Wanted) -> Result<()> {
        self.together(true, |s, messages| {
            let globals = messages.broadcast(Storage::globals(s).bytes().to_vec())?;
            let wrong = || Error::Run("globals of another size".into());
            *Storage::globals(s) = Globals::from_bytes(&globals).ok_or_else(wrong)?;
            s.publish_globals()?;
            let own: Vec<[u32; 8]> = update.edits.iter().map(words_of).collect();
            let edits = messages.broadcast(bytes_of(&own).to_vec())?;
            let edits = edits.as_chunks::<32>().0.iter().filter_map(|e| from_bytes(e)).map(edit_of).collect();
            s.copy_first()?;
            s.apply_update(updater, Update { edits, ..update }, wanted)
        })
    }

    /// Calls an updater that ranks share, on its own particles, and applies what it did.
    fn update_own(&mut self, updater: &Arc<Component>, wanted: Wanted) -> Result<()> {
        self.together(true, |s, _| {
            s.refresh_ghosts(updater)?;
            match call_updater(s, updater, false)? {
                Some(update) => s.apply_update(updater, update, wanted),
                None => Ok(()),
            }
        })
    }

    /// Starts a component that ranks share.
    fn start(&mut self, component: &Component) -> Result<()> {
        self.together(false, |s, messages| component.start_in_processes(Backend::host(s), messages))
    }

    fn report(&mut self) -> Result<ListReport> {
        self.together(false, |s, messages| {
            let own = s.list_report()?;
            let means = messages.all_numbers(own.mean.to_bits())?;
            let longest = messages.all_numbers(own.longest.into())?;
            let mean = means.iter().map(|m| f64::from_bits(*m)).sum::<f64>() / means.len() as f64;
            Ok(ListReport { mean, longest: longest.into_iter().max().unwrap_or(0) as u32, ..own })
        })
    }
}

fn words_of(e: &Edit) -> [u32; 8] {
    let [a, b, c, d] = e.tags;
    [e.remove, e.width, e.kind, a, b, c, d, e.improper]
}

fn edit_of(w: [u32; 8]) -> Edit {
    Edit { remove: w[0], width: w[1], kind: w[2], tags: [w[3], w[4], w[5], w[6]], improper: w[7] }
}

/// Runs a function whose failure, also by a panic, must end the other ranks. Returns the error of the rank that failed first.
fn guarded<T>(messages: &dyn Messages, f: impl FnOnce() -> Result<T>) -> Result<T> {
    let panicked = |_| Err(Error::Run("the process has panicked".into()));
    let e = match catch_unwind(AssertUnwindSafe(f)).unwrap_or_else(panicked) {
        Ok(value) => return Ok(value),
        Err(e) => e,
    };
    if is_failed(&e) {
        return Err(messages.failure(CAUSE).unwrap_or(e));
    }
    // a transfer fails because another rank has failed, and that rank reports its error to all
    if messages.failure(Duration::ZERO).is_none() {
        messages.fail(&e);
    }
    Err(e)
}

/// The backend of the first process.
pub struct ProcessSystem<S> {
    process: Process<S>,
    /// The arrays have the present values of all particles.
    complete: bool,
    /// Where the particles of each rank begin, and their number.
    begins: Vec<usize>,
    balance: Balance,
}

impl<S: ProcessRank> ProcessSystem<S> {
    /// Returns a system with the initial state of a plan. All processes create one or call [`serve`].
    ///
    /// # Errors
    /// Returns the driver's error, or the error of another process.
    pub fn new(plan: &Plan, messages: &Arc<dyn Messages>) -> Result<Self> {
        let start = Instant::now();
        Command::Open.send(&**messages)?;
        let process = Process::<S>::new(plan, messages)?;
        let n = process.system.facts().n;
        let begins = equal_parts(n, messages.ranks(), S::unit(n, messages.ranks()));
        Ok(Self { process, complete: true, begins, balance: Balance::new(start.elapsed()) })
    }

    fn tell(&mut self, command: &Command) -> Result<()> {
        self.complete = false;
        command.send(&*self.process.messages)
    }

    fn complete(&mut self) -> Result<()> {
        if !self.complete {
            self.tell(&Command::Complete)?;
            self.process.complete()?;
            self.complete = true;
        }
        Ok(())
    }

    fn first(&mut self) -> &mut S {
        &mut self.process.system
    }
}

impl<S: ProcessRank> Backend for ProcessSystem<S> {
    fn start(&mut self, component: &Component) -> Result<()> {
        if !component.is_shared(false) {
            return component.start(Backend::host(self.first()));
        }
        self.tell(&Command::Start { component: component.id })?;
        self.process.start(component)
    }

    fn begin_stage(&mut self, stage: &StagePlan, forces_are_valid: bool) -> Result<()> {
        self.tell(&Command::BeginStage { number: stage.number, forces_are_valid })?;
        self.process.together(false, |s, _| s.begin_stage(stage, forces_are_valid))
    }

    fn evaluate(&mut self) -> Result<()> {
        self.tell(&Command::Evaluate)?;
        self.process.together(false, |s, _| s.evaluate())
    }

    fn step(&self) -> u64 {
        self.process.system.step()
    }

    fn advance(&mut self, steps: u64, wanted: Wanted, _: &AtomicBool) -> Result<u64> {
        let start = Instant::now();
        self.tell(&Command::Advance { steps, energy: wanted.energy, virial: wanted.virial })?;
        let done = self.process.advance(steps, wanted)?;
        self.balance.advanced(done, start.elapsed());
        Ok(done)
    }

    fn balance(&mut self, plan: &Plan, stage: &StagePlan, left: u64) -> Result<()> {
        if !self.balance.is_due() {
            return Ok(());
        }
        self.tell(&Command::Waited)?;
        let waited = self.process.waited()?;
        let unit = S::unit(self.facts().n, self.process.messages.ranks());
        let Some((begins, imbalance)) = self.balance.divide(waited, &self.begins, unit, left) else { return Ok(()) };
        let start = Instant::now();
        let state = self.export()?;
        self.tell(&Command::Divide { begins: begins.clone() })?;
        self.process.divide(plan, &begins, Some(&state))?;
        self.begins = begins;
        self.begin_stage(stage, true)?;
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
        self.process.system.facts()
    }

    fn topology(&self) -> &Topology {
        self.process.system.topology()
    }

    fn update(&mut self, updater: &Arc<Component>, wanted: Wanted) -> Result<()> {
        if updater.needs.shared {
            self.tell(&Command::UpdateOwn { updater: updater.id, energy: wanted.energy, virial: wanted.virial })?;
            return self.process.update_own(updater, wanted);
        }
        self.complete()?;
        let first = self.first();
        let Some(update) = call_updater(first, updater, false)? else { return Ok(()) };
        first.sync_globals()?;
        let globals = Storage::globals(first);
        if globals.is_halted() {
            let f = globals.fault.get();
            let component = (f.component == updater.id).then_some(&**updater);
            return Err(fault_error(globals.step, f, component));
        }
        self.tell(&Command::Update {
            updater: updater.id,
            changed: update.changed,
            length: update.sim_box.length.map(f64::to_bits),
            energy: wanted.energy,
            virial: wanted.virial,
        })?;
        self.process.apply(updater, update, wanted)
    }

    fn export(&mut self) -> Result<RawState> {
        self.complete()?;
        self.first().export()
    }

    fn import(&mut self, state: &RawState) -> Result<()> {
        self.tell(&Command::Import)?;
        self.process.together(false, |s, messages| {
            broadcast_state(messages, Some(state))?;
            s.import(state)
        })
    }

    fn globals(&self) -> Globals {
        Backend::globals(&self.process.system)
    }

    fn box_length(&self) -> [f64; 3] {
        self.process.system.box_length()
    }

    fn views(&mut self) -> Result<(StateView, ListView, LinkView)> {
        self.complete()?;
        self.first().views()
    }

    fn end_views(&mut self) {
        self.first().end_views();
    }

    fn host(&self) -> &WireHost {
        Backend::host(&self.process.system)
    }

    fn list_report(&mut self) -> Result<ListReport> {
        self.tell(&Command::Report)?;
        self.process.report()
    }

    fn device(&self) -> Option<Arc<dyn Device>> {
        self.process.system.device()
    }

    /// That of the first process.
    fn memory(&self) -> u64 {
        self.process.system.memory()
    }

    fn begin_profile(&mut self) {
        self.first().begin_profile();
    }

    fn end_profile(&mut self) -> Result<Vec<Timing>> {
        self.first().end_profile()
    }
}

/// Does what the first process tells, until the run ends. Returns the exit status.
///
/// # Errors
/// Returns the error of this or another process.
pub fn serve<S: ProcessRank>(plan: &Plan, messages: &Arc<dyn Messages>) -> Result<u8> {
    let mut process: Option<Process<S>> = None;
    let component = |id: u32| {
        let unknown = || Error::Run(format!("there is no component {id}"));
        plan.components.iter().find(|c| c.id == id).ok_or_else(unknown)
    };
    loop {
        let command = Command::receive(&**messages)?;
        let p = match (&mut process, &command) {
            (_, Command::End { status }) => return Ok(*status),
            (None, _) => {
                process = Some(Process::new(plan, messages)?);
                continue;
            }
            (Some(p), _) => p,
        };
        match command {
            Command::Open | Command::End { .. } => {}
            Command::BeginStage { number, forces_are_valid } => {
                p.together(false, |s, _| s.begin_stage(&plan.stages[number], forces_are_valid))?;
            }
            Command::Advance { steps, energy, virial } => p.advance(steps, Wanted { energy, virial }).map(drop)?,
            Command::Complete => p.complete()?,
            Command::Waited => p.waited().map(drop)?,
            Command::Divide { begins } => p.divide(plan, &begins, None)?,
            Command::Import => p.together(false, |s, messages| {
                let state = broadcast_state(messages, None)?;
                s.import(&state)
            })?,
            Command::Update { updater, changed, length, energy, virial } => {
                let sim_box =
                    SimBox { length: length.map(f64::from_bits), ..SimBox::of(Storage::globals(&mut p.system)) };
                let update = Update { edits: vec![], changed, sim_box };
                p.apply(component(updater)?, update, Wanted { energy, virial })?;
            }
            Command::UpdateOwn { updater, energy, virial } => {
                p.update_own(component(updater)?, Wanted { energy, virial })?;
            }
            Command::Start { component: id } => p.start(component(id)?)?,
            Command::Evaluate => p.together(false, |s, _| s.evaluate())?,
            Command::Report => p.report().map(drop)?,
        }
    }
}
