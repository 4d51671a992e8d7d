//! CUDA kernels on the CPU, for tests: g++ compiles them with `kernels/host/galamost_host.h`.
//!
//! Host memory serves as device memory. The emulation runs the real kernels, slowly, one block after the other, or with
//! real grid barriers between the blocks of a cooperative launch. It reports a kernel that writes just outside an array.

use super::distributed::{Distribution, Registry};
use super::source::SourceUnit;
use super::{Device, Graph, Kernel, MemoryKind, Services, check_range};
use crate::profile::{Profile, Timing};
use galamost_plugin_api::abi::{Extent, Opaque};
use galamost_plugin_api::error::{Error, Result};
use galamost_plugin_api::views::Globals;
use stacks::{Give, Take};
use std::alloc::{Layout, alloc_zeroed};
use std::collections::BTreeMap;
use std::mem::offset_of;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

mod build;
mod faults;
mod stacks;
mod stream;

pub use build::probe;

use build::Compiler;
use faults::SimulatedFaults;
use stream::{Sizes, Stream};

type Entry = unsafe extern "C" fn(*mut *mut Opaque, *const u32, *const u32);

fn fail(what: &str, message: impl std::fmt::Display) -> Error {
    Error::Device { what: what.into(), message: message.to_string() }
}

/// Guard bytes before and after each array, and their value.
const GUARD: usize = 64;
const GUARD_BYTE: u8 = 0xa5;
/// Bytes behind the second guard: a block of threads that all write behind an array, 16 bytes each, must not reach the memory of others,
/// so that the guard can show it.
const ROOM: usize = 16 * 1024;

/// An array: its memory, its offset in that memory, and its length in bytes.
struct Array {
    memory: Vec<u128>,
    start: usize,
    bytes: usize,
}

/// Arrays of several devices.
static DISTRIBUTED: Registry<Arc<Array>> = Registry::new();

impl Array {
    /// Allocates an array that is set to 0, and returns its address.
    fn new(bytes: usize) -> Result<(u64, Self)> {
        // room for a start at a multiple of 256 with a guard on both sides
        let words = bytes.saturating_add(2 * GUARD + ROOM).div_ceil(16) + 15;
        let cannot = || fail("allocate", format!("cannot allocate {bytes} bytes"));
        let layout = Layout::array::<u128>(words).map_err(|_| cannot())?;
        // pages that no kernel uses are never written
        // SAFETY: the size is not 0
        let memory = unsafe { alloc_zeroed(layout) }.cast::<u128>();
        if memory.is_null() {
            return Err(cannot());
        }
        // SAFETY: the memory has the layout of these words, and all of them are 0
        let mut memory = unsafe { Vec::from_raw_parts(memory, words, words) };
        let base = memory.as_mut_ptr() as usize;
        let start = (base + GUARD).next_multiple_of(256) - base;
        let array = Self { memory, start, bytes };
        for guard in array.guards() {
            // SAFETY: both guards are inside of `memory`, and nothing else has their addresses yet
            unsafe { std::ptr::write_bytes(guard.cast_mut(), GUARD_BYTE, 1) };
        }
        Ok(((base + start) as u64, array))
    }
    fn guards(&self) -> [*const [u8; GUARD]; 2] {
        let start = self.memory.as_ptr().cast::<u8>().wrapping_add(self.start);
        [start.wrapping_sub(GUARD).cast(), start.wrapping_add(self.bytes).cast()]
    }
    fn guards_intact(&self) -> bool {
        // SAFETY: both guards are inside of `memory` (`allocate`); no kernel runs while the device is paused
        self.guards().into_iter().all(|g| unsafe { g.read() } == [GUARD_BYTE; GUARD])
    }
}

/// A compiled kernel.
#[derive(Clone)]
struct KernelEntry {
    launch: Entry,
    launch_cooperative: Entry,
    name: String,
    /// Size of each argument in bytes.
    sizes: Vec<u32>,
}

/// Modules, memory and kernels of the device.
#[derive(Default)]
struct Inner {
    launches: u64,
    memory: BTreeMap<u64, Arc<Array>>,
    modules: Vec<libloading::Library>,
    kernels: Vec<KernelEntry>,
    macros: Vec<&'static str>,
}

