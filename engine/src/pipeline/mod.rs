//! The pipeline file: `galamost --pipeline sim.ron`.

mod neighbors;
mod overrides;

use crate::diagnostic::{Diagnostic, Failure};
use galamost_plugin_api::error::{Errors, InputError, Position, nearest};
use galamost_plugin_api::params::{Fields, FromValue, Range, Source, Value};
use galamost_plugin_api::precision::Precision;
use std::path::{Path, PathBuf};

pub use neighbors::{Exclusions, ListChoice, Neighbors, Only};
pub use overrides::apply as apply_overrides;

/// The largest number of checkpoints that a run keeps.
pub const MAX_CHECKPOINTS: u64 = 100;

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

/// The device that the user requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeviceChoice {
    /// A GPU if one works, otherwise the CPU; the log states the choice and its reason.
    #[default]
    Auto,
    /// The CPU.
    Cpu,
    /// This GPU.
    Cuda(u32),
    /// The CUDA kernels on the CPU, compiled by g++; slow, for tests of kernels.
    Emulated,
}

impl DeviceChoice {
    /// Parses the command-line form: `auto`, `cpu`, `cuda`, `cuda:1`, `emulated`.
    ///
    /// # Errors
    /// Returns an error that lists the valid forms.
    pub fn parse(text: &str) -> Result<Self, String> {
        let lower = text.to_lowercase();
        match lower.as_str() {
            "auto" => Ok(Self::Auto),
            "cpu" => Ok(Self::Cpu),
            "cuda" => Ok(Self::Cuda(0)),
            "emulated" => Ok(Self::Emulated),
            other => other
                .strip_prefix("cuda:")
                .and_then(|n| n.parse().ok())
                .map(Self::Cuda)
                .ok_or_else(|| format!("`{text}` is not a device; use auto, cpu, cuda:0 or emulated")),
        }
    }
}

impl FromValue for DeviceChoice {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        match (value.name(), value.after_name()) {
            (Some("Auto"), None) => Some(Self::Auto),
            (Some("Cpu"), None) => Some(Self::Cpu),
            (Some("Emulated"), None) => Some(Self::Emulated),
            (Some("Cuda"), Some(inner)) => match errors.absorb(inner.elements())?.as_slice() {
                [n] => u32::from_value(*n, errors).map(Self::Cuda),
                _ => {
                    errors.push(value.error("expected `Cuda(0)`"));
                    None
                }
            },
            _ => {
                errors.push(value.error(format!("expected {}, found `{}`", Self::describe(), value.text())));
                None
            }
        }
    }
    fn describe() -> String {
        "`Auto`, `Cpu` or `Cuda(0)`".into()
    }
}

struct PrecisionField(Precision);

impl FromValue for PrecisionField {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        let all = [Precision::Single, Precision::Mixed, Precision::Double];
        let found = all.into_iter().find(|p| p.name() == value.text()).map(Self);
        if found.is_none() {
            errors.push(value.error(format!("expected {}, found `{}`", Self::describe(), value.text())));
        }
        found
    }
    fn describe() -> String {
        "`Single`, `Mixed` or `Double`".into()
    }
}

/// `checkpoint: (…)`.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckpointSettings {
    /// Steps between checkpoints; one is also written at the end. If absent, only an interrupted run writes one.
    pub every: Option<u64>,
    /// Minutes between checkpoints; one is also written at the end.
    pub minutes: Option<f64>,
    /// Number of checkpoints kept.
    pub keep: u64,
    /// File; by default the pipeline's path with the extension `.checkpoint`.
    pub file: Option<String>,
}

impl FromValue for CheckpointSettings {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        let mut fields = Fields::new(value, errors)?;
        let every = fields.required("every", Range { at_least: 1.0, ..Range::ANY });
        let minutes = fields.required("minutes", Range { above: 0.0, ..Range::ANY });
        let keep =
            fields.or("keep", Range { at_least: 1.0, at_most: MAX_CHECKPOINTS as f64, ..Range::ANY }, || Self::KEEP);
        let file = fields.required("file", Range::ANY);
        fields.finish();
        Some(Self { every: every?, minutes: minutes?, keep: keep?, file: file? })
    }
    fn describe() -> String {
        "(every: 10_000, minutes: 30.0, keep: 2, file: \"run.checkpoint\")".into()
    }
}

impl CheckpointSettings {
    /// Two, so a run survives one unreadable checkpoint.
    const KEEP: u64 = 2;

    /// Returns whether checkpoints are written during the run.
    pub fn regular(&self) -> bool {
        self.every.is_some() || self.minutes.is_some()
    }
}

