//! The interactions of a molecule: bonded terms, virtual sites, exclusions.

use crate::forcefield::{Table, word};
use crate::sites::{Site, site};
use crate::source::{At, Line, Source, Word};
use crate::system::ReactionField;
use crate::terms::{Term, parameters, term};
use crate::topology::{Molecule, Section, Topology};
use galamost_plugin_api::error::InputError;
use galamost_plugin_api::snapshot::LinkList as List;
use std::collections::{BTreeSet, VecDeque};

type Result<T> = std::result::Result<T, InputError>;

/// The largest number of excluded pairs of a molecule.
const MAX_EXCLUSIONS: usize = 20_000_000;

/// A bonded interaction of particles of a molecule, counted from 0.
#[derive(Clone, Debug)]
pub struct Interaction {
    pub term: Term,
    pub atoms: Vec<u32>,
    pub at: At,
    /// It is a row of `[ pairs ]`.
    pub of_pairs: bool,
}

/// The interactions of a molecule.
#[derive(Clone, Debug, Default)]
pub struct Interactions {
    pub bonded: Vec<Interaction>,
    pub sites: Vec<Site>,
    /// Excluded pairs, the smaller number first.
    pub excluded: BTreeSet<[u32; 2]>,
    /// Number of position restraints, which are left out.
    pub restrained: usize,
    /// Number of constraints that became bonds.
    pub stiff: usize,
    /// Constrained pairs, the smaller number first.
    pub constrained: BTreeSet<[u32; 2]>,
}

/// Reads the rows of a molecule.
struct Rows<'a> {
    topology: &'a Topology,
    molecule: &'a Molecule,
    /// k of bonds in place of constraints, which stay constraints without it.
    stiff: Option<f64>,
    field: &'a ReactionField,
    found: Interactions,
    /// Bonds that count for `nrexcl`.
    joined: Vec<[u32; 2]>,
    /// Sections that were refused.
    refused: Vec<Section>,
    /// Sites whose row is an error.
    wrong_sites: BTreeSet<u32>,
}

impl Interactions {
    /// Reads the interactions of a molecule. `stiff` is the stiffness of bonds in place of constraints.
    ///
    /// # Errors
    /// Returns all rows that are invalid or cannot be expressed.
    pub fn of(
        topology: &Topology,
        molecule: &Molecule,
        stiff: Option<f64>,
        field: &ReactionField,
    ) -> std::result::Result<Self, Vec<InputError>> {
        let (found, joined, refused, wrong_sites) = (Self::default(), vec![], vec![], BTreeSet::new());
        let mut rows = Rows { topology, molecule, stiff, field, found, joined, refused, wrong_sites };
        let mut errors = vec![];
        for (section, line) in &molecule.rows {
            let line = &topology.source.lines[*line];
            if let Err(e) = rows.row(*section, line) {
                errors.push(e);
            }
        }
        errors.extend(rows.check_masses());
        if let Err(e) = rows.exclude() {
            errors.push(e);
        }
        if errors.is_empty() { Ok(rows.found) } else { Err(errors) }
    }
}

/// Returns a pair with the smaller number first.
pub fn pair(a: u32, b: u32) -> [u32; 2] {
    [a.min(b), a.max(b)]
}

