//! Header of a data file: counts, and the box.

use galamost_text::{Lines, Result};

/// Maximum number of types.
const MAX_TYPES: usize = 100_000;

/// Parsed header.
#[derive(Clone, Debug, Default)]
pub struct Header {
    /// Numbers of atoms, bonds, angles, dihedrals, impropers.
    pub count: [u64; 5],
    /// Numbers of their types.
    pub types: [usize; 5],
    /// Lower and upper bounds of the box.
    pub bounds: [Option<[f64; 2]>; 3],
    /// Number of ellipsoids.
    pub ellipsoids: u64,
    /// Tilts xy, xz, yz as lengths.
    pub tilts: [f64; 3],
}

/// Returns a line without its comment.
pub fn content(line: &str) -> &str {
    line.split('#').next().unwrap_or_default().trim_ascii()
}

const COUNTS: [&str; 5] = ["atoms", "bonds", "angles", "dihedrals", "impropers"];
const TYPES: [&str; 5] = ["atom types", "bond types", "angle types", "dihedral types", "improper types"];
const BOUNDS: [&str; 3] = ["xlo xhi", "ylo yhi", "zlo zhi"];

impl Header {
    /// Parses the current line; returns `false` if it does not belong to the header.
    ///
    /// # Errors
    /// Returns an error if the line has invalid numbers.
    pub fn take(&mut self, l: &Lines) -> Result<bool> {
        let words: Vec<&str> = content(l.text()).split_ascii_whitespace().collect();
        let numbers = words.iter().take_while(|w| w.parse::<f64>().is_ok()).count();
        let key = words[numbers..].join(" ");
        let index = |of: &[&str]| of.iter().position(|k| *k == key);
        let need = |n: usize| {
            if numbers == n {
                Ok(())
            } else {
                Err(l.wrong(format!("expected {n} number(s) before `{key}`, found {numbers}")))
            }
        };
        if let Some(k) = index(&COUNTS) {
            need(1)?;
            self.count[k] = l.whole(words[0])?;
        } else if let Some(k) = index(&TYPES) {
            need(1)?;
            self.types[k] = l.whole(words[0])?;
            if self.types[k] > MAX_TYPES {
                return Err(l.wrong_at(words[0], format!("{} types exceed the limit of {MAX_TYPES}", self.types[k])));
            }
        } else if let Some(k) = index(&BOUNDS) {
            need(2)?;
            let (low, high) = (l.real(words[0])?, l.real(words[1])?);
            if low >= high || !(high - low).is_finite() {
                return Err(l.wrong(format!("invalid bounds {low} … {high}")));
            }
            self.bounds[k] = Some([low, high]);
        } else if key == "xy xz yz" {
            need(3)?;
            self.tilts = [l.real(words[0])?, l.real(words[1])?, l.real(words[2])?];
        } else if ["avec", "bvec", "cvec", "abc origin"].contains(&key.as_str()) {
            return Err(
                l.wrong("general triclinic boxes are not supported; write the file with a restricted one (xy xz yz)")
            );
        } else if key == "ellipsoids" {
            need(1)?;
            self.ellipsoids = l.whole(words[0])?;
        } else if numbers == 0 {
            return Ok(false);
        } else if !(key.starts_with("extra ") || ["crossterms", "lines", "triangles", "bodies"].contains(&key.as_str()))
        {
            return Err(l.wrong(format!("unknown header line: `{key}`")));
        }
        Ok(true)
    }
}
