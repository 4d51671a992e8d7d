//! The engine's services for plugins (`host/1`).

use super::cpu_services::CpuServices;
use crate::device::{Kernel, Services, SourceUnit, check_range};
use galamost_plugin_api::abi::{
    Callback, Extent, Host1, Opaque, ROption, RResult, RSlice, RSliceMut, RStr, RVec, TablePointer, Wire, WireError,
    WireHost,
};
use galamost_plugin_api::error::{Error, Result};
use galamost_plugin_api::precision::Precision;
use galamost_plugin_api::services::MAX_RANKS;
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use tracing::{debug, error, info, warn};

/// Collective operations of the GPUs that share the work of components.
pub trait Collectives: Send + Sync {
    /// Returns the number of GPUs.
    fn ranks(&self) -> u32;
    /// See [`galamost_plugin_api::services::Host::all_reduce`].
    ///
    /// # Errors
    /// Returns the driver's error, or an error if another rank has failed.
    fn all_reduce(&self, values: u64, total: u64, n: u64, when: u64) -> Result<()>;
    /// See [`galamost_plugin_api::services::Host::all_gather`].
    ///
    /// # Errors
    /// As for [`Self::all_reduce`].
    fn all_gather(&self, values: u64, size: u64, particles: u32) -> Result<()>;
    /// Returns the address of an array in each rank, and the number of this rank.
    ///
    /// # Errors
    /// As for [`Self::all_reduce`].
    fn peers(&self, own: u64) -> Result<([u64; MAX_RANKS], u32)>;
    /// See [`galamost_plugin_api::services::Host::rank_barrier`].
    ///
    /// # Errors
    /// As for [`Self::all_reduce`].
    fn rank_barrier(&self) -> Result<u64>;
}

/// The ranks of a run, as components see them that handle a range of particles.
pub trait Ranks: Send + Sync {
    /// See [`galamost_plugin_api::services::Host::gather_bytes`].
    ///
    /// # Errors
    /// Returns an error if another rank has failed.
    fn gather_bytes(&self, own: &[u8]) -> Result<Vec<Vec<u8>>>;
}

/// What the pointer of a [`WireHost`] refers to. It is never freed, because a plugin may keep its [`WireHost`] in a thread
/// or a static; only the device is released at the end of the run.
struct HostState {
    /// `None` after the run.
    device: Mutex<Option<Arc<dyn Services>>>,
    /// Plugins' kernels are compiled for this precision.
    precision: Precision,
    /// Addresses of the optional per-particle arrays.
    arrays: Mutex<BTreeMap<String, u64>>,
    /// Memory that plugins may write: what they allocated, and the queue of edits. Address and size.
    writable: Mutex<BTreeMap<u64, u64>>,
    /// Set if several GPUs share the work of components.
    collectives: Mutex<Option<Arc<dyn Collectives>>>,
    /// Set if several GPUs or processes share the run.
    ranks: Mutex<Option<Arc<dyn Ranks>>>,
    /// A component is called on the first rank only, while the others wait.
    alone: AtomicBool,
}

