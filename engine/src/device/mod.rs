//! Devices: which there are, and what the engine asks of one that runs CUDA kernels.
//!
//! `cudarc` is named only in this folder.

mod cache;
mod cuda;
mod emulated;
pub mod nvrtc;
mod ptx;
mod source;

pub use cache::folder as cache_folder;
pub use cuda::{CudaDevice, driver, driver_version};
pub use emulated::EmulatedDevice;
pub use source::{Unit, api_header, kernel_names};

use crate::pipeline::DeviceChoice;
use crate::profile::{Profile, Timing};
use galamost_plugin_api::abi::{Extent, Opaque};
use galamost_plugin_api::error::Result;
use std::sync::Arc;

/// A compiled kernel of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kernel(pub u64);

/// A captured sequence of launches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Graph(pub u64);

/// What a compilation told: one entry for each kernel of the unit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelReport {
    /// Kernel.
    pub name: String,
    /// Registers per thread.
    pub registers: u32,
    /// Bytes spilled to local memory and read back.
    pub spills: u32,
    /// Static shared memory in bytes.
    pub shared: u32,
}

/// Memory, compilation and launches: what plugins ([`crate::plugins::host`]) and the engine use on every device.
///
/// A device executes all calls in order, on one stream.
pub trait Services: Send + Sync {
    /// Returns the device's name for the log.
    fn name(&self) -> String;
    /// Returns the number of multiprocessors, from which the engine derives how many threads fill the device.
    fn multiprocessors(&self) -> u32;
    /// Allocates zeroed memory, aligned to 256 bytes.
    ///
    /// # Errors
    /// Returns an error if the device is out of memory.
    fn allocate(&self, bytes: usize) -> Result<u64>;
    /// Frees memory after all earlier launches have finished.
    ///
    /// # Errors
    /// Returns the driver's error, or an error if this device did not allocate the address.
    fn free(&self, address: u64) -> Result<()>;
    /// Copies bytes to the device.
    ///
    /// # Errors
    /// Returns the driver's error.
    fn upload(&self, address: u64, bytes: &[u8]) -> Result<()>;
    /// Copies bytes from the device after all earlier launches have finished.
    ///
    /// # Errors
    /// Returns the driver's error.
    fn download(&self, address: u64, bytes: &mut [u8]) -> Result<()>;
    /// Sets memory to 0. Can be captured in a graph.
    ///
    /// # Errors
    /// Returns the driver's error.
    fn clear(&self, address: u64, bytes: usize) -> Result<()>;
    /// Defines a macro for every unit compiled from now on.
    fn define(&self, name: &'static str);
    /// Compiles a unit and returns its module; [`Self::kernel`] finds its kernels.
    ///
    /// # Errors
    /// Returns the compiler's messages.
    fn compile(&self, unit: &Unit) -> Result<u64>;
    /// Returns a kernel of a compiled module.
    ///
    /// # Errors
    /// Returns an error if the module has no kernel of this name.
    fn kernel(&self, module: u64, name: &str) -> Result<Kernel>;
    /// Launches a kernel. Can be captured in a graph.
    ///
    /// # Errors
    /// Returns the driver's error.
    fn launch(&self, kernel: Kernel, grid: Extent, block: Extent, shared: u32, args: &[*mut Opaque]) -> Result<()>;
}

/// A device that runs CUDA kernels: a GPU, or the emulation on the CPU.
pub trait Device: Services {
    /// Waits for everything launched before.
    ///
    /// # Errors
    /// Whatever went wrong on the device meanwhile.
    fn synchronize(&self) -> Result<()>;
    /// Captures what `body` launches; `None` where the device has no graphs, and `body` was not called.
    ///
    /// # Errors
    /// The device's words.
    fn capture(&self, body: &mut dyn FnMut() -> Result<()>) -> Result<Option<Graph>>;
    /// Launches a captured sequence.
    ///
    /// # Errors
    /// The device's words.
    fn replay(&self, graph: Graph) -> Result<()>;
    /// Forgets a captured sequence.
    ///
    /// # Errors
    /// The device's words.
    fn forget(&self, graph: Graph) -> Result<()>;
    /// Does what `body` launches if, when it comes to it, the globals at this address ask for a rebuild and are not
    /// halted. Inside a capture the decision is made on the device in every replay.
    ///
    /// # Errors
    /// The device's words.
    fn if_rebuild(&self, globals: u64, body: &mut dyn FnMut() -> Result<()>) -> Result<()>;
    /// Whether blocks may wait for each other, see [`Self::launch_together`].
    fn together(&self) -> bool;
    /// Blocks of so many threads that can be on the device together.
    ///
    /// # Errors
    /// The device's words.
    fn resident(&self, kernel: Kernel, threads: u32) -> Result<u32>;
    /// Launches a kernel whose blocks wait for each other, at most [`Self::resident`] ones; can be captured.
    ///
    /// # Errors
    /// The device's words.
    fn launch_together(&self, kernel: Kernel, blocks: u32, threads: u32, args: &[*mut Opaque]) -> Result<()>;
    /// Sets a word of memory, in the order of launches.
    ///
    /// # Errors
    /// The device's words.
    fn set_word(&self, address: u64, word: u32) -> Result<()>;
    /// Does what `body` launches, and does it again while the word at `left` is not 0 and the globals at this address are not
    /// halted. Inside a capture the decision is made on the device.
    ///
    /// # Errors
    /// The device's words.
    fn while_left(&self, left: u64, globals: u64, body: &mut dyn FnMut() -> Result<()>) -> Result<()>;
    /// Bytes allocated.
    fn memory(&self) -> u64;
    /// Where launches outside of graphs are timed.
    fn profile(&self) -> &Profile;
    /// Ends the profile, after everything launched before.
    ///
    /// # Errors
    /// The device's words.
    fn end_profile(&self) -> Result<Vec<Timing>>;
}

/// The device of a run, with the reason for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Chosen {
    /// The CPU.
    Cpu {
        /// Why.
        reason: String,
    },
    /// A GPU.
    Cuda {
        /// Its number.
        ordinal: u32,
        /// Why.
        reason: String,
    },
    /// The CUDA kernels on the CPU.
    Emulated,
}

