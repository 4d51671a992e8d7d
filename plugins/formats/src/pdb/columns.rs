//! Fixed columns of a line, and their numbers.

use galamost_plugin_api::error::Errors;
use galamost_plugin_api::params::{FromValue, Value};
use galamost_text::{Lines, Result};

/// Record names of format 3.3 and of earlier versions.
const RECORDS: [&str; 55] = [
    "HEADER", "OBSLTE", "TITLE", "SPLIT", "CAVEAT", "COMPND", "SOURCE", "KEYWDS", "EXPDTA", "NUMMDL", "MDLTYP",
    "AUTHOR", "REVDAT", "SPRSDE", "JRNL", "REMARK", "DBREF", "DBREF1", "DBREF2", "SEQADV", "SEQRES", "MODRES", "HET",
    "HETNAM", "HETSYN", "FORMUL", "HELIX", "SHEET", "TURN", "SSBOND", "LINK", "HYDBND", "SLTBRG", "CISPEP", "SITE",
    "CRYST1", "ORIGX1", "ORIGX2", "ORIGX3", "SCALE1", "SCALE2", "SCALE3", "MTRIX1", "MTRIX2", "MTRIX3", "TVECT",
    "MODEL", "ATOM", "HETATM", "ANISOU", "SIGATM", "SIGUIJ", "TER", "USER", "FTNOTE",
];

/// Record names that end a frame or define bonds.
const ENDS: [&str; 4] = ["ENDMDL", "CONECT", "MASTER", "END"];

/// Returns the record name of a line.
pub fn record(line: &str) -> &str {
    let end = line.char_indices().nth(6).map_or(line.len(), |(at, _)| at);
    line[..end].trim_ascii_end()
}

/// Returns an error if the record name is unknown: another file format, or an atom that would be lost.
pub fn known(l: &Lines) -> Result<()> {
    let name = record(l.line());
    if name.is_empty() && l.text().is_empty() || RECORDS.contains(&name) || ENDS.contains(&name) {
        return Ok(());
    }
    Err(l.wrong(format!("unknown PDB record `{name}`")))
}

/// Returns the trimmed text between two columns, counted from 1, both included.
pub fn columns(line: &str, first: usize, last: usize) -> &str {
    line.get(first - 1..last.min(line.len())).unwrap_or_default().trim_ascii()
}

/// Like [`columns`], for a mandatory field.
pub fn field<'a>(l: &'a Lines, first: usize, last: usize, what: &str) -> Result<&'a str> {
    let line = l.line();
    let text = columns(line, first, last);
    if text.is_empty() {
        let rest = &line[(first - 1).min(line.len())..];
        return Err(l.wrong_at(rest, format!("{what} (columns {first} to {last}) is missing")));
    }
    Ok(text)
}

/// Returns the number between two columns.
pub fn real(l: &Lines, first: usize, last: usize, what: &str) -> Result<f64> {
    l.real(field(l, first, last, what)?)
}

/// Returns an error if the line has non-ASCII characters, since columns are counted in bytes.
pub fn ascii(l: &Lines) -> Result<()> {
    match l.line().char_indices().find(|(_, c)| !c.is_ascii()) {
        Some((at, c)) => {
            Err(l.wrong_at(&l.line()[at..], format!("unsupported character `{c}`: PDB columns must be ASCII")))
        }
        None => Ok(()),
    }
}

/// Returns the smallest number of `width` base-36 digits that begins with a letter.
fn letters(width: u32) -> u64 {
    10 * 36u64.pow(width - 1)
}

/// Formats a number in `width` columns: decimal if it fits, otherwise hybrid-36 (A0000 follows 99999, a0000 follows
/// ZZZZZ). Returns `None` if neither fits.
pub fn hybrid36(n: u64, width: u32) -> Option<String> {
    let decimal = 10u64.pow(width);
    if n < decimal {
        return Some(format!("{n:>w$}", w = width as usize));
    }
    let (beyond, half) = (n - decimal, 26 * 36u64.pow(width - 1));
    let (mut left, first) = match beyond / half {
        0 => (beyond + letters(width), b'A'),
        1 => (beyond - half + letters(width), b'a'),
        _ => return None,
    };
    let mut digits = vec![b' '; width as usize];
    for digit in digits.iter_mut().rev() {
        let d = (left % 36) as u8;
        *digit = if d < 10 { b'0' + d } else { first + d - 10 };
        left /= 36;
    }
    String::from_utf8(digits).ok()
}

