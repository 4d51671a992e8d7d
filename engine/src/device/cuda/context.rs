//! Context, stream and modules of a GPU.

use super::distributed::page_size;
use super::driver::{call, fail, probe};
use super::graphs::Capture;
use super::memory::STAGED_BYTES;
use super::profile::Timed;
use super::side_stream::SideStream;
use crate::device::{Distribution, MemoryKind, SourceUnit, Watch};
use crate::profile::Profile;
use cudarc::driver::sys;
use galamost_plugin_api::error::Result;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CString;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What changes while a device is in use.
#[derive(Default)]
pub(super) struct Inner {
    /// Modules, each with the names of its kernels that may begin before those ahead of them have ended.
    pub modules: Vec<(sys::CUmodule, BTreeSet<String>)>,
    /// Units that need not be loaded again, with their modules.
    pub loaded: Vec<(SourceUnit, u64)>,
    /// Kernels, and whether each is one of these.
    pub kernels: Vec<(sys::CUfunction, bool)>,
    /// Names of `kernels`.
    pub names: Vec<String>,
    pub timed: Vec<Timed>,
    /// All launches have finished.
    pub idle: bool,
    /// The kernel of [`crate::device::ptx::WAIT_PTX`].
    pub wait: Option<sys::CUfunction>,
    pub graphs: Vec<Option<sys::CUgraphExec>>,
    pub macros: Vec<&'static str>,
    pub capture: Option<Capture>,
    /// The second stream, if it is in use.
    pub side: Option<SideStream>,
    /// The kernels of [`crate::device::ptx::condition_ptx`].
    pub conditions: Option<[sys::CUfunction; 3]>,
    /// Sizes of allocations by address.
    pub sizes: BTreeMap<u64, u64>,
    /// Those of them that are memory of the host.
    pub mapped: BTreeSet<u64>,
    /// Distributed arrays by address, and the number of this device among theirs.
    pub distributed: BTreeMap<u64, (Distribution, usize)>,
}

/// A GPU.
pub struct CudaDevice {
    pub(super) context: sys::CUcontext,
    device: sys::CUdevice,
    pub(super) stream: sys::CUstream,
    pub(super) name: String,
    pub(super) architecture: String,
    /// Compute capability.
    pub(super) capability: (i32, i32),
    pub(super) multiprocessors: u32,
    /// Bytes of shared memory that a block can have.
    pub(super) block_memory: u32,
    /// The device supports cooperative launches: blocks of a kernel may wait for each other.
    pub(super) cooperative: bool,
    /// Kernels of a graph that wait for those ahead of them by themselves are launched before these have ended. The environment variable
    /// `GALAMOST_EARLY=0` prevents it, for measurements.
    pub(super) begins_early: bool,
    /// Size of the pages of several GPUs that the driver maps into one range of addresses, if it does.
    pub(super) page: Option<usize>,
    /// Several runs of this process use the device.
    pub(super) shared: bool,
    /// The code of kernels is loaded at once, not at their first launch, which may wait for kernels of other ranks.
    pub(super) eager: bool,
    pub(super) inner: Mutex<Inner>,
    /// Address of page-locked memory through which small copies to the host go.
    pub(super) staging: u64,
    /// Bytes allocated.
    pub(super) used: AtomicU64,
    pub(super) profile: Profile,
    /// Looks for failures while the host waits.
    pub(super) watch: Mutex<Option<Watch>>,
}

// SAFETY: any thread may use the driver's handles while the context is current, and `activate` makes it current
unsafe impl Send for CudaDevice {}
// SAFETY: through a shared reference, all mutable state is behind a mutex, and any thread may use the driver's handles
unsafe impl Sync for CudaDevice {}

