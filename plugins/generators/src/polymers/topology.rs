//! Bonds, angles and dihedrals of the new molecules, by the names of their types.

use crate::polymers::component::Polymers;
use crate::polymers::notation::Molecule;
use crate::polymers::species::matching;
use galamost_plugin_api::error::Position;
use galamost_plugin_api::prelude::*;
use galamost_plugin_api::snapshot::intern;

/// Collects the topology of the new molecules.
pub struct TopologyBuilder<'a> {
    settings: &'a Polymers,
    /// Names of bond, angle and dihedral types that the parameters list.
    names: [Vec<(String, Position)>; 3],
    bonds: Vec<(String, [u32; 2])>,
    angles: Vec<(String, [u32; 3])>,
    dihedrals: Vec<(String, [u32; 4])>,
    /// Named links of the last added molecule; equal molecules follow each other.
    last: Option<NamedLinks>,
}

/// Links of one molecule with the names of their types.
struct NamedLinks {
    molecule: Molecule,
    bonds: Vec<(String, [usize; 2])>,
    angles: Vec<(String, [usize; 3])>,
    dihedrals: Vec<(String, [usize; 4])>,
}

impl<'a> TopologyBuilder<'a> {
    /// Returns an empty topology.
    pub fn new(settings: &'a Polymers) -> Self {
        let [_, names @ ..] = settings.listed_types();
        Self { settings, names, bonds: vec![], angles: vec![], dihedrals: vec![], last: None }
    }

    /// Returns the name of the bond type of two particle types.
    fn bond_name(&self, [a, b]: [&str; 2]) -> String {
        if let Some(n) = matching(&self.names[0], &[a, b]) {
            return n.into();
        }
        // the type that appears first in the list of molecules comes first
        let molecules = self.settings.notations().filter_map(|text| Molecule::read(text).ok());
        let order: Vec<String> = molecules.flat_map(|m| m.beads).collect();
        let rank = |t: &str| order.iter().position(|x| x == t).map_or(-1, |p| p as i64);
        if rank(a) <= rank(b) { format!("{a}-{b}") } else { format!("{b}-{a}") }
    }

    /// Adds a single bond.
    pub fn bond(&mut self, names: [&str; 2], tags: [u32; 2]) {
        self.bonds.push((self.bond_name(names), tags));
    }

    /// Adds the links of a molecule whose first bead has the tag `base`.
    pub fn add(&mut self, m: &Molecule, base: u32) {
        if self.last.as_ref().is_none_or(|t| t.molecule != *m) {
            let name = |i: usize| m.beads[i].as_str();
            let bonds = m.bonds().into_iter().map(|[a, b]| (self.bond_name([name(a), name(b)]), [a, b])).collect();
            let listed = |k: usize, l: &[usize]| {
                let beads: Vec<&str> = l.iter().map(|i| name(*i)).collect();
                matching(&self.names[k], &beads).map(str::to_string)
            };
            let angles = m.angles().into_iter().filter_map(|l| Some((listed(1, &l)?, l))).collect();
            let dihedrals = m.dihedrals().into_iter().filter_map(|l| Some((listed(2, &l)?, l))).collect();
            self.last = Some(NamedLinks { molecule: m.clone(), bonds, angles, dihedrals });
        }
        let Some(t) = &self.last else { return };
        fn shifted<const N: usize>(
            list: &[(String, [usize; N])],
            base: u32,
        ) -> impl Iterator<Item = (String, [u32; N])> {
            list.iter().map(move |(n, l)| (n.clone(), l.map(|i| base + i as u32)))
        }
        self.bonds.extend(shifted(&t.bonds, base));
        self.angles.extend(shifted(&t.angles, base));
        self.dihedrals.extend(shifted(&t.dihedrals, base));
    }

    /// Adds all links to the snapshot.
    pub fn finish(self, s: &mut Snapshot) {
        fn put<const N: usize>(list: Vec<(String, [u32; N])>, types: &mut Vec<String>, links: &mut Vec<Link<N>>) {
            links.extend(list.into_iter().map(|(name, tags)| Link { kind: intern(types, &name), tags }));
        }
        put(self.bonds, &mut s.bond_types, &mut s.bonds);
        put(self.angles, &mut s.angle_types, &mut s.angles);
        put(self.dihedrals, &mut s.dihedral_types, &mut s.dihedrals);
    }
}
