//! `galamost test-plugin`: all tests of `selftest` on every available device, and further checks for authors of
//! plugins.

use super::{Checks, IsolationArgs, Test, TestRow, device_name, isolated, standard_system, table, test_components};
use crate::common::{Context, input_error, parse_device};
use crate::terminal::print;
use clap::Args;
use galamost_engine::backend::Backend;
use galamost_engine::diagnostic::Failure;
use galamost_engine::pipeline::DeviceChoice;
use galamost_engine::plan::Plan;
use galamost_engine::plugins::{Registry, search_path};
use galamost_plugin_api::component::{ComponentInfo, Kind};
use galamost_plugin_api::precision::Precision;
use galamost_plugin_api::views::Wanted;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Instant;
use tracing::subscriber::NoSubscriber;

/// Options of `galamost test-plugin`.
#[derive(Args, Debug)]
#[command(
    after_help = "In addition to the tests of `selftest`, the command checks behavior at the limits of the range, \
                        virial, energy conservation, free particles, what updaters declare and report, independence of the \
                        number of threads, restart, output files, memory access and speed. On the emulated device two ranks must give the bits of one."
)]
pub(crate) struct TestPluginArgs {
    /// The plugin library (lib*.so).
    library: PathBuf,
    /// Test only these components.
    names: Vec<String>,
    /// Test only this device [default: all available devices].
    #[arg(long, value_name = "DEVICE")]
    device: Option<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    isolation: IsolationArgs,
}

/// Runs `galamost test-plugin`. The exit status is 1 if a test fails.
///
/// # Errors
/// Returns an error if the library or the device cannot be used.
pub(crate) fn run_test_plugin(args: &TestPluginArgs, context: &Context) -> Result<u8, Failure> {
    if args.library.is_dir() {
        return Err(input_error(&args.library, "is a folder; give a plugin library in it (lib*.so)"));
    }
    let folder = args.library.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut path = vec![folder.to_path_buf()];
    path.extend(context.common.plugin_dir.iter().cloned());
    let named = path.len();
    let mut registry = Registry::default();
    // This file takes precedence over others of the same name. If it cannot be used, the error of this command says why; the
    // warning would say it twice.
    tracing::subscriber::with_default(NoSubscriber::new(), || registry.add(&args.library));
    registry.load_more(&search_path(&path), named);
    if let Some(job) = &args.isolation.job {
        return isolated::run_job(job, &registry).map(|()| 0);
    }
    let device = args.device.as_deref().map(parse_device).transpose()?;
    let tables = test_library(&registry, args, device)?;
    if args.json {
        let one = |(title, rows): &(String, Vec<_>)| serde_json::json!({"tested": title, "rows": table::json(rows)});
        print(format!("{:#}\n", serde_json::Value::Array(tables.iter().map(one).collect())))?;
    } else {
        for (title, rows) in &tables {
            print(format!("{title}:\n{}\n", table::text(rows)))?;
        }
    }
    Ok(u8::from(tables.iter().flat_map(|(_, rows)| rows).any(TestRow::failed)))
}

/// Tests every component of a library. Returns a title and the results for each device.
///
/// # Errors
/// Returns an error if the library or the device cannot be used.
fn test_library(
    registry: &Registry,
    args: &TestPluginArgs,
    device: Option<DeviceChoice>,
) -> Result<Vec<(String, Vec<TestRow>)>, Failure> {
    let library = &args.library;
    let canonical = library.canonicalize().map_err(|e| input_error(library, e.to_string()))?;
    let Some(found) = registry.libraries().iter().find(|l| l.path == canonical) else {
        let broken = registry.broken().iter().find(|(p, _)| *p == canonical);
        return Err(input_error(library, broken.map_or("not a plugin".into(), |(_, m)| m.clone())));
    };
    let has = |name: &String| found.components.iter().any(|c| c.name == *name);
    if let Some(name) = args.names.iter().find(|name| !has(name)) {
        return Err(input_error(library, format!("unknown component `{name}`")));
    }
    let all = || found.components.iter().map(|c| c.name.clone()).collect();
    let names: Vec<String> = if args.names.is_empty() { all() } else { args.names.clone() };
    if names.is_empty() {
        let message = "the library has no component; name it, as in `#[pair_potential(\"Name\")]` or `#[component(Force, \"Name\")]`";
        return Err(input_error(library, message));
    }
    let devices = match device {
        Some(d) => vec![d],
        None => {
            let available = |d: &DeviceChoice| galamost_engine::device::choose(*d).is_ok();
            [DeviceChoice::Emulated, DeviceChoice::Cuda(0)].into_iter().filter(available).collect()
        }
    };
    let able = |d: DeviceChoice, n: u32| {
        n == 1 || galamost_engine::device::choose(d).is_ok_and(|chosen| chosen.check_ranks(n).is_ok())
    };
    if let Some(n) = args.isolation.ranks.filter(|n| !devices.iter().any(|d| able(*d, *n))) {
        return Err(input_error("--ranks", format!("none of the tested devices has {n} GPUs, or emulates them")));
    }
    let mut tables = vec![];
    // the checks of the last table contain those that compare precisions on the CPU
    for d in devices.into_iter().filter(|d| *d != DeviceChoice::Cpu) {
        let emulated = if d == DeviceChoice::Emulated { 2 } else { 1 };
        let ranks = Some(args.isolation.ranks.unwrap_or(emulated)).filter(|n| able(d, *n)).unwrap_or(1);
        let rows = test_components(registry, d, &names, Checks { thorough: false, ranks }, &args.isolation)?;
        tables.push((format!("{} against the CPU", device_name(d)), rows));
    }
    let checks = Checks { thorough: true, ranks: 1 };
    tables.push(("the CPU".into(), test_components(registry, DeviceChoice::Cpu, &names, checks, &args.isolation)?));
    Ok(tables)
}

