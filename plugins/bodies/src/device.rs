//! The kernels of bodies.

use crate::{CENTER, MEMBERS, OFFSET};
use galamost_plugin_api::device::DevicePtr;
use galamost_plugin_api::place::PlaceKernels;
use galamost_plugin_api::prelude::*;

/// Arrays that the kernels read.
#[repr(C)]
#[derive(Clone, Copy, DeviceStruct)]
pub struct BodyArrays {
    #[device(cxx = "const int*")]
    center: DevicePtr<u8>,
    #[device(cxx = "const real*")]
    offset: DevicePtr<u8>,
    #[device(cxx = "const int*")]
    members: DevicePtr<u8>,
}

impl BodyArrays {
    /// Returns the arrays of the run.
    pub fn of(host: &Host) -> Self {
        Self { center: host.array(CENTER), offset: host.array(OFFSET), members: host.array(MEMBERS) }
    }
}

/// Compiles the kernels, for `n` particles.
///
/// # Errors
/// Returns an error if compilation or allocation fails.
pub fn kernels(host: &Host, n: u64) -> Result<PlaceKernels> {
    PlaceKernels::new(host, n, "bodies", &[BodyArrays::text()], include_str!("bodies.cuh"))
}
