//! CUDA kernels on the CPU, for tests: g++ compiles them with `kernels/host/galamost_host.h`.
//!
//! Host memory serves as device memory. The emulation runs the real kernels, slowly, one block after the other, or with
//! real grid barriers between the blocks of a cooperative launch. It reports a kernel that writes just outside an array.

use super::distributed::{Distribution, Registry};
use super::source::{SourceUnit, kernel_names};
use super::stacks::{self, Give, Take};
use super::{Device, Graph, Kernel, MemoryKind, Services, cache, check_range};
use crate::profile::{Profile, Timing};
use galamost_plugin_api::abi::{Extent, Opaque};
use galamost_plugin_api::error::{Error, Result};
use galamost_plugin_api::views::Globals;
use std::alloc::{Layout, alloc_zeroed};
use std::collections::BTreeMap;
use std::mem::offset_of;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::Mutex;

type Entry = unsafe extern "C" fn(*mut *mut Opaque, *const u32, *const u32);

fn fail(what: &str, message: impl std::fmt::Display) -> Error {
    Error::Device { what: what.into(), message: message.to_string() }
}

/// Returns the version of g++.
///
/// # Errors
/// Returns an error if g++ cannot be started.
pub fn probe() -> std::result::Result<String, String> {
    let out = Command::new("g++").arg("--version").output().map_err(|e| format!("g++ cannot be started: {e}"))?;
    let text = String::from_utf8_lossy(&out.stdout).lines().next().unwrap_or_default().to_string();
    if out.status.success() { Ok(text) } else { Err("g++ --version failed".into()) }
}

/// Guard bytes before and after each array, and their value.
const GUARD: usize = 64;
const GUARD_BYTE: u8 = 0xa5;

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
        let words = bytes.saturating_add(2 * GUARD).div_ceil(16) + 15;
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

/// Simulated failures, set by the environment variable `GALAMOST_EMULATED_FAULT`: `lost:N` loses the device at launch
/// number N, `memory:N` limits its memory to N bytes, `barrier:N` removes the grid barrier number N from cooperative
/// launches (`galamost_host.h` reads it).
#[derive(Clone, Copy)]
struct SimulatedFaults {
    launches: u64,
    bytes: u64,
}

impl SimulatedFaults {
    fn from_environment() -> Result<Self> {
        let mut faults = Self { launches: u64::MAX, bytes: u64::MAX };
        let Ok(text) = std::env::var("GALAMOST_EMULATED_FAULT") else { return Ok(faults) };
        match text.split_once(':').and_then(|(what, n)| Some((what, n.parse().ok()?))) {
            Some(("lost", n)) => faults.launches = n,
            Some(("memory", n)) => faults.bytes = n,
            Some(("barrier", _)) => {}
            _ => {
                let message = format!("`{text}` is none of lost:N, memory:N and barrier:N");
                return Err(fail("GALAMOST_EMULATED_FAULT", message));
            }
        }
        Ok(faults)
    }
}

