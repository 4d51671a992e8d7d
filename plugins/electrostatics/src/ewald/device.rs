//! The sum over waves on CUDA.

use super::plan::Waves;
use crate::device_charges::{BLOCK, ChargeArgs, DeviceCharges, source, upload};
use crate::params::Model;
use galamost_plugin_api::abi::Opaque;
use galamost_plugin_api::arguments;
use galamost_plugin_api::device::DevicePtr;
use galamost_plugin_api::prelude::*;
use galamost_plugin_api::services::Kernel;

/// Arguments of all kernels.
#[repr(C)]
#[derive(Clone, Copy, DeviceStruct)]
struct EwaldArgs {
    charges: ChargeArgs,
    /// Three numbers for each wave.
    #[device(cxx = "const int*")]
    waves: DevicePtr<u8>,
    /// Structure factors.
    #[device(cxx = "double*")]
    structure: DevicePtr<u8>,
    /// Five numbers for each wave, which particles read.
    #[device(cxx = "real*")]
    rows: DevicePtr<u8>,
    n_waves: u32,
    reserved: u32,
}

/// Kernels and memory.
pub struct DeviceSum {
    charges: DeviceCharges,
    structure_kernel: Kernel,
    virial_kernel: Kernel,
    force_kernel: Kernel,
    waves: DevicePtr<u8>,
    structure: DevicePtr<u8>,
    rows: DevicePtr<u8>,
    n_waves: u32,
}

impl DeviceSum {
    /// Compiles the kernels and uploads the waves.
    ///
    /// # Errors
    /// Returns an error if compilation or allocation fails.
    pub fn new(host: &Host, model: &Model, waves: &Waves) -> Result<Self> {
        let module = host.compile("ewald", &source(EwaldArgs::text(), "", include_str!("ewald.cuh"))?)?;
        let n = waves.vectors.len();
        let bytes: Vec<u8> = waves.vectors.iter().flatten().flat_map(|x| x.to_ne_bytes()).collect();
        Ok(Self {
            charges: DeviceCharges::new(host, model, module, 1)?,
            structure_kernel: host.kernel(module, "ewald_structure")?,
            virial_kernel: host.kernel(module, "ewald_virial")?,
            force_kernel: host.kernel(module, "ewald_force")?,
            waves: upload(host, &bytes)?,
            structure: host.allocate_bytes(16 * n)?,
            rows: host.allocate_bytes(5 * model.precision.real_size() * n)?,
            n_waves: n as u32,
        })
    }

    /// Launches the kernels of one evaluation.
    ///
    /// # Errors
    /// Returns an error if a launch fails.
    ///
    /// # Safety
    /// The views describe valid arrays of the device.
    pub unsafe fn launch(&self, host: &Host, model: &Model, call: &ForceCall) -> Result<()> {
        let charges = self.charges.arguments(model, call);
        let args = EwaldArgs {
            charges,
            waves: self.waves,
            structure: self.structure,
            rows: self.rows,
            n_waves: self.n_waves,
            reserved: 0,
        };
        let mut arguments: [*mut Opaque; 1] = arguments![args];
        // SAFETY: these kernels have one EwaldArgs parameter
        unsafe {
            self.charges.launch_totals(host, &charges)?;
            host.launch(self.structure_kernel, self.n_waves, BLOCK, &mut arguments)?;
            if charges.full != 0 {
                host.launch(self.virial_kernel, 1, 256, &mut arguments)?;
            }
            host.launch(self.force_kernel, call.state.n_local.div_ceil(BLOCK), BLOCK, &mut arguments)
        }
    }
}
