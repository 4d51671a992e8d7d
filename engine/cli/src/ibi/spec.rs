//! The specification file of an inversion.

use super::mapping::MoleculeBlock;
use crate::common::parse_errors;
use galamost_engine::diagnostic::{Diagnostic, Failure};
use galamost_engine::pipeline::{Exclusions, Only};
use galamost_inversion::{Bins, Interaction};
use galamost_plugin_api::Params;
use galamost_plugin_api::error::{Errors, InputError, Position};
use galamost_plugin_api::input;
use galamost_plugin_api::params::{Fields, FromValue, Params as _, Range, Source, Spanned, Value};
use galamost_tables::{Kind, Unit};
use std::path::{Path, PathBuf};

/// How potentials are updated after an iteration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Method {
    /// ΔU = α kT ln(g/g_t), independently for each bin.
    Ibi,
    /// Newton's method with the covariance of all bins, regularized by λ.
    Imc { lambda: f64 },
}

impl FromValue for Method {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        match value.name() {
            Some("Ibi") if value.after_name().is_none() => Some(Self::Ibi),
            Some("Imc") => {
                let mut fields = Fields::new(value.after_name().unwrap_or(value.skip(value.text().len())), errors)?;
                let lambda = fields.or("lambda", Range { at_least: 0.0, ..Range::ANY }, || 0.1);
                fields.finish();
                Some(Self::Imc { lambda: lambda? })
            }
            _ => {
                errors.push(value.error(format!("expected {}, found `{}`", Self::describe(), value.text())));
                None
            }
        }
    }
    fn describe() -> String {
        "`Ibi` or `Imc(lambda: 0.1)`".into()
    }
}

/// Unit of angles.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct UnitName(pub Unit);

impl FromValue for UnitName {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        match value.text() {
            "Degrees" => Some(Self(Unit::Degrees)),
            "Radians" => Some(Self(Unit::Radians)),
            text => {
                errors.push(value.error(format!("expected {}, found `{text}`", Self::describe())));
                None
            }
        }
    }
    fn describe() -> String {
        "`Degrees` or `Radians`".into()
    }
}

/// Trajectory from which targets are measured.
#[derive(Clone, Debug)]
pub(super) struct Trajectory {
    /// The generator that reads a frame, as pipeline text.
    pub reader: String,
    pub at: Position,
    pub first: u64,
    pub last: u64,
    pub every: u64,
    /// One file per frame, instead of the frames of one file.
    pub files: Option<Vec<String>>,
    pub mapping: Option<Vec<Spanned<MoleculeBlock>>>,
}

impl FromValue for Trajectory {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        let mut fields = Fields::new(value, errors)?;
        let reader = fields.raw("reader");
        let first = fields.or("first", Range::ANY, || 0u64);
        let last = fields.required::<Option<u64>>("last", Range::ANY);
        let every = fields.or("every", Range { at_least: 1.0, ..Range::ANY }, || 1u64);
        let files = fields.required::<Option<Vec<String>>>("files", Range::ANY);
        let mapping = fields.required::<Option<Vec<Spanned<MoleculeBlock>>>>("mapping", Range::ANY);
        fields.finish();
        let Some(reader) = reader.filter(|r| r.name().is_some() && r.after_name().is_some()) else {
            errors.push(value.error("missing field `reader`: give a generator such as `Gsd(file: \"all-atom.gsd\")`"));
            return None;
        };
        let (first, last, every, files, mapping) = (first?, last?, every?, files?, mapping?);
        let last = match (&files, last) {
            (None, Some(last)) if last >= first => last,
            (Some(files), None) if !files.is_empty() => files.len() as u64 - 1,
            (None, Some(last)) => {
                errors
                    .push(value.error(format!("`last: {last}` is before `first: {first}`; frames are counted from 0")));
                return None;
            }
            _ => {
                errors.push(
                    value.error("give either `last`, the number of the last frame, or `files`, one for each frame"),
                );
                return None;
            }
        };
        Some(Self { reader: reader.text().into(), at: reader.at(), first, last, every, files, mapping })
    }
    fn describe() -> String {
        "(reader: Gsd(file: \"all-atom.gsd\"), first: 0, last: 99)".into()
    }
}

