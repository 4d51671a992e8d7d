//! Devices: selection, and the interface of a device that runs CUDA kernels.
//!
//! Only this folder uses `cudarc`.

pub mod args;
pub mod cache;
mod cuda;
mod declaration;
mod distributed;
mod emulated;
pub mod nvrtc;
mod ptx;
mod replicas;
mod source;

pub use cache::folder as cache_folder;
pub use cuda::{CudaDevice, check_peers, driver, driver_version};
pub use declaration::awaiting_kernels;
pub use distributed::Distribution;
pub use emulated::EmulatedDevice;
pub use replicas::{ReplicaDevice, batched_unit, open_replicas, replicas_unit};
pub use source::{SourceUnit, api_header, kernel_names};

use crate::pipeline::DeviceChoice;
use crate::profile::{Profile, Timing};
use galamost_plugin_api::abi::{Extent, Opaque};
use galamost_plugin_api::error::{Error, Result};
use std::sync::Arc;
use std::time::Instant;

/// A compiled kernel of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kernel(pub u64);

/// A captured graph of launches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Graph(pub u64);

/// The assembler's report on one kernel of a source unit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelReport {
    /// Name of the kernel.
    pub name: String,
    /// Registers per thread.
    pub registers: u32,
    /// Bytes spilled to local memory.
    pub spills: u32,
    /// Static shared memory in bytes.
    pub shared: u32,
    /// Bytes of local memory of each thread: arrays with variable indices, copies of arguments, and spilled registers.
    pub stack: u32,
}

/// Where the memory of a device is, for other libraries of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryKind {
    /// Memory of the host.
    Host,
    /// Memory of a GPU.
    Cuda {
        /// Number of the GPU, from 0.
        ordinal: u32,
        /// The stream in which all operations of the device are queued, as `cudaStream_t`.
        stream: u64,
    },
}

