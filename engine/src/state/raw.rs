//! The state in the form that all backends exchange: raw arrays in tag order, bit for bit.
//!
//! The initial state, checkpoints and the data of analyzers use this form. Backends only read and write raw sections;
//! their conversion to the numbers of a snapshot is here.

use crate::state::arrays::{self, ArrayId, Element, ParticleArray, Restored};
use crate::state::buffers::bytes_of;
use crate::state::store::Store;
use crate::state::topology::Topology;
use galamost_plugin_api::component::{ArrayNeed, GroupNeed};
use galamost_plugin_api::device::from_bytes;
use galamost_plugin_api::error::{Error, Result};
use galamost_plugin_api::integrator::GroupInfo;
use galamost_plugin_api::precision::{Fixed, Float64, Precision};
use galamost_plugin_api::snapshot::{Array, Snapshot};
use galamost_plugin_api::views::{COMPONENT_VARYINGS, Globals};
use std::collections::BTreeMap;

/// Facts of a system that do not change during a run.
#[derive(Clone, Debug)]
pub struct Facts {
    /// Number of particles.
    pub n: usize,
    /// Precision.
    pub precision: Precision,
    /// 2 or 3.
    pub dimensions: u32,
    /// Number of particle types.
    pub n_types: u32,
    /// Numbers of types of bonds, angles, dihedrals and impropers.
    pub link_types: [u32; 4],
    /// The run's seed.
    pub seed: u64,
    /// Groups other than all particles. A group's index is its bit in the group words.
    pub groups: Vec<GroupNeed>,
    /// Number of particles of each group.
    pub members: Vec<usize>,
    /// Number of particles with mass.
    pub massive: usize,
    /// Mean mass of these; 1 if there are none.
    pub mass: f64,
    /// Optional arrays that components need, each once.
    pub arrays: Vec<ArrayNeed>,
    /// Arrays that no component needs. They stay on the host, in tag order, for output.
    pub idle_arrays: BTreeMap<String, Array>,
    /// Rotational degrees of freedom: of all particles, then of each group; empty if no particle rotates.
    pub rotational: Vec<f64>,
    /// The system started with axes (`orientation`), so output contains axes.
    pub axes: bool,
}

impl Facts {
    /// Returns the particle arrays of the system, see [`arrays::table`].
    pub fn particle_arrays(&self) -> Vec<ParticleArray> {
        arrays::table(&self.arrays)
    }

    /// Returns the size in bytes of one particle's element of an array; `None` if the system does not have the array.
    pub fn stride(&self, name: &str) -> Option<usize> {
        let array = self.particle_arrays().into_iter().find(|a| a.name == name)?;
        Some(array.element.stride(self.precision))
    }

    /// Returns the group information of an integrator; `bit` is 32 for all particles. If the total momentum is
    /// conserved, the degrees of freedom exclude it, and the `constraints` of the group in any case.
    pub fn group_info(
        &self,
        bit: u32,
        g: &Globals,
        first_varying: u32,
        conserved: bool,
        constraints: u64,
    ) -> GroupInfo {
        let n = self.members.get(bit as usize).copied().unwrap_or(self.n);
        let removed = if n >= self.massive && conserved { 1.0 } else { 0.0 };
        let degrees_of_freedom = f64::from(self.dimensions) * (n as f64 - removed) - constraints as f64;
        let group = self.rotational.get(bit as usize + 1).or(self.rotational.first());
        let rotational_degrees_of_freedom = group.copied().unwrap_or(0.0);
        let value = |k: usize| g.values.get(first_varying as usize + k).copied().unwrap_or(0.0);
        let varying: [f64; COMPONENT_VARYINGS] = std::array::from_fn(value);
        let (n, dimensions, dt) = (n as u64, self.dimensions, g.dt);
        GroupInfo { n, degrees_of_freedom, rotational_degrees_of_freedom, dimensions, dt, varying }
    }
}

