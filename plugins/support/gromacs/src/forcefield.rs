//! The tables of a force field: types of particles, of pairs, of bonds, angles and dihedrals.

use crate::source::{At, Line, Source, Word};
use galamost_plugin_api::error::{InputError, nearest};
use std::collections::HashMap;

type Result<T> = std::result::Result<T, InputError>;

/// A type of particles.
#[derive(Clone, Debug, PartialEq)]
pub struct AtomType {
    /// Its name in the tables of bonds, angles and dihedrals.
    pub bonded: String,
    pub mass: f64,
    pub charge: f64,
    /// C₆ and C₁₂ with combination rule 1, otherwise σ and ε.
    pub parameters: [f64; 2],
}

/// A table of bonded parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Table {
    Bonds,
    Constraints,
    Angles,
    Dihedrals,
}

/// A row of a table. Functions that add several terms have several sets of parameters.
#[derive(Clone, Debug)]
pub struct TypeRow {
    types: Vec<String>,
    family: u32,
    pub parameters: Vec<Vec<Word>>,
}

#[derive(Clone, Debug, Default)]
struct TypeTable {
    rows: Vec<TypeRow>,
    index: HashMap<(Vec<String>, u32), usize>,
}

/// The force field of a topology.
#[derive(Clone, Debug, Default)]
pub struct ForceField {
    /// Combination rule: 1, 2 or 3.
    pub rule: Option<u32>,
    pub atom_types: HashMap<String, AtomType>,
    /// `[ nonbond_params ]`, by both names in order.
    pairs: HashMap<[String; 2], [f64; 2]>,
    /// `[ pairtypes ]`, by both names in order.
    pair_types: HashMap<[String; 2], [f64; 2]>,
    /// fudgeLJ, if parameters of `[ pairs ]` follow from those of the types (gen-pairs).
    fudge_lj: Option<f64>,
    fudge_qq: Option<f64>,
    tables: HashMap<Table, TypeTable>,
    /// Rows that replace earlier ones.
    pub warnings: Vec<InputError>,
}

/// Returns the function whose table holds the parameters of a function: 9 is several terms of 1.
fn family(table: Table, function: u32) -> u32 {
    if table == Table::Dihedrals && function == 9 { 1 } else { function }
}

fn ordered(a: &str, b: &str) -> [String; 2] {
    let mut pair = [a.to_string(), b.to_string()];
    pair.sort();
    pair
}

/// Returns word `k` of a line.
///
/// # Errors
/// Returns an error that names what is missing.
pub fn word<'l>(line: &'l Line, k: usize, what: &str, source: &Source) -> Result<&'l Word> {
    line.words.get(k).ok_or_else(|| source.error(line.at, format!("this line ends before {what}")))
}

impl ForceField {
    /// Reads the line of `[ defaults ]`.
    ///
    /// # Errors
    /// Returns an error if it is invalid or asks for another potential than Lennard-Jones.
    pub fn defaults(&mut self, line: &Line, source: &Source) -> Result<()> {
        let function = word(line, 0, "nbfunc", source)?;
        let rule = word(line, 1, "comb-rule", source)?;
        if function.text != "1" {
            let message = format!("nbfunc {}: only 1 (Lennard-Jones) is supported", function.text);
            return Err(source.error(function.at, message));
        }
        if self.rule.is_some() {
            return Err(source.error(line.at, "[ defaults ] is here for the second time"));
        }
        match rule.whole(source)? {
            r @ 1..=3 => self.rule = Some(r),
            r => return Err(source.error(rule.at, format!("comb-rule {r}: the rules are 1, 2 and 3"))),
        }
        let fudge = |k: usize| line.words.get(k).map_or(Ok(1.0), |w| w.real(source));
        (self.fudge_lj, self.fudge_qq) = (None, Some(fudge(4)?));
        match line.words.get(2) {
            None => {}
            Some(w) if w.text.eq_ignore_ascii_case("no") => {}
            Some(w) if w.text.eq_ignore_ascii_case("yes") => self.fudge_lj = Some(fudge(3)?),
            Some(w) => return Err(source.error(w.at, format!("gen-pairs: expected yes or no, found `{}`", w.text))),
        }
        Ok(())
    }

