//! The plan of a run: what [`check`] finds out before step 0.

pub mod box_warnings;
mod check;
pub mod files;
mod initial;
pub mod inputs;

pub use check::{CheckOptions, analyzer_list, check, corrections_differ, wall_outside};
pub use initial::{encode_particles, fits_precision, initial};

use crate::device::Chosen;
use crate::diagnostic::Diagnostic;
use crate::pipeline::{Pipeline, Stage};
use crate::plugins::Component;
use crate::state::molecules::MoleculeRule;
use galamost_plugin_api::component::{GroupNeed, Kind, SystemInfo};
use galamost_plugin_api::error::Error;
use galamost_plugin_api::params::varying::Varying;
use galamost_plugin_api::snapshot::Snapshot;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// Components of one stage.
#[derive(Clone, Debug)]
pub struct StagePlan {
    /// Number of the stage, from 0.
    pub number: usize,
    /// The stage as the pipeline file gives it.
    pub stage: Stage,
    /// Pair, bonded and other forces, in the order of the file.
    pub forces: Vec<Arc<Component>>,
    /// Integrators, in the order in which they run.
    pub integrators: Vec<Arc<Component>>,
    /// Number of constraints in the group of each integrator.
    pub constraints: Vec<u64>,
    /// Updaters.
    pub updaters: Vec<Arc<Component>>,
    /// Analyzers.
    pub analyzers: Vec<Arc<Component>>,
}

impl StagePlan {
    /// Returns the energies of a frame: one for each force, then the further quantities of forces.
    pub fn energies(&self) -> Vec<EnergyColumn> {
        let further = self
            .forces
            .iter()
            .zip(self.names_in_tables())
            .flat_map(|(f, name)| f.needs.quantities.iter().map(|q| format!("{name}.{q}")).collect::<Vec<_>>());
        numbered(self.forces.iter().map(|f| f.name.clone()).chain(further))
    }

    /// Returns the names of the forces in tables: the second of a name ends in `:2`.
    fn names_in_tables(&self) -> impl Iterator<Item = String> {
        let name = |(name, twins): EnergyColumn| if twins == 0 { name } else { format!("{name}:{}", twins + 1) };
        numbered(self.forces.iter().map(|f| f.name.clone())).into_iter().map(name)
    }

    /// Returns the energies of bonded components by type. `names` is the initial state.
    pub fn energies_by_type(&self, names: &Snapshot) -> Vec<EnergyColumn> {
        let bonded = self.forces.iter().zip(self.names_in_tables()).filter(|(f, _)| f.kind == Kind::Bonded);
        numbered(bonded.flat_map(|(f, name)| {
            let types = names.links(f.link_list()).1;
            types_of(f, names).into_iter().map(|t| format!("{name}.{}", types[t as usize])).collect::<Vec<_>>()
        }))
    }

    /// Returns the components that sample a canonical distribution, with their kT.
    pub fn thermostats(&self) -> impl Iterator<Item = (&Arc<Component>, Varying)> {
        let all = self.integrators.iter().chain(&self.forces).chain(&self.updaters);
        all.filter_map(|c| Some((c, c.needs.kt?)))
    }

    /// Returns kT, if components sample a canonical distribution. It is that of all of them and constant if replicas exchange
    /// particles.
    pub fn kt(&self) -> Option<f64> {
        self.thermostats().next().map(|(_, kt)| kt.at(0))
    }

    /// Returns whether every component conserves the momentum of the system. Forces between pairs of particles do, at least to the
    /// accuracy of their method: then the center of mass takes up hardly any energy in a run.
    pub fn conserves_momentum(&self) -> bool {
        self.integrators.iter().chain(&self.forces).all(|c| c.kind == Kind::Pair || c.needs.conserves_momentum)
    }

    /// Returns whether an integrator displaces the images of the box (Lees-Edwards).
    ///
    /// # Errors
    /// Returns the plugin's error.
    pub fn shears(&self) -> Result<bool, Error> {
        any_shears(&self.integrators)
    }

    /// Returns whether an integrator needs a second force evaluation at the end of each step.
    pub fn forces_again(&self) -> bool {
        self.integrators.iter().any(|c| c.needs.forces_again)
    }
}