impl Inner {
    fn check_range(&self, address: u64, bytes: usize) -> Result<()> {
        check_range(address, bytes, self.memory.range(..=address).next_back().map(|(at, a)| (*at, a.bytes as u64)))
    }
}

/// What kernels use that run in another thread.
#[derive(Default)]
struct Shared {
    inner: Mutex<Inner>,
    /// Serializes kernels: the fibers of a block share thread-local statics.
    running: Mutex<()>,
    profile: Profile,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no kernel runs, and keeps others from starting.
    fn pause(&self) -> MutexGuard<'_, ()> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs an entry of a kernel.
    ///
    /// # Safety
    /// The arguments are those that the kernel declares.
    unsafe fn run(
        &self,
        (entry, name): (Entry, &str),
        grid: Extent,
        (block, shared): (Extent, u32),
        args: &mut [*mut Opaque],
    ) -> Result<()> {
        let _one = self.pause();
        let (blocks, threads) = ([grid.x, grid.y, grid.z], [block.x, block.y, block.z, shared]);
        // SAFETY: the arguments are those that the kernel declares (contract of this function)
        self.profile.time(&self.profile.part(), name, || unsafe {
            entry(args.as_mut_ptr(), blocks.as_ptr(), threads.as_ptr());
        });
        match self.lock().memory.values().find(|a| !a.guards_intact()) {
            Some(a) => Err(fail(name, format!("the kernel wrote outside an array of {} bytes", a.bytes))),
            None => Ok(()),
        }
    }
}

/// The emulated device.
pub struct EmulatedDevice {
    /// Runs kernels while the host continues, if they are delayed; ends before their libraries are unloaded.
    stream: Option<Stream>,
    compiler: Compiler,
    shared: Arc<Shared>,
    faults: SimulatedFaults,
}

impl EmulatedDevice {
    /// Opens the emulated device.
    ///
    /// # Errors
    /// Returns an error if g++ is not available.
    pub fn new() -> Result<Self> {
        let version = probe().map_err(|e| fail("emulated device", e))?;
        Ok(Self {
            stream: Stream::from_environment()?,
            compiler: Compiler { version },
            shared: Arc::default(),
            faults: SimulatedFaults::from_environment()?,
        })
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.shared.lock()
    }

    /// Waits for all launched kernels, and keeps others from starting.
    fn pause(&self) -> Result<MutexGuard<'_, ()>> {
        self.synchronize()?;
        Ok(self.shared.pause())
    }

    /// Runs an entry of a kernel, now or later.
    ///
    /// # Safety
    /// The arguments are those that the kernel declares.
    unsafe fn run(
        &self,
        kernel: Kernel,
        grid: Extent,
        block: (Extent, u32),
        args: &[*mut Opaque],
        entry: impl Fn(&KernelEntry) -> Entry,
    ) -> Result<()> {
        let kernel = {
            let mut inner = self.lock();
            inner.launches += 1;
            if inner.launches >= self.faults.launches {
                return Err(fail("launch", "the device is lost"));
            }
            inner.kernels.get(kernel.0 as usize).ok_or_else(|| fail("launch", "unknown kernel"))?.clone()
        };
        let (entry, shared) = (entry(&kernel), self.shared.clone());
        let Some(stream) = &self.stream else {
            // SAFETY: the arguments are those that the kernel declares (contract of this function)
            return unsafe { shared.run((entry, &kernel.name), grid, block, &mut args.to_vec()) };
        };
        // SAFETY: each argument has the size that its kernel declares (contract of this function)
        let mut kept = unsafe { stream::Arguments::copy(args, &kernel.sizes) };
        // SAFETY: the copies are arguments as the kernel declares them
        stream.push(Box::new(move || unsafe { shared.run((entry, &kernel.name), grid, block, &mut kept.pointers()) }));
        Ok(())
    }

    /// Returns a 32-bit word of memory.
    fn word(&self, address: u64) -> Result<u32> {
        let mut bytes = [0; 4];
        self.download(address, &mut bytes)?;
        Ok(u32::from_ne_bytes(bytes))
    }
}

