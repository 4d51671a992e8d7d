//! Objects of a component for the ranks of a run: each GPU that shares the work of a force or an updater has one, with separate kernels
//! and memory.

use super::component::Component;
use super::library::Library;
use crate::pipeline::Entry;
use crate::processes::Messages;
use galamost_plugin_api::abi::WireHost;
use galamost_plugin_api::component::{ComponentInfo, Kind, Needs, SystemInfo};
use galamost_plugin_api::error::{Error, Result};
use std::sync::{Mutex, OnceLock, PoisonError};

/// The objects of a component for ranks other than the first, and what they are made from.
#[derive(Default)]
pub struct RankObjects {
    /// Kept for updaters, and for forces, including those of long range.
    origin: Option<Box<(Library, ComponentInfo, Entry)>>,
    /// Set if ranks can share its work.
    system: Option<Box<SystemInfo>>,
    state: Mutex<Option<Vec<u8>>>,
    others: OnceLock<Vec<Component>>,
}

impl RankObjects {
    /// Returns no objects, and keeps what more can be made from.
    pub fn of(library: &Library, info: &ComponentInfo, entry: &Entry) -> Self {
        let origin = matches!(info.kind, Kind::Force | Kind::Pair | Kind::Updater)
            .then(|| Box::new((library.clone(), info.clone(), entry.clone())));
        Self { origin, ..Self::default() }
    }

    /// Keeps the system that the component is bound to.
    ///
    /// # Errors
    /// Returns an error if ranks can share an updater that needs sums over all particles.
    pub fn bound(&mut self, system: &SystemInfo, needs: &Needs, kind: Kind) -> Result<()> {
        if kind == Kind::Updater && needs.shared && needs.wants.thermo {
            return Err(Error::Run("an updater with `needs.shared` cannot want `thermo`".into()));
        }
        self.system = needs.shared.then(|| Box::new(system.clone()));
        Ok(())
    }

    /// Returns the state of a checkpoint, once; empty if there is none.
    fn take_state(&self) -> Vec<u8> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or_default()
    }

    /// Keeps the state of a checkpoint.
    pub fn loaded(&self, state: &[u8]) {
        if self.system.is_some() {
            *self.state.lock().unwrap_or_else(PoisonError::into_inner) = Some(state.to_vec());
        }
    }
}

impl Component {
    /// Creates its objects for this many ranks, in the state of the first.
    ///
    /// # Errors
    /// Returns the component's error.
    pub fn create_for_ranks(&self, ranks: usize) -> Result<()> {
        let (Some(origin), Some(system)) = (&self.ranks.origin, &self.ranks.system) else {
            return Err(Error::Run(format!("{} cannot be shared by several GPUs", self.name)));
        };
        let (library, info, entry) = &**origin;
        let state = self.ranks.take_state();
        let one = |rank| {
            let mut other = Self::create(library, info, entry, self.id)?;
            other.bind(&SystemInfo { rank: rank as u32, ..(**system).clone() })?;
            (other.first_varying, other.group) = (self.first_varying, self.group);
            other.load_of_first(&state)?;
            Ok(other)
        };
        let others: Vec<Self> = (1..ranks).map(one).collect::<Result<_>>()?;
        let _ = self.ranks.others.set(others);
        Ok(())
    }

    /// Starts the component in each process of a run, in the state of the first one; the others give none. All processes call it.
    ///
    /// # Errors
    /// Returns the component's error, or the error of another process.
    pub fn start_in_processes(&self, host: &WireHost, messages: &dyn Messages) -> Result<()> {
        let state = messages.broadcast(self.ranks.take_state())?;
        if messages.rank() > 0 {
            self.load_of_first(&state)?;
        }
        self.start(host)
    }

    /// Restores the state of the first rank's object, if there is one.
    fn load_of_first(&self, state: &[u8]) -> Result<()> {
        if state.is_empty() { Ok(()) } else { self.load(state) }
    }

    /// Returns the warnings of a copy of the component that is bound to this system.
    ///
    /// # Errors
    /// Returns the component's error.
    pub fn warnings_in(&self, system: &SystemInfo) -> Result<Vec<String>> {
        let Some(origin) = &self.ranks.origin else { return Ok(vec![]) };
        let (library, info, entry) = &**origin;
        let mut copy = Self::create(library, info, entry, self.id)?;
        copy.bind(system)?;
        Ok(std::mem::take(&mut copy.needs.warnings))
    }

    /// Returns its object for a rank.
    ///
    /// # Errors
    /// Returns an error if there is none.
    pub fn on_rank(&self, rank: usize) -> Result<&Self> {
        let other = |k: usize| self.ranks.others.get().and_then(|others| others.get(k));
        let found = rank.checked_sub(1).map_or(Some(self), other);
        found.ok_or_else(|| Error::Run(format!("{} was not started on GPU {rank} of the run", self.name)))
    }
}
