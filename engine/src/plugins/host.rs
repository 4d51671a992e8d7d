//! The engine's services as plugins get them (`host/1`).

use galamost_plugin_api::abi::{
    Callback, Extent, Host1, Opaque, ROption, RResult, RSlice, RSliceMut, RStr, TablePointer, Wire, WireError, WireHost,
};
use galamost_plugin_api::error::{Error, Result};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::sync::Mutex;
use tracing::{debug, error, info, warn};

/// What a device does for plugins; the CPU has host memory and no compiler.
pub trait DeviceServices: Send + Sync {
    /// Memory set to 0, aligned to 256 bytes.
    ///
    /// # Errors
    /// Out of memory.
    fn allocate(&self, bytes: u64) -> Result<u64>;
    /// Gives memory back.
    ///
    /// # Errors
    /// It is not this device's.
    fn free(&self, address: u64) -> Result<()>;
    /// Copies to the device.
    ///
    /// # Errors
    /// The device's words.
    fn upload(&self, address: u64, bytes: &[u8]) -> Result<()>;
    /// Copies from the device.
    ///
    /// # Errors
    /// The device's words.
    fn download(&self, address: u64, bytes: &mut [u8]) -> Result<()>;
    /// Compiles CUDA C++.
    ///
    /// # Errors
    /// The compiler's words.
    fn compile(&self, name: &str, source: &str) -> Result<u64>;
    /// Finds a kernel.
    ///
    /// # Errors
    /// There is none of this name.
    fn kernel(&self, module: u64, name: &str) -> Result<u64>;
    /// Launches a kernel.
    ///
    /// # Errors
    /// The device's words.
    fn launch(&self, kernel: u64, grid: Extent, block: Extent, shared: u32, arguments: &[*mut Opaque]) -> Result<()>;
}

/// Host memory for plugins on the CPU.
#[derive(Default)]
struct CpuServices {
    memory: Mutex<BTreeMap<u64, Vec<u128>>>,
}

const NO_COMPILER: &str = "the device is the CPU: there is no CUDA compiler";

impl DeviceServices for CpuServices {
    fn allocate(&self, bytes: u64) -> Result<u64> {
        // 15 words more than needed make room to align to 256 bytes
        let mut words = vec![0u128; (bytes as usize).div_ceil(16) + 15];
        let address = (words.as_mut_ptr() as u64).next_multiple_of(256);
        self.memory.lock().unwrap_or_else(std::sync::PoisonError::into_inner).insert(address, words);
        Ok(address)
    }
    fn free(&self, address: u64) -> Result<()> {
        let gone = self.memory.lock().unwrap_or_else(std::sync::PoisonError::into_inner).remove(&address);
        gone.map(drop).ok_or_else(|| Error::Run(format!("{address:#x} was not allocated here")))
    }
    fn upload(&self, address: u64, bytes: &[u8]) -> Result<()> {
        // SAFETY: the plugin's word: the address is that of memory it allocated here, large enough
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), address as *mut u8, bytes.len()) };
        Ok(())
    }
    fn download(&self, address: u64, bytes: &mut [u8]) -> Result<()> {
        // SAFETY: as above
        unsafe { std::ptr::copy_nonoverlapping(address as *const u8, bytes.as_mut_ptr(), bytes.len()) };
        Ok(())
    }
    fn compile(&self, _: &str, _: &str) -> Result<u64> {
        Err(Error::Run(NO_COMPILER.into()))
    }
    fn kernel(&self, _: u64, _: &str) -> Result<u64> {
        Err(Error::Run(NO_COMPILER.into()))
    }
    fn launch(&self, _: u64, _: Extent, _: Extent, _: u32, _: &[*mut Opaque]) -> Result<()> {
        Err(Error::Run(NO_COMPILER.into()))
    }
}

/// The object behind the pointer that plugins get.
struct Services {
    device: Box<dyn DeviceServices>,
    arrays: Mutex<BTreeMap<String, u64>>,
}

/// The services of a run; lives as long as its components use it.
pub struct HostServices {
    wire: WireHost,
}

// SAFETY: the services behind the pointer are Send and Sync
unsafe impl Send for HostServices {}
// SAFETY: as above
unsafe impl Sync for HostServices {}

impl HostServices {
    /// Services of a device.
    pub fn new(device: Box<dyn DeviceServices>) -> Self {
        let this = Box::into_raw(Box::new(Services { device, arrays: Mutex::default() }));
        Self { wire: WireHost { this: this.cast(), interface } }
    }

    /// Services of the CPU.
    pub fn cpu() -> Self {
        Self::new(Box::<CpuServices>::default())
    }

    /// As plugins get them.
    pub fn wire(&self) -> &WireHost {
        &self.wire
    }

    /// Tells plugins where an optional array is.
    pub fn set_array(&self, name: &str, address: u64) {
        services(self.wire.this)
            .arrays
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .insert(name.into(), address);
    }
}

impl Drop for HostServices {
    fn drop(&mut self) {
        // SAFETY: made by `Box::into_raw` in `new`, dropped once
        drop(unsafe { Box::from_raw(self.wire.this.cast::<Services>()) });
    }
}

fn services<'a>(this: *mut Opaque) -> &'a Services {
    // SAFETY: the engine gives plugins no other pointer, and keeps the services alive while plugins run
    unsafe { &*this.cast::<Services>() }
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

/// A plugin's data while its function runs on several threads.
#[derive(Clone, Copy)]
struct Data(*mut Opaque);
// SAFETY: `parallel` is documented to call from several threads; the plugin's side takes only `Sync` closures
unsafe impl Send for Data {}
// SAFETY: as above
unsafe impl Sync for Data {}

extern "C" fn parallel(_: *mut Opaque, n: u64, chunk: u64, f: Callback, data: *mut Opaque) {
    let data = Data(data);
    let chunk = chunk.max(1);
    (0..n.div_ceil(chunk)).into_par_iter().for_each(|k| {
        // the whole wrapper is captured, not the pointer inside, which may not go to other threads
        let Data(pointer) = { data };
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
    wire(services(this).device.allocate(bytes))
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
    wire(services(this).device.compile(name.as_str(), source.as_str()))
}
extern "C" fn kernel(this: *mut Opaque, module: u64, name: RStr<'_>) -> Wire<u64> {
    wire(services(this).device.kernel(module, name.as_str()))
}
extern "C" fn launch(
    this: *mut Opaque,
    kernel: u64,
    grid: Extent,
    block: Extent,
    shared: u32,
    arguments: RSlice<'_, *mut Opaque>,
) -> Wire<()> {
    wire(services(this).device.launch(kernel, grid, block, shared, arguments.as_slice()))
}
extern "C" fn array(this: *mut Opaque, name: RStr<'_>) -> u64 {
    let arrays = services(this).arrays.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    arrays.get(name.as_str()).copied().unwrap_or(0)
}
