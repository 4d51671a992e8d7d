//! Atom styles: columns of the section `Atoms`.

use galamost_plugin_api::error::Errors;
use galamost_plugin_api::params::{FromValue, Value};

/// An atom style.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    Atomic,
    Bond,
    Angle,
    Molecular,
    Full,
    Charge,
    Sphere,
}

const STYLES: [(&str, &str, Style); 7] = [
    ("Atomic", "atomic", Style::Atomic),
    ("Bond", "bond", Style::Bond),
    ("Angle", "angle", Style::Angle),
    ("Molecular", "molecular", Style::Molecular),
    ("Full", "full", Style::Full),
    ("Charge", "charge", Style::Charge),
    ("Sphere", "sphere", Style::Sphere),
];

impl Style {
    /// Returns LAMMPS's name.
    pub fn word(self) -> &'static str {
        STYLES.iter().find(|s| s.2 == self).map_or("", |s| s.1)
    }
    /// Returns the style of a LAMMPS name.
    pub fn of(word: &str) -> Option<Self> {
        STYLES.iter().find(|s| s.1 == word).map(|s| s.2)
    }
    /// Lists all LAMMPS names.
    pub fn words() -> String {
        STYLES.map(|s| s.1).join(", ")
    }
    /// Returns whether a row has a molecule number.
    pub fn molecule(self) -> bool {
        matches!(self, Self::Bond | Self::Angle | Self::Molecular | Self::Full)
    }
    /// Returns whether a row has a charge.
    pub fn charge(self) -> bool {
        matches!(self, Self::Full | Self::Charge)
    }
    /// Returns the number of particles in the largest links of the style, or 1 without links.
    pub fn links(self) -> usize {
        match self {
            Self::Bond => 2,
            Self::Angle => 3,
            Self::Molecular | Self::Full => 4,
            Self::Atomic | Self::Charge | Self::Sphere => 1,
        }
    }
    /// Returns the number of values before the position.
    pub fn columns(self) -> usize {
        2 + usize::from(self.molecule()) + usize::from(self.charge()) + if self == Self::Sphere { 2 } else { 0 }
    }
}

impl FromValue for Style {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        let found = STYLES.iter().find(|s| s.0 == value.text()).map(|s| s.2);
        if found.is_none() {
            errors.push(value.error(format!("expected {}, found `{}`", Self::describe(), value.text())));
        }
        found
    }
    fn describe() -> String {
        STYLES.map(|s| s.0).join(" | ")
    }
}
