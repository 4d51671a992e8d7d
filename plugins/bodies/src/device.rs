//! The kernels of bodies.

use crate::{CENTER, MEMBERS, OFFSET};
use galamost_plugin_api::abi::Opaque;
use galamost_plugin_api::arguments;
use galamost_plugin_api::device::{DevicePtr, kernel_source};
use galamost_plugin_api::prelude::*;
use galamost_plugin_api::services::Kernel;
use galamost_plugin_api::views::StateView;

/// Threads of a block.
const BLOCK: u32 = 128;

/// Arguments of all kernels.
#[repr(C)]
#[derive(Clone, Copy, DeviceStruct)]
struct BodyArgs {
    state: StateView,
    #[device(cxx = "const int*")]
    center: DevicePtr<u8>,
    #[device(cxx = "const real*")]
    offset: DevicePtr<u8>,
    #[device(cxx = "const int*")]
    members: DevicePtr<u8>,
    sums: DevicePtr<Sums>,
    /// Six numbers of the virial for each block.
    #[device(cxx = "double*")]
    partial: DevicePtr<u8>,
    #[device(cxx = "u32*")]
    counter: DevicePtr<u8>,
    component: u32,
    /// Whether the virial is wanted.
    full: u32,
}

/// Kernels and memory.
#[derive(Debug)]
pub struct Kernels {
    place: Kernel,
    collect: Kernel,
    partial: DevicePtr<u8>,
    counter: DevicePtr<u8>,
}

impl Kernels {
    /// Compiles the kernels, for `n` particles.
    ///
    /// # Errors
    /// Returns an error if compilation or allocation fails.
    pub fn new(host: &Host, n: u64) -> Result<Self> {
        let module = host.compile("bodies", &kernel_source(&[BodyArgs::text()], include_str!("bodies.cuh"))?)?;
        let counter = host.allocate_bytes(8)?;
        host.upload_bytes(counter, &[0; 8])?;
        Ok(Self {
            place: host.kernel(module, "place_bodies")?,
            collect: host.kernel(module, "collect_bodies")?,
            partial: host.allocate_bytes(48 * n.div_ceil(u64::from(BLOCK)) as usize)?,
            counter,
        })
    }

    /// Places the particles.
    ///
    /// # Errors
    /// Returns an error if the launch fails.
    ///
    /// # Safety
    /// The views describe valid arrays of the device.
    pub unsafe fn place(&self, host: &Host, call: &ForceCall) -> Result<()> {
        // SAFETY: the contract of this function is passed on
        unsafe { self.launch(self.place, host, call) }
    }

    /// Passes the forces on the particles to the centers.
    ///
    /// # Errors
    /// Returns an error if the launch fails.
    ///
    /// # Safety
    /// The views describe valid arrays of the device.
    pub unsafe fn collect(&self, host: &Host, call: &ForceCall) -> Result<()> {
        // SAFETY: the contract of this function is passed on
        unsafe { self.launch(self.collect, host, call) }
    }

    /// # Safety
    /// The views describe valid arrays of the device.
    unsafe fn launch(&self, kernel: Kernel, host: &Host, call: &ForceCall) -> Result<()> {
        let args = BodyArgs {
            state: call.state,
            center: host.array(CENTER),
            offset: host.array(OFFSET),
            members: host.array(MEMBERS),
            sums: call.device_sums,
            partial: self.partial,
            counter: self.counter,
            component: call.component,
            full: u32::from(call.wanted.more_than_force()),
        };
        let mut arguments: [*mut Opaque; 1] = arguments![args];
        // SAFETY: both kernels have one BodyArgs parameter
        unsafe { host.launch(kernel, call.state.n_local.div_ceil(BLOCK), BLOCK, &mut arguments) }
    }
}