    /// Reads a line of `[ atomtypes ]`: name, optionally bonded type and atomic number, mass, charge, particle type, V, W.
    ///
    /// # Errors
    /// Returns an error if it is invalid.
    pub fn atom_type(&mut self, line: &Line, source: &Source) -> Result<()> {
        let letter = |k: usize| {
            let text = line.words.get(k).map_or("", |w| w.text.as_str());
            text.len() == 1 && text.starts_with(|c: char| c.is_ascii_alphabetic())
        };
        // the particle type A, V, D or S is a letter, in a column that depends on which columns are there
        let kind = match () {
            () if letter(5) => 5,
            () if letter(3) => 3,
            () => 4,
        };
        let name = &line.words[0].text;
        let alphabetic = |k: usize| line.words.get(k).is_some_and(|w| w.text.starts_with(char::is_alphabetic));
        let bonded = if kind == 5 || (kind == 4 && alphabetic(1)) { &line.words[1].text } else { name };
        word(line, kind + 2, "both Lennard-Jones parameters", source)?;
        if line.words.len() > kind + 3 {
            return Err(source.error(line.words[kind + 3].at, "more columns than expected in [ atomtypes ]"));
        }
        if !matches!(line.words[kind].text.as_str(), "A" | "V" | "D" | "S") {
            return Err(source.error(line.words[kind].at, "expected the particle type A, V or D"));
        }
        let real = |k: usize| line.words[k].real(source);
        let new = AtomType {
            bonded: bonded.clone(),
            mass: real(kind - 2)?,
            charge: real(kind - 1)?,
            parameters: [real(kind + 1)?, real(kind + 2)?],
        };
        if let Some(old) = self.atom_types.insert(name.clone(), new.clone())
            && old != new
        {
            self.warnings.push(source.error(line.at, format!("replaces an earlier atom type {name}")));
        }
        Ok(())
    }

    /// Reads a line of `[ nonbond_params ]` or, if `fourth` is set, of `[ pairtypes ]`.
    ///
    /// # Errors
    /// Returns an error if it is invalid.
    pub fn pair(&mut self, fourth: bool, line: &Line, source: &Source) -> Result<()> {
        let function = word(line, 2, "the function", source)?;
        if function.text != "1" {
            let message = format!("function {}: only 1 (Lennard-Jones) is supported", function.text);
            return Err(source.error(function.at, message));
        }
        let parameters =
            [word(line, 3, "V", source)?.real(source)?, word(line, 4, "both parameters", source)?.real(source)?];
        let (a, b) = (&line.words[0].text, &line.words[1].text);
        let table = if fourth { &mut self.pair_types } else { &mut self.pairs };
        if table.insert(ordered(a, b), parameters).is_some_and(|old| old != parameters) {
            self.warnings.push(source.error(line.at, format!("replaces earlier parameters of {a} and {b}")));
        }
        Ok(())
    }

    /// Returns the parameters of a pair of types from `[ nonbond_params ]`.
    pub fn pair_of(&self, a: &str, b: &str) -> Option<[f64; 2]> {
        self.pairs.get(&ordered(a, b)).copied()
    }

    /// Returns C₆ and C₁₂ of these parameters.
    pub fn powers(&self, [v, w]: [f64; 2]) -> [f64; 2] {
        if self.rule == Some(1) {
            return [v, w];
        }
        let c6 = 4.0 * w * v.powi(6);
        // a negative σ is one without attraction
        [if v < 0.0 { 0.0 } else { c6 }, c6 * v.powi(6)]
    }

    /// Returns the factor of Coulomb interactions in `[ pairs ]`.
    pub fn fudge_qq(&self) -> f64 {
        self.fudge_qq.unwrap_or(1.0)
    }

    /// Returns the parameters of `[ pairs ]` for two types: from `[ pairtypes ]`, or scaled as gen-pairs does.
    pub fn fourth_of(&self, a: &str, b: &str) -> Option<[f64; 2]> {
        if let Some(given) = self.pair_types.get(&ordered(a, b)) {
            return Some(*given);
        }
        let fudge = self.fudge_lj?;
        let [p, q] = [self.atom_types.get(a)?.parameters, self.atom_types.get(b)?.parameters];
        let sign = if p[0] < 0.0 || q[0] < 0.0 { -1.0 } else { 1.0 };
        let product = |k: usize| (p[k] * q[k]).sqrt();
        let mixed = match self.rule? {
            1 => [product(0), product(1)],
            2 => [sign * 0.5 * (p[0].abs() + q[0].abs()), product(1)],
            _ => [sign * (p[0] * q[0]).abs().sqrt(), product(1)],
        };
        let [v, w] = self.pair_of(a, b).unwrap_or(if a == b { p } else { mixed });
        // σ is not scaled
        Some([if self.rule == Some(1) { fudge * v } else { v }, fudge * w])
    }

