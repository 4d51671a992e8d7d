//! A GPU that is accessed through the CUDA driver.

mod context;
mod distributed;
mod driver;
mod graphs;
mod memory;
mod peers;
mod profile;
mod side_stream;

pub use context::CudaDevice;
pub use driver::{driver, driver_version, probe};
pub use peers::{check_peers, identify, open_peers, open_process};

use super::declaration::awaiting_kernels;
use super::{Device, Distribution, Graph, Kernel, MemoryKind, Services, SourceUnit, Watch, nvrtc};
use crate::profile::{Profile, Timing};
use cudarc::driver::sys;
use driver::{call, fail};
use galamost_plugin_api::abi::{Extent, Opaque};
use galamost_plugin_api::error::Result;
use galamost_plugin_api::views::Globals;
use std::collections::BTreeSet;
use std::mem::offset_of;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

/// Bytes of shared memory that a launch may reserve without asking: 48 KiB with the static memory of the kernel.
const DEFAULT_SHARED: u32 = 16 * 1024;

impl Services for CudaDevice {
    fn name(&self) -> String {
        format!("{} ({})", self.name, self.architecture)
    }
    fn multiprocessors(&self) -> u32 {
        self.multiprocessors
    }
    fn block_memory(&self) -> u32 {
        self.block_memory
    }
    fn allocate(&self, bytes: usize) -> Result<u64> {
        self.allocate_bytes(bytes)
    }
    fn allocate_mapped(&self, bytes: usize) -> Result<u64> {
        self.allocate_host_bytes(bytes)
    }
    fn free(&self, address: u64) -> Result<()> {
        self.free_bytes(address)
    }
    fn upload(&self, address: u64, bytes: &[u8]) -> Result<()> {
        self.copy_to_device(address, bytes)
    }
    fn upload_queued(&self, address: u64, bytes: &[u8]) -> Result<()> {
        self.queue_copy_to_device(address, bytes)
    }
    fn download(&self, address: u64, bytes: &mut [u8]) -> Result<()> {
        self.copy_from_device(address, bytes)
    }
    fn clear(&self, address: u64, bytes: usize) -> Result<()> {
        let inner = self.activate()?;
        inner.check_range(address, bytes)?;
        for (at, range) in inner.pieces(address, bytes) {
            // SAFETY: the range was checked, and frees wait for the stream
            unsafe { call!(cuMemsetD8Async(at, 0, range.len(), self.stream))? };
        }
        Ok(())
    }
    fn define_macro(&self, name: &'static str) {
        let mut inner = self.lock();
        if !inner.macros.contains(&name) {
            inner.macros.push(name);
        }
    }
    fn compile(&self, unit: &SourceUnit) -> Result<u64> {
        let macros = self.lock().macros.clone();
        let complete = unit.with_macros(&macros);
        if let Some((_, module)) = self.lock().loaded.iter().find(|(loaded, _)| *loaded == complete) {
            return Ok(*module);
        }
        let (cubin, _) = nvrtc::compile(&complete, &self.architecture)?;
        let mut inner = self.activate()?;
        let early = if self.begins_early { awaiting_kernels(unit)? } else { BTreeSet::new() };
        inner.modules.push((Self::load(&cubin).map_err(|e| fail(&unit.name, e))?, early));
        let module = inner.modules.len() as u64 - 1;
        if !complete.separate {
            inner.loaded.push((complete, module));
        }
        Ok(module)
    }
    fn kernel(&self, module: u64, name: &str) -> Result<Kernel> {
        let mut inner = self.activate()?;
        let (module, early) = inner.modules.get(module as usize).ok_or_else(|| fail(name, "unknown module"))?;
        let kernel = (self.function(*module, name)?, early.contains(name));
        inner.kernels.push(kernel);
        inner.names.push(name.into());
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
        let mut inner = self.activate()?;
        let (f, early) = *inner.kernels.get(kernel.0 as usize).ok_or_else(|| fail("launch", "unknown kernel"))?;
        if shared > DEFAULT_SHARED {
            use sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES as MAX_SHARED;
            // SAFETY: the function is valid
            unsafe { call!(cuFuncSetAttribute(f, MAX_SHARED, shared as i32))? };
        }
        let timed = self.profile.is_on() && inner.capture.is_none();
        if timed {
            self.start_clock(&mut inner)?;
        }
        let mut args: Vec<*mut std::ffi::c_void> = args.iter().map(|a| a.cast()).collect();
        let (stream, early) = (self.stream_of_launch(&inner), early && inner.capture.is_some());
        // SAFETY: the arguments are those that the kernel declares (contract of `launch`), and a kernel that is launched early waits for
        // those ahead of it before anything else
        unsafe { self.launch_function(f, [grid, block], shared, early, stream, &mut args)? };
        if timed { self.stop_clock(&mut inner, kernel.0 as usize) } else { Ok(()) }
    }
}

