//! The file that says what is looked for.

use super::mapping::Block;
use galamost_engine::diagnostic::{Diagnostic, Failure};
use galamost_engine::pipeline::{Exclusions, Only};
use galamost_inversion::{Bins, Interaction};
use galamost_plugin_api::Params;
use galamost_plugin_api::error::{Errors, InputError, Position};
use galamost_plugin_api::params::{Fields, FromValue, Params as _, Range, Source, Spanned, Value};
use galamost_tables::{Kind, Unit};
use std::path::{Path, PathBuf};

/// How potentials are changed after an iteration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Method {
    /// ΔU = α kT ln(g/g_t), each bin by itself.
    Ibi,
    /// Newton's method with the covariance of all bins, and its regularisation.
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

/// Frames to measure targets from.
#[derive(Clone, Debug)]
pub(super) struct Trajectory {
    /// The generator that reads a frame, its whole text.
    pub reader: String,
    pub at: Position,
    pub first: u64,
    pub last: u64,
    pub every: u64,
    /// Files in place of frames of one file.
    pub files: Option<Vec<String>>,
    pub mapping: Option<Vec<Spanned<Block>>>,
}

impl FromValue for Trajectory {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        let mut fields = Fields::new(value, errors)?;
        let reader = fields.raw("reader");
        let first = fields.or("first", Range::ANY, || 0u64);
        let last = fields.required::<Option<u64>>("last", Range::ANY);
        let every = fields.or("every", Range { at_least: 1.0, ..Range::ANY }, || 1u64);
        let files = fields.required::<Option<Vec<String>>>("files", Range::ANY);
        let mapping = fields.required::<Option<Vec<Spanned<Block>>>>("mapping", Range::ANY);
        fields.finish();
        let Some(reader) = reader.filter(|r| r.name().is_some() && r.after_name().is_some()) else {
            errors.push(value.error("missing field `reader`: a generator, as `Gsd(file: \"all-atom.gsd\")`"));
            return None;
        };
        let (first, last, every, files, mapping) = (first?, last?, every?, files?, mapping?);
        let last = match (&files, last) {
            (None, Some(last)) if last >= first => last,
            (Some(files), None) if !files.is_empty() => files.len() as u64 - 1,
            _ => {
                errors.push(value.error("give `last`, the number of the last frame, or `files`, one for each frame"));
                return None;
            }
        };
        Some(Self { reader: reader.text().into(), at: reader.at(), first, last, every, files, mapping })
    }
    fn describe() -> String {
        "(reader: Gsd(file: \"all-atom.gsd\"), first: 0, last: 99)".into()
    }
}

/// One state of the system.
#[derive(Clone, Debug, Params)]
pub(super) struct State {
    /// Its name: letters, digits, `-` and `_`.
    #[param(default = Spanned { value: "main".to_string(), at: Position { line: 1, column: 1 } })]
    pub name: Spanned<String>,
    /// The pipeline that every iteration runs, with the tables `pair.A-A.csv`, `bond.A-A.csv`, ….
    pub pipeline: Spanned<String>,
    /// kT of the state.
    #[param(name = "kT", above = 0.0)]
    pub kt: f64,
    /// Its weight among the states.
    #[param(default = 1.0, above = 0.0)]
    pub weight: f64,
    /// Steps between two samples in the last stage.
    #[param(at_least = 1.0)]
    pub every: u64,
    /// Pressure wanted.
    pub pressure: Option<f64>,
    /// Files that the pipeline reads, beside the tables: they are linked into the folder of each iteration.
    #[param(default = vec![])]
    pub files: Vec<Spanned<String>>,
    /// Where targets are measured from.
    pub trajectory: Option<Trajectory>,
}

/// What the four kinds of interactions share.
#[derive(Clone, Debug, Params)]
pub(super) struct Common {
    /// Number of bins.
    #[param(at_least = 4, at_most = 2000)]
    pub bins: u32,
    /// The file of the target; `{state}` stands for the name of the state. Without it the target is measured from the state's trajectory.
    pub target: Option<Spanned<String>>,
    /// Name or number of the column.
    pub column: Option<String>,
    /// Unit of the angles in the file.
    pub unit: Option<UnitName>,
    /// The first potential, a table; by default that of Boltzmann inversion.
    pub start: Option<Spanned<String>>,
    /// Damping, in place of that of the whole file.
    #[param(above = 0.0, at_most = 2.0)]
    pub alpha: Option<f64>,
    /// In which iterations the potential is changed, over and over: `[1, 0]` is every second one.
    #[param(default = vec![1])]
    pub update: Vec<u32>,
    /// How often changes are averaged with their neighbors.
    #[param(default = 0, at_most = 100)]
    pub smooth: u32,
    /// Bins whose target is below this (pairs), or this share of its largest value (links), count as not sampled.
    #[param(at_least = 0.0, below = 1.0)]
    pub floor: Option<f64>,
}

/// One interaction whose potential is looked for.
#[derive(Clone, Debug)]
pub(super) struct Sought {
    /// Its types: `A-B` of a pair, the name of a link's type.
    pub types: String,
    /// Both types of a pair.
    pub pair: Option<[String; 2]>,
    pub kind: Kind,
    pub first: f64,
    pub last: f64,
    pub common: Common,
    /// Energy per unit of pressure.
    pub pressure_gain: f64,
    pub at: Position,
}

