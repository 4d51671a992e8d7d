//! The pipeline file: `galamost --pipeline sim.ron`.

mod device;
mod differences;
mod exchange;
mod overrides;
mod processes;
mod replicas;
mod settings;

use crate::diagnostic::{Diagnostic, Failure};
use device::PrecisionField;
use galamost_plugin_api::error::{Errors, InputError, Position, nearest};
use galamost_plugin_api::input;
use galamost_plugin_api::params::{Fields, FromValue, Range, Source, Value};
use galamost_plugin_api::precision::Precision;
use std::path::{Path, PathBuf};

pub use device::DeviceChoice;
pub(crate) use differences::{differences, elements, fields, short};
pub use exchange::ExchangeSettings;
pub use overrides::Overrides;
use overrides::Replacement;
pub use processes::Processes;
pub use replicas::{MAX_REPLICAS, REPLICA_MARK, is_edited, read_replicas, replica_path};
pub use settings::{CheckpointSettings, Exclusions, ListChoice, Neighbors, Only, Special, Weight};

/// The largest number of checkpoints that a run keeps.
pub const MAX_CHECKPOINTS: u64 = 100;

/// The largest number of components in a list, and of stages. Each output needs an open file, and some checks compare all
/// components with each other.
const MAX_ELEMENTS: usize = 10_000;

fn too_many(n: usize, what: &str) -> String {
    format!("{n} {what} are too many; at most {MAX_ELEMENTS} are allowed")
}

/// A component as the file gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Name.
    pub name: String,
    /// Text, including the name.
    pub text: String,
    /// Position of the text.
    pub at: Position,
}

struct Entries(Vec<Entry>);

impl FromValue for Entries {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        let mut list = vec![];
        let elements = errors.absorb(value.elements())?;
        if elements.len() > MAX_ELEMENTS {
            errors.push(value.error(too_many(elements.len(), "components")));
            return None;
        }
        for v in elements {
            match v.name() {
                Some(name) => list.push(Entry { name: name.into(), text: v.text().into(), at: v.at() }),
                None => errors.push(v.error("a component is written as `Name(…)`")),
            }
        }
        Some(Self(list))
    }
    fn describe() -> String {
        "a list of components `Name(…)`".into()
    }
}

/// One stage of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage {
    /// Name.
    pub name: String,
    /// Number of steps.
    pub steps: u64,
    /// Time step.
    pub dt: f64,
    /// Position in the file.
    pub at: Position,
    /// Forces of this stage; replace the pipeline's.
    pub forces: Option<Vec<Entry>>,
    /// Integrators of this stage; replace the pipeline's.
    pub integrators: Option<Vec<Entry>>,
    /// Updaters of this stage; replace the pipeline's.
    pub updaters: Option<Vec<Entry>>,
    /// Analyzers of this stage; replace the pipeline's.
    pub analyzers: Option<Vec<Entry>>,
}

impl Stage {
    /// Time step of a stage whose `dt` is wrong.
    const PLACEHOLDER_DT: f64 = 1e-3;
}

impl FromValue for Stage {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        let mut fields = Fields::new(value, errors)?;
        let name = fields.or("name", Range::ANY, || "run".to_string());
        let steps = fields.required("steps", Range::ANY);
        let dt = fields.required("dt", Range { above: 0.0, ..Range::ANY });
        let mut list = |name| fields.required::<Option<Entries>>(name, Range::ANY).map(|o| o.map(|e| e.0));
        let (forces, integrators) = (list("forces"), list("integrators"));
        let (updaters, analyzers) = (list("updaters"), list("analyzers"));
        fields.finish();
        // a mistake is recorded; the stage remains, so that its components are checked too
        Some(Self {
            name: name.unwrap_or_default(),
            steps: steps.unwrap_or(0),
            dt: dt.unwrap_or(Self::PLACEHOLDER_DT),
            at: value.at(),
            forces: forces.flatten(),
            integrators: integrators.flatten(),
            updaters: updaters.flatten(),
            analyzers: analyzers.flatten(),
        })
    }
    fn describe() -> String {
        "(name: \"run\", steps: 1000, dt: 0.005)".into()
    }
}