impl Rows<'_> {
    fn source(&self) -> &Source {
        &self.topology.source
    }

    fn row(&mut self, section: Section, line: &Line) -> Result<()> {
        let list = match section {
            Section::Bonds => List::Bonds,
            Section::Angles => List::Angles,
            Section::Dihedrals => List::Dihedrals,
            Section::Constraints => return self.constraint(line),
            Section::Settles => return self.settle(line),
            Section::Sites(n) => {
                let site = site(n, line, self.molecule, self.source()).inspect_err(|_| {
                    let wrong = atom(&line.words[0], self.molecule, &self.topology.source);
                    self.wrong_sites.extend(wrong);
                })?;
                self.found.sites.push(site);
                return Ok(());
            }
            Section::Exclusions => {
                let first = atom(&line.words[0], self.molecule, self.source())?;
                for word in &line.words[1..] {
                    let other = atom(word, self.molecule, self.source())?;
                    if other != first {
                        self.found.excluded.insert(pair(first, other));
                    }
                }
                return Ok(());
            }
            Section::PositionRestraints => {
                self.found.restrained += 1;
                return Ok(());
            }
            Section::Pairs => return self.pair(line),
            Section::Refused(_) => return self.refuse(section, line),
        };
        self.bonded(list, line)
    }

    /// Returns an error for the first row of a section that cannot be expressed.
    fn refuse(&mut self, section: Section, line: &Line) -> Result<()> {
        if self.refused.contains(&section) {
            return Ok(());
        }
        self.refused.push(section);
        let name = &self.molecule.name;
        let message = match section {
            Section::Refused(section) => format!("[ {section} ] of {name} is not supported"),
            _ => "this section is not supported".into(),
        };
        Err(self.source().error(line.at, message))
    }

    fn bonded(&mut self, list: List, line: &Line) -> Result<()> {
        let (n, table) = match list {
            List::Bonds => (2, Table::Bonds),
            List::Angles => (3, Table::Angles),
            List::Dihedrals | List::Impropers => (4, Table::Dihedrals),
        };
        let atoms = atoms(line, n, self.molecule, self.source())?;
        let at_function = word(line, n, "the function", self.source())?;
        let function = at_function.whole(self.source())?;
        let count = parameters(list, function).map_err(|m| self.source().error(at_function.at, m))?;
        let mut terms = vec![];
        for words in self.parameters(table, function, &atoms, &line.words[n + 1..], line.at)? {
            let numbers = numbers(words, count, line.at, self.source())?;
            terms.push(term(list, function, &numbers).map_err(|m| self.source().error(line.at, m))?);
        }
        let of = |term| Interaction { term, atoms: atoms.clone(), at: line.at, of_pairs: false };
        self.found.bonded.extend(terms.into_iter().map(of));
        // function 6 is a harmonic potential, not a bond
        if list == List::Bonds && function != 6 {
            self.joined.push([atoms[0], atoms[1]]);
        }
        Ok(())
    }

    /// Reads a row of `[ pairs ]`.
    fn pair(&mut self, line: &Line) -> Result<()> {
        let atoms = atoms(line, 2, self.molecule, self.source())?;
        let function = word(line, 2, "the function", self.source())?;
        if function.text != "1" {
            let message = format!("function {} of [ pairs ] is not supported; the function is 1", function.text);
            return Err(self.source().error(function.at, message));
        }
        let field = &self.topology.field;
        let [a, b] = [atoms[0], atoms[1]].map(|a| &self.molecule.atoms[a as usize]);
        let parameters = match &line.words[3..] {
            [] => field.fourth_of(&a.kind, &b.kind).ok_or_else(|| {
                let message = format!(
                    "this line has no parameters, [ pairtypes ] has none for {} {}, and [ defaults ] has no gen-pairs yes",
                    a.kind, b.kind
                );
                self.source().error(line.at, message)
            })?,
            own => {
                let numbers = numbers(own, 2, line.at, self.source())?;
                [numbers[0], numbers[1]]
            }
        };
        let qq = field.fudge_qq() * a.charge * b.charge;
        let term = Term::pair(field.powers(parameters), qq, &self.field.of_pairs());
        let term = term.map_err(|m| self.source().error(line.at, m))?;
        self.found.bonded.push(Interaction { term, atoms, at: line.at, of_pairs: true });
        Ok(())
    }

    /// Returns the parameters of a row: its own, or those of the table of its types.
    fn parameters<'s>(
        &'s self,
        table: Table,
        function: u32,
        atoms: &[u32],
        own: &'s [Word],
        at: At,
    ) -> Result<Vec<&'s [Word]>> {
        if !own.is_empty() {
            return Ok(vec![own]);
        }
        let mut types = vec![];
        for atom in atoms {
            let atom = &self.molecule.atoms[*atom as usize];
            types.push(self.topology.field.atom_type_of(&atom.kind, atom.at, self.source())?.bonded.as_str());
        }
        match self.topology.field.find(table, &types, function) {
            Some(row) => Ok(row.parameters.iter().map(Vec::as_slice).collect()),
            None => {
                let name = format!("{table:?}").to_lowercase();
                let message = format!(
                    "this line has no parameters, and [ {}types ] has none of function {function} for {}",
                    name.trim_end_matches('s'),
                    types.join(" ")
                );
                Err(self.source().error(at, message))
            }
        }
    }

    fn constraint(&mut self, line: &Line) -> Result<()> {
        let pair = atoms(line, 2, self.molecule, self.source())?;
        let at_function = word(line, 2, "the function", self.source())?;
        let function = at_function.whole(self.source())?;
        if !matches!(function, 1 | 2) {
            let message = format!("function {function} of [ constraints ] is not supported; the functions are 1, 2");
            return Err(self.source().error(at_function.at, message));
        }
        let words = self.parameters(Table::Constraints, function, &pair, &line.words[3..], line.at)?;
        // a second number is the length of a second state for free energies, or the stiffness for a section that may be [ bonds ]
        let words = words[0];
        words.get(1).map_or(Ok(0.0), |w| w.real(self.source()))?;
        let used = if words.len() == 2 { &words[..1] } else { words };
        let length = numbers(used, 1, line.at, self.source())?[0];
        self.constrain([pair[0], pair[1]], length, line)?;
        if function == 1 {
            self.joined.push([pair[0], pair[1]]);
        }
        Ok(())
    }

    /// Reads a rigid molecule of water: three constraints, whose pairs are excluded.
    fn settle(&mut self, line: &Line) -> Result<()> {
        let first = atoms(line, 1, self.molecule, self.source())?[0];
        if first as usize + 2 >= self.molecule.atoms.len() {
            return Err(self.source().error(line.at, "[ settles ] needs two more atoms after this one"));
        }
        let length = |k: usize, what| word(line, k, what, self.source())?.real(self.source());
        let (oxygen, hydrogen) = (length(2, "the length O–H")?, length(3, "the length H–H")?);
        for (atoms, length) in [([0, 1], oxygen), ([0, 2], oxygen), ([1, 2], hydrogen)] {
            let atoms = atoms.map(|a| first + a);
            self.constrain(atoms, length, line)?;
            self.found.excluded.insert(atoms);
        }
        Ok(())
    }

    /// Adds a constraint, or the bond in its place.
    fn constrain(&mut self, atoms: [u32; 2], length: f64, line: &Line) -> Result<()> {
        let term = match self.stiff {
            Some(k) => Term::harmonic_bond(length, k),
            None => Term::constraint(length),
        };
        let term = term.map_err(|m| self.source().error(line.at, m))?;
        self.found.bonded.push(Interaction { term, atoms: atoms.into(), at: line.at, of_pairs: false });
        if self.stiff.is_some() {
            self.found.stiff += 1;
        } else if !self.found.constrained.insert(pair(atoms[0], atoms[1])) {
            let message = format!("the pair {} {} is constrained already", atoms[0] + 1, atoms[1] + 1);
            return Err(self.source().error(line.at, message));
        }
        Ok(())
    }

    /// Checks that exactly the virtual sites are without mass, and that none is constrained or constructs another one.
    fn check_masses(&self) -> Vec<InputError> {
        let mut is_site = vec![false; self.molecule.atoms.len()];
        let mut errors = vec![];
        for s in &self.found.sites {
            if std::mem::replace(&mut is_site[s.site as usize], true) {
                errors.push(self.source().error(s.at, format!("atom {} is a virtual site already", s.site + 1)));
            }
        }
        for s in &self.found.sites {
            if let Some(atom) = s.from.iter().find(|a| is_site[**a as usize]) {
                let message = format!(
                    "atom {} is a virtual site and cannot construct the site {}; name the atoms that construct both",
                    atom + 1,
                    s.site + 1
                );
                errors.push(self.source().error(s.at, message));
            }
        }
        let constrained = self.found.bonded.iter().filter(|b| b.term.is_constraint());
        for (b, atom) in constrained.flat_map(|b| b.atoms.iter().filter(|a| is_site[**a as usize]).map(move |a| (b, a)))
        {
            let message = format!("atom {} is a virtual site and cannot be constrained; constrain its atoms", atom + 1);
            errors.push(self.source().error(b.at, message));
        }
        // a site whose row is an error already is no second one
        self.wrong_sites.iter().for_each(|a| is_site[*a as usize] = true);
        let massless = self.molecule.atoms.iter().zip(&is_site).filter(|(a, site)| a.mass == 0.0 && !**site);
        errors.extend(massless.map(|(a, _)| self.source().error(a.at, "this atom has no mass and is no virtual site")));
        errors
    }

    /// Excludes pairs that are at most `nrexcl` bonds apart.
    fn exclude(&mut self) -> Result<()> {
        let (n, depth) = (self.molecule.atoms.len(), self.molecule.excluded_bonds);
        let mut neighbors = vec![vec![]; n];
        for [a, b] in &self.joined {
            neighbors[*a as usize].push(*b);
            neighbors[*b as usize].push(*a);
        }
        let mut reached = vec![u32::MAX; n];
        for start in 0..n as u32 {
            let mut queue = VecDeque::from([(start, 0)]);
            reached[start as usize] = start;
            while let Some((atom, bonds)) = queue.pop_front() {
                if atom > start {
                    self.found.excluded.insert([start, atom]);
                }
                if bonds == depth {
                    continue;
                }
                for next in &neighbors[atom as usize] {
                    if std::mem::replace(&mut reached[*next as usize], start) != start {
                        queue.push_back((*next, bonds + 1));
                    }
                }
            }
            if self.found.excluded.len() > MAX_EXCLUSIONS {
                let message = format!("{} excludes more than {MAX_EXCLUSIONS} pairs", self.molecule.name);
                return Err(self.source().error(self.molecule.atoms[0].at, message));
            }
        }
        Ok(())
    }
}

