//! Reads a state from a data file.

use crate::lammps_data::atoms::{Atom, atom, layout};
use crate::lammps_data::header::{Header, content};
use crate::lammps_data::shapes::Shapes;
use crate::lammps_data::style::{Field, Layout, Styles};
use galamost_plugin_api::error::{InputError, nearest};
use galamost_plugin_api::prelude::{Array, Link, LinkList, Snapshot, Values};
use galamost_text::{Lines, Result, Shape};
use std::collections::HashMap;
use std::path::Path;

/// Options of the generator.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    pub style: Option<Styles>,
    /// Names of the types of atoms, bonds, angles, dihedrals, impropers.
    pub names: [Option<Vec<String>>; 5],
    /// Whether the system is two-dimensional.
    pub flat: bool,
}

/// Names for messages, in the order of the counts in the header.
const WHAT: [&str; 5] = ["atom", "bond", "angle", "dihedral", "improper"];

/// Ignored sections, and what determines their number of rows.
const IGNORED: [(&str, Rows); 15] = [
    ("Pair Coeffs", Rows::Types(0)),
    ("PairIJ Coeffs", Rows::Pairs),
    ("Bond Coeffs", Rows::Types(1)),
    ("Angle Coeffs", Rows::Types(2)),
    ("BondBond Coeffs", Rows::Types(2)),
    ("BondAngle Coeffs", Rows::Types(2)),
    ("UreyBradley Coeffs", Rows::Types(2)),
    ("Dihedral Coeffs", Rows::Types(3)),
    ("MiddleBondTorsion Coeffs", Rows::Types(3)),
    ("EndBondTorsion Coeffs", Rows::Types(3)),
    ("AngleTorsion Coeffs", Rows::Types(3)),
    ("AngleAngleTorsion Coeffs", Rows::Types(3)),
    ("BondBond13 Coeffs", Rows::Types(3)),
    ("Improper Coeffs", Rows::Types(4)),
    ("AngleAngle Coeffs", Rows::Types(4)),
];

#[derive(Clone, Copy)]
enum Rows {
    Types(usize),
    Pairs,
}

/// Reads a file; also returns warnings about what is not read.
///
/// # Errors
/// Returns the first error, with its position.
pub fn read(path: &Path, choice: &Choice) -> Result<(Snapshot, Vec<String>)> {
    let mut l = Lines::open(path)?;
    let mut file = File { choice: choice.clone(), ..File::default() };
    // the first line always is a comment
    l.must("the header")?;
    if let Some((_, step)) = l.text().split_once("timestep = ") {
        file.step = step.split(|c: char| !c.is_ascii_digit()).next().and_then(|n| n.parse().ok()).unwrap_or(0);
    }
    let mut more = next_content(&mut l)?;
    while more && file.header.take(&l)? {
        more = next_content(&mut l)?;
    }
    file.space(&l)?;
    while more {
        file.section(&mut l)?;
        more = next_content(&mut l)?;
    }
    let state = file.finish(&l)?;
    Ok((state, l.warnings()))
}

