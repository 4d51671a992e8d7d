//! The command line.

use crate::checkpoint::{Checkpoint, files};
use crate::cpu;
use crate::device::Chosen;
use crate::gpu::GpuSystem;
use crate::log::{self, Format};
use crate::pipeline::{DeviceChoice, Pipeline};
use crate::plan::{CheckOptions, Plan, check};
use crate::plugins::{Registry, search_path};
use crate::record::Record;
use crate::report::Failure;
use crate::run::{Backend, RunOptions, Summary, execute, parse_walltime};
use crate::watch::Watch;
use clap::{Args, Parser, Subcommand};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use tracing::info;

/// Coarse-grained molecular simulation of polymers and soft matter, with all physics in plugins.
#[derive(Parser, Debug)]
#[command(name = "galamost", version)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    run: RunArgs,
}

#[derive(Args, Debug)]
struct Common {
    /// Folder with plugins, looked at before all others; may be given several times.
    #[arg(long, global = true, value_name = "DIR")]
    plugin_dir: Vec<PathBuf>,
    /// Threads of the CPU; all by default.
    #[arg(long, global = true, value_name = "N")]
    threads: Option<usize>,
    /// More in the log; twice for everything.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
    /// Warnings and errors only.
    #[arg(short, long, global = true)]
    quiet: bool,
    /// The log on standard error: lines for people, or JSON objects, one a line.
    #[arg(long, global = true, value_enum, default_value = "text", value_name = "text|json")]
    log: Format,
}

#[derive(Args, Debug)]
struct RunArgs {
    /// The pipeline to run; several at once share the device, each in its own folder or with names of its own.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pipeline: Vec<PathBuf>,
    /// auto, cpu, cuda:0 or emulated, instead of the pipeline's `device`.
    #[arg(long, value_name = "DEVICE")]
    device: Option<String>,
    /// Steps in all: stages keep their order, the last one is cut or stretched; batches in all of an ensemble.
    #[arg(long, value_name = "N")]
    steps: Option<u64>,
    /// Replaces a value of the pipeline, as in `--set stages[0].dt=0.01`; may be given several times.
    #[arg(long, value_name = "PATH=VALUE")]
    set: Vec<String>,
    /// Goes on from the newest checkpoint that is whole; `auto`: begins anew where there is none; FILE: from this one.
    #[arg(long, value_name = "auto|FILE", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    resume: Option<String>,
    /// With --resume: takes a checkpoint of another seed, precision, engine or build of a plugin.
    #[arg(long, requires = "resume")]
    resume_changed: bool,
    /// Ends the run, with a checkpoint, before it has taken so long: hours:minutes:seconds, or as queues write it.
    #[arg(long, value_name = "TIME")]
    walltime: Option<String>,
    /// Looks after every call of a component whether it wrote outside of its arrays; slow, on the CPU.
    #[arg(long)]
    check_memory: bool,
    /// Writes no record of the run (`NAME.run.json`, for `galamost report`).
    #[arg(long)]
    no_record: bool,
    #[command(flatten)]
    common: Common,
}

impl RunArgs {
    /// Whether anything that only a run takes was given.
    fn is_given(&self) -> bool {
        !self.pipeline.is_empty()
            || self.device.is_some()
            || self.steps.is_some()
            || !self.set.is_empty()
            || self.resume.is_some()
            || self.walltime.is_some()
    }
}