/// Parses a number in `width` columns, decimal or hybrid-36.
pub fn number(text: &str, width: u32) -> Option<i64> {
    let text = text.trim_ascii();
    let upper = text.starts_with(|c: char| c.is_ascii_uppercase());
    if !upper && !text.starts_with(|c: char| c.is_ascii_lowercase()) {
        return text.parse().ok().filter(|_| !text.starts_with('+'));
    }
    if text.len() != width as usize
        || text.chars().any(|c| if upper { c.is_ascii_lowercase() } else { c.is_ascii_uppercase() })
    {
        return None;
    }
    let half = if upper { 0 } else { 26 * 36u64.pow(width - 1) };
    let n = u64::from_str_radix(text, 36).ok()? - letters(width) + 10u64.pow(width) + half;
    i64::try_from(n).ok()
}

/// Chain letters, in the order of use.
const CHAINS: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
/// Residues for each chain letter, including number 0.
const RESIDUES: u64 = 10_000;

/// Returns chain letter and residue number of a molecule; `None` if the molecule number is too large.
pub fn residue(molecule: i32) -> Option<(char, u64)> {
    let n = u64::try_from(i64::from(molecule) + 1).unwrap_or(0);
    let chain = *CHAINS.get((n / RESIDUES) as usize)?;
    Some((char::from(chain), n % RESIDUES))
}

/// Returns the molecule of a chain letter and a residue number; the inverse of [`residue`].
pub fn molecule(chain: u8, residue: i64) -> Option<i32> {
    let letter = CHAINS.iter().position(|c| *c == chain)?;
    i32::try_from(letter as i64 * RESIDUES as i64 + residue - 1)
        .ok()
        .filter(|_| (0..RESIDUES as i64).contains(&residue))
}

/// Property in one of the two columns after the position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extra {
    Mass,
    Charge,
    Diameter,
    Body,
}

const EXTRAS: [(&str, Extra); 4] =
    [("Mass", Extra::Mass), ("Charge", Extra::Charge), ("Diameter", Extra::Diameter), ("Body", Extra::Body)];

impl Extra {
    /// Returns the name of the array, if the property is one.
    pub fn array(self) -> Option<&'static str> {
        match self {
            Self::Mass => None,
            Self::Charge => Some("charge"),
            Self::Diameter => Some("diameter"),
            Self::Body => Some("body"),
        }
    }
}

impl FromValue for Extra {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        let found = EXTRAS.iter().find(|e| e.0 == value.text()).map(|e| e.1);
        if found.is_none() {
            errors.push(value.error(format!("expected {}, found `{}`", Self::describe(), value.text())));
        }
        found
    }
    fn describe() -> String {
        EXTRAS.map(|e| e.0).join(" | ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hybrid_36_continues_decimal_numbers() {
        // limits of the ranges, as published by its authors (Grosse-Kunstleve, Adams)
        for (n, width, text) in [
            (0, 4, "   0"),
            (9_999, 4, "9999"),
            (10_000, 4, "A000"),
            (10_035, 4, "A00Z"),
            (1_223_055, 4, "ZZZZ"),
            (1_223_056, 4, "a000"),
            (2_436_111, 4, "zzzz"),
            (99_999, 5, "99999"),
            (100_000, 5, "A0000"),
            (43_770_015, 5, "ZZZZZ"),
            (43_770_016, 5, "a0000"),
            (87_440_031, 5, "zzzzz"),
        ] {
            assert_eq!(hybrid36(n, width).as_deref(), Some(text), "{n}");
            assert_eq!(number(text, width), Some(n as i64), "{text}");
        }
        assert!(hybrid36(2_436_112, 4).is_none() && hybrid36(87_440_032, 5).is_none());
        assert_eq!(
            (number("  -4", 4), number("A00", 4), number("Aa00", 4), number("****", 4)),
            (Some(-4), None, None, None)
        );
        assert_eq!((number("186a0", 5), number("+1", 5), number("", 5)), (None, None, None));
    }

    #[test]
    fn molecules_have_a_chain_and_a_residue() {
        for (m, chain, n) in [(-1, 'A', 0), (0, 'A', 1), (9_998, 'A', 9_999), (9_999, 'B', 0), (619_998, '9', 9_999)] {
            assert_eq!(residue(m), Some((chain, n)), "{m}");
            assert_eq!(molecule(chain as u8, n as i64), Some(m), "{chain}{n}");
        }
        assert_eq!((residue(619_999), molecule(b' ', 1), molecule(b'A', -1)), (None, None, None));
    }
}
