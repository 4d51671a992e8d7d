//! What all components have in common: kinds, registration, and what is exchanged while a run is set up.

use crate::abi::Object;
use crate::error::Result;
use crate::params::varying::Varying;
use crate::params::{FieldDoc, Value};
use serde::{Deserialize, Serialize};

pub use crate::system::{GroupNeed, SystemInfo};

/// A component is named by what it does to the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[repr(u32)]
pub enum Kind {
    /// Makes or reads the initial state.
    Generator = 0,
    /// Gives U and F of one pair; the engine owns the loop.
    Pair = 1,
    /// Gives U and F of one bond, angle or dihedral; the engine owns the loop.
    Bonded = 2,
    /// Any other force, with its own kernels.
    Force = 3,
    /// Moves particles.
    Integrator = 4,
    /// Changes state between steps.
    Updater = 5,
    /// Reads state and writes.
    Analyzer = 6,
    /// Draws independent configurations, without particles and time steps.
    Sampler = 7,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 8] = [
        Self::Generator,
        Self::Pair,
        Self::Bonded,
        Self::Force,
        Self::Integrator,
        Self::Updater,
        Self::Analyzer,
        Self::Sampler,
    ];

    /// The kind with this number.
    pub fn from_u32(n: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|k| *k as u32 == n)
    }

    /// The list of the pipeline where such components stand.
    pub fn list(self) -> &'static str {
        match self {
            Self::Generator => "initial",
            Self::Pair | Self::Bonded | Self::Force => "forces",
            Self::Integrator => "integrators",
            Self::Updater => "updaters",
            Self::Analyzer => "analyzers",
            Self::Sampler => "ensemble",
        }
    }
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self:?}")
    }
}

/// A component as `galamost plugins` shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComponentInfo {
    /// Name in the pipeline.
    pub name: String,
    /// Kind.
    pub kind: Kind,
    /// Its page: formula, units, reference.
    pub doc: String,
    /// Its fields.
    pub fields: Vec<FieldDoc>,
}

impl ComponentInfo {
    /// The component's example: the text of the first block marked `ron` on its page. It is for a system with particle
    /// types A and B and bond types A-A, A-B and B-B.
    pub fn example(&self) -> Option<&str> {
        let (_, rest) = self.doc.split_once("```ron\n")?;
        Some(rest.split_once("```")?.0.trim())
    }
}

/// An optional per-particle array that a component needs on the device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArrayNeed {
    /// Name, see [`crate::snapshot::KNOWN_ARRAYS`].
    pub name: String,
    /// Values per particle.
    pub width: u32,
    /// Whole numbers instead of `real`.
    pub integer: bool,
    /// The initial state must have it; otherwise it starts as 0.
    pub required: bool,
}

/// What an analyzer wants to see when it is due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Wants {
    /// Energies, virial, temperature, pressure, momentum.
    pub thermo: bool,
    /// Positions, images, types, masses and velocities, in tag order on the host.
    pub particles: bool,
    /// Bonds, angles and dihedrals.
    pub topology: bool,
}

/// What a component answers when it is bound.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Needs {
    /// It has code for the CPU.
    pub cpu: bool,
    /// It has code for CUDA.
    pub cuda: bool,
    /// Its part of a step can be captured in a CUDA graph.
    pub capturable: bool,
    /// It is due every so many steps; 0 for every step (forces, integrators) or only once (generators).
    pub period: u64,
    /// Optional arrays it needs.
    pub arrays: Vec<ArrayNeed>,
    /// Its time-dependent numbers, at most [`crate::abi::views::COMPONENT_VARYINGS`].
    pub varyings: Vec<Varying>,
    /// The particles it acts on.
    pub group: GroupNeed,
    /// The distance up to which it needs the neighbor list; 0 for none.
    pub cutoff: f64,
    /// Number of members of the links it acts on: 2 for bonds, 3 for angles, 4 for dihedrals, 0 for none.
    pub link_width: u32,
    /// What it wants to see (analyzers).
    pub wants: Wants,
    /// Particle functions of an integrator keep the total momentum of an isolated system.
    pub conserves_momentum: bool,
    /// Its forces are the gradient of the energy it reports.
    pub conservative: bool,
    /// An integrator with functions of particles. One that only changes the box or its own state runs before the others.
    pub moves: bool,
    /// Notes for the log: what the user should know about this choice of parameters.
    pub notes: Vec<String>,
    /// An integrator that only corrects what others have moved, see [`crate::kinds::integrator::Program::correct`].
    pub corrects: bool,
    /// Texts of the component's own faults, by their number: what the user reads when one is raised.
    pub faults: Vec<String>,
    /// A wall: the free length between it and the box's face behind it. Particles see each other through the periodic
    /// boundary, so the engine notes where it is less than half the largest cutoff.
    pub clearance: Option<f64>,
    /// It finds nearest images by itself, as in a box whose images stand still: not to be used where they are displaced
    /// (Lees-Edwards).
    pub plain_images: bool,
    /// Forces are computed once more at the end of each step, with the velocities that an integrator's last phase
    /// leaves: for forces that depend on them. Random numbers are those of the first evaluation.
    pub forces_again: bool,
    /// Notes that the user should not overlook: they go to the log as warnings.
    pub warnings: Vec<String>,
    /// Names of further numbers that a force reports with its energy, see [`crate::kinds::force::ForceCall::quantities`];
    /// analyzers find them behind the energies, as `Component.name`.
    pub quantities: Vec<String>,
    /// A force that has no virial: the pressure of its stage is not a number, and what needs the pressure is refused.
    pub without_virial: bool,
    /// How many batches a sampler draws in all.
    pub batches: u64,
}

impl Default for Needs {
    fn default() -> Self {
        Self {
            cpu: true,
            cuda: true,
            capturable: true,
            period: 0,
            arrays: vec![],
            varyings: vec![],
            group: GroupNeed::All,
            cutoff: 0.0,
            link_width: 0,
            wants: Wants::default(),
            conserves_momentum: true,
            conservative: true,
            moves: true,
            notes: vec![],
            corrects: false,
            faults: vec![],
            clearance: None,
            plain_images: false,
            forces_again: false,
            warnings: vec![],
            quantities: vec![],
            without_virial: false,
            batches: 0,
        }
    }
}

/// One component of this library.
#[derive(Clone, Copy)]
pub struct Registration {
    /// Name in the pipeline.
    pub name: &'static str,
    /// Kind.
    pub kind: Kind,
    /// Its page.
    pub doc: &'static str,
    /// Its fields.
    pub fields: fn() -> Vec<FieldDoc>,
    /// Makes it from its value in the pipeline.
    pub create: fn(&'static str, Value<'_>) -> Result<Object>,
}

inventory::collect!(Registration);

impl Registration {
    /// The components of this library, by name.
    pub fn all() -> Vec<&'static Self> {
        let mut all: Vec<_> = inventory::iter::<Self>().collect();
        all.sort_by_key(|r| (r.name, r.kind));
        all
    }

    /// As `galamost plugins` shows it.
    pub fn info(&self) -> ComponentInfo {
        ComponentInfo { name: self.name.into(), kind: self.kind, doc: self.doc.into(), fields: (self.fields)() }
    }
}
