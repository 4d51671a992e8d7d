//! Times of kernels, measured with events.

use super::context::{CudaDevice, Inner};
use super::driver::{call, fail};
use crate::device::ptx::{WAIT_NANOSECONDS, WAIT_PTX};
use crate::profile::Timing;
use cudarc::driver::sys;
use galamost_plugin_api::error::Result;
use std::ffi::CString;
use std::sync::Arc;

/// A timed launch: it lasted from the previous event to this one.
pub(super) struct Timed {
    event: sys::CUevent,
    /// Part and kernel of the launch; `None` for an event that only starts the clock.
    launch: Option<(Arc<str>, usize)>,
}

impl CudaDevice {
    /// Records an event after everything launched before.
    fn record(&self) -> Result<sys::CUevent> {
        let mut event = std::ptr::null_mut();
        // SAFETY: the pointer and the stream are valid
        unsafe {
            call!(cuEventCreate(&raw mut event, 0))?;
            call!(cuEventRecord(event, self.stream))?;
        }
        Ok(event)
    }

    /// Starts the clock before a timed launch if the device is idle. A waiting kernel lets launches queue up first, so
    /// the host's launch overhead is not measured.
    pub(super) fn start_clock(&self, inner: &mut Inner) -> Result<()> {
        if !std::mem::replace(&mut inner.idle, false) {
            return Ok(());
        }
        let wait = match inner.wait {
            Some(wait) => wait,
            None => {
                let ptx = CString::new(WAIT_PTX).map_err(|e| fail("wait", e))?;
                let wait = self.function(Self::load(ptx.as_bytes_with_nul())?, "wait")?;
                *inner.wait.insert(wait)
            }
        };
        let (stream, none) = (self.stream, std::ptr::null_mut());
        let mut args = [std::ptr::from_ref(&WAIT_NANOSECONDS).cast_mut().cast()];
        // SAFETY: the kernel takes one 64-bit word, and the call copies it
        unsafe { call!(cuLaunchKernel(wait, 1, 1, 1, 1, 1, 1, 0, stream, args.as_mut_ptr(), none))? };
        inner.timed.push(Timed { event: self.record()?, launch: None });
        Ok(())
    }

    /// Records the end of a timed launch of kernel number `kernel`.
    pub(super) fn stop_clock(&self, inner: &mut Inner, kernel: usize) -> Result<()> {
        let launch = Some((self.profile.part(), kernel));
        inner.timed.push(Timed { event: self.record()?, launch });
        Ok(())
    }

    /// Waits for all launches and evaluates the events.
    pub(super) fn collect_timings(&self) -> Result<Vec<Timing>> {
        let mut inner = self.activate()?;
        let inner = &mut *inner;
        inner.idle = true;
        // SAFETY: this device created the events and destroys each once
        unsafe {
            call!(cuStreamSynchronize(self.stream))?;
            let mut before = None;
            for t in inner.timed.drain(..) {
                if let (Some(from), Some((part, kernel))) = (before, t.launch) {
                    let mut milliseconds = 0.0;
                    call!(cuEventElapsedTime_v2(&raw mut milliseconds, from, t.event))?;
                    self.profile.add(part, &inner.names[kernel], 1e-3 * f64::from(milliseconds));
                }
                if let Some(event) = before.replace(t.event) {
                    call!(cuEventDestroy_v2(event))?;
                }
            }
            if let Some(event) = before {
                call!(cuEventDestroy_v2(event))?;
            }
        }
        Ok(self.profile.end())
    }
}
