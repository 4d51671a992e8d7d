//! The sections of a topology.

use crate::forcefield::{ForceField, Table, word};
use crate::source::{At, Line, Source};
use galamost_plugin_api::error::{InputError, nearest};
use std::collections::HashMap;

type Result<T> = std::result::Result<T, InputError>;

/// The largest number of exclusions by bonds, as in `nrexcl`.
const MAX_EXCLUDED_BONDS: u32 = 10;

/// A particle of a molecule.
#[derive(Clone, Debug)]
pub struct Atom {
    pub name: String,
    pub kind: String,
    pub charge: f64,
    pub mass: f64,
    pub at: At,
}

/// A section with rows of a molecule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    Bonds,
    Constraints,
    Settles,
    Pairs,
    Angles,
    Dihedrals,
    /// Sites of this many particles; 0 for any number.
    Sites(usize),
    Exclusions,
    PositionRestraints,
    /// A section that no component can express.
    Refused(&'static str),
}

/// A molecule.
#[derive(Clone, Debug)]
pub struct Molecule {
    pub name: String,
    /// Particles that are at most this many bonds apart are excluded.
    pub excluded_bonds: u32,
    pub atoms: Vec<Atom>,
    /// Section and line of the source.
    pub rows: Vec<(Section, usize)>,
}

/// Molecules of one type that follow each other.
#[derive(Clone, Debug)]
pub struct Block {
    /// Number of the molecule type.
    pub molecule: usize,
    pub count: usize,
    pub at: At,
}

/// A topology.
#[derive(Debug, Default)]
pub struct Topology {
    pub source: Source,
    pub field: ForceField,
    pub molecules: Vec<Molecule>,
    pub blocks: Vec<Block>,
    pub title: String,
}

/// Sections of molecules.
const ROWS: [(&str, Section); 24] = [
    ("bonds", Section::Bonds),
    ("constraints", Section::Constraints),
    ("settles", Section::Settles),
    ("pairs", Section::Pairs),
    ("angles", Section::Angles),
    ("dihedrals", Section::Dihedrals),
    ("virtual_sites1", Section::Sites(1)),
    ("virtual_sites2", Section::Sites(2)),
    ("virtual_sites3", Section::Sites(3)),
    ("virtual_sites4", Section::Sites(4)),
    ("virtual_sitesn", Section::Sites(0)),
    ("dummies2", Section::Sites(2)),
    ("dummies3", Section::Sites(3)),
    ("exclusions", Section::Exclusions),
    ("position_restraints", Section::PositionRestraints),
    ("pairs_nb", Section::Refused("pairs_nb")),
    ("cmap", Section::Refused("cmap")),
    ("distance_restraints", Section::Refused("distance_restraints")),
    ("angle_restraints", Section::Refused("angle_restraints")),
    ("dihedral_restraints", Section::Refused("dihedral_restraints")),
    ("orientation_restraints", Section::Refused("orientation_restraints")),
    ("polarization", Section::Refused("polarization")),
    ("water_polarization", Section::Refused("water_polarization")),
    ("thole_polarization", Section::Refused("thole_polarization")),
];

/// Other sections. Tables whose sections in molecules are refused are not read.
const OTHERS: [&str; 16] = [
    "defaults",
    "atomtypes",
    "nonbond_params",
    "bondtypes",
    "constrainttypes",
    "angletypes",
    "dihedraltypes",
    "pairtypes",
    "cmaptypes",
    "implicit_genborn_params",
    "implicit_surface_params",
    "moleculetype",
    "atoms",
    "system",
    "molecules",
    "intermolecular_interactions",
];

