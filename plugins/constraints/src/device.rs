//! The kernels of constraints and their memory.

use crate::clusters::{Clusters, Interleaved, LANES};
use crate::{COSINE, PASSES, REFERENCE};
use galamost_plugin_api::device::{DevicePtr, Plain, constants};
use galamost_plugin_api::place::PlaceKernels;
use galamost_plugin_api::prelude::*;

/// Arrays that the kernels use. Those of clusters are as in [`Interleaved`].
#[repr(C)]
#[derive(Clone, Copy, DeviceStruct)]
pub struct ConstraintArrays {
    #[device(cxx = "real*")]
    reference: DevicePtr<u8>,
    #[device(cxx = "const u32*")]
    starts: DevicePtr<u8>,
    #[device(cxx = "const u32*")]
    sizes: DevicePtr<u8>,
    #[device(cxx = "const u32*")]
    members: DevicePtr<u8>,
    #[device(cxx = "const u32*")]
    pairs: DevicePtr<u8>,
    #[device(cxx = "const double*")]
    squares: DevicePtr<u8>,
    /// Ten numbers for each member.
    #[device(cxx = "double*")]
    work: DevicePtr<u8>,
    /// Four numbers for each constraint.
    #[device(cxx = "double*")]
    vectors: DevicePtr<u8>,
    /// Not 0 if velocities are those in the middle of the step.
    #[device(cxx = "u32*")]
    half: DevicePtr<u8>,
    tolerance: f64,
    /// Number of clusters.
    n: u32,
    /// Padding; 0.
    reserved: u32,
}

/// The kernels and their memory.
pub struct ConstraintKernels {
    kernels: PlaceKernels,
    arrays: ConstraintArrays,
}

impl ConstraintKernels {
    /// Compiles the kernels and uploads the clusters.
    ///
    /// # Errors
    /// Returns an error if compilation or allocation fails.
    pub fn new(host: &Host, clusters: &Clusters, tolerance: f64) -> Result<Self> {
        let text = format!(
            "{}static constexpr double COSINE = {COSINE:?};\n",
            constants(&[("PASSES", PASSES), ("STRIDE", LANES as u32)])
        );
        let text = format!("{text}{}", include_str!("constraints.cuh"));
        let (n, all) = (clusters.len() as u32, Interleaved::new(clusters));
        Ok(Self {
            kernels: PlaceKernels::of_items(host, n, "constraints", &[ConstraintArrays::text()], &text)?,
            arrays: ConstraintArrays {
                reference: DevicePtr::null(),
                starts: upload(host, all.starts.as_flattened())?,
                sizes: upload(host, all.sizes.as_flattened())?,
                members: upload(host, &all.members)?,
                pairs: upload(host, &all.pairs)?,
                squares: upload(host, &all.squares)?,
                work: host.allocate_bytes(40 * all.members.len().max(1))?,
                vectors: host.allocate_bytes(32 * all.squares.len().max(1))?,
                half: host.allocate_bytes(8)?,
                tolerance,
                n,
                reserved: 0,
            },
        })
    }

    /// Constrains positions and velocities.
    ///
    /// # Errors
    /// Returns an error if the launch fails.
    ///
    /// # Safety
    /// The views of the call describe valid arrays of the device.
    pub unsafe fn place(&self, host: &Host, call: &ForceCall) -> Result<()> {
        let arrays = ConstraintArrays { reference: host.array(REFERENCE), ..self.arrays };
        // SAFETY: the contract of this function is passed on
        unsafe { self.kernels.place(host, call, arrays) }
    }

    /// Adds the forces of constraints.
    ///
    /// # Errors
    /// Returns an error if the launch fails.
    ///
    /// # Safety
    /// The views of the call describe valid arrays of the device.
    pub unsafe fn add_forces(&self, host: &Host, call: &ForceCall) -> Result<()> {
        let arrays = ConstraintArrays { reference: host.array(REFERENCE), ..self.arrays };
        // SAFETY: the contract of this function is passed on
        unsafe { self.kernels.collect(host, call, arrays) }
    }
}

/// Uploads values to new memory.
fn upload<T: Plain>(host: &Host, values: &[T]) -> Result<DevicePtr<u8>> {
    let memory = host.allocate::<T>(values.len().max(1))?;
    host.upload(memory, values)?;
    Ok(memory.cast())
}
