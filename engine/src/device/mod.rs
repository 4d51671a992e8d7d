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
pub use source::{SourceUnit, api_header, kernel_names};

use crate::pipeline::DeviceChoice;
use crate::plugins::host::DeviceServices;
use crate::profile::{Profile, Timing};
use galamost_plugin_api::abi::{Extent, Opaque};
use galamost_plugin_api::error::Result;
use galamost_plugin_api::precision::Precision;
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

/// A device that runs CUDA kernels: a GPU, or the emulation on the CPU.
///
/// Everything is done in the order it was asked for, on one stream.
pub trait Device: Send + Sync {
    /// For the log.
    fn name(&self) -> String;
    /// Multiprocessors: how many threads it takes to fill the device.
    fn multiprocessors(&self) -> u32;
    /// Memory set to 0, aligned to 256 bytes.
    ///
    /// # Errors
    /// Out of memory.
    fn allocate(&self, bytes: usize) -> Result<u64>;
    /// Gives memory back, after everything launched before.
    ///
    /// # Errors
    /// The device's words.
    fn free(&self, address: u64) -> Result<()>;
    /// Copies to the device.
    ///
    /// # Errors
    /// The device's words.
    fn upload(&self, address: u64, bytes: &[u8]) -> Result<()>;
    /// Copies from the device, after everything launched before.
    ///
    /// # Errors
    /// The device's words.
    fn download(&self, address: u64, bytes: &mut [u8]) -> Result<()>;
    /// Sets memory to 0; can be captured.
    ///
    /// # Errors
    /// The device's words.
    fn clear(&self, address: u64, bytes: usize) -> Result<()>;
    /// Every unit compiled from now on is compiled with this macro.
    fn define_macro(&self, name: &'static str);
    /// Compiles a unit; the kernels are found by [`Self::kernel`].
    ///
    /// # Errors
    /// The compiler's words.
    fn compile(&self, unit: &SourceUnit) -> Result<u64>;
    /// A kernel of a compiled unit.
    ///
    /// # Errors
    /// There is none of this name.
    fn kernel(&self, module: u64, name: &str) -> Result<Kernel>;
    /// Launches a kernel; can be captured.
    ///
    /// # Errors
    /// The device's words.
    fn launch(&self, kernel: Kernel, grid: Extent, block: Extent, shared: u32, args: &[*mut Opaque]) -> Result<()>;
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
    fn launch_graph(&self, graph: Graph) -> Result<()>;
    /// Forgets a captured sequence.
    ///
    /// # Errors
    /// The device's words.
    fn destroy_graph(&self, graph: Graph) -> Result<()>;
    /// Does what `body` launches if, when it comes to it, the globals at this address ask for a rebuild and are not
    /// halted. Inside a capture the decision is made on the device in every replay.
    ///
    /// # Errors
    /// The device's words.
    fn if_rebuild(&self, globals: u64, body: &mut dyn FnMut() -> Result<()>) -> Result<()>;
    /// Whether blocks may wait for each other, see [`Self::launch_cooperative`].
    fn supports_grid_barrier(&self) -> bool;
    /// Blocks of so many threads that can be on the device together.
    ///
    /// # Errors
    /// The device's words.
    fn max_resident_blocks(&self, kernel: Kernel, threads: u32) -> Result<u32>;
    /// Launches a kernel whose blocks wait for each other, at most [`Self::max_resident_blocks`] ones; can be captured.
    ///
    /// # Errors
    /// The device's words.
    fn launch_cooperative(&self, kernel: Kernel, blocks: u32, threads: u32, args: &[*mut Opaque]) -> Result<()>;
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
    fn while_nonzero(&self, left: u64, globals: u64, body: &mut dyn FnMut() -> Result<()>) -> Result<()>;
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

/// PluginServices of a device for plugins.
pub struct PluginServices {
    device: Arc<dyn Device>,
    precision: Precision,
}

impl PluginServices {
    /// PluginServices of this device; plugins' kernels are compiled for this precision.
    pub fn new(device: Arc<dyn Device>, precision: Precision) -> Self {
        Self { device, precision }
    }
}

impl DeviceServices for PluginServices {
    fn allocate(&self, bytes: u64) -> Result<u64> {
        self.device.allocate(bytes as usize)
    }
    fn free(&self, address: u64) -> Result<()> {
        self.device.free(address)
    }
    fn upload(&self, address: u64, bytes: &[u8]) -> Result<()> {
        self.device.upload(address, bytes)
    }
    fn download(&self, address: u64, bytes: &mut [u8]) -> Result<()> {
        self.device.download(address, bytes)
    }
    fn compile(&self, name: &str, source: &str) -> Result<u64> {
        self.device.compile(&SourceUnit::new(name, source, self.precision))
    }
    fn kernel(&self, module: u64, name: &str) -> Result<u64> {
        self.device.kernel(module, name).map(|k| k.0)
    }
    fn launch(&self, kernel: u64, grid: Extent, block: Extent, shared: u32, arguments: &[*mut Opaque]) -> Result<()> {
        self.device.launch(Kernel(kernel), grid, block, shared, arguments)
    }
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
