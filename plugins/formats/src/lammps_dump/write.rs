//! Formats a frame of a dump.

use galamost_plugin_api::error::nearest;
use galamost_plugin_api::prelude::{Snapshot, Values};
use galamost_text::real;
use std::io::Write as _;

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

fn name_of(column: Column) -> &'static str {
    COLUMNS.iter().find(|(_, c)| *c == column).map_or("", |(n, _)| n)
}

/// Formats a frame.
pub fn frame(s: &Snapshot, columns: &[Column], digits: Option<u32>) -> Vec<u8> {
    let mut out = vec![];
    let line = |out: &mut Vec<u8>, text: &str| {
        out.extend_from_slice(text.as_bytes());
        out.push(b'\n');
    };
    line(&mut out, &format!("ITEM: TIMESTEP\n{}\nITEM: NUMBER OF ATOMS\n{}", s.step, s.len()));
    line(&mut out, "ITEM: BOX BOUNDS pp pp pp");
    // LAMMPS needs a finite height in two dimensions
    let length: [f64; 3] = std::array::from_fn(|k| if s.box_length[k] > 0.0 { s.box_length[k] } else { 1.0 });
    for l in length {
        line(&mut out, &format!("{:?} {:?}", -0.5 * l, 0.5 * l));
    }
    let names: Vec<&str> = columns.iter().map(|c| name_of(*c)).collect();
    line(&mut out, &format!("ITEM: ATOMS {}", names.join(" ")));
    let reals = |name: &str| match s.arrays.get(name).map(|a| &a.values) {
        Some(Values::Real(v)) => v.as_slice(),
        _ => &[],
    };
    let (charge, diameter) = (reals("charge"), reals("diameter"));
    let (force, torque, energy, virial) = (reals("force"), reals("torque"), reals("energy"), reals("virial"));
    let molecule = match s.arrays.get("molecule").map(|a| &a.values) {
        Some(Values::Int(v)) => v.as_slice(),
        _ => &[],
    };
    let or_0 = |values: &[f64], tag: usize| values.get(tag).copied().unwrap_or(0.0);
    for tag in 0..s.len() {
        for (n, column) in columns.iter().enumerate() {
            if n > 0 {
                out.push(b' ');
            }
            let x = |k: usize| s.position[tag][k];
            let unwrapped = |k: usize| x(k) + length[k] * f64::from(s.image[tag][k]);
            let scaled = |x: f64, k: usize| x / length[k] + 0.5;
            let mut number = |value: f64| real(&mut out, value, digits);
            match *column {
                Position(k) => number(x(k)),
                Unwrapped(k) => number(unwrapped(k)),
                Scaled(k) => number(scaled(x(k), k)),
                ScaledUnwrapped(k) => number(scaled(unwrapped(k), k)),
                Velocity(k) => number(s.velocity[tag][k]),
                Mass => number(s.mass[tag]),
                Charge => number(or_0(charge, tag)),
                Diameter => number(or_0(diameter, tag)),
                Radius => number(0.5 * or_0(diameter, tag)),
                Force(k) => number(or_0(force, 3 * tag + k)),
                Torque(k) => number(or_0(torque, 3 * tag + k)),
                Energy => number(or_0(energy, tag)),
                Virial(k) => number(or_0(virial, 6 * tag + k)),
                Element => out.extend_from_slice(s.types.get(s.type_id[tag] as usize).map_or(b"", |t| t.as_bytes())),
                // writing to memory does not fail
                Id => drop(write!(out, "{}", tag + 1)),
                Type => drop(write!(out, "{}", s.type_id[tag] + 1)),
                Molecule => drop(write!(out, "{}", molecule.get(tag).map_or(0, |m| i64::from(*m) + 1))),
                Image(k) => drop(write!(out, "{}", s.image[tag][k])),
            }
        }
        out.push(b'\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lammps_dump::read::{Choice, read, skip};
    use galamost_plugin_api::prelude::Array;
    use galamost_text::Trajectory;

    #[test]
    fn what_is_written_is_read() {
        let mut s = Snapshot { step: 7, dimensions: 3, box_length: [10.0, 8.1, 6.0], ..Snapshot::default() };
        s.types = vec!["A".into(), "B2".into()];
        for k in 0..3 {
            s.push(k % 2, [f64::from(k) / 3.0 - 1.0, -4.05, 2.999_999_999_999]);
            s.velocity[k as usize] = [0.1, -1e-9, 1e9];
            s.image[k as usize] = [0, -7, k as i32];
        }
        s.mass[1] = 2.5;
        let real = |values| Array { width: 1, values: Values::Real(values) };
        s.arrays.insert("charge".into(), real(vec![0.5, -0.5, 0.0]));
        s.arrays.insert("diameter".into(), real(vec![0.7, 1.0, 1.1]));
        s.arrays.insert("molecule".into(), Array { width: 1, values: Values::Int(vec![0, -1, 1]) });
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("f.dump");
        let back = |columns: &str, digits| {
            let columns: Vec<Column> = columns.split(' ').map(|c| column(c).expect("a column")).collect();
            let text = [frame(&s, &columns, digits), frame(&s, &columns, digits)].concat();
            std::fs::write(&path, text).expect("written");
            let mut t = Trajectory::open(&path, skip).expect("opened");
            assert_eq!(t.count(), Ok(2));
            read(t.frame(1).expect("a frame"), &Choice::default()).expect("read")
        };
        let common = "id mol type element q mass vx vy vz";
        assert_eq!(back(&format!("{common} x y z ix iy iz diameter"), None), s);
        assert_eq!(back(&format!("{common} x y z ix iy iz radius"), None), s);
        for columns in ["xu yu zu diameter", "xs ys zs ix iy iz diameter", "xsu ysu zsu diameter"] {
            let b = back(&format!("{common} {columns}"), None);
            assert_eq!((&b.types, &b.image[0], &b.mass), (&s.types, &s.image[0], &s.mass), "{columns}");
            let far = |a: &[f64; 3], b: &[f64; 3]| (0..3).any(|k| (a[k] - b[k]).abs() > 1e-13);
            assert!(!b.position.iter().zip(&s.position).any(|(a, b)| far(a, b)), "{columns}: {:?}", b.position);
        }
        assert_eq!(back("id type x y z", Some(3)).position[0][0], -1.0);
        assert!(column("velocity").is_err_and(|e| e.contains("unknown column `velocity`")));
    }
}
