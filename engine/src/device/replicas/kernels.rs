//! The kernels of replicas: each unit is compiled once for all of them, and once more when its launches are batched.

use super::source::{LAYOUTS, batched};
use crate::device::{Device, Kernel, SourceUnit};
use galamost_plugin_api::abi::{Extent, Opaque};
use galamost_plugin_api::error::{Error, Result};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A kernel that does the launches of several replicas.
#[derive(Debug)]
pub struct BatchedKernel {
    pub kernel: Kernel,
    /// Bytes of a call.
    pub call_size: usize,
    /// Offset in the call and size of each argument.
    pub arguments: Vec<(usize, usize)>,
}

/// A unit that a replica has compiled.
struct Unit {
    source: SourceUnit,
    module: u64,
    batched: Option<Arc<BatchedModule>>,
}

/// The batched kernels of a unit.
struct BatchedModule {
    kernels: Vec<(String, Arc<BatchedKernel>)>,
}

#[derive(Default)]
struct Inner {
    units: Vec<Unit>,
    /// Number of the unit, name, and the kernel for a single launch.
    kernels: Vec<(usize, String, Kernel)>,
}

/// The kernels of all replicas.
pub struct Kernels {
    device: Arc<dyn Device>,
    inner: Mutex<Inner>,
}

impl Kernels {
    pub fn new(device: Arc<dyn Device>) -> Self {
        Self { device, inner: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Compiles a unit unless a replica has done it, and returns its number.
    pub fn compile(&self, source: &SourceUnit) -> Result<u64> {
        let mut inner = self.lock();
        let known = |u: &Unit| u.source.text == source.text && u.source.defines() == source.defines();
        if let Some(k) = inner.units.iter().position(known) {
            return Ok(k as u64);
        }
        let module = self.device.compile(source)?;
        inner.units.push(Unit { source: source.clone(), module, batched: None });
        Ok(inner.units.len() as u64 - 1)
    }

    /// Returns a kernel of a unit. Replicas get the same number for the same kernel.
    pub fn kernel(&self, unit: u64, name: &str) -> Result<Kernel> {
        let mut inner = self.lock();
        let unit = unit as usize;
        if let Some(k) = inner.kernels.iter().position(|(u, n, _)| *u == unit && n == name) {
            return Ok(Kernel(k as u64));
        }
        let module = inner.units.get(unit).map(|u| u.module).ok_or_else(|| unknown(name))?;
        let kernel = self.device.kernel(module, name)?;
        inner.kernels.push((unit, name.into(), kernel));
        Ok(Kernel(inner.kernels.len() as u64 - 1))
    }

    /// Returns the kernel for a single launch.
    pub fn single(&self, kernel: Kernel) -> Result<Kernel> {
        self.lock().kernels.get(kernel.0 as usize).map(|k| k.2).ok_or_else(|| unknown("launch"))
    }

    /// Returns the kernel for launches of several replicas.
    pub fn batched(&self, kernel: Kernel) -> Result<Arc<BatchedKernel>> {
        let mut inner = self.lock();
        let (unit, name, _) = inner.kernels.get(kernel.0 as usize).cloned().ok_or_else(|| unknown("launch"))?;
        let unit = &mut inner.units[unit];
        let module = match &unit.batched {
            Some(module) => module.clone(),
            None => unit.batched.insert(Arc::new(BatchedModule::new(&*self.device, &unit.source)?)).clone(),
        };
        let found = module.kernels.iter().find(|(n, _)| *n == name);
        found.map(|(_, k)| k.clone()).ok_or_else(|| unknown(&name))
    }
}

fn unknown(what: &str) -> Error {
    Error::Device { what: what.into(), message: "unknown kernel".into() }
}

impl BatchedModule {
    /// Compiles the batched kernels of a unit.
    fn new(device: &dyn Device, source: &SourceUnit) -> Result<Self> {
        let batched = batched(source)?;
        let module = device.compile(&batched.unit)?;
        let words: usize = batched.kernels.iter().map(|(_, n)| 1 + 2 * n).sum();
        let layouts = read_layouts(device, device.kernel(module, LAYOUTS)?, words)?;
        let mut rest = layouts.into_iter().map(|w| w as usize);
        let mut next = || rest.next().unwrap_or(0);
        let mut kernels = vec![];
        for (name, parameters) in batched.kernels {
            let call_size = next();
            let arguments = (0..parameters).map(|_| (next(), next())).collect();
            let kernel = device.kernel(module, &name)?;
            kernels.push((name, Arc::new(BatchedKernel { kernel, call_size, arguments })));
        }
        Ok(Self { kernels })
    }
}

/// Returns what the kernel [`LAYOUTS`] of a batched unit writes.
fn read_layouts(device: &dyn Device, kernel: Kernel, words: usize) -> Result<Vec<u32>> {
    let mut bytes = vec![0u8; 4 * words];
    let out = device.allocate(bytes.len().max(4))?;
    let argument = [std::ptr::from_ref(&out).cast_mut().cast::<Opaque>()];
    // SAFETY: the kernel takes the address of as many words as the unit has sizes and offsets
    let launched = unsafe { device.launch(kernel, Extent::from(1), Extent::from(1), 0, &argument) };
    let read = launched.and_then(|()| device.download(out, &mut bytes));
    device.free(out)?;
    read?;
    Ok(bytes.as_chunks::<4>().0.iter().map(|b| u32::from_ne_bytes(*b)).collect())
}
