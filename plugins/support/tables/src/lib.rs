//! Numerical potentials as tables: rows of r (or an angle) and U.
//!
//! [`read`](fn@read) takes rows out of a file, whatever its format, and [`write`](mod@write) makes files; [`Curve`] is what the
//! rows mean, a cubic spline with its continuation beyond the ends; [`Grid`] is the same function on an even grid, four
//! coefficients to a cell, as loops over particles read it. Used by the components and by the command `galamost table`.

mod curve;
mod grid;
pub mod read;
mod spline;
pub mod write;

pub use curve::Curve;
pub use grid::Grid;
pub use read::read;
pub use spline::Spline;
pub use write::{Format, write};

/// What a table is a function of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The distance of two particles.
    Pair,
    /// The length of a bond.
    Bond,
    /// The angle θ at the middle particle, 0 … 180°.
    Angle,
    /// The dihedral angle φ, −180° … 180°, 0 for cis.
    Dihedral,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Pair, Self::Bond, Self::Angle, Self::Dihedral];

    /// In messages: `pair`, `bond`, `angle`, `dihedral`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pair => "pair",
            Self::Bond => "bond",
            Self::Angle => "angle",
            Self::Dihedral => "dihedral",
        }
    }

    /// The variable is an angle.
    pub fn is_angle(self) -> bool {
        matches!(self, Self::Angle | Self::Dihedral)
    }
}

/// The unit of angles in a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Degrees; forces are energies per degree.
    Degrees,
    /// Radians; forces are energies per radian.
    Radians,
}

impl Unit {
    /// Radians in one of them.
    pub fn radians(self) -> f64 {
        match self {
            Self::Degrees => std::f64::consts::PI / 180.0,
            Self::Radians => 1.0,
        }
    }
}

/// Rows as they are written: in the file's own unit of angles.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rows {
    /// r, θ or φ.
    pub x: Vec<f64>,
    /// U.
    pub u: Vec<f64>,
    /// −dU/dx, if the file has it.
    pub f: Option<Vec<f64>>,
    /// The line of each row, from 1; empty if they are not of a file.
    pub lines: Vec<u32>,
    /// The unit that the file itself names.
    pub unit: Option<Unit>,
    /// The kind that the file itself names.
    pub kind: Option<Kind>,
}

/// What is wrong with a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The line, from 1, if it has one.
    pub line: Option<u32>,
    /// What is wrong and what would be right.
    pub message: String,
}

impl Mistake {
    /// A mistake of the table as a whole.
    pub fn new(message: impl Into<String>) -> Self {
        Self { line: None, message: message.into() }
    }
    /// A mistake in a line.
    pub fn at(line: u32, message: impl Into<String>) -> Self {
        Self { line: Some(line), message: message.into() }
    }
}

impl std::fmt::Display for Mistake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

/// Fewest rows of a table.
pub const FEWEST: usize = 4;
