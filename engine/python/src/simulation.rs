//! A simulation.

use crate::convert::{from_python, ints, reals, rows, to_python};
use crate::device::{DeviceArray, gather};
use crate::errors::{checked, checked_run, detached, exception, has_failed, located};
use crate::force;
use crate::forked::{lacks_threads, require_threads};
use crate::plugins::registry;
use crate::worker::{Prepared, Worker};
use galamost_engine::checkpoint::{Checkpoint, files};
use galamost_engine::diagnostic::{Diagnostic, Failure};
use galamost_engine::pipeline::{DeviceChoice, Pipeline};
use galamost_engine::plan::files::RunFile;
use galamost_engine::plan::inputs::{INITIAL_STATE, of_state};
use galamost_engine::plan::{CheckOptions, Plan, check};
use galamost_engine::run::{Change, FailedAt, Lock, Sample, Session, outputs};
use galamost_plugin_api::error::Error;
use galamost_plugin_api::output::OutputKind;
use galamost_plugin_api::snapshot::Snapshot;
use pyo3::prelude::*;
use pyo3::pyclass::{PyTraverseError, PyVisit};
use pyo3::types::{PyByteArray, PyDict};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use tracing::warn;

/// What to run and how.
struct Request {
    path: PathBuf,
    /// The pipeline; `None`: the file has it.
    text: Option<String>,
    set: Vec<String>,
    device: Option<String>,
    snapshot: Option<Snapshot>,
    resume: bool,
    /// Whether to accept a checkpoint with other settings.
    changed: bool,
    overwrite: bool,
}

impl Request {
    /// Reads the pipeline. Also returns errors of its fields, which the check reports with those of components.
    fn pipeline(&self) -> Result<(Pipeline, Vec<Diagnostic>), Failure> {
        let located = |errors: Vec<galamost_plugin_api::error::InputError>| -> Vec<Diagnostic> {
            errors.into_iter().map(|e| Diagnostic::new(&self.path, e.at, e.message)).collect()
        };
        let (mut pipeline, errors) = match &self.text {
            None => Pipeline::read_partially(&self.path, &self.set)?,
            Some(text) => {
                let read = Pipeline::parse_partially(&self.path, text, &self.set);
                let (pipeline, errors) = read.map_err(|e| Failure::Input(located(e)))?;
                (pipeline, located(errors))
            }
        };
        if let Some(device) = &self.device {
            let wrong = |m| Failure::Input(vec![Diagnostic::new("device".as_ref(), None, m)]);
            pipeline.device = DeviceChoice::parse(device).map_err(wrong)?;
            pipeline.device_at = None;
        }
        Ok((pipeline, errors))
    }

    /// Checks the pipeline, locks the run, finds its checkpoint and sets files of earlier runs aside.
    fn prepare(mut self) -> Result<Prepared, Failure> {
        let (pipeline, errors) = self.pipeline()?;
        let path = pipeline.checkpoint_path();
        let from = if self.resume { files::present(&path) } else { vec![] };
        if self.resume && from.is_empty() {
            return Err(Failure::Input(vec![Diagnostic::new(&path, None, "no checkpoint to resume from")]));
        }
        let given = self.snapshot.is_some();
        let options = CheckOptions { resumed: self.resume, snapshot: self.snapshot.take(), errors };
        let mut plan = check(pipeline, &registry(), options)?;
        // for checkpoint, record and lock, also after a change of the working directory
        if let Ok(path) = std::path::absolute(&plan.pipeline.path) {
            plan.pipeline.path = path;
        }
        if given {
            // the text of the pipeline does not have it
            plan.inputs.insert(INITIAL_STATE.into(), of_state(&plan.snapshot));
        }
        let record = self.text.is_none();
        let writes = plan.files.iter().any(|f| f.output().is_some());
        let checkpoint = &plan.pipeline.checkpoint;
        let named = record || writes || self.resume || checkpoint.regular() || checkpoint.file.is_some();
        // a run without files excludes no other, but `save`, the end, and a failure may write its checkpoint
        let (mut lock, taken) = if named { (Some(Lock::take(&plan)?), None) } else { free_name(&mut plan) };
        let resume = if self.resume { Some(Checkpoint::find(&plan, &from, self.changed)?) } else { None };
        let wrong = |e: Error| Failure::Input(vec![Diagnostic::new(&self.path, None, e.to_string())]);
        let (new, foreign) = match &resume {
            Some(c) => (vec![], outputs::foreign(&plan, &from, c.state.step, lock.as_ref()).map_err(wrong)?),
            None => (vec![&plan], vec![]),
        };
        outputs::make_room(&new, &foreign, self.overwrite, record).map_err(wrong)?;
        if let Some(lock) = &mut lock {
            lock.begin(resume.is_some());
        }
        Ok(Prepared { plan, resume, lock, record, taken })
    }
}

