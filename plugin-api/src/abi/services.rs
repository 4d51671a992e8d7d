//! Services of the engine for plugins: threads, log, device memory, kernels.
//!
//! A plugin never links CUDA. It asks the engine to compile, allocate, upload and launch on the engine's stream.

use crate::abi::panic::{CaughtPanic, panic_message};
use crate::abi::wire::from_wire;
use crate::abi::{Callback, Host1, Opaque, RSlice, RSliceMut, RStr, WireHost};
use crate::device::{DevicePtr, Plain, bytes_of};
use crate::error::{Error, Result};
use galamost_plugin_macros::{DeviceStruct, Layout};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Mutex, PoisonError};

/// Levels of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Level {
    /// An error that ends the run.
    Error = 0,
    /// Probably not what the user wants.
    Warn = 1,
    /// General information.
    Info = 2,
    /// For developers.
    Debug = 3,
}

/// The engine's services.
///
/// Device memory belongs to the run. A plugin copies to memory that it allocated here, and from any memory of the run; an
/// address outside is an error:
///
/// ```
/// # use galamost_plugin_api::prelude::*;
/// use galamost_plugin_api::device::DevicePtr;
///
/// fn write(host: &Host) -> Result<()> {
///     let numbers: DevicePtr<f64> = host.allocate(2)?;
///     host.upload(numbers, &[1.0, 2.0])?;
///     assert!(host.upload(numbers, &[1.0, 2.0, 3.0]).is_err());
///     assert!(host.upload_bytes(DevicePtr::new(1 << 20), &[0; 8]).is_err());
///     host.free(numbers)
/// }
/// ```
///
/// After the run, every service but the log returns an error.
#[derive(Clone, Copy)]
pub struct Host {
    this: *mut Opaque,
    table: &'static Host1,
}

// SAFETY: `this` is only passed to the functions of `table`, which may be called from any thread at any time
unsafe impl Send for Host {}
// SAFETY: a shared reference gives only `this` to the functions of `table`, which may be called from several threads at once
unsafe impl Sync for Host {}

/// Largest number of GPUs that share a run.
pub const MAX_RANKS: usize = 32;

/// Sums of integers over all GPUs, in blocks; see [`Host::block_sums`] and `block_sums.cuh`, whose functions take it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, DeviceStruct, Layout)]
#[device(header)]
pub struct BlockSums {
    /// Address of the integers of each GPU.
    pub values: [u64; MAX_RANKS],
    /// Address of the marks of the blocks in each GPU.
    pub marks: [u64; MAX_RANKS],
    /// Address of the number of updates so far.
    pub updates: u64,
    /// Address of the `RankBarrierArgs`, from [`Host::rank_barrier`].
    pub barrier: u64,
    /// Integers of a block.
    pub size: u64,
    /// Number of blocks.
    pub blocks: u32,
    /// Number of this GPU.
    pub rank: u32,
    /// Number of GPUs.
    pub ranks: u32,
    /// Padding; 0.
    pub reserved: u32,
}

/// A compiled kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kernel(u64);

/// A compiled module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Module(u64);

impl Host {
    /// Wraps the services that the engine passes.
    ///
    /// # Errors
    /// Returns an error if the engine is too old to provide `host/1`.
    ///
    /// # Safety
    /// `wire` is the address of the engine's services, whose object `this` is never freed and accepts calls from any
    /// thread.
    pub unsafe fn new(wire: *const WireHost) -> Result<Self> {
        // SAFETY: `wire` is the address of the engine's services (contract of this function)
        let wire = unsafe { &*wire };
        let table: Option<crate::abi::TablePointer> = (wire.interface)(wire.this, RStr::from_str("host/1")).into();
        let table = table.ok_or_else(|| Error::Run("the engine has no `host/1`".into()))?;
        Ok(Self { this: wire.this, table: table.get().map_err(Error::Run)? })
    }