impl Chosen {
    /// What components are told: `cpu` or `cuda`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Cpu { .. } => "cpu",
            _ => "cuda",
        }
    }

    /// Opens the device; `None` for the CPU.
    ///
    /// # Errors
    /// The device's words.
    pub fn open(&self) -> Result<Option<Arc<dyn Device>>> {
        self.open_shared(1)
    }

    /// Opens the device for one of so many runs at once: each takes its share of the multiprocessors.
    ///
    /// # Errors
    /// The device's words.
    pub fn open_shared(&self, runs: u32) -> Result<Option<Arc<dyn Device>>> {
        Ok(match self {
            Self::Cpu { .. } => None,
            Self::Cuda { ordinal, .. } => Some(Arc::new(CudaDevice::new(*ordinal, runs)?)),
            Self::Emulated => Some(Arc::new(EmulatedDevice::new()?)),
        })
    }
}

/// Takes the device the user asks for.
///
/// # Errors
/// It is not there; with the driver's words.
pub fn choose(choice: DeviceChoice) -> std::result::Result<Chosen, String> {
    match choice {
        DeviceChoice::Cpu => Ok(Chosen::Cpu { reason: "asked for".into() }),
        DeviceChoice::Emulated => match emulated::probe() {
            Ok(_) => Ok(Chosen::Emulated),
            Err(e) => Err(format!("the emulated device needs g++: {e}")),
        },
        DeviceChoice::Cuda(ordinal) => match cuda::probe(ordinal) {
            Ok(name) => Ok(Chosen::Cuda { ordinal, reason: format!("{name}; asked for") }),
            Err(e) => Err(format!("device Cuda({ordinal}) cannot be used: {e}")),
        },
        DeviceChoice::Auto => Ok(match cuda::probe(0) {
            Ok(name) => Chosen::Cuda { ordinal: 0, reason: format!("{name}; Auto takes a GPU that works") },
            Err(e) => Chosen::Cpu { reason: format!("Auto found no GPU that works: {e}") },
        }),
    }
}
