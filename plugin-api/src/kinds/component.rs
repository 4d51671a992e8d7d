//! What all components share: kinds, registration, and the data exchanged while a run is set up.

use crate::abi::Object;
use crate::error::Result;
use crate::output::{OutputFile, OutputKind};
use crate::params::varying::Varying;
use crate::params::{FieldDoc, Value};
use crate::snapshot::LinkList;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

pub use crate::system::{Constraint, GroupNeed, SystemInfo};

/// The kind of a component: what it does to the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[repr(u32)]
pub enum Kind {
    /// Creates or reads the initial state.
    Generator = 0,
    /// Computes U and F of one pair; the engine provides the loop.
    Pair = 1,
    /// Computes U and F of one bond, angle, dihedral or improper; the engine provides the loop.
    Bonded = 2,
    /// Computes any other force, with its own loop and kernel.
    Force = 3,
    /// Propagates particles.
    Integrator = 4,
    /// Changes the state between steps.
    Updater = 5,
    /// Reads the state and writes output.
    Analyzer = 6,
    /// Draws independent configurations without particles and time steps.
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

    /// Returns the kind with this number.
    pub fn from_u32(n: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|k| *k as u32 == n)
    }

    /// Returns the list of the pipeline that holds components of this kind.
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

/// A component as `galamost plugins` prints it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComponentInfo {
    /// Name in the pipeline.
    pub name: String,
    /// Kind.
    pub kind: Kind,
    /// Names that it had in earlier versions. Pipelines and checkpoints may still use them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub former_names: Vec<String>,
    /// Its documentation page: formula, units, reference.
    pub doc: String,
    /// Its parameters.
    pub fields: Vec<FieldDoc>,
}

impl ComponentInfo {
    /// Returns the example of the component: the first block marked `ron` on its page. The example is for a system with
    /// particle types A and B and bond types A-A, A-B and B-B.
    pub fn example(&self) -> Option<&str> {
        let (_, rest) = self.doc.split_once("```ron\n")?;
        Some(rest.split_once("```")?.0.trim())
    }
}

/// An optional per-particle array that a component needs on the device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArrayNeed {
    /// Name: one of [`crate::snapshot::KNOWN_ARRAYS`], such as `charge` or `quaternion`, or an array of the plugin,
    /// whose name starts with that of the plugin.
    pub name: String,
    /// Values per particle.
    pub width: u32,
    /// Whether values are integers; otherwise they are `real`.
    pub integer: bool,
    /// Whether the initial state must provide it; otherwise it starts as 0.
    pub required: bool,
}

/// The data that an analyzer reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Wants {
    /// Energies, virial, temperature, pressure, momentum.
    pub thermo: bool,
    /// Positions, images, types, masses and velocities, in tag order on the host.
    pub particles: bool,
    /// Bonds, angles, dihedrals and impropers.
    pub topology: bool,
    /// Force and energy of each particle, in tag order on the host: arrays `force` and `energy` of the frame.
    pub forces: bool,
    /// Energies of the particles: every force of the stage must assign its energy to particles. Requires `forces`.
    pub energies: bool,
    /// Energies of bonded components by type, listed after all others as `Component.type`. Requires `thermo`.
    pub by_type: bool,
}

