//! What all components have in common: kinds, registration, and what is exchanged while a run is set up.

use crate::error::Result;
use crate::guard::Object;
use crate::params::{FieldDoc, Value};
use crate::precision::Precision;
use crate::snapshot::{Snapshot, Values};
use crate::varying::Varying;
use serde::{Deserialize, Serialize};

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

/// The system a component is bound to, before step 0.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SystemInfo {
    /// Names of particle types.
    pub types: Vec<String>,
    /// Names of bond types.
    pub bond_types: Vec<String>,
    /// Names of angle types.
    pub angle_types: Vec<String>,
    /// Names of dihedral types.
    pub dihedral_types: Vec<String>,
    /// Number of particles.
    pub n: u64,
    /// 2 or 3.
    pub dimensions: u32,
    /// Box lengths at the start.
    pub box_length: [f64; 3],
    /// Names of the optional per-particle arrays the system has; see [`Self::has_array`].
    pub arrays: Vec<String>,
    /// The largest diameter of a particle; 0 if the system has no diameters.
    pub largest_diameter: f64,
    /// Time step of the (first) stage.
    pub dt: f64,
    /// The run's seed.
    pub seed: u64,
    /// Step at the start.
    pub step: u64,
    /// `Single`, `Mixed` or `Double`, as [`Precision`]'s number.
    pub precision: u32,
    /// `cpu` or `cuda`.
    pub device: String,
    /// Folder that relative paths start at.
    pub directory: String,
    /// The run goes on from a checkpoint: files are continued, not begun.
    pub resumed: bool,
    /// Minor version of the engine's plugin API. What a newer API does with words that were reserved must look at it.
    pub api_minor: u32,
    /// The component's number in the pipeline, for the key of its random numbers; told to samplers.
    pub component: u32,
}

impl SystemInfo {
    /// Whether particles have this array; a quaternion is also made of an `orientation`.
    pub fn has_array(&self, name: &str) -> bool {
        let there = |name: &str| self.arrays.iter().any(|a| a == name);
        there(name) || (name == "quaternion" && there("orientation"))
    }

    /// The system of a snapshot; the run's own facts are left at their defaults.
    pub fn of(s: &Snapshot) -> Self {
        Self {
            types: s.types.clone(),
            bond_types: s.bond_types.clone(),
            angle_types: s.angle_types.clone(),
            dihedral_types: s.dihedral_types.clone(),
            n: s.len() as u64,
            dimensions: s.dimensions,
            box_length: s.box_length,
            arrays: s.arrays.keys().cloned().collect(),
            largest_diameter: match s.arrays.get("diameter").map(|a| &a.values) {
                Some(Values::Real(d)) => d.iter().copied().fold(0.0, f64::max),
                _ => 0.0,
            },
            step: s.step,
            ..Self::default()
        }
    }

    /// Precision of the run.
    pub fn precision(&self) -> Precision {
        Precision::from_u32(self.precision).unwrap_or_default()
    }

    /// A path of the pipeline, seen from where the program runs.
    pub fn path(&self, path: &str) -> std::path::PathBuf {
        std::path::Path::new(&self.directory).join(path)
    }

    /// Half the shortest box length that counts: no cutoff may be longer.
    pub fn half_box(&self) -> f64 {
        self.box_length.iter().take(self.dimensions as usize).fold(f64::INFINITY, |m, l| m.min(0.5 * l))
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

/// Particles a component acts on; see [`crate::params::Group`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum GroupNeed {
    /// Every particle.
    #[default]
    All,
    /// Particles of these types.
    Types(Vec<u32>),
    /// Particles with tags first … last.
    Tags(u32, u32),
    /// Particles of the molecules first … last (the array `molecule` of the initial state).
    Molecules(i32, i32),
    /// Particles whose initial position is in min ≤ r < max.
    Box([f64; 3], [f64; 3]),
    /// Particles that are not in the group.
    Not(Box<GroupNeed>),
    /// Particles that are in every one of the groups.
    And(Vec<GroupNeed>),
    /// Particles that are in at least one of the groups.
    Or(Vec<GroupNeed>),
}

impl GroupNeed {
    /// Whether the particle `tag` of the initial state belongs to the group.
    pub fn contains(&self, tag: u32, s: &Snapshot) -> bool {
        let i = tag as usize;
        match self {
            Self::All => true,
            Self::Types(types) => types.contains(&s.kind[i]),
            Self::Tags(first, last) => (*first..=*last).contains(&tag),
            Self::Molecules(first, last) => match s.arrays.get("molecule").map(|a| &a.values) {
                Some(Values::Int(molecule)) => (*first..=*last).contains(&molecule[i]),
                _ => false,
            },
            Self::Box(min, max) => {
                let inside = |k: usize| (min[k]..max[k]).contains(&s.position[i][k]);
                (0..s.dimensions as usize).all(inside)
            }
            Self::Not(group) => !group.contains(tag, s),
            Self::And(groups) => groups.iter().all(|g| g.contains(tag, s)),
            Self::Or(groups) => groups.iter().any(|g| g.contains(tag, s)),
        }
    }
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
    /// Its time-dependent numbers, at most [`crate::views::COMPONENT_VARYINGS`].
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
    /// An integrator that only corrects what others have moved, see [`crate::integrator::Program::correct`].
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
    /// Names of further numbers that a force reports with its energy, see [`crate::force::ForceCall::quantities`];
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

/// Text of a value for the boundary.
pub(crate) fn to_ron<T: Serialize>(value: &T) -> String {
    ron::to_string(value).expect("plain data can be written as RON")
}

/// A value from the boundary's text.
pub(crate) fn from_ron<T: for<'de> Deserialize<'de>>(text: &str) -> Result<T> {
    ron::from_str(text)
        .map_err(|e| crate::error::Error::Run(format!("the other side of the boundary sent `{text}`: {e}")))
}
