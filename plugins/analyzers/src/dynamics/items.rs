//! Selected particles or molecules.

use crate::selection::{Of, particle_type};
use galamost_measure::molecules::{self, Molecules};
use galamost_measure::pack::{Unpack, put};
use galamost_measure::positions;
use galamost_measure::tree::ITEMS;
use galamost_plugin_api::analyzer::FrameCall;
use galamost_plugin_api::prelude::*;

/// Padding entry of a block.
pub const NONE: u32 = u32::MAX;

/// Selection of particles by type, or of molecules.
#[derive(Clone, Debug, PartialEq, Params)]
pub struct Which {
    /// Measured objects: `Particles` (default), or `Molecules`: centers of mass of molecules of at least two particles.
    of: Option<Spanned<Of>>,
    /// Particle types, each with separate columns; default: all. With `Molecules`: only molecules that contain a
    /// particle of these types.
    types: Option<Spanned<Vec<String>>>,
}

impl Which {
    /// Selects particles of these types.
    pub fn types(types: Option<Spanned<Vec<String>>>) -> Self {
        Self { of: None, types }
    }

    /// Returns whether molecules are selected.
    pub fn molecules(&self) -> bool {
        self.of.as_ref().is_some_and(|o| o.value == Of::Molecules)
    }

    /// Returns the names of the species and their types.
    ///
    /// # Errors
    /// Returns an error if a type is unknown, or if molecules are not defined.
    pub fn bind(&self, system: &SystemInfo, needs: &mut Needs) -> Result<(Vec<String>, Vec<u32>)> {
        if let Some(of) = self.of.as_ref().filter(|_| self.molecules()) {
            molecules::need(system, needs, of.at)?;
        }
        if let Some(types) = self.types.as_ref().filter(|t| t.value.is_empty()) {
            return Err(InputError::at(types.at, "the list is empty; add particle types or remove it").into());
        }
        let mut types = vec![];
        for name in self.types.iter().flat_map(|t| &t.value) {
            let at = self.types.as_ref().map(|t| t.at).unwrap_or_default();
            let k = particle_type(name, at, system)?;
            if types.contains(&(k as u32)) {
                return Err(InputError::at(at, format!("the type \"{name}\" is listed twice")).into());
            }
            types.push(k as u32);
        }
        if types.is_empty() {
            types = (0..system.types.len() as u32).collect();
        }
        let names = match self.molecules() {
            true => vec!["molecules".to_string()],
            false => types.iter().map(|t| system.types[*t as usize].clone()).collect(),
        };
        Ok((names, types))
    }
}

/// Selected items, species by species, each padded to whole blocks of [`ITEMS`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Items {
    /// Tags, or indices of molecules; [`NONE`] for padding.
    pub entries: Vec<u32>,
    /// First block of each species, then the total number of blocks.
    pub first: Vec<u32>,
    /// Number of particles or molecules of each species.
    pub count: Vec<u64>,
    /// Members of the molecules; empty for particles.
    pub molecules: Molecules,
}

impl Items {
    /// Selects items in the current state.
    ///
    /// # Errors
    /// Returns an error if nothing is selected, or the driver's error.
    pub fn now(which: &Which, types: &[u32], host: &Host, call: &FrameCall<'_>) -> Result<Self> {
        let particle_types = positions::kinds(host, &call.state)?;
        let mut lists: Vec<Vec<u32>> = vec![];
        let mut found = Molecules::default();
        if which.molecules() {
            found = Molecules::now(host, call)?;
            molecules::some(&found)?;
            let has = |m: usize| found.places(m).any(|at| types.contains(&particle_types[found.members[at] as usize]));
            lists.push((0..found.len()).filter(|m| has(*m)).map(|m| m as u32).collect());
        } else {
            lists.extend(types.iter().map(|_| vec![]));
            for (tag, particle_type) in particle_types.iter().enumerate() {
                if let Some(species) = types.iter().position(|t| t == particle_type) {
                    lists[species].push(tag as u32);
                }
            }
        }
        let mut out = Self { first: vec![0], molecules: found, ..Self::default() };
        for list in lists {
            out.count.push(list.len() as u64);
            out.entries.extend(list);
            out.entries.resize(out.entries.len().next_multiple_of(ITEMS), NONE);
            out.first.push((out.entries.len() / ITEMS) as u32);
        }
        if out.entries.is_empty() {
            return Err(Error::Run("no particles of these types exist".into()));
        }
        Ok(out)
    }

    /// Returns the blocks of a species.
    pub fn blocks(&self, species: usize) -> std::ops::Range<usize> {
        self.first[species] as usize..self.first[species + 1] as usize
    }

    /// Serializes the selection for a checkpoint.
    pub fn save(&self, to: &mut Vec<u8>) {
        put(to, &self.entries);
        put(to, &self.first);
        put(to, &self.count);
        self.molecules.save(to);
    }

    /// Restores the selection from a checkpoint of a system of `n` particles and the given number of species.
    ///
    /// # Errors
    /// Returns an error if the checkpoint belongs to another analyzer.
    pub fn load(from: &mut Unpack<'_>, n: u64, species: usize) -> Result<Self> {
        let out = Self {
            entries: from.row()?,
            first: from.row_of(species + 1)?,
            count: from.row_of(species)?,
            molecules: Molecules::load(from, n)?,
        };
        let m = &out.molecules;
        let limit = if m.first.is_empty() || m.members.is_empty() { n } else { m.len() as u64 };
        let rising = |row: &[u32]| row.windows(2).all(|w| w[0] <= w[1]);
        let sound = out.entries.len().is_multiple_of(ITEMS)
            && out.entries.iter().all(|e| *e == NONE || u64::from(*e) < limit)
            && rising(&out.first)
            && out.first.last().is_some_and(|b| *b as usize * ITEMS == out.entries.len());
        if sound { Ok(out) } else { Err(Error::Run("the checkpoint belongs to another analyzer".into())) }
    }
}
