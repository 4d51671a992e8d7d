//! Atom styles: what stands in a row of the section `Atoms`.

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
    /// As LAMMPS writes it.
    pub fn word(self) -> &'static str {
        STYLES.iter().find(|s| s.2 == self).map_or("", |s| s.1)
    }
    /// The style of a word of LAMMPS.
    pub fn of(word: &str) -> Option<Self> {
        STYLES.iter().find(|s| s.1 == word).map(|s| s.2)
    }
    /// All words.
    pub fn words() -> String {
        STYLES.map(|s| s.1).join(", ")
    }
    /// A row has the number of the molecule.
    pub fn molecule(self) -> bool {
        matches!(self, Self::Bond | Self::Angle | Self::Molecular | Self::Full)
    }
    /// A row has a charge.
    pub fn charge(self) -> bool {
        matches!(self, Self::Full | Self::Charge)
    }
    /// Members of the largest links that the style has: 1 for none.
    pub fn links(self) -> usize {
        match self {
            Self::Bond => 2,
            Self::Angle => 3,
            Self::Molecular | Self::Full => 4,
            Self::Atomic | Self::Charge | Self::Sphere => 1,
        }
    }
    /// Values before the place.
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