/// Locks the name of a run without files. If another run has the name, this one becomes `NAME-2`, `NAME-3` and so on, and the
/// checkpoint of the taken name is returned. Locks nothing in a folder in which no checkpoint can be written.
fn free_name(plan: &mut Plan) -> (Option<Lock>, Option<PathBuf>) {
    let (path, checkpoint) = (plan.pipeline.path.clone(), plan.pipeline.checkpoint_path());
    if files::probe(&checkpoint).is_err() {
        return (None, None);
    }
    let mut number = 1u64;
    loop {
        if let Ok(lock) = Lock::take(plan) {
            return (Some(lock), (number > 1).then_some(checkpoint));
        }
        number += 1;
        plan.pipeline.path = numbered(&path, number);
    }
}

/// Appends a number to the name of a file, before its extension.
fn numbered(path: &Path, number: u64) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_os_string();
    name.push(format!("-{number}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

/// Returns the files that lack something while a run is open: growing files of which a part is in memory, and results of all
/// samples, for which the value is true.
fn unfinished(plan: &Plan) -> Vec<(String, bool)> {
    let one = |f: &RunFile| {
        let output = f.output()?;
        let is_result = output.kind == OutputKind::Result;
        let path = f.target.folder.join(&f.target.file).to_string_lossy().into_owned();
        (is_result || output.rewritten).then_some((path, is_result))
    };
    plan.files.iter().filter_map(one).collect()
}

/// The error of a call that another thread prevents. `galamost._simulation` has the same text.
const IN_USE: &str = "another thread is using the simulation; wait until its call has returned";

/// Makes the failure to take new values one of the input, which leaves the run as it was.
fn of_values(failure: Failure) -> Failure {
    let one = |message: &str| Diagnostic::new("state".as_ref(), None, message);
    match failure {
        Failure::Run(messages, _) => Failure::Input(messages.lines().map(one).collect()),
        input @ Failure::Input(_) => input,
    }
}

/// Checks a pipeline as a run does, without running it. Returns the number of particles.
#[pyfunction]
#[pyo3(signature = (path, text, set, device, forces))]
pub fn check_pipeline(
    py: Python<'_>,
    path: PathBuf,
    text: Option<String>,
    set: Vec<String>,
    device: Option<String>,
    forces: BTreeMap<u64, Py<PyAny>>,
) -> PyResult<usize> {
    require_threads(py)?;
    let request = Request { path, text, set, device, snapshot: None, resume: false, changed: false, overwrite: false };
    detached(py, move || {
        let (pipeline, errors) = request.pipeline()?;
        let options = CheckOptions { errors, ..CheckOptions::default() };
        let plan = force::with_objects(force::shared(forces), || check(pipeline, &registry(), options))?;
        Ok(plan.snapshot.len())
    })
}

/// A simulation. `galamost.Simulation` is its public form.
#[pyclass(module = "galamost._galamost")]
pub struct Simulation {
    worker: Option<Worker>,
    /// The forces in Python. The run shares these references, so that the cycle collector can count them.
    forces: force::Objects,
    /// The checkpoint of the name that another run has.
    taken: Option<PathBuf>,
    /// Where the run has failed.
    failed: Arc<OnceLock<FailedAt>>,
    /// The files that lack something while the run is open, and whether each has results of all samples.
    #[pyo3(get)]
    outputs: Vec<(String, bool)>,
    #[pyo3(get)]
    device: &'static str,
    #[pyo3(get)]
    n: usize,
}

impl Simulation {
    /// Does a job in the simulation's thread.
    fn call<T: Send + 'static>(
        &self,
        py: Python<'_>,
        job: impl for<'a> FnOnce(&mut Session<'a>) -> T + Send + 'static,
    ) -> PyResult<T> {
        require_threads(py)?;
        if let Some(at) = self.failed.get() {
            return Err(has_failed(py, at, self.worker.is_none()));
        }
        let closed = || exception(py, &Failure::run("the simulation is closed"));
        let worker = self.worker.as_ref().ok_or_else(closed)?;
        let ended = || exception(py, &Failure::run("the simulation has ended after a failure of the program"));
        worker.call(py, job)?.ok_or_else(ended)
    }

    /// Ends the run without its errors.
    fn forget(&mut self) {
        if let Some(worker) = self.worker.take() {
            if lacks_threads() {
                // the thread exists only in the parent, so nothing can wait for it
                std::mem::forget(worker);
                return;
            }
            // the thread may need the interpreter's lock for a force in Python
            Python::attach(|py| py.detach(move || drop(worker)));
        }
    }
}

