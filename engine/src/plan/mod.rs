//! `galamost check`: everything that can be known before step 0, and all mistakes at once.

mod ensemble;
mod initial;

pub use initial::initial;

use crate::device::{self, Chosen};
use crate::diagnostic::{Diagnostic, Failure};
use crate::pipeline::{Entry, Pipeline, Stage};
use crate::plugins::{Component, MAX_GROUPS, Registry};
use crate::state::molecules::MoleculeRule;
use crate::state::rotation;
use galamost_plugin_api::component::{GroupNeed, Kind, SystemInfo};
use galamost_plugin_api::error::{Error, Position};
use galamost_plugin_api::generator::GeneratorContext;
use galamost_plugin_api::plugin_record::{API_MINOR, flags};
use galamost_plugin_api::snapshot::Snapshot;
use galamost_plugin_api::views::{COMPONENT_VARYINGS, MAX_VARYINGS};
use std::path::PathBuf;
use std::sync::Arc;
use tracing::{info, warn};

/// Components of one stage.
#[derive(Clone, Debug)]
pub struct StagePlan {
    /// The stage as written.
    pub stage: Stage,
    /// Pair, bonded and other forces, in the order of the file.
    pub forces: Vec<Arc<Component>>,
    /// Integrators.
    pub integrators: Vec<Arc<Component>>,
    /// Updaters.
    pub updaters: Vec<Arc<Component>>,
    /// Analyzers.
    pub analyzers: Vec<Arc<Component>>,
}

impl StagePlan {
    /// Whether no component changes the momentum of the system.
    pub fn conserves_momentum(&self) -> bool {
        self.integrators.iter().chain(&self.forces).all(|c| c.needs.conserves_momentum)
    }

    /// Whether some integrator wants the forces once more at the end of each step.
    pub fn forces_again(&self) -> bool {
        self.integrators.iter().any(|c| c.needs.forces_again)
    }
}

/// A run that has been checked.
#[derive(Debug)]
pub struct Plan {
    /// The pipeline.
    pub pipeline: Pipeline,
    /// The device.
    pub device: Chosen,
    /// The initial state.
    pub snapshot: Snapshot,
    /// The system as components were told.
    pub system: SystemInfo,
    /// Stages in order.
    pub stages: Vec<StagePlan>,
    /// Every component that runs, in the order of their numbers.
    pub components: Vec<Arc<Component>>,
    /// Groups of particles that are not all of them; a component's bit is the group's place here.
    pub groups: Vec<GroupNeed>,
    /// Which pairs may be neighbors, if not all of them.
    pub molecules: Option<MoleculeRule>,
    /// Plugins in use: name, version, file, hash.
    pub plugins: Vec<PluginUse>,
}

/// A plugin in use.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct PluginUse {
    /// Name.
    pub name: String,
    /// Version.
    pub version: String,
    /// File.
    pub path: PathBuf,
    /// SHA-256 of the file.
    pub hash: String,
}

impl Plan {
    /// Whether a component displaces the images of the box.
    ///
    /// # Errors
    /// The plugin's words.
    pub fn shears(&self) -> Result<bool, Error> {
        for c in &self.components {
            if let Some(i) = c.integrator()
                && i.program()?.phases.iter().any(|p| p.shear)
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The component with this number.
    pub fn component(&self, id: u32) -> Option<&Arc<Component>> {
        self.components.iter().find(|c| c.id == id)
    }
}

/// Collects mistakes of a check.
pub(crate) struct Check<'a> {
    pub(crate) pipeline: &'a Pipeline,
    pub(crate) registry: &'a Registry,
    pub(crate) errors: Vec<Diagnostic>,
    next_id: u32,
}

impl Check<'_> {
    pub(crate) fn say(&mut self, at: Option<Position>, message: impl Into<String>) {
        self.errors.push(Diagnostic::new(&self.pipeline.path, at, message));
    }

