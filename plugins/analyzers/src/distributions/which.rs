//! Selection of pairs by exclusions and molecules.

use galamost_measure::molecules;
use galamost_plugin_api::error::Position;
use galamost_plugin_api::params::{FromValue, Value};
use galamost_plugin_api::prelude::*;

/// Links whose particles are excluded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Linked {
    Bonds,
    Angles,
    Dihedrals,
    Impropers,
}

impl FromValue for Linked {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        match value.text() {
            "Bonds" => Some(Self::Bonds),
            "Angles" => Some(Self::Angles),
            "Dihedrals" => Some(Self::Dihedrals),
            "Impropers" => Some(Self::Impropers),
            text => {
                errors.push(value.error(format!("expected {}, found `{text}`", Self::describe())));
                None
            }
        }
    }
    fn describe() -> String {
        "`Bonds`, `Angles`, `Dihedrals` or `Impropers`".into()
    }
}

/// Selection of pairs by molecule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Only {
    SameMolecule,
    OtherMolecules,
}

impl FromValue for Only {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        match value.text() {
            "SameMolecule" => Some(Self::SameMolecule),
            "OtherMolecules" => Some(Self::OtherMolecules),
            text => {
                errors.push(value.error(format!("expected {}, found `{text}`", Self::describe())));
                None
            }
        }
    }
    fn describe() -> String {
        "`SameMolecule` or `OtherMolecules`".into()
    }
}

/// Parameters that select pairs.
#[derive(Clone, Debug, PartialEq, Params)]
pub struct Which {
    /// Pairs to exclude: the two end particles of bonds, angles, or dihedrals, all pairs of impropers: `[Bonds, Angles,
    /// Dihedrals, Impropers]`.
    #[param(default = vec![])]
    exclude: Vec<Linked>,
    /// Restriction to pairs in one molecule (`SameMolecule`) or in different ones (`OtherMolecules`); default: both.
    /// Molecules are defined by the array `molecule`, or by bonds.
    only: Option<Spanned<Only>>,
}

impl Which {
    /// Requests the data that the selection needs.
    ///
    /// # Errors
    /// Returns an error if molecules are not defined.
    pub fn bind(&self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        if let Some(only) = &self.only {
            molecules::need(system, needs, only.at)?;
        }
        needs.wants.topology |= !self.exclude.is_empty() || self.only.is_some();
        Ok(())
    }

    /// Returns whether the selection restricts the pairs.
    pub fn restricts(&self) -> bool {
        !self.exclude.is_empty() || self.only.is_some()
    }

    /// Returns the selection for one frame.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn selection(&self, host: &Host, frame: &Frame<'_>) -> Result<PairSelection> {
        let n = frame.call().state.n_local as usize;
        let mut partners = vec![];
        let mut add = |a: u32, b: u32| partners.extend([(a, b), (b, a)]);
        for linked in &self.exclude {
            match linked {
                Linked::Bonds => frame.bonds().iter().for_each(|l| add(l.tags[0], l.tags[1])),
                Linked::Angles => frame.angles().iter().for_each(|l| add(l.tags[0], l.tags[2])),
                Linked::Dihedrals => frame.dihedrals().iter().for_each(|l| add(l.tags[0], l.tags[3])),
                Linked::Impropers => {
                    for l in frame.impropers() {
                        (0..4).for_each(|k| (0..k).for_each(|j| add(l.tags[j], l.tags[k])));
                    }
                }
            }
        }
        partners.sort_unstable();
        let mut first = vec![];
        if !partners.is_empty() {
            first = vec![0u32; n + 1];
            partners.iter().for_each(|(a, _)| first[*a as usize + 1] += 1);
            for i in 0..n {
                first[i + 1] += first[i];
            }
        }
        let mut molecule = vec![];
        if self.only.is_some() {
            let bonds: Vec<[u32; 2]> = frame.bonds().iter().map(|l| l.tags).collect();
            molecule = molecules::numbers(host, &frame.call().state, &bonds)?;
        }
        let same = self.only.as_ref().is_some_and(|o| o.value == Only::SameMolecule);
        Ok(PairSelection { first, partner: partners.into_iter().map(|(_, b)| b).collect(), molecule, same })
    }
}

/// Selected pairs of one frame.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PairSelection {
    /// Index of the first partner of each particle by tag; empty without exclusions.
    pub first: Vec<u32>,
    /// Tags of excluded partners.
    pub partner: Vec<u32>,
    /// Molecule of each particle by tag; empty without `only`.
    pub molecule: Vec<u32>,
    /// Whether pairs must be in one molecule; otherwise in different ones.
    pub same: bool,
}

impl PairSelection {
    /// Returns whether the pair of these tags is selected.
    #[inline]
    pub fn has(&self, i: usize, j: usize) -> bool {
        if !self.molecule.is_empty() && (self.molecule[i] == self.molecule[j]) != self.same {
            return false;
        }
        self.first.is_empty() || !self.partner[self.first[i] as usize..self.first[i + 1] as usize].contains(&(j as u32))
    }
}

/// Returns the index of a type.
///
/// # Errors
/// Returns an error if the name is unknown.
pub fn type_of(name: &str, at: Position, what: &str, types: &[String]) -> Result<usize> {
    types.iter().position(|t| t == name).ok_or_else(|| {
        let message = match types {
            [] => format!("unknown {what} type \"{name}\"; the system has no {what} types"),
            _ => format!("unknown {what} type \"{name}\"; the {what} types are {}", types.join(", ")),
        };
        InputError::at(at, message).into()
    })
}

/// Returns the number of particles of each type.
pub fn numbers_of(frame: &Frame<'_>, types: usize) -> Vec<f64> {
    let mut n = vec![0.0; types];
    frame.type_id().iter().for_each(|k| n[*k as usize] += 1.0);
    n
}

/// Returns the number of pairs of particles of two types, counting each pair once.
pub fn pairs_of(numbers: &[f64], [a, b]: [usize; 2]) -> f64 {
    if a == b { 0.5 * numbers[a] * (numbers[a] - 1.0) } else { numbers[a] * numbers[b] }
}
