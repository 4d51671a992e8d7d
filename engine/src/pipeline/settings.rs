//! Settings of a pipeline: neighbor list and checkpoints.

use super::MAX_CHECKPOINTS;
use galamost_plugin_api::error::{Errors, Position};
use galamost_plugin_api::params::{Fields, FromValue, Range, Value};

/// Exclusions: bonded pairs without pair forces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exclusions {
    /// The two particles of a bond.
    pub bonds: bool,
    /// The two end particles of an angle.
    pub angles: bool,
    /// The two end particles of a dihedral.
    pub dihedrals: bool,
    /// All pairs of the four particles of an improper.
    pub impropers: bool,
}

impl FromValue for Exclusions {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        let mut e = Self::default();
        for v in errors.absorb(value.elements())? {
            match v.text() {
                "Bonds" => e.bonds = true,
                "Angles" => e.angles = true,
                "Dihedrals" => e.dihedrals = true,
                "Impropers" => e.impropers = true,
                other => {
                    errors.push(v.error(format!("expected Bonds, Angles, Dihedrals or Impropers, found `{other}`")))
                }
            }
        }
        Some(e)
    }
    fn describe() -> String {
        "a list of Bonds, Angles, Dihedrals, Impropers".into()
    }
}

/// Weights of the pair forces between two particles: 0 for none, 1 for the whole force.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weight {
    /// Weight of potentials that do not depend on charges.
    pub pair: f64,
    /// Weight of potentials that depend on charges.
    pub coulomb: f64,
}

impl Default for Weight {
    fn default() -> Self {
        Self { pair: 1.0, coulomb: 1.0 }
    }
}

impl Weight {
    const RANGE: Range = Range { at_least: 0.0, at_most: 1.0, ..Range::ANY };

    /// Returns whether a part of the force remains.
    pub fn scales(self) -> bool {
        self != Self::default() && self != Self { pair: 0.0, coulomb: 0.0 }
    }

    /// Returns the weight of a potential.
    pub fn of(self, reads_charges: bool) -> f64 {
        if reads_charges { self.coulomb } else { self.pair }
    }
}

impl FromValue for Weight {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        if value.text().starts_with('(') {
            let mut fields = Fields::new(value, errors)?;
            let (pair, coulomb) = (fields.required("pair", Self::RANGE), fields.required("coulomb", Self::RANGE));
            fields.finish();
            return Some(Self { pair: pair?, coulomb: coulomb? });
        }
        let Ok(both) = value.parse::<f64>() else {
            errors.push(value.error(format!("expected {}, found `{}`", Self::describe(), value.text())));
            return None;
        };
        if !Self::RANGE.contains(both) {
            errors.push(value.error(format!("{both} is not allowed here: it must be {}", Self::RANGE)));
            return None;
        }
        Some(Self { pair: both, coulomb: both })
    }
    fn describe() -> String {
        "a number from 0 to 1 or `(pair: 0.5, coulomb: 0.8333)`".into()
    }
}

/// Special pairs: the weights of the pair forces between particles that are one, two or three bonds apart.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Special {
    weights: [Weight; Self::KEYS.len()],
}

impl Special {
    /// Names of the pairs.
    pub const KEYS: [&str; 3] = ["1-2", "1-3", "1-4"];

    /// Returns the weights by number of bonds, from one on.
    pub fn weights(&self) -> [Weight; 3] {
        self.weights
    }

    /// Returns the largest number of bonds between special pairs; 0 if none are special.
    pub fn reach(&self) -> usize {
        self.weights.iter().rposition(|w| *w != Weight::default()).map_or(0, |k| k + 1)
    }

    /// Returns whether a part of the force of special pairs remains.
    pub fn scales(&self) -> bool {
        self.weights.iter().any(|w| w.scales())
    }
}

