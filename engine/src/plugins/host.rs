//! The engine's services for plugins (`host/1`).

use crate::device::{Kernel, Services, SourceUnit};
use galamost_plugin_api::abi::{
    Callback, Extent, Host1, Opaque, ROption, RResult, RSlice, RSliceMut, RStr, TablePointer, Wire, WireError, WireHost,
};
use galamost_plugin_api::error::{Error, Result};
use galamost_plugin_api::precision::Precision;
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use tracing::{debug, error, info, warn};

/// The CPU as plugins see it: host memory and no compiler.
#[derive(Default)]
struct CpuServices {
    memory: Mutex<BTreeMap<u64, Vec<u128>>>,
}

const NO_COMPILER: &str = "the CPU has no CUDA compiler";

impl Services for CpuServices {
    fn name(&self) -> String {
        "CPU".into()
    }
    fn multiprocessors(&self) -> u32 {
        rayon::current_num_threads() as u32
    }
    fn allocate(&self, bytes: usize) -> Result<u64> {
        // 15 extra words leave room to align to 256 bytes
        let mut words = vec![0u128; bytes.div_ceil(16) + 15];
        let address = (words.as_mut_ptr() as u64).next_multiple_of(256);
        self.memory.lock().unwrap_or_else(PoisonError::into_inner).insert(address, words);
        Ok(address)
    }
    fn free(&self, address: u64) -> Result<()> {
        let freed = self.memory.lock().unwrap_or_else(PoisonError::into_inner).remove(&address);
        freed.map(drop).ok_or_else(|| Error::Run(format!("{address:#x} is not memory of this host")))
    }
    fn upload(&self, address: u64, bytes: &[u8]) -> Result<()> {
        // SAFETY: plugins pass only addresses inside memory from `allocate`, with at least `bytes.len()` bytes
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), address as *mut u8, bytes.len()) };
        Ok(())
    }
    fn download(&self, address: u64, bytes: &mut [u8]) -> Result<()> {
        // SAFETY: as in `upload`
        unsafe { std::ptr::copy_nonoverlapping(address as *const u8, bytes.as_mut_ptr(), bytes.len()) };
        Ok(())
    }
    fn clear(&self, address: u64, bytes: usize) -> Result<()> {
        // SAFETY: as in `upload`
        unsafe { std::ptr::write_bytes(address as *mut u8, 0, bytes) };
        Ok(())
    }
    fn define_macro(&self, _: &'static str) {}
    fn compile(&self, _: &SourceUnit) -> Result<u64> {
        Err(Error::Run(NO_COMPILER.into()))
    }
    fn kernel(&self, _: u64, _: &str) -> Result<Kernel> {
        Err(Error::Run(NO_COMPILER.into()))
    }
    fn launch(&self, _: Kernel, _: Extent, _: Extent, _: u32, _: &[*mut Opaque]) -> Result<()> {
        Err(Error::Run(NO_COMPILER.into()))
    }
}

/// What the pointer of a [`WireHost`] refers to.
struct HostState {
    device: Arc<dyn Services>,
    /// Plugins' kernels are compiled for this precision.
    precision: Precision,
    /// Addresses of the optional per-particle arrays.
    arrays: Mutex<BTreeMap<String, u64>>,
}

/// The services of a run. They outlive the components that use them.
pub struct HostServices {
    wire: WireHost,
}

// SAFETY: `HostState` is Send and Sync
unsafe impl Send for HostServices {}
// SAFETY: as above
unsafe impl Sync for HostServices {}

impl HostServices {
    /// Returns the services of a device, which compiles plugins' kernels for this precision.
    pub fn new(device: Arc<dyn Services>, precision: Precision) -> Self {
        let this = Box::into_raw(Box::new(HostState { device, precision, arrays: Mutex::default() }));
        Self { wire: WireHost { this: this.cast(), interface } }
    }

    /// Returns the services of the CPU.
    pub fn cpu() -> Self {
        Self::new(Arc::<CpuServices>::default(), Precision::default())
    }

    /// Returns the services in the form that crosses to plugins.
    pub fn wire(&self) -> &WireHost {
        &self.wire
    }