    /// Calls `f` for chunks of 0 … n on the engine's threads. The chunks do not depend on the number of threads.
    ///
    /// # Panics
    /// Panics if `f` panics, after all chunks are done.
    pub fn parallel(&self, n: usize, chunk: usize, f: impl Fn(Range<usize>) + Sync) {
        struct Work<F> {
            f: F,
            panicked: Mutex<Option<String>>,
        }
        extern "C" fn call<F: Fn(Range<usize>) + Sync>(data: *mut Opaque, begin: u64, end: u64) {
            // SAFETY: `data` is the address of `work` below, a `Work<F>` that lives until `parallel` returns; it is `Sync`
            let work = unsafe { &*data.cast::<Work<F>>() };
            // the engine's frames are between this one and the guard, and must not be unwound
            if let Err(payload) = catch_unwind(AssertUnwindSafe(|| (work.f)(begin as usize..end as usize))) {
                let text = panic_message(payload);
                work.panicked.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(text);
            }
        }
        fn instance<F: Fn(Range<usize>) + Sync>(_: &Work<F>) -> Callback {
            Callback { call: call::<F> }
        }
        let work = Work { f, panicked: Mutex::new(None) };
        let function = instance(&work);
        let data = std::ptr::from_ref(&work).cast_mut().cast();
        (self.table.parallel)(self.this, n as u64, chunk.max(1) as u64, function, data);
        if let Some(text) = work.panicked.into_inner().unwrap_or_else(PoisonError::into_inner) {
            resume_unwind(Box::new(CaughtPanic(text)));
        }
    }

    /// Writes a line to the log.
    pub fn log(&self, level: Level, text: &str) {
        (self.table.log)(self.this, level as u32, text.into());
    }

    /// Allocates device memory for `n` values, initialized to 0 and aligned to 256 bytes.
    ///
    /// # Errors
    /// Returns an error if the device is out of memory.
    pub fn allocate<T: Plain>(&self, n: usize) -> Result<DevicePtr<T>> {
        // more than the device has, if the product overflows
        self.allocate_bytes(n.saturating_mul(size_of::<T>())).map(DevicePtr::cast)
    }

    /// Allocates `bytes` bytes of device memory, initialized to 0, aligned to 256 bytes.
    ///
    /// # Errors
    /// Returns an error if the device is out of memory.
    pub fn allocate_bytes(&self, bytes: usize) -> Result<DevicePtr<u8>> {
        from_wire((self.table.allocate)(self.this, bytes as u64)).map(DevicePtr::new)
    }

    /// Allocates `bytes` bytes of host memory that kernels access at the same address, initialized to 0, aligned to 256 bytes. The
    /// host sees what a kernel has written once it has waited for it. A kernel should write only a few kilobytes, and no two
    /// threads the same word: accesses cross the bus.
    ///
    /// # Errors
    /// Returns an error if the host is out of memory.
    pub fn allocate_mapped_bytes(&self, bytes: usize) -> Result<DevicePtr<u8>> {
        from_wire((self.table.allocate_mapped)(self.this, bytes as u64)).map(DevicePtr::new)
    }

    /// Frees memory that this host allocated.
    ///
    /// # Errors
    /// Returns an error if `memory` was not allocated by this host.
    pub fn free<T>(&self, memory: DevicePtr<T>) -> Result<()> {
        from_wire((self.table.free)(self.this, memory.address))
    }

    /// Copies values to memory that this host allocated.
    ///
    /// # Errors
    /// Returns an error if `to` has no room for the values, or the driver's error.
    pub fn upload<T: Plain>(&self, to: DevicePtr<T>, values: &[T]) -> Result<()> {
        self.upload_bytes(to.cast(), bytes_of(values))
    }

    /// Copies bytes to memory that this host allocated.
    ///
    /// # Errors
    /// Returns an error if `to` has no room for the bytes, or the driver's error.
    pub fn upload_bytes(&self, to: DevicePtr<u8>, bytes: &[u8]) -> Result<()> {
        from_wire((self.table.upload)(self.this, to.address, RSlice::from_slice(bytes)))
    }