/// What a component needs; the result of binding it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Needs {
    /// Has an implementation for the CPU.
    pub cpu: bool,
    /// Has an implementation for CUDA.
    pub cuda: bool,
    /// Its work in a step can be captured in a CUDA graph.
    pub capturable: bool,
    /// Period in steps. 0: every step (forces, integrators) or only once (generators).
    pub period: u64,
    /// First step at which an analyzer is due by its period.
    pub offset: u64,
    /// `offset` counts from the start of the stage.
    pub from_stage: bool,
    /// An analyzer is due at the end of each stage, too.
    pub at_end: bool,
    /// Optional arrays it needs.
    pub arrays: Vec<ArrayNeed>,
    /// Its time-dependent numbers, at most [`crate::views::COMPONENT_VARYINGS`].
    pub varyings: Vec<Varying>,
    /// The particles that it acts on.
    pub group: GroupNeed,
    /// Range of the neighbor list that it needs; 0 for none.
    pub cutoff: f64,
    /// The links that it acts on.
    pub links: Option<LinkList>,
    /// The types of these links that the component names; `None` if it acts on all of them.
    pub link_types: Option<Vec<u32>>,
    /// The data that it reads (analyzers).
    pub wants: Wants,
    /// The component conserves the total momentum of an isolated system.
    pub conserves_momentum: bool,
    /// Its forces are the gradient of the energy that it reports.
    pub conservative: bool,
    /// The integrator has particle functions. An integrator without any changes only the box or its own state, and runs
    /// before the others.
    pub moves: bool,
    /// Notes for the log about this choice of parameters.
    pub notes: Vec<String>,
    /// The integrator only corrects particles that others move; see [`crate::integrator::Program::correct`].
    pub corrects: bool,
    /// Messages of the component's own faults, indexed by fault number.
    pub faults: Vec<String>,
    /// For a wall: the free distance between the wall and the face of the box behind it. Particles interact through the
    /// periodic boundary, so the engine writes a note if the distance is less than half the largest cutoff.
    pub clearance: Option<f64>,
    /// For a wall: the shortest box lengths in which it fits; 0 along an axis where any length will do. The check and the run
    /// report a shorter box as an error.
    #[serde(default)]
    pub least_box: [f64; 3],
    /// Computes nearest images without the Lees-Edwards offset, or depends on x in another way; cannot be used with shear, nor in
    /// later stages.
    pub plain_images: bool,
    /// Works in a triclinic box (see [`crate::tilt`]); the check refuses such a box otherwise. Pair potentials, bonded potentials,
    /// and integrators whose functions read neither positions nor the box set it by themselves.
    pub triclinic: bool,
    /// On CUDA, the force handles the particles from `own_begin` to `own_end` of the view only. Of other particles it reads at most the
    /// positions and orientations of bonded partners, or with `places` all that it needs of the particles in `placed_from` and
    /// `constraints`, and the forces on them. Several GPUs then share its work: each has a separate component. Otherwise the first GPU computes the forces on all particles. For sums
    /// see [`Host::all_reduce`](crate::services::Host::all_reduce) and
    /// [`Host::all_gather`](crate::services::Host::all_gather).
    ///
    /// An updater searches the particles from `own_begin` to `own_end` only, on every device, and all ranks of the run (GPUs or
    /// processes) make the same changes; see [`crate::updater::Updater::update`]. Otherwise the first rank calls it for all
    /// particles. Such an updater cannot want `thermo`.
    #[serde(default)]
    pub shared: bool,
    /// The updater handles [`crate::updater::phase::SEARCH`] and [`crate::updater::phase::DECIDE`]. The engine then queues its search
    /// behind the steps, and reads all results after one wait.
    #[serde(default)]
    pub searches: bool,
    /// The force places particles without mass; see [`crate::force::Force::place`].
    pub places: bool,
    /// The array of integers, among `arrays`, that names the particles from which a particle is placed: their tags relative to its own, 0
    /// for none. Ranks of a run know all of these together. Requires `places`.
    #[serde(default)]
    pub placed_from: Option<String>,
    /// Bond types whose bonds the force keeps at a fixed length: type and length. The engine removes their degrees of freedom
    /// and binds the force a second time, with these bonds in [`SystemInfo::constraints`]. Requires `places`.
    pub constraints: Vec<(u32, f64)>,
    /// The integrator or updater may be used with forces that constrain distances. Such an integrator moves particles by
    /// velocity Verlet: after its phases before the forces, velocities are those in the middle of the step; after the forces,
    /// they change by F dt/2m.
    pub constrainable: bool,
    /// Forces are computed a second time at the end of each step, with the velocities after the last phase of the
    /// integrators, for velocity-dependent forces. Random numbers are those of the first evaluation.
    pub forces_again: bool,
    /// Warnings for the log.
    pub warnings: Vec<String>,
    /// Names of further quantities that a force reports with its energy; see
    /// [`crate::force::ForceCall::quantities`]. Analyzers list them after the energies, as `Component.name`.
    pub quantities: Vec<String>,
    /// The force has no virial. The pressure of its stage is NaN, and components that need the pressure are rejected.
    pub without_virial: bool,
    /// Axes along which the component exerts forces on particles that are in no virial, such as those of a reflecting wall. The check
    /// refuses barostats that change the box along these axes.
    #[serde(default)]
    pub without_virial_along: [bool; 3],
    /// The force, or the remainder of a pair potential of long range, adds its energy to the energies of the particles, or has none.
    pub particle_energies: bool,
    /// The force, or the remainder of a pair potential of long range, adds its virial to [`crate::views::StateView::virial`], or
    /// has none.
    pub particle_virials: bool,
    /// Total number of batches that a sampler draws.
    pub batches: u64,
    /// The integrator controls the temperature by scaling velocities, so it cannot heat particles at rest.
    pub rescales: bool,
    /// The integrator leaves its particles at rest, or nearly so (minimizers).
    #[serde(default)]
    pub stops: bool,
    /// kT of the canonical distribution that the component samples at constant volume (thermostats). In equilibrium, its state
    /// must be independent of positions and velocities: it stays where it is when replica exchange moves the particles to
    /// another temperature.
    pub kt: Option<Varying>,
    /// The force depends on earlier positions, which it keeps in its own state. Replica exchange refuses it.
    pub history: bool,
    /// Drives a flow: there is no equilibrium. A force that is not `conservative` and no thermostat does, too. Replica exchange refuses it.
    #[serde(default)]
    pub drives: bool,
    /// Files that the component writes; see [`Self::output`].
    pub outputs: Vec<OutputFile>,
    /// The updater changes the box.
    pub changes_box: bool,
    /// The updater changes the velocities of the particles in its `group`. The check refuses particles with mass that no integrator of
    /// the stage moves: they would get velocities and stay where they are.
    #[serde(default)]
    pub changes_velocities: bool,
    /// The updater may change the charges of particles.
    #[serde(default)]
    pub changes_charges: bool,
    /// Axes along which the integrator or updater changes the box. The check refuses two that change the same one; it does not know those of
    /// a component that leaves this empty.
    #[serde(default)]
    pub box_axes: [bool; 3],
    /// Box lengths that the updater prescribes, as functions of the step; `None` for an axis that it leaves alone.
    #[serde(default)]
    pub box_lengths: [Option<Varying>; 3],
    /// The updater changes the tilt factors of the box, which is triclinic in all stages then. For an integrator, it follows from
    /// its functions.
    pub changes_tilt: bool,
    /// With `triclinic`: requires constant tilt factors. The check refuses components that change them.
    #[serde(default)]
    pub constant_tilt: bool,
    /// The analyzer requires a constant box from its first sample on. The check refuses components that change the box.
    #[serde(default)]
    pub constant_box: bool,
    /// The analyzer requires constant charges from its first to its last sample. The check refuses stages with updaters that declare
    /// `changes_charges`.
    #[serde(default)]
    pub constant_charges: bool,
    /// The analyzer averages over lags between its samples, or writes a file whose frames are at equal intervals. The check requires the same `dt` in all stages from its first to its last
    /// sample, and that all of them list it.
    #[serde(default)]
    pub lags: bool,
    /// The component has chosen parameters for the box at the start, so no other component may change the box: the fields
    /// to set instead, for the error message.
    pub fixed_box: Option<String>,
    /// Warnings of the component depend on the box. If the box changes during the run, the engine binds a copy of the component with
    /// [`SystemInfo::present_box`] from time to time and logs warnings that the component did not give at the start.
    pub box_warnings: bool,
}