/// A parsed pipeline file, not yet checked against plugins.
#[derive(Clone, Debug)]
pub struct Pipeline {
    /// The file.
    pub path: PathBuf,
    /// Its text (with `--set` applied).
    pub text: String,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Device.
    pub device: DeviceChoice,
    /// Position of `device`.
    pub device_at: Option<Position>,
    /// Number of GPUs that share the run: that of `device` and the next ones.
    pub gpus: u32,
    /// Position of `gpus`.
    pub gpus_at: Option<Position>,
    /// Number of replicas.
    pub replicas: u32,
    /// Position of `replicas`.
    pub replicas_at: Option<Position>,
    /// Exchange between replicas.
    pub exchange: Option<ExchangeSettings>,
    /// The number of the replica that the pipeline was made for.
    pub replica: Option<u32>,
    /// Processes that share the run; not a field of the file.
    pub processes: Processes,
    /// Precision.
    pub precision: Precision,
    /// Neighbor list.
    pub neighbors: Neighbors,
    /// Checkpoints.
    pub checkpoint: CheckpointSettings,
    /// Generators.
    pub initial: Vec<Entry>,
    /// Forces.
    pub forces: Vec<Entry>,
    /// Integrators.
    pub integrators: Vec<Entry>,
    /// Updaters.
    pub updaters: Vec<Entry>,
    /// Analyzers.
    pub analyzers: Vec<Entry>,
    /// Stages.
    pub stages: Vec<Stage>,
    /// Samplers; they replace all lists above.
    pub ensemble: Vec<Entry>,
    /// Where the pieces of the text come from.
    overrides: Overrides,
}

impl Pipeline {
    /// Returns the number of ranks: GPUs of one process, or processes.
    pub fn ranks(&self) -> u32 {
        self.gpus.max(self.processes.count)
    }

    /// Reads a file and applies `--set path=value`.
    ///
    /// # Errors
    /// Returns all errors of its syntax and of its own fields.
    pub fn read(path: &Path, overrides: &[String]) -> Result<Self, Failure> {
        let (pipeline, errors) = Self::read_partially(path, overrides)?;
        if errors.is_empty() {
            return Ok(pipeline);
        }
        Err(Failure::Input(errors.into_iter().map(|d| pipeline.locate(d)).collect()))
    }

    /// Moves an error in the text of the pipeline to its place in the file, or to the option `--set` that is wrong.
    pub fn locate(&self, mut d: Diagnostic) -> Diagnostic {
        if d.file == self.path {
            self.overrides.locate(&self.text, &mut d.file, &mut d.at);
        }
        if let Some((file, at)) = &mut d.read_by {
            self.overrides.locate(&self.text, file, at);
        }
        d
    }

    /// Reads a file as [`Self::read`] does, but returns errors of fields beside the pipeline, so that components can be
    /// checked too. Fields with errors have placeholders.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or is not RON.
    pub fn read_partially(path: &Path, overrides: &[String]) -> Result<(Self, Vec<Diagnostic>), Failure> {
        let text = input::text(path).map_err(|e| Failure::Input(vec![Diagnostic::new(path, e.at, e.message)]))?;
        if folder_of(path).to_str().is_none() {
            let message = "the name of the folder is not UTF-8, and components receive it as text; \
                           rename the folder, or start the program inside of it";
            return Err(Failure::Input(vec![Diagnostic::new(path, None, message)]));
        }
        let diagnostics = |errors: Vec<InputError>| -> Vec<Diagnostic> {
            errors.into_iter().map(|e| Diagnostic::new(path, e.at, e.message)).collect()
        };
        match Self::parse_partially(path, &text, overrides) {
            Ok((pipeline, errors)) => Ok((pipeline, diagnostics(errors))),
            Err(errors) => Err(Failure::Input(diagnostics(errors))),
        }
    }

