//! A GPU through the CUDA driver.

use super::ptx::{WAIT_NANOSECONDS, WAIT_PTX, condition_ptx};
use super::source::Unit;
use super::{Device, Graph, Kernel, Services, nvrtc};
use crate::profile::{Profile, Timing};
use cudarc::driver::sys;
use galamost_plugin_api::abi::{Extent, Opaque};
use galamost_plugin_api::error::{Error, Result};
use galamost_plugin_api::views::Globals;
use std::ffi::{CStr, CString};
use std::mem::offset_of;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

fn fail(what: &str, message: impl std::fmt::Display) -> Error {
    Error::Device { what: what.into(), message: message.to_string() }
}

fn check(what: &str, r: sys::CUresult) -> Result<()> {
    if r == sys::CUresult::CUDA_SUCCESS {
        return Ok(());
    }
    let mut text = std::ptr::null();
    // SAFETY: the driver answers with a static string
    let words = unsafe {
        let known = sys::cuGetErrorString(r, &raw mut text) == sys::CUresult::CUDA_SUCCESS && !text.is_null();
        if known { CStr::from_ptr(text).to_string_lossy().into_owned() } else { String::new() }
    };
    Err(fail(what, format!("{words} ({r:?})")))
}

macro_rules! call {
    ($function:ident($($arg:expr),* $(,)?)) => {
        check(stringify!($function), sys::$function($($arg),*))
    };
}

/// Looks whether a GPU can be used, without opening it; its name.
///
/// # Errors
/// Why it cannot be used.
pub fn probe(ordinal: u32) -> std::result::Result<String, String> {
    // SAFETY: only looks for the library
    if !unsafe { sys::is_culib_present() } {
        return Err("there is no NVIDIA driver (libcuda.so was not found)".into());
    }
    nvrtc::load().map_err(|e| e.to_string())?;
    // SAFETY: valid pointers; the driver is there
    unsafe {
        call!(cuInit(0)).map_err(|e| e.to_string())?;
        let mut n = 0;
        call!(cuDeviceGetCount(&raw mut n)).map_err(|e| e.to_string())?;
        if ordinal >= n as u32 {
            return Err(format!("the driver shows {n} GPU(s), numbered from 0"));
        }
        let mut device = 0;
        call!(cuDeviceGet(&raw mut device, ordinal as i32)).map_err(|e| e.to_string())?;
        let mut name = [0i8; 128];
        call!(cuDeviceGetName(name.as_mut_ptr().cast(), 128, device)).map_err(|e| e.to_string())?;
        Ok(CStr::from_ptr(name.as_ptr().cast()).to_string_lossy().into_owned())
    }
}

/// The newest CUDA that the driver knows, as 1000 · major + 10 · minor, and the GPUs, with their memory.
///
/// # Errors
/// There is no driver, or it does not work.
pub fn driver() -> Result<(i32, Vec<String>)> {
    // SAFETY: only looks for the library
    if !unsafe { sys::is_culib_present() } {
        return Err(fail("driver", "there is no NVIDIA driver (libcuda.so was not found)"));
    }
    // SAFETY: valid pointers; the driver is there
    unsafe {
        call!(cuInit(0))?;
        let (mut version, mut n) = (0, 0);
        call!(cuDriverGetVersion(&raw mut version))?;
        call!(cuDeviceGetCount(&raw mut n))?;
        let mut devices = vec![];
        for ordinal in 0..n {
            let (mut device, mut name, mut bytes) = (0, [0i8; 128], 0);
            call!(cuDeviceGet(&raw mut device, ordinal))?;
            call!(cuDeviceGetName(name.as_mut_ptr().cast(), 128, device))?;
            call!(cuDeviceTotalMem_v2(&raw mut bytes, device))?;
            let name = CStr::from_ptr(name.as_ptr().cast()).to_string_lossy().into_owned();
            devices.push(format!("{name}, {:.0} GiB", bytes as f64 / 1024f64.powi(3)));
        }
        Ok((version, devices))
    }
}

/// The version of the NVIDIA driver, as its kernel module tells it.
pub fn driver_version() -> Option<String> {
    let text = std::fs::read_to_string("/proc/driver/nvidia/version").ok()?;
    let is_version = |w: &&str| w.split('.').count() >= 2 && w.chars().all(|c| c.is_ascii_digit() || c == '.');
    text.lines().next()?.split_whitespace().find(is_version).map(String::from)
}

