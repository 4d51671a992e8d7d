//! What forces that place particles without mass share: the arguments of their kernels, the kernels, and the virial on the CPU.

use crate::abi::Opaque;
use crate::device::{CxxStruct, DevicePtr, DeviceStruct, DeviceText, kernel_source};
use crate::error::Result;
use crate::force::ForceCall;
use crate::services::{Host, Kernel};
use crate::views::{StateView, Sums};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// Threads of a block.
const BLOCK: u32 = 128;
/// Bytes of a virial.
const VIRIAL: usize = 48;
/// Particles of a task on the CPU.
pub const CHUNK: usize = 512;

/// First argument of the kernels.
#[repr(C)]
#[derive(Clone, Copy, galamost_plugin_macros::DeviceStruct)]
struct PlaceArgs {
    state: StateView,
    sums: DevicePtr<Sums>,
    /// Six numbers of the virial for each block.
    #[device(cxx = "double*")]
    partial: DevicePtr<u8>,
    /// With several GPUs: six numbers for each item.
    #[device(cxx = "double*")]
    virials: DevicePtr<u8>,
    component: u32,
    /// Whether the virial is wanted.
    full: u32,
    /// Number of the `Moment` of the call.
    moment: u32,
    /// Number of items; 0 if these are particles.
    items: u32,
}

/// The sums of virials.
const SUMS: &str = "
extern \"C\" __global__ void __launch_bounds__(128) sum_items(PlaceArgs a) { sum_items_of_block(a); }
extern \"C\" __global__ void __launch_bounds__(128) sum_virials(PlaceArgs a) { sum_blocks(a); }
";

/// The kernels of a force that places particles: `place`, and `collect`, which passes on the forces on these particles. Both run
/// in blocks of 128 threads, one for each own particle, `particle_block(state) * 128 + threadIdx.x`, or for each item. Their parameters
/// are a `PlaceArgs` and a struct of the component's arrays. `PlaceArgs` has `state`, `component`, `moment`, and `full`, which is
/// not 0 if the virial is wanted; `store_virial` and `store_virial_of_item` of `place.cuh` pass it on.
#[derive(Debug)]
pub struct PlaceKernels {
    place: Kernel,
    collect: Kernel,
    sum_items: Kernel,
    sum: Kernel,
    partial: DevicePtr<u8>,
    items: Option<Items>,
}

/// Items, such as clusters of particles. Each GPU handles those with own particles.
#[derive(Debug)]
struct Items {
    n: u32,
    /// With several GPUs: the virials of the items that this one counts, and those of all.
    virials: [DevicePtr<u64>; 2],
}

impl PlaceKernels {
    /// Compiles the kernels, for `n` particles. `texts` are the structs and functions that `kernels` uses.
    ///
    /// # Errors
    /// Returns an error if compilation or allocation fails.
    pub fn new(host: &Host, n: u64, name: &str, texts: &[&'static DeviceText], kernels: &str) -> Result<Self> {
        Self::compile(host, n, name, texts, kernels, None)
    }

    /// Compiles the kernels, for `n` items. Every GPU of a run calls them for all items.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn of_items(host: &Host, n: u32, name: &str, texts: &[&'static DeviceText], kernels: &str) -> Result<Self> {
        let numbers = if host.ranks() > 1 { 6 * n.max(1) as usize } else { 1 };
        let items = Items { n, virials: [host.allocate(numbers)?, host.allocate(numbers)?] };
        Self::compile(host, n.into(), name, texts, kernels, Some(items))
    }