/// Memory, compilation and launches: what both the engine and plugins ([`crate::plugins::host`]) use of every device.
///
/// All operations are queued in one stream and execute in the order of the calls.
pub trait Services: Send + Sync {
    /// Returns the name for the log.
    fn name(&self) -> String;
    /// Returns the number of multiprocessors; it determines how many threads fill the device.
    fn multiprocessors(&self) -> u32;
    /// Returns the largest number of bytes of shared memory that a block can have.
    fn block_memory(&self) -> u32 {
        48 * 1024
    }
    /// Allocates memory that is set to 0 and aligned to 256 bytes.
    ///
    /// # Errors
    /// Returns an error if the device is out of memory.
    fn allocate(&self, bytes: usize) -> Result<u64>;
    /// Allocates memory of the host that kernels access at the same address, set to 0 and aligned to 256 bytes.
    /// [`Self::free`] frees it.
    ///
    /// # Errors
    /// Returns an error if the host is out of memory.
    fn allocate_mapped(&self, bytes: usize) -> Result<u64> {
        // where memory of the host serves as that of the device
        self.allocate(bytes)
    }
    /// Frees memory after all earlier launches have finished.
    ///
    /// # Errors
    /// Returns the device's error.
    fn free(&self, address: u64) -> Result<()>;
    /// Copies bytes to the device.
    ///
    /// # Errors
    /// Returns an error if the range is not inside one allocation, or the device's error.
    fn upload(&self, address: u64, bytes: &[u8]) -> Result<()>;
    /// As [`Self::upload`], but may return before the copy has ended. Later launches and copies of this device wait for it.
    ///
    /// # Errors
    /// As [`Self::upload`].
    fn upload_queued(&self, address: u64, bytes: &[u8]) -> Result<()> {
        self.upload(address, bytes)
    }
    /// Copies bytes from the device after all earlier launches have finished.
    ///
    /// # Errors
    /// As [`Self::upload`].
    fn download(&self, address: u64, bytes: &mut [u8]) -> Result<()>;
    /// Sets memory to 0. Can be captured in a graph.
    ///
    /// # Errors
    /// As [`Self::upload`].
    fn clear(&self, address: u64, bytes: usize) -> Result<()>;
    /// Lets components read arrays of the run (address and size) until the next call, on the CPU. The engine does not
    /// change or free them meanwhile. Other devices know all arrays as their own allocations.
    fn lend(&self, _arrays: Vec<(u64, u64)>) {}
    /// Defines a macro for all units compiled from now on.
    fn define_macro(&self, name: &'static str);
    /// Compiles a source unit and returns its module; [`Self::kernel`] returns the module's kernels.
    ///
    /// # Errors
    /// Returns the compiler's messages.
    fn compile(&self, unit: &SourceUnit) -> Result<u64>;
    /// Returns a kernel of a module.
    ///
    /// # Errors
    /// Returns an error if the module has no kernel of this name.
    fn kernel(&self, module: u64, name: &str) -> Result<Kernel>;
    /// Launches a kernel. Can be captured in a graph.
    ///
    /// # Errors
    /// Returns the device's error.
    ///
    /// # Safety
    /// `args` has the address of a value of the declared type for each parameter of the kernel, valid during the call. The
    /// addresses in these values are those of allocations with as many elements as the kernel accesses.
    unsafe fn launch(
        &self,
        kernel: Kernel,
        grid: Extent,
        block: Extent,
        shared: u32,
        args: &[*mut Opaque],
    ) -> Result<()>;
}

/// Looks for a failure while the host waits for a device since this time.
pub type Watch = Arc<dyn Fn(Instant) -> Result<()> + Send + Sync>;

/// A device that runs CUDA kernels: a GPU, or the emulation on the CPU.
pub trait Device: Services {
    /// Waits until all earlier launches have finished.
    ///
    /// # Errors
    /// Returns any error that occurred on the device since the last call.
    fn synchronize(&self) -> Result<()>;
    /// Calls this function every few milliseconds while the host waits for the device. If it returns an error, the wait ends with it, and the function
    /// has ended what the device waits for.
    fn watch(&self, _watch: Watch) {}
    /// Waits until a kernel has stored a number of at least `least` at an address of [`Services::allocate_mapped`], and returns it. Later
    /// launches may still run.
    ///
    /// # Errors
    /// Returns the device's error, or an error if all launches have ended and none has stored it.
    fn await_number(&self, address: u64, least: u64) -> Result<u64> {
        self.synchronize()?;
        let mut bytes = [0; 8];
        self.download(address, &mut bytes)?;
        let number = u64::from_ne_bytes(bytes);
        if number >= least { Ok(number) } else { Err(not_stored(self.name())) }
    }
    /// Marks the point that launches of [`Self::on_side_stream`] wait for. Not inside a capture. A device without a second stream
    /// runs all launches in the order of the calls.
    ///
    /// # Errors
    /// Returns the device's error.
    fn fork(&self) -> Result<()> {
        Ok(())
    }
    /// Queues the launches of `body` in a second stream, between [`Self::fork`] and [`Self::join`].
    ///
    /// # Errors
    /// Returns the device's error, or that of `body`.
    fn on_side_stream(&self, body: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        body()
    }
    /// Makes later launches wait for those of [`Self::on_side_stream`].
    ///
    /// # Errors
    /// Returns the device's error.
    fn join(&self) -> Result<()> {
        Ok(())
    }
    /// Captures the launches of `body` as a graph. Returns `None`, without calling `body`, if the device has no graphs.
    ///
    /// # Errors
    /// Returns the device's error.
    fn capture(&self, body: &mut dyn FnMut() -> Result<()>) -> Result<Option<Graph>>;
    /// Launches a graph.
    ///
    /// # Errors
    /// Returns the device's error.
    fn launch_graph(&self, graph: Graph) -> Result<()>;
    /// Destroys a graph.
    ///
    /// # Errors
    /// Returns the device's error.
    fn destroy_graph(&self, graph: Graph) -> Result<()>;
    /// Runs the launches of `body` if the globals at this address request a rebuild and are not halted: with `true` if the number of
    /// rebuilds so far is a multiple of `sort_every`, else with `false`. Inside a capture, the device evaluates the condition at every
    /// graph launch; a device that cannot choose between two bodies then runs that for `true`.
    ///
    /// # Errors
    /// Returns the device's error.
    fn if_rebuild(&self, globals: u64, sort_every: u32, body: &mut dyn FnMut(bool) -> Result<()>) -> Result<()>;
    /// Returns true if kernels may multiply matrices of half-precision numbers and reduce over a warp, as the staged
    /// neighbor list does.
    fn supports_staged_list(&self) -> bool;
    /// Returns true if blocks may wait for each other; see [`Self::launch_cooperative`].
    fn supports_grid_barrier(&self) -> bool;
    /// Returns how many blocks of `threads` threads can be resident at once.
    ///
    /// # Errors
    /// Returns the device's error.
    fn max_resident_blocks(&self, kernel: Kernel, threads: u32) -> Result<u32>;
    /// Launches a kernel with a grid barrier, with at most [`Self::max_resident_blocks`] blocks. Can be captured in a
    /// graph. Blocks of different z do not wait for each other.
    ///
    /// # Errors
    /// Returns the device's error.
    ///
    /// # Safety
    /// As [`Services::launch`].
    unsafe fn launch_cooperative(&self, kernel: Kernel, grid: Extent, threads: u32, args: &[*mut Opaque])
    -> Result<()>;
    /// Sets a 32-bit word of memory, in stream order.
    ///
    /// # Errors
    /// As [`Services::upload`].
    fn set_word(&self, address: u64, word: u32) -> Result<()>;
    /// Runs the launches of `body`, and repeats them while the word at `word` is not 0 and the globals at this address
    /// are not halted. Inside a capture, the device evaluates the condition.
    ///
    /// # Errors
    /// Returns the device's error.
    fn while_nonzero(&self, word: u64, globals: u64, body: &mut dyn FnMut() -> Result<()>) -> Result<()>;
    /// Returns how many of `steps` steps the run does next. Replicas that share the device do the same number, so that their
    /// steps are launched together.
    ///
    /// # Errors
    /// Returns the device's error.
    fn agree_on_steps(&self, steps: u64) -> Result<u64> {
        Ok(steps)
    }
    /// Says whether other replicas that share the device wait for the launches of this one. A replica that waits for the others
    /// in another way must not keep them waiting.
    fn set_awaited(&self, _awaited: bool) {}
    /// Returns the size of the pages of distributed arrays, see [`Distribution`]; `None` if the device takes no part in them.
    fn page(&self) -> Option<usize> {
        None
    }
    /// Allocates a distributed array, which all of its devices access at the returned address. None of them has it attached.
    ///
    /// # Errors
    /// Returns the device's error.
    fn allocate_distributed(&self, distribution: &Distribution) -> Result<u64> {
        Err(Error::Device { what: self.name(), message: format!("no array of {} devices", distribution.ends.len()) })
    }
    /// Attaches a distributed array to this device, which is number `rank` of its devices, and sets its part to 0. [`Services::free`]
    /// detaches it; the memory is freed when the last device has done so.
    ///
    /// # Errors
    /// Returns the device's error.
    fn attach_distributed(&self, address: u64, rank: usize) -> Result<()> {
        Err(Error::Device { what: self.name(), message: format!("no array at {address:#x} for device {rank}") })
    }
    /// Returns the number of bytes allocated.
    fn memory(&self) -> u64;
    /// Returns where the memory is.
    fn memory_kind(&self) -> MemoryKind;
    /// Returns the profile, which times launches outside of graphs.
    fn profile(&self) -> &Profile;
    /// Ends the profile after all earlier launches have finished and returns the timings.
    ///
    /// # Errors
    /// Returns the device's error.
    fn end_profile(&self) -> Result<Vec<Timing>>;
}

/// Returns the error of [`Device::await_number`] if there is no number.
fn not_stored(what: String) -> Error {
    Error::Device { what, message: "a kernel has not stored its number".into() }
}

/// Returns an error unless `n` bytes from `address` on are inside `found`: the address and size of the last allocation
/// that begins at or before `address`.
pub(crate) fn check_range(address: u64, n: usize, found: Option<(u64, u64)>) -> Result<()> {
    let inside = found.is_some_and(|(start, size)| {
        let offset = address - start;
        offset <= size && n as u64 <= size - offset
    });
    if inside || n == 0 {
        return Ok(());
    }
    let message = format!("{n} bytes from {address:#x} on are not inside an allocation");
    Err(Error::Device { what: "memory".into(), message })
}

/// The device of a run, with the reason of the choice for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Chosen {
    /// The CPU.
    Cpu {
        /// Why it was chosen.
        reason: String,
    },
    /// A GPU.
    Cuda {
        /// Number of the GPU, from 0.
        ordinal: u32,
        /// Why it was chosen.
        reason: String,
    },
    /// The CUDA kernels, emulated on the CPU.
    Emulated,
}

