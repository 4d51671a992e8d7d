//! `galamost bench`: the standard cases, beside what other engines reach on the same GPU.

mod cases;
mod told;

pub use cases::{Case, folder};
pub use told::{json, plot, table};

use galamost_engine::backend::Backend;
use galamost_engine::device::Chosen;
use galamost_engine::diagnostic::{Diagnostic, Failure};
use galamost_engine::pipeline::{DeviceChoice, Pipeline};
use galamost_engine::plan::{CheckOptions, Plan, check};
use galamost_engine::plugins::Registry;
use galamost_engine::profile::{Timing, add_up, by_part};
use galamost_engine::run::{RunOptions, Summary, execute};
use galamost_plugin_api::views::Wanted;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// What to measure.
#[derive(Clone, Debug)]
pub struct Options {
    /// Part of the case's name.
    pub filter: Option<String>,
    /// Device.
    pub device: DeviceChoice,
    /// `Single`, `Mixed` or `Double`.
    pub precision: String,
    /// Largest number of particles.
    pub max: Option<u64>,
    /// Seconds of each window.
    pub window: f64,
    /// Every case there is, and some in all precisions.
    pub all: bool,
    /// Where pipelines of cases are.
    pub cases: PathBuf,
}

/// One measured case.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The row of `peers.toml`.
    pub case: Case,
    /// Precision.
    pub precision: String,
    /// Steps per second in each window.
    pub windows: Vec<f64>,
    /// Device bytes per particle, everything included.
    pub bytes_per_particle: f64,
    /// Steps between two builds of the list.
    pub interval: f64,
    /// Entries of the list per particle.
    pub neighbors: f64,
    /// Buffer of the list.
    pub buffer: f64,
    /// kT at the end, of cases that are made here: that what was measured was a liquid.
    pub kt: Option<f64>,
    /// Seconds from the plan to the first step.
    pub start_up: f64,
    /// Steps whose parts were timed, and these.
    pub profile: (u64, Vec<Timing>),
}

impl Measured {
    /// The best window.
    pub fn tps(&self) -> f64 {
        self.windows.iter().copied().fold(0.0, f64::max)
    }

    /// Share of each part in the time of steps, the largest first.
    pub fn shares(&self) -> Vec<(String, f64)> {
        let parts = by_part(&self.profile.1);
        let all: f64 = parts.iter().map(|p| p.1).sum();
        parts.into_iter().map(|(name, s)| (name, s / all.max(1e-300))).collect()
    }
}

/// A table of measured cases.
#[derive(Clone, Debug)]
pub struct Report {
    /// The device.
    pub device: String,
    /// Whether it is a GPU: other engines were measured on one.
    pub gpu: bool,
    /// Version of its driver.
    pub driver: Option<String>,
    /// When.
    pub date: String,
    /// The precision.
    pub precision: String,
    /// Seconds of a window.
    pub window: f64,
    /// The cases.
    pub cases: Vec<Measured>,
    /// Some cases in other precisions.
    pub others: Vec<Measured>,
    /// Cases that could not be measured, and why.
    pub missing: Vec<(String, String)>,
}

/// Cases that `--all` measures in every precision.
const IN_ALL_PRECISIONS: [(&str, u64); 6] =
    [("lj", 64_000), ("lj", 512_000), ("dpd", 64_000), ("dpd", 512_000), ("janus", 64_000), ("janus", 512_000)];

/// Steps whose parts are timed.
const LOOK: u64 = 64;

/// Seconds in which even the largest system is taken for settled.
const SETTLED: f64 = 20.0;

