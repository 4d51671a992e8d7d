//! Several GPUs of one host that read each other's memory.

use super::context::CudaDevice;
use super::driver::{call, driver, fail};
use cudarc::driver::sys;
use galamost_plugin_api::error::Result;

/// Returns why the GPUs from `first` on, `count` of them, cannot share a run.
///
/// # Errors
/// See above.
pub fn check_peers(first: u32, count: u32) -> std::result::Result<(), String> {
    let present = driver().map_err(|e| e.to_string())?.1.len() as u32;
    if first + count > present {
        let after = if first > 0 { format!(" from number {first} on") } else { String::new() };
        return Err(format!("{count} GPUs{after}; the driver lists {present}"));
    }
    for a in first..first + count {
        for b in first..first + count {
            let mut can = 1;
            // SAFETY: the pointer is valid, `driver` has initialized the driver, and ordinals are device handles' numbers
            let asked = unsafe {
                let (mut from, mut to) = (0, 0);
                call!(cuDeviceGet(&raw mut from, a as i32))
                    .and_then(|()| call!(cuDeviceGet(&raw mut to, b as i32)))
                    .and_then(|()| if a == b { Ok(()) } else { call!(cuDeviceCanAccessPeer(&raw mut can, from, to)) })
            };
            asked.map_err(|e| e.to_string())?;
            if can == 0 {
                return Err(format!(
                    "GPU {a} cannot read the memory of GPU {b} (no NVLink, or PCIe without peer access)"
                ));
            }
        }
    }
    Ok(())
}

/// Opens a GPU for one of several processes that share a run. Each step is launched by the host, which sends messages.
///
/// # Errors
/// Returns the driver's error.
pub fn open_process(ordinal: u32) -> Result<CudaDevice> {
    let mut device = CudaDevice::new(ordinal, 1)?;
    device.shared = true;
    Ok(device)
}

/// Returns the number of GPUs, and the identifier of one of them, which is the same in all processes of its host.
///
/// # Errors
/// Returns the driver's error.
pub fn identify(ordinal: u32) -> Result<(u32, String)> {
    let count = driver()?.1.len() as u32;
    let (mut device, mut id) = (0, sys::CUuuid { bytes: [0; 16] });
    // SAFETY: the pointers are valid, and `driver` has initialized the driver
    unsafe {
        call!(cuDeviceGet(&raw mut device, ordinal as i32))?;
        call!(cuDeviceGetUuid_v2(&raw mut id, device))?;
    }
    Ok((count, id.bytes.iter().map(|b| format!("{:02x}", *b as u8)).collect()))
}

/// Opens the GPUs from `first` on, `count` of them, and lets them read each other's memory. With `shared`, opens the first
/// one `count` times.
///
/// # Errors
/// Returns the driver's error.
pub fn open_peers(first: u32, count: u32, shared: bool) -> Result<Vec<CudaDevice>> {
    let ordinal = |k: u32| if shared { first } else { first + k };
    let mut devices = (0..count).map(|k| CudaDevice::new(ordinal(k), 1)).collect::<Result<Vec<_>>>()?;
    for d in &mut devices {
        // graphs with conditions would wait for each other
        d.shared |= shared && count > 1;
        d.eager = true;
    }
    for a in &devices {
        for b in devices.iter().filter(|b| b.context != a.context) {
            // SAFETY: both devices hold their contexts
            let enabled = unsafe {
                call!(cuCtxSetCurrent(a.context))?;
                sys::cuCtxEnablePeerAccess(b.context, 0)
            };
            match enabled {
                sys::CUresult::CUDA_SUCCESS | sys::CUresult::CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED => {}
                other => return Err(fail("peer access", format!("{} and {}: {other:?}", a.name, b.name))),
            }
        }
    }
    Ok(devices)
}
