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
/// Particles of a task on the CPU.
pub const CHUNK: usize = 512;

/// First argument of both kernels. `add_virial` of `place.cuh` takes it.
#[repr(C)]
#[derive(Clone, Copy, galamost_plugin_macros::DeviceStruct)]
struct PlaceArgs {
    state: StateView,
    sums: DevicePtr<Sums>,
    /// Six numbers of the virial for each block.
    #[device(cxx = "double*")]
    partial: DevicePtr<u8>,
    /// Counts the blocks that have finished.
    #[device(cxx = "u32*")]
    counter: DevicePtr<u8>,
    component: u32,
    /// Whether the virial is wanted.
    full: u32,
    /// Number of the `Moment` of the call.
    moment: u32,
    /// Padding; 0.
    reserved: u32,
}

/// The kernels of a force that places particles: `place`, and `collect`, which passes on the forces on these particles. Both run
/// in blocks of 128 threads, one for each of `n` items. Their parameters are a `PlaceArgs` and a struct of the component's arrays.
/// `PlaceArgs` has `state`, `component`, `moment`, and `full`, which is not 0 if the virial is wanted; `add_virial` of
/// `place.cuh` adds it.
#[derive(Debug)]
pub struct PlaceKernels {
    place: Kernel,
    collect: Kernel,
    partial: DevicePtr<u8>,
    counter: DevicePtr<u8>,
    blocks: u32,
}

impl PlaceKernels {
    /// Compiles the kernels, for `n` items, such as particles. `texts` are the structs and functions that `kernels` uses.
    ///
    /// # Errors
    /// Returns an error if compilation or allocation fails.
    pub fn new(host: &Host, n: u64, name: &str, texts: &[&'static DeviceText], kernels: &str) -> Result<Self> {
        let texts: Vec<&'static DeviceText> = [PlaceArgs::text()].into_iter().chain(texts.iter().copied()).collect();
        let module = host.compile(name, &kernel_source(&texts, kernels)?)?;
        let counter = host.allocate_bytes(8)?;
        host.upload_bytes(counter, &[0; 8])?;
        let blocks = n.div_ceil(u64::from(BLOCK)).max(1) as u32;
        Ok(Self {
            place: host.kernel(module, "place")?,
            collect: host.kernel(module, "collect")?,
            partial: host.allocate_bytes(48 * blocks as usize)?,
            counter,
            blocks,
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
        unsafe { self.launch(self.collect, host, call, arrays) }
    }

    /// # Safety
    /// As [`Self::place`].
    unsafe fn launch<A: DeviceStruct>(&self, kernel: Kernel, host: &Host, call: &ForceCall, arrays: A) -> Result<()> {
        let args = PlaceArgs {
            state: call.state,
            sums: call.device_sums,
            partial: self.partial,
            counter: self.counter,
            component: call.component,
            full: u32::from(call.wanted.more_than_force()),
            moment: call.moment,
            reserved: 0,
        };
        let mut arguments: [*mut Opaque; 2] = crate::arguments![args, arrays];
        // SAFETY: both kernels have these two parameters (contract of this function)
        unsafe { host.launch(kernel, self.blocks, BLOCK, &mut arguments) }
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
