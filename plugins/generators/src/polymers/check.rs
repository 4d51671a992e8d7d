//! Checks of the parameters of `Polymers`.

use crate::polymers::component::{Polymers, SinglePlacement};
use crate::polymers::geometry::wrapped;
use crate::polymers::graft::Graft;
use crate::polymers::notation::Molecule;
use crate::polymers::species::{Species, is_type_of};
use galamost_plugin_api::error::{Errors, nearest};
use galamost_plugin_api::prelude::*;
use std::f64::consts::PI;

/// Densest packing fraction of disks and of spheres.
const CLOSE_PACKED: [f64; 2] = [0.906_9, 0.740_5];

/// Rejects bonds that are longer than half the box: a bond joins nearest images.
///
/// # Errors
/// Returns an error with the longest bond.
pub fn check_lengths(species: &[(Species, usize)], s: &Snapshot) -> Result<()> {
    let half = s.box_length.iter().filter(|l| **l > 0.0).fold(f64::INFINITY, |m, l| m.min(0.5 * l));
    let bonds = species.iter().flat_map(|(k, _)| k.lengths.iter().skip(1));
    match bonds.copied().fold(0.0, f64::max) {
        longest if longest > half => Err(Error::input(format!(
            "bonds of length {longest} are longer than half the shortest box length ({half}): a bond joins nearest images"
        ))),
        _ => Ok(()),
    }
}

/// Returns why a molecule cannot be built: a ring that its given angles keep open.
fn unclosed(k: &Species, notation: &str) -> Option<String> {
    let [least, span] = k.open_ring()?;
    Some(format!(
        "a ring of \"{notation}\" cannot close: the angles of `angles` keep the beads beside its last one at least {least:.3} apart, and \
         the bonds of the last bead span {span:.3}; give a smaller `theta_deg`, or no `theta_deg`, which leaves the angle free"
    ))
}

/// Returns why molecules cannot be placed: a region or a surface that the box does not contain, or grafting points outside of the region.
fn misplaced(k: &Species, count: usize, length: [f64; 3]) -> Option<String> {
    if let Some(text) = k.region.misfit(length) {
        return Some(text);
    }
    let graft = k.graft.as_ref()?;
    if let Some(text) = graft.misfit(length) {
        return Some(text);
    }
    // a surface may be that of the region: points deviate from it by rounding
    let rounding = 1e-12 * length.into_iter().fold(0.0, f64::max);
    let outside = |r: &[f64; 3]| !k.region.contains_nearly(wrapped(*r, length).0, length, rounding);
    let [x, y, z] = graft.points(count, length).into_iter().find(outside)?;
    Some(format!(
        "the grafting point ({x:.4}, {y:.4}, {z:.4}) lies outside of the molecule's `region`; use a region that contains the \
         whole grafting surface"
    ))
}

impl Polymers {
    /// Rejects molecules that have no place in the box, and rings that cannot close.
    ///
    /// # Errors
    /// Returns an error for each kind of molecules whose region or grafting surface does not fit, or whose angles keep a ring open.
    pub fn check_places(&self, species: &[(Species, usize)], s: &Snapshot) -> Result<()> {
        let mut errors = Errors::default();
        for ((k, count), e) in species.iter().zip(&self.molecules) {
            if let Some(text) = misplaced(k, *count, s.box_length) {
                errors.push(InputError::at(e.at, text));
            }
            let notation = &e.value.molecule;
            if let Some(text) = unclosed(k, &notation.value).filter(|_| *count > 0) {
                errors.push(InputError::at(notation.at, text));
            }
        }
        errors.into_result(Some(()))
    }

    /// Returns the number of molecules of each kind.
    ///
    /// # Errors
    /// Returns an error if counts and fractions are missing, contradictory or too large.
    pub fn counts(&self, molecules: &[Molecule], s: &Snapshot) -> Result<Vec<usize>> {
        let mut errors = Errors::default();
        let total = match (self.beads, self.density) {
            (Some(_), Some(_)) => {
                errors.push(InputError::new("give `beads` or `density`, not both"));
                None
            }
            (Some(n), None) => Some(f64::from(n)),
            (None, Some(rho)) => Some((rho * s.volume()).round()),
            (None, None) => None,
        };
        let fractions: f64 = self.molecules.iter().filter_map(|e| e.value.fraction).sum();
        if fractions > 1.0 + 1e-9 {
            errors.push(InputError::new(format!("the sum of all `fraction` is {fractions}; it must be at most 1")));
        }
        let mut counts = vec![];
        for (e, m) in self.molecules.iter().zip(molecules) {
            let n = match (e.value.count, e.value.fraction, total) {
                (Some(n), None, _) => n as usize,
                (None, Some(f), Some(total)) => (f * total / m.beads.len() as f64).round() as usize,
                (None, Some(_), None) => {
                    errors.push(InputError::at(e.at, "a `fraction` needs `beads` or `density` of the whole system"));
                    0
                }
                _ => {
                    errors.push(InputError::at(e.at, "give either `count` or `fraction`"));
                    0
                }
            };
            counts.push(n);
        }
        let beads =
            counts.iter().zip(molecules).fold(0usize, |n, (k, m)| n.saturating_add(k.saturating_mul(m.beads.len())));
        let limit = u32::MAX as usize / 4;
        if beads.saturating_add(s.len()) > limit {
            errors.push(InputError::new(format!("{beads} beads exceed the limit of {limit} particles")));
        } else if let Err(message) = s.require(beads as f64) {
            errors.push(InputError::new(message));
        }
        errors.into_result(Some(counts))
    }