/// Opens a backend, starts its components and begins the first stage.
pub(super) fn open(plan: &Plan) -> Result<Box<dyn Backend>, Failure> {
    let mut backend = galamost_engine::run::open(plan)?;
    for component in &plan.components {
        backend.start(component)?;
    }
    backend.begin_stage(&plan.stages[0], false)?;
    Ok(backend)
}

/// Measures the time of a step after a short warm-up.
fn seconds_per_step(backend: &mut dyn Backend) -> Result<f64, Failure> {
    let stop = AtomicBool::new(false);
    backend.advance(20, Wanted::FORCE, &stop)?;
    let begun = Instant::now();
    backend.advance(200, Wanted::FORCE, &stop)?;
    Ok(begun.elapsed().as_secs_f64() / 200.0)
}

impl Test<'_> {
    /// Runs the additional checks of a component.
    pub(super) fn thorough_checks(&mut self, c: &ComponentInfo) -> Result<(), Failure> {
        if c.kind == Kind::Pair {
            self.pair_limits(c)?;
        }
        if matches!(c.kind, Kind::Pair | Kind::Bonded | Kind::Force) {
            self.particle_sums(c)?;
            self.virial(c)?;
            self.energy_drift(c)?;
            self.speed(c)?;
        }
        if matches!(c.kind, Kind::Pair | Kind::Bonded | Kind::Force | Kind::Integrator) {
            self.momentum(c)?;
        }
        if matches!(c.kind, Kind::Pair | Kind::Bonded | Kind::Force | Kind::Integrator | Kind::Updater) {
            self.group(c)?;
        }
        if c.kind == Kind::Integrator {
            self.free_flight(c)?;
        }
        if c.kind == Kind::Updater {
            self.updates(c)?;
        }
        match c.kind {
            Kind::Generator => {}
            Kind::Analyzer => {
                self.files(c)?;
                self.company(c)?;
            }
            _ => {
                self.threads(c)?;
                self.restart(c)?;
            }
        }
        // the last one, because all runs of this process are slower from then on
        if matches!(c.kind, Kind::Force | Kind::Updater) {
            self.memory(c)?;
        }
        Ok(())
    }

    /// Measures the time of a step, for pairs in comparison with Lennard-Jones on the same system.
    fn speed(&mut self, c: &ComponentInfo) -> Result<(), Failure> {
        let plan =
            self.plan(c, DeviceChoice::Cpu, Precision::Mixed, standard_system(), 1, &["stages[0].dt=1e-5".into()])?;
        let mut b = open(&plan)?;
        let mine = seconds_per_step(&mut *b)?;
        let mut note = format!("{:.1} µs per step", 1e6 * mine);
        let report = b.list_report()?;
        if c.kind == Kind::Pair
            && let Some((_, lj)) = self.registry.find(Kind::Pair, "LennardJones")
        {
            let cutoff = format!("forces[0].r_cut={:?}", plan.components[0].needs.cutoff);
            let plan = self.plan(
                lj,
                DeviceChoice::Cpu,
                Precision::Mixed,
                standard_system(),
                1,
                &["stages[0].dt=1e-5".into(), cutoff],
            )?;
            let other = seconds_per_step(&mut *open(&plan)?)?;
            let entries = report.mean * standard_system().len() as f64;
            note = format!("{:.2} ns per neighbor, {:.2} times Lennard-Jones", 1e9 * mine / entries, mine / other);
        }
        self.note(c, "speed on the CPU, mixed", 0.0, 0.0, note);
        Ok(())
    }
}
