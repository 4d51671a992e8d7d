//! What the run loop asks of a device.

mod columns;
mod setup;
mod transfer;
mod view;

pub use columns::{Columns, columns};
pub use setup::{
    ShearState, check_state_length, degrees_of_freedom, fault_error, initial_globals, list_radius, lists_members,
};
pub use transfer::{Storage, Update, call_updater, export, import};
pub use view::{Array, state_view};

use crate::plan::StagePlan;
use crate::plugins::Component;
use crate::profile::Timing;
use crate::state::topology::Topology;
use crate::state::{Facts, RawState};
use galamost_plugin_api::error::Result;
use galamost_plugin_api::views::{LinkView, ListView, StateView, Sums, Wanted};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Sums over all particles after the last force evaluation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SystemSums {
    /// Σ m v v as xx, xy, xz, yy, yz, zz.
    pub kinetic_tensor: [f64; 6],
    /// Σ m v.
    pub momentum: [f64; 3],
    /// Kinetic energy of rotation.
    #[serde(default)]
    pub rotational: f64,
    /// Energy and virial of each force component of the stage, in its order.
    pub components: Vec<Sums>,
    /// What forces report besides, one component's numbers after the other's; see `Needs::quantities`.
    #[serde(default)]
    pub quantities: Vec<f64>,
    /// The integrators' shares of the conserved quantity.
    pub reservoir: f64,
}

impl SystemSums {
    /// Σ m v_k² per axis.
    pub fn kinetic_diagonal(&self) -> [f64; 3] {
        [0, 3, 5].map(|k| self.kinetic_tensor[k])
    }
}

/// What the neighbor list was like, for the log and `bench`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ListReport {
    /// Cutoff and buffer.
    pub r_list: f64,
    /// Buffer.
    pub buffer: f64,
    /// Builds since the start.
    pub builds: u64,
    /// Neighbors per particle at the last build.
    pub mean: f64,
    /// The largest number of neighbors at the last build.
    pub longest: u32,
}

/// A device that holds the state and moves it.
pub trait Backend {
    /// Takes the components of a stage, computes forces and lets integrators start.
    ///
    /// # Errors
    /// Whatever breaks the run.
    fn begin_stage(&mut self, stage: &StagePlan, forces_are_good: bool) -> Result<()>;

    /// The step.
    fn step(&self) -> u64;

    /// Does up to `steps` steps, the last of them with what is `wanted`; stops early where `stop` is set.
    ///
    /// # Errors
    /// Whatever breaks the run. The state is then as after the last whole step, if it says so.
    fn advance(&mut self, steps: u64, wanted: Wanted, stop: &AtomicBool) -> Result<u64>;

    /// Sums over the system.
    ///
    /// # Errors
    /// The device's words.
    fn sums(&mut self) -> Result<SystemSums>;

    /// A section of particles in tag order, see [`Facts::particle_arrays`].
    ///
    /// # Errors
    /// There is none of this name, or the device's words.
    fn read(&mut self, section: &str) -> Result<Vec<u8>>;

    /// Facts that do not change.
    fn facts(&self) -> &Facts;

    /// Bonds, angles, dihedrals.
    fn topology(&self) -> &Topology;

    /// Lets an updater change the state, and brings forces up to date.
    ///
    /// # Errors
    /// Whatever breaks the run.
    fn update(&mut self, updater: &Arc<Component>, wanted: Wanted) -> Result<()>;

    /// The state bit for bit.
    ///
    /// # Errors
    /// The device's words.
    fn export(&mut self) -> Result<RawState>;

    /// Takes the state bit for bit.
    ///
    /// # Errors
    /// It does not fit.
    fn import(&mut self, state: &RawState) -> Result<()>;

    /// Box lengths.
    fn box_length(&self) -> [f64; 3];

    /// Views for analyzers with kernels of their own.
    fn views(&mut self) -> (StateView, ListView, LinkView);

    /// The services of this device, for components.
    fn host(&self) -> &galamost_plugin_api::abi::WireHost;

    /// How the list was.
    ///
    /// # Errors
    /// The device's words.
    fn list_report(&mut self) -> Result<ListReport>;

    /// Bytes of device memory in use.
    fn memory(&self) -> u64;

    /// Times what the following steps do, one thing after the other; the state comes out the same.
    fn begin_profile(&mut self);

    /// Where the time went since then.
    ///
    /// # Errors
    /// The device's words.
    fn end_profile(&mut self) -> Result<Vec<Timing>>;
}