impl CudaDevice {
    /// Opens a GPU. `runs` is the number of runs that share it; each takes its share of the multiprocessors.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn new(ordinal: u32, runs: u32) -> Result<Self> {
        let name = probe(ordinal).map_err(|e| fail("CUDA", e))?;
        // SAFETY: the pointers are valid, and `probe` initialized the driver
        unsafe {
            let mut device = 0;
            call!(cuDeviceGet(&raw mut device, ordinal as i32))?;
            let attribute = |which| {
                let mut value = 0;
                call!(cuDeviceGetAttribute(&raw mut value, which, device)).map(|()| value)
            };
            use sys::CUdevice_attribute_enum as A;
            let major = attribute(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
            let minor = attribute(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
            let multiprocessors = attribute(A::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)? as u32;
            let block_memory = attribute(A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)? as u32;
            // under MPS, graphs must not contain cooperative launches
            let mps = attribute(A::CU_DEVICE_ATTRIBUTE_MPS_ENABLED).unwrap_or(0) != 0;
            let cooperative = attribute(A::CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH)? != 0 && !mps;
            let maps = attribute(A::CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED).unwrap_or(0) != 0;
            let mut context = std::ptr::null_mut();
            call!(cuDevicePrimaryCtxRetain(&raw mut context, device))?;
            call!(cuCtxSetCurrent(context))?;
            // the side stream has the default priority, which is the lowest
            let (mut stream, mut least, mut highest) = (std::ptr::null_mut(), 0, 0);
            call!(cuCtxGetStreamPriorityRange(&raw mut least, &raw mut highest))?;
            let kind = sys::CUstream_flags_enum::CU_STREAM_NON_BLOCKING as u32;
            call!(cuStreamCreateWithPriority(&raw mut stream, kind, highest))?;
            let mut staging = std::ptr::null_mut();
            call!(cuMemHostAlloc(&raw mut staging, STAGED_BYTES, 0))?;
            Ok(Self {
                context,
                device,
                stream,
                name,
                architecture: format!("sm_{major}{minor}"),
                capability: (major, minor),
                multiprocessors: (multiprocessors / runs.max(1)).max(1),
                block_memory,
                cooperative,
                begins_early: major >= 9 && std::env::var_os("GALAMOST_EARLY").is_none_or(|e| e != "0"),
                page: if maps { Some(page_size(ordinal)?) } else { None },
                shared: runs > 1,
                eager: false,
                inner: Mutex::default(),
                staging: staging as u64,
                used: AtomicU64::new(0),
                profile: Profile::default(),
                watch: Mutex::default(),
            })
        }
    }

    /// Returns number and stream of this GPU. Other libraries use the same, primary context.
    pub(super) fn primary_memory(&self) -> MemoryKind {
        // the driver's handle of a device is its number
        MemoryKind::Cuda { ordinal: self.device as u32, stream: self.stream as u64 }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the context current in this thread and locks the state.
    pub(super) fn activate(&self) -> Result<MutexGuard<'_, Inner>> {
        // SAFETY: the device holds the context until it is dropped
        unsafe { call!(cuCtxSetCurrent(self.context))? };
        Ok(self.lock())
    }

    /// Loads machine code or PTX; PTX must end with a 0 byte.
    pub(super) fn load(image: &[u8]) -> Result<sys::CUmodule> {
        let mut module = std::ptr::null_mut();
        // SAFETY: the image is complete; PTX ends with a 0 byte
        unsafe { call!(cuModuleLoadData(&raw mut module, image.as_ptr().cast()))? };
        Ok(module)
    }

    /// Returns a kernel of a module.
    pub(super) fn function(&self, module: sys::CUmodule, name: &str) -> Result<sys::CUfunction> {
        let mut function = std::ptr::null_mut();
        let c = CString::new(name).map_err(|e| fail(name, e))?;
        // SAFETY: the pointers are valid
        unsafe { call!(cuModuleGetFunction(&raw mut function, module, c.as_ptr())) }
            .map_err(|e| fail(&format!("kernel {name}"), e))?;
        if self.eager {
            // SAFETY: the function is valid
            unsafe { call!(cuFuncLoad(function))? };
        }
        Ok(function)
    }
}

impl Drop for CudaDevice {
    fn drop(&mut self) {
        let attached: Vec<u64> = self.lock().distributed.keys().copied().collect();
        for address in attached {
            // a destructor cannot return errors
            let _ = self.detach(address);
        }
        // SAFETY: this device created every handle below and destroys each once; a destructor cannot return errors
        unsafe {
            let _ = call!(cuCtxSetCurrent(self.context));
            let _ = call!(cuStreamSynchronize(self.stream));
            let inner = self.inner.get_mut().unwrap_or_else(PoisonError::into_inner);
            inner.side = None;
            for g in inner.graphs.drain(..).flatten() {
                let _ = call!(cuGraphExecDestroy(g));
            }
            for (m, _) in inner.modules.drain(..) {
                let _ = call!(cuModuleUnload(m));
            }
            let mapped = std::mem::take(&mut inner.mapped);
            for address in std::mem::take(&mut inner.sizes).into_keys() {
                let _ = match mapped.contains(&address) {
                    true => call!(cuMemFreeHost(address as *mut std::ffi::c_void)),
                    false => call!(cuMemFree_v2(address)),
                };
            }
            let _ = call!(cuMemFreeHost(self.staging as *mut std::ffi::c_void));
            let _ = call!(cuStreamDestroy_v2(self.stream));
            let _ = call!(cuDevicePrimaryCtxRelease_v2(self.device));
        }
    }
}