impl Chosen {
    /// Returns the device kind that components see: `cpu` or `cuda`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Cpu { .. } => "cpu",
            _ => "cuda",
        }
    }

    /// Returns the name of the device for users: `cpu`, `cuda` or `emulated`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Emulated => "emulated",
            _ => self.kind(),
        }
    }

    /// Opens the device; returns `None` for the CPU.
    ///
    /// # Errors
    /// Returns the device's error.
    pub fn open(&self) -> Result<Option<Arc<dyn Device>>> {
        self.open_shared(1)
    }

    /// Opens the device for one of `runs` simultaneous runs; each takes its share of the multiprocessors.
    ///
    /// # Errors
    /// Returns the device's error.
    pub fn open_shared(&self, runs: u32) -> Result<Option<Arc<dyn Device>>> {
        Ok(match self {
            Self::Cpu { .. } => None,
            Self::Cuda { ordinal, .. } => Some(Arc::new(CudaDevice::new(*ordinal, runs)?)),
            Self::Emulated => Some(Arc::new(EmulatedDevice::new()?)),
        })
    }

    /// Opens the device for one of several processes that share a run; returns `None` for the CPU.
    ///
    /// # Errors
    /// Returns the device's error.
    pub fn open_process(&self) -> Result<Option<Arc<dyn Device>>> {
        match self {
            Self::Cuda { ordinal, .. } => Ok(Some(Arc::new(cuda::open_process(*ordinal)?))),
            _ => self.open(),
        }
    }

    /// Returns the device of process number `local` of this host: the next GPUs, or the only one that the process sees.
    ///
    /// # Errors
    /// Returns an error if the host has too few GPUs.
    pub fn of_process(self, local: u32) -> std::result::Result<Self, String> {
        let Self::Cuda { ordinal, reason } = self else { return Ok(self) };
        let count = cuda::identify(ordinal).map_err(|e| e.to_string())?.0;
        if shares_gpu() || (count == 1 && ordinal == 0) || ordinal + local < count {
            let next = if shares_gpu() || count == 1 { ordinal } else { ordinal + local };
            return Ok(Self::Cuda { ordinal: next, reason });
        }
        let first = if ordinal > 0 { format!(" from number {ordinal} on") } else { String::new() };
        Err(format!(
            "process {} of this host needs a GPU{first}; the driver lists {count}: start one process for each GPU",
            local + 1
        ))
    }

    /// Returns what identifies the GPU on its host; `None` if the device is none.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn identifier(&self) -> Result<Option<String>> {
        match self {
            Self::Cuda { ordinal, .. } => Ok(Some(cuda::identify(*ordinal)?.1)),
            _ => Ok(None),
        }
    }

    /// Returns why a run cannot be shared by this device and the next ones, `ranks` in all.
    ///
    /// # Errors
    /// See above.
    pub fn check_ranks(&self, ranks: u32) -> std::result::Result<(), String> {
        match self {
            Self::Cpu { reason } => Err(format!("the run uses the CPU ({reason}), not {ranks} GPUs")),
            Self::Emulated => Ok(()),
            Self::Cuda { .. } if shares_gpu() => Ok(()),
            Self::Cuda { ordinal, .. } => check_peers(*ordinal, ranks),
        }
    }

    /// Opens this device and the next ones for a run that `ranks` GPUs share; returns `None` for the CPU.
    ///
    /// # Errors
    /// Returns the device's error.
    pub fn open_ranks(&self, ranks: u32) -> Result<Option<Vec<Arc<dyn Device>>>> {
        let all: Result<Vec<Arc<dyn Device>>> = match self {
            Self::Cpu { .. } => return Ok(None),
            Self::Cuda { ordinal, .. } => cuda::open_peers(*ordinal, ranks, shares_gpu())
                .map(|devices| devices.into_iter().map(|d| Arc::new(d) as Arc<dyn Device>).collect()),
            Self::Emulated => (0..ranks).map(|_| Ok(Arc::new(EmulatedDevice::new()?) as Arc<dyn Device>)).collect(),
        };
        all.map(Some)
    }
}

