//! Which pairs are counted: by type, without those that are bonded, of one molecule or of different ones.

use galamost_plugin_api::error::Position;
use galamost_plugin_api::params::{FromValue, Value};
use galamost_plugin_api::prelude::*;

/// Whose two ends are not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Linked {
    Bonds,
    Angles,
    Dihedrals,
}

impl FromValue for Linked {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        match value.text() {
            "Bonds" => Some(Self::Bonds),
            "Angles" => Some(Self::Angles),
            "Dihedrals" => Some(Self::Dihedrals),
            text => {
                errors.push(value.error(format!("expected {}, found `{text}`", Self::describe())));
                None
            }
        }
    }
    fn describe() -> String {
        "`Bonds`, `Angles` or `Dihedrals`".into()
    }
}

/// Pairs by their molecules.
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

/// Pairs that are not counted.
#[derive(Clone, Debug, PartialEq, Params)]
pub struct Which {
    /// Pairs at the two ends of a bond, an angle or a dihedral are not counted: `[Bonds, Angles, Dihedrals]`.
    #[param(default = vec![])]
    exclude: Vec<Linked>,
    /// Only pairs of one molecule, `SameMolecule`, or of different ones, `OtherMolecules`; without it both. Molecules are those
    /// of the array `molecule`, or what bonds hold together.
    only: Option<Spanned<Only>>,
}

impl Which {
    /// What a frame must come with.
    ///
    /// # Errors
    /// Nothing says what a molecule is.
    pub fn bind(&self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        if let Some(only) = &self.only
            && !system.has_array("molecule")
            && system.bond_types.is_empty()
        {
            let what = "the molecules are not known: the initial state has neither an array `molecule` nor bonds";
            return Err(InputError::at(only.at, what).into());
        }
        needs.wants.topology |= !self.exclude.is_empty() || self.only.is_some();
        Ok(())
    }

    /// For the pairs of one frame.
    pub fn of(&self, frame: &Frame<'_>) -> Choice {
        let n = frame.position().len();
        let mut partners = vec![];
        let mut add = |a: u32, b: u32| partners.extend([(a, b), (b, a)]);
        for kind in &self.exclude {
            match kind {
                Linked::Bonds => frame.bonds().iter().for_each(|l| add(l.tags[0], l.tags[1])),
                Linked::Angles => frame.angles().iter().for_each(|l| add(l.tags[0], l.tags[2])),
                Linked::Dihedrals => frame.dihedrals().iter().for_each(|l| add(l.tags[0], l.tags[3])),
            }
        }
        partners.sort_unstable();
        let mut first = vec![];
        if !partners.is_empty() {
            first = vec![0; n + 1];
            partners.iter().for_each(|(a, _)| first[*a as usize + 1] += 1);
            for i in 0..n {
                first[i + 1] += first[i];
            }
        }
        let molecule = self.only.as_ref().map(|_| molecules(frame)).unwrap_or_default();
        let same = self.only.as_ref().is_some_and(|o| o.value == Only::SameMolecule);
        Choice { first, partner: partners.into_iter().map(|(_, b)| b).collect(), molecule, same }
    }
}

/// The molecule of each particle; particles without one have numbers of their own.
fn molecules(frame: &Frame<'_>) -> Vec<i64> {
    let n = frame.position().len();
    if let Some((1, given)) = frame.int_array("molecule") {
        return given.iter().zip(0i64..).map(|(m, tag)| if *m < 0 { -1 - tag } else { i64::from(*m) }).collect();
    }
    fn root(parent: &mut [usize], mut i: usize) -> usize {
        while parent[i] != i {
            parent[i] = parent[parent[i]];
            i = parent[i];
        }
        i
    }
    let mut parent: Vec<usize> = (0..n).collect();
    for bond in frame.bonds() {
        let [a, b] = bond.tags.map(|t| root(&mut parent, t as usize));
        parent[a.max(b)] = a.min(b);
    }
    (0..n).map(|i| root(&mut parent, i) as i64).collect()
}

/// Which pairs of one frame are counted.
pub struct Choice {
    /// First partner of each particle; empty without exclusions.
    first: Vec<usize>,
    partner: Vec<u32>,
    molecule: Vec<i64>,
    same: bool,
}

impl Choice {
    /// Whether the pair i, j is.
    #[inline]
    pub fn has(&self, i: usize, j: usize) -> bool {
        if !self.molecule.is_empty() && (self.molecule[i] == self.molecule[j]) != self.same {
            return false;
        }
        self.first.is_empty() || !self.partner[self.first[i]..self.first[i + 1]].contains(&(j as u32))
    }
}

/// The number of a type.
///
/// # Errors
/// There is none of this name.
pub fn type_of(name: &str, at: Position, what: &str, types: &[String]) -> Result<usize> {
    types.iter().position(|t| t == name).ok_or_else(|| {
        let message = match types {
            [] => format!("there is no {what} type \"{name}\"; the system has no {what} types"),
            _ => format!("there is no {what} type \"{name}\"; the {what} types are {}", types.join(", ")),
        };
        InputError::at(at, message).into()
    })
}

/// Particles of each type.
pub fn numbers_of(frame: &Frame<'_>, types: usize) -> Vec<f64> {
    let mut n = vec![0.0; types];
    frame.kind().iter().for_each(|k| n[*k as usize] += 1.0);
    n
}

/// Pairs of particles of two types, each once.
pub fn pairs_of(numbers: &[f64], [a, b]: [usize; 2]) -> f64 {
    if a == b { 0.5 * numbers[a] * (numbers[a] - 1.0) } else { numbers[a] * numbers[b] }
}