/// A mistake on the command line.
fn wrong_use(message: impl Into<String>) -> Failure {
    Failure::Input(vec![crate::report::Diagnostic::new("galamost".as_ref(), None, message)])
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Checks a pipeline and reports all mistakes at once; runs nothing.
    Check {
        /// The pipeline.
        file: PathBuf,
        /// auto, cpu, cuda:0 or emulated, instead of the pipeline's `device`.
        #[arg(long, value_name = "DEVICE")]
        device: Option<String>,
        /// Replaces a value of the pipeline.
        #[arg(long, value_name = "PATH=VALUE")]
        set: Vec<String>,
        /// What the run would cost (time, memory, disk), from a probe of a few seconds that leaves no files.
        #[arg(long)]
        estimate: bool,
    },
    /// Says what this machine gives a run (processor, GPUs, compiler, plugins, disk), what is wrong, and how to mend it.
    Doctor,
    /// Lists the components of all plugins; with a name, its formula, fields, units and defaults.
    Plugins {
        /// A component.
        name: Option<String>,
        /// As JSON, for editors.
        #[arg(long)]
        json: bool,
    },
    /// Tests every component: the device against the CPU, forces against gradients; one table.
    Selftest {
        /// Only these components.
        names: Vec<String>,
        /// auto, cpu, cuda:0 or emulated.
        #[arg(long, value_name = "DEVICE", default_value = "auto")]
        device: String,
        /// The table as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Tests a built plugin on every device present: what `selftest` does, and behavior at the ends of its range, virial,
    /// energy conservation, threads, restart, speed.
    TestPlugin {
        /// The library.
        library: PathBuf,
        /// Only this device instead of all that are there.
        #[arg(long, value_name = "DEVICE")]
        device: Option<String>,
        /// The tables as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Makes a plugin crate that builds, passes its tests and has an example.
    New {
        /// pair, oriented-pair, bond, angle, dihedral, force, integrator, updater, analyzer or generator.
        kind: String,
        /// Name of the crate: small letters, digits and `-`.
        name: String,
        /// Folder; by default named as the crate.
        #[arg(long, value_name = "FOLDER")]
        folder: Option<PathBuf>,
        /// Path or version of galamost-plugin-api.
        #[arg(long, value_name = "PATH|VERSION")]
        api: Option<String>,
    },
    /// Says what is in a file: particles (of any format that a plugin reads), a checkpoint, a table.
    Info(crate::files::InfoArgs),
    /// Converts files of particles, whole trajectories as well, and says what the new format has no place for.
    Convert(crate::files::ConvertArgs),
    /// Finds potentials that give wanted distributions: iterative Boltzmann inversion, inverse Monte Carlo.
    Ibi(crate::ibi::IbiArgs),
    /// Draws columns of tables (CSV, Parquet) as SVG or PNG.
    Plot(crate::plot::PlotArgs),
    /// Means of the columns of a table (CSV, Parquet) with their errors, correlation times, drifts and equilibration.
    Stats(crate::stats::StatsArgs),
    /// Draws the particles of a file, or of a pipeline's initial state, as PNG.
    Render(crate::render::RenderArgs),
    /// Makes one page of a run, finished or under way: input, plots, averages, pictures, speed, plugins, warnings.
    Report(crate::run_report::ReportArgs),
    /// Converts, differentiates, plots and makes tables of potentials.
    Table {
        #[command(subcommand)]
        command: crate::tables::TableCommand,
    },
    /// Measures the standard cases: steps per second, particle-steps per second, bytes per particle.
    Bench {
        /// Only cases whose name contains this: `lj`, `dpd`, `lj 8000`.
        filter: Option<String>,
        /// auto, cpu, cuda:0 or emulated.
        #[arg(long, value_name = "DEVICE", default_value = "auto")]
        device: String,
        /// Single, Mixed or Double.
        #[arg(long, default_value = "Mixed")]
        precision: String,
        /// Largest number of particles.
        #[arg(long, value_name = "N")]
        max: Option<u64>,
        /// Seconds of each of the three windows.
        #[arg(long, value_name = "S", default_value_t = 1.5)]
        window: f64,
        /// Every case there is: more sizes, pipelines of `benches/cases`, and some in all precisions.
        #[arg(long)]
        all: bool,
        /// Also a plot of particle-steps per second against the number of particles, .svg or .png.
        #[arg(long, value_name = "FILE")]
        plot: Option<PathBuf>,
        /// The folder with pipelines of cases and their data; by default the one of this program.
        #[arg(long, value_name = "FOLDER")]
        cases: Option<PathBuf>,
        /// The table as JSON.
        #[arg(long)]
        json: bool,
        /// The table as JSON, besides the one for people.
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
}

/// Runs the program.
///
/// # Errors
/// What went wrong, with its exit status.
pub fn run(args: impl IntoIterator<Item = OsString>) -> Result<u8, Failure> {
    let started = Instant::now();
    let cli = match Cli::try_parse_from(args) {
        Ok(c) => c,
        Err(e) => {
            // help and version go to standard output and are no mistake
            if e.use_stderr() && asks_for_json() {
                log::start(Format::Json, "warn");
                log::event("error", serde_json::json!({"status": 2, "message": e.to_string().trim_end()}));
            } else {
                let _ = e.print();
            }
            return Ok(if e.use_stderr() { 2 } else { 0 });
        }
    };
    let common = &cli.run.common;
    if cli.command.is_some() && cli.run.is_given() {
        return Err(wrong_use(
            "--pipeline, --device, --steps, --set, --resume and --walltime stand alone or behind a command",
        ));
    }
    start_log(common);
    if let Some(n) = common.threads
        && let Err(e) = rayon::ThreadPoolBuilder::new().num_threads(n).build_global()
    {
        return Err(Failure::run(format!("{n} threads: {e}")));
    }
    let registry = || Registry::load(&search_path(&common.plugin_dir), common.plugin_dir.len());
    match cli.command {
        None => run_pipelines(&cli.run, &registry(), started),
        Some(Command::Check { file, device, set, estimate }) => {
            let plan = check(read(&file, &set, device.as_deref())?, &registry(), CheckOptions::default())?;
            println!("{}: {}", file.display(), crate::doc::plan_summary(&plan));
            if estimate {
                print!("{}", crate::estimate::estimate(&plan, &registry())?);
            }
            Ok(0)
        }
        Some(Command::Doctor) => {
            let report = crate::doctor::run(&registry());
            print!("{}", report.text);
            Ok(u8::from(report.wrong > 0))
        }
        Some(Command::Plugins { name, json }) => crate::doc::plugins(&registry(), name.as_deref(), json),
        Some(Command::New { kind, name, folder, api }) => {
            print!("{}", crate::new::new(&kind, &name, folder.as_deref(), api.as_deref())?);
            Ok(0)
        }
        Some(Command::Info(args)) => crate::files::info(&args, registry),
        Some(Command::Convert(args)) => crate::files::convert(&args, &registry()),
        Some(Command::Ibi(args)) => crate::ibi::run(&args, common.quiet, signals()?.0, &registry()),
        Some(Command::Plot(args)) => crate::plot::run(&args),
        Some(Command::Stats(args)) => crate::stats::run(&args),
        Some(Command::Render(args)) => crate::render::run(&args, &registry()),
        Some(Command::Report(args)) => crate::run_report::run(&args, &registry()),
        Some(Command::Table { command }) => crate::tables::run(&command, registry),
        Some(Command::TestPlugin { library, device, json }) => test_plugin(common, &library, device.as_deref(), json),
        Some(Command::Selftest { names, device, json }) => {
            let device = parse_device(&device)?;
            let rows = crate::selftest::run(&registry(), device, &names)?;
            let table =
                || format!("device: {}\n{}", crate::selftest::device_name(device), crate::selftest::table(&rows));
            print!("{}", if json { format!("{:#}\n", crate::selftest::json(&rows)) } else { table() });
            Ok(u8::from(rows.iter().any(crate::selftest::Row::failed)))
        }
        Some(Command::Bench { filter, device, precision, max, window, all, plot, cases, json, out }) => {
            let cases = cases.unwrap_or_else(crate::bench::folder);
            let device = parse_device(&device)?;
            let options = crate::bench::Options { filter, device, precision, max, window, all, cases };
            let report = crate::bench::run(&registry(), &options)?;
            print!("{}", if json { crate::bench::json(&report) } else { crate::bench::table(&report) });
            if let Some(out) = out {
                let failed = |e: std::io::Error| Failure::run(format!("{}: {e}", out.display()));
                std::fs::write(&out, crate::bench::json(&report)).map_err(failed)?;
            }
            if let Some(plot) = plot {
                crate::plot::save(&crate::bench::plot(&report).drawing(), &plot)?;
            }
            Ok(u8::from(!report.missing.is_empty()))
        }
    }
}

/// Whether a command line that says nothing sensible at least wants its errors as JSON.
fn asks_for_json() -> bool {
    let all: Vec<OsString> = std::env::args_os().collect();
    all.iter().any(|a| a == "--log=json") || all.windows(2).any(|w| w[0] == "--log" && w[1] == "json")
}

fn test_plugin(common: &Common, library: &Path, device: Option<&str>, json: bool) -> Result<u8, Failure> {
    let folder = library.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut path = vec![folder.to_path_buf()];
    path.extend(common.plugin_dir.iter().cloned());
    let named = path.len();
    let mut registry = Registry::default();
    // this very file before any other of the same name
    registry.add(library);
    registry.load_more(&search_path(&path), named);
    let device = device.map(parse_device).transpose()?;
    let tables = crate::selftest::test_plugin(&registry, library, device)?;
    if json {
        let one = |(title, rows): &(String, Vec<_>)| serde_json::json!({"tested": title, "rows": crate::selftest::json(rows)});
        println!("{:#}", serde_json::Value::Array(tables.iter().map(one).collect()));
    } else {
        tables.iter().for_each(|(title, rows)| println!("{title}:\n{}", crate::selftest::table(rows)));
    }
    Ok(u8::from(tables.iter().flat_map(|(_, rows)| rows).any(crate::selftest::Row::failed)))
}

fn start_log(common: &Common) {
    let level = match (common.quiet, common.verbose) {
        (true, _) => "warn",
        (_, 0) => "info",
        (_, 1) => "debug",
        _ => "trace",
    };
    log::start(common.log, level);
}

fn parse_device(text: &str) -> Result<DeviceChoice, Failure> {
    let wrong = |m| Failure::Input(vec![crate::report::Diagnostic::new("--device".as_ref(), None, m)]);
    DeviceChoice::parse(text).map_err(wrong)
}

/// Reads a pipeline with what the command line says instead.
fn read(file: &Path, set: &[String], device: Option<&str>) -> Result<Pipeline, Failure> {
    let mut pipeline = Pipeline::read(file, set)?;
    if let Some(d) = device {
        pipeline.device = parse_device(d)?;
        pipeline.device_at = None;
    }
    Ok(pipeline)
}

/// A run that passed its check.
struct Ready {
    plan: Plan,
    resume: Option<Checkpoint>,
    walltime: Option<Duration>,
}

fn run_pipelines(args: &RunArgs, registry: &Registry, started: Instant) -> Result<u8, Failure> {
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
                log::name_run(&name);
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
            wrong.push(crate::report::Diagnostic::new(
                file,
                None,
                "it is given twice: both would write the same files",
            ));
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
    let at_option = |m| Failure::Input(vec![crate::report::Diagnostic::new("--walltime".as_ref(), None, m)]);
    let walltime = args.walltime.as_deref().map(parse_walltime).transpose().map_err(at_option)?;
    let pipeline = read(file, &args.set, args.device.as_deref())?;
    let path = pipeline.checkpoint_path();
    let about_file = |m: String| Failure::Input(vec![crate::report::Diagnostic::new(&path, None, m)]);
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
    let (stop, save) = signals()?;
    let (steps, quiet) = (args.steps, args.common.quiet);
    let options = RunOptions { steps, quiet, stop, save, walltime, started: Some(started) };
    let record = (!args.no_record).then(|| Record::begin(&plan, resume.as_ref().map(|c| c.state.step)));
    if !plan.pipeline.ensemble.is_empty() {
        let done = crate::ensemble::run(&plan, &options, resume);
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
    let mut opened = backend_shared(&plan, n);
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

/// The backend of a plan's device.
///
/// # Errors
/// The device refused something.
pub fn backend(plan: &Plan) -> Result<Box<dyn Backend>, Failure> {
    backend_shared(plan, 1)
}

/// The same for one of so many runs at once.
fn backend_shared(plan: &Plan, runs: u32) -> Result<Box<dyn Backend>, Failure> {
    match plan.device.open_shared(runs)? {
        None => Ok(cpu::backend(plan)?),
        Some(device) => Ok(Box::new(GpuSystem::new(plan, device)?)),
    }
}

/// Two flags: one is set by Ctrl-C and SIGTERM, a second one ends the program at once; the other is set by SIGUSR1.
fn signals() -> Result<(Arc<AtomicBool>, Arc<AtomicBool>), Failure> {
    use signal_hook::{consts, flag};
    let (stop, save) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let failed = |e: std::io::Error| Failure::run(format!("signals cannot be caught: {e}"));
    for signal in [consts::SIGINT, consts::SIGTERM] {
        flag::register_conditional_shutdown(signal, 130, stop.clone()).map_err(failed)?;
        flag::register(signal, stop.clone()).map_err(failed)?;
    }
    flag::register(consts::SIGUSR1, save.clone()).map_err(failed)?;
    Ok((stop, save))
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
    log::event(
        "run",
        serde_json::json!({
            "engine": env!("CARGO_PKG_VERSION"), "pipeline": plan.pipeline.path, "device": crate::record::device(plan),
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
    log::event(
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
