//! The kernels of sites.

use crate::geometry::{LINEAR, place_site, spread_force};
use crate::{ATOMS, FORM, MOST, NUMBERS, USES};
use galamost_plugin_api::abi::Opaque;
use galamost_plugin_api::arguments;
use galamost_plugin_api::device::{DeviceFn, DevicePtr, constants, kernel_source};
use galamost_plugin_api::prelude::*;
use galamost_plugin_api::services::Kernel;
use galamost_plugin_api::views::StateView;

/// Threads of a block.
const BLOCK: u32 = 128;

/// Arguments of all kernels.
#[repr(C)]
#[derive(Clone, Copy, DeviceStruct)]
struct SiteArgs {
    state: StateView,
    #[device(cxx = "const u32*")]
    form: DevicePtr<u8>,
    #[device(cxx = "const int*")]
    atoms: DevicePtr<u8>,
    #[device(cxx = "const real*")]
    numbers: DevicePtr<u8>,
    #[device(cxx = "const int*")]
    uses: DevicePtr<u8>,
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
        let names = constants(&[("LINEAR", LINEAR), ("MOST", MOST as u32)]);
        let texts = [SiteArgs::text(), <place_site as DeviceFn>::text(), <spread_force as DeviceFn>::text()];
        let kernels = format!("{names}{}", include_str!("sites.cuh"));
        let module = host.compile("sites", &kernel_source(&texts, &kernels)?)?;
        let counter = host.allocate_bytes(8)?;
        host.upload_bytes(counter, &[0; 8])?;
        Ok(Self {
            place: host.kernel(module, "place_sites")?,
            collect: host.kernel(module, "collect_sites")?,
            partial: host.allocate_bytes(48 * n.div_ceil(u64::from(BLOCK)) as usize)?,
            counter,
        })
    }

    /// Places the sites.
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

    /// Passes the forces on the sites to the particles that construct them.
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
        let args = SiteArgs {
            state: call.state,
            form: host.array(FORM),
            atoms: host.array(ATOMS),
            numbers: host.array(NUMBERS),
            uses: host.array(USES),
            sums: call.device_sums,
            partial: self.partial,
            counter: self.counter,
            component: call.component,
            full: u32::from(call.wanted.more_than_force()),
        };
        let mut arguments: [*mut Opaque; 1] = arguments![args];
        // SAFETY: both kernels have one SiteArgs parameter
        unsafe { host.launch(kernel, call.state.n_local.div_ceil(BLOCK), BLOCK, &mut arguments) }
    }
}
