//! The interactions of all molecules: types of bonded interactions, and lists whose pairs are excluded.

use crate::interactions::{Interactions, pair};
use crate::nonbonded;
use crate::sites::Site;
use crate::source::At;
use crate::terms::Term;
use crate::topology::Topology;
use galamost_plugin_api::error::InputError;
use galamost_plugin_api::snapshot::LinkList as List;
use std::collections::{BTreeMap, HashMap, HashSet};

/// The Coulomb constant 1/4πε₀ of GROMACS in kJ nm/(mol e²).
pub const COULOMB: f64 = 138.935458;

/// The reaction field.
#[derive(Clone, Copy, Debug)]
pub struct ReactionField {
    pub r_cut: f64,
    pub epsilon_r: f64,
    /// `None` is infinite.
    pub epsilon_rf: Option<f64>,
}

impl Default for ReactionField {
    /// Returns the reaction field of Martini.
    fn default() -> Self {
        Self { r_cut: 1.1, epsilon_r: 15.0, epsilon_rf: None }
    }
}

impl ReactionField {
    /// Returns the reaction field without the term 1/r.
    fn remainder(&self) -> String {
        let Self { r_cut, epsilon_r, epsilon_rf } = *self;
        let k = epsilon_rf.map_or(0.5, |rf| (rf - epsilon_r) / (2.0 * rf + epsilon_r));
        format!("{COULOMB:?}/{epsilon_r:?}*qq*({k:?}*(r/{r_cut:?})^2 - {:?})/{r_cut:?}", 1.0 + k)
    }

    /// Returns the formula of an excluded pair, which lacks the term 1/r.
    fn of_excluded(&self) -> String {
        format!("energy: \"if(r < {:?}, {}, 0)\"", self.r_cut, self.remainder())
    }

    /// Returns the formula of a pair that is not excluded: the shifted Lennard-Jones potential and the whole reaction field.
    fn of_not_excluded(&self) -> String {
        let (r_cut, epsilon_r) = (self.r_cut, self.epsilon_r);
        let lennard_jones = format!("c12*(1/r^12 - 1/{r_cut:?}^12) - c6*(1/r^6 - 1/{r_cut:?}^6)");
        let coulomb = format!("{COULOMB:?}/{epsilon_r:?}*qq/r + {}", self.remainder());
        format!("energy: \"if(r < {r_cut:?}, {lennard_jones} + {coulomb}, 0)\"")
    }

    /// Returns the formula of a row of `[ pairs ]`, which has neither a cutoff nor a reaction field.
    pub fn of_pairs(&self) -> String {
        format!("energy: \"c12/r^12 - c6/r^6 + {COULOMB:?}/{:?}*qq/r\"", self.epsilon_r)
    }
}

/// A type of bonds, angles, dihedrals or impropers.
#[derive(Clone, Debug)]
pub struct LinkType {
    pub name: String,
    pub term: Term,
}

/// A bonded interaction of a molecule: list, number of its type, particles of the molecule.
pub type Bonded = (List, u32, Vec<u32>);

/// Molecules of one type that follow each other and have virtual sites.
#[derive(Clone, Copy, Debug)]
pub struct SiteBlock<'a> {
    /// The name of the molecule type.
    pub name: &'a str,
    /// Tag of the first particle.
    pub first: usize,
    /// Number of particles of a molecule.
    pub atoms: usize,
    /// Number of molecules.
    pub molecules: usize,
    /// Sites of a molecule.
    pub sites: &'a [Site],
}

/// The interactions of all molecules.
#[derive(Debug, Default)]
pub struct System {
    /// By the number of the molecule type.
    pub molecules: BTreeMap<usize, Interactions>,
    pub bonded: BTreeMap<usize, Vec<Bonded>>,
    /// By the number of the list.
    pub types: [Vec<LinkType>; 4],
    /// The field `exclude` of the neighbor list.
    pub exclude: Vec<&'static str>,
    /// Type numbers by list, component with settings and row, and types of the particles.
    index: HashMap<(usize, String, Vec<String>), u32>,
    /// Names by the number of the list.
    names: HashSet<(usize, String)>,
}

