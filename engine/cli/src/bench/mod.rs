//! `galamost bench`: measures the standard cases and compares them with other engines on the same GPU.

mod cases;
mod measure;
mod output;
mod replicas;
mod sweep;

use crate::common::{Context, OverwriteArgs, input_error, parse_device, usage_error};
use crate::terminal::print;
use cases::Case;
use clap::Args;
use galamost_engine::device::Chosen;
use galamost_engine::diagnostic::{Failure, counted};
use galamost_engine::pipeline::DeviceChoice;
use galamost_engine::plugins::Registry;
use galamost_engine::profile::{Timing, seconds_by_part};
use std::path::PathBuf;
use tracing::info;

/// Options of `galamost bench`.
#[derive(Args, Debug)]
pub(crate) struct BenchArgs {
    /// Measure only cases whose name and size contain this text: `lj`, `dpd`, `lj 8000`; with `--sweep`, a pipeline.
    filter: Option<String>,
    /// Measure the first stage of a pipeline with each value of a list: `forces[1].r_cut=[3.0,3.5,4.0]`; lists of several
    /// options advance together.
    #[arg(long, value_name = "PATH=[VALUE, …]", conflicts_with_all = ["precision", "max", "all", "plot", "cases", "json"])]
    sweep: Vec<String>,
    /// Replace a value of the pipeline of `--sweep`; may be given several times.
    #[arg(long, value_name = "PATH=VALUE", requires = "sweep")]
    set: Vec<String>,
    /// Device: auto, cpu, cuda:0 or emulated.
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    device: String,
    /// Number of GPUs that share each run: that of the device and the next ones.
    #[arg(long, value_name = "N", default_value_t = 1)]
    gpus: u32,
    /// Precision: Single, Mixed or Double.
    #[arg(long, default_value = "Mixed")]
    precision: String,
    /// Largest number of particles.
    #[arg(long, value_name = "N")]
    max: Option<u64>,
    /// Seconds of each of the three measurement windows.
    #[arg(long, value_name = "S", default_value_t = 1.5)]
    window: f64,
    /// Measure all cases and sizes, the pipelines of `benches/cases`, and some cases in all precisions.
    #[arg(long)]
    all: bool,
    /// Plot particle-steps per second against the number of particles, .svg or .png.
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Folder with the pipelines of cases and their data [default: the folder of this program].
    #[arg(long, value_name = "FOLDER")]
    cases: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Write JSON to this file in addition to the printed table.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    overwrite: OverwriteArgs,
}

/// What to measure.
#[derive(Clone, Debug)]
struct BenchOptions {
    /// Part of the case's name and size.
    filter: Option<String>,
    /// Device.
    device: DeviceChoice,
    /// Number of GPUs.
    gpus: u32,
    /// `Single`, `Mixed` or `Double`.
    precision: String,
    /// Largest number of particles.
    max: Option<u64>,
    /// Seconds of each window.
    window: f64,
    /// Whether to measure all cases, and some in all precisions.
    all: bool,
    /// Folder with the pipelines of cases.
    cases: PathBuf,
}

/// The result of a case.
#[derive(Clone, Debug)]
struct Measured {
    /// The case.
    pub case: Case,
    /// Precision.
    pub precision: String,
    /// Steps per second in each window.
    pub windows: Vec<f64>,
    /// Device memory per particle in bytes, everything included.
    pub bytes_per_particle: f64,
    /// Steps between two rebuilds of the neighbor list.
    pub interval: f64,
    /// Neighbors per particle in the list.
    pub neighbors: f64,
    /// Buffer of the neighbor list.
    pub buffer: f64,
    /// kT at the end of built-in cases, to verify the state of the liquid.
    pub kt: Option<f64>,
    /// Seconds until the first step.
    pub start_up: f64,
    /// Number of profiled steps and their timings.
    pub profile: (u64, Vec<Timing>),
}

impl Measured {
    /// Returns the steps per second of the best window.
    pub fn tps(&self) -> f64 {
        self.windows.iter().copied().fold(0.0, f64::max)
    }

    /// Returns the fraction of each part in the time of a step, in descending order.
    pub fn shares(&self) -> Vec<(String, f64)> {
        let parts = seconds_by_part(&self.profile.1);
        let all: f64 = parts.iter().map(|p| p.1).sum();
        parts.into_iter().map(|(name, s)| (name, s / all.max(1e-300))).collect()
    }
}

/// The results of all cases.
#[derive(Clone, Debug)]
struct BenchReport {
    /// Name of the device.
    pub device: String,
    /// Whether the device is a GPU, so that a comparison with other engines makes sense.
    pub gpu: bool,
    /// Version of the GPU driver.
    pub driver: Option<String>,
    /// Date and time of the measurement.
    pub date: String,
    /// Precision.
    pub precision: String,
    /// Seconds of each window.
    pub window: f64,
    /// Results in the selected precision.
    pub cases: Vec<Measured>,
    /// Results of some cases in the other precisions.
    pub others: Vec<Measured>,
    /// Cases that could not be measured, with the reason.
    pub missing: Vec<(String, String)>,
}

