//! Calls of an updater, and the queue of its changes of topology.

use crate::abi::views::{LinkView, ListView, SimBox, StateView};
use crate::device::DevicePtr;
use crate::device::philox::RandomKey;
use crate::error::{Error, Result};
use galamost_plugin_macros::{DeviceStruct, Layout};

crate::device_enum! {
    @header true;
    /// What an [`Edit`] does.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum EditKind {
        /// Adds the link.
        Add = 0,
        /// Removes it.
        Remove = 1,
        /// Removes a bond, all angles and dihedrals in which its two particles are adjacent members, and all impropers
        /// that contain both, including those added by the same call.
        Cut = 2,
    }
}

/// A requested change of the topology. The engine applies all requests at once, sorted by content, so the result does
/// not depend on the order of the threads.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, DeviceStruct, Layout)]
#[device(header)]
pub struct Edit {
    /// Number of the [`EditKind`].
    pub remove: u32,
    /// Number of members: 2 for a bond, 3 for an angle, 4 for a dihedral or an improper.
    pub width: u32,
    /// Type of the link.
    pub kind: u32,
    /// Tags of the members; unused entries are 0.
    pub tags: [u32; 4],
    /// 1 for an improper, otherwise 0.
    pub improper: u32,
}

/// Queue of requested edits. On the device, `request` in `topology.cuh` appends to it.
#[repr(C)]
#[derive(Clone, Copy, Debug, DeviceStruct, Layout)]
#[device(header)]
pub struct EditQueue {
    /// Memory for `capacity` edits.
    pub edits: DevicePtr<Edit>,
    /// Number of requested edits. If it exceeds `capacity`, the engine enlarges the queue and repeats the call.
    pub count: DevicePtr<u32>,
    /// Maximum number of edits.
    pub capacity: u32,
    /// Reserved; must be 0.
    pub reserved: u32,
}

impl Edit {
    /// Creates a request to add a bond, an angle or a dihedral. The run ends with an error if the link exists, in either direction
    /// and with this type: check [`UpdateCall::bonds`] before. Two requests in one call for the same link are the same error.
    pub fn add<const W: usize>(kind: u32, tags: [u32; W]) -> Self {
        let tags = std::array::from_fn(|k| tags.get(k).copied().unwrap_or(0));
        Self { remove: EditKind::Add as u32, width: W as u32, kind, tags, improper: 0 }
    }

    /// Creates a request to add an improper.
    pub fn add_improper(kind: u32, tags: [u32; 4]) -> Self {
        Self { improper: 1, ..Self::add(kind, tags) }
    }

    /// Creates a request to remove a bond with all angles, dihedrals and impropers along it.
    pub fn cut(kind: u32, [a, b]: [u32; 2]) -> Self {
        Self { remove: EditKind::Cut as u32, width: 2, kind, tags: [a, b, 0, 0], improper: 0 }
    }
}

impl EditQueue {
    /// Requests an edit in a queue in host memory.
    ///
    /// # Safety
    /// The queue is in host memory, its call has not returned, and no other thread uses it at the same time.
    pub unsafe fn request(&self, edit: Edit) {
        // SAFETY: both addresses are in host memory, and only this thread uses the queue (contract of this function); `n` is
        // below the capacity of `edits`
        unsafe {
            let n = *self.count.host();
            if n < self.capacity {
                *self.edits.host().add(n as usize) = edit;
            }
            *self.count.host() = n + 1;
        }
    }
}

/// Flags for what an updater changed besides the topology.
pub mod changed {
    /// Positions. The engine rebuilds the neighbor list and recomputes forces.
    pub const POSITIONS: u32 = 1;
    /// Velocities.
    pub const VELOCITIES: u32 = 2;
    /// Types or other properties that forces depend on. The engine recomputes forces.
    pub const FORCES: u32 = 4;
    /// The box, in [`super::UpdateCall::sim_box`]. The engine rescales positions, rebuilds the neighbor list and
    /// recomputes forces.
    pub const BOX: u32 = 8;
    /// Nothing, and no change of the topology was requested. Requests are an error of the run. If the updater has set
    /// [`Needs::searches`](crate::component::Needs::searches), the engine does not wait for the device to read the queue `edits`, so it
    /// finds no requests of kernels. An engine that does not know this flag reads the queue.
    pub const NOTHING: u32 = 16;
    /// All changes of the topology are in [`super::UpdateCall::host_edits`], and no kernel of this call has requested others,
    /// changed the globals, or raised a fault. The engine then does not wait for the device.
    pub const HOST_EDITS: u32 = 32;
}

/// What a call of an updater does.
pub mod phase {
    /// Everything.
    pub const ALL: u32 = 0;
    /// On CUDA, with [`Needs::searches`](crate::component::Needs::searches): only launches kernels that search. They run when the
    /// steps before [`super::UpdateCall::step`] have ended, change nothing, and do nothing if the run has halted. The call
    /// neither waits for the device nor reads the box.
    pub const SEARCH: u32 = 1;
    /// The rest: the kernels that the call before has launched have ended, and the state is the one that they have seen.
    pub const DECIDE: u32 = 2;
}

/// One call of an updater.
#[repr(C)]
#[derive(Clone, Copy, Debug, Layout)]
pub struct UpdateCall {
    /// Size of this struct in bytes.
    pub size: u32,
    /// Number of the component in the run, reported with faults.
    pub component: u32,
    /// The component's first slot in [`crate::views::Globals::values`].
    pub first_varying: u32,
    /// Output: what was changed, as flags of [`changed`].
    pub changed: u32,
    /// Time step.
    pub step: u64,
    /// Key of the component's random numbers.
    pub key: RandomKey,
    /// The particles; on CUDA the addresses are in device memory.
    pub state: StateView,
    /// The neighbor list; complete up to `r_list` minus the buffer.
    pub list: ListView,
    /// The bonds.
    pub bonds: LinkView,
    /// Queue for changes of the topology.
    pub edits: EditQueue,
    /// Bit of the component's group, see [`StateView::in_group`].
    pub group: u32,
    /// One of [`phase`].
    pub phase: u32,
    /// The box, in host memory on every device; use [`Self::sim_box`].
    pub sim_box: DevicePtr<SimBox>,
    /// A queue in host memory on every device, for updaters that set [`changed::HOST_EDITS`] instead of using `edits`.
    pub host_edits: EditQueue,
    /// Reserved; must be 0.
    pub reserved: [u64; 3],
}

impl UpdateCall {
    /// Returns the box. An updater that changes it must also set [`changed::BOX`]. Virial and kinetic sums are those of
    /// this step if the updater wants `thermo`.
    ///
    /// # Errors
    /// Returns an error if the call carries no box.
    ///
    /// # Safety
    /// The address must be valid during the call.
    pub unsafe fn sim_box(&mut self) -> Result<&mut SimBox> {
        // SAFETY: the address is null or valid during the call (contract of this function)
        unsafe { self.sim_box.host().as_mut() }
            .ok_or_else(|| Error::Run("the engine passed no box to the updater".into()))
    }
}
