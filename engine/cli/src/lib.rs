//! The command line.

pub mod bench;
mod doctor;
mod estimate;
pub mod files;
mod ibi;
mod new;
pub mod output;
pub mod plot;
pub mod plugins;
mod render;
mod report;
mod run;
pub mod selftest;
pub mod stats;
mod table;
pub mod terminal;

use clap::{Args, Parser, Subcommand};
use galamost_engine::diagnostic::{Diagnostic, Failure};
use galamost_engine::log::event;
use galamost_engine::pipeline::{DeviceChoice, Pipeline};
use galamost_engine::plan::{CheckOptions, check};
use galamost_engine::plugins::{Registry, search_path};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Instant;
use terminal::log::{self, Format};
use terminal::signals;

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
    Failure::Input(vec![Diagnostic::new("galamost".as_ref(), None, message)])
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
    /// Tests a built plugin on every device present: what `selftest` does, and behaviour at the ends of its range, virial,
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
    Info(files::InfoArgs),
    /// Converts files of particles, whole trajectories as well, and says what the new format has no place for.
    Convert(files::ConvertArgs),
    /// Finds potentials that give wanted distributions: iterative Boltzmann inversion, inverse Monte Carlo.
    Ibi(ibi::IbiArgs),
    /// Draws columns of tables (CSV, Parquet) as SVG or PNG.
    Plot(plot::PlotArgs),
    /// Means of the columns of a table (CSV, Parquet) with their errors, correlation times, drifts and equilibration.
    Stats(stats::StatsArgs),
    /// Draws the particles of a file, or of a pipeline's initial state, as PNG.
    Render(render::RenderArgs),
    /// Makes one page of a run, finished or under way: input, plots, averages, pictures, speed, plugins, warnings.
    Report(report::ReportArgs),
    /// Converts, differentiates, plots and makes tables of potentials.
    Table {
        #[command(subcommand)]
        command: table::TableCommand,
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
                event("error", serde_json::json!({"status": 2, "message": e.to_string().trim_end()}));
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
        None => run::run_pipelines(&cli.run, &registry(), started),
        Some(Command::Check { file, device, set, estimate }) => {
            let plan = check(read(&file, &set, device.as_deref())?, &registry(), CheckOptions::default())?;
            println!("{}: {}", file.display(), plugins::plan_summary(&plan));
            if estimate {
                print!("{}", estimate::estimate(&plan, &registry())?);
            }
            Ok(0)
        }
        Some(Command::Doctor) => {
            let report = doctor::run(&registry());
            print!("{}", report.text);
            Ok(u8::from(report.wrong > 0))
        }
        Some(Command::Plugins { name, json }) => plugins::plugins(&registry(), name.as_deref(), json),
        Some(Command::New { kind, name, folder, api }) => {
            print!("{}", new::new(&kind, &name, folder.as_deref(), api.as_deref())?);
            Ok(0)
        }
        Some(Command::Info(args)) => files::info(&args, registry),
        Some(Command::Convert(args)) => files::convert(&args, &registry()),
        Some(Command::Ibi(args)) => ibi::run(&args, common.quiet, signals()?.0, &registry()),
        Some(Command::Plot(args)) => plot::run(&args),
        Some(Command::Stats(args)) => stats::run(&args),
        Some(Command::Render(args)) => render::run(&args, &registry()),
        Some(Command::Report(args)) => report::run(&args, &registry()),
        Some(Command::Table { command }) => table::run(&command, registry),
        Some(Command::TestPlugin { library, device, json }) => test_plugin(common, &library, device.as_deref(), json),
        Some(Command::Selftest { names, device, json }) => {
            let device = parse_device(&device)?;
            let rows = selftest::run(&registry(), device, &names)?;
            let table = || format!("device: {}\n{}", selftest::device_name(device), selftest::table(&rows));
            print!("{}", if json { format!("{:#}\n", selftest::json(&rows)) } else { table() });
            Ok(u8::from(rows.iter().any(selftest::Row::failed)))
        }
        Some(Command::Bench { filter, device, precision, max, window, all, plot, cases, json, out }) => {
            let cases = cases.unwrap_or_else(bench::folder);
            let device = parse_device(&device)?;
            let options = bench::Options { filter, device, precision, max, window, all, cases };
            let report = bench::run(&registry(), &options)?;
            print!("{}", if json { bench::json(&report) } else { bench::table(&report) });
            if let Some(out) = out {
                let failed = |e: std::io::Error| Failure::run(format!("{}: {e}", out.display()));
                std::fs::write(&out, bench::json(&report)).map_err(failed)?;
            }
            if let Some(plot) = plot {
                plot::save(&bench::plot(&report).drawing(), &plot)?;
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
    let tables = selftest::test_plugin(&registry, library, device)?;
    if json {
        let one = |(title, rows): &(String, Vec<_>)| serde_json::json!({"tested": title, "rows": selftest::json(rows)});
        println!("{:#}", serde_json::Value::Array(tables.iter().map(one).collect()));
    } else {
        tables.iter().for_each(|(title, rows)| println!("{title}:\n{}", selftest::table(rows)));
    }
    Ok(u8::from(tables.iter().flat_map(|(_, rows)| rows).any(selftest::Row::failed)))
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
    let wrong = |m| Failure::Input(vec![Diagnostic::new("--device".as_ref(), None, m)]);
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
