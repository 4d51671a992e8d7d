//! The interface between the run loop and the backends (CPU, GPU), and what they share.

pub mod balance;
mod by_type;
mod columns;
mod exchange;
pub mod processes;
mod replicas;
mod setup;
mod shear;
mod transfer;
mod view;

pub use by_type::energies_by_type;
pub use columns::{Columns, columns};
pub use exchange::with_particles_of;
pub use replicas::check_replicas;
pub use setup::{
    check_state_length, degrees_of_freedom, fault_error, initial_globals, list_radius, list_reader, lists_members,
    most_tilt, pair_rules, reads_all_rows, stages_list, staging_prevented,
};
pub use shear::ShearState;
pub use transfer::{Storage, Update, call_updater, export, forget_list, import, queue_search};
pub use view::{Array, state_view};

use crate::device::Device;
use crate::plan::{Plan, StagePlan};
use crate::plugins::Component;
use crate::profile::Timing;
use crate::state::topology::Topology;
use crate::state::{Facts, RawState};
use galamost_plugin_api::error::Result;
use galamost_plugin_api::views::{Globals, LinkView, ListView, StateView, Sums, Wanted};
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
    /// Further quantities of the forces, component by component; see `Needs::quantities`.
    #[serde(default)]
    pub quantities: Vec<f64>,
    /// Sum of the integrators' contributions to the conserved quantity.
    pub reservoir: f64,
}

impl SystemSums {
    /// Returns Σ m v_k² per axis.
    pub fn kinetic_diagonal(&self) -> [f64; 3] {
        [0, 3, 5].map(|k| self.kinetic_tensor[k])
    }
}

/// Statistics of the neighbor list, for the log and `bench`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ListReport {
    /// Cutoff plus buffer.
    pub r_list: f64,
    /// Buffer.
    pub buffer: f64,
    /// Rebuilds since the start.
    pub builds: u64,
    /// Mean number of neighbors at the last rebuild.
    pub mean: f64,
    /// Largest number of neighbors at the last rebuild.
    pub longest: u32,
}

/// A backend: it stores the state on a device and propagates it.
pub trait Backend {
    /// Begins a stage: takes its components, computes forces unless they are valid, and starts the integrators.
    ///
    /// # Errors
    /// Returns an error of a component or of the device.
    fn begin_stage(&mut self, stage: &StagePlan, forces_are_valid: bool) -> Result<()>;

    /// Starts a component, once, before the first stage that uses it.
    ///
    /// # Errors
    /// Returns the component's error.
    fn start(&mut self, component: &Component) -> Result<()> {
        component.start(self.host())
    }

    /// Computes forces, energies and virials of a state that was imported during a stage, and starts the integrators.
    ///
    /// # Errors
    /// Returns an error of a component or of the device.
    fn evaluate(&mut self) -> Result<()>;

    /// Returns the current step.
    fn step(&self) -> u64;

    /// Does up to `steps` time steps; forces of the last one come with `wanted`. Returns early, after a complete step, if
    /// `stop` is set. Returns the number of steps done.
    ///
    /// # Errors
    /// Returns an error of a component or of the device.
    fn advance(&mut self, steps: u64, wanted: Wanted, stop: &AtomicBool) -> Result<u64>;

    /// Divides the particles among the ranks of the run again if one of them has more work than the others. Called before steps of a
    /// stage of which `left` are left. The state is the same afterwards; sums over the system are known after the next steps.
    ///
    /// # Errors
    /// Returns an error of a component or of the device.
    fn balance(&mut self, _plan: &Plan, _stage: &StagePlan, _left: u64) -> Result<()> {
        Ok(())
    }

    /// Returns sums over the system.
    ///
    /// # Errors
    /// Returns the driver's error.
    fn sums(&mut self) -> Result<SystemSums>;

    /// Returns a particle array in tag order; see [`Facts::particle_arrays`].
    ///
    /// # Errors
    /// Returns an error if the system has no such array, or the driver's error.
    fn read(&mut self, section: &str) -> Result<Vec<u8>>;

    /// Returns the constant facts of the system.
    fn facts(&self) -> &Facts;

    /// Returns bonds, angles, dihedrals and impropers.
    fn topology(&self) -> &Topology;

    /// Says that [`Self::update`] will be called with this updater after the next [`Self::advance`], before anything else changes the
    /// state, so that its search can be queued behind the steps; or that this does not hold any more.
    fn expect_update(&mut self, _updater: Option<&Arc<Component>>) {}

    /// Calls an updater, and recomputes forces if needed.
    ///
    /// # Errors
    /// Returns an error of a component or of the device.
    fn update(&mut self, updater: &Arc<Component>, wanted: Wanted) -> Result<()>;

    /// Returns the state bit for bit.
    ///
    /// # Errors
    /// Returns the driver's error.
    fn export(&mut self) -> Result<RawState>;

    /// Restores a state bit for bit.
    ///
    /// # Errors
    /// Returns an error if the state does not fit this system.
    fn import(&mut self, state: &RawState) -> Result<()>;

    /// Returns the global scalars of the run.
    fn globals(&self) -> Globals;

    /// Returns the box lengths.
    fn box_length(&self) -> [f64; 3];

    /// Returns the tilt factors of the box; see [`galamost_plugin_api::tilt`].
    fn tilt(&self) -> [f64; 3] {
        self.globals().tilt
    }

    /// Returns the views for components with their own kernels. Components may read the arrays until
    /// [`Self::end_views`].
    ///
    /// # Errors
    /// Returns the driver's error.
    fn views(&mut self) -> Result<(StateView, ListView, LinkView)>;

    /// Ends the use of the views by components.
    fn end_views(&mut self);

    /// Returns the services of this device for components.
    fn host(&self) -> &galamost_plugin_api::abi::WireHost;

    /// Returns statistics of the neighbor list.
    ///
    /// # Errors
    /// Returns the driver's error.
    fn list_report(&mut self) -> Result<ListReport>;

    /// Returns the device that runs the kernels, the first of several; `None` for the CPU.
    fn device(&self) -> Option<Arc<dyn Device>> {
        None
    }

    /// Returns the bytes of device memory in use.
    fn memory(&self) -> u64;

    /// Starts the profile: the following steps run their parts one after the other and time them. Results do not change.
    fn begin_profile(&mut self);

    /// Ends the profile and returns the timings.
    ///
    /// # Errors
    /// Returns the driver's error.
    fn end_profile(&mut self) -> Result<Vec<Timing>>;
}