/// Which kernel sets a condition.
#[derive(Clone, Copy)]
enum Condition {
    /// The list is built anew.
    Rebuild,
    /// The word at this address is not 0.
    Left(u64),
}

/// What is being captured.
struct Capture {
    graph: sys::CUgraph,
}

/// A launch that is timed: it lasted from the event before to this one.
struct Timed {
    event: sys::CUevent,
    /// Whose it was, and which kernel; `None` where the time begins.
    launch: Option<(Arc<str>, usize)>,
}

#[derive(Default)]
struct Inner {
    modules: Vec<sys::CUmodule>,
    kernels: Vec<sys::CUfunction>,
    names: Vec<String>,
    timed: Vec<Timed>,
    /// Nothing is on its way to the device.
    drained: bool,
    wait: Option<sys::CUfunction>,
    graphs: Vec<Option<sys::CUgraphExec>>,
    macros: Vec<&'static str>,
    capture: Option<Capture>,
    /// Kernels of [`condition_ptx`].
    conditions: Option<[sys::CUfunction; 2]>,
    sizes: std::collections::BTreeMap<u64, u64>,
}

/// A GPU.
pub struct CudaDevice {
    context: sys::CUcontext,
    device: sys::CUdevice,
    stream: sys::CUstream,
    name: String,
    architecture: String,
    multiprocessors: u32,
    /// Kernels may wait for all their blocks.
    together: bool,
    /// Other runs use the device, too.
    shared: bool,
    inner: Mutex<Inner>,
    used: AtomicU64,
    profile: Profile,
}

// SAFETY: handles of the driver may be used from any thread that has the context current, which every call sees to
unsafe impl Send for CudaDevice {}
// SAFETY: as above; what changes is behind a mutex
unsafe impl Sync for CudaDevice {}

impl CudaDevice {
    /// Opens a GPU for one of so many runs at once, which takes its share of the multiprocessors.
    ///
    /// # Errors
    /// The driver's words.
    pub fn new(ordinal: u32, runs: u32) -> Result<Self> {
        let name = probe(ordinal).map_err(|e| fail("CUDA", e))?;
        // SAFETY: valid pointers; the driver was initialised by `probe`
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
            // graphs whose bodies wait for all their blocks are not allowed where processes share the GPU through MPS
            let shared = attribute(A::CU_DEVICE_ATTRIBUTE_MPS_ENABLED).unwrap_or(0) != 0;
            let together = attribute(A::CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH)? != 0 && !shared;
            let mut context = std::ptr::null_mut();
            call!(cuDevicePrimaryCtxRetain(&raw mut context, device))?;
            call!(cuCtxSetCurrent(context))?;
            let mut stream = std::ptr::null_mut();
            call!(cuStreamCreate(&raw mut stream, sys::CUstream_flags_enum::CU_STREAM_NON_BLOCKING as u32))?;
            Ok(Self {
                context,
                device,
                stream,
                name,
                architecture: format!("sm_{major}{minor}"),
                multiprocessors: (multiprocessors / runs.max(1)).max(1),
                together,
                shared: runs > 1,
                inner: Mutex::default(),
                used: AtomicU64::new(0),
                profile: Profile::default(),
            })
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn enter(&self) -> Result<std::sync::MutexGuard<'_, Inner>> {
        // SAFETY: the context is ours until drop
        unsafe { call!(cuCtxSetCurrent(self.context))? };
        Ok(self.lock())
    }

    fn load(image: &[u8]) -> Result<sys::CUmodule> {
        let mut module = std::ptr::null_mut();
        // SAFETY: a whole image; PTX has its terminating 0
        unsafe { call!(cuModuleLoadData(&raw mut module, image.as_ptr().cast()))? };
        Ok(module)
    }

    fn function(module: sys::CUmodule, name: &str) -> Result<sys::CUfunction> {
        let mut function = std::ptr::null_mut();
        let c = CString::new(name).map_err(|e| fail(name, e))?;
        // SAFETY: valid pointers
        unsafe { call!(cuModuleGetFunction(&raw mut function, module, c.as_ptr())) }
            .map_err(|e| fail(&format!("kernel {name}"), e))?;
        Ok(function)
    }

