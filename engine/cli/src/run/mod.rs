//! `galamost --pipeline`: runs one pipeline, several concurrently, or the replicas of one.

pub(crate) mod replicas;

mod processes;
mod resume;
mod room;

use crate::common::{Context, input_error, read_pipeline, usage_error};
use crate::output::numbers::significant;
use crate::terminal::{self, log};
use clap::Args;
use galamost_engine::activity::{Watch, patience};
use galamost_engine::backend::Backend;
use galamost_engine::checkpoint::{Checkpoint, files};
use galamost_engine::cpu;
use galamost_engine::device::Chosen;
use galamost_engine::diagnostic::{Diagnostic, Failure, counted};
use galamost_engine::log::{event, set_run_name};
use galamost_engine::pipeline::{Pipeline, Processes};
use galamost_engine::plan::files::collisions_between;
use galamost_engine::plan::{CheckOptions, Plan, check};
use galamost_engine::plugins::Registry;
use galamost_engine::processes::launch;
use galamost_engine::run::exchange::ExchangeSeat;
use galamost_engine::run::record::{self, Record};
use galamost_engine::run::{self, Lock, RunOptions, Summary, execute, outputs, parse_walltime};
use room::make_room;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tracing::info;

/// Options of a run.
#[derive(Args, Debug)]
#[command(next_help_heading = "Run options")]
pub(crate) struct RunArgs {
    /// Run this pipeline. Several pipelines run concurrently on the device; their output files must differ.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pipeline: Vec<PathBuf>,
    /// Device, overriding `device` of the pipeline: auto, cpu, cuda:0 or emulated. Several pipelines can be spread over
    /// several devices, in turn: `cuda:0,cuda:1`.
    #[arg(long, value_name = "DEVICE", value_delimiter = ',')]
    device: Vec<String>,
    /// Number of GPUs that share the run, overriding `gpus` of the pipeline: that of the device and the next ones.
    #[arg(long, value_name = "N")]
    gpus: Option<u32>,
    /// Total number of steps: the stages run in order, and the last one is shortened or extended. For an ensemble, the
    /// total number of batches.
    #[arg(long, value_name = "N")]
    steps: Option<u64>,
    /// Replace a value of the pipeline, for example `--set stages[0].dt=0.01`; may be given several times. The last value of a
    /// path counts.
    #[arg(long, value_name = "PATH=VALUE")]
    set: Vec<String>,
    /// Number of replicas, overriding `replicas` of the pipeline: runs with other seeds, and with the values of `Each([…])`.
    #[arg(long, value_name = "N")]
    replicas: Option<u32>,
    /// Give each replica a value of a list, for example `--sweep integrators[0].kT=[0.8,0.9,1.0]`; may be given several times.
    #[arg(long, value_name = "PATH=[VALUE,…]")]
    sweep: Vec<String>,
    /// Resume from the newest valid checkpoint; `--resume=auto` starts from scratch if there is none; `--resume=FILE`
    /// resumes from this checkpoint.
    #[arg(long, value_name = "auto|FILE", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    resume: Option<String>,
    /// With --resume: accept a checkpoint with other settings, another engine version or another plugin build.
    #[arg(long, requires = "resume")]
    resume_changed: bool,
    /// Replace the files of an earlier run instead of renaming them to `NAME.old`.
    #[arg(long)]
    overwrite: bool,
    /// Stop before this time has passed and write a checkpoint; hours:minutes:seconds or a batch system's format.
    #[arg(long, value_name = "TIME")]
    walltime: Option<String>,
    /// Check after every call of a component that it wrote only inside its arrays; slow, CPU only.
    #[arg(long)]
    check_memory: bool,
    /// Do not write the run record (`NAME.run.json`) that `galamost report` reads.
    #[arg(long)]
    no_record: bool,
}

impl RunArgs {
    /// Returns whether an option was given that only a run accepts.
    pub fn is_given(&self) -> bool {
        !self.pipeline.is_empty()
            || !self.device.is_empty()
            || self.gpus.is_some()
            || self.steps.is_some()
            || !self.set.is_empty()
            || self.replicas.is_some()
            || !self.sweep.is_empty()
            || self.resume.is_some()
            || self.overwrite
            || self.walltime.is_some()
    }
}

/// A pipeline that passed its check.
struct CheckedRun {
    plan: Plan,
    /// Checkpoints to resume from; none for a new run.
    from: Vec<PathBuf>,
    walltime: Option<Duration>,
}

