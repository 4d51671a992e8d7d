//! Formats a frame.

use crate::pdb::columns::{Extra, hybrid36, residue};
use crate::positions::at_corner;
use galamost_plugin_api::prelude::{Snapshot, Values};
use galamost_text::Shape;
use std::io::Write as _;

/// Options of the analyzer.
#[derive(Clone, Copy, Debug)]
pub struct WriteOptions {
    /// Å per unit of length.
    pub scale: f64,
    pub unwrapped: bool,
    pub molecules: bool,
    pub bonds: bool,
    pub occupancy: Option<Extra>,
    pub b_factor: Option<Extra>,
}

/// Maximum number of particles, limited by the five columns of serial numbers.
pub const MAX_ATOMS: u64 = 87_440_031;
/// Maximum number of particles with decimal serial numbers.
pub const DECIMAL: u64 = 99_999;

/// Residue name: unknown.
const RESIDUE: &str = "UNK";

/// Formats a number in `width` columns with `digits` decimals; returns `None` if it does not fit.
fn fit(x: f64, width: usize, digits: usize) -> Option<String> {
    let text = format!("{x:width$.digits$}");
    (text.len() == width && x.is_finite()).then_some(text)
}

/// Formats the records before the atoms of a frame: a remark with step and scale, the box.
pub fn head(s: &Snapshot, options: WriteOptions) -> Result<Vec<u8>, String> {
    let mut out = format!("REMARK   6 GALAMOST STEP {} SCALE {:?}\nCRYST1", s.step, options.scale);
    let (lengths, cosines) = Shape::of(s).finite().lengths_and_cosines();
    for l in lengths {
        let x = l * options.scale;
        let text = fit(x, 9, 3).filter(|_| x >= 0.001);
        out += &text
            .ok_or_else(|| format!("the box length {x} (times `scale`) does not fit the columns of a PDB file"))?;
    }
    for x in cosines {
        let angle = if x == 0.0 { 90.0 } else { x.acos().to_degrees() };
        out += &format!("{angle:7.2}");
    }
    out += " P 1           1\n";
    Ok(out.into_bytes())
}

/// Formats the atoms.
pub fn atoms(s: &Snapshot, options: WriteOptions) -> Result<Vec<u8>, String> {
    let mut out = Vec::with_capacity(81 * s.len());
    let none = "  0.00";
    let molecule = match s.arrays.get("molecule").map(|a| &a.values) {
        Some(Values::Int(v)) if options.molecules => v.as_slice(),
        _ => &[],
    };
    let shape = Shape::of(s).finite();
    let serial = |n: usize| hybrid36(n as u64, 5).ok_or_else(|| format!("a PDB file holds at most {MAX_ATOMS} atoms"));
    let mut last = ('A', 0);
    for tag in 0..s.len() {
        let wide = |what: &str, x: f64| {
            let hint = if what.len() == 1 { "; use a smaller `scale`" } else { "" };
            format!("{what} = {x} of the particle with tag {tag} does not fit the columns of a PDB file{hint}")
        };
        let m = molecule.get(tag).copied().unwrap_or(-1);
        last = residue(m).ok_or_else(|| {
            format!(
    "the molecule {m} of the particle with tag {tag} does not fit the columns of a PDB file, which holds 619,999; \
     set `molecules: false` to omit molecules"
            )
        })?;
        let name = s.types.get(s.type_id[tag] as usize).map_or("", String::as_str);
        // names of fewer than four letters begin in the second column
        let name = if name.len() < 4 { format!(" {name:<3}") } else { name.into() };
        let _ = write!(out, "ATOM  {} {name} {RESIDUE} {}{:4}    ", serial(tag + 1)?, last.0, last.1);
        let place = at_corner(&shape, s.position[tag], if options.unwrapped { s.image[tag] } else { [0; 3] });
        for (axis, x) in ["x", "y", "z"].iter().zip(place) {
            let x = options.scale * x;
            out.extend_from_slice(fit(x, 8, 3).ok_or_else(|| wide(axis, x))?.as_bytes());
        }
        for (extra, empty) in [(options.occupancy, "  1.00"), (options.b_factor, none)] {
            let Some(extra) = extra else {
                out.extend_from_slice(empty.as_bytes());
                continue;
            };
            let x = match extra.array().map(|name| s.arrays.get(name).map(|a| &a.values)) {
                None => s.mass[tag],
                Some(Some(Values::Real(v))) => v.get(tag).copied().unwrap_or(0.0),
                Some(Some(Values::Int(v))) => v.get(tag).map_or(0.0, |i| f64::from(*i)),
                Some(None) => 0.0,
            };
            let name = extra.array().unwrap_or("mass");
            out.extend_from_slice(fit(x, 6, 2).ok_or_else(|| wide(name, x))?.as_bytes());
        }
        out.push(b'\n');
    }
    let _ = writeln!(out, "TER   {}      {RESIDUE} {}{:4}", serial(s.len() + 1).unwrap_or_default(), last.0, last.1);
    Ok(out)
}

/// Formats the CONECT records; each bond appears at both of its ends.
pub fn conect(s: &Snapshot) -> Vec<u8> {
    let mut joined: Vec<(u32, u32)> = vec![];
    for bond in &s.bonds {
        let [a, b] = bond.tags;
        joined.extend([(a, b), (b, a)]);
    }
    joined.sort_unstable();
    joined.dedup();
    let mut out = vec![];
    for of_one in joined.chunk_by(|a, b| a.0 == b.0) {
        for four in of_one.chunks(4) {
            out.extend_from_slice(b"CONECT");
            for tag in [four[0].0].into_iter().chain(four.iter().map(|p| p.1)) {
                out.extend_from_slice(hybrid36(u64::from(tag) + 1, 5).unwrap_or_default().as_bytes());
            }
            out.push(b'\n');
        }
    }
    out
}

/// Formats a file with a single state.
pub fn state(s: &Snapshot, options: WriteOptions) -> Result<Vec<u8>, String> {
    let mut out = [head(s, options)?, atoms(s, options)?].concat();
    if options.bonds {
        out.extend(conect(s));
    }
    out.extend_from_slice(END);
    Ok(out)
}

/// Last record of a file.
pub const END: &[u8] = b"END\n";

/// Formats model `number` (from 0), with its bonds inside, where programs expect them for each frame.
pub fn model(s: &Snapshot, options: WriteOptions, number: u64) -> Result<Vec<u8>, String> {
    let mut out = head(s, options)?;
    // the number may use its four columns and the four blanks before them
    let _ = writeln!(out, "MODEL {:8}", (number + 1) % 100_000_000);
    out.extend(atoms(s, options)?);
    if options.bonds {
        out.extend(conect(s));
    }
    out.extend_from_slice(b"ENDMDL\n");
    Ok(out)
}
