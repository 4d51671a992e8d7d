//! Memory of a GPU: allocation and copies.

use super::context::{CudaDevice, Inner};
use super::driver::{call, fail};
use crate::device::{Device, Services, check_range, not_stored};
use cudarc::driver::sys;
use galamost_plugin_api::error::Result;
use std::ops::Range;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Smallest allocation in bytes.
const MIN_BYTES: usize = 256;

/// Largest copy in bytes that does not wait for the device.
const QUEUED_BYTES: usize = 1 << 16;

/// Largest copy in bytes to the host that goes through page-locked memory, to which the driver copies without detours.
pub(super) const STAGED_BYTES: usize = 1 << 14;

/// Time after which a thread that waits for a kernel lets others run.
const SPIN: Duration = Duration::from_micros(100);

/// Time between two looks for failures.
const LOOK: Duration = Duration::from_millis(20);

impl Inner {
    /// Returns an error unless the range is inside an allocation.
    pub(super) fn check_range(&self, address: u64, bytes: usize) -> Result<()> {
        check_range(address, bytes, self.sizes.range(..=address).next_back().map(|(at, size)| (*at, *size)))
    }

    /// Divides a range of memory at the ends of the parts of a distributed array: addresses, and places in the range. The page at such
    /// an end belongs to the GPU before it, so a piece may begin on that GPU.
    pub(super) fn pieces(&self, address: u64, bytes: usize) -> Vec<(u64, Range<usize>)> {
        let mut pieces = vec![];
        let mut from = 0;
        if let Some((at, (distribution, _))) = self.distributed.range(..=address).next_back() {
            for end in &distribution.ends {
                let to = (at + *end as u64).saturating_sub(address).min(bytes as u64) as usize;
                if to > from {
                    pieces.push((address + from as u64, from..to));
                    from = to;
                }
            }
        }
        if from < bytes {
            pieces.push((address + from as u64, from..bytes));
        }
        pieces
    }
}

impl CudaDevice {
    /// Waits until the device has done everything before, if the wait is watched.
    ///
    /// # Errors
    /// Returns the error of the function that watches. Errors of the device remain for the next call of the driver.
    pub(super) fn wait_watched(&self) -> Result<()> {
        let Some(watch) = self.watch.lock().unwrap_or_else(PoisonError::into_inner).clone() else { return Ok(()) };
        let begun = Instant::now();
        let mut looked = begun;
        loop {
            drop(self.activate()?);
            // SAFETY: the device owns the stream
            if unsafe { sys::cuStreamQuery(self.stream) } != sys::CUresult::CUDA_ERROR_NOT_READY {
                return Ok(());
            }
            if looked.elapsed() > LOOK {
                watch(begun)?;
                looked = Instant::now();
            }
            std::thread::yield_now();
        }
    }

    /// Waits for a number of at least `least` in memory of the host that kernels access. Looks for failures as [`Self::wait_watched`] does.
    pub(super) fn spin(&self, address: u64, least: u64) -> Result<u64> {
        self.activate()?.check_range(address, 8)?;
        // SAFETY: the 8 bytes are in an allocation, which the caller says is page-locked memory of the host; kernels store whole words
        let read = || unsafe { std::ptr::read_volatile(address as *const u64) };
        let begun = Instant::now();
        let mut looked = begun;
        loop {
            let number = read();
            if number >= least {
                return Ok(number);
            }
            if looked.elapsed() > LOOK {
                looked = Instant::now();
                drop(self.activate()?);
                // SAFETY: the device owns the stream
                let status = unsafe { sys::cuStreamQuery(self.stream) };
                if status == sys::CUresult::CUDA_ERROR_NOT_READY {
                    let watch = self.watch.lock().unwrap_or_else(PoisonError::into_inner).clone();
                    watch.map_or(Ok(()), |watch| watch(begun))?;
                } else if read() < least {
                    // returns the error of a kernel, if there is one
                    self.synchronize()?;
                    return Err(not_stored(self.name()));
                }
            }
            if begun.elapsed() > SPIN {
                std::thread::yield_now();
            }
        }
    }

    pub(super) fn allocate_bytes(&self, bytes: usize) -> Result<u64> {
        let mut inner = self.activate()?;
        let bytes = bytes.max(MIN_BYTES);
        let mut address = 0;
        // SAFETY: the pointer is valid, and the new allocation has `bytes` bytes
        unsafe {
            if let Err(e) = call!(cuMemAlloc_v2(&raw mut address, bytes)) {
                let used = self.used.load(Ordering::Relaxed);
                return Err(fail("GPU memory", format!("cannot allocate {bytes} bytes; {used} are in use: {e}")));
            }
            call!(cuMemsetD8Async(address, 0, bytes, self.stream))?;
        }
        inner.sizes.insert(address, bytes as u64);
        self.used.fetch_add(bytes as u64, Ordering::Relaxed);
        Ok(address)
    }

