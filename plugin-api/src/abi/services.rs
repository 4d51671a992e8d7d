//! The engine's services, as a plugin calls them.
//!
//! A plugin never links CUDA: it asks the engine to compile, allocate, upload and launch on the engine's stream.

use crate::abi::panic::{CaughtPanic, panic_message};
use crate::abi::wire::from_wire;
use crate::abi::{Callback, Host1, Opaque, RSlice, RSliceMut, RStr, WireHost};
use crate::device::{DevicePtr, DeviceStruct, bytes_of};
use crate::error::{Error, Result};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Mutex, PoisonError};

/// Levels of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Level {
    /// The run cannot go on.
    Error = 0,
    /// Probably not what the user wants.
    Warn = 1,
    /// Worth a line.
    Info = 2,
    /// For developers.
    Debug = 3,
}

/// The engine's services; valid as long as the component that got them.
#[derive(Clone, Copy)]
pub struct Host {
    this: *mut Opaque,
    table: &'static Host1,
}

// SAFETY: the engine's services may be called from any thread; they lock what must not be used by two at once
unsafe impl Send for Host {}
// SAFETY: as above
unsafe impl Sync for Host {}

/// A compiled kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kernel(u64);

/// A compiled module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Module(u64);

impl Host {
    /// Wraps what came over the boundary.
    ///
    /// # Errors
    /// The engine is too old to have `host/1`.
    ///
    /// # Safety
    /// `wire` must point to the engine's services, which must outlive this.
    pub unsafe fn new(wire: *const WireHost) -> Result<Self> {
        // SAFETY: `wire` points to the engine's services, which outlive this value (contract of this function)
        let wire = unsafe { &*wire };
        let table: Option<crate::abi::TablePointer> = (wire.interface)(wire.this, RStr::from_str("host/1")).into();
        let table = table.ok_or_else(|| Error::Run("the engine has no `host/1`".into()))?;
        Ok(Self { this: wire.this, table: table.get().map_err(Error::Run)? })
    }

    /// Calls `f` for all of 0 … n in chunks, on the engine's threads; the chunks do not depend on their number.
    ///
    /// # Panics
    /// If `f` does, after all chunks are done.
    pub fn parallel(&self, n: usize, chunk: usize, f: impl Fn(Range<usize>) + Sync) {
        struct Work<F> {
            f: F,
            panicked: Mutex<Option<String>>,
        }
        extern "C" fn call<F: Fn(Range<usize>) + Sync>(data: *mut Opaque, begin: u64, end: u64) {
            // SAFETY: `data` is the work below, which lives until `parallel` returns
            let work = unsafe { &*data.cast::<Work<F>>() };
            // the engine is between this and the guard, and nothing may unwind through it
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

    /// Device memory for `n` values, set to 0.
    ///
    /// # Errors
    /// Returns an error if the device is out of memory.
    pub fn allocate<T: DeviceStruct>(&self, n: usize) -> Result<DevicePtr<T>> {
        from_wire((self.table.allocate)(self.this, (n * size_of::<T>()) as u64)).map(DevicePtr::new)
    }

    /// Device memory of `bytes` bytes, set to 0, aligned to 256.
    ///
    /// # Errors
    /// Returns an error if the device is out of memory.
    pub fn allocate_bytes(&self, bytes: usize) -> Result<DevicePtr<u8>> {
        from_wire((self.table.allocate)(self.this, bytes as u64)).map(DevicePtr::new)
    }

    /// Gives memory back.
    ///
    /// # Errors
    /// Returns an error if `memory` was not allocated by this host.
    pub fn free<T>(&self, memory: DevicePtr<T>) -> Result<()> {
        from_wire((self.table.free)(self.this, memory.address))
    }

    /// Copies to the device.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn upload<T: DeviceStruct>(&self, to: DevicePtr<T>, values: &[T]) -> Result<()> {
        self.upload_bytes(to.cast(), bytes_of(values))
    }

    /// Copies bytes to the device.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn upload_bytes(&self, to: DevicePtr<u8>, bytes: &[u8]) -> Result<()> {
        from_wire((self.table.upload)(self.this, to.address, RSlice::from_slice(bytes)))
    }

    /// Copies from the device, after everything launched before.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn download_bytes(&self, from: DevicePtr<u8>, bytes: &mut [u8]) -> Result<()> {
        from_wire((self.table.download)(self.this, from.address, RSliceMut::from_mut_slice(bytes)))
    }

    /// Compiles CUDA C++; the headers of `galamost-kernels` can be included by name.
    ///
    /// # Errors
    /// Returns the compiler's messages.
    pub fn compile(&self, name: &str, source: &str) -> Result<Module> {
        from_wire((self.table.compile)(self.this, name.into(), source.into())).map(Module)
    }

    /// A kernel of a module.
    ///
    /// # Errors
    /// Returns an error if the module has no kernel of this name.
    pub fn kernel(&self, module: Module, name: &str) -> Result<Kernel> {
        from_wire((self.table.kernel)(self.this, module.0, name.into())).map(Kernel)
    }

    /// Launches a kernel on the engine's stream; `arguments` are pointers to the arguments' values.
    ///
    /// # Errors
    /// Returns the driver's error.
    ///
    /// # Safety
    /// The arguments must be those the kernel declares.
    pub unsafe fn launch(&self, kernel: Kernel, grid: u32, block: u32, arguments: &mut [*mut Opaque]) -> Result<()> {
        from_wire((self.table.launch)(self.this, kernel.0, grid.into(), block.into(), 0, RSlice::from_slice(arguments)))
    }

    /// The current address of an optional per-particle array; null if no component asked for it.
    pub fn array<T>(&self, name: &str) -> DevicePtr<T> {
        DevicePtr::new((self.table.array)(self.this, name.into()))
    }
}

/// Pointers to the arguments of a kernel, for [`Host::launch`].
#[macro_export]
macro_rules! arguments {
    ($($arg:expr),* $(,)?) => {
        [$(::std::ptr::from_ref(&$arg).cast_mut().cast::<$crate::abi::Opaque>()),*]
    };
}
