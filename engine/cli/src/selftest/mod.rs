//! `galamost selftest` and `galamost test-plugin`: test components on every device.
//!
//! Each component runs with its own example on a standard system: 1,000 particles of types A and B on a perturbed
//! lattice, with velocities, charges of ±1 (each chain is neutral), diameters of 0.9 to 1.1, orientations with moments of inertia and angular
//! momenta, and chains of ten with bonds, angles, dihedrals and impropers, whose types are named after the number of B in them
//! (A-A, A-B, B-B; A-A-A, A-A-B, …). The reference is the CPU in double precision.

mod checks;
mod forces;
mod isolated;
mod oriented;
mod physics;
mod reproducible;
mod round_trip;
mod setup;
mod system;
mod table;
mod test_plugin;

use system::bare_molecules;
pub use system::standard_system;
pub(crate) use test_plugin::{TestPluginArgs, run_test_plugin};

use crate::common::{Context, input_error, parse_device};
use crate::terminal::print;
use clap::Args;
use galamost_engine::device::Chosen;
use galamost_engine::diagnostic::{Failure, counted};
use galamost_engine::pipeline::DeviceChoice;
use galamost_engine::plan::Plan;
use galamost_engine::plugins::{Library, Registry};
use galamost_plugin_api::component::{ComponentInfo, Kind};
use galamost_plugin_api::precision::Precision;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Options of `galamost selftest`.
#[derive(Args, Debug)]
pub(crate) struct SelftestArgs {
    /// Test only these components.
    names: Vec<String>,
    /// Device: auto, cpu, cuda:0 or emulated.
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    device: String,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    isolation: IsolationArgs,
}

/// Options of the processes in which components are tested.
#[derive(Args, Debug)]
pub(crate) struct IsolationArgs {
    /// Stop the test of a component that makes no call for this many seconds.
    #[arg(long, value_name = "SECONDS", default_value = "300", value_parser = clap::value_parser!(u64).range(1..))]
    timeout: u64,
    /// Test this many components at once [default: half of the cores, at most 8].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    jobs: Option<u16>,
    /// Compare runs on N GPUs, or N emulated ranks, with one, bit by bit [default: 1; `test-plugin` on the emulated device: 2].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4))]
    ranks: Option<u32>,
    /// What this process tests; other processes of this program set it.
    #[arg(long, hide = true)]
    job: Option<String>,
}

/// Runs `galamost selftest`. The exit status is 1 if a test fails.
///
/// # Errors
/// Returns an error if the device cannot be used or a component is unknown.
pub(crate) fn run(args: &SelftestArgs, context: &Context) -> Result<u8, Failure> {
    let registry = context.registry();
    if let Some(job) = &args.isolation.job {
        return isolated::run_job(job, &registry).map(|()| 0);
    }
    let device = parse_device(&args.device)?;
    let ranks = args.isolation.ranks.unwrap_or(1);
    let rows = test_components(&registry, device, &args.names, Checks { thorough: false, ranks }, &args.isolation)?;
    if args.json {
        print(format!("{:#}\n", table::json(&rows)))?;
    } else {
        print(format!("device: {}\n{}", device_name(device), table::text(&rows)))?;
    }
    Ok(u8::from(rows.iter().any(TestRow::failed)))
}

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct TestRow {
    /// Name of the component.
    pub component: String,
    /// Kind of the component.
    pub kind: Kind,
    /// What was checked.
    pub check: String,
    /// Measured deviation; NaN if the check failed with an error.
    pub value: f64,
    /// Largest allowed deviation.
    pub limit: f64,
    /// Reason why the check was skipped, or the first line of the error.
    pub note: String,
    /// The whole error message.
    pub detail: String,
    /// Whether the check was skipped; `note` contains the reason.
    pub skipped: bool,
}

impl TestRow {
    /// Returns the result of a check of a component.
    fn new(c: &ComponentInfo, check: &str, value: f64, limit: f64, note: impl Into<String>) -> Self {
        Self {
            component: c.name.clone(),
            kind: c.kind,
            check: check.into(),
            value,
            limit,
            note: note.into(),
            detail: String::new(),
            skipped: false,
        }
    }

    /// Returns whether the check failed.
    pub fn failed(&self) -> bool {
        !self.skipped && (self.value.is_nan() || self.value > self.limit)
    }
}

/// What to do if a component has no example and the one made from its fields fails.
const NO_EXAMPLE: &str = "; its documentation has no example: add one in a block that begins with ```ron";

/// Which checks run besides those of every test.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Checks {
    /// Whether to run those of `test-plugin`.
    thorough: bool,
    /// Number of ranks that must give the bits of one.
    ranks: u32,
}

/// The tests of a component on one device.
struct Test<'a> {
    registry: &'a Registry,
    device: DeviceChoice,
    /// Whether the device is not the CPU.
    has_device: bool,
    folder: std::path::PathBuf,
    checks: Checks,
    /// Whether a check has failed.
    failed: bool,
    /// The file of results, and the first error in writing it.
    rows: std::fs::File,
    lost: Option<std::io::Error>,
}

