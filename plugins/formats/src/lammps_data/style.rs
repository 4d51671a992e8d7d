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
    Ellipsoid,
    Dipole,
}

/// A value, or the three values of a vector, in a row of `Atoms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    Id,
    Type,
    Molecule,
    Charge,
    Diameter,
    Density,
    /// 1 for an ellipsoid, 0 for a point.
    Ellipsoid,
    Position,
    Dipole,
}

impl Field {
    /// Returns the number of values.
    pub fn width(self) -> usize {
        if matches!(self, Self::Position | Self::Dipole) { 3 } else { 1 }
    }
}

/// Name in pipelines, LAMMPS's name, and fields. Those that the analyzer writes are the first seven.
const STYLES: [(&str, &str, Style, &[Field]); 9] = {
    use Field::{Charge, Density, Diameter, Dipole, Ellipsoid, Id, Molecule, Position, Type};
    [
        ("Atomic", "atomic", Style::Atomic, &[Id, Type, Position]),
        ("Bond", "bond", Style::Bond, &[Id, Molecule, Type, Position]),
        ("Angle", "angle", Style::Angle, &[Id, Molecule, Type, Position]),
        ("Molecular", "molecular", Style::Molecular, &[Id, Molecule, Type, Position]),
        ("Full", "full", Style::Full, &[Id, Molecule, Type, Charge, Position]),
        ("Charge", "charge", Style::Charge, &[Id, Type, Charge, Position]),
        ("Sphere", "sphere", Style::Sphere, &[Id, Type, Diameter, Density, Position]),
        ("Ellipsoid", "ellipsoid", Style::Ellipsoid, &[Id, Type, Ellipsoid, Density, Position]),
        ("Dipole", "dipole", Style::Dipole, &[Id, Type, Charge, Position, Dipole]),
    ]
};
const WRITTEN: usize = 7;

/// LAMMPS's other styles; a comment that is none of these is no style.
const UNSUPPORTED: [&str; 22] = [
    "amoeba",
    "body",
    "bpm/sphere",
    "dielectric",
    "dpd",
    "edpd",
    "electron",
    "line",
    "mdpd",
    "oxdna",
    "peri",
    "rheo",
    "rheo/thermal",
    "smd",
    "sph",
    "spin",
    "tdpd",
    "template",
    "tri",
    "wavepacket",
    "apip",
    "granular",
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
    /// Returns whether LAMMPS has a style of this name that is not supported.
    pub fn is_unsupported(word: &str) -> bool {
        UNSUPPORTED.contains(&word)
    }
    /// Lists all LAMMPS names.
    pub fn words() -> String {
        STYLES.map(|s| s.1).join(", ")
    }
    /// Iterates over all styles.
    pub fn all() -> impl Iterator<Item = Self> {
        STYLES.into_iter().map(|s| s.2)
    }
    fn fields(self) -> &'static [Field] {
        STYLES.iter().find(|s| s.2 == self).map_or(&[], |s| s.3)
    }
    /// Returns whether a row has this field.
    pub fn has(self, field: Field) -> bool {
        self.fields().contains(&field)
    }
    /// Returns the number of particles in the largest links of the style, or 1 without links.
    pub fn links(self) -> usize {
        match self {
            Self::Bond => 2,
            Self::Angle => 3,
            Self::Molecular | Self::Full => 4,
            Self::Atomic | Self::Charge | Self::Sphere | Self::Ellipsoid | Self::Dipole => 1,
        }
    }
}

impl FromValue for Style {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        let found = STYLES[..WRITTEN].iter().find(|s| s.0 == value.text()).map(|s| s.2);
        if found.is_none() {
            errors.push(value.error(format!("expected {}, found `{}`", Self::describe(), value.text())));
        }
        found
    }
    fn describe() -> String {
        STYLES[..WRITTEN].iter().map(|s| s.0).collect::<Vec<_>>().join(" | ")
    }
}

/// The style of a file: one, or the list of sub-styles of `hybrid`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Styles(pub Vec<Style>);

/// A style that can be read.
struct Readable(Style);

impl FromValue for Readable {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        let found = STYLES.iter().find(|s| s.0 == value.text()).map(|s| Self(s.2));
        if found.is_none() {
            errors.push(value.error(format!("expected {}, found `{}`", Self::describe(), value.text())));
        }
        found
    }
    fn describe() -> String {
        STYLES.map(|s| s.0).join(" | ")
    }
}

impl FromValue for Styles {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        if value.text().starts_with('[') {
            let all: Vec<Readable> = FromValue::from_value(value, errors)?;
            return Some(Self(all.into_iter().map(|s| s.0).collect()));
        }
        Readable::from_value(value, errors).map(|s| Self(vec![s.0]))
    }
    fn describe() -> String {
        format!("{}, or a list of these for `hybrid`", Readable::describe())
    }
}

/// Columns of the section `Atoms`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Name for messages.
    pub name: String,
    /// Fields with their first columns.
    fields: Vec<(Field, usize)>,
    /// Number of values in a row, without images.
    pub width: usize,
}

impl Layout {
    /// Returns the columns of a style, or of the style `hybrid` with several sub-styles: after the position, the fields of
    /// each sub-style that no earlier one has.
    pub fn of(styles: &[Style]) -> Self {
        let mut all: Vec<Field> = vec![];
        if let [style] = styles {
            all.extend(style.fields());
        } else {
            all.extend([Field::Id, Field::Type, Field::Position]);
            for field in styles.iter().flat_map(|s| s.fields()) {
                if !all.contains(field) {
                    all.push(*field);
                }
            }
        }
        let mut layout = Self { name: String::new(), fields: vec![], width: 0 };
        for field in all {
            layout.fields.push((field, layout.width));
            layout.width += field.width();
        }
        let words: Vec<&str> = styles.iter().map(|s| s.word()).collect();
        layout.name = if words.len() == 1 { words[0].into() } else { format!("hybrid {}", words.join(" ")) };
        layout
    }

    /// Returns whether the rows of both layouts have the same columns.
    pub fn has_columns_of(&self, other: &Self) -> bool {
        self.fields == other.fields
    }

    /// Returns the first column of a field.
    pub fn column(&self, field: Field) -> Option<usize> {
        self.fields.iter().find(|(f, _)| *f == field).map(|(_, at)| *at)
    }

    /// Returns whether a row has this field.
    pub fn has(&self, field: Field) -> bool {
        self.column(field).is_some()
    }

    /// Returns whether a row can be one of this layout. `is_type` says whether a word is a particle type.
    pub fn fits(&self, words: &[&str], is_type: impl Fn(&str) -> bool) -> bool {
        if words.len() != self.width && words.len() != self.width + 3 {
            return false;
        }
        let value = |field: Field, word: &str| match field {
            Field::Id => word.parse::<u64>().is_ok(),
            Field::Type => is_type(word),
            Field::Molecule => word.parse::<i32>().is_ok(),
            Field::Ellipsoid => word == "0" || word == "1",
            _ => word.parse::<f64>().is_ok_and(f64::is_finite),
        };
        let one = |(field, at): &(Field, usize)| words[*at..at + field.width()].iter().all(|w| value(*field, w));
        self.fields.iter().all(one) && words[self.width..].iter().all(|w| w.parse::<i32>().is_ok())
    }
}
