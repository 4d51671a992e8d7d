//! A device without kernels.

use galamost_engine::device::{Kernel, Services, SourceUnit, kernel_names};
use galamost_engine::plugins::host::Collectives;
use galamost_plugin_api::abi::{Extent, Opaque};
use galamost_plugin_api::error::Result;
use galamost_plugin_api::services::MAX_RANKS;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// A device that only records the units that components compile.
pub struct Recorder {
    units: Arc<Mutex<Vec<SourceUnit>>>,
    /// End of the allocated addresses.
    end: AtomicU64,
}

impl Recorder {
    pub fn new(units: &Arc<Mutex<Vec<SourceUnit>>>) -> Arc<Self> {
        Arc::new(Self { units: units.clone(), end: AtomicU64::new(256) })
    }
}

/// Collective operations of the first of two ranks that do nothing.
pub struct FirstOfTwo;

impl Collectives for FirstOfTwo {
    fn ranks(&self) -> u32 {
        2
    }
    fn all_reduce(&self, _: u64, _: u64, _: u64, _: u64) -> Result<()> {
        Ok(())
    }
    fn all_gather(&self, _: u64, _: u64, _: u32) -> Result<()> {
        Ok(())
    }
    fn peers(&self, own: u64) -> Result<([u64; MAX_RANKS], u32)> {
        Ok(([own; MAX_RANKS], 0))
    }
    fn rank_barrier(&self) -> Result<u64> {
        Ok(0)
    }
}

impl Services for Recorder {
    fn name(&self) -> String {
        "recorder".into()
    }
    fn multiprocessors(&self) -> u32 {
        1
    }
    fn block_memory(&self) -> u32 {
        227 * 1024
    }
    fn allocate(&self, bytes: usize) -> Result<u64> {
        Ok(self.end.fetch_add(bytes.next_multiple_of(256) as u64, Ordering::Relaxed))
    }
    fn free(&self, _: u64) -> Result<()> {
        Ok(())
    }
    fn upload(&self, _: u64, _: &[u8]) -> Result<()> {
        Ok(())
    }
    fn download(&self, _: u64, _: &mut [u8]) -> Result<()> {
        Ok(())
    }
    fn clear(&self, _: u64, _: usize) -> Result<()> {
        Ok(())
    }
    fn define_macro(&self, _: &'static str) {}
    fn compile(&self, unit: &SourceUnit) -> Result<u64> {
        let mut units = self.units.lock().expect("one thread");
        units.push(unit.clone());
        Ok(units.len() as u64 - 1)
    }
    fn kernel(&self, module: u64, name: &str) -> Result<Kernel> {
        let unit = self.units.lock().expect("one thread")[module as usize].text.clone();
        assert!(kernel_names(&unit).iter().any(|n| n == name), "there is no kernel {name}");
        Ok(Kernel(0))
    }
    unsafe fn launch(&self, _: Kernel, _: Extent, _: Extent, _: u32, _: &[*mut Opaque]) -> Result<()> {
        Ok(())
    }
}
