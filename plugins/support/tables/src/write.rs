//! Writing rows to files.

use crate::{Kind, Rows, Unit};
use std::fmt::Write as _;

/// A file format of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `<PairPotential>`, `<BondPotential>`, …: x and U, radians.
    Galamost,
    /// VOTCA's `.pot`: x, U and the flag i, radians.
    Votca,
    /// A LAMMPS section: index, x, U, F; degrees.
    Lammps,
    /// A header line, then x, U, F; degrees.
    Csv,
    /// `r: […], u: […]` for a pipeline; degrees.
    Ron,
}

impl Format {
    /// All formats.
    pub const ALL: [Self; 5] = [Self::Galamost, Self::Votca, Self::Lammps, Self::Csv, Self::Ron];

    /// Returns the name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Galamost => "galamost",
            Self::Votca => "votca",
            Self::Lammps => "lammps",
            Self::Csv => "csv",
            Self::Ron => "ron",
        }
    }

    /// Returns the format with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|f| f.name() == name)
    }

    /// Returns the format that a file's extension stands for.
    pub fn of_file(path: &std::path::Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "xml" | "dat" => Some(Self::Galamost),
            "pot" => Some(Self::Votca),
            "table" | "lammps" => Some(Self::Lammps),
            "csv" => Some(Self::Csv),
            "ron" => Some(Self::Ron),
            _ => None,
        }
    }

    /// Returns the unit of angles in this format.
    pub fn unit(self) -> Unit {
        match self {
            Self::Galamost | Self::Votca => Unit::Radians,
            Self::Lammps | Self::Csv | Self::Ron => Unit::Degrees,
        }
    }
}

/// Returns the number of rows in a file: LAMMPS does not repeat the first row after 360°.
pub fn written_rows(format: Format, kind: Kind, rows: &Rows) -> usize {
    let n = rows.x.len();
    let full_turn = std::f64::consts::TAU * (1.0 - 1e-9);
    let repeats = n > 0 && kind == Kind::Dihedral && rows.x[n - 1] - rows.x[0] > full_turn;
    n - usize::from(repeats && format == Format::Lammps)
}

