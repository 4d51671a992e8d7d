//! Forces in Python: a component of this library that calls a Python object.

mod device;

use crate::device::{GATHER, gather, unit};
use crate::errors::checked_run;
use crate::plugins::add_library;
use device::{OnDevice, SOURCE};
use galamost_engine::device::nvrtc;
use galamost_engine::state::buffers::bytes_of;
use galamost_plugin_api::precision::Precision;
use galamost_plugin_api::prelude::*;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::PyByteArray;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// The Python objects of forces, by number. The forces of a run share the reference with their simulation.
pub type Objects = BTreeMap<u64, Arc<Py<PyAny>>>;

/// Returns the objects of a pipeline.
pub fn shared(objects: BTreeMap<u64, Py<PyAny>>) -> Objects {
    objects.into_iter().map(|(number, object)| (number, Arc::new(object))).collect()
}

thread_local! {
    /// The objects of the pipeline that this thread checks.
    static OBJECTS: RefCell<Objects> = const { RefCell::new(BTreeMap::new()) };
}

/// The exception with which a force ended its run.
static EXCEPTION: Mutex<Option<PyErr>> = Mutex::new(None);

/// Makes the component `PythonForce` known. `library` is the file of this library.
#[pyfunction]
pub fn load_forces(py: Python<'_>, library: PathBuf) {
    py.detach(|| add_library(&library));
}

/// Checks a pipeline that has these objects. Components are bound in the calling thread.
pub fn with_objects<T>(objects: Objects, check: impl FnOnce() -> T) -> T {
    OBJECTS.set(objects);
    let checked = check();
    drop(OBJECTS.take());
    checked
}

/// Makes the exception of a force the cause of the error that it led to. `KeyboardInterrupt` and `SystemExit`, which end a
/// program, are returned instead of the error, which becomes their cause.
pub fn with_cause<T>(py: Python<'_>, result: PyResult<T>) -> PyResult<T> {
    result.map_err(|e| {
        // a call that succeeds must not take the exception of another simulation
        let Some(raised) = EXCEPTION.lock().unwrap_or_else(PoisonError::into_inner).take() else { return e };
        let (shown, cause) = if raised.is_instance_of::<PyException>(py) { (e, raised) } else { (raised, e) };
        shown.set_cause(py, Some(cause));
        shown
    })
}

/// Keeps an exception as the cause of the error that is returned.
fn failed(e: PyErr) -> Error {
    let message = e.to_string();
    *EXCEPTION.lock().unwrap_or_else(PoisonError::into_inner) = Some(e);
    Error::Run(message)
}

/// Compiles the kernels of this library for an architecture such as `sm_90`, without a GPU, and returns their names with
/// the precision and the size of the machine code.
#[pyfunction]
pub fn compile_kernels(py: Python<'_>, architecture: &str) -> PyResult<Vec<(&'static str, String, usize)>> {
    let compiled = py.detach(|| {
        let mut list = vec![];
        for source in [GATHER, SOURCE] {
            for precision in [Precision::Single, Precision::Mixed, Precision::Double] {
                let (code, _) = nvrtc::compile(&unit(source, precision)?, architecture)?;
                list.push((source.0, format!("{precision:?}"), code.len()));
            }
        }
        Ok(list)
    });
    checked_run(py, compiled)
}

/// Calls an object of Python. `galamost.Force` writes this component into pipelines.
#[component(Force, "PythonForce")]
#[derive(Params)]
pub struct PythonForce {
    /// Number of the object.
    number: u64,
    /// Particles on which the force acts.
    #[param(default = Group::All)]
    group: Group,
    /// Whether the object returns a virial.
    #[param(default = false)]
    virial: bool,
    /// Whether the forces add up to 0.
    #[param(default = false)]
    conserves_momentum: bool,
    /// Whether the object takes arrays of the run's device; otherwise it gets NumPy arrays.
    #[param(default = false)]
    on_device: bool,
    #[param(skip)]
    object: Option<Arc<Py<PyAny>>>,
    /// Number of particles, if the run uses a device.
    #[param(skip)]
    n: Option<usize>,
    #[param(skip)]
    device: Option<OnDevice>,
    /// The messages for forces, energies and a virial that are NaN or infinite.
    #[param(skip)]
    faults: Vec<String>,
}

/// Indices of [`PythonForce::faults`]; the kernel of a GPU has the same numbers.
const FORCE: usize = 0;
const ENERGY: usize = 1;
const VIRIAL: usize = 2;

/// What the object returned: forces, energies and virial.
type Answer = (Vec<u8>, Option<Vec<u8>>, Option<[f64; 6]>);