impl Needs {
    /// Returns the position of a force among those with their own loops: forces that place particles pass on the forces of
    /// all others, and those that constrain distances need the forces on all particles with mass. Particles are placed in
    /// the opposite order.
    pub fn rank(&self) -> u32 {
        u32::from(self.places) + u32::from(!self.constraints.is_empty())
    }

    /// Sets period and offset of an analyzer whose samples are the multiples of `every` from step `start` on.
    pub fn sample(&mut self, every: u64, start: u64) {
        (self.period, self.offset) = (every, start.div_ceil(every.max(1)).saturating_mul(every));
    }

    /// Returns the first step of a stage that begins at step `begin` at which an analyzer is due by its period.
    pub fn first_due(&self, begin: u64) -> u64 {
        if self.from_stage { self.offset.saturating_add(begin) } else { self.offset }
    }

    /// Returns whether an analyzer is due at a step of a stage from step `begin` to step `end`.
    pub fn is_due(&self, step: u64, begin: u64, end: u64) -> bool {
        let first = self.first_due(begin);
        let periodic = step.checked_sub(first).is_some_and(|s| s.is_multiple_of(self.period.max(1)));
        periodic || (self.at_end && step == end)
    }

    /// Returns the first step after `step` at which an analyzer is due by its period, in a stage that begins at step `begin`.
    pub fn next_due(&self, step: u64, begin: u64) -> u64 {
        let (period, first) = (self.period.max(1), self.first_due(begin));
        match step.checked_sub(first) {
            Some(since) => (since / period + 1).saturating_mul(period).saturating_add(first),
            None => first,
        }
    }