    /// An event behind everything launched before.
    fn record(&self) -> Result<sys::CUevent> {
        let mut event = std::ptr::null_mut();
        // SAFETY: valid pointers
        unsafe {
            call!(cuEventCreate(&raw mut event, 0))?;
            call!(cuEventRecord(event, self.stream))?;
        }
        Ok(event)
    }

    /// Before a launch that is timed.
    fn before_timed(&self, inner: &mut Inner) -> Result<()> {
        if !std::mem::replace(&mut inner.drained, false) {
            return Ok(());
        }
        let wait = match inner.wait {
            Some(wait) => wait,
            None => {
                let ptx = CString::new(WAIT_PTX).map_err(|e| fail("wait", e))?;
                let wait = Self::function(Self::load(ptx.as_bytes_with_nul())?, "wait")?;
                *inner.wait.insert(wait)
            }
        };
        let (stream, none) = (self.stream, std::ptr::null_mut());
        let mut args = [std::ptr::from_ref(&WAIT_NANOSECONDS).cast_mut().cast()];
        // SAFETY: the kernel takes a word, which is copied by the call
        unsafe { call!(cuLaunchKernel(wait, 1, 1, 1, 1, 1, 1, 0, stream, args.as_mut_ptr(), none))? };
        inner.timed.push(Timed { event: self.record()?, launch: None });
        Ok(())
    }

    fn begin(&self, graph: sys::CUgraph, after: &[sys::CUgraphNode]) -> Result<()> {
        // SAFETY: handles are valid; the array has the length given
        unsafe {
            call!(cuStreamBeginCaptureToGraph(
                self.stream,
                graph,
                after.as_ptr(),
                std::ptr::null(),
                after.len(),
                sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
            ))
        }
    }

    /// Ends the capture under way; the nodes that what follows must wait for.
    fn end(&self) -> Result<Vec<sys::CUgraphNode>> {
        // SAFETY: the stream is capturing; the list of nodes is the driver's until the next call
        unsafe {
            let mut status = sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
            let mut graph = std::ptr::null_mut();
            let mut nodes = std::ptr::null();
            let mut n = 0;
            let mut id = 0;
            call!(cuStreamGetCaptureInfo_v3(
                self.stream,
                &raw mut status,
                &raw mut id,
                &raw mut graph,
                &raw mut nodes,
                std::ptr::null_mut(),
                &raw mut n,
            ))?;
            let last = if n > 0 { std::slice::from_raw_parts(nodes, n).to_vec() } else { vec![] };
            call!(cuStreamEndCapture(self.stream, &raw mut graph))?;
            Ok(last)
        }
    }

    /// Launches the kernel that sets a condition.
    fn set_condition(&self, handle: u64, globals: u64, condition: Condition) -> Result<()> {
        let mut inner = self.enter()?;
        let [rebuild, left] = match inner.conditions {
            Some(kernels) => kernels,
            None => {
                let ptx = CString::new(condition_ptx()).map_err(|e| fail("conditions", e))?;
                let module = Self::load(ptx.as_bytes_with_nul())?;
                let kernels = [Self::function(module, "set_rebuild")?, Self::function(module, "set_left")?];
                inner.conditions = Some(kernels);
                kernels
            }
        };
        let (kernel, word) = match condition {
            Condition::Rebuild => (rebuild, globals),
            Condition::Left(word) => (left, word),
        };
        let words = [handle, globals, word];
        let mut args = words.each_ref().map(|w| std::ptr::from_ref(w).cast_mut().cast());
        let (stream, none) = (self.stream, std::ptr::null_mut());
        // SAFETY: the kernel takes three words, which are copied by the call
        unsafe { call!(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, args.as_mut_ptr(), none)) }
    }

    /// Captures a conditional node whose body is what `body` launches: once if there is something to rebuild, or again and again while
    /// there are steps left.
    fn conditional(&self, globals: u64, condition: Condition, body: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        let repeats = matches!(condition, Condition::Left(_));
        let graph = match &self.enter()?.capture {
            Some(capture) => capture.graph,
            None => return Err(fail("conditional", "nothing is being captured")),
        };
        // SAFETY: handles are valid; structs of the driver are zeroed before their fields are set, as it asks for
        unsafe {
            let mut handle = 0;
            call!(cuGraphConditionalHandleCreate(&raw mut handle, graph, self.context, u32::from(repeats), 1))?;
            if !repeats {
                self.set_condition(handle, globals, condition)?;
            }
            let before = self.end()?;
            let mut params: sys::CUgraphNodeParams = std::mem::zeroed();
            params.type_ = sys::CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL;
            params.__bindgen_anon_1.conditional = sys::CUDA_CONDITIONAL_NODE_PARAMS {
                handle,
                type_: if repeats {
                    sys::CUgraphConditionalNodeType::CU_GRAPH_COND_TYPE_WHILE
                } else {
                    sys::CUgraphConditionalNodeType::CU_GRAPH_COND_TYPE_IF
                },
                size: 1,
                phGraph_out: std::ptr::null_mut(),
                ctx: self.context,
            };
            let mut node = std::ptr::null_mut();
            call!(cuGraphAddNode_v2(
                &raw mut node,
                graph,
                before.as_ptr(),
                std::ptr::null(),
                before.len(),
                &raw mut params,
            ))?;
            let inside = *params.__bindgen_anon_1.conditional.phGraph_out;
            // conditional nodes in the body belong to its graph
            self.enter()?.capture = Some(Capture { graph: inside });
            self.begin(inside, &[])?;
            let mut done = body();
            if repeats && done.is_ok() {
                done = self.set_condition(handle, globals, condition);
            }
            let ended = self.end();
            self.enter()?.capture = Some(Capture { graph });
            // what follows waits for the conditional node; the capture must be open again even after an error
            self.begin(graph, &[node])?;
            done.and(ended.map(|_| ()))
        }
    }
}

