//! `galamost --pipeline`: runs one pipeline, or several at once.

use crate::terminal::{self, log};
use crate::{RunArgs, read, wrong_use};
use galamost_engine::activity::Watch;
use galamost_engine::backend::Backend;
use galamost_engine::checkpoint::{Checkpoint, files};
use galamost_engine::cpu;
use galamost_engine::device::Chosen;
use galamost_engine::diagnostic::{Diagnostic, Failure};
use galamost_engine::log::{event, set_run_name};
use galamost_engine::plan::{CheckOptions, Plan, check};
use galamost_engine::plugins::Registry;
use galamost_engine::run::record::{self, Record};
use galamost_engine::run::{self, RunOptions, Summary, execute, parse_walltime};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tracing::info;

/// A run that passed its check.
struct Ready {
    plan: Plan,
    resume: Option<Checkpoint>,
    walltime: Option<Duration>,
}

pub(crate) fn run_pipelines(args: &RunArgs, registry: &Registry, started: Instant) -> Result<u8, Failure> {
    let ready = match &args.pipeline[..] {
        [] => return Err(wrong_use("give --pipeline FILE, or see --help")),
        [file] => {
            let ready = prepare(file, args, registry)?;
            let _watch = watch(&ready, started, true);
            return run_one(ready, args, started, 1).map(|_| 0);
        }
        files => prepare_all(files, args, registry)?,
    };
    let n = ready.len() as u32;
    let _watches: Vec<Watch> = ready.iter().map(|r| watch(r, started, false)).collect();
    let particles: f64 = ready.iter().map(|r| r.plan.snapshot.len() as f64).sum();
    let begun = Instant::now();
    let done: Vec<Result<f64, Failure>> = std::thread::scope(|scope| {
        let run = |r: Ready| {
            scope.spawn(move || {
                let name = r.plan.pipeline.path.display().to_string();
                set_run_name(&name);
                let _span = tracing::info_span!("run", "{name}").entered();
                let done = run_one(r, args, started, n);
                // a second run that fails must not hide the first
                done.inspect_err(log::failure)
            })
        };
        let threads: Vec<_> = ready.into_iter().map(run).collect();
        let panicked = |_| Err(Failure::run("a run panicked"));
        threads.into_iter().map(|t| t.join().unwrap_or_else(panicked)).collect()
    });
    let failed = done.iter().filter_map(|d| d.as_ref().err()).map(Failure::exit_code).max();
    let particle_steps: f64 = done.iter().filter_map(|d| d.as_ref().ok().copied()).sum();
    let seconds = begun.elapsed().as_secs_f64();
    info!(
        "{n} runs of {particles} particles in {seconds:.2} s: {:.2} million particle-steps/s in all",
        particle_steps / seconds / 1e6
    );
    Ok(failed.unwrap_or(0))
}

/// Checks several pipelines, and tells the mistakes of all of them.
fn prepare_all(files: &[PathBuf], args: &RunArgs, registry: &Registry) -> Result<Vec<Ready>, Failure> {
    if args.resume.as_deref().is_some_and(|r| !matches!(r, "" | "auto")) {
        return Err(wrong_use("--resume takes the checkpoint of one pipeline; several go on from their newest ones"));
    }
    let (mut ready, mut wrong) = (vec![], vec![]);
    for (k, file) in files.iter().enumerate() {
        let same = |other: &PathBuf| std::fs::canonicalize(other).ok() == std::fs::canonicalize(file).ok();
        if files[..k].iter().any(same) {
            wrong.push(Diagnostic::new(file, None, "it is given twice: both would write the same files"));
            continue;
        }
        match prepare(file, args, registry) {
            Ok(r) => ready.push(r),
            Err(Failure::Input(list)) => wrong.extend(list),
            Err(e) => return Err(e),
        }
    }
    if wrong.is_empty() { Ok(ready) } else { Err(Failure::Input(wrong)) }
}

fn prepare(file: &Path, args: &RunArgs, registry: &Registry) -> Result<Ready, Failure> {
    let at_option = |m| Failure::Input(vec![Diagnostic::new("--walltime".as_ref(), None, m)]);
    let walltime = args.walltime.as_deref().map(parse_walltime).transpose().map_err(at_option)?;
    let pipeline = read(file, &args.set, args.device.as_deref())?;
    let path = pipeline.checkpoint_path();
    let about_file = |m: String| Failure::Input(vec![Diagnostic::new(&path, None, m)]);
    let from = match args.resume.as_deref() {
        None => vec![],
        Some(choice @ ("" | "auto")) => match files::present(&path) {
            none if none.is_empty() && choice.is_empty() => {
                return Err(about_file("there is no checkpoint to go on from".into()));
            }
            files => files,
        },
        Some(file) => vec![file.into()],
    };
    if (pipeline.checkpoint.regular() || walltime.is_some())
        && let Err(e) = files::probe(&path)
    {
        return Err(about_file(format!("a checkpoint cannot be written here: {e}")));
    }
    let options = CheckOptions { resumed: !from.is_empty(), ..CheckOptions::default() };
    let plan = check(pipeline, registry, options)?;
    if args.check_memory {
        if plan.device.kind() != "cpu" {
            return Err(wrong_use(
                "--check-memory is for the CPU; the emulated device always looks, and for a GPU there is compute-sanitizer",
            ));
        }
        cpu::guards::enable();
    }
    let resume = if from.is_empty() { None } else { Some(Checkpoint::find(&plan, &from, args.resume_changed)?) };
    Ok(Ready { plan, resume, walltime })
}