impl Services for EmulatedDevice {
    fn name(&self) -> String {
        format!("CUDA kernels emulated on the CPU ({})", self.compiler.version)
    }
    fn multiprocessors(&self) -> u32 {
        // a small number, so small test systems still use several threads per particle
        4
    }
    fn block_memory(&self) -> u32 {
        // as an H200
        227 * 1024
    }
    fn allocate(&self, bytes: usize) -> Result<u64> {
        if self.memory().saturating_add(bytes as u64) > self.faults.bytes {
            return Err(fail(
                "allocate",
                format!("out of memory: cannot allocate {bytes} bytes; {} are in use", self.memory()),
            ));
        }
        let (address, array) = Array::new(bytes)?;
        self.lock().memory.insert(address, Arc::new(array));
        Ok(address)
    }
    fn free(&self, address: u64) -> Result<()> {
        let _one = self.pause()?;
        let gone = self.lock().memory.remove(&address);
        drop(DISTRIBUTED.detach(address));
        gone.map(drop).ok_or_else(|| fail("free", format!("{address:#x} is not allocated")))
    }
    fn upload(&self, address: u64, bytes: &[u8]) -> Result<()> {
        let (_one, inner) = (self.pause()?, self.lock());
        inner.check_range(address, bytes.len())?;
        // SAFETY: the range was checked; neither a kernel nor another call accesses it or frees it while both locks are
        // held, and a borrowed slice is not memory of the device
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), address as *mut u8, bytes.len()) };
        Ok(())
    }
    fn download(&self, address: u64, bytes: &mut [u8]) -> Result<()> {
        let (_one, inner) = (self.pause()?, self.lock());
        inner.check_range(address, bytes.len())?;
        // SAFETY: the range was checked; no kernel and no other call writes or frees it while both locks are held, and a borrowed slice
        // is not memory of the device
        unsafe { std::ptr::copy_nonoverlapping(address as *const u8, bytes.as_mut_ptr(), bytes.len()) };
        Ok(())
    }
    fn clear(&self, address: u64, bytes: usize) -> Result<()> {
        let (_one, inner) = (self.pause()?, self.lock());
        inner.check_range(address, bytes)?;
        // SAFETY: the range was checked; no kernel and no other call accesses or frees it while both locks are held
        unsafe { std::ptr::write_bytes(address as *mut u8, 0, bytes) };
        Ok(())
    }
    fn define_macro(&self, name: &'static str) {
        let mut inner = self.lock();
        if !inner.macros.contains(&name) {
            inner.macros.push(name);
        }
    }
    fn compile(&self, unit: &SourceUnit) -> Result<u64> {
        let unit = &unit.with_macros(&self.lock().macros);
        let loaded = self.compiler.load(unit)?;
        // SAFETY: galamost_blocks.cpp declares the function with this type
        let use_stacks: libloading::Symbol<'_, unsafe extern "C" fn(Take, Give)> =
            unsafe { loaded.get(b"galamost_use_stacks") }.map_err(|e| fail(&unit.name, e))?;
        // SAFETY: both functions may be called by every thread at any time, and no kernel of the library runs yet
        unsafe { use_stacks(stacks::take, stacks::give) };
        let mut inner = self.lock();
        inner.modules.push(loaded);
        Ok(inner.modules.len() as u64 - 1)
    }
    fn kernel(&self, module: u64, name: &str) -> Result<Kernel> {
        let mut inner = self.lock();
        let library = inner.modules.get(module as usize).ok_or_else(|| fail(name, "unknown module"))?;
        let entry = |suffix: &str| -> Result<Entry> {
            // SAFETY: GALAMOST_HOST_ENTRY declares entries with this type
            Ok(*unsafe { library.get(format!("{name}{suffix}").as_bytes()) }.map_err(|e| fail(name, e))?)
        };
        let (launch, launch_cooperative) = (entry("__host")?, entry("__host_cooperative")?);
        // SAFETY: GALAMOST_HOST_ENTRY declares the function with this type
        let sizes: libloading::Symbol<'_, Sizes> =
            unsafe { library.get(format!("{name}__sizes").as_bytes()) }.map_err(|e| fail(name, e))?;
        // SAFETY: the function may be called at any time
        let sizes = unsafe { stream::sizes(*sizes) };
        inner.kernels.push(KernelEntry { launch, launch_cooperative, name: name.into(), sizes });
        Ok(Kernel(inner.kernels.len() as u64 - 1))
    }
    unsafe fn launch(
        &self,
        kernel: Kernel,
        grid: Extent,
        block: Extent,
        shared: u32,
        args: &[*mut Opaque],
    ) -> Result<()> {
        // SAFETY: the arguments are those that the kernel declares (contract of this function)
        unsafe { self.run(kernel, grid, (block, shared), args, |k| k.launch) }
    }
}