/// Returns the first `n` words as particles of the molecule, counted from 0.
///
/// # Errors
/// Returns an error if a particle is unknown or repeated.
pub fn atoms(line: &Line, n: usize, molecule: &Molecule, source: &Source) -> Result<Vec<u32>> {
    let mut found = vec![];
    for k in 0..n {
        let at = word(line, k, "all atoms", source)?;
        found.push(atom(at, molecule, source)?);
        if found[..k].contains(&found[k]) {
            return Err(source.error(at.at, format!("atom {} is here twice", at.text)));
        }
    }
    Ok(found)
}

/// Returns a word as a particle of the molecule, counted from 0.
///
/// # Errors
/// Returns an error if the particle is unknown.
pub fn atom(word: &Word, molecule: &Molecule, source: &Source) -> Result<u32> {
    let number = word.whole(source)?;
    if number == 0 || number as usize > molecule.atoms.len() {
        let message = format!("unknown atom {number}: {} has the atoms 1 to {}", molecule.name, molecule.atoms.len());
        return Err(source.error(word.at, message));
    }
    Ok(number - 1)
}

/// Returns the numbers of a row. A second set for free energies must equal the first.
fn numbers(words: &[Word], count: usize, at: At, source: &Source) -> Result<Vec<f64>> {
    let mut all = vec![];
    for word in words {
        all.push(word.real(source)?);
    }
    if all.len() == 2 * count && all[..count] == all[count..] {
        all.truncate(count);
    }
    if all.len() == 2 * count {
        return Err(source.error(words[count].at, "parameters of a second state for free energies are not supported"));
    }
    if all.len() != count {
        let at = words.first().map_or(at, |w| w.at);
        return Err(source.error(at, format!("expected {count} parameters, found {}", all.len())));
    }
    Ok(all)
}