impl Drop for CudaDevice {
    fn drop(&mut self) {
        // SAFETY: everything below was made by this device; errors have nowhere to go
        unsafe {
            let _ = call!(cuCtxSetCurrent(self.context));
            let _ = call!(cuStreamSynchronize(self.stream));
            let inner = self.inner.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner);
            for g in inner.graphs.drain(..).flatten() {
                let _ = call!(cuGraphExecDestroy(g));
            }
            for m in inner.modules.drain(..) {
                let _ = call!(cuModuleUnload(m));
            }
            for address in std::mem::take(&mut inner.sizes).into_keys() {
                let _ = call!(cuMemFree_v2(address));
            }
            let _ = call!(cuStreamDestroy_v2(self.stream));
            let _ = call!(cuDevicePrimaryCtxRelease_v2(self.device));
        }
    }
}

impl Services for CudaDevice {
    fn name(&self) -> String {
        format!("{} ({})", self.name, self.architecture)
    }
    fn multiprocessors(&self) -> u32 {
        self.multiprocessors
    }
    fn allocate(&self, bytes: usize) -> Result<u64> {
        let mut inner = self.enter()?;
        let bytes = bytes.max(256);
        let mut address = 0;
        // SAFETY: valid pointers
        unsafe {
            if let Err(e) = call!(cuMemAlloc_v2(&raw mut address, bytes)) {
                let used = self.used.load(Ordering::Relaxed);
                return Err(fail("GPU memory", format!("{bytes} more bytes after {used} in use: {e}")));
            }
            call!(cuMemsetD8Async(address, 0, bytes, self.stream))?;
        }
        inner.sizes.insert(address, bytes as u64);
        self.used.fetch_add(bytes as u64, Ordering::Relaxed);
        Ok(address)
    }
    fn free(&self, address: u64) -> Result<()> {
        let mut inner = self.enter()?;
        let size = inner.sizes.remove(&address).ok_or_else(|| fail("free", format!("{address:#x} is not ours")))?;
        self.used.fetch_sub(size, Ordering::Relaxed);
        // SAFETY: the address came from cuMemAlloc
        unsafe {
            call!(cuStreamSynchronize(self.stream))?;
            call!(cuMemFree_v2(address))
        }
    }
    fn upload(&self, address: u64, bytes: &[u8]) -> Result<()> {
        let mut inner = self.enter()?;
        if bytes.is_empty() {
            return Ok(());
        }
        inner.drained = true;
        // SAFETY: the caller's word about the address; pageable memory is copied before the call returns
        unsafe {
            call!(cuMemcpyHtoDAsync_v2(address, bytes.as_ptr().cast(), bytes.len(), self.stream))?;
            call!(cuStreamSynchronize(self.stream))
        }
    }
    fn download(&self, address: u64, bytes: &mut [u8]) -> Result<()> {
        let mut inner = self.enter()?;
        if bytes.is_empty() {
            return Ok(());
        }
        // SAFETY: the caller's word about the address
        unsafe {
            call!(cuMemcpyDtoHAsync_v2(bytes.as_mut_ptr().cast(), address, bytes.len(), self.stream))?;
            call!(cuStreamSynchronize(self.stream))?;
        }
        inner.drained = true;
        Ok(())
    }
    fn clear(&self, address: u64, bytes: usize) -> Result<()> {
        let _inner = self.enter()?;
        // SAFETY: the caller's word about the address
        unsafe { call!(cuMemsetD8Async(address, 0, bytes, self.stream)) }
    }
    fn define(&self, name: &'static str) {
        let mut inner = self.lock();
        if !inner.macros.contains(&name) {
            inner.macros.push(name);
        }
    }
    fn compile(&self, unit: &Unit) -> Result<u64> {
        let macros = self.lock().macros.clone();
        let (cubin, _) = nvrtc::compile(&unit.with(&macros), &self.architecture)?;
        let mut inner = self.enter()?;
        inner.modules.push(Self::load(&cubin).map_err(|e| fail(&unit.name, e))?);
        Ok(inner.modules.len() as u64 - 1)
    }
    fn kernel(&self, module: u64, name: &str) -> Result<Kernel> {
        let mut inner = self.enter()?;
        let module = *inner.modules.get(module as usize).ok_or_else(|| fail(name, "no such module"))?;
        inner.kernels.push(Self::function(module, name)?);
        inner.names.push(name.into());
        Ok(Kernel(inner.kernels.len() as u64 - 1))
    }
    fn launch(&self, kernel: Kernel, grid: Extent, block: Extent, shared: u32, args: &[*mut Opaque]) -> Result<()> {
        let mut inner = self.enter()?;
        let f = *inner.kernels.get(kernel.0 as usize).ok_or_else(|| fail("launch", "no such kernel"))?;
        let timed = self.profile.is_on() && inner.capture.is_none();
        if timed {
            self.before_timed(&mut inner)?;
        }
        let mut args: Vec<*mut std::ffi::c_void> = args.iter().map(|a| a.cast()).collect();
        // SAFETY: the caller gives the arguments that the kernel declares
        unsafe {
            call!(cuLaunchKernel(
                f,
                grid.x,
                grid.y,
                grid.z,
                block.x,
                block.y,
                block.z,
                shared,
                self.stream,
                args.as_mut_ptr(),
                std::ptr::null_mut(),
            ))?;
        }
        if timed {
            let launch = Some((self.profile.part(), kernel.0 as usize));
            inner.timed.push(Timed { event: self.record()?, launch });
        }
        Ok(())
    }
}