    /// Parses a text.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn parse(path: &Path, text: &str, overrides: &[String]) -> Result<Self, Vec<InputError>> {
        let (pipeline, errors) = Self::parse_partially(path, text, overrides)?;
        if errors.is_empty() { Ok(pipeline) } else { Err(errors) }
    }

    /// Parses a text as [`Self::read_partially`] does.
    ///
    /// # Errors
    /// Returns an error if the text is not RON.
    pub fn parse_partially(
        path: &Path,
        text: &str,
        overrides: &[String],
    ) -> Result<(Self, Vec<InputError>), Vec<InputError>> {
        let whole = body(text);
        if whole.text().is_empty() {
            let needed = "a pipeline has at least `(initial: [ … ], stages: [ … ])`";
            return Err(vec![InputError::new(format!("the file is empty; {needed}"))]);
        }
        if let Err(e) = whole.check_syntax() {
            return Err(vec![e]);
        }
        let options: Vec<Replacement> = overrides.iter().map(|o| Replacement::set(o)).collect();
        let (text, overrides) = overrides::apply(text, whole, &options)?;
        let value = body(&text);
        let mut errors = Errors::default();
        match Self::fields(path, &text, value, &mut errors) {
            Some(p) => Ok((Self { overrides, ..p }, errors.0)),
            None => {
                let located = |mut e: InputError| {
                    let mut file = path.to_path_buf();
                    overrides.locate(&text, &mut file, &mut e.at);
                    let option = if file == path { String::new() } else { format!("{}: ", file.display()) };
                    InputError { message: format!("{option}{}", e.message), ..e }
                };
                Err(errors.0.into_iter().map(located).collect())
            }
        }
    }

    fn fields(path: &Path, text: &str, value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        let mut fields = Fields::new(value, errors)?;
        let seed = fields.or("seed", Range::ANY, || 0u64).unwrap_or(0);
        let device_at = fields.raw("device").map(Value::at);
        // with a wrong device, components are checked for the CPU
        let device = fields.or("device", Range::ANY, DeviceChoice::default).unwrap_or(DeviceChoice::Cpu);
        let gpus_at = fields.raw("gpus").map(Value::at);
        let gpus = fields.or("gpus", Range::ANY, || 1u32).unwrap_or(1);
        let replicas_at = fields.raw("replicas").map(Value::at);
        let replicas = fields.or("replicas", Range::ANY, || 1u32).unwrap_or(1);
        let exchange = fields.required::<Option<ExchangeSettings>>("exchange", Range::ANY).flatten();
        let precision = fields.or("precision", Range::ANY, || PrecisionField(Precision::Mixed));
        let precision = precision.map_or(Precision::Mixed, |p| p.0);
        let neighbors = fields.or("neighbors", Range::ANY, Neighbors::default).unwrap_or_default();
        let checkpoint = fields.or("checkpoint", Range::ANY, CheckpointSettings::default).unwrap_or_default();
        let ensemble = fields.required::<Option<Entries>>("ensemble", Range::ANY).map(|e| e.map(|e| e.0));
        if let Some(Some(ensemble)) = ensemble {
            return Self::of_ensemble(fields, path, text, ensemble, (seed, device, device_at, precision, checkpoint));
        }
        let initial = fields.required::<Entries>("initial", Range::ANY).map_or(vec![], |e| e.0);
        let mut list = |name| fields.or(name, Range::ANY, || Entries(vec![])).map_or(vec![], |e| e.0);
        let (forces, integrators) = (list("forces"), list("integrators"));
        let (updaters, analyzers) = (list("updaters"), list("analyzers"));
        let stages = fields.required::<Vec<Stage>>("stages", Range::ANY);
        fields.finish();
        if let Some(s) = &stages
            && s.len() > MAX_ELEMENTS
        {
            errors.push(value.error(too_many(s.len(), "stages")));
        }
        if let Some(s) = &stages
            && s.is_empty()
        {
            errors.push(value.error("there are no stages; add at least one: `(steps: 1000, dt: 0.005)`"));
        }
        Some(Self {
            path: path.into(),
            text: text.into(),
            seed,
            device,
            device_at,
            gpus,
            gpus_at,
            replicas,
            replicas_at,
            exchange,
            replica: None,
            processes: Processes::default(),
            precision,
            neighbors,
            checkpoint,
            initial,
            forces,
            integrators,
            updaters,
            analyzers,
            stages: stages.unwrap_or_default(),
            ensemble: vec![],
            overrides: Overrides::default(),
        })
    }

    /// Parses the rest of a pipeline of samplers. It has no particles, so fields for particles are errors.
    fn of_ensemble(
        mut fields: Fields<'_, '_>,
        path: &Path,
        text: &str,
        ensemble: Vec<Entry>,
        (seed, device, device_at, precision, checkpoint): (
            u64,
            DeviceChoice,
            Option<Position>,
            Precision,
            CheckpointSettings,
        ),
    ) -> Option<Self> {
        let lists = ["initial", "forces", "integrators", "updaters", "analyzers", "stages"];
        for name in ["gpus", "replicas", "exchange", "neighbors"].into_iter().chain(lists) {
            if let Some(value) = fields.raw(name) {
                let text =
                    "a pipeline has either an `ensemble`, which has no particles, or an initial state and stages";
                fields.errors.push(value.error(format!("`{name}` is not allowed here: {text}")));
            }
        }
        if ensemble.is_empty() {
            let value = fields.value();
            fields.errors.push(value.error("`ensemble` is empty; add at least one sampler"));
        }
        fields.finish();
        Some(Self {
            path: path.into(),
            text: text.into(),
            seed,
            device,
            device_at,
            gpus: 1,
            gpus_at: None,
            replicas: 1,
            replicas_at: None,
            exchange: None,
            replica: None,
            processes: Processes::default(),
            precision,
            neighbors: Neighbors::default(),
            checkpoint,
            initial: vec![],
            forces: vec![],
            integrators: vec![],
            updaters: vec![],
            analyzers: vec![],
            stages: vec![],
            ensemble,
            overrides: Overrides::default(),
        })
    }

    /// Returns the file of the user: that of all replicas, if the pipeline is that of one.
    pub fn common_path(&self) -> &Path {
        self.overrides.origin.as_ref().map_or(&self.path, |o| &o.path)
    }

    /// Returns the file with which the run resumes. Replicas that exchange particles resume together.
    pub fn resumed_path(&self) -> &Path {
        if self.exchange.is_some() { self.common_path() } else { &self.path }
    }

    /// Returns the folder that relative paths refer to.
    pub fn directory(&self) -> PathBuf {
        folder_of(&self.path).into()
    }

    /// Returns the path of the checkpoint file.
    pub fn checkpoint_path(&self) -> PathBuf {
        match &self.checkpoint.file {
            Some(f) => self.directory().join(f),
            None => self.path.with_extension("checkpoint"),
        }
    }
}

/// Returns the folder of a file.
fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Returns the value of a pipeline's text. RON attributes such as `#![enable(…)]` are allowed and have no effect.
pub(crate) fn body(text: &str) -> Value<'_> {
    let mut rest = Source::file(text).value();
    while rest.text().starts_with("#![") {
        let Some(end) = rest.text().find(']') else { break };
        rest = rest.skip(end + 1);
    }
    rest
}

/// Returns "did you mean `x`?", or the list of valid names.
pub fn suggestion<'a>(wrong: &str, names: impl IntoIterator<Item = &'a str> + Clone) -> String {
    match nearest(wrong, names.clone()) {
        Some(n) => format!("did you mean `{n}`?"),
        None => {
            let all: Vec<_> = names.into_iter().collect();
            format!("there are {}", all.join(", "))
        }
    }
}
