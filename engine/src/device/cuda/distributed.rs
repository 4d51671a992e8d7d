//! Arrays whose pages lie on several GPUs of one host, at the same address on all of them.

use super::context::CudaDevice;
use super::driver::{call, fail};
use crate::device::distributed::{Distribution, Registry};
use cudarc::driver::sys;
use galamost_plugin_api::error::Result;
use std::sync::atomic::Ordering;

/// Consecutive pages on one GPU.
struct Run {
    begin: usize,
    end: usize,
    ordinal: u32,
}

/// A range of addresses with the pages of an array.
struct Pages {
    /// Where the range begins; the array begins inside its first page.
    base: u64,
    /// The size of the range.
    bytes: usize,
    /// What is mapped, from `base` on.
    mapped: usize,
    distribution: Distribution,
    /// Bytes between `base` and the array.
    offset: usize,
}

static ARRAYS: Registry<Pages> = Registry::new();

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: the range was reserved by `map`, and no device has the array attached, so none uses it; a destructor cannot
        // return errors
        unsafe {
            if self.mapped > 0 {
                let _ = call!(cuMemUnmap(self.base, self.mapped));
            }
            let _ = call!(cuMemAddressFree(self.base, self.bytes));
        }
    }
}

/// Returns the location of memory on a GPU.
fn location(ordinal: u32) -> sys::CUmemLocation {
    sys::CUmemLocation { type_: sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE, id: ordinal as i32 }
}

/// Returns the properties of pages on a GPU.
fn properties(ordinal: u32) -> sys::CUmemAllocationProp {
    sys::CUmemAllocationProp {
        type_: sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
        requestedHandleTypes: sys::CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_NONE,
        location: location(ordinal),
        win32HandleMetaData: std::ptr::null_mut(),
        allocFlags: sys::CUmemAllocationProp_st__bindgen_ty_1 {
            compressionType: 0,
            gpuDirectRDMACapable: 0,
            usage: 0,
            reserved: [0; 4],
        },
    }
}

/// Returns the pages of an array that begins `offset` bytes after the first page begins.
fn runs(distribution: &Distribution, offset: usize, page: usize) -> Vec<Run> {
    let mut all = vec![];
    let mut begin = 0;
    for (end, ordinal) in distribution.page_ends(offset, page).into_iter().zip(&distribution.ordinals) {
        if end > begin {
            all.push(Run { begin, end, ordinal: *ordinal });
            begin = end;
        }
    }
    all
}

/// Returns the size of pages on a GPU.
pub(super) fn page_size(ordinal: u32) -> Result<usize> {
    use sys::CUmemAllocationGranularity_flags::CU_MEM_ALLOC_GRANULARITY_RECOMMENDED as RECOMMENDED;
    let (mut page, properties) = (0, properties(ordinal));
    // SAFETY: the pointers are valid
    unsafe { call!(cuMemGetAllocationGranularity(&raw mut page, &raw const properties, RECOMMENDED))? };
    Ok(page)
}

/// Maps an array.
fn map(distribution: &Distribution) -> Result<Pages> {
    let sizes = distribution.ordinals.iter().map(|o| page_size(*o)).collect::<Result<Vec<_>>>()?;
    let page = sizes.into_iter().max().unwrap_or(1);
    let offset = distribution.offset(page);
    let all = runs(distribution, offset, page);
    let bytes = all.last().map_or(page, |r| r.end);
    let mut base = 0;
    // SAFETY: the pointer is valid
    unsafe { call!(cuMemAddressReserve(&raw mut base, bytes, page, 0, 0))? };
    let mut pages = Pages { base, bytes, mapped: 0, distribution: distribution.clone(), offset };
    for run in &all {
        let (size, properties) = (run.end - run.begin, properties(run.ordinal));
        let mut handle = 0;
        // SAFETY: the pointers are valid, the range was reserved and is not mapped yet; the mapping keeps the memory alive after the
        // release of its handle
        unsafe {
            if let Err(e) = call!(cuMemCreate(&raw mut handle, size, &raw const properties, 0)) {
                return Err(fail("GPU memory", format!("cannot allocate {size} bytes on GPU {}: {e}", run.ordinal)));
            }
            let mapped = call!(cuMemMap(base + run.begin as u64, size, 0, handle, 0));
            call!(cuMemRelease(handle))?;
            mapped?;
        }
        pages.mapped = run.end;
    }
    let mut ordinals = distribution.ordinals.clone();
    ordinals.sort_unstable();
    ordinals.dedup();
    let flags = sys::CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    let access: Vec<_> = ordinals.into_iter().map(|o| sys::CUmemAccessDesc { location: location(o), flags }).collect();
    // SAFETY: the whole range is mapped
    unsafe { call!(cuMemSetAccess(base, bytes, access.as_ptr(), access.len()))? };
    Ok(pages)
}

impl CudaDevice {
    pub(super) fn map_distributed(&self, distribution: &Distribution) -> Result<u64> {
        drop(self.activate()?);
        let pages = map(distribution)?;
        let address = pages.base + pages.offset as u64;
        ARRAYS.insert(address, pages);
        Ok(address)
    }

    pub(super) fn attach(&self, address: u64, rank: usize) -> Result<()> {
        let distribution = ARRAYS.attach(address, |pages| pages.distribution.clone())?;
        let mut inner = self.activate()?;
        let (begin, end) = distribution.part(rank);
        inner.sizes.insert(address, distribution.bytes() as u64);
        inner.distributed.insert(address, (distribution, rank));
        self.used.fetch_add((end - begin) as u64, Ordering::Relaxed);
        // SAFETY: the part is mapped, and this device accesses it
        unsafe { call!(cuMemsetD8Async(address + begin as u64, 0, end - begin, self.stream)) }
    }

    /// Detaches a distributed array. Returns whether there is one.
    pub(super) fn detach(&self, address: u64) -> Result<bool> {
        let mut inner = self.activate()?;
        let Some((distribution, rank)) = inner.distributed.remove(&address) else { return Ok(false) };
        inner.sizes.remove(&address);
        let (begin, end) = distribution.part(rank);
        self.used.fetch_sub((end - begin) as u64, Ordering::Relaxed);
        // SAFETY: the device owns the stream; nothing of this device uses the array after the synchronization
        let ended = unsafe { call!(cuStreamSynchronize(self.stream)) };
        drop(ARRAYS.detach(address));
        ended.map(|()| true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_belong_to_the_first_device_with_bytes_in_them() {
        let d = Distribution { ordinals: vec![0, 1, 2, 3], ends: vec![130, 260, 390, 500] };
        let offset = d.offset(100);
        let all: Vec<_> = runs(&d, offset, 100).iter().map(|r| (r.begin, r.end, r.ordinal)).collect();
        assert_eq!((offset, all), (40, vec![(0, 200, 0), (200, 300, 1), (300, 500, 2), (500, 600, 3)]));
        // the parts are smaller than a page
        let d = Distribution { ordinals: vec![0, 1, 2], ends: vec![10, 20, 30] };
        let all: Vec<_> = runs(&d, 90, 100).iter().map(|r| (r.begin, r.end, r.ordinal)).collect();
        assert_eq!(all, vec![(0, 100, 0), (100, 200, 1)]);
    }
}