impl Default for CheckpointSettings {
    fn default() -> Self {
        Self { every: None, minutes: None, keep: Self::KEEP, file: None }
    }
}

struct Entries(Vec<Entry>);

impl FromValue for Entries {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        let mut list = vec![];
        for v in errors.absorb(value.elements())? {
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
        Some(Self {
            name: name?,
            steps: steps?,
            dt: dt?,
            at: value.at(),
            forces: forces?,
            integrators: integrators?,
            updaters: updaters?,
            analyzers: analyzers?,
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
}

impl Pipeline {
    /// Reads a file and applies `--set path=value`.
    ///
    /// # Errors
    /// Returns all errors of its syntax and of its own fields.
    pub fn read(path: &Path, overrides: &[String]) -> Result<Self, Failure> {
        let fail = |d: Vec<Diagnostic>| Err(Failure::Input(d));
        let text = match std::fs::read_to_string(path) {
            Ok(t) => t,
            Err(e) => return fail(vec![Diagnostic::new(path, None, format!("cannot be read: {e}"))]),
        };
        match Self::parse(path, &text, overrides) {
            Ok(p) => Ok(p),
            Err(errors) => {
                fail(errors.into_iter().map(|e: InputError| Diagnostic::new(path, e.at, e.message)).collect())
            }
        }
    }

    /// Parses a text.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn parse(path: &Path, text: &str, overrides: &[String]) -> Result<Self, Vec<InputError>> {
        let body = skip_attributes(text);
        if let Err(e) = body.check_syntax() {
            return Err(vec![e]);
        }
        let text = apply_overrides(text, body, overrides)?;
        let value = skip_attributes(&text);
        let mut errors = Errors::default();
        let parsed = Self::fields(path, &text, value, &mut errors);
        match parsed {
            Some(p) if errors.0.is_empty() => Ok(p),
            _ => Err(errors.0),
        }
    }

    fn fields(path: &Path, text: &str, value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        let mut fields = Fields::new(value, errors)?;
        let seed = fields.or("seed", Range::ANY, || 0u64);
        let device_at = fields.raw("device").map(Value::at);
        let device = fields.or("device", Range::ANY, DeviceChoice::default);
        let precision = fields.or("precision", Range::ANY, || PrecisionField(Precision::Mixed));
        let neighbors = fields.or("neighbors", Range::ANY, Neighbors::default);
        let checkpoint = fields.or("checkpoint", Range::ANY, CheckpointSettings::default);
        let ensemble = fields.required::<Option<Entries>>("ensemble", Range::ANY).map(|e| e.map(|e| e.0));
        if let Some(Some(ensemble)) = ensemble {
            return Self::of_ensemble(
                fields,
                path,
                text,
                ensemble,
                (seed?, device?, device_at, precision?.0, checkpoint?),
            );
        }
        let initial = fields.required::<Entries>("initial", Range::ANY);
        let mut list = |name| fields.or(name, Range::ANY, || Entries(vec![])).map(|e| e.0);
        let (forces, integrators) = (list("forces"), list("integrators"));
        let (updaters, analyzers) = (list("updaters"), list("analyzers"));
        let stages = fields.required::<Vec<Stage>>("stages", Range::ANY);
        fields.finish();
        if let Some(s) = &stages
            && s.is_empty()
        {
            errors.push(value.error("there are no stages; add at least one: `(steps: 1000, dt: 0.005)`"));
        }
        Some(Self {
            path: path.into(),
            text: text.into(),
            seed: seed?,
            device: device?,
            device_at,
            precision: precision?.0,
            neighbors: neighbors?,
            checkpoint: checkpoint?,
            initial: initial?.0,
            forces: forces?,
            integrators: integrators?,
            updaters: updaters?,
            analyzers: analyzers?,
            stages: stages?,
            ensemble: vec![],
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
        for name in ["neighbors", "initial", "forces", "integrators", "updaters", "analyzers", "stages"] {
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
        })
    }

    /// Returns the folder that relative paths refer to.
    pub fn directory(&self) -> PathBuf {
        match self.path.parent() {
            Some(p) if !p.as_os_str().is_empty() => p.into(),
            _ => ".".into(),
        }
    }

    /// Returns the path of the checkpoint file.
    pub fn checkpoint_path(&self) -> PathBuf {
        match &self.checkpoint.file {
            Some(f) => self.directory().join(f),
            None => self.path.with_extension("checkpoint"),
        }
    }
}

/// Skips RON attributes such as `#![enable(…)]`, which are allowed and have no effect.
fn skip_attributes(text: &str) -> Value<'_> {
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
