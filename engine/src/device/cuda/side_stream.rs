//! A second stream, whose launches overlap with those of the first one.

use super::context::{CudaDevice, Inner};
use super::driver::call;
use cudarc::driver::sys;
use galamost_plugin_api::error::Result;

/// The second stream. The first one has a higher priority, so its blocks are scheduled before those of this one.
pub(super) struct SideStream {
    stream: sys::CUstream,
    /// The events that the second and the first stream wait for.
    fork: sys::CUevent,
    join: sys::CUevent,
    /// Launches go to the second stream.
    is_used: bool,
}

impl SideStream {
    fn new() -> Result<Self> {
        let (mut stream, mut events) = (std::ptr::null_mut(), [std::ptr::null_mut(); 2]);
        // SAFETY: the pointers are valid
        unsafe {
            call!(cuStreamCreate(&raw mut stream, sys::CUstream_flags_enum::CU_STREAM_NON_BLOCKING as u32))?;
            for event in &mut events {
                call!(cuEventCreate(event, sys::CUevent_flags_enum::CU_EVENT_DISABLE_TIMING as u32))?;
            }
        }
        let [fork, join] = events;
        Ok(Self { stream, fork, join, is_used: false })
    }
}

impl Drop for SideStream {
    fn drop(&mut self) {
        // SAFETY: these handles were created in `new`, and are destroyed once; a destructor cannot return errors
        unsafe {
            let _ = call!(cuStreamSynchronize(self.stream));
            let _ = call!(cuStreamDestroy_v2(self.stream));
            let _ = call!(cuEventDestroy_v2(self.fork));
            let _ = call!(cuEventDestroy_v2(self.join));
        }
    }
}

impl CudaDevice {
    /// Returns the stream of a launch.
    pub(super) fn stream_of_launch(&self, inner: &Inner) -> sys::CUstream {
        inner.side.as_ref().filter(|side| side.is_used).map_or(self.stream, |side| side.stream)
    }

    /// As [`crate::device::Device::fork`]. A profile times one launch after the other.
    pub(super) fn fork_stream(&self) -> Result<()> {
        let mut inner = self.activate()?;
        if self.profile.is_on() {
            inner.side = None;
            return Ok(());
        }
        let side = match inner.side.take() {
            Some(side) => side,
            None => SideStream::new()?,
        };
        // SAFETY: the device owns the event and the stream
        unsafe { call!(cuEventRecord(inner.side.insert(side).fork, self.stream)) }
    }

    /// As [`crate::device::Device::on_side_stream`].
    pub(super) fn launch_on_side(&self, body: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        let used = |is_used| -> Result<()> {
            let mut inner = self.activate()?;
            let Some(side) = &mut inner.side else { return Ok(()) };
            // also if the driver fails, later launches go to the first stream
            side.is_used = false;
            // SAFETY: the device owns the events and the stream
            unsafe {
                match is_used {
                    true => call!(cuStreamWaitEvent(side.stream, side.fork, 0))?,
                    false => call!(cuEventRecord(side.join, side.stream))?,
                }
            }
            side.is_used = is_used;
            Ok(())
        };
        used(true)?;
        let done = body();
        used(false).and(done)
    }

    /// As [`crate::device::Device::join`].
    pub(super) fn join_streams(&self) -> Result<()> {
        let inner = self.activate()?;
        let Some(side) = &inner.side else { return Ok(()) };
        // SAFETY: the device owns the event and the stream
        unsafe { call!(cuStreamWaitEvent(self.stream, side.join, 0)) }
    }
}