impl PythonForce {
    /// Calls the object with step, box, positions, velocities, masses and types in tag order.
    fn call(&self, call: &ForceCall) -> PyResult<Answer> {
        let (state, n) = (&call.state, call.state.n_local as usize);
        let mut position = vec![[0.0; 3]; n];
        let (mut velocity, mut mass, mut kind) = (position.clone(), vec![0.0; n], vec![0u32; n]);
        for i in 0..n {
            // SAFETY: `i < n_local`, and the arrays outlive the call
            let (tag, [x, y, z, m]) = unsafe { (*state.tag.host().add(i) as usize, state.velocity_mass(i)) };
            // SAFETY: `i < n_local`, and the arrays outlive the call
            (position[tag], kind[tag]) = unsafe { (state.position(i), state.type_id(i)) };
            (velocity[tag], mass[tag]) = ([x, y, z], m);
        }
        // SAFETY: the globals outlive the call
        let globals = unsafe { &*state.globals.host() };
        let (step, length) = (globals.step, globals.box_length);
        Python::attach(|py| {
            let bytes = |b: &[u8]| PyByteArray::new(py, b);
            let Some(object) = &self.object else {
                return Err(pyo3::exceptions::PyRuntimeError::new_err("the force has no object"));
            };
            let given = (
                step,
                length,
                bytes(bytes_of(&position)),
                bytes(bytes_of(&velocity)),
                bytes(bytes_of(&mass)),
                bytes(bytes_of(&kind)),
                py.None(),
            );
            object.bind(py).call_method1("_evaluate", given)?.extract()
        })
    }

    /// The error of numbers of this kind, an index of `faults`, that are NaN or infinite.
    fn undefined(&self, call: &ForceCall, kind: usize, tag: Option<u32>) -> Error {
        // SAFETY: the globals outlive the call
        let step = unsafe { &*call.state.globals.host() }.step;
        let what = self.faults.get(kind).map_or("a number is NaN or infinite", String::as_str);
        Error::Unstable { step, tag, what: format!("PythonForce: {what}") }
    }
}

/// Returns the messages for forces, energies and a virial that are NaN or infinite. They name the class of the object.
fn fault_messages(object: &Py<PyAny>) -> Vec<String> {
    let class = Python::attach(|py| object.bind(py).getattr("name").and_then(|name| name.extract::<String>()));
    let class = class.unwrap_or_else(|_| "Force".into());
    ["force", "energy", "virial"].map(|what| format!("the {what} of the class {class} is NaN or infinite")).into()
}

impl Force for PythonForce {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        // Python is called in every step
        needs.capturable = false;
        self.n = (system.device == "cuda").then_some(system.n as usize);
        needs.group = self.group.need(system)?;
        needs.conserves_momentum = self.conserves_momentum;
        needs.without_virial = !self.virial;
        needs.particle_energies = true;
        let number = self.number;
        self.object = OBJECTS.with_borrow(|all| all.get(&number).cloned());
        match &self.object {
            Some(object) => {
                self.faults = fault_messages(object);
                needs.faults = self.faults.clone();
                Ok(())
            }
            None => Err(Error::input("this force exists only in the Python program that wrote the pipeline")),
        }
    }

    fn start(&mut self, _host: Host) -> Result<()> {
        if let Some(n) = self.n {
            let gather = gather()?.ok_or_else(crate::device::missing)?;
            self.device = Some(OnDevice::new(&gather, n, self.on_device)?);
        }
        Ok(())
    }

    unsafe fn compute(&mut self, call: &ForceCall, sums: &mut Sums) -> Result<()> {
        if let (Some(device), Some(object)) = (&mut self.device, &self.object) {
            // SAFETY: the engine passes views of valid arrays of its device
            return unsafe { device.compute(object, call) };
        }
        let (forces, energies, virial) = self.call(call).map_err(failed)?;
        let forces = crate::convert::rows::<f64, 3>(&crate::convert::reals(&forces));
        let energies = energies.map(|b| crate::convert::reals(&b));
        let full = call.wanted.more_than_force();
        // an integrator notices the forces on the particles that it moves only; the virial has no integrator
        if virial.is_some_and(|v| !v.iter().all(|x| x.is_finite())) {
            return Err(self.undefined(call, VIRIAL, None));
        }
        for i in 0..call.state.n_local as usize {
            // SAFETY: `i < n_local`, the arrays outlive the call, and no other thread uses them meanwhile
            unsafe {
                if call.state.in_group(i, call.group) {
                    let tag = *call.state.tag.host().add(i) as usize;
                    let energy = energies.as_ref().map_or(0.0, |e| e[tag]);
                    if !forces[tag].iter().all(|x| x.is_finite()) {
                        return Err(self.undefined(call, FORCE, Some(tag as u32)));
                    }
                    if !energy.is_finite() {
                        return Err(self.undefined(call, ENERGY, Some(tag as u32)));
                    }
                    let energy = if full { energy } else { 0.0 };
                    call.state.add_force(i, forces[tag], energy);
                    sums.energy += energy;
                }
            }
        }
        if let Some(virial) = virial.filter(|_| full) {
            sums.virial = virial;
        }
        Ok(())
    }
}

impl Drop for PythonForce {
    fn drop(&mut self) {
        if let Some(object) = self.object.take() {
            Python::attach(|_| drop(object));
        }
    }
}
