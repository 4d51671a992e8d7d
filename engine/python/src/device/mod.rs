//! Arrays in the memory of the run's device, which other libraries use without a copy.

mod array;
mod columns;
mod dlpack;

pub use array::DeviceArray;
pub use columns::{Columns, Gather, SOURCE as GATHER};
pub use dlpack::{Imported, device as place};

use galamost_engine::device::{Device, Kernel, SourceUnit};
use galamost_plugin_api::abi::{Extent, Opaque};
use galamost_plugin_api::device::{DeviceText, kernel_source};
use galamost_plugin_api::error::{Error, Result};
use galamost_plugin_api::precision::Precision;
use std::cell::{OnceCell, RefCell};
use std::sync::Arc;

/// Memory of a device; freed with its last owner, who may outlive the run.
pub struct Memory {
    device: Arc<dyn Device>,
    address: u64,
    bytes: usize,
}

impl Memory {
    /// Allocates memory that is set to 0.
    ///
    /// # Errors
    /// Returns an error if the device is out of memory.
    pub fn new(device: &Arc<dyn Device>, bytes: usize) -> Result<Arc<Self>> {
        let address = device.allocate(bytes.max(1))?;
        Ok(Arc::new(Self { device: device.clone(), address, bytes }))
    }

    /// Returns the address.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Returns the device.
    pub fn device(&self) -> &Arc<dyn Device> {
        &self.device
    }

    /// Copies the memory to the host.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn download(&self) -> Result<Vec<u8>> {
        let mut bytes = vec![0; self.bytes];
        self.device.download(self.address, &mut bytes)?;
        Ok(bytes)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if let Err(e) = self.device.free(self.address) {
            tracing::warn!("cannot free device memory: {e}");
        }
    }
}

/// The device of the simulation whose thread this is.
struct Current {
    device: Arc<dyn Device>,
    precision: Precision,
    gather: OnceCell<Arc<Gather>>,
}

thread_local! {
    static CURRENT: RefCell<Option<Current>> = const { RefCell::new(None) };
}

/// Sets the device of this thread's simulation; `None` for the CPU.
pub fn set_current(device: Option<Arc<dyn Device>>, precision: Precision) {
    let current = device.map(|device| Current { device, precision, gather: OnceCell::new() });
    CURRENT.with(|c| c.replace(current));
}

/// Returns the kernel that gathers the arrays of this thread's simulation; `None` on the CPU.
///
/// # Errors
/// Returns the compiler's error.
pub fn gather() -> Result<Option<Arc<Gather>>> {
    CURRENT.with_borrow(|current| {
        let Some(c) = current else { return Ok(None) };
        if c.gather.get().is_none() {
            let _ = c.gather.set(Arc::new(Gather::new(&c.device, c.precision)?));
        }
        Ok(c.gather.get().cloned())
    })
}

/// A kernel of this library: its name, the text of its argument, and its source.
pub type Source = (&'static str, fn() -> &'static DeviceText, &'static str);

/// Returns the unit of a kernel.
///
/// # Errors
/// Returns an error if two structs have the same name.
pub fn unit((name, argument, source): Source, precision: Precision) -> Result<SourceUnit> {
    Ok(SourceUnit::new(name, &kernel_source(&[argument()], source)?, precision))
}

/// Compiles a kernel.
///
/// # Errors
/// Returns the compiler's messages.
pub fn compile(device: &dyn Device, precision: Precision, source: Source) -> Result<Kernel> {
    device.kernel(device.compile(&unit(source, precision)?)?, source.0)
}

/// Threads per block.
pub const BLOCK: u32 = 256;

/// Launches a kernel with a thread for each of `n` particles.
///
/// # Errors
/// Returns the device's error.
///
/// # Safety
/// The kernel takes an argument of the type `A`, and the addresses in `args` are those of arrays of this device that
/// have an entry for each particle.
pub unsafe fn launch<A>(device: &dyn Device, kernel: Kernel, n: u32, args: &A) -> Result<()> {
    let pointers = [std::ptr::from_ref(args).cast_mut().cast::<Opaque>()];
    let (grid, block) = (Extent::from(n.div_ceil(BLOCK).max(1)), Extent::from(BLOCK));
    // SAFETY: the contract of this function
    unsafe { device.launch(kernel, grid, block, 0, &pointers) }
}

/// The error of a force or state that needs a device on the CPU.
pub fn missing() -> Error {
    Error::Run("the run uses the CPU, not a device".into())
}