impl Topology {
    /// Reads the sections of a topology. Rows that replace earlier ones, and macros of the settings without use, are added to
    /// `warnings`.
    ///
    /// # Errors
    /// Returns an error if a line is invalid.
    pub fn read(source: Source, warnings: &mut Vec<InputError>) -> Result<Self> {
        let mut topology = Self::default();
        let read = topology.sections(&source);
        warnings.append(&mut topology.field.warnings);
        warnings.append(&mut source.unused());
        read?;
        topology.source = source;
        if topology.blocks.is_empty() {
            let at = topology.source.lines.first().map_or(At::default(), |l| l.at);
            return Err(topology.source.error(at, "the topology has no [ molecules ]: it describes no system"));
        }
        if topology.field.rule.is_none() {
            let at = topology.source.lines.first().map_or(At::default(), |l| l.at);
            return Err(topology.source.error(at, "the topology has no [ defaults ]: the combination rule is unknown"));
        }
        Ok(topology)
    }

    fn sections(&mut self, source: &Source) -> Result<()> {
        let mut section = String::new();
        for (k, line) in source.lines.iter().enumerate() {
            if let Some(name) = &line.directive {
                section.clone_from(name);
                self.begin(name, line, source)?;
            } else {
                self.line(&section, k, line, source)?;
            }
        }
        Ok(())
    }

    fn begin(&mut self, name: &str, line: &Line, source: &Source) -> Result<()> {
        let rows = ROWS.iter().map(|(n, _)| *n);
        if !rows.clone().chain(OTHERS).any(|n| n == name) {
            let near = nearest(name, rows.chain(OTHERS)).map_or(String::new(), |n| format!("; did you mean [ {n} ]?"));
            return Err(source.error(line.at, format!("unknown section [ {name} ]{near}")));
        }
        if name == "intermolecular_interactions" {
            return Err(source.error(line.at, format!("[ {name} ] is not supported")));
        }
        Ok(())
    }

    fn line(&mut self, section: &str, k: usize, line: &Line, source: &Source) -> Result<()> {
        match section {
            "" => Err(source.error(line.at, "this line is before the first section")),
            "defaults" => self.field.defaults(line, source),
            "atomtypes" => self.field.atom_type(line, source),
            "nonbond_params" => self.field.pair(false, line, source),
            "pairtypes" => self.field.pair(true, line, source),
            "bondtypes" => self.field.bonded(Table::Bonds, line, source),
            "constrainttypes" => self.field.bonded(Table::Constraints, line, source),
            "angletypes" => self.field.bonded(Table::Angles, line, source),
            "dihedraltypes" => self.field.bonded(Table::Dihedrals, line, source),
            // parameters of [ cmap ], which is refused in molecules, and of implicit solvents
            "cmaptypes" | "implicit_genborn_params" | "implicit_surface_params" => Ok(()),
            "moleculetype" => self.molecule(line, source),
            "atoms" => {
                let atom = self.atom(line, source)?;
                self.current(line, source)?.atoms.push(atom);
                Ok(())
            }
            "system" => {
                let words: Vec<&str> = line.words.iter().map(|w| w.text.as_str()).collect();
                self.title = words.join(" ");
                Ok(())
            }
            "molecules" => self.block(line, source),
            other => {
                let Some((_, section)) = ROWS.iter().find(|(name, _)| *name == other) else { return Ok(()) };
                self.current(line, source)?.rows.push((*section, k));
                Ok(())
            }
        }
    }

    /// Returns the molecule whose sections are being read.
    fn current(&mut self, line: &Line, source: &Source) -> Result<&mut Molecule> {
        self.molecules
            .last_mut()
            .ok_or_else(|| source.error(line.at, "there is no [ moleculetype ] before this section"))
    }

    fn molecule(&mut self, line: &Line, source: &Source) -> Result<()> {
        let name = line.words[0].text.clone();
        let number = word(line, 1, "nrexcl", source)?;
        let excluded_bonds = number.whole(source)?;
        if excluded_bonds > MAX_EXCLUDED_BONDS {
            let message = format!("nrexcl {excluded_bonds}: at most {MAX_EXCLUDED_BONDS} is supported");
            return Err(source.error(number.at, message));
        }
        if self.molecules.iter().any(|m| m.name == name) {
            return Err(source.error(line.at, format!("the molecule type {name} is defined twice")));
        }
        self.molecules.push(Molecule { name, excluded_bonds, atoms: vec![], rows: vec![] });
        Ok(())
    }

