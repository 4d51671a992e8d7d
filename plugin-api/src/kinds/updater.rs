//! Updaters change the state between steps: topology, types, box, momentum.

use crate::abi::UpdaterAdapter;
use crate::component::{Kind, Needs, Registration, SystemInfo};
use crate::device::DevicePtr;
use crate::error::{Error, Result};
use crate::force::parse;
use crate::guard::Object;
use crate::params::{FromValue, Params};
use crate::philox::RandomKey;
use crate::services::Host;
use crate::views::{LinkView, ListView, SimBox, StateView};
use galamost_plugin_macros::DeviceStruct;

/// A change of topology. An updater only asks for changes; the engine applies them all at once, sorted by their
/// content, so the result does not depend on the order in which threads asked.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, DeviceStruct, galamost_plugin_macros::Layout)]
pub struct Edit {
    /// 0: add, 1: remove, 2: remove a bond together with every angle and dihedral that has it between two of its
    /// neighboring members, also those added by the same call.
    pub remove: u32,
    /// Number of members: 2 for a bond, 3 for an angle, 4 for a dihedral.
    pub width: u32,
    /// Type of the link.
    pub kind: u32,
    /// Tags of the members; the rest is 0.
    pub tags: [u32; 4],
    /// 0.
    pub reserved: u32,
}

/// Where edits are put; `request` of `topology.cuh` does it on the device.
#[repr(C)]
#[derive(Clone, Copy, Debug, DeviceStruct, galamost_plugin_macros::Layout)]
pub struct EditQueue {
    /// Room for `capacity` edits.
    pub edits: DevicePtr<Edit>,
    /// Number of edits asked for; above `capacity` the engine makes room and calls the updater again.
    pub count: DevicePtr<u32>,
    /// Room.
    pub capacity: u32,
    /// 0.
    pub reserved: u32,
}

impl Edit {
    /// Adds a link of W members.
    pub fn add<const W: usize>(kind: u32, tags: [u32; W]) -> Self {
        let tags = std::array::from_fn(|k| tags.get(k).copied().unwrap_or(0));
        Self { remove: 0, width: W as u32, kind, tags, reserved: 0 }
    }

    /// Removes a bond, and angles and dihedrals along it.
    pub fn cut(kind: u32, [a, b]: [u32; 2]) -> Self {
        Self { remove: 2, width: 2, kind, tags: [a, b, 0, 0], reserved: 0 }
    }
}

impl EditQueue {
    /// Asks for a change, on the CPU.
    ///
    /// # Safety
    /// The queue must lie in host memory, and only one thread may ask at a time.
    pub unsafe fn request(&self, edit: Edit) {
        // SAFETY: the caller's word; the index is below the capacity
        unsafe {
            let n = *self.count.host();
            if n < self.capacity {
                *self.edits.host().add(n as usize) = edit;
            }
            *self.count.host() = n + 1;
        }
    }
}

/// What an updater changed besides the topology.
pub mod changed {
    /// Positions: the list is rebuilt and forces are computed anew.
    pub const POSITIONS: u32 = 1;
    /// Velocities.
    pub const VELOCITIES: u32 = 2;
    /// Types or anything else that forces depend on: forces are computed anew.
    pub const FORCES: u32 = 4;
    /// The box, in [`super::UpdateCall::sim_box`]: positions follow, the list is rebuilt and forces are computed anew.
    pub const BOX: u32 = 8;
}

/// One call.
#[repr(C)]
#[derive(Clone, Copy, Debug, galamost_plugin_macros::Layout)]
pub struct UpdateCall {
    /// Size of this struct in bytes.
    pub size: u32,
    /// Number of the component in the run, for faults.
    pub component: u32,
    /// The component's first slot in [`crate::views::Globals::values`].
    pub first_varying: u32,
    /// Out: what was changed, [`changed`].
    pub changed: u32,
    /// The step.
    pub step: u64,
    /// Key of the component's random numbers.
    pub key: RandomKey,
    /// The state; on CUDA its addresses are the device's.
    pub state: StateView,
    /// The neighbor list (valid up to its `r_list` less the buffer).
    pub list: ListView,
    /// Bonds.
    pub bonds: LinkView,
    /// Where changes of topology are asked for.
    pub edits: EditQueue,
    /// Bit of the component's group, see [`StateView::in_group`].
    pub group: u32,
    /// 0.
    pub reserved0: u32,
    /// The box, in host memory on every device; see [`Self::sim_box`].
    pub sim_box: DevicePtr<SimBox>,
    /// 0.
    pub reserved: [u64; 6],
}

impl UpdateCall {
    /// The box. An updater that changes it also says [`changed::BOX`]. Virial and kinetic sums are those of this step if
    /// the updater wants `thermo`.
    ///
    /// # Errors
    /// Returns an error if the call carries no box.
    ///
    /// # Safety
    /// The engine's word: the address is valid while the call lasts.
    pub unsafe fn sim_box(&mut self) -> Result<&mut SimBox> {
        // SAFETY: the caller's word
        unsafe { self.sim_box.host().as_mut() }
            .ok_or_else(|| Error::Run("the engine passed no box to the updater".into()))
    }
}

/// Changes state between steps. Its parameters are the fields of the struct (`#[derive(Params)]`).
pub trait Updater: Send + Sized + 'static {
    /// Learns the system; an updater says at least its period.
    ///
    /// # Errors
    /// Mistakes of the input that show only now.
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()>;
    /// Gets the engine's services.
    ///
    /// # Errors
    /// Whatever keeps it from starting.
    fn start(&mut self, _host: Host) -> Result<()> {
        Ok(())
    }
    /// Changes the state.
    ///
    /// # Errors
    /// Whatever breaks the run.
    ///
    /// # Safety
    /// The engine's word: the views describe valid arrays of the run's device.
    unsafe fn update(&mut self, call: &mut UpdateCall) -> Result<()>;
    /// The run ended.
    ///
    /// # Errors
    /// Whatever keeps it from ending.
    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
    /// State for a checkpoint, if there is any.
    ///
    /// # Errors
    /// Whatever keeps it from saving.
    fn save(&mut self) -> Result<Vec<u8>> {
        Ok(vec![])
    }
    /// State from a checkpoint.
    ///
    /// # Errors
    /// The state does not fit.
    fn load(&mut self, _state: &[u8]) -> Result<()> {
        Ok(())
    }
}

impl Registration {
    /// An updater.
    pub const fn updater<T: Updater + Params + FromValue>(name: &'static str, doc: &'static str) -> Self {
        Self {
            name,
            former_names: &[],
            kind: Kind::Updater,
            doc,
            fields: T::docs,
            create: |name, value| parse::<T>(value).map(|c| Object::new(name, UpdaterAdapter(c))),
        }
    }
}