/// Returns whether a component displaces the images of the box.
fn any_shears(components: &[Arc<Component>]) -> Result<bool, Error> {
    for integrator in components.iter().filter_map(|c| c.integrator()) {
        if integrator.program()?.phases.iter().any(|p| p.shear) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A pipeline that passed its check.
#[derive(Debug)]
pub struct Plan {
    /// The pipeline.
    pub pipeline: Pipeline,
    /// The device.
    pub device: Chosen,
    /// The initial state.
    pub snapshot: Snapshot,
    /// The system that components were bound to.
    pub system: SystemInfo,
    /// Stages in order.
    pub stages: Vec<StagePlan>,
    /// Every component that runs, in the order of their numbers.
    pub components: Vec<Arc<Component>>,
    /// Groups other than all particles. A group's index is its bit in the group words.
    pub groups: Vec<GroupNeed>,
    /// The molecule rule that restricts the neighbor list, if there is one.
    pub molecules: Option<MoleculeRule>,
    /// Plugins in use: name, version, file, hash.
    pub plugins: Vec<PluginUse>,
    /// What runs but is probably not intended.
    pub warnings: Vec<Diagnostic>,
    /// Files that the run reads and writes.
    pub files: Vec<files::RunFile>,
    /// Components that continue each other's files in different stages; for each of them all of them, by number.
    pub partners: BTreeMap<u32, Vec<u32>>,
    /// Hashes of the files that components read, and of an initial state that comes from files, by name.
    pub inputs: BTreeMap<String, String>,
}

/// A column of energies: the name of a force or its further quantity, and its number among columns of the same name.
pub type EnergyColumn = (String, usize);

/// Returns the types of links that a bonded component acts on. `names` is the initial state.
pub fn types_of(bonded: &Component, names: &Snapshot) -> Vec<u32> {
    let all = || (0..names.links(bonded.link_list()).1.len() as u32).collect();
    bonded.needs.link_types.clone().unwrap_or_else(all)
}

/// Numbers columns of the same name.
fn numbered(names: impl Iterator<Item = String>) -> Vec<EnergyColumn> {
    let mut columns: Vec<EnergyColumn> = vec![];
    for name in names {
        let twins = columns.iter().filter(|(n, _)| *n == name).count();
        columns.push((name, twins));
    }
    columns
}

/// A plugin in use.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct PluginUse {
    /// Name.
    pub name: String,
    /// Version.
    pub version: String,
    /// File.
    #[serde(serialize_with = "as_text")]
    pub path: PathBuf,
    /// BLAKE3 hash of the file.
    pub hash: String,
}

/// Serializes a path that need not be UTF-8; the text is for the reader only.
fn as_text<S: serde::Serializer>(path: &std::path::Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}

impl Plan {
    /// Returns whether the box is triclinic at the start, or becomes so.
    pub fn is_triclinic(&self) -> bool {
        self.snapshot.is_tilted() || self.components.iter().any(|c| c.needs.changes_tilt)
    }

    /// Returns whether an integrator of a stage displaces the images of the box (Lees-Edwards).
    ///
    /// # Errors
    /// Returns the plugin's error.
    pub fn shears(&self) -> Result<bool, Error> {
        any_shears(&self.components)
    }

    /// Returns the components that continue the files of a component, including itself.
    pub fn group<'a>(&'a self, component: &'a u32) -> &'a [u32] {
        self.partners.get(component).map_or(std::slice::from_ref(component), Vec::as_slice)
    }

    /// Returns the energies that an analyzer lists: those of all stages in which it, or a component that continues the
    /// same file, is active. A table then has the same columns in all of them.
    pub fn energies_of(&self, analyzer: u32) -> Vec<EnergyColumn> {
        let group = self.group(&analyzer);
        let mut columns: Vec<EnergyColumn> = vec![];
        for stage in self.stages.iter().filter(|s| s.analyzers.iter().any(|a| group.contains(&a.id))) {
            let by_type = self.component(analyzer).is_some_and(|a| a.needs.wants.by_type);
            let further = if by_type { stage.energies_by_type(&self.snapshot) } else { vec![] };
            for column in stage.energies().into_iter().chain(further) {
                if !columns.contains(&column) {
                    columns.push(column);
                }
            }
        }
        columns
    }

    /// Returns the component with this number.
    pub fn component(&self, id: u32) -> Option<&Arc<Component>> {
        self.components.iter().find(|c| c.id == id)
    }
}