/// A thermodynamic state.
#[derive(Clone, Debug, Params)]
pub(super) struct StateSpec {
    /// Name: letters, digits, `-` and `_`.
    #[param(default = Spanned { value: "main".to_string(), at: Position { line: 1, column: 1 } })]
    pub name: Spanned<String>,
    /// The pipeline of every iteration, which reads the tables `pair.A-A.csv`, `bond.A-A.csv`, ….
    pub pipeline: Spanned<String>,
    /// kT.
    #[param(name = "kT", above = 0.0)]
    pub kt: f64,
    /// Weight of the state.
    #[param(default = 1.0, above = 0.0)]
    pub weight: f64,
    /// Steps between two samples in the last stage.
    #[param(at_least = 1.0)]
    pub every: u64,
    /// Target pressure.
    pub pressure: Option<f64>,
    /// Other files that the pipeline reads; they are linked into the folder of each iteration.
    #[param(default = vec![])]
    pub files: Vec<Spanned<String>>,
    /// Trajectory from which targets are measured.
    pub trajectory: Option<Trajectory>,
}

/// Fields of all interactions.
#[derive(Clone, Debug, Params)]
pub(super) struct CommonFields {
    /// Number of bins.
    #[param(at_least = 4, at_most = 2000)]
    pub bins: u32,
    /// File of the target distribution; `{state}` is replaced by the name of the state. By default the target is
    /// measured from the trajectory of the state.
    pub target: Option<Spanned<String>>,
    /// Name or number of the column in this file; by default the one after r or the angle.
    pub column: Option<String>,
    /// Unit of the angles in the file.
    pub unit: Option<UnitName>,
    /// Table of the first potential; by default Boltzmann inversion of the target.
    pub start: Option<Spanned<String>>,
    /// Damping of this interaction, overriding the common one.
    #[param(above = 0.0, at_most = 2.0)]
    pub alpha: Option<f64>,
    /// Periodic pattern of the iterations that update the potential: `[1, 0]` updates it every second time.
    #[param(default = vec![1])]
    pub update: Vec<u32>,
    /// How often changes are averaged with those of neighboring bins.
    #[param(default = 0, at_most = 100)]
    pub smooth: u32,
    /// Bins whose target is below this value (pairs), or below this fraction of its maximum (bonds, angles, dihedrals),
    /// count as unsampled.
    #[param(at_least = 0.0, below = 1.0)]
    pub floor: Option<f64>,
}

/// An interaction whose potential is determined.
#[derive(Clone, Debug)]
pub(super) struct InteractionSpec {
    /// Types: `A-B` for a pair, otherwise the name of the bond, angle or dihedral type.
    pub types: String,
    /// Particle types of a pair.
    pub pair: Option<[String; 2]>,
    pub kind: Kind,
    pub first: f64,
    pub last: f64,
    pub common: CommonFields,
    /// Gain of the pressure correction, energy per pressure.
    pub pressure_gain: f64,
    pub at: Position,
}

impl InteractionSpec {
    /// Returns the stem of file names: `pair.A-B`.
    pub fn stem(&self) -> String {
        format!("{}.{}", self.kind.name(), self.types)
    }
    /// Returns the name in messages: `pair A-B`.
    pub fn name(&self) -> String {
        format!("{} {}", self.kind.name(), self.types)
    }
    /// Returns whether the potential is updated after iteration `k`, counted from 1.
    pub fn changes(&self, k: usize) -> bool {
        let pattern = &self.common.update;
        pattern.is_empty() || pattern[(k - 1) % pattern.len()] != 0
    }
    /// Returns the numerical description.
    pub fn interaction(&self, dimensions: u32) -> Interaction {
        let floor = self.common.floor.unwrap_or(if self.kind == Kind::Pair { 0.01 } else { 1e-3 });
        let bins = Bins::new(self.first, self.last, self.common.bins as usize);
        Interaction { kind: self.kind, bins, dimensions, floor, smooth: self.common.smooth }
    }
}