/// A compiled kernel.
#[derive(Clone)]
struct KernelEntry {
    launch: Entry,
    launch_cooperative: Entry,
    name: String,
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

/// The emulated device.
pub struct EmulatedDevice {
    compiler: String,
    inner: Mutex<Inner>,
    /// Serializes kernels: the fibers of a block share thread-local statics.
    running: Mutex<()>,
    faults: SimulatedFaults,
    profile: Profile,
}

impl EmulatedDevice {
    /// Opens the emulated device.
    ///
    /// # Errors
    /// Returns an error if g++ is not available.
    pub fn new() -> Result<Self> {
        let compiler = probe().map_err(|e| fail("emulated device", e))?;
        let faults = SimulatedFaults::from_environment()?;
        Ok(Self { compiler, inner: Mutex::default(), running: Mutex::default(), faults, profile: Profile::default() })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Runs an entry of a kernel.
    fn run(
        &self,
        kernel: Kernel,
        grid: Extent,
        block: Extent,
        args: &[*mut Opaque],
        entry: impl Fn(&KernelEntry) -> Entry,
    ) -> Result<()> {
        let (entry, name) = {
            let mut inner = self.lock();
            inner.launches += 1;
            if inner.launches >= self.faults.launches {
                return Err(fail("launch", "the device is lost"));
            }
            let kernel = inner.kernels.get(kernel.0 as usize).ok_or_else(|| fail("launch", "unknown kernel"))?;
            (entry(kernel), kernel.name.clone())
        };
        let _one = self.pause();
        let mut args = args.to_vec();
        // SAFETY: the arguments are those that the kernel declares (contract of `launch` and `launch_cooperative`)
        self.profile.time(&self.profile.part(), &name, || unsafe {
            entry(args.as_mut_ptr(), [grid.x, grid.y, grid.z].as_ptr(), [block.x, block.y, block.z].as_ptr());
        });
        match self.lock().memory.values().find(|a| !a.guards_intact()) {
            Some(a) => Err(fail(&name, format!("the kernel wrote outside an array of {} bytes", a.bytes))),
            None => Ok(()),
        }
    }

    /// Waits until no kernel runs, and keeps others from starting.
    fn pause(&self) -> std::sync::MutexGuard<'_, ()> {
        self.running.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Returns a 32-bit word of memory.
    fn word(&self, address: u64) -> Result<u32> {
        let mut bytes = [0; 4];
        self.download(address, &mut bytes)?;
        Ok(u32::from_ne_bytes(bytes))
    }

    /// Writes the library of a unit, from the cache or compiled. Ranks that start together need the same units: one compiles,
    /// and the others wait.
    fn ready(&self, unit: &SourceUnit, key: &str, folder: &Path, library: &Path) -> Result<()> {
        let cached = || Some(std::fs::write(library, cache::get(key, "so")?).map_err(|e| fail("emulated device", e)));
        if let Some(written) = cached() {
            return written;
        }
        let _one = cache::lock(&format!("units-{}.lock", &key[..1]));
        if let Some(written) = cached() {
            return written;
        }
        self.build(unit, folder, library)?;
        if let Ok(bytes) = std::fs::read(library) {
            cache::put(key, "so", &bytes);
        }
        Ok(())
    }

    /// Compiles a unit to a shared library, with `folder` for temporary files.
    fn build(&self, unit: &SourceUnit, folder: &Path, library: &Path) -> Result<()> {
        let io = |e: std::io::Error| fail(&format!("building {}", unit.name), e);
        for (name, text) in SourceUnit::headers()? {
            let path = folder.join(name);
            if let Some(parent) = path.parent() {
                std::fs::create_dir_all(parent).map_err(io)?;
            }
            std::fs::write(path, text).map_err(io)?;
        }
        let blocks = self.blocks(folder)?;
        let mut text = unit.text.clone();
        text.push_str("\n#line 1 \"entries\"\n");
        for name in kernel_names(&unit_with_headers(&unit.text)) {
            text.push_str(&format!("GALAMOST_HOST_ENTRY({name})\n"));
        }
        let source = folder.join("unit.cpp");
        std::fs::write(&source, text).map_err(io)?;
        let mut command = Command::new("g++");
        command.args(FLAGS).args([UNIT_LEVEL, "-shared", "-include", HOST_HEADER]);
        command.args(unit.defines().iter().map(|d| format!("-D{d}")));
        compiled(&unit.name, command.arg("-I").arg(folder).arg(&source).arg(&blocks).arg("-o").arg(library))
    }

    /// Writes the headers of the emulation to `folder`, and beside them, precompiled, the one that units include and the
    /// object file that they are linked with. Returns the path of the object file.
    fn blocks(&self, folder: &Path) -> Result<PathBuf> {
        let (source, text) = galamost_kernels::HOST_SOURCE;
        for (name, text) in galamost_kernels::HOST_HEADERS.into_iter().chain([(source, text)]) {
            std::fs::write(folder.join(name), text).map_err(|e| fail(&format!("building {source}"), e))?;
        }
        // g++ uses it in place of the header, and ignores it if it does not fit the options; without it, units only take longer
        let header = "galamost_host.h.gch";
        if self.common(folder, header, &[UNIT_LEVEL, "-x", "c++-header", HOST_HEADER]).is_err() {
            let _ = std::fs::remove_file(folder.join(header));
        }
        self.common(folder, "blocks.o", &["-O2", "-c", source])
    }

    /// Makes a file that all units have in common, with these arguments of g++ in `folder`, or takes it from the cache.
    /// Returns its path.
    fn common(&self, folder: &Path, name: &str, arguments: &[&str]) -> Result<PathBuf> {
        let io = |e: std::io::Error| fail(&format!("building {name}"), e);
        let path = folder.join(name);
        let key = cache::key(&[&[host_texts().as_str(), &self.compiler, name], FLAGS.as_slice(), arguments].concat());
        let _one = cache::lock("common.lock");
        if let Some(bytes) = cache::get(&key, "o") {
            std::fs::write(&path, bytes).map_err(io)?;
        } else {
            compiled(name, Command::new("g++").current_dir(folder).args(FLAGS).args(arguments).args(["-o", name]))?;
            cache::put(&key, "o", &std::fs::read(&path).map_err(io)?);
        }
        Ok(path)
    }
}

/// Options of g++ for everything that is part of a unit's library.
const FLAGS: [&str; 7] =
    ["-std=c++17", "-fPIC", "-pthread", "-fvisibility=hidden", "-fno-gnu-unique", "-w", "-ffp-contract=off"];

/// The level of optimization of units, and the header that they include first. A precompiled header fits one level.
const UNIT_LEVEL: &str = "-O1";
const HOST_HEADER: &str = "galamost_host.h";

/// Runs g++, which compiles `what`.
fn compiled(what: &str, command: &mut Command) -> Result<()> {
    let what = format!("compiling {what} with g++");
    let out = command.output().map_err(|e| fail(&what, e))?;
    if out.status.success() { Ok(()) } else { Err(fail(&what, String::from_utf8_lossy(&out.stderr).trim())) }
}

/// The texts that every unit's library depends on.
fn host_texts() -> String {
    galamost_kernels::HOST_HEADERS.map(|(_, text)| text).concat() + galamost_kernels::HOST_SOURCE.1
}

/// Returns a unit's text together with the headers that it includes, to find the kernels' names.
fn unit_with_headers(text: &str) -> String {
    let mut all = String::new();
    for (name, header) in galamost_kernels::HEADERS {
        if text.contains(name) {
            all.push_str(header);
        }
    }
    all + text
}

impl Services for EmulatedDevice {
    fn name(&self) -> String {
        format!("CUDA kernels emulated on the CPU ({})", self.compiler)
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
        let _one = self.pause();
        let gone = self.lock().memory.remove(&address);
        drop(DISTRIBUTED.detach(address));
        gone.map(drop).ok_or_else(|| fail("free", format!("{address:#x} is not allocated")))
    }
    fn upload(&self, address: u64, bytes: &[u8]) -> Result<()> {
        let (_one, inner) = (self.pause(), self.lock());
        inner.check_range(address, bytes.len())?;
        // SAFETY: the range was checked; neither a kernel nor another call accesses it or frees it while both locks are
        // held, and a borrowed slice is not memory of the device
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), address as *mut u8, bytes.len()) };
        Ok(())
    }
    fn download(&self, address: u64, bytes: &mut [u8]) -> Result<()> {
        let (_one, inner) = (self.pause(), self.lock());
        inner.check_range(address, bytes.len())?;
        // SAFETY: the range was checked; no kernel and no other call writes or frees it while both locks are held, and a borrowed slice
        // is not memory of the device
        unsafe { std::ptr::copy_nonoverlapping(address as *const u8, bytes.as_mut_ptr(), bytes.len()) };
        Ok(())
    }
    fn clear(&self, address: u64, bytes: usize) -> Result<()> {
        let (_one, inner) = (self.pause(), self.lock());
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
        let headers: String = SourceUnit::headers()?.into_iter().map(|(_, t)| t).collect();
        let defines = unit.defines().join(" ");
        let key =
            cache::key(&[&unit.text, &headers, &host_texts(), &defines, &self.compiler, UNIT_LEVEL, &FLAGS.join(" ")]);
        let folder = std::env::temp_dir().join(format!("galamost-{key}-{}", cache::unique()));
        std::fs::create_dir_all(&folder).map_err(|e| fail("emulated device", e))?;
        let library = folder.join("unit.so");
        let ready = self.ready(unit, &key, &folder, &library);
        // SAFETY: the library contains only the unit's kernels, which have no initializers
        let loaded =
            ready.and_then(|()| unsafe { libloading::Library::new(&library) }.map_err(|e| fail(&unit.name, e)));
        // the file is not needed once the library is loaded
        let _ = std::fs::remove_dir_all(&folder);
        let loaded = loaded?;
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
        inner.kernels.push(KernelEntry { launch, launch_cooperative, name: name.into() });
        Ok(Kernel(inner.kernels.len() as u64 - 1))
    }
    unsafe fn launch(&self, kernel: Kernel, grid: Extent, block: Extent, _: u32, args: &[*mut Opaque]) -> Result<()> {
        self.run(kernel, grid, block, args, |k| k.launch)
    }
}

impl Device for EmulatedDevice {
    fn synchronize(&self) -> Result<()> {
        Ok(())
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
    fn if_rebuild(&self, globals: u64, body: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        let halt = self.word(globals + offset_of!(Globals, halt) as u64)?;
        let rebuild = self.word(globals + offset_of!(Globals, rebuild) as u64)?;
        if halt == 0 && rebuild != 0 { body() } else { Ok(()) }
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
        self.run(kernel, grid, Extent::from(threads), args, |k| k.launch_cooperative)
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
        &self.profile
    }
    fn end_profile(&self) -> Result<Vec<Timing>> {
        Ok(self.profile.end())
    }
}