    pub(crate) fn absorb<T>(&mut self, name: &str, at: Position, result: Result<T, Error>) -> Option<T> {
        match result {
            Ok(v) => Some(v),
            Err(Error::Input(list)) => {
                let path = &self.pipeline.path;
                self.errors.extend(list.into_iter().map(|e| Diagnostic::of_component(path, at, name, e)));
                None
            }
            Err(e) => {
                let mut d = Diagnostic::new(&self.pipeline.path, Some(at), e.to_string());
                // a panic names the component itself
                d.component = (!matches!(e, Error::Panic { .. })).then(|| name.into());
                self.errors.push(d);
                None
            }
        }
    }

    pub(crate) fn create(&mut self, list: &str, entries: &[Entry]) -> Vec<Option<Component>> {
        entries
            .iter()
            .map(|entry| {
                let id = self.next_id;
                self.next_id += 1;
                match self.registry.find_for_list(list, &entry.name) {
                    Ok((library, found)) => {
                        if found.name != entry.name {
                            info!("{} is now called {}", entry.name, found.name);
                        }
                        self.absorb(&found.name, entry.at, Component::create(library, found, entry, id))
                    }
                    Err(message) => {
                        self.say(Some(entry.at), message);
                        None
                    }
                }
            })
            .collect()
    }
}

/// Lists of one stage before they are bound.
struct Lists {
    forces: Vec<Option<Component>>,
    integrators: Vec<Option<Component>>,
    updaters: Vec<Option<Component>>,
    analyzers: Vec<Option<Component>>,
}

/// How a run is checked.
#[derive(Clone, Debug, Default)]
pub struct CheckOptions {
    /// The run goes on from a checkpoint.
    pub resumed: bool,
    /// A state that is there already; generators, if there are any, change it.
    pub snapshot: Option<Snapshot>,
}