impl FromValue for InteractionSpec {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        let kind = match value.name() {
            Some("Pair") => Kind::Pair,
            Some("Bond") => Kind::Bond,
            Some("Angle") => Kind::Angle,
            Some("Dihedral") => Kind::Dihedral,
            _ => {
                errors.push(value.error(format!("expected {}", Self::describe())));
                return None;
            }
        };
        let positive = Range { at_least: 0.0, ..Range::ANY };
        let mut fields = Fields::new(value, errors)?;
        let (mut pair, mut types) = (None, None);
        if kind == Kind::Pair {
            pair = fields.required::<[String; 2]>("types", Range::ANY);
            types = pair.as_ref().map(|p| p.join("-"));
        } else {
            types = fields.required::<String>("name", Range::ANY).or(types);
        }
        let (first, last) = match kind {
            Kind::Pair => (Some(0.0), fields.required("max", Range { above: 0.0, ..Range::ANY })),
            Kind::Bond => {
                (fields.required("min", positive), fields.required("max", Range { above: 0.0, ..Range::ANY }))
            }
            Kind::Angle => (Some(0.0), Some(180.0)),
            Kind::Dihedral => (Some(-180.0), Some(180.0)),
        };
        let gain = if kind == Kind::Pair { fields.or("pressure_gain", positive, || 0.0) } else { Some(0.0) };
        let common = CommonFields::take(&mut fields);
        fields.finish();
        let (first, last) = (first?, last?);
        if first >= last {
            errors.push(value.error(format!("max ({last}) must be greater than min ({first})")));
            return None;
        }
        Some(Self { types: types?, pair, kind, first, last, common: common?, pressure_gain: gain?, at: value.at() })
    }
    fn describe() -> String {
        "`Pair(types: (\"A\", \"A\"), max: 2.5, bins: 100, …)`, `Bond(name: \"A-A\", min: 0.5, max: 1.5, bins: 80, …)`, \
         `Angle(name: \"A-A-A\", bins: 90, …)` or `Dihedral(name: \"A-A-A-A\", bins: 72, …)`"
            .into()
    }
}

/// The fields of the file.
#[derive(Clone, Debug, Params)]
pub(super) struct SpecFields {
    /// Folder of the results; by default the name of the file without extension.
    pub folder: Option<String>,
    /// `Ibi` or `Imc(lambda: 0.1)`.
    #[param(default = Method::Ibi)]
    pub method: Method,
    /// Largest number of iterations.
    #[param(at_least = 1, at_most = 999)]
    pub iterations: u32,
    /// The inversion ends when all distributions are within this distance of their targets.
    #[param(default = 0.0, at_least = 0.0)]
    pub tolerance: f64,
    /// Damping: factor of all changes.
    #[param(default = 1.0, above = 0.0, at_most = 2.0)]
    pub alpha: f64,
    /// Whether each iteration starts from the last configuration of the previous one.
    #[param(default = false)]
    pub from_last: bool,
    /// Pairs excluded from g(r).
    pub exclude: Option<Exclusions>,
    /// Restricts g(r) to pairs within one molecule, or to pairs of different molecules.
    pub only: Option<Only>,
    /// Number of dimensions, 2 or 3.
    #[param(default = 3, at_least = 2, at_most = 3)]
    pub dimensions: u32,
    /// States.
    pub states: Spanned<Vec<Spanned<StateSpec>>>,
    /// Interactions.
    pub interactions: Spanned<Vec<InteractionSpec>>,
}

/// A specification and its file.
#[derive(Clone, Debug)]
pub(super) struct Spec {
    pub path: PathBuf,
    pub fields: SpecFields,
}