    /// Reads a line of `[ atoms ]`: number, type, residue number and name, name, charge group, charge, mass.
    fn atom(&self, line: &Line, source: &Source) -> Result<Atom> {
        let expected = 1 + self.molecules.last().map_or(0, |m| m.atoms.len());
        let number = line.words[0].whole(source)?;
        if number as usize != expected {
            let message = format!("atom {number}: atoms are numbered from 1; the next one is {expected}");
            return Err(source.error(line.words[0].at, message));
        }
        let kind = word(line, 1, "the atom type", source)?;
        let of_type = self.field.atom_type_of(&kind.text, kind.at, source)?;
        word(line, 5, "the charge group", source)?;
        let real = |k: usize, default: f64| line.words.get(k).map_or(Ok(default), |w| w.real(source));
        let atom = Atom {
            name: line.words[4].text.clone(),
            kind: kind.text.clone(),
            charge: real(6, of_type.charge)?,
            mass: real(7, of_type.mass)?,
            at: line.at,
        };
        if atom.mass < 0.0 {
            return Err(source.error(line.words[7.min(line.words.len() - 1)].at, "the mass is negative"));
        }
        let same = |k: usize, value: f64| Ok::<_, InputError>(real(k, value)? == value);
        let second = line.words.get(8).is_none_or(|w| w.text == atom.kind);
        if !second || !same(9, atom.charge)? || !same(10, atom.mass)? {
            return Err(source.error(line.words[8].at, "a second state for free energies (typeB) is not supported"));
        }
        Ok(atom)
    }

    fn block(&mut self, line: &Line, source: &Source) -> Result<()> {
        let name = &line.words[0];
        let count = word(line, 1, "the number of molecules", source)?.whole(source)? as usize;
        let Some(molecule) = self.molecules.iter().position(|m| m.name == name.text) else {
            let near = nearest(&name.text, self.molecules.iter().map(|m| m.name.as_str()));
            let near = near.map_or(String::new(), |n| format!("; did you mean {n}?"));
            return Err(source.error(name.at, format!("there is no [ moleculetype ] {}{near}", name.text)));
        };
        self.blocks.push(Block { molecule, count, at: line.at });
        Ok(())
    }

    /// Returns the number of particles.
    ///
    /// # Errors
    /// Returns an error if they are too many.
    pub fn particles(&self) -> Result<usize> {
        let mut n = 0usize;
        for block in &self.blocks {
            let more = self.molecules[block.molecule].atoms.len().checked_mul(block.count);
            let sum = more.and_then(|more| n.checked_add(more)).filter(|n| *n < u32::MAX as usize);
            n = sum.ok_or_else(|| self.source.error(block.at, "too many particles"))?;
        }
        Ok(n)
    }

    /// Returns the names of the particle types that molecules of the system have, in their order.
    pub fn types(&self) -> Vec<&str> {
        let mut seen = HashMap::new();
        for block in self.blocks.iter().filter(|b| b.count > 0) {
            for atom in &self.molecules[block.molecule].atoms {
                let next = seen.len();
                seen.entry(atom.kind.as_str()).or_insert(next);
            }
        }
        let mut names: Vec<(usize, &str)> = seen.into_iter().map(|(name, k)| (k, name)).collect();
        names.sort_unstable();
        names.into_iter().map(|(_, name)| name).collect()
    }

    /// Returns the numbers of the molecule types that the system has.
    pub fn present(&self) -> Vec<usize> {
        let present = |k: &usize| self.blocks.iter().any(|b| b.molecule == *k && b.count > 0);
        (0..self.molecules.len()).filter(present).collect()
    }
}