/// A run that is locked and has found its checkpoint.
struct PreparedRun {
    plan: Plan,
    resume: Option<Checkpoint>,
    /// Files that a resumed run will replace and has not written.
    foreign: Vec<PathBuf>,
    walltime: Option<Duration>,
    /// Held until the run ends, by the process that writes the files.
    lock: Option<Lock>,
}

impl PreparedRun {
    /// Prepares a run. Without `writes`, another process writes the files.
    fn new(checked: CheckedRun, args: &RunArgs, writes: bool) -> Result<Self, Failure> {
        let CheckedRun { plan, from, walltime } = checked;
        let lock = if writes { Some(Lock::take(&plan)?) } else { None };
        let resume =
            if from.is_empty() || !writes { None } else { Some(Checkpoint::find(&plan, &from, args.resume_changed)?) };
        let wrong = |m: String| input_error(&plan.pipeline.path, m);
        let mut foreign = vec![];
        if let Some(checkpoint) = &resume {
            checkpoint.check_steps(&plan, args.steps).map_err(wrong)?;
            let found = outputs::foreign(&plan, &from, checkpoint.state.step, lock.as_ref());
            foreign = found.map_err(|e| wrong(e.to_string()))?;
        }
        Ok(Self { plan, resume, foreign, walltime, lock })
    }
}

/// Runs the pipelines.
///
/// # Errors
/// Returns all errors of the pipelines, or the error of a single run. With several runs the exit status is that of the
/// worst failure.
pub(crate) fn run(args: &RunArgs, context: &Context) -> Result<u8, Failure> {
    match launch() {
        Some(launch) if !args.pipeline.is_empty() => return processes::run(args, context, &launch),
        // the first process reports that there is no pipeline
        Some(launch) if launch.rank > 0 => return Ok(2),
        _ => {}
    }
    terminal::catch_early()?;
    let registry = context.registry();
    match &args.pipeline[..] {
        [] => Err(usage_error("give --pipeline FILE, or see --help")),
        [file] => {
            if let Some(pipelines) = replicas::read(file, &args.set, &args.device, &args.sweep, args.replicas)? {
                return replicas::run(file, pipelines, args, context, &registry);
            }
            if args.device.len() > 1 {
                return Err(usage_error("one pipeline runs on one device; a list of devices is for several pipelines"));
            }
            let mut prepared =
                PreparedRun::new(check_one(file, 0, args, &registry, Processes::default())?, args, true)?;
            make_room(std::slice::from_mut(&mut prepared), &[], args)?;
            let _watch = watch(&prepared, args, context.started, true);
            run_one(prepared, args, context, ReplicaPart::default(), |plan| run::open_shared(plan, 1)).map(|_| 0)
        }
        _ if args.replicas.is_some() || !args.sweep.is_empty() => {
            Err(usage_error("--replicas and --sweep work with one pipeline only"))
        }
        files => {
            let mut prepared = prepare_all(files, args, &registry)?;
            make_room(&mut prepared, &[], args)?;
            run_concurrently(prepared, args, context)
        }
    }
}

/// Runs several pipelines, each in its own thread. Returns the exit status of the worst failure.
fn run_concurrently(prepared: Vec<PreparedRun>, args: &RunArgs, context: &Context) -> Result<u8, Failure> {
    let n = prepared.len();
    let devices: Vec<_> = prepared.iter().map(|r| record::device(&r.plan)).collect();
    let sharing = |r: &PreparedRun| devices.iter().filter(|d| **d == record::device(&r.plan)).count() as u32;
    let names: Vec<String> = prepared.iter().map(|r| r.plan.pipeline.path.display().to_string()).collect();
    let _watches: Vec<Watch> = prepared.iter().map(|r| watch(r, args, context.started, false)).collect();
    let particles: f64 = prepared.iter().map(|r| r.plan.snapshot.len() as f64).sum();
    let begun = Instant::now();
    let done: Vec<Result<f64, Failure>> = std::thread::scope(|scope| {
        let run = |r: PreparedRun| {
            let sharing = sharing(&r);
            scope.spawn(move || {
                let name = r.plan.pipeline.path.display().to_string();
                set_run_name(&name);
                let _span = tracing::info_span!("run", "{name}").entered();
                let done = run_one(r, args, context, ReplicaPart::default(), |plan| run::open_shared(plan, sharing));
                // report here: a later failure must not hide this one
                done.map_err(room::of_begun).inspect_err(log::failure)
            })
        };
        let threads: Vec<_> = prepared.into_iter().map(run).collect();
        let ended = |(t, name): (std::thread::ScopedJoinHandle<'_, _>, &String)| {
            let panicked = |_| Err(Failure::run(format!("{name}: the run panicked"))).inspect_err(log::failure);
            t.join().unwrap_or_else(panicked)
        };
        threads.into_iter().zip(&names).map(ended).collect()
    });
    let failed = done.iter().filter_map(|d| d.as_ref().err()).map(Failure::exit_code).max();
    let particle_steps: f64 = done.iter().filter_map(|d| d.as_ref().ok().copied()).sum();
    let seconds = begun.elapsed().as_secs_f64();
    info!(
        "{n} runs of {particles} particles in {seconds:.2} s: {:.2} million particle-steps/s in total",
        particle_steps / seconds / 1e6
    );
    Ok(failed.unwrap_or(0))
}