/// The state bit for bit, in tag order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RawState {
    /// Step.
    pub step: u64,
    /// Box lengths.
    pub box_length: [f64; 3],
    /// Sections of particles (the saved ones of [`Facts::particle_arrays`]), of integrators (`integrator.ID`), and of
    /// the engine: `rebuild`, `rebuilds`, `built_length`, `grid_length`, `virial`, and in a triclinic box `tilt`,
    /// `built_tilt`, `grid_tilt` and `shear_virial`.
    pub sections: BTreeMap<String, Vec<u8>>,
    /// Bonds, angles, dihedrals, impropers.
    pub topology: Topology,
}

/// The section with the tilt factors.
const TILT: &str = "tilt";

impl RawState {
    /// Returns the tilt factors of the box.
    pub fn tilt(&self) -> [f64; 3] {
        self.numbers(TILT).unwrap_or_default()
    }

    /// Sets the tilt factors of the box.
    pub fn set_tilt(&mut self, tilt: [f64; 3]) {
        if tilt != [0.0; 3] {
            self.put(TILT, tilt);
        }
    }

    /// Returns a section.
    ///
    /// # Errors
    /// Returns an error if the state has no such section.
    pub fn section(&self, name: &str) -> Result<&[u8]> {
        let found = self.sections.get(name).map(Vec::as_slice);
        found.ok_or_else(|| Error::Run(format!("the checkpoint has no section `{name}`")))
    }

    /// Adds a section with three numbers.
    pub fn put(&mut self, name: &str, numbers: [f64; 3]) {
        self.sections.insert(name.into(), numbers.iter().flat_map(|x| x.to_le_bytes()).collect());
    }

    /// Returns the three numbers of a section, if it exists.
    pub fn numbers(&self, name: &str) -> Option<[f64; 3]> {
        let (numbers, _) = self.sections.get(name)?.as_chunks::<8>();
        numbers.iter().map(|b| f64::from_le_bytes(*b)).collect::<Vec<_>>().try_into().ok()
    }

    /// Returns the first 64-bit word of a section; 0 if it does not exist.
    pub fn word(&self, name: &str) -> u64 {
        let bytes = self.sections.get(name).map_or([].as_slice(), Vec::as_slice);
        bytes.iter().take(8).enumerate().map(|(k, b)| u64::from(*b) << (8 * k)).sum()
    }
}

impl RawState {
    /// Converts the state of `n` particles from one precision to another, in reduced coordinates; `arrays` are the optional arrays in use.
    ///
    /// # Errors
    /// Returns an error if a section is missing or too short.
    pub fn convert<'a>(
        &mut self,
        from: Precision,
        to: Precision,
        n: usize,
        arrays: impl Iterator<Item = &'a ArrayNeed>,
    ) -> Result<()> {
        let length = self.box_length;
        let built = self.numbers("built_length").unwrap_or(length);
        let coordinates = |pos: &[u8], low: &[u8], length| match from {
            Precision::Double => positions::<Float64>(pos, low, length),
            _ => positions::<Fixed>(pos, low, length),
        };
        let long_enough = |name: &str, bytes: usize| match self.section(name)?.len() {
            l if l >= bytes * n => Ok(()),
            l => Err(Error::Run(format!("section `{name}` of the checkpoint has {l} bytes"))),
        };
        long_enough(ArrayId::PosType.name(), from.pos_type_size())?;
        long_enough(ArrayId::PosAtBuild.name(), from.pos_type_size())?;
        let low = if from == Precision::Mixed { self.section(ArrayId::PosLow.name())? } else { &[] };
        let (now, types) = coordinates(self.section(ArrayId::PosType.name())?, low, length);
        let (then, _) = coordinates(self.section(ArrayId::PosAtBuild.name())?, &[], built);
        let mut s = Snapshot { position: now.into(), type_id: types.into(), ..Snapshot::default() };
        let mut sections = BTreeMap::new();
        let (stored, low) = encode(&s, to, length);
        sections.insert(ArrayId::PosType.name().into(), stored);
        sections.insert(ArrayId::PosLow.name().into(), low);
        s.position = then.into();
        sections.insert(ArrayId::PosAtBuild.name().into(), encode(&s, to, built).0);
        let as_real = |name: &str| -> Result<Vec<u8>> {
            let numbers = reals(self.section(name)?, from);
            Ok(match to {
                Precision::Double => bytes_of(&numbers).to_vec(),
                _ => numbers.iter().flat_map(|x| (*x as f32).to_ne_bytes()).collect(),
            })
        };
        let real = |a: &ParticleArray| matches!(a.element, Element::Reals(_)) && a.restored != Restored::Never;
        for array in arrays::table(arrays).into_iter().filter(real) {
            let numbers = as_real(&array.name)?;
            sections.insert(array.name, numbers);
        }
        self.sections.extend(sections);
        Ok(())
    }
}

