//! Forces in Python on a GPU.

use super::failed;
use crate::device::{BLOCK, Columns, Gather, Imported, Memory, Source, compile, launch, place};
use crate::errors::checked_run;
use galamost_engine::device::Kernel;
use galamost_plugin_api::device::{CxxStruct as _, DevicePtr};
use galamost_plugin_api::prelude::*;
use galamost_plugin_api::views::{Globals, StateView};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes};
use std::sync::Arc;

/// The argument of `add_python_force`.
#[repr(C)]
#[derive(Clone, Copy, DeviceStruct)]
struct PythonForceArgs {
    state: StateView,
    #[device(cxx = "const void*")]
    forces: DevicePtr<u8>,
    #[device(cxx = "const void*")]
    energies: DevicePtr<u8>,
    #[device(cxx = "const void*")]
    virial: DevicePtr<u8>,
    #[device(cxx = "double*")]
    partial: DevicePtr<u8>,
    #[device(cxx = "u32*")]
    counter: DevicePtr<u8>,
    sums: DevicePtr<Sums>,
    single_forces: u32,
    single_energies: u32,
    single_virial: u32,
    group: u32,
    full: u32,
    component: u32,
}

/// The kernel that adds forces.
pub const SOURCE: Source = ("add_python_force", PythonForceArgs::text, include_str!("force.cuh"));

/// Floating-point numbers that the object returned.
#[derive(Default)]
struct Returned {
    address: u64,
    single: bool,
    /// The array of another library, kept until the kernel has finished.
    _tensor: Option<Imported>,
}

/// Kernel and memory of a force in Python.
pub struct OnDevice {
    gather: Arc<Gather>,
    columns: Columns,
    kernel: Kernel,
    partial: Arc<Memory>,
    counter: Arc<Memory>,
    on_device: bool,
    /// Copies of forces, energies and virial that the object returned in memory of the host.
    copies: [Arc<Memory>; 3],
    /// What the last call returned.
    returned: [Returned; 3],
}

impl OnDevice {
    /// Compiles the kernel and allocates arrays for `n` particles. With `on_device` the object takes arrays of the device.
    ///
    /// # Errors
    /// Returns the compiler's or driver's error.
    pub fn new(gather: &Arc<Gather>, n: usize, on_device: bool) -> Result<Self> {
        let device = gather.device();
        Ok(Self {
            gather: gather.clone(),
            columns: gather.allocate(n)?,
            kernel: compile(&**device, gather.precision(), SOURCE)?,
            partial: Memory::new(device, 8 * n.div_ceil(BLOCK as usize))?,
            counter: Memory::new(device, 4)?,
            on_device,
            copies: [Memory::new(device, 24 * n)?, Memory::new(device, 8 * n)?, Memory::new(device, 48)?],
            returned: Default::default(),
        })
    }

    /// Calls the object and launches the kernel that adds its forces.
    ///
    /// # Errors
    /// Returns the exception of the object, or the driver's error.
    ///
    /// # Safety
    /// The views in `call` describe valid arrays of the device.
    pub unsafe fn compute(&mut self, object: &Py<PyAny>, call: &ForceCall) -> Result<()> {
        // SAFETY: the views are valid, and the arrays have a row for each particle
        unsafe { self.gather.fill(&call.state, &self.columns)? };
        let device = self.gather.device().clone();
        // waits for all launches, so that every stream may read the arrays, and the last call's memory is free
        let mut bytes = vec![0; size_of::<Globals>()];
        device.download(call.state.globals.address, &mut bytes)?;
        let globals = Globals::from_bytes(&bytes).ok_or_else(|| Error::Run("the globals have another size".into()))?;
        self.returned = Default::default();
        if globals.is_halted() {
            // this step is repeated
            return Ok(());
        }
        let host = if self.on_device { None } else { Some(self.download()?) };
        self.returned = Python::attach(|py| self.call(py, object, &globals, host)).map_err(failed)?;
        let [forces, energies, virial] = &self.returned;
        let args = PythonForceArgs {
            state: call.state,
            forces: DevicePtr::new(forces.address),
            energies: DevicePtr::new(energies.address),
            virial: DevicePtr::new(virial.address),
            partial: DevicePtr::new(self.partial.address()),
            counter: DevicePtr::new(self.counter.address()),
            sums: call.device_sums,
            single_forces: forces.single.into(),
            single_energies: energies.single.into(),
            single_virial: virial.single.into(),
            group: call.group,
            full: call.wanted.more_than_force().into(),
            component: call.component,
        };
        // SAFETY: the kernel takes these arguments; shapes and types of the returned arrays were checked, and they are kept
        unsafe { launch(&*device, self.kernel, call.state.n_local, &args) }
    }

    /// Copies positions, velocities, masses and types to the host.
    fn download(&self) -> Result<[Vec<u8>; 4]> {
        let c = &self.columns;
        let mut copies = [&c.position, &c.velocity, &c.mass, &c.kind].map(|a| a.memory().download()).into_iter();
        let mut next = || copies.next().unwrap_or_else(|| Ok(vec![]));
        Ok([next()?, next()?, next()?, next()?])
    }

    fn call(
        &self,
        py: Python<'_>,
        object: &Py<PyAny>,
        globals: &Globals,
        host: Option<[Vec<u8>; 4]>,
    ) -> PyResult<[Returned; 3]> {
        let kind = self.gather.device().memory_kind();
        let c = &self.columns;
        let place = place(kind);
        let (step, length) = (globals.step, globals.box_length);
        let answer = match host {
            Some(host) => {
                let [x, v, m, t] = host.map(|bytes| PyByteArray::new(py, &bytes));
                object.bind(py).call_method1("_evaluate", (step, length, x, v, m, t, place))?
            }
            None => {
                let given = (c.position.clone(), c.velocity.clone(), c.mass.clone(), c.kind.clone());
                object
                    .bind(py)
                    .call_method1("_evaluate_on_device", (step, length, given.0, given.1, given.2, given.3, place))?
            }
        };
        let (forces, energies, virial) = answer.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>, Bound<'_, PyAny>)>()?;
        let n = c.mass.dimensions()[0];
        Ok([
            self.take(&forces, &self.copies[0], &[n, 3], "forces")?,
            self.take(&energies, &self.copies[1], &[n], "energies")?,
            self.take(&virial, &self.copies[2], &[6], "the numbers of the virial")?,
        ])
    }

    /// Takes an array of the device, or copies the bytes of an array of the host to `copy`. `None` is no array.
    fn take(&self, value: &Bound<'_, PyAny>, copy: &Memory, shape: &[usize], what: &str) -> PyResult<Returned> {
        if value.is_none() {
            return Ok(Returned::default());
        }
        let device = self.gather.device();
        if let Ok(bytes) = value.cast::<PyBytes>() {
            let copied = device.upload(copy.address(), bytes.as_bytes());
            checked_run(value.py(), copied)?;
            return Ok(Returned { address: copy.address(), single: false, _tensor: None });
        }
        let tensor = Imported::take(value, device.memory_kind())?;
        let (address, single) = tensor.reals(shape, what)?;
        Ok(Returned { address, single, _tensor: Some(tensor) })
    }
}

impl Drop for OnDevice {
    fn drop(&mut self) {
        // the last kernel reads the returned arrays; an error ends the run elsewhere
        let _ = self.gather.device().synchronize();
    }
}