/// Checks several pipelines and returns the errors of all of them.
fn prepare_all(files: &[PathBuf], args: &RunArgs, registry: &Registry) -> Result<Vec<PreparedRun>, Failure> {
    if args.resume.as_deref().is_some_and(|r| !matches!(r, "" | "auto")) {
        return Err(usage_error(
            "--resume=FILE works with one pipeline only; without FILE, each pipeline resumes from its newest checkpoint",
        ));
    }
    let (mut checked, mut prepared, mut errors) = (vec![], vec![], vec![]);
    for (k, file) in files.iter().enumerate() {
        let same = |other: &PathBuf| std::fs::canonicalize(other).ok() == std::fs::canonicalize(file).ok();
        if files[..k].iter().any(same) {
            errors.push(Diagnostic::new(file, None, "is given twice: both runs would write the same files"));
            continue;
        }
        match check_one(file, k, args, registry, Processes::default()) {
            Ok(r) => checked.push(r),
            Err(Failure::Input(list)) => errors.extend(list),
            Err(Failure::Run(message, notes)) => {
                return Err(Failure::Run(format!("{}: {message}", file.display()), notes));
            }
        }
    }
    errors.extend(collisions_between(checked.iter().map(|c| &c.plan.files[..])));
    if !errors.is_empty() {
        return Err(Failure::Input(errors));
    }
    for run in checked {
        let path = run.plan.pipeline.path.clone();
        match PreparedRun::new(run, args, true) {
            Ok(r) => prepared.push(r),
            Err(Failure::Input(list)) => errors.extend(list),
            Err(Failure::Run(message, notes)) => {
                return Err(Failure::Run(format!("{}: {message}", path.display()), notes));
            }
        }
    }
    if errors.is_empty() { Ok(prepared) } else { Err(Failure::Input(errors)) }
}

/// Checks pipeline number `k` and lists the checkpoints it may resume from.
fn check_one(
    file: &Path,
    k: usize,
    args: &RunArgs,
    registry: &Registry,
    processes: Processes,
) -> Result<CheckedRun, Failure> {
    let device = args.device.get(k % args.device.len().max(1));
    let (mut pipeline, errors) = read_pipeline(file, &args.set, device.map(String::as_str))?;
    pipeline.processes = processes;
    check_pipeline(pipeline, errors, args, registry, None)
}

/// Checks a pipeline that resumes from one of the checkpoints `from`, if there are any; by default those of `--resume`.
fn check_pipeline(
    mut pipeline: Pipeline,
    errors: Vec<Diagnostic>,
    args: &RunArgs,
    registry: &Registry,
    from: Option<Vec<PathBuf>>,
) -> Result<CheckedRun, Failure> {
    let walltime = args.walltime.as_deref().map(parse_walltime).transpose();
    let walltime = walltime.map_err(|m| input_error("--walltime", m))?;
    if let Some(gpus) = args.gpus {
        (pipeline.gpus, pipeline.gpus_at) = (gpus, None);
    }
    let path = pipeline.checkpoint_path();
    let from = match from {
        Some(chosen) => chosen,
        None => resume::checkpoints(&pipeline, args)?,
    };
    let options = CheckOptions { resumed: !from.is_empty(), errors, ..CheckOptions::default() };
    let plan = check(pipeline, registry, options)?;
    if walltime.is_some()
        && let Err(e) = files::probe(&path)
    {
        return Err(input_error(&path, format!("cannot write a checkpoint here: {e}")));
    }
    if args.check_memory {
        if plan.device.kind() != "cpu" {
            return Err(usage_error(
                "--check-memory needs --device cpu; the emulated device always checks, and for a GPU use compute-sanitizer",
            ));
        }
        cpu::guards::enable();
    }
    Ok(CheckedRun { plan, from, walltime })
}