impl Sought {
    /// `pair.A-B`, as the files of tables are called.
    pub fn stem(&self) -> String {
        format!("{}.{}", self.kind.name(), self.types)
    }
    /// `pair A-B`, in messages.
    pub fn name(&self) -> String {
        format!("{} {}", self.kind.name(), self.types)
    }
    /// Whether its potential changes after iteration `k`, from 1.
    pub fn changes(&self, k: usize) -> bool {
        let pattern = &self.common.update;
        pattern.is_empty() || pattern[(k - 1) % pattern.len()] != 0
    }
    /// Its numbers.
    pub fn interaction(&self, dimensions: u32) -> Interaction {
        let floor = self.common.floor.unwrap_or(if self.kind == Kind::Pair { 0.01 } else { 1e-3 });
        let bins = Bins::new(self.first, self.last, self.common.bins as usize);
        Interaction { kind: self.kind, bins, dimensions, floor, smooth: self.common.smooth }
    }
}

impl FromValue for Sought {
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
        let common = Common::take(&mut fields);
        fields.finish();
        let (first, last) = (first?, last?);
        if first >= last {
            errors.push(value.error(format!("max {last} is not above min {first}")));
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

/// The whole file.
#[derive(Clone, Debug, Params)]
pub(super) struct Contents {
    /// Folder of the results; by default named as the file.
    pub folder: Option<String>,
    /// `Ibi` or `Imc(lambda: 0.1)`.
    #[param(default = Method::Ibi)]
    pub method: Method,
    /// Most iterations.
    #[param(at_least = 1, at_most = 999)]
    pub iterations: u32,
    /// It ends when every distribution is this near to its target.
    #[param(default = 0.0, at_least = 0.0)]
    pub tolerance: f64,
    /// Damping: the factor of every change.
    #[param(default = 1.0, above = 0.0, at_most = 2.0)]
    pub alpha: f64,
    /// Each iteration begins where the one before ended.
    #[param(default = false)]
    pub from_last: bool,
    /// Pairs that are not counted in g(r).
    #[param(default = Exclusions::default())]
    pub exclude: Exclusions,
    /// Pairs of one molecule or of different ones only.
    pub only: Option<Only>,
    /// 2 or 3.
    #[param(default = 3, at_least = 2, at_most = 3)]
    pub dimensions: u32,
    /// States.
    pub states: Spanned<Vec<Spanned<State>>>,
    /// Interactions.
    pub interactions: Spanned<Vec<Sought>>,
}

/// A file that was read.
#[derive(Clone, Debug)]
pub(super) struct Spec {
    pub path: PathBuf,
    pub fields: Contents,
}

impl std::ops::Deref for Spec {
    type Target = Contents;
    fn deref(&self) -> &Contents {
        &self.fields
    }
}

impl Spec {
    /// Reads the file; all mistakes at once.
    pub fn read(path: &Path) -> Result<Self, Failure> {
        let text = std::fs::read_to_string(path)
            .map_err(|e| Failure::Input(vec![Diagnostic::new(path, None, format!("cannot be read: {e}"))]))?;
        let mut errors = Errors::default();
        let value = Source::file(&text).value();
        let fields = match value.check_syntax() {
            Ok(()) => Contents::from_value(value, &mut errors),
            Err(e) => {
                errors.push(e);
                None
            }
        };
        let fields = fields.filter(|f| {
            mistakes(f, &mut errors);
            errors.0.is_empty()
        });
        fields.map(|fields| Self { path: path.into(), fields }).ok_or_else(|| {
            Failure::Input(errors.0.into_iter().map(|e| Diagnostic::new(path, e.at, e.message)).collect())
        })
    }

    /// The folder that relative paths start at.
    pub fn directory(&self) -> PathBuf {
        match self.path.parent() {
            Some(p) if !p.as_os_str().is_empty() => p.into(),
            _ => ".".into(),
        }
    }

    /// The folder of the results.
    pub fn folder(&self) -> PathBuf {
        match &self.folder {
            Some(f) => self.directory().join(f),
            None => self.path.with_extension(""),
        }
    }

    /// A mistake in the file.
    pub fn wrong(&self, at: Position, message: impl Into<String>) -> Failure {
        Failure::Input(vec![Diagnostic::new(&self.path, Some(at), message)])
    }
}

/// What the fields say together.
fn mistakes(f: &Contents, errors: &mut Errors) {
    if f.states.value.is_empty() {
        errors.push(InputError::at(f.states.at, "there are no states: give at least one"));
    }
    if f.interactions.value.is_empty() {
        errors.push(InputError::at(f.interactions.at, "there are no interactions: give at least one"));
    }
    let mut names = vec![];
    for s in &f.states.value {
        let name = &s.value.name.value;
        let fits = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
        if name.is_empty() || !name.chars().all(fits) {
            errors.push(InputError::at(
                s.value.name.at,
                format!("`{name}` cannot be a folder: letters, digits, - and _"),
            ));
        }
        if names.contains(&name) {
            errors.push(InputError::at(s.at, format!("there are two states `{name}`: give each a `name`")));
        }
        names.push(name);
    }
    for t in f.states.value.iter().filter_map(|s| s.value.trajectory.as_ref()) {
        super::mapping::mistakes(t.mapping.as_deref().unwrap_or_default(), errors);
    }
    let mut stems: Vec<String> = vec![];
    for i in &f.interactions.value {
        if stems.contains(&i.stem()) {
            errors.push(InputError::at(i.at, format!("{} is given twice", i.name())));
        }
        stems.push(i.stem());
        if !i.types.chars().all(|c| c.is_alphanumeric() || "-_+.".contains(c)) {
            errors.push(InputError::at(i.at, format!("`{}` cannot be the name of a file", i.types)));
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
            errors.push(InputError::at(i.at, "`pressure_gain` needs a state with a `pressure`"));
        }
    }
}
