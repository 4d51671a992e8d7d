//! Columns of particles that the user chooses, for dumps and tables.

use crate::forces::Quantities;
use crate::molecules::molecules;
use galamost_plugin_api::error::nearest;
use galamost_plugin_api::prelude::*;
use galamost_text::Shape;

/// A column; vector components are numbered by axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Column {
    Id,
    Molecule,
    Type,
    Element,
    Position(usize),
    Unwrapped(usize),
    Scaled(usize),
    ScaledUnwrapped(usize),
    Image(usize),
    Velocity(usize),
    Mass,
    Charge,
    Diameter,
    Radius,
    Force(usize),
    Torque(usize),
    Energy,
    Virial(usize),
}

use Column::*;

const COLUMNS: [(&str, Column); 39] = [
    ("id", Id),
    ("mol", Molecule),
    ("type", Type),
    ("element", Element),
    ("x", Position(0)),
    ("y", Position(1)),
    ("z", Position(2)),
    ("xu", Unwrapped(0)),
    ("yu", Unwrapped(1)),
    ("zu", Unwrapped(2)),
    ("xs", Scaled(0)),
    ("ys", Scaled(1)),
    ("zs", Scaled(2)),
    ("xsu", ScaledUnwrapped(0)),
    ("ysu", ScaledUnwrapped(1)),
    ("zsu", ScaledUnwrapped(2)),
    ("ix", Image(0)),
    ("iy", Image(1)),
    ("iz", Image(2)),
    ("vx", Velocity(0)),
    ("vy", Velocity(1)),
    ("vz", Velocity(2)),
    ("mass", Mass),
    ("q", Charge),
    ("diameter", Diameter),
    ("radius", Radius),
    ("fx", Force(0)),
    ("fy", Force(1)),
    ("fz", Force(2)),
    ("tqx", Torque(0)),
    ("tqy", Torque(1)),
    ("tqz", Torque(2)),
    ("energy", Energy),
    ("vxx", Virial(0)),
    ("vxy", Virial(1)),
    ("vxz", Virial(2)),
    ("vyy", Virial(3)),
    ("vyz", Virial(4)),
    ("vzz", Virial(5)),
];

/// Returns the column of a name.
pub fn column(name: &str) -> Result<Column, String> {
    let found = COLUMNS.iter().find(|(n, _)| *n == name);
    found.map(|(_, c)| *c).ok_or_else(|| {
        let names = COLUMNS.map(|(n, _)| n);
        match nearest(name, names) {
            Some(n) => format!("unknown column `{name}`; did you mean `{n}`?"),
            None => format!("unknown column `{name}`; the columns are {}", names.join(", ")),
        }
    })
}

/// Returns the array that a column needs.
pub fn array_of(column: Column) -> Option<&'static str> {
    match column {
        Molecule => Some("molecule"),
        Charge => Some("charge"),
        Diameter | Radius => Some("diameter"),
        _ => None,
    }
}

/// Returns the name of a column.
pub fn name_of(column: Column) -> &'static str {
    COLUMNS.iter().find(|(_, c)| *c == column).map_or("", |(n, _)| n)
}

