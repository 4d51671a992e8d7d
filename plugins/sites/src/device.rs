//! The kernels of sites.

use galamost_plugin_api::device::{DeviceFn, DevicePtr, constants};
use galamost_plugin_api::place::PlaceKernels;
use galamost_plugin_api::prelude::*;
use galamost_sites::{ATOMS, FORM, LINEAR, MOST, NUMBERS, USES, place_site, spread_force};

/// Arrays that the kernels read.
#[repr(C)]
#[derive(Clone, Copy, DeviceStruct)]
pub struct SiteArrays {
    #[device(cxx = "const u32*")]
    form: DevicePtr<u8>,
    #[device(cxx = "const int*")]
    atoms: DevicePtr<u8>,
    #[device(cxx = "const real*")]
    numbers: DevicePtr<u8>,
    #[device(cxx = "const int*")]
    uses: DevicePtr<u8>,
}

impl SiteArrays {
    /// Returns the arrays of the run.
    pub fn of(host: &Host) -> Self {
        Self { form: host.array(FORM), atoms: host.array(ATOMS), numbers: host.array(NUMBERS), uses: host.array(USES) }
    }
}

/// Compiles the kernels, for `n` particles.
///
/// # Errors
/// Returns an error if compilation or allocation fails.
pub fn kernels(host: &Host, n: u64) -> Result<PlaceKernels> {
    let names = constants(&[("LINEAR", LINEAR), ("MOST", MOST as u32)]);
    let texts = [SiteArrays::text(), <place_site as DeviceFn>::text(), <spread_force as DeviceFn>::text()];
    PlaceKernels::new(host, n, "sites", &texts, &format!("{names}{}", include_str!("sites.cuh")))
}