    /// Parses the notations and checks all listed types against them.
    ///
    /// # Errors
    /// Returns an error if a notation is invalid or no molecule contains a listed type.
    pub fn read(&self) -> Result<Vec<Molecule>> {
        let mut errors = Errors::default();
        let mut molecules = vec![];
        for e in &self.molecules {
            match Molecule::read(&e.value.molecule.value) {
                Ok(m) => molecules.push(m),
                Err(text) => errors.push(InputError::at(e.value.molecule.at, text)),
            }
        }
        if self.molecules.is_empty() {
            errors.push(InputError::new("`molecules` is empty"));
        }
        if molecules.len() == self.molecules.len() {
            self.check_listed_types(&molecules, &mut errors);
        }
        errors.into_result(Some(molecules))
    }

    /// Reports listed types that no molecule contains, and lattice placement of anything but single beads.
    fn check_listed_types(&self, molecules: &[Molecule], errors: &mut Errors) {
        let names_of = |m: &Molecule, list: Vec<usize>| list.iter().map(|i| m.beads[*i].clone()).collect::<Vec<_>>();
        let mut existing: [Vec<Vec<String>>; 4] = Default::default();
        for (e, m) in self.molecules.iter().zip(molecules) {
            existing[0].extend(m.beads.iter().map(|b| vec![b.clone()]));
            existing[1].extend(m.bonds().into_iter().map(|b| names_of(m, b.to_vec())));
            if let Some(Graft::Particles { of }) = &e.value.graft {
                existing[1].push(vec![of.clone(), m.beads[0].clone()]);
            }
            existing[2].extend(m.angles().into_iter().map(|b| names_of(m, b.to_vec())));
            existing[3].extend(m.dihedrals().into_iter().map(|b| names_of(m, b.to_vec())));
            for list in &mut existing {
                list.sort();
                list.dedup();
            }
            if e.value.places == SinglePlacement::Lattice && (m.beads.len() > 1 || e.value.graft.is_some()) {
                errors.push(InputError::at(e.at, "`places: Lattice` is for single beads that are not grafted"));
            }
        }
        let what = ["a particle", "a bond", "an angle", "a dihedral"];
        for ((what, list), existing) in what.into_iter().zip(self.listed_types()).zip(&existing) {
            for (name, at) in list {
                if existing.iter().any(|t| is_type_of(&name, t)) {
                    continue;
                }
                let all: Vec<String> = existing.iter().map(|t| t.join("-")).collect();
                let hint = match nearest(&name, all.iter().map(String::as_str)) {
                    Some(n) => format!("; did you mean \"{n}\"?"),
                    None => String::new(),
                };
                errors.push(InputError::at(at, format!("no molecule has {what} of the type \"{name}\"{hint}")));
            }
        }
    }

    /// Rejects systems that are denser than the densest packing of spheres.
    ///
    /// # Errors
    /// Returns an error if the box, or the region of single beads, is too small.
    pub fn check_room(&self, species: &[(Species, usize)], s: &Snapshot, min_distance2: &[f64]) -> Result<()> {
        let n = s.types.len();
        let ball = |t: usize| {
            let d2 = min_distance2[t * n + t];
            if s.dimensions == 3 { PI / 6.0 * d2.powf(1.5) } else { PI / 4.0 * d2 }
        };
        let volume_of =
            |k: &Species, count: usize| count as f64 * k.types.iter().map(|t| ball(*t as usize)).sum::<f64>();
        // beads of one molecule may overlap if bonds are short: count only single beads and long bonds
        let cannot_overlap = |(k, _): &&(Species, usize)| {
            let least = |i: usize| min_distance2[k.types[i] as usize * (n + 1)];
            (1..k.types.len()).all(|i| k.lengths[i].powi(2) >= least(i) && k.near[i].len() < 3)
        };
        let present: f64 = s.type_id.iter().map(|t| ball(*t as usize)).sum();
        let required: f64 =
            species.iter().filter(cannot_overlap).map(|(k, count)| volume_of(k, *count)).sum::<f64>() + present;
        let packing = CLOSE_PACKED[s.dimensions as usize - 2];
        if required > packing * s.volume() {
            return Err(Error::input(format!(
                "there is no room: at these distances the beads fill {:.3} of the box, and the densest packing is \
                 {packing:.3}; use a smaller `distance` and push the beads apart in a first stage",
                required / s.volume(),
            )));
        }
        for ((k, count), e) in species.iter().zip(&self.molecules) {
            let single = k.types.len() == 1 && e.value.graft.is_none();
            // beads may extend out of the region by half a diameter, so check only regions much larger than beads
            let volume = k.region.volume(s.box_length);
            let diameter = min_distance2[k.types[0] as usize * (n + 1)].sqrt();
            if single && volume_of(k, *count) > 2.0 * volume && volume > (8.0 * diameter).powi(s.dimensions as i32) {
                let text = format!("{count} beads do not fit into their region; use a larger region or fewer beads");
                return Err(InputError::at(e.at, text).into());
            }
        }
        Ok(())
    }
}