/// Checks a pipeline.
///
/// # Errors
/// Every mistake found.
pub fn check(pipeline: Pipeline, registry: &Registry, options: CheckOptions) -> Result<Plan, Failure> {
    let mut c = Check { pipeline: &pipeline, registry, errors: vec![], next_id: 0 };
    if !pipeline.ensemble.is_empty() {
        let (device, system, components) = ensemble::check(&mut c, options.resumed)?;
        let plugins = plugins_in_use(registry, components.iter().map(|c| &c.library));
        let (stages, groups) = (vec![], vec![]);
        let snapshot = Snapshot::default();
        tell_notes(&components);
        return Ok(Plan { pipeline, device, snapshot, system, stages, components, groups, molecules: None, plugins });
    }

    let generators = c.create("initial", &pipeline.initial);
    let mut default = Lists {
        forces: c.create("forces", &pipeline.forces),
        integrators: c.create("integrators", &pipeline.integrators),
        updaters: c.create("updaters", &pipeline.updaters),
        analyzers: c.create("analyzers", &pipeline.analyzers),
    };
    let mut own: Vec<[Option<Vec<Option<Component>>>; 4]> = pipeline
        .stages
        .iter()
        .map(|s| {
            [
                ("forces", &s.forces),
                ("integrators", &s.integrators),
                ("updaters", &s.updaters),
                ("analyzers", &s.analyzers),
            ]
            .map(|(list, entries)| entries.as_ref().map(|e| c.create(list, e)))
        })
        .collect();

    let device = match device::choose(pipeline.device) {
        Ok(d) => Some(d),
        Err(message) => {
            c.say(pipeline.device_at, message);
            None
        }
    };

    let snapshot = generate(&mut c, &generators, options.snapshot);

    let dt = pipeline.stages.first().map_or(0.0, |s| s.dt);
    let mut system = snapshot.as_ref().map(SystemInfo::of).unwrap_or_default();
    system.dt = dt;
    system.seed = pipeline.seed;
    system.precision = pipeline.precision as u32;
    system.device = device.as_ref().map_or("cpu", Chosen::kind).into();
    system.directory = pipeline.directory().to_string_lossy().into_owned();
    system.resumed = options.resumed;
    system.api_minor = API_MINOR;

    let mut slots = 0;
    let mut groups: Vec<GroupNeed> = vec![];
    if snapshot.is_some() {
        let mut bind = |list: &mut Vec<Option<Component>>, dt: f64| {
            for slot in list.iter_mut() {
                let Some(mut component) = slot.take() else { continue };
                let (name, at) = (component.name.clone(), component.at);
                let system = SystemInfo { dt, ..system.clone() };
                if c.absorb(&name, at, component.bind(&system)).is_none() {
                    continue;
                }
                component.first_varying = slots;
                let n = component.needs.varyings.len();
                slots += n as u32;
                if n > COMPONENT_VARYINGS || slots as usize > MAX_VARYINGS {
                    c.say(Some(at), format!("{name}: too many time-dependent numbers (at most {COMPONENT_VARYINGS} a component, {MAX_VARYINGS} a run)"));
                }
                component.group = group_bit(&mut groups, &component.needs.group);
                if groups.len() > MAX_GROUPS as usize {
                    groups.truncate(MAX_GROUPS as usize);
                    c.say(Some(at), format!("{name}: a run has at most {MAX_GROUPS} different groups"));
                }
                if snapshot.as_ref().is_some_and(|s| is_empty(&component.needs.group, s)) {
                    c.say(Some(at), format!("{name}: there are no particles in its group"));
                }
                if let Some(device) = &device {
                    let (has, what) = match device {
                        Chosen::Cpu { .. } => (component.needs.cpu, "the CPU"),
                        _ => (component.needs.cuda, "CUDA"),
                    };
                    if !has {
                        c.say(Some(at), format!("{name} has no code for {what}; choose another `device`"));
                    }
                }
                *slot = Some(component);
            }
        };
        for list in [&mut default.forces, &mut default.integrators, &mut default.updaters, &mut default.analyzers] {
            bind(list, dt);
        }
        for (stage, lists) in pipeline.stages.iter().zip(&mut own) {
            lists.iter_mut().flatten().for_each(|list| bind(list, stage.dt));
        }
    }

    let mut components = vec![];
    let mut share = |list: Vec<Option<Component>>| -> Vec<Arc<Component>> {
        let shared: Vec<_> = list.into_iter().flatten().map(Arc::new).collect();
        components.extend(shared.iter().cloned());
        shared
    };
    let forces = share(default.forces);
    let integrators = share(default.integrators);
    let updaters = share(default.updaters);
    let analyzers = share(default.analyzers);
    let stages: Vec<StagePlan> = pipeline
        .stages
        .iter()
        .zip(own)
        .map(|(stage, [f, i, u, a])| StagePlan {
            stage: stage.clone(),
            forces: f.map_or_else(|| forces.clone(), &mut share),
            integrators: in_order(i.map_or_else(|| integrators.clone(), &mut share)),
            updaters: u.map_or_else(|| updaters.clone(), &mut share),
            analyzers: a.map_or_else(|| analyzers.clone(), &mut share),
        })
        .collect();

    let mut snapshot = snapshot;
    if let Some(s) = &mut snapshot
        && components.iter().any(|k| k.needs.arrays.iter().any(|a| a.name == "quaternion"))
        && let Err(e) = rotation::complete(&mut s.arrays)
    {
        let last = generators.last().and_then(Option::as_ref);
        c.say(last.map(|g| g.at), e.to_string());
    }

    if c.errors.is_empty() {
        for stage in &stages {
            check_stage(&mut c, stage, snapshot.as_ref());
        }
    }
    let neighbors = pipeline.neighbors;
    let molecules = match (neighbors.only, &snapshot) {
        (Some(only), Some(s)) => MoleculeRule::new(only, s),
        _ => None,
    };
    if neighbors.only.is_some() && snapshot.is_some() && molecules.is_none() {
        let what = "the molecules are not known: the initial state has neither an array `molecule` nor bonds";
        c.say(neighbors.only_at, what);
    }
    let (Some(snapshot), Some(device), true) = (snapshot, device, c.errors.is_empty()) else {
        return Err(Failure::Input(c.errors));
    };

    let used = components.iter().map(|c| &c.library).chain(generators.iter().flatten().map(|g| &g.library));
    let plugins = plugins_in_use(registry, used);
    tell_notes(&components);
    Ok(Plan { pipeline, device, snapshot, system, stages, components, groups, molecules, plugins })
}

