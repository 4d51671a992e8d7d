//! Which pairs are counted: by type, without those that are bonded, of one molecule or of different ones.

use galamost_measure::molecules;
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
        if let Some(only) = &self.only {
            molecules::need(system, needs, only.at)?;
        }
        needs.wants.topology |= !self.exclude.is_empty() || self.only.is_some();
        Ok(())
    }

    /// Whether some pairs are left out.
    pub fn leaves_out(&self) -> bool {
        !self.exclude.is_empty() || self.only.is_some()
    }

    /// For the pairs of one frame.
    ///
    /// # Errors
    /// The device's words.
    pub fn of(&self, host: &Host, frame: &Frame<'_>) -> Result<Choice> {
        let n = frame.call().state.n_local as usize;
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
        Ok(Choice { first, partner: partners.into_iter().map(|(_, b)| b).collect(), molecule, same })
    }
}

/// Which pairs of one frame are counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// First partner of each particle by tag; empty without exclusions.
    pub first: Vec<u32>,
    /// Tags.
    pub partner: Vec<u32>,
    /// Of each particle by tag; empty if it does not matter.
    pub molecule: Vec<u32>,
    /// Only pairs of one molecule, else of different ones.
    pub same: bool,
}

impl Choice {
    /// Whether the pair of these tags is.
    #[inline]
    pub fn has(&self, i: usize, j: usize) -> bool {
        if !self.molecule.is_empty() && (self.molecule[i] == self.molecule[j]) != self.same {
            return false;
        }
        self.first.is_empty() || !self.partner[self.first[i] as usize..self.first[i + 1] as usize].contains(&(j as u32))
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
    frame.type_id().iter().for_each(|k| n[*k as usize] += 1.0);
    n
}

/// Pairs of particles of two types, each once.
pub fn pairs_of(numbers: &[f64], [a, b]: [usize; 2]) -> f64 {
    if a == b { 0.5 * numbers[a] * (numbers[a] - 1.0) } else { numbers[a] * numbers[b] }
}