/// How a replica takes part in the run of all.
#[derive(Default)]
struct ReplicaPart {
    /// Leaves out what all replicas would log.
    brief: bool,
    exchange: Option<Arc<ExchangeSeat>>,
}

/// Runs a pipeline on the backend that `open` returns, after [`make_room`]. Returns the number of particle-steps.
fn run_one(
    prepared: PreparedRun,
    args: &RunArgs,
    context: &Context,
    ReplicaPart { brief, exchange }: ReplicaPart,
    open: impl FnOnce(&Plan) -> Result<Box<dyn Backend>, Failure>,
) -> Result<f64, Failure> {
    let PreparedRun { plan, resume, foreign: _, walltime, lock: _lock } = prepared;
    if !brief {
        log_plan(&plan);
    }
    let (stop, save) = terminal::signals()?;
    let (steps, quiet) = (args.steps, context.common.quiet || brief);
    let started = Some(context.started);
    let display = if brief { Some(terminal::no_display()) } else { terminal::bar(quiet) };
    let options =
        RunOptions { steps, quiet, display, stop, save, walltime, started, exchange, ..RunOptions::default() };
    let again = |failure| resume::with_options(failure, &plan.pipeline, args);
    let record = (!args.no_record).then(|| Record::begin(&plan, resume.as_ref().map(|c| c.state.step), steps));
    if !plan.pipeline.ensemble.is_empty() {
        let done = run::ensemble::run(&plan, &options, resume).map_err(again);
        if let Some(r) = record {
            r.end(done.as_ref(), None);
        }
        let done = done?;
        info!("{} in {:.4} s", counted(done.steps, "batch"), done.seconds);
        if done.total_steps > done.steps {
            info!("{} in total, including those before the checkpoint", counted(done.total_steps, "batch"));
        }
        if done.interrupted {
            info!("stopped; {}", resume::advice(&plan.pipeline, args));
        }
        return Ok(0.0);
    }
    let resumes = resume.is_some();
    let mut opened = open(&plan);
    let done = match &mut opened {
        Ok(b) => execute(&plan, &mut **b, &options, resume).map_err(again),
        Err(e) => {
            // foreign files have been set aside: the others are those of this run
            if resumes {
                files::touch(&plan.pipeline.checkpoint_path());
            }
            Err(e.clone())
        }
    };
    if let Some(r) = record {
        r.end(done.as_ref(), opened.as_mut().ok());
    }
    let summary = done?;
    if !brief {
        log_summary(&plan, args, &mut *opened?, &summary);
    }
    Ok(summary.steps as f64 * plan.snapshot.len() as f64)
}

/// Watches the progress of a run and enforces its walltime. A warning appears after [`patience`] without
/// progress.
fn watch(prepared: &PreparedRun, args: &RunArgs, started: Instant, alone: bool) -> Watch {
    let (plan, deadline) = (&prepared.plan, prepared.walltime.map(|w| started + w));
    // component ids are unique within one pipeline only, so names are ambiguous for several
    let named = plan.components.iter().filter(|_| alone);
    let names = named.map(|c| (c.id, c.name.clone())).collect();
    let (path, pipeline) = (plan.pipeline.checkpoint_path(), plan.pipeline.path.display().to_string());
    let advice = resume::advice(&plan.pipeline, args);
    let recorded = (!args.no_record).then(|| plan.pipeline.path.clone());
    Watch::start(names, patience(), deadline, move |message| {
        if !alone {
            set_run_name(&pipeline);
        }
        let mut notes = vec![];
        if let Some(newest) = files::present(&path).first() {
            notes.push(format!("the last checkpoint is {}", newest.display()));
            notes.push(advice.clone());
        }
        let failure = Failure::Run(format!("the walltime is over: {message}"), notes);
        log::failure(&failure);
        if let Some(pipeline) = &recorded {
            record::abandon(pipeline, &failure);
        }
        std::process::exit(failure.exit_code().into());
    })
}