impl HostState {
    fn device(&self) -> Result<Arc<dyn Services>> {
        let device = self.device.lock().unwrap_or_else(PoisonError::into_inner);
        device.clone().ok_or_else(|| Error::Run("the services of the engine ended with the run".into()))
    }
    fn collectives(&self) -> Option<Arc<dyn Collectives>> {
        self.collectives.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
    fn ranks(&self) -> Option<Arc<dyn Ranks>> {
        self.ranks.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
    fn writable(&self) -> MutexGuard<'_, BTreeMap<u64, u64>> {
        self.writable.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns room for a state. Since none is freed, they are allocated many at a time: single ones would fragment the heap
/// of a process with many runs.
fn room() -> &'static OnceLock<HostState> {
    const MANY: usize = 64;
    static FREE: Mutex<&[OnceLock<HostState>]> = Mutex::new(&[]);
    let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
    if free.is_empty() {
        *free = Box::leak((0..MANY).map(|_| OnceLock::new()).collect());
    }
    let first = &free[0];
    *free = &free[1..];
    first
}

/// The services of a run.
pub struct HostServices {
    wire: WireHost,
    state: Arc<Lease>,
    /// Address of the queue of edits, if there is one.
    queue: Option<u64>,
    /// Room for edits in the queue in host memory of the next call of an updater.
    pub edit_room: AtomicUsize,
}

// SAFETY: the pointer in `wire` is that of `state`, which is Sync
unsafe impl Send for HostServices {}
// SAFETY: `state` is Sync, and `wire` and `queue` are not changed after their construction
unsafe impl Sync for HostServices {}

impl HostServices {
    /// Returns the services of a device, which compiles plugins' kernels for this precision.
    pub fn new(device: Arc<dyn Services>, precision: Precision) -> Self {
        let device = Mutex::new(Some(device));
        let state = room().get_or_init(|| HostState {
            device,
            precision,
            arrays: Mutex::default(),
            writable: Mutex::default(),
            collectives: Mutex::default(),
            ranks: Mutex::default(),
            alone: AtomicBool::new(false),
        });
        Self::of(Arc::new(Lease(state)), 256)
    }

    fn of(state: Arc<Lease>, edit_room: usize) -> Self {
        let this = std::ptr::from_ref(state.0).cast_mut().cast();
        Self { wire: WireHost { this, interface }, state, queue: None, edit_room: AtomicUsize::new(edit_room) }
    }

    /// Returns the services of the CPU.
    pub fn cpu() -> Self {
        Self::new(Arc::<CpuServices>::default(), Precision::default())
    }

    /// Returns the services in the form that crosses to plugins.
    pub fn wire(&self) -> &WireHost {
        &self.wire
    }

    /// Publishes the address of an optional per-particle array to plugins.
    pub fn set_array(&self, name: &str, address: u64) {
        self.state.arrays.lock().unwrap_or_else(PoisonError::into_inner).insert(name.into(), address);
    }

    /// Lets plugins share their work with other GPUs.
    pub fn set_collectives(&self, collectives: Arc<dyn Collectives>) {
        *self.state.collectives.lock().unwrap_or_else(PoisonError::into_inner) = Some(collectives);
    }

    /// Lets plugins exchange bytes with other ranks.
    pub fn set_ranks(&self, ranks: Arc<dyn Ranks>) {
        *self.state.ranks.lock().unwrap_or_else(PoisonError::into_inner) = Some(ranks);
    }

    /// Says whether a component is now called on the first rank only.
    pub fn set_alone(&self, alone: bool) {
        self.state.alone.store(alone, Ordering::Relaxed);
    }

    /// Returns the same services for another system with the same state. Plugins no longer use memory, queue of edits and ranks of this one.
    pub fn for_next_system(&mut self) -> Self {
        if let Some(queue) = self.queue.take() {
            self.state.writable().remove(&queue);
        }
        self.state.arrays.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.state.collectives.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.state.ranks.lock().unwrap_or_else(PoisonError::into_inner).take();
        Self::of(self.state.clone(), self.edit_room.load(Ordering::Relaxed))
    }

    /// Lets plugins write the queue of edits, instead of the one before.
    pub fn set_queue(&mut self, address: u64, bytes: usize) {
        let mut writable = self.state.writable();
        if let Some(before) = self.queue.replace(address) {
            writable.remove(&before);
        }
        writable.insert(address, bytes as u64);
    }

    /// Lets plugins read arrays of the run (address and size) until the next call; see [`Services::lend`].
    pub fn lend(&self, arrays: Vec<(u64, u64)>) {
        if let Ok(device) = self.state.device() {
            device.lend(arrays);
        }
    }
}

/// The state of the services as long as a run uses it.
struct Lease(&'static HostState);

impl Deref for Lease {
    type Target = HostState;
    fn deref(&self) -> &HostState {
        self.0
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.device.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.collectives.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.ranks.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.writable().clear();
        self.arrays.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

fn services(this: *mut Opaque) -> &'static HostState {
    // SAFETY: `this` is the address of a `HostState` that [`room`] leaked
    unsafe { &*this.cast::<HostState>() }
}

fn wire<T>(r: Result<T>) -> Wire<T> {
    match r {
        Ok(v) => RResult::ROk(v),
        Err(e) => RResult::RErr(WireError::from(e)),
    }
}

extern "C" fn interface(_: *mut Opaque, name: RStr<'_>) -> ROption<TablePointer> {
    const HOST: &Host1 = &Host1 {
        parallel,
        log,
        allocate,
        free,
        upload,
        download,
        compile,
        kernel,
        launch,
        block_memory,
        array,
        ranks,
        all_reduce,
        all_gather,
        peers,
        rank_barrier,
        gather_bytes,
        allocate_mapped,
    };
    match name.as_str() {
        "host/1" => ROption::RSome(TablePointer::new(HOST)),
        _ => ROption::RNone,
    }
}

/// A plugin's data pointer, passed to several threads.
#[derive(Clone, Copy)]
struct Data(*mut Opaque);
// SAFETY: the data of a `host/1` callback are a closure that is `Sync` (bound of `Host::parallel`)
unsafe impl Send for Data {}
// SAFETY: threads only call the closure at the address through a shared reference, and it is `Sync` (bound of `Host::parallel`)
unsafe impl Sync for Data {}

extern "C" fn parallel(_: *mut Opaque, n: u64, chunk: u64, f: Callback, data: *mut Opaque) {
    let data = Data(data);
    let chunk = chunk.max(1);
    let work = crate::activity::Shared::of_this_thread();
    (0..n.div_ceil(chunk)).into_par_iter().for_each(|k| {
        // capture the whole wrapper, because the pointer inside is not Send
        let Data(pointer) = { data };
        let _activity = work.enter();
        (f.call)(pointer, k * chunk, (k * chunk).saturating_add(chunk).min(n));
    });
}
extern "C" fn log(_: *mut Opaque, level: u32, text: RStr<'_>) {
    match level {
        0 => error!("{text}"),
        1 => warn!("{text}"),
        2 => info!("{text}"),
        _ => debug!("{text}"),
    }
}
/// Allocates memory that the plugin may write.
fn allocate_by(this: *mut Opaque, bytes: u64, by: fn(&dyn Services, usize) -> Result<u64>) -> Wire<u64> {
    let s = services(this);
    wire(s.device().and_then(|d| {
        let mut writable = s.writable();
        let address = by(&*d, usize::try_from(bytes).unwrap_or(usize::MAX))?;
        writable.insert(address, bytes);
        Ok(address)
    }))
}
extern "C" fn allocate(this: *mut Opaque, bytes: u64) -> Wire<u64> {
    allocate_by(this, bytes, |d, bytes| d.allocate(bytes))
}
extern "C" fn allocate_mapped(this: *mut Opaque, bytes: u64) -> Wire<u64> {
    allocate_by(this, bytes, |d, bytes| d.allocate_mapped(bytes))
}
extern "C" fn free(this: *mut Opaque, address: u64) -> Wire<()> {
    let s = services(this);
    wire(s.device().and_then(|d| {
        let mut writable = s.writable();
        if writable.remove(&address).is_none() {
            return Err(Error::Run(format!("{address:#x} is not memory that a component allocated")));
        }
        d.free(address)
    }))
}
extern "C" fn upload(this: *mut Opaque, address: u64, bytes: RSlice<'_, u8>) -> Wire<()> {
    let s = services(this);
    wire(s.device().and_then(|d| {
        let writable = s.writable();
        let found = writable.range(..=address).next_back().map(|(at, size)| (*at, *size));
        check_range(address, bytes.len(), found)?;
        d.upload_queued(address, bytes.as_slice())
    }))
}
extern "C" fn download(this: *mut Opaque, address: u64, mut bytes: RSliceMut<'_, u8>) -> Wire<()> {
    wire(services(this).device().and_then(|d| d.download(address, bytes.as_mut_slice())))
}
extern "C" fn compile(this: *mut Opaque, name: RStr<'_>, source: RStr<'_>) -> Wire<u64> {
    let s = services(this);
    wire(s.device().and_then(|d| d.compile(&SourceUnit::new(name.as_str(), source.as_str(), s.precision).separate())))
}
extern "C" fn kernel(this: *mut Opaque, module: u64, name: RStr<'_>) -> Wire<u64> {
    wire(services(this).device().and_then(|d| d.kernel(module, name.as_str())).map(|k| k.0))
}
extern "C" fn launch(
    this: *mut Opaque,
    kernel: u64,
    grid: Extent,
    block: Extent,
    shared: u32,
    arguments: RSlice<'_, *mut Opaque>,
) -> Wire<()> {
    let arguments = arguments.as_slice();
    // SAFETY: the arguments are those of the kernel (contract of `Host::launch`)
    wire(services(this).device().and_then(|d| unsafe { d.launch(Kernel(kernel), grid, block, shared, arguments) }))
}
extern "C" fn block_memory(this: *mut Opaque) -> Wire<u32> {
    wire(services(this).device().map(|d| d.block_memory()))
}
extern "C" fn array(this: *mut Opaque, name: RStr<'_>) -> u64 {
    let arrays = services(this).arrays.lock().unwrap_or_else(PoisonError::into_inner);
    let address = arrays.get(name.as_str()).copied().unwrap_or(0);
    if address == 0 {
        crate::activity::asked_for_null(name.as_str());
    }
    address
}
extern "C" fn ranks(this: *mut Opaque) -> u32 {
    services(this).collectives().map_or(1, |s| s.ranks())
}
extern "C" fn all_reduce(this: *mut Opaque, values: u64, total: u64, n: u64, when: u64) -> Wire<()> {
    wire(services(this).collectives().map_or(Ok(()), |s| s.all_reduce(values, total, n, when)))
}
extern "C" fn all_gather(this: *mut Opaque, values: u64, size: u64, particles: u32) -> Wire<()> {
    wire(services(this).collectives().map_or(Ok(()), |s| s.all_gather(values, size, particles)))
}
extern "C" fn peers(this: *mut Opaque, own: u64, mut addresses: RSliceMut<'_, u64>) -> Wire<u32> {
    let found = services(this)
        .collectives()
        .map_or_else(|| Ok((std::array::from_fn(|k| if k == 0 { own } else { 0 }), 0)), |s| s.peers(own));
    wire(found.map(|(all, rank)| {
        addresses.as_mut_slice().iter_mut().zip(all).for_each(|(to, address)| *to = address);
        rank
    }))
}
extern "C" fn rank_barrier(this: *mut Opaque) -> Wire<u64> {
    wire(services(this).collectives().map_or(Ok(0), |s| s.rank_barrier()))
}
extern "C" fn gather_bytes(this: *mut Opaque, own: RSlice<'_, u8>) -> Wire<RVec<RVec<u8>>> {
    let (own, services) = (own.as_slice(), services(this));
    let all = match services.ranks() {
        None => Ok(vec![own.to_vec()]),
        Some(_) if services.alone.load(Ordering::Relaxed) => {
            Err(Error::Run("`gather_bytes` needs a call on every rank: set `needs.shared` in `bind`".into()))
        }
        Some(ranks) => ranks.gather_bytes(own),
    };
    wire(all.map(|all| all.into_iter().map(RVec::from).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use galamost_plugin_api::device::DevicePtr;
    use galamost_plugin_api::services::Host;

    fn host(services: &HostServices) -> Host {
        // SAFETY: the services are those of `HostServices`, whose object is never freed
        unsafe { Host::new(services.wire()) }.expect("this engine has `host/1`")
    }

    #[test]
    fn copies_stay_inside_of_allocations() {
        let services = HostServices::cpu();
        let host = host(&services);
        let numbers: DevicePtr<f64> = host.allocate(3).expect("memory");
        host.upload(numbers, &[1.0, 2.0, 3.0]).expect("inside");
        let mut bytes = [0; 8];
        host.download_bytes(numbers.offset(2).cast(), &mut bytes).expect("inside");
        assert_eq!(f64::from_ne_bytes(bytes), 3.0);
        let outside = "are not inside an allocation";
        let other = [0u8; 64];
        let refused = [
            host.upload(numbers, &[0.0; 4]),
            host.upload(numbers.offset(3), &[0.0]),
            host.upload_bytes(DevicePtr::new(numbers.address - 1), &[0]),
            host.upload_bytes(DevicePtr::new(u64::MAX), &[0]),
            host.upload_bytes(DevicePtr::new(other.as_ptr() as u64), &[1; 8]),
            host.upload_bytes(DevicePtr::null(), &[1]),
            host.download_bytes(numbers.offset(3).cast(), &mut bytes),
            host.download_bytes(DevicePtr::new(other.as_ptr() as u64), &mut bytes),
        ];
        for result in refused {
            let message = result.expect_err("outside").to_string();
            assert!(message.contains(outside), "{message}");
        }
        assert_eq!(other, [0; 64]);
        assert!(host.allocate::<f64>(usize::MAX / 4).is_err() && host.allocate_bytes(usize::MAX).is_err());
        assert!(host.free(numbers.offset(1)).is_err(), "not an allocation");
        host.free(numbers).expect("allocated");
        assert!(host.free(numbers).is_err() && host.upload(numbers, &[1.0]).is_err(), "freed");
    }

    #[test]
    fn bytes_are_gathered_in_calls_on_every_rank_only() {
        struct Two;
        impl Ranks for Two {
            fn gather_bytes(&self, own: &[u8]) -> Result<Vec<Vec<u8>>> {
                Ok(vec![own.to_vec(), vec![7]])
            }
        }
        let services = HostServices::cpu();
        let host = host(&services);
        assert_eq!(host.gather_bytes(&[1, 2]).expect("one rank"), [vec![1, 2]]);
        services.set_ranks(Arc::new(Two));
        services.set_alone(true);
        let message = host.gather_bytes(&[1]).expect_err("the other rank never calls it").to_string();
        assert!(message.contains("needs.shared"), "{message}");
        services.set_alone(false);
        assert_eq!(host.gather_bytes(&[1]).expect("both ranks"), [vec![1], vec![7]]);
    }

    #[test]
    fn arrays_of_the_run_are_readable_while_they_are_lent() {
        let mut services = HostServices::cpu();
        let host = host(&services);
        let mut tags = vec![4u32, 5, 6];
        let address = DevicePtr::<u8>::new(tags.as_mut_ptr() as u64);
        let mut bytes = [0; 12];
        assert!(host.download_bytes(address, &mut bytes).is_err(), "not lent yet");
        services.lend(vec![(address.address, 12)]);
        host.download_bytes(address, &mut bytes).expect("lent");
        assert_eq!(bytes[4], 5);
        assert!(host.download_bytes(address.offset(1), &mut bytes).is_err(), "past the end");
        assert!(host.upload_bytes(address, &[0; 4]).is_err(), "only to read");
        services.lend(vec![]);
        assert!(host.download_bytes(address, &mut bytes).is_err(), "not lent any more");
        // the queue of edits moves when it grows
        for queue in [100, 200] {
            services.set_queue(queue, 4);
            assert_eq!(services.state.writable().clone(), BTreeMap::from([(queue, 4)]));
        }
    }

    #[test]
    fn services_end_with_the_run() {
        let services = HostServices::cpu();
        let host = host(&services);
        let memory = host.allocate_bytes(16).expect("memory");
        drop(services);
        let error = host.upload_bytes(memory, &[0; 16]).expect_err("no memory").to_string();
        assert_eq!(error, "the services of the engine ended with the run");
        assert!(host.allocate_bytes(16).is_err() && host.free(memory).is_err());
    }

    #[test]
    fn threads_share_the_services() {
        let services = HostServices::cpu();
        let host = host(&services);
        let memory = host.allocate_bytes(8).expect("memory");
        std::thread::scope(|s| {
            for k in 0..4u8 {
                s.spawn(move || {
                    let mut bytes = [0; 8];
                    host.upload_bytes(memory, &[k; 8]).expect("inside");
                    host.download_bytes(memory, &mut bytes).expect("inside");
                    assert!(bytes.iter().all(|b| *b == bytes[0]), "copies are not mixed");
                    let own = host.allocate_bytes(8).expect("memory");
                    host.free(own).expect("allocated");
                });
            }
        });
    }
}