impl FromValue for Special {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        let mut given = [false; Self::KEYS.len()];
        let mut special = Self::default();
        let mut complete = true;
        for (key, value) in errors.absorb(value.map())? {
            let name = key.parse::<String>().unwrap_or_default();
            let weight = Weight::from_value(value, errors);
            match (Self::KEYS.iter().position(|k| *k == name), weight) {
                (Some(k), _) if given[k] => {
                    errors.push(key.error(format!("{} is given twice", key.text())));
                    complete = false;
                }
                (Some(k), weight) => {
                    given[k] = true;
                    complete &= weight.is_some();
                    special.weights[k] = weight.unwrap_or_default();
                }
                (None, _) => {
                    errors.push(key.error(format!("expected \"1-2\", \"1-3\" or \"1-4\", found `{}`", key.text())));
                    complete = false;
                }
            }
        }
        complete.then_some(special)
    }
    fn describe() -> String {
        "weights of pairs by their distance in bonds: `{ \"1-2\": 0.0, \"1-3\": 0.0, \"1-4\": 0.5 }`".into()
    }
}

/// Restriction of the neighbor list by molecules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Only {
    /// Two particles of one molecule.
    SameMolecule,
    /// Particles of different molecules.
    OtherMolecules,
}

impl FromValue for Only {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        match value.text() {
            "SameMolecule" => Some(Self::SameMolecule),
            "OtherMolecules" => Some(Self::OtherMolecules),
            other => {
                errors.push(value.error(format!("expected {}, found `{other}`", Self::describe())));
                None
            }
        }
    }
    fn describe() -> String {
        "`SameMolecule` or `OtherMolecules`".into()
    }
}

/// The kind of neighbor list on a GPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ListChoice {
    /// Staged for large systems, where possible.
    #[default]
    Auto,
    /// A row of indices for each particle.
    Plain,
    /// Rows of positions in blocks, where possible.
    Staged,
}

impl FromValue for ListChoice {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        match value.text() {
            "Auto" => Some(Self::Auto),
            "Plain" => Some(Self::Plain),
            "Staged" => Some(Self::Staged),
            other => {
                errors.push(value.error(format!("expected {}, found `{other}`", Self::describe())));
                None
            }
        }
    }
    fn describe() -> String {
        "`Auto`, `Plain` or `Staged`".into()
    }
}

/// `neighbors: (…)`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Neighbors {
    /// Buffer added to the cutoff; the engine chooses one if absent.
    pub buffer: Option<f64>,
    /// Excluded pairs.
    pub exclude: Exclusions,
    /// Position of `exclude`.
    pub exclude_at: Option<Position>,
    /// Special pairs.
    pub special: Special,
    /// Position of `special`.
    pub special_at: Option<Position>,
    /// Restricts the list to pairs inside of molecules or between them; all pairs if absent.
    pub only: Option<Only>,
    /// Position of `only`.
    pub only_at: Option<Position>,
    /// The kind of list on a GPU.
    pub list: ListChoice,
}

impl Neighbors {
    /// Returns whether bonded particles have no pair forces that do not depend on charges.
    pub fn leaves_out_bonds(&self) -> bool {
        self.exclude.bonds || self.special.weights[0].pair == 0.0
    }
}

impl FromValue for Neighbors {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        let mut fields = Fields::new(value, errors)?;
        let buffer = fields.required("buffer", Range { above: 0.0, ..Range::ANY });
        let exclude_at = fields.raw("exclude").map(Value::at);
        let exclude = fields.or("exclude", Range::ANY, Exclusions::default);
        let special_at = fields.raw("special").map(Value::at);
        let special = fields.or("special", Range::ANY, Special::default);
        let only_at = fields.raw("only").map(Value::at);
        let only = fields.required::<Option<Only>>("only", Range::ANY);
        let list = fields.or("list", Range::ANY, ListChoice::default);
        fields.finish();
        Some(Self {
            buffer: buffer?,
            exclude: exclude?,
            exclude_at,
            special: special?,
            special_at,
            only: only?,
            only_at,
            list: list?,
        })
    }
    fn describe() -> String {
        "(buffer: 0.3, exclude: [Bonds])".into()
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