/// The libraries of these files, by name.
fn plugins_in_use<'a>(registry: &Registry, files: impl Iterator<Item = &'a PathBuf>) -> Vec<PluginUse> {
    let mut plugins: Vec<PluginUse> = vec![];
    for path in files {
        let library = registry.libraries().iter().find(|l| l.path == *path);
        if let Some(l) = library
            && !plugins.iter().any(|p| p.path == *path)
        {
            if l.record.flags & flags::DEBUG != 0 {
                warn!("{} is a debug build, which is slow on the CPU; build it with --release", path.display());
            }
            plugins.push(PluginUse {
                name: l.record.name(),
                version: l.record.version(),
                path: path.clone(),
                hash: l.hash().to_string(),
            });
        }
    }
    plugins.sort_by(|a, b| a.name.cmp(&b.name));
    plugins
}

/// What components want the user to know.
fn tell_notes(components: &[Arc<Component>]) {
    for component in components {
        for warning in &component.needs.warnings {
            warn!("{}: {warning}", component.name);
        }
        for note in &component.needs.notes {
            info!("{}: {note}", component.name);
        }
    }
}

/// Runs the generators; `None` if any of them failed or could not be made.
fn generate(c: &mut Check<'_>, generators: &[Option<Component>], given: Option<Snapshot>) -> Option<Snapshot> {
    if c.pipeline.initial.is_empty() && given.is_some() {
        return given;
    }
    if c.pipeline.initial.is_empty() {
        c.say(None, "`initial` is empty: give a generator that makes or reads particles");
        return None;
    }
    let mut snapshot = given.unwrap_or_default();
    for g in generators {
        let g = g.as_ref()?;
        let context = GeneratorContext {
            seed: c.pipeline.seed,
            component: g.id,
            directory: c.pipeline.directory().to_string_lossy().into_owned(),
        };
        let part = g.generator()?;
        c.absorb(&g.name, g.at, part.generate(&context, &mut snapshot))?;
    }
    let last = generators.last()?.as_ref()?;
    let result = snapshot.check();
    c.absorb(&last.name, last.at, result)?;
    Some(snapshot)
}

/// Integrators in the order in which they run: those that only change the box, those that move particles, and those that
/// correct what others moved.
fn in_order(mut integrators: Vec<Arc<Component>>) -> Vec<Arc<Component>> {
    integrators.sort_by_key(|c| (c.needs.corrects, c.needs.moves));
    integrators
}

/// What integrators that correct need of the others, and what walls need of the box.
fn check_walls(c: &mut Check<'_>, plan: &StagePlan, s: &Snapshot) {
    let movers = || plan.integrators.iter().filter(|m| m.needs.moves && !m.needs.corrects);
    let correcting: Vec<_> = plan.integrators.iter().filter(|m| m.needs.corrects).collect();
    for a in &correcting {
        let moved = |tag: u32| movers().any(|m| m.needs.group.contains(tag, s));
        if let Some(tag) = (0..s.len() as u32).find(|tag| a.needs.group.contains(*tag, s) && !moved(*tag)) {
            let message = format!("no integrator moves particle {tag}, which {} corrects; give it a `group`", a.name);
            c.say(Some(a.at), message);
        }
    }
    let carrying =
        || movers().filter(|m| m.integrator().is_some_and(|i| i.program().is_ok_and(|p| p.carries_velocity)));
    if let (Some(a), Some(first)) = (correcting.first(), carrying().next())
        && let Some(other) = carrying().find(|m| m.name != first.name)
    {
        c.say(Some(a.at), format!("{} cannot correct what both {} and {} move", a.name, first.name, other.name));
    }
    let reach = plan.forces.iter().filter(|f| f.kind == Kind::Pair).fold(0.0f64, |m, f| m.max(f.needs.cutoff));
    for w in plan.forces.iter().chain(&plan.integrators) {
        if let Some(clearance) = w.needs.clearance.filter(|b| *b < 0.5 * reach) {
            warn!(
                "{}: only {clearance} lies between the wall and the face of the box behind it, less than half the cutoff \
                 {reach}: particles may see others through the periodic boundary",
                w.name
            );
        }
    }
}

