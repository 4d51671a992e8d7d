//! The services of the CPU: host memory and no compiler.

use crate::device::{Kernel, Services, SourceUnit, check_range};
use galamost_plugin_api::abi::{Extent, Opaque};
use galamost_plugin_api::error::{Error, Result};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The CPU as plugins see it: host memory and no compiler.
#[derive(Default)]
pub(super) struct CpuServices {
    memory: Mutex<CpuMemory>,
}

#[derive(Default)]
struct CpuMemory {
    /// Allocations by address, with their sizes in bytes.
    own: BTreeMap<u64, (Vec<u128>, usize)>,
    /// Arrays of the run that components may read now: address and size.
    lent: Vec<(u64, u64)>,
}

impl CpuMemory {
    fn check(&self, address: u64, bytes: usize) -> Result<()> {
        let found = self.own.range(..=address).next_back().map(|(at, (_, size))| (*at, *size as u64));
        check_range(address, bytes, found)
    }
}

const NO_COMPILER: &str = "the CPU has no CUDA compiler";

impl CpuServices {
    fn lock(&self) -> MutexGuard<'_, CpuMemory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Services for CpuServices {
    fn name(&self) -> String {
        "CPU".into()
    }
    fn multiprocessors(&self) -> u32 {
        rayon::current_num_threads() as u32
    }
    fn allocate(&self, bytes: usize) -> Result<u64> {
        // 15 extra words leave room to align to 256 bytes
        let n = bytes.div_ceil(16) + 15;
        let mut words: Vec<u128> = vec![];
        words.try_reserve_exact(n).map_err(|e| Error::Run(format!("cannot allocate {bytes} bytes: {e}")))?;
        words.resize(n, 0);
        let address = (words.as_mut_ptr() as u64).next_multiple_of(256);
        self.lock().own.insert(address, (words, bytes));
        Ok(address)
    }
    fn free(&self, address: u64) -> Result<()> {
        let freed = self.lock().own.remove(&address);
        freed.map(drop).ok_or_else(|| Error::Run(format!("{address:#x} is not memory of this host")))
    }
    fn upload(&self, address: u64, bytes: &[u8]) -> Result<()> {
        let memory = self.lock();
        memory.check(address, bytes.len())?;
        // SAFETY: the range is inside an allocation, which no other call accesses or frees while the lock is held; a
        // borrowed slice is not part of it
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), address as *mut u8, bytes.len()) };
        Ok(())
    }
    fn download(&self, address: u64, bytes: &mut [u8]) -> Result<()> {
        let memory = self.lock();
        let lent = memory.lent.iter().find(|(at, size)| (*at..*at + *size).contains(&address));
        match lent {
            Some(lent) => check_range(address, bytes.len(), Some(*lent))?,
            None => memory.check(address, bytes.len())?,
        }
        // SAFETY: the range is inside an allocation, which is not freed while the lock is held, or inside an array that the
        // engine neither changes nor frees before it ends the loan, for which it needs the lock
        unsafe { std::ptr::copy_nonoverlapping(address as *const u8, bytes.as_mut_ptr(), bytes.len()) };
        Ok(())
    }
    fn clear(&self, address: u64, bytes: usize) -> Result<()> {
        let memory = self.lock();
        memory.check(address, bytes)?;
        // SAFETY: the range is inside an allocation (checked), which is not freed while the lock is held
        unsafe { std::ptr::write_bytes(address as *mut u8, 0, bytes) };
        Ok(())
    }
    fn lend(&self, arrays: Vec<(u64, u64)>) {
        self.lock().lent = arrays;
    }
    fn define_macro(&self, _: &'static str) {}
    fn compile(&self, _: &SourceUnit) -> Result<u64> {
        Err(Error::Run(NO_COMPILER.into()))
    }
    fn kernel(&self, _: u64, _: &str) -> Result<Kernel> {
        Err(Error::Run(NO_COMPILER.into()))
    }
    unsafe fn launch(&self, _: Kernel, _: Extent, _: Extent, _: u32, _: &[*mut Opaque]) -> Result<()> {
        Err(Error::Run(NO_COMPILER.into()))
    }
}