    /// Declares a file that the component writes, and returns its path. `file` may contain `{step}`.
    ///
    /// Before the first step, the engine checks that the file can be written and that nothing else in the run uses it. A
    /// new run renames files of earlier runs.
    pub fn output(&mut self, system: &SystemInfo, file: &str, kind: OutputKind) -> PathBuf {
        self.declare(system, OutputFile::new(file, kind))
    }

    /// Declares a file with its properties, as [`Self::output`].
    pub fn declare(&mut self, system: &SystemInfo, output: OutputFile) -> PathBuf {
        let path = system.path(&output.path);
        self.outputs.push(output);
        path
    }
}

impl Default for Needs {
    fn default() -> Self {
        Self {
            cpu: true,
            cuda: true,
            capturable: true,
            period: 0,
            offset: 0,
            from_stage: false,
            at_end: false,
            arrays: vec![],
            varyings: vec![],
            group: GroupNeed::All,
            cutoff: 0.0,
            links: None,
            link_types: None,
            wants: Wants::default(),
            conserves_momentum: true,
            conservative: true,
            moves: true,
            notes: vec![],
            corrects: false,
            faults: vec![],
            clearance: None,
            least_box: [0.0; 3],
            plain_images: false,
            triclinic: false,
            shared: false,
            searches: false,
            places: false,
            placed_from: None,
            constraints: vec![],
            constrainable: false,
            forces_again: false,
            warnings: vec![],
            quantities: vec![],
            without_virial: false,
            without_virial_along: [false; 3],
            particle_energies: false,
            particle_virials: false,
            batches: 0,
            rescales: false,
            stops: false,
            kt: None,
            history: false,
            drives: false,
            outputs: vec![],
            box_axes: [false; 3],
            changes_box: false,
            changes_velocities: false,
            changes_charges: false,
            box_lengths: [None; 3],
            changes_tilt: false,
            constant_tilt: false,
            constant_box: false,
            constant_charges: false,
            lags: false,
            fixed_box: None,
            box_warnings: false,
        }
    }
}

/// The registration of one component of this library.
#[derive(Clone, Copy)]
pub struct Registration {
    /// Name in the pipeline.
    pub name: &'static str,
    /// Names that it had in earlier versions; see [`Self::renamed_from`].
    pub former_names: &'static [&'static str],
    /// Kind.
    pub kind: Kind,
    /// Its documentation page.
    pub doc: &'static str,
    /// Returns its parameters.
    pub fields: fn() -> Vec<FieldDoc>,
    /// Creates the component from its value in the pipeline.
    pub create: fn(&'static str, Value<'_>) -> Result<Object>,
}

inventory::collect!(Registration);

impl Registration {
    /// Returns all components of this library, sorted by name.
    pub fn all() -> Vec<&'static Self> {
        let mut all: Vec<_> = inventory::iter::<Self>().collect();
        all.sort_by_key(|r| (r.name, r.kind));
        all
    }

    /// Returns the registration with these former names. The engine accepts them in pipelines and checkpoints, and logs
    /// the current name.
    #[must_use]
    pub const fn renamed_from(self, former_names: &'static [&'static str]) -> Self {
        Self { former_names, ..self }
    }

    /// Returns the component as `galamost plugins` prints it.
    pub fn info(&self) -> ComponentInfo {
        let former_names = self.former_names.iter().map(ToString::to_string).collect();
        let (name, kind, doc) = (self.name.into(), self.kind, self.doc.into());
        ComponentInfo { name, kind, former_names, doc, fields: (self.fields)() }
    }
}
