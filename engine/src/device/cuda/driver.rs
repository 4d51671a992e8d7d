//! Calls of the CUDA driver, and queries that need no open device.

use crate::device::nvrtc;
use cudarc::driver::sys;
use galamost_plugin_api::error::{Error, Result};
use std::ffi::CStr;

/// An error of the device, with the call that failed.
pub(super) fn fail(what: &str, message: impl std::fmt::Display) -> Error {
    Error::Device { what: what.into(), message: message.to_string() }
}

/// Returns the driver's error if a call failed.
pub(super) fn check(what: &str, r: sys::CUresult) -> Result<()> {
    if r == sys::CUresult::CUDA_SUCCESS {
        return Ok(());
    }
    let mut text = std::ptr::null();
    // SAFETY: the pointer is valid; the driver returns a static string
    let message = unsafe {
        let known = sys::cuGetErrorString(r, &raw mut text) == sys::CUresult::CUDA_SUCCESS && !text.is_null();
        if known { CStr::from_ptr(text).to_string_lossy().into_owned() } else { String::new() }
    };
    Err(fail(what, format!("{message} ({r:?})")))
}

/// Calls a function of the driver and checks its result.
macro_rules! call {
    ($function:ident($($arg:expr),* $(,)?)) => {
        $crate::device::cuda::driver::check(stringify!($function), cudarc::driver::sys::$function($($arg),*))
    };
}
pub(super) use call;

const NO_DRIVER: &str = "there is no NVIDIA driver (libcuda.so was not found)";

/// Checks whether a GPU can be used, without opening it, and returns its name.
///
/// # Errors
/// Returns the reason if the GPU cannot be used.
pub fn probe(ordinal: u32) -> std::result::Result<String, String> {
    // SAFETY: the call only searches for the library
    if !unsafe { sys::is_culib_present() } {
        return Err(NO_DRIVER.into());
    }
    nvrtc::load().map_err(|e| e.to_string())?;
    // SAFETY: the pointers are valid, and the driver's library is present
    unsafe {
        call!(cuInit(0)).map_err(|e| e.to_string())?;
        let mut n = 0;
        call!(cuDeviceGetCount(&raw mut n)).map_err(|e| e.to_string())?;
        if ordinal >= n as u32 {
            return Err(format!("the driver lists {n} GPU(s), numbered from 0"));
        }
        let mut device = 0;
        call!(cuDeviceGet(&raw mut device, ordinal as i32)).map_err(|e| e.to_string())?;
        let mut name = [0i8; 128];
        call!(cuDeviceGetName(name.as_mut_ptr().cast(), 128, device)).map_err(|e| e.to_string())?;
        Ok(CStr::from_ptr(name.as_ptr().cast()).to_string_lossy().into_owned())
    }
}

/// Returns the newest CUDA version that the driver supports (1000 · major + 10 · minor) and the GPUs with their memory.
///
/// # Errors
/// Returns an error if there is no driver, or the driver's error.
pub fn driver() -> Result<(i32, Vec<String>)> {
    // SAFETY: the call only searches for the library
    if !unsafe { sys::is_culib_present() } {
        return Err(fail("driver", NO_DRIVER));
    }
    // SAFETY: the pointers are valid, and the driver's library is present
    unsafe {
        call!(cuInit(0))?;
        let (mut version, mut n) = (0, 0);
        call!(cuDriverGetVersion(&raw mut version))?;
        call!(cuDeviceGetCount(&raw mut n))?;
        let mut devices = vec![];
        for ordinal in 0..n {
            let (mut device, mut name, mut bytes) = (0, [0i8; 128], 0);
            call!(cuDeviceGet(&raw mut device, ordinal))?;
            call!(cuDeviceGetName(name.as_mut_ptr().cast(), 128, device))?;
            call!(cuDeviceTotalMem_v2(&raw mut bytes, device))?;
            let name = CStr::from_ptr(name.as_ptr().cast()).to_string_lossy().into_owned();
            devices.push(format!("{name}, {:.0} GiB", bytes as f64 / 1024f64.powi(3)));
        }
        Ok((version, devices))
    }
}

/// Returns the version of the NVIDIA driver that its kernel module reports.
pub fn driver_version() -> Option<String> {
    let text = std::fs::read_to_string("/proc/driver/nvidia/version").ok()?;
    let is_version = |w: &&str| w.split('.').count() >= 2 && w.chars().all(|c| c.is_ascii_digit() || c == '.');
    text.lines().next()?.split_whitespace().find(is_version).map(String::from)
}