impl std::ops::Deref for Spec {
    type Target = SpecFields;
    fn deref(&self) -> &SpecFields {
        &self.fields
    }
}

impl Spec {
    /// Reads a specification.
    ///
    /// # Errors
    /// Returns all errors of the file.
    pub fn read(path: &Path) -> Result<Self, Failure> {
        let text = input::text(path).map_err(|e| parse_errors(path, vec![e]))?;
        let mut errors = Errors::default();
        let value = Source::file(&text).value();
        let fields = match value.check_syntax() {
            Ok(()) => SpecFields::from_value(value, &mut errors),
            Err(e) => {
                errors.push(e);
                None
            }
        };
        let fields = fields.filter(|f| {
            check_fields(f, &mut errors);
            errors.0.is_empty()
        });
        fields.map(|fields| Self { path: path.into(), fields }).ok_or_else(|| parse_errors(path, errors.0))
    }

    /// Returns the folder that relative paths refer to.
    pub fn directory(&self) -> PathBuf {
        match self.path.parent() {
            Some(p) if !p.as_os_str().is_empty() => p.into(),
            _ => ".".into(),
        }
    }

    /// Returns the folder of the results.
    pub fn folder(&self) -> PathBuf {
        match &self.folder {
            Some(f) => self.directory().join(f),
            None => self.path.with_extension(""),
        }
    }

    /// Reads a text file that is named at a position of this file.
    ///
    /// # Errors
    /// Returns an error at its line, or at the position of its name.
    pub fn text(&self, path: &Path, named: Position) -> Result<String, Failure> {
        input::text(path).map_err(|e| match e.at {
            Some(_) => parse_errors(path, vec![e]),
            None => self.error(named, format!("{} {}", path.display(), e.message)),
        })
    }

    /// Returns an error in the file.
    pub fn error(&self, at: Position, message: impl Into<String>) -> Failure {
        Failure::Input(vec![Diagnostic::new(&self.path, Some(at), message)])
    }
}

/// Checks that the fields are consistent.
fn check_fields(f: &SpecFields, errors: &mut Errors) {
    if f.states.value.is_empty() {
        errors.push(InputError::at(f.states.at, "no states: give at least one"));
    }
    if f.interactions.value.is_empty() {
        errors.push(InputError::at(f.interactions.at, "no interactions: give at least one"));
    }
    let mut names = vec![];
    for s in &f.states.value {
        let name = &s.value.name.value;
        let fits = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
        if name.is_empty() || !name.chars().all(fits) {
            errors.push(InputError::at(
                s.value.name.at,
                format!("`{name}` is not a valid name: use letters, digits, - and _"),
            ));
        }
        if names.contains(&name) {
            errors.push(InputError::at(s.at, format!("duplicate state `{name}`: give each state its own `name`")));
        }
        names.push(name);
    }
    for t in f.states.value.iter().filter_map(|s| s.value.trajectory.as_ref()) {
        super::mapping::check(t.mapping.as_deref().unwrap_or_default(), errors);
    }
    let mut stems: Vec<String> = vec![];
    for i in &f.interactions.value {
        if stems.contains(&i.stem()) {
            errors.push(InputError::at(i.at, format!("{} is given twice", i.name())));
        }
        stems.push(i.stem());
        if !i.types.chars().all(|c| c.is_alphanumeric() || "-_+.".contains(c)) {
            errors.push(InputError::at(i.at, format!("`{}` cannot be part of a file name", i.types)));
        }
        if i.common.target.is_none()
            && let Some(s) = f.states.value.iter().find(|s| s.value.trajectory.is_none())
        {
            let what = format!(
                "{} has no `target`, and the state `{}` has no `trajectory` to measure it from",
                i.name(),
                s.value.name.value
            );
            errors.push(InputError::at(i.at, what));
        }
        if i.pressure_gain > 0.0 && f.states.value.iter().all(|s| s.value.pressure.is_none()) {
            errors.push(InputError::at(i.at, "`pressure_gain` requires a state with a `pressure`"));
        }
    }
}
