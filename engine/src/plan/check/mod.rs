//! The check of a pipeline: everything that can be verified before step 0, with all errors at once.

mod across;
mod arrays;
mod bonds;
mod boxes;
mod components;
mod ensemble;
mod exchange;
mod generate;
mod special;
mod stage;
mod state;

pub use across::walls::outside as wall_outside;

use super::{Plan, PluginUse, StagePlan};
use super::{files, inputs};
use crate::device::{self, Chosen};
use crate::diagnostic::{Diagnostic, Failure, counted};
use crate::pipeline::{Pipeline, Processes};
use crate::plugins::{Component, Registry};
use crate::state::molecules::MoleculeRule;
use crate::state::rotation;
use across::{constraints, samples, walls};
use components::Lists;
pub use components::analyzer_list;
pub use exchange::corrections_differ;
use galamost_plugin_api::component::{GroupNeed, SystemInfo};
use galamost_plugin_api::error::{Error, InputError, Position};
use galamost_plugin_api::plugin_record::{API_MINOR, flags};
use galamost_plugin_api::snapshot::Snapshot;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tracing::{info, warn};

/// Options of a check.
#[derive(Clone, Debug, Default)]
pub struct CheckOptions {
    /// The run resumes from a checkpoint.
    pub resumed: bool,
    /// An existing state; generators, if there are any, modify it.
    pub snapshot: Option<Snapshot>,
    /// Errors in the pipeline's own fields, which are reported with those of components.
    pub errors: Vec<Diagnostic>,
}

/// Number of the next run in this process.
static NEXT_RUN: AtomicU64 = AtomicU64::new(1);

/// Checks a pipeline.
///
/// # Errors
/// Returns every error found.
pub fn check(pipeline: Pipeline, registry: &Registry, options: CheckOptions) -> Result<Plan, Failure> {
    let errors = options.errors.into_iter().map(|d| (d.at, d)).collect();
    let mut c = Check { pipeline: &pipeline, registry, errors, warnings: vec![], next_id: 0, resumed: options.resumed };
    let bound = if pipeline.ensemble.is_empty() { stages(&mut c, options.snapshot)? } else { ensemble::check(&mut c)? };
    let used = bound.components.iter().map(|c| &c.library).chain(bound.generators.iter().map(|g| &g.library));
    let plugins = plugins_in_use(registry, used);
    let warnings = c.warnings(&bound.components);
    let partners = files::partners(&bound.files, &bound.stages);
    let inputs = inputs::hashes(&pipeline, &bound.files, &bound.snapshot);
    Ok(Plan {
        pipeline,
        device: bound.device,
        snapshot: bound.snapshot,
        system: bound.system,
        stages: bound.stages,
        components: bound.components,
        groups: bound.groups,
        molecules: bound.molecules,
        plugins,
        warnings,
        files: bound.files,
        partners,
        inputs,
    })
}

/// What a pipeline without errors is bound to; see [`Plan`].
struct Bound {
    device: Chosen,
    snapshot: Snapshot,
    system: SystemInfo,
    generators: Vec<Component>,
    stages: Vec<StagePlan>,
    components: Vec<Arc<Component>>,
    groups: Vec<GroupNeed>,
    molecules: Option<MoleculeRule>,
    files: Vec<files::RunFile>,
}

