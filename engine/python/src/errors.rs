//! Errors of the engine as Python exceptions, and warnings.

use galamost_engine::diagnostic::{Diagnostic, Failure};
use galamost_engine::run::FailedAt;
use galamost_plugin_api::error::Error;
use pyo3::prelude::*;
use std::any::Any;
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, Once, OnceLock, PoisonError};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::{Context, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

/// Options of the command line in messages of the engine, and what has their place in the package.
const OPTIONS: [(&str, &str); 4] = [
    ("--resume-changed accepts it", "resume=\"changed\" accepts it"),
    ("choose one with --from", "choose one with `format=`"),
    ("or name a file of them with --topology", "or name a file of them with `topology=` of gm.read"),
    ("--set ", "`set` "),
];

/// Returns a message of the engine with the arguments of the package instead of options of the command line.
fn in_python(message: &str) -> String {
    if message.starts_with("resume with: galamost ") {
        return "resume with: gm.Simulation(…, resume=True)".into();
    }
    OPTIONS.iter().fold(message.to_string(), |text, (option, argument)| text.replace(option, argument))
}

/// Returns a failure with the arguments of the package instead of options of the command line.
fn translated(failure: &Failure) -> Failure {
    match failure {
        Failure::Input(list) => {
            let one = |d: &Diagnostic| {
                // values of `set` have their text in the place of a file
                let given = d.file.to_str().filter(|f| f.starts_with("--set "));
                let file = given.map_or_else(|| d.file.clone(), |f| in_python(f).into());
                Diagnostic { file, message: in_python(&d.message), ..d.clone() }
            };
            Failure::Input(list.iter().map(one).collect())
        }
        Failure::Run(message, notes) => Failure::Run(in_python(message), notes.iter().map(|n| in_python(n)).collect()),
    }
}

/// Returns a failure as `galamost.PipelineError` or `galamost.RunError`, with the text of the command line. The text names
/// arguments of the package instead of options.
pub fn exception(py: Python<'_>, failure: &Failure) -> PyErr {
    let failure = translated(failure);
    let text = failure.render();
    let text = text.trim_end().trim_start_matches("error: ").to_string();
    let made = py.import("galamost._errors").and_then(|module| match &failure {
        Failure::Input(list) => {
            let all: Vec<_> = list
                .iter()
                .map(|d| {
                    let file = d.file.to_string_lossy().into_owned();
                    (file, d.at.map(|p| p.line), d.at.map(|p| p.column), d.component.clone(), d.message.clone())
                })
                .collect();
            module.getattr("PipelineError")?.call1((text, all))
        }
        Failure::Run(message, notes) => module.getattr("RunError")?.call1((text, message.clone(), notes.clone())),
    });
    match made {
        Ok(exception) => PyErr::from_value(exception),
        Err(e) => e,
    }
}

/// Converts the result of the engine.
pub fn checked<T>(py: Python<'_>, result: Result<T, Failure>) -> PyResult<T> {
    result.map_err(|failure| exception(py, &failure))
}

/// Adds to the error of a run where the run failed.
pub fn located<T>(py: Python<'_>, result: PyResult<T>, failed: &OnceLock<FailedAt>) -> PyResult<T> {
    result.inspect_err(|e| {
        if let Some(at) = failed.get() {
            // an exception without these attributes is that of something else
            let _ = set_place(e.value(py), at);
        }
    })
}

/// Sets the attributes of a `galamost.RunError`.
fn set_place(error: &Bound<'_, PyAny>, at: &FailedAt) -> PyResult<()> {
    if error.hasattr("tag")? {
        error.setattr("step", at.step)?;
        error.setattr("component", at.component.as_deref())?;
        error.setattr("tag", at.tag)?;
    }
    Ok(())
}

/// Returns the error of every use of a run that has failed, also after it was closed.
pub fn has_failed(py: Python<'_>, at: &FailedAt, closed: bool) -> PyErr {
    let step = at.step;
    let rest = match &at.checkpoint {
        Some(path) => format!("continue its checkpoint {} with gm.Simulation(…, resume=True)", path.display()),
        None => "there is no checkpoint: start another simulation".into(),
    };
    let closed = if closed { "the simulation is closed, and " } else { "" };
    let text = format!("{closed}the run failed at step {step}: its state cannot be used; its output files can; {rest}");
    let failure = Failure::Run(text, vec![format!("the failure was: {}", at.message)]);
    let error = exception(py, &failure);
    let _ = set_place(error.value(py), at);
    error
}

/// Does work without the interpreter's lock. A panic becomes a `galamost.RunError`: the exception of pyo3 is no `Exception`.
///
/// # Errors
/// Returns the failure of the work as an exception.
pub fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> Result<T, Failure> + Send) -> PyResult<T> {
    let done = py.detach(|| catch_unwind(AssertUnwindSafe(work)));
    let panicked = |payload: Box<dyn Any + Send>| {
        let text = payload.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
        Err(Failure::run(format!("the engine panicked: {}", text.unwrap_or("without a message"))))
    };
    checked(py, done.unwrap_or_else(panicked))
}

/// Converts the result of a component or of the device.
pub fn checked_run<T>(py: Python<'_>, result: Result<T, Error>) -> PyResult<T> {
    checked(py, result.map_err(Failure::from))
}

/// Warnings of the engine that Python has not taken yet.
static WARNINGS: Mutex<Vec<String>> = Mutex::new(vec![]);

/// Collects warnings of the engine.
struct Warnings;

#[derive(Default)]
struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        if field.name() == "message" {
            let _ = write!(self.0, "{value:?}");
        }
    }
}

impl<S: Subscriber> Layer<S> for Warnings {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if *event.metadata().level() <= Level::WARN {
            let mut message = Message::default();
            event.record(&mut message);
            WARNINGS.lock().unwrap_or_else(PoisonError::into_inner).push(message.0);
        }
    }
}

/// Starts collecting the engine's warnings.
pub fn collect_warnings() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let _ = tracing_subscriber::registry().with(Warnings.with_filter(LevelFilter::WARN)).try_init();
    });
}

/// Returns the warnings since the last call.
#[pyfunction]
pub fn take_warnings() -> Vec<String> {
    std::mem::take(&mut WARNINGS.lock().unwrap_or_else(PoisonError::into_inner))
}