#[pymethods]
impl Simulation {
    #[new]
    #[pyo3(signature = (path, text, set, device, state, resume, changed, overwrite, forces))]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        text: Option<String>,
        set: Vec<String>,
        device: Option<String>,
        state: Option<&Bound<'_, PyDict>>,
        resume: bool,
        changed: bool,
        overwrite: bool,
        forces: BTreeMap<u64, Py<PyAny>>,
    ) -> PyResult<Self> {
        require_threads(py)?;
        let snapshot = state.map(from_python).transpose()?;
        let request = Request { path, text, set, device, snapshot, resume, changed, overwrite };
        let forces = force::shared(forces);
        let objects = forces.clone();
        let failed: Arc<OnceLock<FailedAt>> = Arc::default();
        let set_by_run = failed.clone();
        let started = detached(py, move || {
            let prepared = force::with_objects(objects, || request.prepare())?;
            let (device, n) = (prepared.plan.device.kind(), prepared.plan.snapshot.len());
            let (taken, outputs) = (prepared.taken.clone(), unfinished(&prepared.plan));
            Ok((Worker::start(prepared, set_by_run)?, taken, outputs, device, n))
        });
        let (worker, taken, outputs, device, n) = force::with_cause(py, located(py, started, &failed))?;
        Ok(Self { worker: Some(worker), forces, taken, failed, outputs, device, n })
    }

    /// Does `steps` steps.
    fn advance(&self, py: Python<'_>, steps: u64) -> PyResult<()> {
        let done = self.call(py, move |s| s.advance(steps));
        force::with_cause(py, located(py, done.and_then(|d| checked(py, d)), &self.failed))
    }

    /// Writes the frames and rows of growing files that are in memory.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        let done = self.call(py, |s| s.flush());
        located(py, done.and_then(|d| checked(py, d)), &self.failed)
    }

    /// The step at which the run has failed.
    #[getter]
    fn failed_at(&self) -> Option<u64> {
        self.failed.get().map(|at| at.step)
    }

    /// Current step, and steps left until the end of the pipeline.
    fn position(&self, py: Python<'_>) -> PyResult<(u64, u64)> {
        self.call(py, |s| (s.step(), s.remaining()))
    }

    /// The state as a dictionary.
    fn state<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let state = self.call(py, |s| s.state())?;
        to_python(py, &checked_run(py, state)?)
    }

    /// The arrays in tag order in the memory of the run's device; `None` on the CPU.
    fn device_state(&self, py: Python<'_>) -> PyResult<Option<BTreeMap<&'static str, DeviceArray>>> {
        let columns = self.call(py, |s| {
            let Some(gather) = gather()? else { return Ok(None) };
            let view = s.view()?;
            let columns = gather.allocate(view.n_local as usize)?;
            // SAFETY: the view is that of this thread's run, and the arrays have a row for each of its particles
            unsafe { gather.fill(&view, &columns)? };
            gather.device().synchronize().map(|()| Some(columns))
        })?;
        Ok(checked_run(py, columns)?.map(|c| {
            BTreeMap::from([
                ("position", c.position),
                ("velocity", c.velocity),
                ("force", c.force),
                ("mass", c.mass),
                ("image", c.image),
                ("type", c.kind),
            ])
        }))
    }

    /// The forces as bytes.
    fn net_force<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyByteArray>> {
        let forces = self.call(py, |s| s.forces())?;
        Ok(PyByteArray::new(py, galamost_engine::state::buffers::bytes_of(&checked_run(py, forces)?)))
    }

    /// Replaces arrays, given as bytes. Wrong values are a `PipelineError`, and the run can be continued.
    #[pyo3(signature = (position, image, velocity))]
    fn replace(
        &self,
        py: Python<'_>,
        position: Option<Vec<u8>>,
        image: Option<Vec<u8>>,
        velocity: Option<Vec<u8>>,
    ) -> PyResult<()> {
        let change = Change {
            position: position.map(|b| rows(&reals(&b)).into()),
            image: image.map(|b| rows(&ints(&b)).into()),
            velocity: velocity.map(|b| rows(&reals(&b)).into()),
        };
        let done = self.call(py, move |s| {
            s.replace(change).map_err(|failure| {
                // the failure of a component or of the device has ended the run, or the state cannot be read any more
                let is_usable = s.advance(0).is_ok() && s.state().is_ok();
                if is_usable { of_values(failure) } else { failure }
            })
        });
        force::with_cause(py, located(py, done.and_then(|d| checked(py, d)), &self.failed))
    }

    /// The thermodynamic values of the current step, and name, energy and virial of each force.
    fn sample<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyDict>, Vec<(String, f64, [f64; 6])>)> {
        let sample = self.call(py, |s| s.sample())?;
        let Sample { thermo: t, forces } = checked_run(py, sample)?;
        let d = PyDict::new(py);
        let numbers = [
            ("degrees_of_freedom", t.degrees_of_freedom),
            ("kinetic", t.kinetic),
            ("kT", t.kt),
            ("rotational_kinetic", t.rotational_kinetic),
            ("rotational_kT", t.rotational_kt),
            ("potential", t.potential),
            ("pressure", t.pressure),
            ("volume", t.volume),
            ("conserved", t.conserved),
        ];
        numbers.into_iter().try_for_each(|(name, x)| d.set_item(name, x))?;
        d.set_item("n", t.n)?;
        d.set_item("pressure_tensor", t.pressure_tensor)?;
        d.set_item("momentum", t.momentum)?;
        Ok((d, forces.into_iter().map(|(name, s)| (name, s.energy, s.virial)).collect()))
    }

    /// Writes a checkpoint and returns its file.
    fn save(&self, py: Python<'_>) -> PyResult<PathBuf> {
        let saved = self.call(py, |s| s.save())?;
        let file = checked(py, saved)?;
        if let Some(taken) = &self.taken {
            warn!(
                "another simulation had the name of {} when this one began, so the checkpoint is {}; give each simulation \
                 another `name`, or rename the file to resume from it",
                taken.display(),
                file.display()
            );
        }
        Ok(file)
    }

    /// Ends the run. A simulation that is closed stays closed.
    fn close(this: &Bound<'_, Self>) -> PyResult<()> {
        let py = this.py();
        let (worker, forces) = {
            let in_use = |_| exception(py, &Failure::run(IN_USE));
            let mut simulation = this.try_borrow_mut().map_err(in_use)?;
            if simulation.worker.is_some() {
                require_threads(py)?;
            }
            (simulation.worker.take(), std::mem::take(&mut simulation.forces))
        };
        let Some(worker) = worker else { return Ok(()) };
        let ended = detached(py, move || worker.end());
        drop(forces);
        force::with_cause(py, ended)
    }

    /// Whether the simulation is closed.
    #[getter]
    fn closed(&self) -> bool {
        self.worker.is_none()
    }

    /// Shows the forces to the cycle collector, since a force may refer to its simulation.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.forces.values().try_for_each(|object| visit.call(&**object))
    }

    /// Ends a run that only a cycle keeps.
    fn __clear__(&mut self) {
        self.forget();
        self.forces.clear();
    }
}

impl Drop for Simulation {
    fn drop(&mut self) {
        self.forget();
    }
}