/// Advances to the next line that is not empty.
fn next_content(l: &mut Lines) -> Result<bool> {
    while l.next()? {
        if !content(l.text()).is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A file while it is read.
#[derive(Default)]
pub struct File {
    choice: Choice,
    step: u64,
    pub header: Header,
    pub middle: [f64; 3],
    pub shape: Shape,
    layout: Option<Layout>,
    /// Labels of the types of atoms, bonds, angles, dihedrals, impropers, and their type numbers.
    labels: [HashMap<String, u32>; 5],
    masses: Vec<Option<f64>>,
    /// Error in the first mass that is not positive, for styles whose particles have no masses of their own.
    wrong_mass: Option<InputError>,
    /// Comments in the section `Masses`.
    comments: Vec<Option<String>>,
    pub state: Snapshot,
    /// Tags by id.
    tags: HashMap<u64, u32>,
    /// Values that only some styles have.
    molecule: Vec<i32>,
    charge: Vec<f64>,
    pub shapes: Shapes,
}

impl File {
    fn space(&mut self, l: &Lines) -> Result<()> {
        for (k, axis) in ["x", "y", "z"].iter().enumerate() {
            // LAMMPS's default bounds
            let [low, high] = self.header.bounds[k].unwrap_or([-0.5, 0.5]);
            if self.header.bounds[k].is_none() && k < 2 {
                return Err(l.wrong_file(format!("the header has no box bounds `{axis}lo {axis}hi`")));
            }
            (self.middle[k], self.shape.length[k]) = (0.5 * low + 0.5 * high, high - low);
        }
        self.shape = Shape::of_tilts(self.shape.length, self.header.tilts);
        if self.choice.flat {
            self.shape.tilt = self.shape.flat().tilt;
        }
        let [xy, xz, yz] = self.shape.tilts();
        self.middle[0] += 0.5 * (xy + xz);
        self.middle[1] += 0.5 * yz;
        Ok(())
    }

    fn section(&mut self, l: &mut Lines) -> Result<()> {
        let (name, comment) = match l.text().split_once('#') {
            Some((name, comment)) => (name, Some(comment.trim_ascii().to_string())),
            None => (l.text(), None),
        };
        let name = name.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
        let labels = |k: usize| format!("{}{} Type Labels", WHAT[k][..1].to_uppercase(), &WHAT[k][1..]);
        match name.as_str() {
            "Masses" => return self.masses(l),
            "Atoms" => return self.atoms(l, comment.as_deref()),
            "Velocities" => return self.velocities(l),
            "Ellipsoids" => return Shapes::ellipsoids(self, l, self.header.ellipsoids),
            "Bonds" => {
                self.state.bonds = self.links(l, 1)?;
                return Ok(());
            }
            "Angles" => {
                self.state.angles = self.links(l, 2)?;
                return Ok(());
            }
            "Dihedrals" => {
                self.state.dihedrals = self.links(l, 3)?;
                return Ok(());
            }
            "Impropers" => {
                self.state.impropers = self.links(l, 4)?;
                return Ok(());
            }
            _ => {}
        }
        if let Some(k) = (0..5).find(|k| labels(*k) == name) {
            return self.labels(l, k);
        }
        let Some((_, rows)) = IGNORED.iter().find(|(n, _)| *n == name) else {
            let known = IGNORED.iter().map(|p| p.0).chain([
                "Masses",
                "Atoms",
                "Velocities",
                "Ellipsoids",
                "Bonds",
                "Angles",
                "Dihedrals",
                "Impropers",
            ]);
            return Err(l.wrong(match nearest(&name, known) {
                Some(n) => format!("unknown section `{name}`; did you mean `{n}`?"),
                None => format!("unknown section `{name}`"),
            }));
        };
        let types = |k: usize| self.header.types[k] as u64;
        let rows = match *rows {
            Rows::Types(k) => types(k),
            Rows::Pairs => types(0) * (types(0) + 1) / 2,
        };
        for _ in 0..rows {
            row(l, &name)?;
        }
        Ok(())
    }

    fn masses(&mut self, l: &mut Lines) -> Result<()> {
        let n = self.header.types[0];
        self.masses = vec![None; n];
        self.comments = vec![None; n];
        for _ in 0..n {
            row(l, "Masses")?;
            let words: Vec<&str> = content(l.text()).split_ascii_whitespace().collect();
            let [kind, mass] = words.as_slice() else {
                return Err(l.wrong(format!("expected a type and its mass, found {} values", words.len())));
            };
            let k = self.kind(l, 0, kind)? as usize;
            if self.masses[k].is_some() {
                return Err(l.wrong_at(kind, format!("duplicate mass of the type {kind}")));
            }
            let m = l.real(mass)?;
            if m <= 0.0 {
                self.wrong_mass.get_or_insert_with(|| l.wrong_at(mass, "masses must be positive"));
            }
            self.masses[k] = Some(m);
            let comment = l.text().split_once('#').map(|(_, c)| c.trim_ascii());
            self.comments[k] = comment.filter(|c| !c.is_empty() && !c.contains(char::is_whitespace)).map(String::from);
        }
        Ok(())
    }

    fn labels(&mut self, l: &mut Lines, k: usize) -> Result<()> {
        for _ in 0..self.header.types[k] {
            row(l, "labels of types")?;
            let words: Vec<&str> = content(l.text()).split_ascii_whitespace().collect();
            let [number, label] = words.as_slice() else {
                return Err(l.wrong(format!("expected a type and its label, found {} values", words.len())));
            };
            let n: u32 = l.whole(number)?;
            if n == 0 || n as usize > self.header.types[k] {
                return Err(l.wrong_at(number, format!("unknown {} type {n}", WHAT[k])));
            }
            if self.labels[k].insert((*label).into(), n - 1).is_some() {
                return Err(l.wrong_at(label, format!("duplicate label {label}")));
            }
        }
        Ok(())
    }

    /// Returns the index of a type given by its number or label.
    pub fn kind(&self, l: &Lines, k: usize, word: &str) -> Result<u32> {
        if let Some(n) = self.labels[k].get(word) {
            return Ok(*n);
        }
        let n: u32 = l.whole(word)?;
        if n == 0 || n as usize > self.header.types[k] {
            let (what, types) = (WHAT[k], self.header.types[k]);
            return Err(l.wrong_at(word, format!("unknown {what} type {n}; the header declares {types}")));
        }
        Ok(n - 1)
    }

    fn atoms(&mut self, l: &mut Lines, comment: Option<&str>) -> Result<()> {
        if !self.state.is_empty() {
            return Err(l.wrong("duplicate section `Atoms`"));
        }
        let chosen = self.choice.style.clone();
        let layout = layout(self, l, chosen.as_ref(), comment)?;
        let mut all: Vec<Atom> = vec![];
        for _ in 0..self.header.count[0] {
            row(l, "Atoms")?;
            let a = atom(self, l, &layout, self.choice.flat)?;
            // tags are known when all atoms are
            if self.tags.insert(a.id, 0).is_some() {
                return Err(l.wrong(format!("duplicate atom id {}", a.id)));
            }
            all.push(a);
        }
        all.sort_by_key(|a| a.id);
        for a in &all {
            let tag = self.state.push(a.kind, a.position);
            self.tags.insert(a.id, tag);
            self.state.image[tag as usize] = a.image;
        }
        let (shapes, masses) = Shapes::of(&layout, &all);
        self.shapes = shapes;
        if let Some(masses) = masses {
            self.state.mass = masses.into();
        }
        self.layout = Some(layout);
        self.molecule = all.iter().map(|a| a.molecule).collect();
        self.charge = all.iter().map(|a| a.charge).collect();
        Ok(())
    }

    /// Returns the tag of an atom id.
    pub fn tag(&self, l: &Lines, word: &str) -> Result<u32> {
        let id: u64 = l.whole(word)?;
        self.tags.get(&id).copied().ok_or_else(|| {
            let why = if self.state.is_empty() {
                "the section `Atoms` must precede this one"
            } else {
                "it is not in the section `Atoms`"
            };
            l.wrong_at(word, format!("unknown atom {id}: {why}"))
        })
    }

    fn velocities(&mut self, l: &mut Lines) -> Result<()> {
        let (mut turning, mut seen) = (0u64, vec![false; self.state.len()]);
        for _ in 0..self.header.count[0] {
            row(l, "Velocities")?;
            let words: Vec<&str> = content(l.text()).split_ascii_whitespace().collect();
            // spheres also have angular velocities
            if words.len() != 4 && words.len() != 7 {
                return Err(l.wrong(format!("expected an atom and its velocity, found {} values", words.len())));
            }
            let tag = self.tag(l, words[0])? as usize;
            if std::mem::replace(&mut seen[tag], true) {
                return Err(l.wrong_at(words[0], format!("duplicate velocity of atom {}", words[0])));
            }
            for k in 0..if self.choice.flat { 2 } else { 3 } {
                self.state.velocity[tag][k] = l.real(words[k + 1])?;
            }
            turning += u64::from(words[4..].iter().any(|w| w.parse() != Ok(0.0)));
        }
        if turning > 0 {
            l.warn(format!("the angular velocities (or momenta) of {turning} particles are not read"));
        }
        Ok(())
    }

    fn links<const N: usize>(&self, l: &mut Lines, k: usize) -> Result<Vec<Link<N>>> {
        let mut all = vec![];
        for _ in 0..self.header.count[k] {
            row(l, WHAT[k])?;
            let words: Vec<&str> = content(l.text()).split_ascii_whitespace().collect();
            if words.len() != N + 2 {
                return Err(l.wrong(format!("expected a number, a type and {N} atoms, found {} values", words.len())));
            }
            let mut link = Link { kind: self.kind(l, k, words[1])?, tags: [0; N] };
            for (tag, word) in link.tags.iter_mut().zip(&words[2..]) {
                *tag = self.tag(l, word)?;
            }
            all.push(link);
        }
        Ok(all)
    }

    /// Returns the type names of atoms (k = 0), bonds, angles, dihedrals, or impropers.
    fn names(&self, l: &Lines, k: usize) -> Result<Vec<String>> {
        let n = self.header.types[k];
        let numbers = || (1..=n).map(|n| n.to_string()).collect::<Vec<_>>();
        if let Some(given) = &self.choice.names[k] {
            if given.len() < n {
                let what = WHAT[k];
                return Err(l.wrong_file(format!("the file has {n} {what} types, but {} names are given", given.len())));
            }
            return Ok(given.clone());
        }
        if !self.labels[k].is_empty() {
            let mut names = numbers();
            self.labels[k].iter().for_each(|(label, n)| names[*n as usize].clone_from(label));
            return Ok(names);
        }
        let comments: Option<Vec<String>> = if k == 0 { self.comments.iter().cloned().collect() } else { None };
        Ok(match comments {
            Some(names) if n > 0 && names.iter().collect::<std::collections::HashSet<_>>().len() == n => names,
            _ => numbers(),
        })
    }

    fn finish(mut self, l: &Lines) -> Result<Snapshot> {
        if self.state.is_empty() && self.header.count[0] > 0 {
            return Err(l.wrong_file("missing section `Atoms`"));
        }
        for (k, list) in (1..).zip(LinkList::ALL) {
            let found = self.state.links(list).0;
            if found as u64 != self.header.count[k] {
                let (n, what) = (self.header.count[k], WHAT[k]);
                return Err(l.wrong_file(format!(
                    "the header declares {n} {what}s, but the file has {found}; it may be truncated"
                )));
            }
        }
        let names = [0, 1, 2, 3, 4].map(|k| self.names(l, k));
        let [types, bond_types, angle_types, dihedral_types, improper_types] = names;
        let mut s = std::mem::take(&mut self.state);
        s.step = self.step;
        (s.types, s.bond_types, s.angle_types) = (types?, bond_types?, angle_types?);
        (s.dihedral_types, s.improper_types) = (dihedral_types?, improper_types?);
        s.dimensions = if self.choice.flat { 2 } else { 3 };
        (s.box_length, s.tilt) = (self.shape.length, self.shape.tilt);
        if self.choice.flat {
            s.box_length[2] = 0.0;
        }
        let has = |field: Field| self.layout.as_ref().is_some_and(|layout| layout.has(field));
        if !has(Field::Density) {
            if let Some(e) = self.wrong_mass {
                return Err(e);
            }
            if self.masses.is_empty() && !s.is_empty() {
                l.warn("there is no section `Masses`: all masses are 1");
            }
            for (mass, kind) in s.mass.iter_mut().zip(&s.type_id) {
                *mass = match self.masses.get(*kind as usize) {
                    Some(Some(m)) => *m,
                    Some(None) => return Err(l.wrong_file(format!("`Masses` lacks the type {}", kind + 1))),
                    None => 1.0,
                };
            }
        }
        let (charge, molecule) = (has(Field::Charge), has(Field::Molecule));
        let mut array = |name: &str, array: Array| _ = s.arrays.insert(name.into(), array);
        if charge {
            array("charge", Array { width: 1, values: Values::Real(self.charge) });
        }
        if molecule {
            array("molecule", Array { width: 1, values: Values::Int(self.molecule) });
        }
        self.shapes.finish(l, array);
        Ok(s)
    }
}

/// Advances to the next row of a section.
pub fn row(l: &mut Lines, section: &str) -> Result<()> {
    if next_content(l)? {
        return Ok(());
    }
    Err(l.wrong(format!("the file ends before the last row of {section}; it may be truncated")))
}