    /// Copies bytes from memory that this host allocated, or from an array of a view during the call that received the
    /// view; after all previous launches.
    ///
    /// # Errors
    /// Returns an error if `from` has fewer bytes, or the driver's error.
    pub fn download_bytes(&self, from: DevicePtr<u8>, bytes: &mut [u8]) -> Result<()> {
        from_wire((self.table.download)(self.this, from.address, RSliceMut::from_mut_slice(bytes)))
    }

    /// Compiles CUDA C++. The source can include the headers of `galamost-kernels` by name.
    ///
    /// # Errors
    /// Returns the compiler's messages.
    pub fn compile(&self, name: &str, source: &str) -> Result<Module> {
        from_wire((self.table.compile)(self.this, name.into(), source.into())).map(Module)
    }

    /// Returns a kernel of a module.
    ///
    /// # Errors
    /// Returns an error if the module has no kernel of this name.
    pub fn kernel(&self, module: Module, name: &str) -> Result<Kernel> {
        from_wire((self.table.kernel)(self.this, module.0, name.into())).map(Kernel)
    }

    /// Launches a kernel on the engine's stream. `arguments` are pointers to the values of the arguments; see
    /// [`crate::arguments`].
    ///
    /// # Errors
    /// Returns the driver's error.
    ///
    /// # Safety
    /// The arguments have the number and types of the kernel's parameters, and the kernel accesses only memory that
    /// exists until it ends.
    pub unsafe fn launch(&self, kernel: Kernel, grid: u32, block: u32, arguments: &mut [*mut Opaque]) -> Result<()> {
        // SAFETY: the contract is that of this function
        unsafe { self.launch_with_memory(kernel, grid, block, 0, arguments) }
    }

    /// As [`Self::launch`], with `bytes` bytes of shared memory for each block beside what the kernel declares: the kernel's array
    /// `extern __shared__`. Together they are at most [`Self::block_memory`].
    ///
    /// # Errors
    /// Returns the driver's error.
    ///
    /// # Safety
    /// As [`Self::launch`], and the kernel accesses only `bytes` bytes of that array.
    pub unsafe fn launch_with_memory(
        &self,
        kernel: Kernel,
        grid: u32,
        block: u32,
        bytes: u32,
        arguments: &mut [*mut Opaque],
    ) -> Result<()> {
        let arguments = RSlice::from_slice(arguments);
        from_wire((self.table.launch)(self.this, kernel.0, grid.into(), block.into(), bytes, arguments))
    }

    /// Returns the largest number of bytes of shared memory that a block can have.
    ///
    /// # Errors
    /// Returns an error if the run has no device.
    pub fn block_memory(&self) -> Result<u32> {
        from_wire((self.table.block_memory)(self.this))
    }

    /// Returns the number of GPUs that share the work of a force with [`Needs::shared`](crate::component::Needs::shared); 1 if there is one
    /// or if they do not share it.
    pub fn ranks(&self) -> u32 {
        (self.table.ranks)(self.this)
    }

    /// Launches a sum over all GPUs that share the work of a force: each value of `total` becomes the sum of the values at the same place in
    /// `values` of every GPU, modulo 2⁶⁴. Nothing happens if `when` is an address and the number there is 0. All GPUs must have the same
    /// number there, also after one has halted by a fault in this step: compute it from the step number alone, before
    /// looking at [`Globals::halt`](crate::views::Globals). With one GPU nothing is launched.
    ///
    /// All GPUs make the same calls in the same order. Both arrays were allocated here and are not freed before the run ends.
    ///
    /// # Errors
    /// Returns the driver's error, or an error if another GPU has failed.
    pub fn all_reduce(
        &self,
        values: DevicePtr<u64>,
        total: DevicePtr<u64>,
        n: usize,
        when: DevicePtr<u32>,
    ) -> Result<()> {
        from_wire((self.table.all_reduce)(self.this, values.address, total.address, n as u64, when.address))
    }

