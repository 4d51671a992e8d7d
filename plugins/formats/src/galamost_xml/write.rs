//! Formats a state.

use crate::names;
use galamost_plugin_api::snapshot::{KNOWN_ARRAYS, Link, Snapshot, Values};
use std::io::{Result, Write};

/// Options of the analyzer.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// Decimal places of real numbers.
    pub digits: usize,
    /// Whether to write velocities.
    pub velocity: bool,
}

/// Writes a state.
///
/// # Errors
/// Returns the errors of `out`.
pub fn write(out: &mut impl Write, s: &Snapshot, style: Style) -> Result<()> {
    let n = s.len();
    let [lx, ly, lz] = s.box_length;
    writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<galamost_xml version=\"1.3\">")?;
    writeln!(out, "<configuration time_step=\"{}\" dimensions=\"{}\" natoms=\"{n}\" >", s.step, s.dimensions)?;
    writeln!(out, "<box lx=\"{lx}\" ly=\"{ly}\" lz=\"{lz}\"/>")?;
    let columns = Columns { digits: style.digits, line: String::new() };
    let mut nodes = Nodes { out, columns };
    let half = s.box_length.map(|l| 0.5 * l);
    nodes.reals("position", Rounding::Inside(half), s.position.iter().map(|x| x.as_slice()))?;
    nodes.node("image", s.image.iter(), |out, [x, y, z]| writeln!(out, "{x} {y} {z}"))?;
    if style.velocity {
        nodes.reals("velocity", Rounding::Digits, s.velocity.iter().map(|v| v.as_slice()))?;
    }
    nodes.reals("mass", Rounding::Digits, s.mass.iter().map(std::slice::from_ref))?;
    let name = |names: &[String], kind: u32| names.get(kind as usize).map_or_else(String::new, String::clone);
    let listed = names::list(&s.types, s.type_id.iter().copied());
    nodes.listed("type", listed, s.type_id.iter(), |out, k| writeln!(out, "{}", name(&s.types, *k)))?;
    for (name, width, ..) in KNOWN_ARRAYS {
        let Some(array) = s.arrays.get(*name).filter(|a| a.width == *width) else { continue };
        match &array.values {
            Values::Int(v) => nodes.node(name, v.iter(), |out, x| writeln!(out, "{x}"))?,
            Values::Real(v) => {
                let unit = ["orientation", "quaternion"].contains(name);
                let rounding = if unit { Rounding::Places } else { Rounding::Digits };
                nodes.reals(name, rounding, v.chunks_exact(*width as usize))?;
            }
        }
    }
    nodes.links("bond", &s.bonds, &s.bond_types)?;
    nodes.links("angle", &s.angles, &s.angle_types)?;
    nodes.links("dihedral", &s.dihedrals, &s.dihedral_types)?;
    nodes.links("improper", &s.impropers, &s.improper_types)?;
    writeln!(nodes.out, "</configuration>\n</galamost_xml>")
}

struct Nodes<'o, W> {
    out: &'o mut W,
    columns: Columns,
}

impl<W: Write> Nodes<'_, W> {
    fn node<T>(
        &mut self,
        name: &str,
        rows: impl ExactSizeIterator<Item = T>,
        row: impl FnMut(&mut W, T) -> Result<()>,
    ) -> Result<()> {
        self.listed(name, None, rows, row)
    }

    /// Writes a node with the attribute `types`: the type names in the order of their numbers.
    fn listed<T>(
        &mut self,
        name: &str,
        types: Option<&[String]>,
        rows: impl ExactSizeIterator<Item = T>,
        mut row: impl FnMut(&mut W, T) -> Result<()>,
    ) -> Result<()> {
        write!(self.out, "<{name} num=\"{}\"", rows.len())?;
        if let Some(types) = types {
            write!(self.out, " types=\"{}\"", types.join(" ").replace('"', "&quot;"))?;
        }
        writeln!(self.out, ">")?;
        for r in rows {
            row(self.out, r)?;
        }
        writeln!(self.out, "</{name}>")
    }

    fn reals<'a>(
        &mut self,
        name: &str,
        rounding: Rounding,
        rows: impl ExactSizeIterator<Item = &'a [f64]>,
    ) -> Result<()> {
        let mut columns = std::mem::take(&mut self.columns);
        self.node(name, rows, |out, row| out.write_all(columns.line(row, rounding).as_bytes()))?;
        self.columns = columns;
        Ok(())
    }

    fn links<const N: usize>(&mut self, name: &str, links: &[Link<N>], types: &[String]) -> Result<()> {
        if links.is_empty() && types.is_empty() {
            return Ok(());
        }
        self.listed(name, names::of_links(types, links), links.iter(), |out, link| {
            write!(out, "{}", types.get(link.kind as usize).map_or("", String::as_str))?;
            for tag in link.tags {
                write!(out, " {tag}")?;
            }
            writeln!(out)
        })
    }
}

/// How the numbers of a node are rounded.
#[derive(Clone, Copy, Debug)]
enum Rounding {
    /// To decimal places, but not out of the box with these half lengths.
    Inside([f64; 3]),
    /// To decimal places.
    Places,
    /// To decimal places; numbers of which fewer than half of the digits would be left have an exponent.
    Digits,
}

/// Number of decimal places with which numbers are exact: they then have as many digits as needed.
const EXACT: usize = 17;

/// Formats numbers in columns, as C's `%17.10f`.
#[derive(Default)]
struct Columns {
    digits: usize,
    line: String,
}

impl Columns {
    fn line(&mut self, row: &[f64], rounding: Rounding) -> &str {
        use std::fmt::Write as _;
        self.line.clear();
        let digits = self.digits;
        let width = if row.len() == 1 { 0 } else { digits + 7 };
        for (k, x) in row.iter().enumerate() {
            let begin = self.line.len();
            // writing to a String does not fail
            let _ = match rounding {
                _ if digits >= EXACT => write!(self.line, "{x:width$?}"),
                Rounding::Digits if *x != 0.0 && x.abs() < 0.1f64.powf(0.5 * digits as f64) => {
                    write!(self.line, "{x:width$.digits$e}")
                }
                Rounding::Inside(half) => write!(self.line, "{:width$.digits$}", inside(*x, half[k], digits)),
                _ => write!(self.line, "{x:width$.digits$}"),
            };
            // a number that fills its column must not merge with the previous one
            if begin > 0 && !self.line[begin..].starts_with(' ') {
                self.line.insert(begin, ' ');
            }
        }
        self.line.push('\n');
        &self.line
    }
}

/// Returns a coordinate that is inside the box after rounding, too: other readers refuse particles outside.
fn inside(x: f64, half: f64, digits: usize) -> f64 {
    let unit = 0.1f64.powi(digits as i32);
    if x.abs() <= (half - unit).max(0.0) {
        return x;
    }
    let rounded: f64 = format!("{x:.digits$}").parse().unwrap_or(x);
    if rounded.abs() > half { x - unit.copysign(x) } else { x }
}