impl Device for EmulatedDevice {
    fn synchronize(&self) -> Result<()> {
        self.stream.as_ref().map_or(Ok(()), Stream::wait)
    }
    fn capture(&self, _: &mut dyn FnMut() -> Result<()>) -> Result<Option<Graph>> {
        Ok(None)
    }
    fn launch_graph(&self, _: Graph) -> Result<()> {
        Err(fail("replay", "the emulated device has no graphs"))
    }
    fn destroy_graph(&self, _: Graph) -> Result<()> {
        Ok(())
    }
    fn if_rebuild(&self, globals: u64, sort_every: u32, body: &mut dyn FnMut(bool) -> Result<()>) -> Result<()> {
        let halt = self.word(globals + offset_of!(Globals, halt) as u64)?;
        let rebuild = self.word(globals + offset_of!(Globals, rebuild) as u64)?;
        if halt != 0 || rebuild == 0 {
            return Ok(());
        }
        let mut rebuilds = [0; 8];
        self.download(globals + offset_of!(Globals, rebuilds) as u64, &mut rebuilds)?;
        body(u64::from_ne_bytes(rebuilds).is_multiple_of(sort_every.into()))
    }
    fn supports_staged_list(&self) -> bool {
        true
    }
    fn supports_grid_barrier(&self) -> bool {
        // disabled by default because compiling the persistent kernel takes long; tests enable it
        std::env::var_os("GALAMOST_EMULATED_STEPS").is_some()
    }
    fn max_resident_blocks(&self, _: Kernel, _: u32) -> Result<u32> {
        // by default not a power of two, so that blocks have different numbers of particles
        let given = std::env::var("GALAMOST_EMULATED_STEPS").ok().and_then(|n| n.parse().ok());
        Ok(given.filter(|n| *n > 1).unwrap_or(3))
    }
    unsafe fn launch_cooperative(
        &self,
        kernel: Kernel,
        grid: Extent,
        threads: u32,
        args: &[*mut Opaque],
    ) -> Result<()> {
        // SAFETY: the arguments are those that the kernel declares (contract of this function)
        unsafe { self.run(kernel, grid, (Extent::from(threads), 0), args, |k| k.launch_cooperative) }
    }
    fn set_word(&self, address: u64, word: u32) -> Result<()> {
        self.upload(address, &word.to_ne_bytes())
    }
    fn while_nonzero(&self, word: u64, globals: u64, body: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        loop {
            body()?;
            if self.word(word)? == 0 || self.word(globals + offset_of!(Globals, halt) as u64)? != 0 {
                return Ok(());
            }
        }
    }
    fn memory_kind(&self) -> MemoryKind {
        MemoryKind::Host
    }
    fn page(&self) -> Option<usize> {
        Some(1)
    }
    fn allocate_distributed(&self, distribution: &Distribution) -> Result<u64> {
        let (address, array) = Array::new(distribution.bytes())?;
        DISTRIBUTED.insert(address, Arc::new(array));
        Ok(address)
    }
    fn attach_distributed(&self, address: u64, _: usize) -> Result<()> {
        let array = DISTRIBUTED.attach(address, Arc::clone)?;
        self.lock().memory.insert(address, array);
        Ok(())
    }
    fn memory(&self) -> u64 {
        self.lock().memory.values().map(|a| a.bytes as u64).sum()
    }
    fn profile(&self) -> &Profile {
        &self.shared.profile
    }
    fn end_profile(&self) -> Result<Vec<Timing>> {
        Ok(self.shared.profile.end())
    }
}