/// Cases that `--all` measures in every precision.
const IN_ALL_PRECISIONS: [(&str, u64); 6] =
    [("lj", 64_000), ("lj", 512_000), ("dpd", 64_000), ("dpd", 512_000), ("janus", 64_000), ("janus", 512_000)];

/// Runs the command. The exit status is 1 if a case could not be measured.
///
/// # Errors
/// Returns an error if no case is selected, the device cannot be used, a plugin is missing, or a file cannot be written.
pub(crate) fn run(args: &BenchArgs, context: &Context) -> Result<u8, Failure> {
    args.out.iter().chain(&args.plot).try_for_each(|file| args.overwrite.check(file))?;
    if !(args.window.is_finite() && args.window > 0.0) {
        return Err(input_error("--window", format!("{} is not a positive number of seconds", args.window)));
    }
    if !args.sweep.is_empty() {
        let table = sweep::run(args, context)?;
        print(table.clone())?;
        args.out.as_ref().map_or(Ok(()), |out| args.overwrite.write(out, table))?;
        return Ok(0);
    }
    let options = BenchOptions {
        filter: args.filter.clone(),
        device: parse_device(&args.device)?,
        gpus: args.gpus,
        precision: args.precision.clone(),
        max: args.max,
        window: args.window,
        all: args.all,
        cases: args.cases.clone().unwrap_or_else(cases::default_folder),
    };
    if let Some(file) = args.filter.as_ref().filter(|f| f.ends_with(".ron")) {
        let message =
            format!("bench: to measure a pipeline, add a value: {file} --sweep 'neighbors.buffer=[0.3, 0.4]'");
        return Err(usage_error(message));
    }
    if !cases::all().iter().any(|c| c.is_selected(&options)) {
        return Err(usage_error(format!("bench: the options select no case; {}", cases::known())));
    }
    let report = measure_all(&context.registry(), &options)?;
    print(if args.json { output::json(&report) } else { output::table(&report) })?;
    if let Some(out) = &args.out {
        args.overwrite.write(out, output::json(&report))?;
    }
    if let Some(file) = &args.plot {
        crate::plot::save(&output::plot(&report).drawing(), file, args.overwrite)?;
    }
    Ok(u8::from(!report.missing.is_empty()))
}

/// Measures the selected cases.
///
/// # Errors
/// Returns an error if the device cannot be used or, without `--all`, if a case cannot be measured.
fn measure_all(registry: &Registry, options: &BenchOptions) -> Result<BenchReport, Failure> {
    let chosen = galamost_engine::device::choose(options.device).map_err(|e| input_error("--device", e))?;
    let device = match (&chosen, chosen.open()?) {
        (_, Some(d)) if options.gpus > 1 => format!("{} GPUs, {}", options.gpus, d.name()),
        (_, Some(d)) => d.name(),
        _ => format!(
            "CPU, {}, vectors {}",
            counted(rayon::current_num_threads() as u64, "thread"),
            galamost_engine::cpu::vector_extension()
        ),
    };
    let gpu = matches!(chosen, Chosen::Cuda { .. });
    let mut report = BenchReport {
        device,
        gpu,
        driver: galamost_engine::device::driver_version().filter(|_| gpu),
        date: galamost_engine::log::now(),
        precision: options.precision.clone(),
        window: options.window,
        cases: vec![],
        others: vec![],
        missing: vec![],
    };
    for case in cases::all().into_iter().filter(|c| c.is_selected(options)) {
        info!("{} …", case.label());
        // with --all, a case with missing files or too many particles for the device does not stop the others
        match measure::measure(registry, options, &chosen, case.clone()) {
            Ok(m) => report.cases.push(m),
            Err(e) if options.all => report.missing.push((case.label(), e.render())),
            Err(e) => return Err(e),
        }
    }
    let precisions = ["Single", "Mixed", "Double"];
    for case in cases::all().into_iter().filter(|c| options.all && c.is_selected(options)) {
        if !IN_ALL_PRECISIONS.contains(&(case.name.as_str(), case.n)) {
            continue;
        }
        for precision in precisions.iter().filter(|p| **p != options.precision) {
            info!("{}, {precision} …", case.label());
            let options = BenchOptions { precision: (*precision).into(), ..options.clone() };
            match measure::measure(registry, &options, &chosen, case.clone()) {
                Ok(m) => report.others.push(m),
                Err(e) => report.missing.push((format!("{}, {precision}", case.label()), e.render())),
            }
        }
    }
    Ok(report)
}