    /// Allocates page-locked memory of the host. With unified addressing, which all 64-bit hosts have, kernels use the same address.
    pub(super) fn allocate_host_bytes(&self, bytes: usize) -> Result<u64> {
        let mut inner = self.activate()?;
        let bytes = bytes.max(MIN_BYTES);
        let mut at = std::ptr::null_mut();
        // SAFETY: the pointer is valid, and the new allocation has `bytes` bytes
        unsafe {
            call!(cuMemHostAlloc(&raw mut at, bytes, sys::CU_MEMHOSTALLOC_DEVICEMAP))?;
            std::ptr::write_bytes(at.cast::<u8>(), 0, bytes);
        }
        let address = at as u64;
        inner.sizes.insert(address, bytes as u64);
        inner.mapped.insert(address);
        Ok(address)
    }

    pub(super) fn free_bytes(&self, address: u64) -> Result<()> {
        if self.detach(address)? {
            return Ok(());
        }
        // after a failure, nothing keeps the device busy
        let _ = self.wait_watched();
        let mut inner = self.activate()?;
        let size =
            inner.sizes.remove(&address).ok_or_else(|| fail("free", format!("{address:#x} is not allocated")))?;
        let mapped = inner.mapped.remove(&address);
        // SAFETY: cuMemAlloc or cuMemHostAlloc returned the address, and nothing uses it after the synchronization
        unsafe {
            call!(cuStreamSynchronize(self.stream))?;
            if mapped {
                return call!(cuMemFreeHost(address as *mut std::ffi::c_void));
            }
            self.used.fetch_sub(size, Ordering::Relaxed);
            call!(cuMemFree_v2(address))
        }
    }

    pub(super) fn copy_to_device(&self, address: u64, bytes: &[u8]) -> Result<()> {
        self.wait_watched()?;
        let mut inner = self.activate()?;
        if bytes.is_empty() {
            return Ok(());
        }
        inner.check_range(address, bytes.len())?;
        inner.idle = true;
        // SAFETY: the range was checked, and `inner` is locked, so nothing frees it; the copy ends before the call returns
        unsafe {
            for (at, range) in inner.pieces(address, bytes.len()) {
                call!(cuMemcpyHtoDAsync_v2(at, bytes[range.clone()].as_ptr().cast(), range.len(), self.stream))?;
            }
            call!(cuStreamSynchronize(self.stream))
        }
    }

    /// Copies a small number of bytes without waiting for earlier launches.
    pub(super) fn queue_copy_to_device(&self, address: u64, bytes: &[u8]) -> Result<()> {
        if bytes.is_empty() || bytes.len() > QUEUED_BYTES {
            return self.copy_to_device(address, bytes);
        }
        let inner = self.activate()?;
        inner.check_range(address, bytes.len())?;
        // SAFETY: the range was checked, and frees wait for the stream; the driver has copied pageable memory when it returns, and
        // nothing borrows page-locked memory
        unsafe { call!(cuMemcpyHtoDAsync_v2(address, bytes.as_ptr().cast(), bytes.len(), self.stream)) }
    }

    pub(super) fn copy_from_device(&self, address: u64, bytes: &mut [u8]) -> Result<()> {
        self.wait_watched()?;
        let mut inner = self.activate()?;
        if bytes.is_empty() {
            return Ok(());
        }
        inner.check_range(address, bytes.len())?;
        let staged = bytes.len() <= STAGED_BYTES;
        let to = if staged { self.staging as *mut u8 } else { bytes.as_mut_ptr() };
        // SAFETY: the range was checked; `to` has room for these bytes, and `inner` is locked, so nothing else uses the memory for small
        // copies; the stream is synchronized before `bytes` and the allocation can be freed
        unsafe {
            for (at, range) in inner.pieces(address, bytes.len()) {
                call!(cuMemcpyDtoHAsync_v2(to.add(range.start).cast(), at, range.len(), self.stream))?;
            }
            call!(cuStreamSynchronize(self.stream))?;
            if staged {
                std::ptr::copy_nonoverlapping(to, bytes.as_mut_ptr(), bytes.len());
            }
        }
        inner.idle = true;
        Ok(())
    }
}
