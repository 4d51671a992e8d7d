//! Replicas: several runs on one device whose launches are done together.
//!
//! Each replica is a complete run with separate arrays, globals and random numbers, and sees a separate device,
//! [`ReplicaDevice`]. Where a run captures a graph, that device records the launches instead. When all replicas have reached a graph
//! launch, [`group::Group`] does the recorded launches of all of them at once: launch number k of every replica becomes one launch whose
//! z selects the replica. Everything else (updates, copies, recovery from a halt) goes to the device as in a single run. So
//! a replica has the bits of a single run.

mod combined;
mod group;
mod kernels;
mod program;
mod source;

pub use combined::unit as replicas_unit;
pub use source::batched as batched_unit;

use super::{Device, Graph, Kernel, MemoryKind, Services, SourceUnit};
use crate::profile::{Profile, Timing};
use combined::not_capturable;
use galamost_plugin_api::abi::{Extent, Opaque};
use galamost_plugin_api::error::{Error, Result};
use group::Group;
use program::{Launch, Operation, Program};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Blocks of the kernel that clears memory, and their threads.
const CLEAR: (u32, u32) = (4, 256);

/// The device of a replica. Dropping it ends the replica: the others no longer wait for it.
pub struct ReplicaDevice {
    group: Arc<Group>,
    number: usize,
    inner: Mutex<Inner>,
    profile: Profile,
}

#[derive(Default)]
struct Inner {
    /// While a graph is recorded: its operations, and those around the condition whose body is recorded.
    recording: Vec<Program>,
    /// Recorded graphs.
    programs: Vec<Option<Arc<Program>>>,
    /// Graphs to launch before anything else.
    pending: Vec<Arc<Program>>,
    macros: Vec<&'static str>,
    /// Sizes of allocations by address.
    sizes: BTreeMap<u64, u64>,
}

/// Returns a device for each of several replicas on one device. Each must be driven by its own thread.
///
/// # Errors
/// Returns the device's error.
pub fn open_replicas(device: Arc<dyn Device>, replicas: usize) -> Result<Vec<ReplicaDevice>> {
    let group = Arc::new(Group::new(device, replicas)?);
    let one =
        |number| ReplicaDevice { group: group.clone(), number, inner: Mutex::default(), profile: Profile::default() };
    Ok((0..replicas).map(one).collect())
}

impl ReplicaDevice {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn device(&self) -> &dyn Device {
        &*self.group.device
    }

    /// Returns how many blocks of a batched kernel can be resident at once, those of all replicas together.
    fn resident(&self, kernel: Kernel, threads: u32) -> Result<u32> {
        self.device().max_resident_blocks(self.group.kernels.batched(kernel)?.kernel, threads)
    }

    fn is_recording(&self) -> bool {
        !self.lock().recording.is_empty()
    }

    /// Returns the device after the launch of all pending graphs.
    ///
    /// # Errors
    /// Returns an error while a graph is recorded.
    fn direct(&self, what: &str) -> Result<&dyn Device> {
        if self.is_recording() {
            return Err(not_capturable(what));
        }
        let pending = std::mem::take(&mut self.lock().pending);
        if !pending.is_empty() {
            self.group.launch(self.number, pending)?;
        }
        Ok(self.device())
    }

    fn record(&self, operation: Operation) {
        if let Some(program) = self.lock().recording.last_mut() {
            program.push(operation);
        }
    }

    /// Records a launch.
    ///
    /// # Safety
    /// As [`Services::launch`].
    unsafe fn record_launch(
        &self,
        kernel: Kernel,
        size: (Extent, Extent, u32),
        resident: Option<u32>,
        args: &[*mut Opaque],
    ) -> Result<()> {
        if size.0.z != 1 {
            return Err(not_capturable("a grid with three dimensions"));
        }
        let kernel = self.group.kernels.batched(kernel)?;
        // SAFETY: the contract is that of this function
        let launch = unsafe { Launch::new(kernel, self.number as u32, size, resident, args) };
        self.record(Operation::Launch(launch));
        Ok(())
    }

    /// Records the operations of `body` separately and returns them.
    fn record_body(&self, body: &mut dyn FnMut() -> Result<()>) -> Result<Program> {
        self.lock().recording.push(vec![]);
        let done = body();
        let recorded = self.lock().recording.pop().unwrap_or_default();
        done.map(|()| recorded)
    }
}

impl Drop for ReplicaDevice {
    fn drop(&mut self) {
        self.group.set_awaited(self.number, false);
    }
}