/// Encodes positions, which are reduced coordinates here, and types of a snapshot for a precision. Returns entries and lower bits.
fn encode(s: &Snapshot, precision: Precision, length: [f64; 3]) -> (Vec<u8>, Vec<u8>) {
    fn all<S: Store>(s: &Snapshot, precision: Precision, length: [f64; 3]) -> (Vec<u8>, Vec<u8>) {
        let (mut pos, mut low) = (vec![], vec![]);
        for (x, type_id) in s.position.iter().zip(&s.type_id) {
            let (p, l, _) = S::store(*x, *type_id, length);
            pos.push(p);
            low.push(if precision == Precision::Mixed { l } else { [0; 3] });
        }
        (bytes_of(&pos).to_vec(), bytes_of(&low).to_vec())
    }
    match precision {
        Precision::Double => all::<Float64>(s, precision, length),
        _ => all::<Fixed>(s, precision, length),
    }
}

pub(crate) fn reals(bytes: &[u8], precision: Precision) -> Vec<f64> {
    if precision == Precision::Double {
        bytes.as_chunks::<8>().0.iter().map(|b| f64::from_ne_bytes(*b)).collect()
    } else {
        bytes.as_chunks::<4>().0.iter().map(|b| f64::from(f32::from_ne_bytes(*b))).collect()
    }
}

pub(crate) fn ints(bytes: &[u8]) -> Vec<i32> {
    bytes.as_chunks::<4>().0.iter().map(|b| i32::from_ne_bytes(*b)).collect()
}

/// Decodes reduced coordinates and types from their raw sections.
pub(crate) fn positions<S: Store>(pos: &[u8], low: &[u8], length: [f64; 3]) -> (Vec<[f64; 3]>, Vec<u32>) {
    let low = ints(low);
    let entries = entries::<S>(pos).enumerate().map(|(i, p)| {
        let l = std::array::from_fn(|k| low.get(3 * i + k).map_or(0, |w| *w as u32));
        (S::load(&p, l, length), S::kind(&p))
    });
    entries.unzip()
}

/// Returns the entries of a raw section of positions and types.
fn entries<S: Store>(pos: &[u8]) -> impl Iterator<Item = S::PosType> + '_ {
    pos.chunks_exact(size_of::<S::PosType>()).filter_map(from_bytes)
}

/// Checks the types in a raw section of positions: the force loops use them as indices. `who` has written them.
///
/// # Errors
/// Returns an error if a type is not below `n_types`.
pub fn check_types(pos: &[u8], precision: Precision, n_types: u32, who: &str) -> Result<()> {
    let largest = match precision {
        Precision::Double => entries::<Float64>(pos).map(|p| p.kind).max(),
        _ => entries::<Fixed>(pos).map(|p| p.kind).max(),
    };
    match largest {
        Some(kind) if kind >= n_types => {
            Err(Error::Run(format!("{who} has particle type number {kind}, but the run has {n_types} types")))
        }
        _ => Ok(()),
    }
}
