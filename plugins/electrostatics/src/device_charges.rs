//! The corrections on CUDA; see correction.cuh.

use crate::params::Model;
use crate::split::{SplitTerms, fourier_pair, window_transform};
use galamost_plugin_api::abi::Opaque;
use galamost_plugin_api::arguments;
use galamost_plugin_api::device::{DeviceFn, DevicePtr, DeviceText};
use galamost_plugin_api::precision::Precision;
use galamost_plugin_api::prelude::*;
use galamost_plugin_api::services::{Kernel, Module};
use galamost_plugin_api::views::{LinkView, StateView};

/// Threads of a block of the kernels over particles.
pub const BLOCK: u32 = 128;
/// Maximum number of blocks that sum over waves or particles.
pub const SUM_BLOCKS: u32 = 264;

/// Arguments that both methods share.
#[repr(C)]
#[derive(Clone, Copy, DeviceStruct)]
pub struct ChargeArgs {
    pub state: StateView,
    #[device(cxx = "const u32*")]
    excluded_count: DevicePtr<u32>,
    #[device(cxx = "const u32*")]
    excluded: DevicePtr<u32>,
    excluded_capacity: u64,
    /// Scaled special pairs as bonds, and their weights by type.
    special: LinkView,
    special_weight: [f64; 3],
    sums: DevicePtr<Sums>,
    quantities: DevicePtr<f64>,
    #[device(cxx = "double*")]
    partial: DevicePtr<u8>,
    #[device(cxx = "u32*")]
    counter: DevicePtr<u8>,
    /// Net charge, and the sum of q r along the normal of the slab.
    #[device(cxx = "double*")]
    totals: DevicePtr<u8>,
    /// Virial of the waves.
    #[device(cxx = "double*")]
    virial: DevicePtr<u8>,
    /// Energy of a unit charge of each type in the background of a net charge of 1, times −V.
    #[device(cxx = "const double*")]
    background: DevicePtr<u8>,
    split: SplitTerms<f64>,
    /// b, c and c/sinh c of the split.
    window: [f64; 3],
    coulomb: f64,
    own: f64,
    slab_constant: f64,
    /// As in [`Model`].
    slab_face: f64,
    slab_limit: f64,
    /// Normal of the slab; 3 for none.
    slab: u32,
    pub full: u32,
    /// Number of the component, for faults.
    component: u32,
    reserved: u32,
}

/// Memory and kernels of the corrections.
pub struct DeviceCharges {
    totals_kernel: Kernel,
    partial: DevicePtr<u8>,
    counter: DevicePtr<u8>,
    totals: DevicePtr<u8>,
    virial: DevicePtr<u8>,
    background: DevicePtr<u8>,
}

/// Allocates device memory with the given contents.
///
/// # Errors
/// Returns an error if the device is out of memory.
pub fn upload(host: &Host, bytes: &[u8]) -> Result<DevicePtr<u8>> {
    let memory = host.allocate_bytes(bytes.len().max(8))?;
    host.upload_bytes(memory, bytes)?;
    Ok(memory)
}

/// Converts numbers to the precision of the run.
pub fn to_bytes(model: &Model, numbers: impl IntoIterator<Item = f64>) -> Vec<u8> {
    match model.precision {
        Precision::Double => numbers.into_iter().flat_map(f64::to_ne_bytes).collect(),
        _ => numbers.into_iter().flat_map(|x| (x as f32).to_ne_bytes()).collect(),
    }
}

/// Returns the source of a method with the structs of its arguments.
///
/// # Errors
/// Returns an error if two structs or functions have the same name.
pub fn source(args: &'static DeviceText, settings: &str, kernels: &str) -> Result<String> {
    let text = format!("{settings}{}{kernels}", include_str!("correction.cuh"));
    kernel_source(&[fourier_pair::text(), window_transform::text(), args], &text)
}

impl DeviceCharges {
    /// Allocates memory for sums over `rows` blocks of seven numbers.
    ///
    /// # Errors
    /// Returns an error if the device is out of memory.
    pub fn new(host: &Host, model: &Model, module: Module, rows: usize) -> Result<Self> {
        let rows = rows.max(model.n.div_ceil(BLOCK as usize)).max(SUM_BLOCKS as usize);
        Ok(Self {
            totals_kernel: host.kernel(module, "charge_totals")?,
            partial: host.allocate_bytes(56 * rows)?,
            counter: upload(host, &[0; 8])?,
            totals: upload(host, &[0; 16])?,
            virial: upload(host, &[0; 48])?,
            background: upload(host, &model.background().into_iter().flat_map(f64::to_ne_bytes).collect::<Vec<u8>>())?,
        })
    }

    /// Returns the arguments of an evaluation.
    pub fn arguments(&self, model: &Model, call: &ForceCall) -> ChargeArgs {
        // SAFETY: the engine has made the call
        let special = unsafe { call.special() };
        ChargeArgs {
            state: call.state,
            excluded_count: call.excluded_count,
            excluded: call.excluded,
            excluded_capacity: call.excluded_capacity,
            special: special.map_or(LinkView::empty(2), |s| s.pairs),
            special_weight: special.map_or([0.0; 3], |s| s.coulomb),
            sums: call.device_sums,
            quantities: call.quantities,
            partial: self.partial,
            counter: self.counter,
            totals: self.totals,
            virial: self.virial,
            background: self.background,
            split: model.terms,
            window: [model.split.radius, model.split.shape, model.split.scale],
            coulomb: model.coulomb,
            own: model.self_energy(),
            slab_constant: model.slab_constant(),
            slab_face: model.slab_face,
            slab_limit: model.slab_limit,
            slab: model.slab.map_or(3, |axis| axis as u32),
            full: u32::from(call.wanted.more_than_force()),
            component: call.component,
            reserved: 0,
        }
    }

    /// Launches the sums of charges if they are needed: for energies, as a uniform background has no forces, or a slab.
    ///
    /// # Errors
    /// Returns the driver's error.
    ///
    /// # Safety
    /// The arguments are those of [`Self::arguments`] for a call with valid views.
    pub unsafe fn launch_totals(&self, host: &Host, args: &ChargeArgs) -> Result<()> {
        if args.slab > 2 && args.full == 0 {
            return Ok(());
        }
        let blocks = args.state.n_local.div_ceil(256).min(SUM_BLOCKS);
        let mut arguments: [*mut Opaque; 1] = arguments![*args];
        // SAFETY: the kernel has one parameter of this type
        unsafe { host.launch(self.totals_kernel, blocks, 256, &mut arguments) }
    }
}
