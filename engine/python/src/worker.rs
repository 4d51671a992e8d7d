//! The thread of a simulation. It owns plan, backend and run; the interpreter sends it jobs.

use crate::device::set_current;
use galamost_engine::checkpoint::{Checkpoint, files};
use galamost_engine::diagnostic::Failure;
use galamost_engine::plan::Plan;
use galamost_engine::run::record::Record;
use galamost_engine::run::{self, FailedAt, Lock, RunOptions, Session};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

/// Work on the run.
type Job = Box<dyn for<'a> FnOnce(&mut Session<'a>) + Send>;

/// The longest time between two looks for Ctrl-C.
const TICK: Duration = Duration::from_millis(50);

/// A checked pipeline that is ready to start.
pub struct Prepared {
    /// The plan.
    pub plan: Plan,
    /// The checkpoint to resume from.
    pub resume: Option<Checkpoint>,
    /// Held until the run ends.
    pub lock: Option<Lock>,
    /// Whether to write a run record.
    pub record: bool,
    /// The checkpoint of the pipeline's name, if another run has that name. This run then has another one.
    pub taken: Option<PathBuf>,
}

/// The thread of a simulation.
pub struct Worker {
    /// Closed to end the run.
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<Result<(), Failure>>>,
    stop: Arc<AtomicBool>,
}

impl Worker {
    /// Opens the device and starts the run. `failed` is set when it fails.
    ///
    /// # Errors
    /// Returns an error of the device or of a component.
    pub fn start(prepared: Prepared, failed: Arc<OnceLock<FailedAt>>) -> Result<Self, Failure> {
        let stop = Arc::new(AtomicBool::new(false));
        let options = RunOptions { quiet: true, stop: stop.clone(), failed, ..RunOptions::default() };
        let (jobs, queue) = channel();
        let (send, started) = channel();
        let thread = std::thread::Builder::new().name("simulation".into());
        let thread = thread.spawn(move || execute(prepared, &options, &send, &queue));
        let thread = thread.map_err(|e| Failure::run(format!("cannot start the thread of the simulation: {e}")))?;
        match started.recv() {
            Ok(()) => Ok(Self { jobs: Some(jobs), thread: Some(thread), stop }),
            Err(_) => Err(joined(thread).err().unwrap_or_else(|| Failure::run("the simulation did not start"))),
        }
    }

    /// Does a job in the thread and waits for it. Ctrl-C stops the run after a step.
    ///
    /// # Errors
    /// Returns `KeyboardInterrupt`, or `None` if the thread has ended.
    pub fn call<T: Send + 'static>(
        &self,
        py: Python<'_>,
        job: impl for<'a> FnOnce(&mut Session<'a>) -> T + Send + 'static,
    ) -> PyResult<Option<T>> {
        let (send, mut receive) = channel();
        let Some(jobs) = &self.jobs else { return Ok(None) };
        let job: Job = Box::new(move |session| {
            let _ = send.send(job(session));
        });
        if jobs.send(job).is_err() {
            return Ok(None);
        }
        let mut interrupt = None;
        loop {
            let received;
            (received, receive) = py.detach(move || (receive.recv_timeout(TICK), receive));
            match received {
                Ok(value) => return interrupt.map_or(Ok(Some(value)), Err),
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if let Err(e) = py.check_signals() {
                self.stop.store(true, Ordering::Relaxed);
                interrupt = Some(e);
            }
        }
    }

    /// Ends the run and its thread.
    ///
    /// # Errors
    /// Returns an error if a file cannot be finished.
    pub fn end(mut self) -> Result<(), Failure> {
        self.jobs = None;
        self.thread.take().map_or(Ok(()), joined)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = joined(thread);
        }
    }
}

fn joined(thread: JoinHandle<Result<(), Failure>>) -> Result<(), Failure> {
    thread.join().unwrap_or_else(|_| Err(Failure::run("the thread of the simulation panicked")))
}

/// Executes a run: its jobs until the queue is closed, then its end.
fn execute(
    prepared: Prepared,
    options: &RunOptions,
    started: &Sender<()>,
    queue: &Receiver<Job>,
) -> Result<(), Failure> {
    let Prepared { plan, resume, lock: _lock, record, taken: _ } = prepared;
    let record = record.then(|| Record::begin(&plan, resume.as_ref().map(|c| c.state.step), options.steps));
    let mut backend = run::open(&plan);
    set_current(backend.as_ref().ok().and_then(|b| b.device()), plan.pipeline.precision);
    let done = match &mut backend {
        Err(e) => {
            // foreign files have been set aside: the others are those of this run
            if resume.is_some() {
                files::touch(&plan.pipeline.checkpoint_path());
            }
            Err(e.clone())
        }
        Ok(backend) => Session::start(&plan, &mut **backend, options, resume).and_then(|mut session| {
            let _ = started.send(());
            queue.iter().for_each(|job| job(&mut session));
            session.end()
        }),
    };
    if let Some(record) = record {
        // the end of a run that has failed is no failure, but its record is that of a failed run
        let failed = options.failed.get().map(|at| Failure::run(&at.message));
        let outcome = match (&done, &failed) {
            (Ok(_), Some(e)) => Err(e),
            _ => done.as_ref(),
        };
        record.end(outcome, backend.as_mut().ok());
    }
    done.map(|_| ())
}