impl Services for ReplicaDevice {
    fn name(&self) -> String {
        self.device().name()
    }
    fn multiprocessors(&self) -> u32 {
        // results depend on it, and are those of a single run
        self.device().multiprocessors()
    }
    fn block_memory(&self) -> u32 {
        self.device().block_memory()
    }
    fn allocate(&self, bytes: usize) -> Result<u64> {
        let address = self.device().allocate(bytes)?;
        self.lock().sizes.insert(address, bytes as u64);
        Ok(address)
    }
    fn allocate_mapped(&self, bytes: usize) -> Result<u64> {
        self.device().allocate_mapped(bytes)
    }
    fn free(&self, address: u64) -> Result<()> {
        self.lock().sizes.remove(&address);
        self.device().free(address)
    }
    fn upload(&self, address: u64, bytes: &[u8]) -> Result<()> {
        self.direct("upload")?.upload(address, bytes)
    }
    fn upload_queued(&self, address: u64, bytes: &[u8]) -> Result<()> {
        self.direct("upload")?.upload_queued(address, bytes)
    }
    fn download(&self, address: u64, bytes: &mut [u8]) -> Result<()> {
        self.direct("download")?.download(address, bytes)
    }
    fn clear(&self, address: u64, bytes: usize) -> Result<()> {
        if !self.is_recording() {
            return self.direct("clear")?.clear(address, bytes);
        }
        let kernels = &self.group.kernels;
        let kernel = kernels.kernel(kernels.compile(&replicas_unit())?, "clear_memory")?;
        let arguments = [address, bytes as u64];
        let pointers = arguments.each_ref().map(|a| std::ptr::from_ref(a).cast_mut().cast::<Opaque>());
        let size = (Extent::from(CLEAR.0), Extent::from(CLEAR.1), 0);
        // SAFETY: the kernel takes an address and a number of bytes
        unsafe { self.record_launch(kernel, size, None, &pointers) }
    }
    fn define_macro(&self, name: &'static str) {
        let mut inner = self.lock();
        if !inner.macros.contains(&name) {
            inner.macros.push(name);
        }
    }
    fn compile(&self, unit: &SourceUnit) -> Result<u64> {
        let unit = unit.with_macros(&self.lock().macros);
        self.group.kernels.compile(&unit)
    }
    fn kernel(&self, module: u64, name: &str) -> Result<Kernel> {
        self.group.kernels.kernel(module, name)
    }
    unsafe fn launch(
        &self,
        kernel: Kernel,
        grid: Extent,
        block: Extent,
        shared: u32,
        args: &[*mut Opaque],
    ) -> Result<()> {
        // SAFETY: the contract is that of this function
        unsafe {
            if self.is_recording() {
                return self.record_launch(kernel, (grid, block, shared), None, args);
            }
            self.direct("launch")?.launch(self.group.kernels.single(kernel)?, grid, block, shared, args)
        }
    }
}

impl Device for ReplicaDevice {
    fn synchronize(&self) -> Result<()> {
        self.direct("synchronization")?.synchronize()
    }
    fn capture(&self, body: &mut dyn FnMut() -> Result<()>) -> Result<Option<Graph>> {
        let program = self.record_body(body)?;
        let mut inner = self.lock();
        inner.programs.push(Some(Arc::new(program)));
        Ok(Some(Graph(inner.programs.len() as u64 - 1)))
    }
    fn launch_graph(&self, graph: Graph) -> Result<()> {
        let program = self.lock().programs.get(graph.0 as usize).cloned().flatten();
        let program =
            program.ok_or_else(|| Error::Device { what: "launch".into(), message: "unknown graph".into() })?;
        self.lock().pending.push(program);
        Ok(())
    }
    fn destroy_graph(&self, graph: Graph) -> Result<()> {
        self.direct("destruction of a graph")?;
        let program = self.lock().programs.get_mut(graph.0 as usize).and_then(Option::take);
        program.map_or(Ok(()), |p| self.group.forget(self.number, &p))
    }
    fn if_rebuild(&self, globals: u64, sort_every: u32, body: &mut dyn FnMut(bool) -> Result<()>) -> Result<()> {
        if !self.is_recording() {
            return self.direct("condition")?.if_rebuild(globals, sort_every, body);
        }
        let body = self.record_body(&mut || body(true))?;
        self.record(Operation::IfRebuild { globals, body });
        Ok(())
    }
    fn supports_staged_list(&self) -> bool {
        false
    }
    fn supports_grid_barrier(&self) -> bool {
        self.device().supports_grid_barrier()
    }
    fn max_resident_blocks(&self, kernel: Kernel, threads: u32) -> Result<u32> {
        // more replicas than blocks follow each other
        let resident = self.resident(kernel, threads)?;
        Ok((resident / self.group.replicas() as u32).max(resident.min(1)))
    }
    unsafe fn launch_cooperative(
        &self,
        kernel: Kernel,
        grid: Extent,
        threads: u32,
        args: &[*mut Opaque],
    ) -> Result<()> {
        // SAFETY: the contract is that of this function
        unsafe {
            if self.is_recording() {
                return self.record_launch(
                    kernel,
                    (grid, Extent::from(threads), 0),
                    Some(self.resident(kernel, threads)?),
                    args,
                );
            }
            self.direct("launch")?.launch_cooperative(self.group.kernels.single(kernel)?, grid, threads, args)
        }
    }
    fn set_word(&self, address: u64, word: u32) -> Result<()> {
        self.direct("a word")?.set_word(address, word)
    }
    fn while_nonzero(&self, word: u64, globals: u64, body: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        if !self.is_recording() {
            return self.direct("condition")?.while_nonzero(word, globals, body);
        }
        let body = self.record_body(body)?;
        self.record(Operation::WhileNonzero { word, globals, body });
        Ok(())
    }
    fn agree_on_steps(&self, steps: u64) -> Result<u64> {
        self.direct("steps")?;
        self.group.agree(self.number, steps)
    }
    fn set_awaited(&self, awaited: bool) {
        self.group.set_awaited(self.number, awaited);
    }
    fn memory(&self) -> u64 {
        self.lock().sizes.values().sum()
    }
    fn memory_kind(&self) -> MemoryKind {
        self.device().memory_kind()
    }
    fn profile(&self) -> &Profile {
        &self.profile
    }
    fn end_profile(&self) -> Result<Vec<Timing>> {
        Ok(self.profile.end())
    }
}