    /// Publishes the address of an optional per-particle array to plugins.
    pub fn set_array(&self, name: &str, address: u64) {
        services(self.wire.this).arrays.lock().unwrap_or_else(PoisonError::into_inner).insert(name.into(), address);
    }
}

impl Drop for HostServices {
    fn drop(&mut self) {
        // SAFETY: `this` comes from `Box::into_raw` in `new` and is dropped only here
        drop(unsafe { Box::from_raw(self.wire.this.cast::<HostState>()) });
    }
}

fn services<'a>(this: *mut Opaque) -> &'a HostState {
    // SAFETY: `this` comes from `HostServices::new`, and `HostServices` outlives the components that use it
    unsafe { &*this.cast::<HostState>() }
}

fn wire<T>(r: Result<T>) -> Wire<T> {
    match r {
        Ok(v) => RResult::ROk(v),
        Err(e) => RResult::RErr(WireError::from(e)),
    }
}

extern "C" fn interface(_: *mut Opaque, name: RStr<'_>) -> ROption<TablePointer> {
    const HOST: &Host1 = &Host1 { parallel, log, allocate, free, upload, download, compile, kernel, launch, array };
    match name.as_str() {
        "host/1" => ROption::RSome(TablePointer::new(HOST)),
        _ => ROption::RNone,
    }
}

/// A plugin's data pointer, passed to several threads.
#[derive(Clone, Copy)]
struct Data(*mut Opaque);
// SAFETY: the plugin side of `parallel` accepts only `Sync` closures
unsafe impl Send for Data {}
// SAFETY: as above
unsafe impl Sync for Data {}

extern "C" fn parallel(_: *mut Opaque, n: u64, chunk: u64, f: Callback, data: *mut Opaque) {
    let data = Data(data);
    let chunk = chunk.max(1);
    let work = crate::activity::Shared::of_this_thread();
    (0..n.div_ceil(chunk)).into_par_iter().for_each(|k| {
        // capture the whole wrapper, because the pointer inside is not Send
        let Data(pointer) = { data };
        let _activity = work.enter();
        (f.call)(pointer, k * chunk, ((k + 1) * chunk).min(n));
    });
}
extern "C" fn log(_: *mut Opaque, level: u32, text: RStr<'_>) {
    match level {
        0 => error!("{text}"),
        1 => warn!("{text}"),
        2 => info!("{text}"),
        _ => debug!("{text}"),
    }
}
extern "C" fn allocate(this: *mut Opaque, bytes: u64) -> Wire<u64> {
    wire(services(this).device.allocate(bytes as usize))
}
extern "C" fn free(this: *mut Opaque, address: u64) -> Wire<()> {
    wire(services(this).device.free(address))
}
extern "C" fn upload(this: *mut Opaque, address: u64, bytes: RSlice<'_, u8>) -> Wire<()> {
    wire(services(this).device.upload(address, bytes.as_slice()))
}
extern "C" fn download(this: *mut Opaque, address: u64, mut bytes: RSliceMut<'_, u8>) -> Wire<()> {
    wire(services(this).device.download(address, bytes.as_mut_slice()))
}
extern "C" fn compile(this: *mut Opaque, name: RStr<'_>, source: RStr<'_>) -> Wire<u64> {
    let s = services(this);
    wire(s.device.compile(&SourceUnit::new(name.as_str(), source.as_str(), s.precision)))
}
extern "C" fn kernel(this: *mut Opaque, module: u64, name: RStr<'_>) -> Wire<u64> {
    wire(services(this).device.kernel(module, name.as_str()).map(|k| k.0))
}
extern "C" fn launch(
    this: *mut Opaque,
    kernel: u64,
    grid: Extent,
    block: Extent,
    shared: u32,
    arguments: RSlice<'_, *mut Opaque>,
) -> Wire<()> {
    wire(services(this).device.launch(Kernel(kernel), grid, block, shared, arguments.as_slice()))
}
extern "C" fn array(this: *mut Opaque, name: RStr<'_>) -> u64 {
    let arrays = services(this).arrays.lock().unwrap_or_else(PoisonError::into_inner);
    let address = arrays.get(name.as_str()).copied().unwrap_or(0);
    if address == 0 {
        crate::activity::asked_for_null(name.as_str());
    }
    address
}