impl System {
    /// Collects the interactions of all molecules that the system has.
    ///
    /// # Errors
    /// Returns all rows that cannot be expressed.
    pub fn of(topology: &Topology, stiff: Option<f64>, field: &ReactionField) -> Result<Self, Vec<InputError>> {
        let (mut system, mut errors) = (Self::default(), vec![]);
        for k in topology.present() {
            match Interactions::of(topology, &topology.molecules[k], stiff, field) {
                Ok(found) => _ = system.molecules.insert(k, found),
                Err(e) => errors.extend(e),
            }
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        system.choose_lists();
        let molecules = std::mem::take(&mut system.molecules);
        for (k, found) in &molecules {
            match system.link(topology, *k, found, field) {
                Ok(all) => _ = system.bonded.insert(*k, all),
                Err(e) => errors.push(e),
            }
        }
        system.molecules = molecules;
        if errors.is_empty() { Ok(system) } else { Err(errors) }
    }

    /// Returns the blocks of molecules with virtual sites, in the order of the tags.
    pub fn sites<'a>(&'a self, topology: &'a Topology) -> Vec<SiteBlock<'a>> {
        let (mut all, mut first) = (vec![], 0);
        for block in topology.blocks.iter().filter(|b| b.count > 0) {
            let molecule = &topology.molecules[block.molecule];
            let (atoms, molecules) = (molecule.atoms.len(), block.count);
            let sites = self.molecules.get(&block.molecule).map_or(&[][..], |m| &m.sites);
            if !sites.is_empty() {
                all.push(SiteBlock { name: &molecule.name, first, atoms, molecules, sites });
            }
            first += atoms * molecules;
        }
        all
    }

    /// Returns remarks about what differs from GROMACS, each with its position in the topology.
    pub fn remarks(&self, topology: &Topology) -> Vec<(At, String)> {
        let mut all = vec![];
        for (k, found) in &self.molecules {
            let molecule = &topology.molecules[*k];
            let at = molecule.atoms.first().map_or(At::default(), |a| a.at);
            if found.restrained > 0 {
                let n = found.restrained;
                all.push((at, format!("{}: {n} position restraints are left out.", molecule.name)));
            }
            if found.stiff > 0 {
                let n = found.stiff;
                all.push((
                    at,
                    format!(
                        "{}: {n} constraints are stiff bonds; the time step is that of these bonds.",
                        molecule.name
                    ),
                ));
            }
            let heavy = found.sites.iter().filter(|s| molecule.atoms[s.site as usize].mass != 0.0).count();
            if heavy > 0 {
                all.push((
                    at,
                    format!("{}: {heavy} virtual sites have a mass in the topology; here it is 0.", molecule.name),
                ));
            }
        }
        all
    }

    /// Chooses lists whose pairs are excluded. Bonds are one of them: bonds without force exclude other pairs, and bonds whose pair
    /// is not excluded have its interaction as a bond.
    fn choose_lists(&mut self) {
        if self.molecules.values().all(|m| m.excluded.is_empty()) {
            return;
        }
        self.exclude.push("Bonds");
        for (list, name) in [(List::Angles, "Angles"), (List::Dihedrals, "Dihedrals")] {
            let mut ends =
                self.molecules.values().flat_map(|m| ends(m, list).map(|e| m.excluded.contains(&e))).peekable();
            if ends.peek().is_some() && ends.all(|excluded| excluded) {
                self.exclude.push(name);
            }
        }
    }

    /// Returns the bonded interactions of a molecule, with bonds for exclusions, for the reaction field of excluded pairs, and for
    /// bonds that do not exclude their pair.
    ///
    /// # Errors
    /// Returns an error if parameters of a pair are no numbers.
    fn link(
        &mut self,
        topology: &Topology,
        k: usize,
        found: &Interactions,
        field: &ReactionField,
    ) -> Result<Vec<Bonded>, InputError> {
        let atoms = &topology.molecules[k].atoms;
        let names = |of: &[u32]| of.iter().map(|a| atoms[*a as usize].kind.clone()).collect::<Vec<_>>();
        let qq = |pair: &[u32]| atoms[pair[0] as usize].charge * atoms[pair[1] as usize].charge;
        let mut all = vec![];
        for b in &found.bonded {
            let name = b.of_pairs.then(|| format!("pair-{}", names(&b.atoms).join("-")));
            let kind = self.kind(&b.term, names(&b.atoms), name.as_deref());
            all.push((b.term.form.list, kind, b.atoms.clone()));
        }
        let mut covered: HashSet<[u32; 2]> = ends(found, List::Bonds).collect();
        if !self.exclude.is_empty() {
            let mut added = HashSet::new();
            let bonds = found.bonded.iter().filter(|b| b.term.form.list == List::Bonds);
            for b in bonds {
                let pair = pair(b.atoms[0], b.atoms[1]);
                if found.excluded.contains(&pair) || !added.insert(pair) {
                    continue;
                }
                let [v, w] = pair.map(|a| atoms[a as usize].kind.as_str());
                let powers = nonbonded::powers_of(&topology.field, v, w);
                let term = Term::not_excluded(powers, qq(&pair), &field.of_not_excluded());
                let term = term.map_err(|m| topology.source.error(b.at, m))?;
                let kind = self.kind(&term, names(&pair), Some(&format!("not-excluded-{v}-{w}")));
                all.push((List::Bonds, kind, pair.to_vec()));
            }
        }
        for (list, name) in [(List::Angles, "Angles"), (List::Dihedrals, "Dihedrals")] {
            if self.exclude.contains(&name) {
                covered.extend(ends(found, list));
            }
        }
        for pair in &found.excluded {
            let qq = qq(pair);
            if qq != 0.0 {
                let term = Term::reaction_field(qq, &field.of_excluded());
                let kind = self.kind(&term, vec![], Some("reaction-field"));
                all.push((List::Bonds, kind, pair.to_vec()));
            } else if !covered.contains(pair) {
                let kind = self.kind(&Term::exclusion(), vec![], Some("excluded"));
                all.push((List::Bonds, kind, pair.to_vec()));
            }
        }
        Ok(all)
    }

    /// Returns the number of the type with these parameters. Its name is that of the particle types, with a number if types
    /// of particles have several sets of parameters.
    fn kind(&mut self, term: &Term, names: Vec<String>, name: Option<&str>) -> u32 {
        let base = name.map_or_else(|| names.join("-"), String::from);
        let reversed: Vec<String> = names.iter().rev().cloned().collect();
        let list = term.form.list.index();
        let text = format!("{}({}) {}", term.form.component, term.form.settings, term.row);
        let key = (list, text, names.min(reversed));
        if let Some(kind) = self.index.get(&key) {
            return *kind;
        }
        let mut unused = base.clone();
        let mut k = 2;
        while !self.names.insert((list, unused.clone())) {
            unused = format!("{base}:{k}");
            k += 1;
        }
        let types = &mut self.types[list];
        let kind = types.len() as u32;
        types.push(LinkType { name: unused, term: term.clone() });
        self.index.insert(key, kind);
        kind
    }
}

/// Iterates over the pairs of the first and last particles of a list.
fn ends(found: &Interactions, list: List) -> impl Iterator<Item = [u32; 2]> + use<'_> {
    let of_list = found.bonded.iter().filter(move |b| b.term.form.list == list);
    of_list.map(|b| pair(b.atoms[0], b.atoms[b.atoms.len() - 1]))
}
