//! Bonds, angles and dihedrals of built molecules, by the names of their types.

use crate::builder::component::{Polymers, matching};
use crate::builder::notation::Molecule;
use galamost_plugin_api::error::Position;
use galamost_plugin_api::prelude::*;
use galamost_plugin_api::snapshot::intern;

/// Links of the new molecules.
pub struct Links<'a> {
    of: &'a Polymers,
    names: [Vec<(String, Position)>; 3],
    bonds: Vec<(String, [u32; 2])>,
    angles: Vec<(String, [u32; 3])>,
    dihedrals: Vec<(String, [u32; 4])>,
    /// Links of the molecule that was added last, with names: molecules of a kind come one after the other.
    last: Option<Template>,
}

struct Template {
    molecule: Molecule,
    bonds: Vec<(String, [usize; 2])>,
    angles: Vec<(String, [usize; 3])>,
    dihedrals: Vec<(String, [usize; 4])>,
}

impl<'a> Links<'a> {
    pub fn new(of: &'a Polymers) -> Self {
        let names = of.link_names();
        Self { of, names, bonds: vec![], angles: vec![], dihedrals: vec![], last: None }
    }

    /// The name of the type of a bond.
    fn bond_name(&self, [a, b]: [&str; 2]) -> String {
        if let Some(n) = matching(&self.names[0], &[a, b]) {
            return n.into();
        }
        // the type that appears first in the list of molecules stands first
        let texts = self.of.notations().filter_map(|text| Molecule::read(text).ok());
        let order: Vec<String> = texts.flat_map(|m| m.beads).collect();
        let place = |t: &str| order.iter().position(|x| x == t).map_or(-1, |p| p as i64);
        if place(a) <= place(b) { format!("{a}-{b}") } else { format!("{b}-{a}") }
    }

    /// Adds a bond that belongs to no molecule's notation.
    pub fn bond(&mut self, names: [&str; 2], tags: [u32; 2]) {
        self.bonds.push((self.bond_name(names), tags));
    }

    /// Adds the links of a molecule whose first bead has this tag.
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
            self.last = Some(Template { molecule: m.clone(), bonds, angles, dihedrals });
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

    /// Hands everything to the state.
    pub fn finish(self, s: &mut Snapshot) {
        fn put<const N: usize>(list: Vec<(String, [u32; N])>, types: &mut Vec<String>, links: &mut Vec<Link<N>>) {
            links.extend(list.into_iter().map(|(name, tags)| Link { kind: intern(types, &name), tags }));
        }
        put(self.bonds, &mut s.bond_types, &mut s.bonds);
        put(self.angles, &mut s.angle_types, &mut s.angles);
        put(self.dihedrals, &mut s.dihedral_types, &mut s.dihedrals);
    }
}