/// Returns the text of a file. The rows have angles in radians, and forces. `name` is the keyword of a LAMMPS section.
pub fn write(format: Format, kind: Kind, name: &str, rows: &Rows) -> String {
    let k = if kind.is_angle() { format.unit().radians() } else { 1.0 };
    // rounded to 12 decimals, so that 120° is not written as 120.00000000000001
    let x = |x: f64| if k == 1.0 { x } else { (x / k * 1e12).round() / 1e12 };
    let none = vec![];
    let f = rows.f.as_ref().unwrap_or(&none);
    let row = |i: usize| (x(rows.x[i]), rows.u[i], f.get(i).copied().unwrap_or(0.0) * k);
    let n = written_rows(format, kind, rows);
    let mut t = String::new();
    match format {
        Format::Galamost => {
            let mut name = kind.name().to_string();
            name[..1].make_ascii_uppercase();
            let _ = writeln!(t, "<{name}Potential>");
            for i in 0..n {
                let (x, u, _) = row(i);
                let _ = writeln!(t, "{x:?} {u:?}");
            }
            let _ = writeln!(t, "</{name}Potential>");
        }
        Format::Votca => {
            for i in 0..n {
                let (x, u, _) = row(i);
                let _ = writeln!(t, "{x:?} {u:?} i");
            }
        }
        Format::Lammps => {
            let unit = if kind == Kind::Dihedral { " DEGREES" } else { "" };
            let _ = write!(t, "# {} table\n\n{name}\nN {n}{unit}\n\n", kind.name());
            for i in 0..n {
                let (x, u, f) = row(i);
                let _ = writeln!(t, "{} {x:?} {u:?} {f:?}", i + 1);
            }
        }
        Format::Csv => {
            let what = match kind {
                Kind::Angle => "theta_deg",
                Kind::Dihedral => "phi_deg",
                _ => "r",
            };
            let _ = writeln!(t, "{what},U,F");
            for i in 0..n {
                let (x, u, f) = row(i);
                let _ = writeln!(t, "{x:?},{u:?},{f:?}");
            }
        }
        Format::Ron => {
            let list =
                |values: &mut dyn Iterator<Item = f64>| values.map(|x| format!("{x:?}")).collect::<Vec<_>>().join(", ");
            let what = if kind.is_angle() { "angle" } else { "r" };
            let xs = list(&mut (0..n).map(|i| row(i).0));
            let us = list(&mut (0..n).map(|i| row(i).1));
            let _ = writeln!(t, "({what}: [{xs}], u: [{us}])");
        }
    }
    t
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::{Choice, read};

    #[test]
    fn written_files_are_read_back() {
        for kind in Kind::ALL {
            let steps = 36;
            let (first, last) = match kind {
                Kind::Angle => (0.0, std::f64::consts::PI),
                Kind::Dihedral => (-std::f64::consts::PI, std::f64::consts::PI),
                _ => (0.8, 2.5),
            };
            let x: Vec<f64> = (0..=steps).map(|k| first + (last - first) * f64::from(k) / f64::from(steps)).collect();
            let u = x.iter().map(|x| (3.0 * x).cos() / 3.0).collect();
            let f = Some(x.iter().map(|x| (3.0 * x).sin()).collect());
            let rows = Rows { x, u, f, ..Rows::default() };
            for format in [Format::Galamost, Format::Votca, Format::Lammps, Format::Csv] {
                let text = write(format, kind, "TEST", &rows);
                let back = read(&text, Choice::default()).unwrap_or_else(|e| panic!("{e}\n{text}"));
                let k = if kind.is_angle() { format.unit().radians() } else { 1.0 };
                assert!(back.x.len() + 1 >= rows.x.len());
                for i in 0..back.x.len() {
                    assert!((back.x[i] * k - rows.x[i]).abs() < 1e-12, "{format:?} {kind:?}");
                    assert_eq!(back.u[i], rows.u[i]);
                    if let Some(f) = &back.f {
                        assert!((f[i] / k - (3.0 * rows.x[i]).sin()).abs() < 1e-12, "{format:?} {kind:?}");
                    }
                }
                assert_eq!(back.f.is_some(), matches!(format, Format::Lammps | Format::Csv));
            }
        }
    }

    #[test]
    fn errors_name_the_line() {
        let cases: [(&str, &str, Option<u32>); 11] = [
            ("1.0 2.0\n1.1 x\n", "expected a number, found `x`", Some(2)),
            ("1.0\n", "there is no column 2", Some(1)),
            ("<PairPotential>\n1 2\n", "<PairPotential> is not closed", Some(1)),
            ("<PairPotential>\n1 2\n</BondPotential>\n", "expected </PairPotential>", Some(3)),
            (
                "<PairForcePoints>\n1 2 3 4\n</PairForcePoints>\n",
                "coefficients (ForcePoints) are not supported",
                Some(1),
            ),
            ("<Nothing>\n1 2\n</Nothing>\n", "<Nothing> is not a table", Some(1)),
            ("A\nN 2\n\n1 1.0 2.0 3.0\n", "N is 2, but 1 rows follow", Some(2)),
            ("A\nN 2 R 5 9\n\n1 1.0 2.0 3.0\n2 2.0 2.0 3.0\n", "the range is 5 … 9, but the rows are 1 … 2", Some(2)),
            ("A\nN 1\n\n1 1.0 2.0 3.0\nB\nN 1\n\n1 1.0 2.0 3.0\n", "2 sections, A, B; select one", None),
            ("A\nN 1 SPLINE\n\n1 1.0 2.0 3.0\n", "unknown parameter `SPLINE`", Some(2)),
            ("r,U\n1.0,2.0\n1.5,oops\n", "expected a number, found `oops`", Some(3)),
        ];
        for (text, message, line) in cases {
            let e = read(text, Choice::default()).unwrap_err();
            assert!(e.message.contains(message) && e.line == line, "{text}: {e:?}");
        }
        let two = "A\nN 1\n\n1 1.0 2.0 3.0\nB\nN 1\n\n1 4.0 2.0 3.0\n";
        let b = Choice { entry: Some("B"), ..Choice::default() };
        assert_eq!(read(two, b).unwrap().x, [4.0]);
        let c = Choice { entry: Some("C"), ..Choice::default() };
        assert!(read(two, c).unwrap_err().message.contains("there is no section C; the sections are A, B"));
        let votca = "# VOTCA\n0.0 0.0 u\n0.1 3.0 i\n0.2 1.0 o\n";
        assert_eq!(read(votca, Choice::default()).unwrap().x, [0.1, 0.2]);
        let wide = "<PairPotential>\n1 9 2\n3 9 4\n</ PairPotential >\n";
        let choice = Choice { columns: Some(&[1, 3]), ..Choice::default() };
        assert_eq!(read(wide, choice).unwrap().u, [2.0, 4.0]);
    }
}