/// Runs one of `n` at once; particle-steps that it did.
fn run_one(ready: Ready, args: &RunArgs, started: Instant, n: u32) -> Result<f64, Failure> {
    let Ready { plan, resume, walltime } = ready;
    log_plan(&plan);
    let (stop, save) = terminal::signals()?;
    let (steps, quiet) = (args.steps, args.common.quiet);
    let options =
        RunOptions { steps, quiet, display: terminal::bar(quiet), stop, save, walltime, started: Some(started) };
    let record = (!args.no_record).then(|| Record::begin(&plan, resume.as_ref().map(|c| c.state.step)));
    if !plan.pipeline.ensemble.is_empty() {
        let done = run::ensemble::run(&plan, &options, resume);
        if let Some(r) = record {
            r.end(done.as_ref(), None);
        }
        let done = done?;
        info!("{} batches in {:.4} s", done.steps, done.seconds);
        if done.interrupted {
            info!("stopped; go on with: galamost --pipeline {} --resume", plan.pipeline.path.display());
        }
        return Ok(0.0);
    }
    let mut opened = run::open_shared(&plan, n);
    let done = match &mut opened {
        Ok(b) => execute(&plan, &mut **b, &options, resume),
        Err(e) => Err(e.clone()),
    };
    if let Some(r) = record {
        r.end(done.as_ref(), opened.as_mut().ok());
    }
    let summary = done?;
    log_summary(&plan, &mut *opened?, &summary);
    Ok(summary.steps as f64 * plan.snapshot.len() as f64)
}

/// Looks from outside whether the run moves; `GALAMOST_PATIENCE` has the seconds after which it is said that it does not.
fn watch(ready: &Ready, started: Instant, alone: bool) -> Watch {
    let (plan, deadline) = (&ready.plan, ready.walltime.map(|w| started + w));
    // numbers of components are those of one pipeline: of several, a name could be that of another
    let named = plan.components.iter().filter(|_| alone);
    let names = named.map(|c| (c.id, c.name.clone())).collect();
    let seconds = std::env::var("GALAMOST_PATIENCE").ok().and_then(|s| s.parse().ok()).unwrap_or(60.0);
    let patience = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::from_secs(60));
    let (path, pipeline) = (plan.pipeline.checkpoint_path(), plan.pipeline.path.display().to_string());
    Watch::start(names, patience, deadline, move |message| {
        let mut notes = vec![];
        if let Some(newest) = files::present(&path).first() {
            notes.push(format!("the last checkpoint is {}", newest.display()));
            notes.push(format!("go on with: galamost --pipeline {pipeline} --resume"));
        }
        let failure = Failure::Run(format!("the time is over: {message}"), notes);
        log::failure(&failure);
        std::process::exit(failure.exit_code().into());
    })
}

fn log_plan(plan: &Plan) {
    info!("galamost {}, {}", env!("CARGO_PKG_VERSION"), plan.pipeline.path.display());
    match &plan.device {
        Chosen::Cpu { reason } => info!(
            "device: CPU, {} threads, {} ({reason})",
            rayon::current_num_threads(),
            ["baseline vectors", "", "", "x86-64-v3", "x86-64-v4"][cpu::vector_extension() as usize]
        ),
        Chosen::Cuda { ordinal, reason } => info!("device: CUDA {ordinal} ({reason})"),
        Chosen::Emulated => info!("device: CUDA kernels emulated on the CPU: slow, for tests of kernels"),
    }
    let s = &plan.snapshot;
    event(
        "run",
        serde_json::json!({
            "engine": env!("CARGO_PKG_VERSION"), "pipeline": plan.pipeline.path, "device": record::device(plan),
            "precision": plan.pipeline.precision.name(), "seed": plan.pipeline.seed, "particles": s.len(), "bonds": s.bonds.len(),
            "box": s.box_length, "plugins": plan.plugins,
        }),
    );
    for p in &plan.plugins {
        info!("plugin {} {} from {} (sha256 {})", p.name, p.version, p.path.display(), &p.hash[..16]);
    }
    if s.is_empty() {
        return info!("{} samplers, seed {}", plan.components.len(), plan.pipeline.seed);
    }
    info!(
        "{} particles, {} bonds, box {:?}, precision {}, seed {}",
        s.len(),
        s.bonds.len(),
        s.box_length,
        plan.pipeline.precision.name(),
        plan.pipeline.seed
    );
}

fn log_summary(plan: &Plan, backend: &mut dyn Backend, s: &Summary) {
    let tps = s.steps as f64 / s.seconds.max(1e-9);
    let mps = tps * plan.snapshot.len() as f64 / 1e6;
    info!("{} steps in {:.2} s: {tps:.1} TPS, {mps:.2} million particle-steps/s", s.steps, s.seconds);
    let list = backend.list_report().ok().filter(|l| l.r_list > 0.0);
    event(
        "summary",
        serde_json::json!({
            "steps": s.steps, "seconds": s.seconds, "tps": tps, "interrupted": s.interrupted, "kT": s.thermo.map(|t| t.kt),
            "pressure": s.thermo.map(|t| t.pressure), "potential": s.thermo.map(|t| t.potential / t.n as f64),
            "list": list.map(|l| serde_json::json!({"radius": l.r_list, "mean": l.mean, "builds": l.builds})),
        }),
    );
    if let Some(l) = list {
        let interval = s.steps as f64 / l.builds.max(1) as f64;
        info!(
            "neighbor list: radius {:.3}, buffer {:.3}, {:.1} neighbors, {} builds (every {interval:.1} steps)",
            l.r_list, l.buffer, l.mean, l.builds
        );
    }
    if let Some(t) = s.thermo {
        info!("last sample: kT {:.5}, pressure {:.5}, potential/N {:.5}", t.kt, t.pressure, t.potential / t.n as f64);
    }
    if s.interrupted {
        info!("stopped; go on with: galamost --pipeline {} --resume", plan.pipeline.path.display());
    }
}