/// Returns the columns with these names, and requests the bonds that define molecules and what forces determine.
///
/// # Errors
/// Returns an error for each column that does not exist or is listed twice.
pub fn choose(names: &Spanned<Vec<String>>, system: &SystemInfo, needs: &mut Needs) -> Result<Vec<Column>> {
    let mut errors = Errors::default();
    let mut chosen = vec![];
    for name in &names.value {
        let Some(c) = errors.absorb(column(name).map_err(|m| InputError::at(names.at, m))) else { continue };
        match array_of(c).filter(|a| !system.has_array(a)) {
            Some(_) if c == Molecule && !system.bond_types.is_empty() => needs.wants.topology = true,
            Some(_) if c == Molecule => {
                let message =
                    "column `mol`: the initial state has neither an array `molecule` nor bonds; add one of them";
                errors.push(InputError::at(names.at, message));
            }
            Some(array) => errors.push(InputError::at(names.at, format!("column `{name}`: particles have no {array}"))),
            None => {}
        }
        if chosen.contains(&c) {
            errors.push(InputError::at(names.at, format!("column `{name}` is listed twice; list it once")));
        }
        chosen.push(c);
    }
    if names.value.is_empty() {
        errors.push(InputError::at(names.at, "`columns` is empty; list at least one column"));
    }
    let has = |of: fn(&Column) -> bool| chosen.iter().any(of);
    let quantities = Quantities {
        force: has(|c| matches!(c, Force(_))),
        energy: has(|c| matches!(c, Energy)),
        torque: has(|c| matches!(c, Torque(_))),
        virial: has(|c| matches!(c, Virial(_))),
    };
    errors.absorb(quantities.request(system, needs));
    errors.into_result(Some(chosen))
}

/// What a column holds of a particle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Entry<'a> {
    Number(f64),
    Whole(i64),
    Text(&'a str),
}

/// The columns of a state.
pub struct Cells<'a> {
    s: &'a Snapshot,
    /// The box; 1 for the height in two dimensions, which LAMMPS needs to be finite.
    pub shape: Shape,
    charge: &'a [f64],
    diameter: &'a [f64],
    force: &'a [f64],
    torque: &'a [f64],
    energy: &'a [f64],
    virial: &'a [f64],
    /// Molecule from 1; 0 for none. Empty without the column.
    molecule: Vec<i64>,
}

impl<'a> Cells<'a> {
    /// Finds the arrays of a state that these columns need.
    pub fn new(s: &'a Snapshot, columns: &[Column]) -> Self {
        let reals = |name: &str| match s.arrays.get(name).map(|a| &a.values) {
            Some(Values::Real(v)) => v.as_slice(),
            _ => &[],
        };
        Self {
            s,
            shape: Shape::of(s).finite(),
            charge: reals("charge"),
            diameter: reals("diameter"),
            force: reals("force"),
            torque: reals("torque"),
            energy: reals("energy"),
            virial: reals("virial"),
            molecule: if columns.contains(&Molecule) { molecules(s) } else { vec![] },
        }
    }

    /// Returns the entry of a particle.
    pub fn of(&self, column: Column, tag: usize) -> Entry<'a> {
        let s = self.s;
        let or_0 = |values: &[f64], k: usize| Entry::Number(values.get(k).copied().unwrap_or(0.0));
        let x = s.position[tag];
        let unwrapped = || self.shape.unwrapped(x, s.image[tag]);
        let scaled = |x: [f64; 3], k: usize| Entry::Number(self.shape.fractions(x)[k]);
        match column {
            Position(k) => Entry::Number(x[k]),
            Unwrapped(k) => Entry::Number(unwrapped()[k]),
            Scaled(k) => scaled(x, k),
            ScaledUnwrapped(k) => scaled(unwrapped(), k),
            Velocity(k) => Entry::Number(s.velocity[tag][k]),
            Mass => Entry::Number(s.mass[tag]),
            Charge => or_0(self.charge, tag),
            Diameter => or_0(self.diameter, tag),
            Radius => Entry::Number(0.5 * self.diameter.get(tag).copied().unwrap_or(0.0)),
            Force(k) => or_0(self.force, 3 * tag + k),
            Torque(k) => or_0(self.torque, 3 * tag + k),
            Energy => or_0(self.energy, tag),
            Virial(k) => or_0(self.virial, 6 * tag + k),
            Element => Entry::Text(s.types.get(s.type_id[tag] as usize).map_or("", String::as_str)),
            Id => Entry::Whole(tag as i64 + 1),
            Type => Entry::Whole(i64::from(s.type_id[tag]) + 1),
            Molecule => Entry::Whole(self.molecule.get(tag).copied().unwrap_or(0)),
            Image(k) => Entry::Whole(i64::from(s.image[tag][k])),
        }
    }
}