/// Runs the generators and binds the components of a pipeline with stages.
fn stages(c: &mut Check<'_>, existing: Option<Snapshot>) -> Result<Bound, Failure> {
    c.check_replicas()?;
    let generators = c.create("initial", &c.pipeline.initial);
    let mut lists = Lists::create(c);
    let device = c.choose_device();
    let mut snapshot = generate::generate(c, &generators, existing);
    let system = SystemInfo {
        dt: c.pipeline.stages.first().map_or(0.0, |s| s.dt),
        ..c.system_info(snapshot.as_ref(), device.as_ref())
    };
    let groups = match &snapshot {
        Some(s) => lists.bind(c, &system, s, device.as_ref()),
        None => vec![],
    };
    let (mut stages, components) = lists.into_stages(&c.pipeline.stages);
    stages.iter_mut().for_each(|stage| constraints::count(stage, snapshot.as_ref()));

    let last_generator = generators.last().and_then(Option::as_ref).map(|g| g.at);
    complete_rotation(c, snapshot.as_mut(), &components, last_generator);
    arrays::check(c, &components, snapshot.as_ref(), last_generator);
    if c.errors.is_empty() {
        check_stages(c, &stages, snapshot.as_ref(), last_generator);
    }
    c.check_ranks(device.as_ref(), snapshot.as_ref());
    exchange::check(c, &stages);
    special::check_run(c, snapshot.as_ref());
    let molecules = molecule_rule(c, snapshot.as_ref());
    let files = c.files(&components, &stages);
    match (snapshot, device) {
        (Some(snapshot), Some(device)) if c.errors.is_empty() => {
            let generators = generators.into_iter().flatten().collect();
            Ok(Bound { device, snapshot, system, generators, stages, components, groups, molecules, files })
        }
        _ => Err(c.failure()),
    }
}

/// Checks what stages do with the initial state.
fn check_stages(
    c: &mut Check<'_>,
    stages: &[StagePlan],
    snapshot: Option<&Snapshot>,
    last_generator: Option<Position>,
) {
    let all = stages.iter().flat_map(|p| p.integrators.iter().chain(&p.updaters));
    let changes_tilt = all.filter(|c| c.needs.changes_tilt).map(|c| c.name.as_str()).next();
    for (k, stage) in stages.iter().enumerate() {
        stage::check(c, stage, &stages[..k], snapshot, changes_tilt);
        special::check(c, stage);
        if let Some(s) = snapshot {
            let begins = !c.resumed && stages[..k].iter().all(|p| p.stage.steps == 0);
            bonds::check(c, stage, &stages[..k], s, begins);
            constraints::check(c, stage, &stages[..k], s, begins);
        }
    }
    if let Some(s) = snapshot {
        walls::check(c, stages, s);
        samples::check(c, stages, s);
        state::check_rows(c, s, last_generator);
        if !c.resumed {
            state::check(c, stages, s, last_generator);
        }
    }
}

/// A check under way, with the errors and warnings found so far.
struct Check<'a> {
    pipeline: &'a Pipeline,
    registry: &'a Registry,
    /// Errors, with the position in the pipeline that they belong to.
    errors: Vec<(Option<Position>, Diagnostic)>,
    warnings: Vec<Diagnostic>,
    next_id: u32,
    resumed: bool,
}