impl Device for CudaDevice {
    fn synchronize(&self) -> Result<()> {
        self.enter()?.drained = true;
        // SAFETY: the stream is ours
        unsafe { call!(cuStreamSynchronize(self.stream)) }
    }
    fn capture(&self, body: &mut dyn FnMut() -> Result<()>) -> Result<Option<Graph>> {
        // for tools that do not follow graphs; graphs with conditions of several runs wait for each other
        if std::env::var_os("GALAMOST_NO_GRAPHS").is_some() || self.shared {
            return Ok(None);
        }
        // SAFETY: handles are valid; the graph is destroyed once it is instantiated
        unsafe {
            let mut graph = std::ptr::null_mut();
            {
                let mut inner = self.enter()?;
                call!(cuGraphCreate(&raw mut graph, 0))?;
                inner.capture = Some(Capture { graph });
            }
            let captured = self.begin(graph, &[]).and_then(|()| {
                let done = body();
                let ended = self.end();
                done.and(ended.map(|_| ()))
            });
            let mut inner = self.enter()?;
            inner.capture = None;
            let mut exec = std::ptr::null_mut();
            let made = captured.and_then(|()| call!(cuGraphInstantiateWithFlags(&raw mut exec, graph, 0)));
            let _ = call!(cuGraphDestroy(graph));
            made?;
            inner.graphs.push(Some(exec));
            Ok(Some(Graph(inner.graphs.len() as u64 - 1)))
        }
    }
    fn replay(&self, graph: Graph) -> Result<()> {
        let inner = self.enter()?;
        let exec =
            inner.graphs.get(graph.0 as usize).copied().flatten().ok_or_else(|| fail("replay", "no such graph"))?;
        // SAFETY: handles are valid
        unsafe { call!(cuGraphLaunch(exec, self.stream)) }
    }
    fn forget(&self, graph: Graph) -> Result<()> {
        let mut inner = self.enter()?;
        let Some(exec) = inner.graphs.get_mut(graph.0 as usize).and_then(Option::take) else { return Ok(()) };
        // SAFETY: the graph may still be running
        unsafe {
            call!(cuStreamSynchronize(self.stream))?;
            call!(cuGraphExecDestroy(exec))
        }
    }
    fn if_rebuild(&self, globals: u64, body: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        let capturing = self.enter()?.capture.is_some();
        if capturing {
            return self.conditional(globals, Condition::Rebuild, body);
        }
        let mut words = [0u8; 16];
        self.download(globals, &mut words)?;
        let word = |at: usize| u32::from_ne_bytes([words[at], words[at + 1], words[at + 2], words[at + 3]]);
        let ask = word(offset_of!(Globals, rebuild)) != 0 && word(offset_of!(Globals, halt)) == 0;
        if ask { body() } else { Ok(()) }
    }
    fn together(&self) -> bool {
        self.together
    }
    fn resident(&self, kernel: Kernel, threads: u32) -> Result<u32> {
        let inner = self.enter()?;
        let f = *inner.kernels.get(kernel.0 as usize).ok_or_else(|| fail("resident", "no such kernel"))?;
        let mut blocks = 0;
        // SAFETY: a valid function and pointer
        unsafe { call!(cuOccupancyMaxActiveBlocksPerMultiprocessor(&raw mut blocks, f, threads as i32, 0))? };
        Ok(blocks.max(0) as u32 * self.multiprocessors)
    }
    fn launch_together(&self, kernel: Kernel, blocks: u32, threads: u32, args: &[*mut Opaque]) -> Result<()> {
        let inner = self.enter()?;
        let f = *inner.kernels.get(kernel.0 as usize).ok_or_else(|| fail("launch", "no such kernel"))?;
        let mut args: Vec<*mut std::ffi::c_void> = args.iter().map(|a| a.cast()).collect();
        let (stream, list) = (self.stream, args.as_mut_ptr());
        // SAFETY: the caller gives the arguments that the kernel declares
        unsafe { call!(cuLaunchCooperativeKernel(f, blocks, 1, 1, threads, 1, 1, 0, stream, list)) }
    }
    fn set_word(&self, address: u64, word: u32) -> Result<()> {
        let _inner = self.enter()?;
        // SAFETY: the caller's word about the address
        unsafe { call!(cuMemsetD32Async(address, word, 1, self.stream)) }
    }
    fn while_left(&self, left: u64, globals: u64, body: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        if self.enter()?.capture.is_some() {
            return self.conditional(globals, Condition::Left(left), body);
        }
        loop {
            body()?;
            let mut words = [[0u8; 4]; 2];
            self.download(left, &mut words[0])?;
            self.download(globals + offset_of!(Globals, halt) as u64, &mut words[1])?;
            let [left, halt] = words.map(u32::from_ne_bytes);
            if left == 0 || halt != 0 {
                return Ok(());
            }
        }
    }
    fn memory(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }
    fn profile(&self) -> &Profile {
        &self.profile
    }
    fn end_profile(&self) -> Result<Vec<Timing>> {
        let mut inner = self.enter()?;
        let inner = &mut *inner;
        inner.drained = true;
        // SAFETY: the events are ours, and each is destroyed once
        unsafe {
            call!(cuStreamSynchronize(self.stream))?;
            let mut before = None;
            for t in inner.timed.drain(..) {
                if let (Some(from), Some((part, kernel))) = (before, t.launch) {
                    let mut milliseconds = 0.0;
                    call!(cuEventElapsedTime_v2(&raw mut milliseconds, from, t.event))?;
                    self.profile.add(part, &inner.names[kernel], 1e-3 * f64::from(milliseconds));
                }
                if let Some(event) = before.replace(t.event) {
                    call!(cuEventDestroy_v2(event))?;
                }
            }
            if let Some(event) = before {
                call!(cuEventDestroy_v2(event))?;
            }
        }
        Ok(self.profile.end())
    }
}