    /// Launches the completion of an array on all GPUs that share the work of a force: each writes the part that it has computed, that of
    /// its particles, into the memory of the others. An element of `size` bytes, a multiple of 4, belongs to `particles` consecutive
    /// particles, a divisor of 256. With one GPU nothing is launched. The rules for calls and memory are those of [`Self::all_reduce`].
    ///
    /// # Errors
    /// Returns the driver's error, or an error if another GPU has failed.
    pub fn all_gather(&self, values: DevicePtr<u8>, size: usize, particles: u32) -> Result<()> {
        from_wire((self.table.all_gather)(self.this, values.address, size as u64, particles))
    }

    /// Allocates sums of integers over all GPUs that share the work of a force, in `blocks` blocks of `size` integers, for kernels that
    /// include `galamost/block_sums.cuh`. Unlike [`Self::all_reduce`], a GPU reads only blocks that it needs, from the GPUs that have
    /// added to them. All GPUs make the same calls in the same order, in [`Force::start`](crate::force::Force::start).
    ///
    /// # Errors
    /// Returns an error if the device is out of memory or if another GPU has failed.
    pub fn block_sums(&self, blocks: u32, size: usize) -> Result<BlockSums> {
        let ranks = self.ranks();
        let mut sums = BlockSums { size: size as u64, blocks, ranks, ..BlockSums::default() };
        let values: DevicePtr<u64> = self.allocate(2 * size * blocks as usize)?;
        let marks: DevicePtr<u64> = self.allocate(2 * ranks as usize * blocks as usize)?;
        sums.updates = self.allocate::<u64>(1)?.address;
        sums.rank =
            from_wire((self.table.peers)(self.this, values.address, RSliceMut::from_mut_slice(&mut sums.values)))?;
        from_wire((self.table.peers)(self.this, marks.address, RSliceMut::from_mut_slice(&mut sums.marks)))?;
        Ok(sums)
    }

    /// Launches a barrier: kernels that are launched afterwards see what those of all GPUs before it have written, and a halt or a rebuild that
    /// one GPU requests applies to all. Returns [`BlockSums::barrier`]. All GPUs make the same calls in the same order. With one GPU, nothing is
    /// launched and 0 is returned; kernels with [`BlockSums`] are for several.
    ///
    /// # Errors
    /// Returns the driver's error, or an error if another GPU has failed.
    pub fn rank_barrier(&self) -> Result<u64> {
        from_wire((self.table.rank_barrier)(self.this))
    }

    /// Returns the bytes that each rank of the run passes, in the order of the ranks; with one rank, its own. For updaters with
    /// [`Needs::shared`](crate::component::Needs::shared): all ranks make the same calls in the same order. When the call returns, all
    /// ranks have finished what they read before with [`Self::download_bytes`].
    ///
    /// # Errors
    /// Returns an error if another rank has failed.
    pub fn gather_bytes(&self, own: &[u8]) -> Result<Vec<Vec<u8>>> {
        let all = from_wire((self.table.gather_bytes)(self.this, RSlice::from_slice(own)))?;
        Ok(all.into_iter().map(|bytes| bytes.into_vec()).collect())
    }

    /// Returns the current address of an optional per-particle array; null if no component needs it.
    pub fn array<T>(&self, name: &str) -> DevicePtr<T> {
        DevicePtr::new((self.table.array)(self.this, name.into()))
    }
}

/// Creates the pointers to the arguments of a kernel, for [`Host::launch`](crate::services::Host::launch).
#[macro_export]
macro_rules! arguments {
    ($($arg:expr),* $(,)?) => {
        [$(::std::ptr::from_ref(&$arg).cast_mut().cast::<$crate::abi::Opaque>()),*]
    };
}