/// Returns whether all ranks of a run use the same GPU, for tests on a machine with one.
pub fn shares_gpu() -> bool {
    std::env::var_os("GALAMOST_SHARE_GPU").is_some()
}

/// Chooses the device that the user requests.
///
/// # Errors
/// Returns the driver's or compiler's message if the device cannot be used.
pub fn choose(choice: DeviceChoice) -> std::result::Result<Chosen, String> {
    match choice {
        DeviceChoice::Cpu => Ok(Chosen::Cpu { reason: "requested".into() }),
        DeviceChoice::Emulated => match emulated::probe() {
            Ok(_) => Ok(Chosen::Emulated),
            Err(e) => Err(format!("the emulated device needs g++ on the PATH: {e}")),
        },
        DeviceChoice::Cuda(ordinal) => match cuda::probe(ordinal) {
            Ok(name) => Ok(Chosen::Cuda { ordinal, reason: format!("{name}; requested") }),
            Err(e) => Err(format!("device Cuda({ordinal}) cannot be used: {e}")),
        },
        DeviceChoice::Auto => Ok(match cuda::probe(0) {
            Ok(name) => Chosen::Cuda { ordinal: 0, reason: format!("{name}; Auto chooses the first usable GPU") },
            Err(e) => Chosen::Cpu { reason: format!("Auto found no usable GPU: {e}") },
        }),
    }
}