impl Device for CudaDevice {
    fn synchronize(&self) -> Result<()> {
        self.wait_watched()?;
        self.activate()?.idle = true;
        // SAFETY: the device owns the stream
        unsafe { call!(cuStreamSynchronize(self.stream)) }
    }
    fn await_number(&self, address: u64, least: u64) -> Result<u64> {
        self.spin(address, least)
    }
    fn watch(&self, watch: Watch) {
        *self.watch.lock().unwrap_or_else(PoisonError::into_inner) = Some(watch);
    }
    fn fork(&self) -> Result<()> {
        self.fork_stream()
    }
    fn on_side_stream(&self, body: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        self.launch_on_side(body)
    }
    fn join(&self) -> Result<()> {
        self.join_streams()
    }
    fn capture(&self, body: &mut dyn FnMut() -> Result<()>) -> Result<Option<Graph>> {
        self.capture_graph(body)
    }
    fn launch_graph(&self, graph: Graph) -> Result<()> {
        let inner = self.activate()?;
        let exec =
            inner.graphs.get(graph.0 as usize).copied().flatten().ok_or_else(|| fail("launch", "unknown graph"))?;
        // SAFETY: the handles are valid
        unsafe { call!(cuGraphLaunch(exec, self.stream)) }
    }
    fn destroy_graph(&self, graph: Graph) -> Result<()> {
        let mut inner = self.activate()?;
        let Some(exec) = inner.graphs.get_mut(graph.0 as usize).and_then(Option::take) else { return Ok(()) };
        // SAFETY: the graph has finished once the stream is synchronized
        unsafe {
            call!(cuStreamSynchronize(self.stream))?;
            call!(cuGraphExecDestroy(exec))
        }
    }
    fn if_rebuild(&self, globals: u64, sort_every: u32, body: &mut dyn FnMut(bool) -> Result<()>) -> Result<()> {
        if self.activate()?.capture.is_some() {
            return self.conditional_rebuild(globals, sort_every, body);
        }
        let mut bytes = [0; size_of::<Globals>()];
        self.download(globals, &mut bytes)?;
        let found = Globals::from_bytes(&bytes).ok_or_else(|| fail("globals", "their size is another one"))?;
        let requested = found.rebuild.get() != 0 && !found.is_halted();
        if requested { body(found.rebuilds.is_multiple_of(sort_every.into())) } else { Ok(()) }
    }
    fn set_word(&self, address: u64, word: u32) -> Result<()> {
        let inner = self.activate()?;
        inner.check_range(address, 4)?;
        // SAFETY: the range was checked, and frees wait for the stream; the driver refuses an unaligned address
        unsafe { call!(cuMemsetD32Async(address, word, 1, self.stream)) }
    }
    fn while_nonzero(&self, word: u64, globals: u64, body: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        if self.activate()?.capture.is_some() {
            return self.conditional_loop(globals, word, body);
        }
        loop {
            body()?;
            let mut words = [[0u8; 4]; 2];
            self.download(word, &mut words[0])?;
            self.download(globals + offset_of!(Globals, halt) as u64, &mut words[1])?;
            let [value, halt] = words.map(u32::from_ne_bytes);
            if value == 0 || halt != 0 {
                return Ok(());
            }
        }
    }
    fn supports_staged_list(&self) -> bool {
        self.capability >= (8, 0)
    }
    fn supports_grid_barrier(&self) -> bool {
        self.cooperative
    }
    fn max_resident_blocks(&self, kernel: Kernel, threads: u32) -> Result<u32> {
        let inner = self.activate()?;
        let (f, _) = *inner.kernels.get(kernel.0 as usize).ok_or_else(|| fail("occupancy", "unknown kernel"))?;
        let mut blocks = 0;
        // SAFETY: the function and the pointer are valid
        unsafe { call!(cuOccupancyMaxActiveBlocksPerMultiprocessor(&raw mut blocks, f, threads as i32, 0))? };
        Ok(blocks.max(0) as u32 * self.multiprocessors)
    }
    unsafe fn launch_cooperative(
        &self,
        kernel: Kernel,
        grid: Extent,
        threads: u32,
        args: &[*mut Opaque],
    ) -> Result<()> {
        let mut inner = self.activate()?;
        let (f, _) = *inner.kernels.get(kernel.0 as usize).ok_or_else(|| fail("launch", "unknown kernel"))?;
        let timed = self.profile.is_on() && inner.capture.is_none();
        if timed {
            self.start_clock(&mut inner)?;
        }
        let mut args: Vec<*mut std::ffi::c_void> = args.iter().map(|a| a.cast()).collect();
        let (stream, list) = (self.stream, args.as_mut_ptr());
        // SAFETY: the arguments are those that the kernel declares (contract of `launch_cooperative`)
        unsafe { call!(cuLaunchCooperativeKernel(f, grid.x, grid.y, grid.z, threads, 1, 1, 0, stream, list))? };
        if timed { self.stop_clock(&mut inner, kernel.0 as usize) } else { Ok(()) }
    }
    fn page(&self) -> Option<usize> {
        self.page
    }
    fn allocate_distributed(&self, distribution: &Distribution) -> Result<u64> {
        self.map_distributed(distribution)
    }
    fn attach_distributed(&self, address: u64, rank: usize) -> Result<()> {
        self.attach(address, rank)
    }
    fn memory(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }
    fn memory_kind(&self) -> MemoryKind {
        self.primary_memory()
    }
    fn profile(&self) -> &Profile {
        &self.profile
    }
    fn end_profile(&self) -> Result<Vec<Timing>> {
        self.collect_timings()
    }
}