/// Measures the cases.
///
/// # Errors
/// The device cannot be used, or a plugin of a case is missing.
pub fn run(registry: &Registry, options: &Options) -> Result<Report, Failure> {
    let chosen = galamost_engine::device::choose(options.device)
        .map_err(|e| Failure::Input(vec![Diagnostic::new("--device".as_ref(), None, e)]))?;
    let device = match (&chosen, chosen.open()?) {
        (_, Some(d)) => d.name(),
        _ => format!(
            "CPU, {} threads, vectors {}",
            rayon::current_num_threads(),
            galamost_engine::cpu::vector_extension()
        ),
    };
    let gpu = matches!(chosen, Chosen::Cuda { .. });
    let mut report = Report {
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
    for case in cases::all().into_iter().filter(|c| c.wanted(options)) {
        eprintln!("{} …", case.label());
        // a case without its files, or too large for this device, does not keep the others from being measured
        match measure(registry, options, &chosen, case.clone()) {
            Ok(m) => report.cases.push(m),
            Err(e) if options.all => report.missing.push((case.label(), e.render())),
            Err(e) => return Err(e),
        }
    }
    let precisions = ["Single", "Mixed", "Double"];
    for case in cases::all().into_iter().filter(|c| options.all && c.wanted(options)) {
        if !IN_ALL_PRECISIONS.contains(&(case.name.as_str(), case.n)) {
            continue;
        }
        for precision in precisions.iter().filter(|p| **p != options.precision) {
            eprintln!("{}, {precision} …", case.label());
            let options = Options { precision: (*precision).into(), ..options.clone() };
            match measure(registry, &options, &chosen, case.clone()) {
                Ok(m) => report.others.push(m),
                Err(e) => report.missing.push((format!("{}, {precision}", case.label()), e.render())),
            }
        }
    }
    Ok(report)
}

fn plan(registry: &Registry, options: &Options, chosen: &Chosen, case: &Case) -> Result<Plan, Failure> {
    let (path, text, set) = case.pipeline(options)?;
    let told = |e: Vec<_>| {
        let one = |e: galamost_plugin_api::error::InputError| Diagnostic::new(&path, e.at, e.message);
        Failure::Input(e.into_iter().map(one).collect())
    };
    let mut p = Pipeline::parse(&path, &text, &set).map_err(told)?;
    p.device = match chosen {
        Chosen::Cpu { .. } => DeviceChoice::Cpu,
        Chosen::Cuda { ordinal, .. } => DeviceChoice::Cuda(*ordinal),
        Chosen::Emulated => DeviceChoice::Emulated,
    };
    check(p, registry, CheckOptions::default())
}

fn measure(registry: &Registry, options: &Options, chosen: &Chosen, case: Case) -> Result<Measured, Failure> {
    if case.file.is_some() {
        measure_runs(registry, options, chosen, case)
    } else {
        measure_steps(registry, options, chosen, case)
    }
}

/// Steps and nothing else.
fn measure_steps(registry: &Registry, options: &Options, chosen: &Chosen, case: Case) -> Result<Measured, Failure> {
    let start = Instant::now();
    let plan = plan(registry, options, chosen, &case)?;
    let mut backend = galamost_engine::run::open(&plan)?;
    backend.begin_stage(&plan.stages[0], false)?;
    let start_up = start.elapsed().as_secs_f64();
    let stop = AtomicBool::new(false);
    // melt and settle: a second, and at least as long as a particle needs to forget where it was
    let (begun, mut warm, mut chunk) = (Instant::now(), Instant::now(), 1);
    let least = if matches!(chosen, Chosen::Cuda { .. }) { 1000 } else { 200 };
    let mut settled = 0;
    while (settled < least && begun.elapsed().as_secs_f64() < SETTLED) || warm.elapsed().as_secs_f64() < options.window
    {
        backend.advance(chunk, Wanted::FORCE, &stop)?;
        settled += chunk;
        if settled < least && begun.elapsed().as_secs_f64() < SETTLED {
            warm = Instant::now();
        }
        chunk = (chunk * 2).min(256);
    }
    let before = backend.list_report()?;
    // as many steps as take a tenth of a window tell how many take a whole one
    let mut tried = 16;
    let mut speed = rate(&mut *backend, tried, &stop)?;
    let more = (0.1 * speed * options.window) as u64;
    if more > tried {
        speed = rate(&mut *backend, more, &stop)?;
        tried += more;
    }
    let steps = ((speed * options.window) as u64).max(16).next_multiple_of(16);
    let mut windows = vec![];
    for _ in 0..3 {
        windows.push(rate(&mut *backend, steps, &stop)?);
    }
    let after = backend.list_report()?;
    let measured_steps = 3 * steps + tried;
    let bytes = backend.memory() as f64 / case.n as f64;
    backend.begin_profile();
    backend.advance(LOOK, Wanted::FORCE, &stop)?;
    let profile = (LOOK, backend.end_profile()?);
    backend.advance(1, Wanted::ALL, &stop)?;
    let k = backend.sums()?.kinetic_tensor;
    let kt = (k[0] + k[3] + k[5]) / (3.0 * case.n as f64 - 3.0);
    Ok(Measured {
        case,
        precision: options.precision.clone(),
        windows,
        bytes_per_particle: bytes,
        interval: measured_steps as f64 / (after.builds - before.builds).max(1) as f64,
        neighbors: after.mean,
        buffer: after.buffer,
        kt: Some(kt),
        start_up,
        profile,
    })
}

/// Whole runs with all that their pipelines say, each from the start. What they take before they are at full speed is in a run of
/// `WARM` steps, which is subtracted.
fn measure_runs(registry: &Registry, options: &Options, chosen: &Chosen, case: Case) -> Result<Measured, Failure> {
    const WARM: u64 = 1000;
    let quiet = |steps: u64| RunOptions { quiet: true, steps: Some(steps), ..RunOptions::default() };
    let run = |steps: u64| -> Result<(Summary, Box<dyn Backend>, f64), Failure> {
        let begun = Instant::now();
        let plan = plan(registry, options, chosen, &case)?;
        let mut backend = galamost_engine::run::open(&plan)?;
        let summary = execute(&plan, &mut *backend, &quiet(steps), None)?;
        let start = begun.elapsed().as_secs_f64() - summary.seconds;
        Ok((summary, backend, start))
    };
    // kernels are compiled in the first one
    run(WARM)?;
    let short = [run(WARM)?.0.seconds, run(WARM)?.0.seconds].into_iter().fold(f64::INFINITY, f64::min);
    let tried = 4 * WARM;
    let speed = tried as f64 / (run(WARM + tried)?.0.seconds - short).max(1e-6);
    let steps = ((speed * options.window) as u64).max(WARM);
    let (mut windows, mut profile, mut found) = (vec![], (0, vec![]), None);
    for _ in 0..3 {
        let (summary, mut backend, start) = run(WARM + steps)?;
        windows.push(steps as f64 / (summary.seconds - short).max(1e-6));
        profile.0 += summary.spent.steps;
        add_up(&mut profile.1, summary.spent.timings);
        // updaters, in the same measure as the steps that were looked at
        let shared = summary.spent.steps as f64 / summary.steps.max(1) as f64;
        for (part, seconds) in summary.spent.others {
            add_up(&mut profile.1, vec![Timing { part, kernel: "call".into(), calls: 1, seconds: seconds * shared }]);
        }
        found = Some((backend.list_report()?, backend.memory(), start));
    }
    let (list, memory, start_up) = found.unwrap_or_default();
    Ok(Measured {
        bytes_per_particle: memory as f64 / case.n as f64,
        case,
        precision: options.precision.clone(),
        windows,
        interval: (WARM + steps) as f64 / list.builds.max(1) as f64,
        neighbors: list.mean,
        buffer: list.buffer,
        kt: None,
        start_up,
        profile,
    })
}

/// Steps per second over this many steps.
fn rate(backend: &mut dyn Backend, steps: u64, stop: &AtomicBool) -> Result<f64, Failure> {
    let start = Instant::now();
    backend.advance(steps, Wanted::FORCE, stop)?;
    Ok(steps as f64 / start.elapsed().as_secs_f64())
}