/// What only makes sense together.
fn check_stage(c: &mut Check<'_>, plan: &StagePlan, snapshot: Option<&Snapshot>) {
    let at = Some(plan.stage.at);
    if plan.stage.steps > 0 && !plan.integrators.iter().any(|i| i.needs.moves && !i.needs.corrects) {
        c.say(at, format!("stage `{}` has no integrator: nothing would move", plan.stage.name));
    }
    let Some(s) = snapshot else { return };
    check_walls(c, plan, s);
    // a particle moved by two integrators would be moved twice
    let shears =
        |c: &Component| c.integrator().is_some_and(|i| i.program().is_ok_and(|p| p.phases.iter().any(|q| q.shear)));
    if let Some(shear) = plan.integrators.iter().find(|i| shears(i)) {
        let all = plan.forces.iter().chain(&plan.integrators).chain(&plan.updaters).chain(&plan.analyzers);
        for other in all.filter(|c| c.needs.plain_images) {
            c.say(Some(other.at), format!("{} does not know the displaced images of {}", other.name, shear.name));
        }
    }
    if let Some(f) = plan.forces.iter().find(|f| f.needs.without_virial) {
        let by_pressure = |c: &&Arc<Component>| {
            c.integrator().is_some_and(|i| i.program().is_ok_and(|p| p.phases.iter().any(|q| q.sim_box && !q.shear)))
        };
        let barostats = plan.integrators.iter().filter(by_pressure);
        for other in barostats.chain(plan.updaters.iter().filter(|u| u.needs.wants.thermo)) {
            c.say(
                Some(other.at),
                format!("{} has no virial, so there is no pressure that {} could use", f.name, other.name),
            );
        }
    }
    let movers: Vec<_> = plan.integrators.iter().filter(|i| i.needs.moves && !i.needs.corrects).collect();
    for (k, a) in movers.iter().enumerate() {
        for b in &movers[..k] {
            let both =
                (0..s.len() as u32).find(|tag| a.needs.group.contains(*tag, s) && b.needs.group.contains(*tag, s));
            if let Some(tag) = both {
                c.say(
                    Some(a.at),
                    format!("{} and {} both move particle {tag}; give them different groups", b.name, a.name),
                );
            }
        }
    }
    for f in &plan.forces {
        let n = match f.needs.link_width {
            2 => s.bonds.len(),
            3 => s.angles.len(),
            4 => s.dihedrals.len(),
            _ => continue,
        };
        if f.kind == Kind::Bonded && n == 0 && plan.updaters.is_empty() {
            info!("{}: there are no links for it in the initial state", f.name);
        }
    }
}

/// The group's place among all of the run, where it is put if it is new; 32 for all particles.
fn group_bit(groups: &mut Vec<GroupNeed>, group: &GroupNeed) -> u32 {
    if *group == GroupNeed::All {
        return MAX_GROUPS;
    }
    let place = groups.iter().position(|g| g == group).unwrap_or_else(|| {
        groups.push(group.clone());
        groups.len() - 1
    });
    place as u32
}

/// Whether there is no particle in a group.
fn is_empty(group: &GroupNeed, s: &Snapshot) -> bool {
    !(0..s.len() as u32).any(|tag| group.contains(tag, s))
}