/// Logs the device, the plugins and the system of a run.
fn log_plan(plan: &Plan) {
    info!("galamost {}, {}", env!("CARGO_PKG_VERSION"), plan.pipeline.path.display());
    match &plan.device {
        Chosen::Cpu { reason } => info!(
            "device: CPU, {}, {} ({reason})",
            counted(rayon::current_num_threads() as u64, "thread"),
            ["baseline vectors", "", "", "x86-64-v3", "x86-64-v4"][cpu::vector_extension() as usize]
        ),
        Chosen::Cuda { ordinal, reason } if plan.pipeline.gpus > 1 => {
            info!("device: CUDA {ordinal} to {} ({reason})", ordinal + plan.pipeline.gpus - 1);
        }
        Chosen::Cuda { ordinal, reason } => info!("device: CUDA {ordinal} ({reason})"),
        Chosen::Emulated => info!("device: CUDA kernels emulated on the CPU (slow; for testing kernels)"),
    }
    let s = &plan.snapshot;
    event(
        "run",
        serde_json::json!({
            "engine": env!("CARGO_PKG_VERSION"), "pipeline": plan.pipeline.path.to_string_lossy(), "device": record::device(plan),
            "precision": plan.pipeline.precision.name(), "seed": plan.pipeline.seed, "particles": s.len(), "bonds": s.bonds.len(),
            "box": s.box_length, "plugins": plan.plugins,
        }),
    );
    for p in &plan.plugins {
        info!("plugin {} {} from {} (blake3 {})", p.name, p.version, p.path.display(), &p.hash[..16]);
    }
    if s.is_empty() {
        return info!("{}, seed {}", counted(plan.components.len() as u64, "sampler"), plan.pipeline.seed);
    }
    info!(
        "system: {}, {}, box {}, {} precision, seed {}",
        counted(s.len() as u64, "particle"),
        counted(s.bonds.len() as u64, "bond"),
        box_and_density(s.box_length, s.len()),
        plan.pipeline.precision.name().to_lowercase(),
        plan.pipeline.seed
    );
}

/// Formats box lengths and the number density; in two dimensions the third length is 0.
fn box_and_density(lengths: [f64; 3], n: usize) -> String {
    let used: Vec<f64> = lengths.into_iter().filter(|l| *l > 0.0).collect();
    let shown: Vec<String> = used.iter().map(|l| significant(*l, 6)).collect();
    format!("{}, density {}", shown.join(" × "), significant(n as f64 / used.iter().product::<f64>(), 4))
}

/// Logs the speed, the neighbor list and the last sample of a run.
fn log_summary(plan: &Plan, args: &RunArgs, backend: &mut dyn Backend, s: &Summary) {
    let tps = s.steps as f64 / s.seconds.max(1e-9);
    let mps = tps * plan.snapshot.len() as f64 / 1e6;
    let steps = counted(s.steps, "step");
    info!("{steps} in {:.2} s: {tps:.1} TPS, {mps:.2} million particle-steps/s", s.seconds);
    if s.total_steps > s.steps {
        info!("{} in total, including those before the checkpoint", counted(s.total_steps, "step"));
    }
    let list = backend.list_report().ok().filter(|l| l.r_list > 0.0);
    event(
        "summary",
        serde_json::json!({
            "steps": s.steps, "total_steps": s.total_steps, "seconds": s.seconds, "tps": tps, "interrupted": s.interrupted, "kT": s.thermo.map(|t| t.kt),
            "pressure": s.thermo.map(|t| t.pressure), "potential": s.thermo.map(|t| t.potential / t.n as f64),
            "list": list.map(|l| serde_json::json!({"radius": l.r_list, "mean": l.mean, "builds": l.builds})),
        }),
    );
    if let Some(l) = list {
        // builds are counted since the start, as are the steps
        let interval = s.total_steps as f64 / l.builds.max(1) as f64;
        info!(
            "neighbor list: radius {:.3}, buffer {:.3}, {:.1} neighbors, {}, one every {interval:.1} steps",
            l.r_list,
            l.buffer,
            l.mean,
            counted(l.builds, "rebuild")
        );
    }
    if let Some(t) = s.thermo {
        info!("last sample: kT {:.5}, pressure {:.5}, potential/N {:.5}", t.kt, t.pressure, t.potential / t.n as f64);
    }
    if s.interrupted {
        info!("stopped; {}", resume::advice(&plan.pipeline, args));
    }
}