impl Check<'_> {
    /// Adds an error.
    fn error(&mut self, at: Option<Position>, message: impl Into<String>) {
        self.errors.push((at, Diagnostic::new(&self.pipeline.path, at, message)));
    }

    /// Returns all errors in the order of the file, each once.
    fn failure(&mut self) -> Failure {
        let mut errors = std::mem::take(&mut self.errors);
        errors.sort_by_key(|(at, _)| *at);
        let mut list: Vec<Diagnostic> = vec![];
        for (_, d) in errors {
            let d = self.pipeline.locate(d);
            if !list.contains(&d) {
                list.push(d);
            }
        }
        Failure::Input(list)
    }

    /// Returns the files of the run. Adds errors of outputs that cannot be written or that other files exclude.
    fn files(&mut self, components: &[Arc<Component>], stages: &[StagePlan]) -> Vec<files::RunFile> {
        let mut errors = vec![];
        let found = files::find(self.registry, self.pipeline, components, self.resumed, &mut errors);
        errors.extend(files::collisions(&found, self.pipeline, stages));
        self.errors.extend(errors.into_iter().map(|d| (d.at, d)));
        found
    }

    /// Adds a warning.
    fn warn(&mut self, at: Option<Position>, message: impl Into<String>) {
        self.warnings.push(Diagnostic::new(&self.pipeline.path, at, message));
    }

    /// Logs all warnings and notes, and returns the warnings. Those of replicas are logged by the caller, because many are
    /// equal.
    fn warnings(&mut self, components: &[Arc<Component>]) -> Vec<Diagnostic> {
        for component in components {
            for text in &component.needs.warnings {
                let (path, text) = (&self.pipeline.path, InputError::new(text.as_str()));
                self.warnings.push(Diagnostic::of_component(path, component.at, &component.name, text));
            }
            // those of the first replica are those of all
            for note in component.needs.notes.iter().filter(|_| self.pipeline.replica.unwrap_or(0) == 0) {
                info!("{}: {note}", component.name);
            }
        }
        let warnings = std::mem::take(&mut self.warnings).into_iter().map(|w| self.pipeline.locate(w));
        let warnings: Vec<Diagnostic> = warnings.collect();
        if self.pipeline.replica.is_none() {
            warnings.iter().for_each(|w| warn!("{w}"));
        }
        warnings
    }

    /// Returns the value of a component's result, or adds its errors.
    fn absorb<T>(&mut self, name: &str, at: Position, result: Result<T, Error>) -> Option<T> {
        match result {
            Ok(v) => Some(v),
            Err(Error::Input(list)) => {
                let path = &self.pipeline.path;
                for e in list {
                    let position = if e.file.is_some() { at } else { e.at.unwrap_or(at) };
                    self.errors.push((Some(position), Diagnostic::of_component(path, at, name, e)));
                }
                None
            }
            Err(e) => {
                let mut d = Diagnostic::new(&self.pipeline.path, Some(at), e.to_string());
                // the message of a panic already names the component
                d.component = (!matches!(e, Error::Panic { .. })).then(|| name.into());
                self.errors.push((Some(at), d));
                None
            }
        }
    }

    /// Returns the device that the pipeline requests.
    fn choose_device(&mut self) -> Option<Chosen> {
        let chosen = device::choose(self.pipeline.device).and_then(|d| match self.pipeline.processes {
            Processes { count: 1, .. } => Ok(d),
            Processes { local, .. } => d.of_process(local),
        });
        match chosen {
            Ok(d) => Some(d),
            Err(message) => {
                self.error(self.pipeline.device_at, message);
                None
            }
        }
    }

    /// Returns what a run that several ranks cannot share needs.
    fn one_rank(&self) -> &'static str {
        match self.pipeline.processes.count {
            1 => "one GPU; remove `gpus`",
            _ => "one process; start `galamost` without `mpiexec` or `srun`",
        }
    }

    /// Adds an error if the run cannot be shared by as many ranks as requested.
    fn check_ranks(&mut self, device: Option<&Chosen>, snapshot: Option<&Snapshot>) {
        let (gpus, processes, ranks) = (self.pipeline.gpus, self.pipeline.processes.count, self.pipeline.ranks());
        let what = if processes > 1 { "processes" } else { "GPUs" };
        let problem = match (device, snapshot) {
            _ if gpus == 1 && processes == 1 => return,
            _ if gpus != 1 && processes > 1 => {
                Some(format!("each of {processes} processes uses one GPU, not {gpus}; remove `gpus`"))
            }
            _ if gpus == 0 || ranks as usize > device::args::MAX_RANKS => Some(format!(
                "{} {what}; a run can use 1 to {}",
                if gpus == 0 { 0 } else { ranks },
                device::args::MAX_RANKS
            )),
            (Some(device), Some(s)) => {
                let blocks = s.len().div_ceil(device::args::BLOCK as usize);
                let too_few = format!(
                    "{} are too few for {ranks} {what}: each needs a block of {}",
                    counted(s.len() as u64, "particle"),
                    device::args::BLOCK
                );
                let peers = if processes > 1 { Ok(()) } else { device.check_ranks(gpus) };
                peers.err().or_else(|| (blocks < ranks as usize).then_some(too_few))
            }
            _ => None,
        };
        if let Some(message) = problem {
            self.error(self.pipeline.gpus_at, message);
        }
        if self.pipeline.replica.is_some() && gpus > 1 {
            self.error(self.pipeline.gpus_at, format!("{gpus} GPUs; replicas run on one device"));
        }
    }

    /// Returns an error if the pipeline is that of several replicas, from which those of single ones must be made. Other errors are
    /// left out: values such as `Each([…])` are wrong here and right in the run of the replicas.
    fn check_replicas(&mut self) -> Result<(), Failure> {
        let n = self.pipeline.replicas;
        if n == 1 {
            return Ok(());
        }
        let message: String = if self.pipeline.processes.count > 1 {
            "replicas run in one process; start `galamost` without `mpiexec`".into()
        } else {
            let one = crate::pipeline::replica_path(&self.pipeline.path, 0);
            format!(
                "{n} replicas need a run of their own, `galamost --pipeline {}`; it writes a pipeline for each, such as {}",
                self.pipeline.path.display(),
                one.file_name().unwrap_or_default().to_string_lossy()
            )
        };
        self.errors.clear();
        self.error(self.pipeline.replicas_at, message);
        Err(self.failure())
    }

    /// Adds an error if a component cannot run on the device.
    fn require_code(&mut self, component: &Component, device: Option<&Chosen>) {
        let (has_code, what) = match device {
            None => return,
            Some(Chosen::Cpu { .. }) => (component.needs.cpu, "the CPU"),
            Some(_) => (component.needs.cuda, "CUDA"),
        };
        if !has_code {
            let message = format!("{} has no code for {what}; choose another `device`", component.name);
            self.error(Some(component.at), message);
        }
    }

    /// Returns the system that components are bound to; without a snapshot, only the facts of the run.
    fn system_info(&self, snapshot: Option<&Snapshot>, device: Option<&Chosen>) -> SystemInfo {
        SystemInfo {
            seed: self.pipeline.seed,
            device: device.map_or("cpu", Chosen::kind).into(),
            directory: self.pipeline.directory().to_string_lossy().into_owned(),
            resumed: self.resumed,
            run: NEXT_RUN.fetch_add(1, Ordering::Relaxed),
            rank: self.pipeline.processes.rank,
            api_minor: API_MINOR,
            ..snapshot
                .map(|s| SystemInfo::of(s).in_precision(s, self.pipeline.precision))
                .unwrap_or(SystemInfo { precision: self.pipeline.precision as u32, ..SystemInfo::default() })
        }
    }
}

/// Completes quaternions, if a component needs them. Errors point to the last generator.
fn complete_rotation(
    c: &mut Check<'_>,
    snapshot: Option<&mut Snapshot>,
    components: &[Arc<Component>],
    last_generator: Option<Position>,
) {
    let needed = components.iter().any(|k| k.needs.arrays.iter().any(|a| a.name == "quaternion"));
    if let Some(s) = snapshot.filter(|_| needed)
        && let Err(e) = rotation::complete(&mut s.arrays)
    {
        c.error(last_generator, e.to_string());
    }
}

/// Returns the rule of `neighbors: (only: …)`.
fn molecule_rule(c: &mut Check<'_>, snapshot: Option<&Snapshot>) -> Option<MoleculeRule> {
    let neighbors = c.pipeline.neighbors;
    let (only, snapshot) = (neighbors.only?, snapshot?);
    let rule = MoleculeRule::new(only, snapshot);
    if rule.is_none() {
        let message = "the molecules are not known: the initial state has neither an array `molecule` nor bonds";
        c.error(neighbors.only_at, message);
    }
    rule
}

/// Returns the libraries of these files, sorted by name.
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