/// Returns the name of a device.
fn device_name(device: DeviceChoice) -> String {
    match galamost_engine::device::choose(device).map(|c| c.open()) {
        Ok(Ok(Some(d))) => d.name(),
        _ => format!("CPU, {}", counted(rayon::current_num_threads() as u64, "thread")),
    }
}

/// Tests the named components, or all of them.
///
/// # Errors
/// Returns an error if the device cannot be used or a component is unknown.
fn test_components(
    registry: &Registry,
    device: DeviceChoice,
    names: &[String],
    checks: Checks,
    isolation: &IsolationArgs,
) -> Result<Vec<TestRow>, Failure> {
    let chosen = galamost_engine::device::choose(device).map_err(|e| input_error("--device", e))?;
    let device = match &chosen {
        Chosen::Cpu { .. } => DeviceChoice::Cpu,
        Chosen::Cuda { ordinal, .. } => DeviceChoice::Cuda(*ordinal),
        Chosen::Emulated => DeviceChoice::Emulated,
    };
    if checks.ranks > 1 {
        chosen.check_ranks(checks.ranks).map_err(|e| input_error("--ranks", e))?;
    }
    if let Some(name) = names.iter().find(|name| !registry.components().iter().any(|(_, c)| c.name == **name)) {
        return Err(input_error("selftest", format!("unknown component `{name}`")));
    }
    let folder = std::env::temp_dir().join(format!("galamost-selftest-{}", std::process::id()));
    let components: Vec<_> =
        registry.components().into_iter().filter(|(_, c)| names.is_empty() || names.contains(&c.name)).collect();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let jobs = isolation.jobs.map_or((cores / 2).clamp(1, 8), usize::from);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(jobs).build().map_err(Failure::run)?;
    let test = |(k, (_, c)): (usize, &(&Library, &ComponentInfo))| {
        let own = folder.join(k.to_string());
        let tested = isolated::test(c, device, checks, &own, Duration::from_secs(isolation.timeout));
        let _ = std::fs::remove_dir_all(&own);
        tested
    };
    let rows: Result<Vec<_>, _> =
        pool.install(|| components.par_iter().enumerate().with_max_len(1).map(test).collect());
    let _ = std::fs::remove_dir_all(&folder);
    Ok(rows?.into_iter().flatten().collect())
}

impl Test<'_> {
    /// Adds a result.
    fn note(&mut self, c: &ComponentInfo, check: &str, value: f64, limit: f64, note: impl Into<String>) {
        self.record(&TestRow::new(c, check, value, limit, note));
    }

    /// Adds a skipped check.
    fn skip(&mut self, c: &ComponentInfo, check: &str, reason: impl Into<String>) {
        self.record(&TestRow { skipped: true, ..TestRow::new(c, check, 0.0, 0.0, reason) });
    }

    /// Runs all tests of a component.
    fn component(&mut self, c: &ComponentInfo) {
        if self.has_device && !self.has_device_code(c) {
            self.skip(c, "on the device", "the component has no device code");
            self.has_device = false;
        }
        let tested = match c.kind {
            Kind::Pair | Kind::Bonded | Kind::Force => self.force(c).and_then(|()| self.launches(c)),
            Kind::Integrator => self.integrator(c).and_then(|()| self.launches(c)),
            Kind::Generator => self.generator(c),
            Kind::Analyzer | Kind::Updater => self.steps(c),
            Kind::Sampler => self.sampler(c),
        };
        let tested = tested.and_then(|()| self.ranks(c)).and_then(|()| {
            if self.checks.thorough && c.kind != Kind::Sampler { self.thorough_checks(c) } else { Ok(()) }
        });
        if let Err(e) = tested {
            // the user does not see the generated pipeline
            let pipeline = self.folder.join("selftest.ron").display().to_string();
            let (source, hint) = match c.example() {
                Some(_) => ("the example of its page", ""),
                None => ("an example made from its fields", NO_EXAMPLE),
            };
            let detail = e.render().replace(&pipeline, source);
            let message = detail.lines().find(|l| l.contains("error: ")).or(detail.lines().next());
            let note = format!("{}{hint}", message.unwrap_or_default().trim());
            self.record(&TestRow { detail, ..TestRow::new(c, "runs", f64::NAN, 0.0, note) });
        }
    }

    /// Returns whether a component can run on a device. If it cannot be made at all, the tests will say so.
    fn has_device_code(&self, c: &ComponentInfo) -> bool {
        let plan = self.plan(c, DeviceChoice::Cpu, Precision::Double, standard_system(), 0, &[]);
        let lacks = |p: &Plan| p.components.iter().any(|p| p.has_name(&c.name) && p.kind == c.kind && !p.needs.cuda);
        !plan.as_ref().is_ok_and(lacks)
    }

    /// Returns the tested combinations: the CPU in lower precisions, the device in all precisions.
    fn targets(&self) -> Vec<(DeviceChoice, Precision, &'static str)> {
        let mut targets = vec![
            (DeviceChoice::Cpu, Precision::Single, "CPU single"),
            (DeviceChoice::Cpu, Precision::Mixed, "CPU mixed"),
        ];
        if self.has_device {
            targets.push((self.device, Precision::Double, "device double"));
            targets.push((self.device, Precision::Mixed, "device mixed"));
            targets.push((self.device, Precision::Single, "device single"));
        }
        targets
    }
}