    /// Reads a line of a table of bonded parameters.
    ///
    /// # Errors
    /// Returns an error if it is invalid.
    pub fn bonded(&mut self, table: Table, line: &Line, source: &Source) -> Result<()> {
        let n = match table {
            Table::Bonds | Table::Constraints => 2,
            Table::Angles => 3,
            // two types are those of the middle, or of the ends of an improper
            Table::Dihedrals if line.words.get(2).is_some_and(|w| matches!(w.text.as_bytes(), [b'0'..=b'9'])) => 2,
            Table::Dihedrals => 4,
        };
        let function = word(line, n, "the function", source)?.whole(source)?;
        let mut types: Vec<String> = line.words[..n].iter().map(|w| w.text.clone()).collect();
        if let (Table::Dihedrals, [a, b]) = (table, &types[..]) {
            let [x, a, b] = ["X", a, b].map(String::from);
            types = if function == 2 { vec![a, x.clone(), x, b] } else { vec![x.clone(), a, b, x] };
        }
        let parameters = line.words[n + 1..].to_vec();
        let several = table == Table::Dihedrals && function == 9;
        let family = family(table, function);
        let table = self.tables.entry(table).or_default();
        let key = (types.clone(), family);
        let Some(known) = table.index.get(&key).copied() else {
            table.index.insert(key, table.rows.len());
            table.rows.push(TypeRow { types, family, parameters: vec![parameters] });
            return Ok(());
        };
        let last = known + 1 == table.rows.len();
        let row = &mut table.rows[known].parameters;
        let texts = |p: &[Word]| p.iter().map(|w| w.text.clone()).collect::<Vec<_>>();
        if several && last {
            row.push(parameters);
        } else if several {
            return Err(source.error(line.at, "lines of function 9 for the same types must follow each other"));
        } else if row.len() != 1 || texts(&row[0]) != texts(&parameters) {
            let message = format!("replaces earlier parameters of {}", types.join(" "));
            self.warnings.push(source.error(line.at, message));
            *row = vec![parameters];
        }
        Ok(())
    }

    /// Returns the row of a table for these types, in either direction. Of dihedrals with the wildcard X, that with the fewest
    /// wildcards is used, as in GROMACS.
    pub fn find(&self, table: Table, types: &[&str], function: u32) -> Option<&TypeRow> {
        let family = family(table, function);
        let all = self.tables.get(&table)?;
        let mut names: Vec<String> = types.iter().map(|t| t.to_string()).collect();
        for _ in 0..2 {
            if let Some(k) = all.index.get(&(names.clone(), family)) {
                return all.rows.get(*k);
            }
            names.reverse();
        }
        let fits = |row: &[String], names: &[String]| row.iter().zip(names).all(|(r, n)| r == "X" || r == n);
        let reversed: Vec<String> = names.iter().rev().cloned().collect();
        let wildcards = |row: &TypeRow| row.types.iter().filter(|t| *t == "X").count();
        let rows = all.rows.iter().filter(|row| row.family == family && wildcards(row) > 0);
        rows.filter(|row| fits(&row.types, &names) || fits(&row.types, &reversed)).min_by_key(|row| wildcards(row))
    }

    /// Returns the type of a particle.
    ///
    /// # Errors
    /// Returns an error if there is none.
    pub fn atom_type_of(&self, name: &str, at: At, source: &Source) -> Result<&AtomType> {
        self.atom_types.get(name).ok_or_else(|| {
            let names = self.atom_types.keys().map(String::as_str);
            let near = nearest(name, names);
            let near = near.map_or(String::new(), |n| format!("; did you mean {n}?"));
            source.error(at, format!("the atom type {name} is not in [ atomtypes ]{near}"))
        })
    }
}