    fn compile(
        host: &Host,
        n: u64,
        name: &str,
        texts: &[&'static DeviceText],
        kernels: &str,
        items: Option<Items>,
    ) -> Result<Self> {
        let texts: Vec<&'static DeviceText> = [PlaceArgs::text()].into_iter().chain(texts.iter().copied()).collect();
        let module = host.compile(name, &kernel_source(&texts, &format!("{kernels}{SUMS}"))?)?;
        let blocks = n.div_ceil(u64::from(BLOCK)).max(1) as usize;
        Ok(Self {
            place: host.kernel(module, "place")?,
            collect: host.kernel(module, "collect")?,
            sum_items: host.kernel(module, "sum_items")?,
            sum: host.kernel(module, "sum_virials")?,
            partial: host.allocate_bytes(VIRIAL * blocks)?,
            items,
        })
    }

    /// Places the particles.
    ///
    /// # Errors
    /// Returns an error if the launch fails.
    ///
    /// # Safety
    /// The views and `arrays` describe valid arrays of the device; `arrays` is the second parameter of the kernels.
    pub unsafe fn place<A: DeviceStruct>(&self, host: &Host, call: &ForceCall, arrays: A) -> Result<()> {
        // SAFETY: the contract of this function is passed on
        unsafe { self.launch(self.place, host, call, arrays) }
    }

    /// Passes on the forces on the particles.
    ///
    /// # Errors
    /// Returns an error if the launch fails.
    ///
    /// # Safety
    /// As [`Self::place`].
    pub unsafe fn collect<A: DeviceStruct>(&self, host: &Host, call: &ForceCall, arrays: A) -> Result<()> {
        // SAFETY: the contract of this function is passed on
        unsafe { self.launch(self.collect, host, call, arrays) }?;
        if !call.wanted.more_than_force() {
            return Ok(());
        }
        let mut args = self.arguments(host, call);
        match &self.items {
            None => host.all_gather(self.partial, VIRIAL, BLOCK)?,
            Some(Items { n, virials: [own, all] }) if host.ranks() > 1 => {
                // each number is 0 on all GPUs but one, so its bits are those of the sum
                host.all_reduce(*own, *all, 6 * *n as usize, DevicePtr::null())?;
                args.virials = all.cast();
                let mut arguments: [*mut Opaque; 1] = crate::arguments![args];
                // SAFETY: the kernel takes a `PlaceArgs`
                unsafe { host.launch(self.sum_items, self.blocks(call), BLOCK, &mut arguments)? };
            }
            Some(_) => {}
        }
        let mut arguments: [*mut Opaque; 1] = crate::arguments![args];
        // SAFETY: the kernel takes a `PlaceArgs`
        unsafe { host.launch(self.sum, 1, BLOCK, &mut arguments) }
    }

    fn blocks(&self, call: &ForceCall) -> u32 {
        self.items.as_ref().map_or_else(|| call.state.own_blocks(BLOCK), |items| items.n.div_ceil(BLOCK).max(1))
    }

    fn arguments(&self, host: &Host, call: &ForceCall) -> PlaceArgs {
        let items = self.items.as_ref();
        PlaceArgs {
            state: call.state,
            sums: call.device_sums,
            partial: self.partial,
            virials: items.filter(|_| host.ranks() > 1).map_or_else(DevicePtr::null, |items| items.virials[0].cast()),
            component: call.component,
            full: u32::from(call.wanted.more_than_force()),
            moment: call.moment,
            items: items.map_or(0, |items| items.n),
        }
    }

    /// # Safety
    /// As [`Self::place`].
    unsafe fn launch<A: DeviceStruct>(&self, kernel: Kernel, host: &Host, call: &ForceCall, arrays: A) -> Result<()> {
        let args = self.arguments(host, call);
        let mut arguments: [*mut Opaque; 2] = crate::arguments![args, arrays];
        // SAFETY: both kernels have these two parameters (contract of this function)
        unsafe { host.launch(kernel, self.blocks(call), BLOCK, &mut arguments) }
    }
}

/// Calls `collect` for chunks of 0 … n (`chunk` numbers each) on the threads of the engine, and adds the virials that it returns (xx, xy, xz, yy, yz,
/// zz) in the order of the chunks, so the sum does not depend on the number of threads.
pub fn collect_on_cpu(
    host: &Host,
    n: usize,
    chunk: usize,
    sums: &mut Sums,
    collect: impl Fn(Range<usize>) -> [f64; 6] + Sync,
) {
    let virials = Mutex::new(vec![[0.0; 6]; n.div_ceil(chunk)]);
    host.parallel(n, chunk, |range| {
        let number = range.start / chunk;
        let virial = collect(range);
        virials.lock().unwrap_or_else(PoisonError::into_inner)[number] = virial;
    });
    for chunk in virials.into_inner().unwrap_or_else(PoisonError::into_inner) {
        sums.virial.iter_mut().zip(chunk).for_each(|(sum, v)| *sum += v);
    }
}

/// Adds the virial r f of a force at a displacement, symmetrized: xx, xy, xz, yy, yz, zz.
pub fn add_virial(virial: &mut [f64; 6], r: [f64; 3], f: [f64; 3]) {
    let mixed = |i: usize, j: usize| 0.5 * (r[i] * f[j] + r[j] * f[i]);
    let terms = [r[0] * f[0], mixed(0, 1), mixed(0, 2), r[1] * f[1], mixed(1, 2), r[2] * f[2]];
    virial.iter_mut().zip(terms).for_each(|(sum, term)| *sum += term);
}
