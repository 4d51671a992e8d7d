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
    /// Restricts the list to pairs inside of molecules or between them; all pairs if absent.
    pub only: Option<Only>,
    /// Position of `only`.
    pub only_at: Option<Position>,
    /// The kind of list on a GPU.
    pub list: ListChoice,
}

impl FromValue for Neighbors {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        let mut fields = Fields::new(value, errors)?;
        let buffer = fields.required("buffer", Range { above: 0.0, ..Range::ANY });
        let exclude = fields.or("exclude", Range::ANY, Exclusions::default);
        let only_at = fields.raw("only").map(Value::at);
        let only = fields.required::<Option<Only>>("only", Range::ANY);
        let list = fields.or("list", Range::ANY, ListChoice::default);
        fields.finish();
        Some(Self { buffer: buffer?, exclude: exclude?, only: only?, only_at, list: list? })
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
