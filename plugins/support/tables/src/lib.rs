//! Numerical potentials as tables: rows of r (or an angle) and U.
//!
//! * [`read`](fn@read) reads rows from a file in any of the known formats; [`write`](mod@write) writes files.
//! * [`Curve`] is the function defined by the rows: a cubic spline, extrapolated beyond its ends.
//! * [`contradiction`] finds forces that contradict the energies.
//! * [`CoefficientGrid`] is the same function on a uniform grid with four coefficients per cell, as loops over particles read
//!   it.
//!
//! Table potentials and the command `galamost table` use this crate.

mod curve;
mod grid;
pub mod read;
mod slopes;
mod spline;
pub mod write;

pub use curve::Curve;
pub use grid::CoefficientGrid;
pub use read::read;
pub use slopes::contradiction;
pub use spline::Spline;
pub use write::{Format, write, written_rows};

/// The kind of interaction that a table describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A function of the distance of two particles.
    Pair,
    /// A function of the length of a bond.
    Bond,
    /// A function of the angle θ at the middle particle, 0 … 180°.
    Angle,
    /// A function of the dihedral angle φ, −180° … 180°, 0 for cis.
    Dihedral,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Pair, Self::Bond, Self::Angle, Self::Dihedral];

    /// Returns the name in messages: `pair`, `bond`, `angle`, `dihedral`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pair => "pair",
            Self::Bond => "bond",
            Self::Angle => "angle",
            Self::Dihedral => "dihedral",
        }
    }

    /// Returns whether the variable is an angle.
    pub fn is_angle(self) -> bool {
        matches!(self, Self::Angle | Self::Dihedral)
    }
}

/// The unit of angles in a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Degrees; forces are in energy per degree.
    Degrees,
    /// Radians; forces are in energy per radian.
    Radians,
}

impl Unit {
    /// Returns one of these units in radians.
    pub fn radians(self) -> f64 {
        match self {
            Self::Degrees => std::f64::consts::PI / 180.0,
            Self::Radians => 1.0,
        }
    }
}

/// The rows of a table, in the file's unit of angles.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rows {
    /// r, θ or φ.
    pub x: Vec<f64>,
    /// U.
    pub u: Vec<f64>,
    /// −dU/dx, if the file has it.
    pub f: Option<Vec<f64>>,
    /// Line of each row, from 1; empty if the rows are not from a file.
    pub lines: Vec<u32>,
    /// Unit of angles stated in the file.
    pub unit: Option<Unit>,
    /// Whether the header of the file names the variable r.
    pub is_distance: bool,
    /// Kind of interaction stated in the file.
    pub kind: Option<Kind>,
}

impl Rows {
    /// Returns an error if the file states that its variable is not that of this kind of interaction.
    ///
    /// # Errors
    /// See above.
    pub fn check_variable(&self, kind: Kind) -> Result<(), Mistake> {
        let [found, expected] = match kind.is_angle() {
            true if self.is_distance => ["r", "an angle"],
            false if self.unit.is_some() => ["an angle", "r"],
            _ => return Ok(()),
        };
        let message = format!("the variable of this table is {found}; a table of {}s needs {expected}", kind.name());
        Err(Mistake { line: self.lines.first().copied(), message })
    }
}

/// An error in a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// Line, from 1, if the error is in a line.
    pub line: Option<u32>,
    /// What is wrong and how to correct it.
    pub message: String,
}

impl Mistake {
    /// Makes an error of the table as a whole.
    pub fn new(message: impl Into<String>) -> Self {
        Self { line: None, message: message.into() }
    }
    /// Makes an error in a line.
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

/// Smallest number of rows of a table.
pub const FEWEST: usize = 4;
