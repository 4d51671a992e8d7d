//! Helpers of the tests: paths, builds of plugins, runs of pipelines, and reports of missing tools.

use galamost_engine::backend::{Backend, Columns};
use galamost_engine::diagnostic::{Diagnostic, Failure};
use galamost_engine::pipeline::{DeviceChoice, Pipeline};
use galamost_engine::plan::{CheckOptions, Plan, check};
use galamost_engine::plugins::Registry;
use galamost_engine::run::{RunOptions, Summary, execute};
use galamost_plugin_api::component::Wants;
use galamost_plugin_api::error::InputError;
use galamost_plugin_api::snapshot::Snapshot;
use galamost_plugin_api::tilt::{image_shift, to_reduced, to_space};
use galamost_plugin_api::views::Wanted;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;

pub mod fuzz;
mod outside;
pub mod tolerances;
pub mod variants;

/// The folder of this repository, or `GALAMOST_REPOSITORY` if the tests run on another machine than the one that built them.
pub fn repository() -> PathBuf {
    if let Some((_, repository)) = FOLDERS.get() {
        return repository.clone();
    }
    std::env::var_os("GALAMOST_REPOSITORY")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join(".."), PathBuf::from)
}

static FOLDERS: OnceLock<(PathBuf, PathBuf)> = OnceLock::new();

/// Uses the program and the plugins of `output` instead of cargo's output folder, and this repository. Call it before all
/// other functions.
pub fn use_folders(output: PathBuf, repository: PathBuf) {
    FOLDERS.get_or_init(|| (output, repository));
}

/// Cargo's output folder, which contains the program and the plugins.
pub fn output() -> PathBuf {
    if let Some((output, _)) = FOLDERS.get() {
        return output.clone();
    }
    let exe = std::env::current_exe().expect("the test program has a path");
    // …/target/release/deps/all-0123456789
    exe.parent().and_then(Path::parent).expect("cargo's folder").to_path_buf()
}

/// The program `galamost`.
pub fn program() -> PathBuf {
    output().join("galamost")
}

/// Builds a plugin outside of the workspace and returns its library. All such builds share one output folder, so their
/// dependencies are compiled once; the versions are those of this workspace, so nothing is downloaded. The plugin is not
/// optimized: to optimize the loops of the plugin API, which it contains, takes longer than they run.
pub fn build_plugin(folder: &Path, name: &str) -> PathBuf {
    build_library(folder, name, UNOPTIMIZED)
}

/// Builds a plugin, as [`build_plugin`], whose loops over pairs run for longer than it takes to optimize them.
pub fn build_pair_plugin(folder: &Path, name: &str) -> PathBuf {
    build_library(folder, name, OPTIMIZED)
}

const UNOPTIMIZED: u8 = 0;
/// Below this level, crates use the unoptimized instances of generic functions that the plugin API has compiled for itself.
const OPTIMIZED: u8 = 2;

fn build_library(folder: &Path, name: &str, level: u8) -> PathBuf {
    let library = repository().join("target/outside/built").join(format!("lib{name}.so"));
    copy_library(&cargo_outside(folder, &["build", "--release"], level), &library);
    library
}

/// Builds a plugin with these arguments of cargo and copies its library to `to`.
pub fn build_crate(folder: &Path, how: &[&str], to: &Path) {
    copy_library(&cargo_outside(folder, how, UNOPTIMIZED), to);
}

/// Copies the library that cargo's messages name.
fn copy_library(messages: &str, to: &Path) {
    // the last file in cargo's messages is the library
    let library = messages.rsplit('"').find(|f| f.ends_with(".so") && f.contains("/lib")).expect("a library");
    replace_library(Path::new(library), to);
}

/// Replaces a library by a new file: overwriting it would break every process that has it loaded, such as another run of
/// the tests.
fn replace_library(from: &Path, to: &Path) {
    let folder = to.parent().expect("a folder");
    std::fs::create_dir_all(folder).expect("a folder");
    let new = tempfile::NamedTempFile::new_in(folder).expect("a file").into_temp_path();
    std::fs::copy(from, &new).expect("copied");
    new.persist(to).expect("renamed");
}

/// Builds a crate outside of the workspace with some optimization and returns the folder with the output.
pub fn build_outside(folder: &Path) -> PathBuf {
    cargo_outside(folder, &["build", "--release"], OPTIMIZED);
    repository().join("target/outside/release")
}

/// Runs the unit tests of a crate outside of the workspace, with the output folder of [`build_plugin`].
pub fn test_outside(folder: &Path) {
    cargo_outside(folder, &["test", "--release"], UNOPTIMIZED);
}

/// Runs cargo in a crate outside of the workspace with the shared output folder. Returns cargo's messages as JSON.
fn cargo_outside(folder: &Path, how: &[&str], level: u8) -> String {
    static ONE_AT_A_TIME: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _held = ONE_AT_A_TIME.lock();
    let target = repository().join("target/outside");
    outside::share_dependencies(&output(), &target.join("release"));
    std::fs::copy(repository().join("Cargo.lock"), folder.join("Cargo.lock")).expect("copied");
    outside::share_features(folder);
    let (first, rest) = how.split_first().expect("a command");
    let mut cargo = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".into()));
    cargo.args([first, "--offline", "--quiet", "--message-format=json-render-diagnostics"]);
    outside::set_profile(&mut cargo, folder, level);
    let out = cargo.args(rest).current_dir(folder).env("CARGO_TARGET_DIR", target).output().expect("cargo runs");
    let messages = String::from_utf8_lossy(&out.stdout).into_owned();
    let printed: Vec<&str> = messages.lines().filter(|l| !l.starts_with('{')).collect();
    assert!(out.status.success(), "{}\n{}", printed.join("\n"), words(&out));
    messages
}

/// A folder with the plugin of `abi/fixture`: component kinds that no shipped plugin has, and components that misbehave.
pub fn fixture() -> PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER
        .get_or_init(|| {
            // tests that were copied to another machine bring it along
            let carried = output().join("fixture");
            if carried.exists() {
                return carried;
            }
            let library = build_plugin(&repository().join("tests/abi/fixture"), "fixture");
            let folder = repository().join("target/outside/fixture");
            replace_library(&library, &folder.join("libfixture.so"));
            folder
        })
        .clone()
}

/// All plugins of the workspace, which `cargo build --release` builds before the tests, and the fixture.
pub fn registry() -> &'static Registry {
    static REGISTRY: OnceLock<Registry> = OnceLock::new();
    REGISTRY.get_or_init(|| {
        // runs in this process share all cores, also if `RAYON_NUM_THREADS` gives programs that tests start fewer threads
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let _ = rayon::ThreadPoolBuilder::new().num_threads(cores).build_global();
        let r = Registry::load(&[output(), fixture()], 2);
        let found: BTreeSet<String> = r.libraries().iter().map(|l| l.record.name().to_string()).collect();
        let missing: Vec<String> = plugin_names().difference(&found).cloned().collect();
        let unknown: Vec<&String> = found.iter().filter(|n| *n != "fixture" && !plugin_names().contains(*n)).collect();
        assert!(
            missing.is_empty(),
            "plugins are missing in {}: {}; run `cargo build --release` first",
            output().display(),
            missing.join(", ")
        );
        assert!(
            found.contains("fixture") && unknown.is_empty(),
            "{} has plugins that are not in plugins/: {unknown:?}; delete their libraries",
            output().display()
        );
        r
    })
}

/// Names of the folders of `plugins/` that hold a plugin.
fn plugin_names() -> BTreeSet<String> {
    let entries = std::fs::read_dir(repository().join("plugins")).expect("plugins/").filter_map(Result::ok);
    let plugins = entries.filter(|e| e.path().join("Cargo.toml").exists());
    plugins.map(|e| e.file_name().to_string_lossy().into_owned()).collect()
}

/// Devices to test on: the CPU, and the emulated device if g++ is available.
pub fn devices() -> Vec<DeviceChoice> {
    let mut devices = vec![DeviceChoice::Cpu];
    if has_compiler() {
        devices.push(DeviceChoice::Emulated);
    }
    devices
}

/// Returns a backend at the start of the first stage of a pipeline with this initial state. Its forces are computed.
pub fn started(text: &str, state: Snapshot, device: DeviceChoice) -> Box<dyn Backend> {
    let plan = plan_of(text, state, device).unwrap_or_else(|e| panic!("{}", e.render()));
    let mut b = backend(&plan);
    b.begin_stage(&plan.stages[0], false).expect("begun");
    b
}

/// Advances by some steps. Energies and virials are computed in the last one.
pub fn advance(b: &mut dyn Backend, steps: u64) {
    let mut left = steps;
    while left > 0 {
        left -= b.advance(left, Wanted::ALL, &AtomicBool::new(false)).expect("steps");
    }
}

/// Parses and checks a pipeline.
///
/// # Errors
/// Returns the errors that the check finds.
pub fn plan(text: &str, device: DeviceChoice) -> Result<Plan, Failure> {
    plan_in(Path::new("test.ron"), text, device)
}

/// Parses and checks a pipeline; relative paths start at the folder of `path`.
///
/// # Errors
/// Returns the errors that the check finds.
pub fn plan_in(path: &Path, text: &str, device: DeviceChoice) -> Result<Plan, Failure> {
    let diagnostics = |errors: Vec<InputError>| -> Vec<Diagnostic> {
        errors.into_iter().map(|e| Diagnostic::new(path, e.at, e.message)).collect()
    };
    let parsed = Pipeline::parse_partially(path, text, &[]);
    let (mut pipeline, errors) = parsed.map_err(|e| Failure::Input(diagnostics(e)))?;
    pipeline.device = device;
    check(pipeline, registry(), CheckOptions { errors: diagnostics(errors), ..CheckOptions::default() })
}

/// Parses and checks a pipeline with a given initial state instead of generators.
///
/// # Errors
/// Returns the errors that the check finds.
pub fn plan_of(text: &str, snapshot: Snapshot, device: DeviceChoice) -> Result<Plan, Failure> {
    let path = Path::new("test.ron");
    let text = text.replacen('(', "(initial: [], ", 1);
    let mut pipeline = Pipeline::parse(path, &text, &[]).unwrap_or_else(|e| panic!("{text}: {e:?}"));
    pipeline.device = device;
    check(pipeline, registry(), CheckOptions { snapshot: Some(snapshot), ..CheckOptions::default() })
}

/// Particles and topology of a backend, in tag order.
pub fn columns(backend: &mut dyn Backend) -> Columns {
    let facts = backend.facts().clone();
    let wants = Wants { particles: true, topology: true, ..Wants::default() };
    galamost_engine::backend::columns(backend, &facts, wants).expect("columns")
}

/// Unwrapped positions and velocities, three numbers per particle.
pub fn unwrapped(backend: &mut dyn Backend) -> (Vec<f64>, Vec<f64>) {
    let (length, tilt) = (backend.box_length(), backend.tilt());
    let c = columns(backend);
    let one = |(p, i): (&[f64; 3], &[i32; 3])| -> [f64; 3] {
        let shift = image_shift(*i, length, tilt);
        std::array::from_fn(|k| p[k] + shift[k])
    };
    let position = c.position.iter().zip(&c.image).flat_map(one).collect();
    (position, c.velocity.into_iter().flatten().collect())
}

/// The largest absolute difference of two lists of numbers.
pub fn largest_difference(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).fold(0.0, |m, (a, b)| if (a - b).is_nan() { f64::NAN } else { f64::max(m, (a - b).abs()) })
}

/// Kinetic energies of translation and rotation, and the potential energy.
pub fn energies(backend: &mut dyn Backend) -> [f64; 3] {
    let s = backend.sums().expect("sums");
    let k = s.kinetic_tensor;
    [0.5 * (k[0] + k[3] + k[5]), s.rotational, s.components.iter().map(|c| c.energy).sum()]
}

/// The standard deviation of the total energy over two units of time, after a quarter of that.
pub fn energy_fluctuation(backend: &mut dyn Backend, dt: f64) -> f64 {
    let step = (0.02 / dt).round() as u64;
    advance(backend, 25 * step);
    let total: Vec<f64> = (0..100)
        .map(|_| {
            advance(backend, step);
            energies(backend).iter().sum()
        })
        .collect();
    let m = mean(&total);
    (total.iter().map(|e| (e - m).powi(2)).sum::<f64>() / 100.0).sqrt()
}

/// Columns of a CSV file.
pub fn csv(path: &Path) -> BTreeMap<String, Vec<f64>> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().expect("a header").split(',').collect();
    let mut columns = BTreeMap::new();
    for line in lines {
        for (name, value) in names.iter().zip(line.split(',')) {
            // an empty field is a missing value
            let value = if value.is_empty() { f64::NAN } else { value.parse().expect("a number") };
            columns.entry(name.to_string()).or_insert_with(Vec::new).push(value);
        }
    }
    columns
}

/// Rows of the last frame of a dump, by column.
pub fn dump(path: &Path) -> BTreeMap<String, Vec<f64>> {
    let text = std::fs::read_to_string(path).expect("a dump");
    let (_, last) = text.rsplit_once("ITEM: ATOMS ").expect("a frame");
    let mut lines = last.lines();
    let names: Vec<&str> = lines.next().expect("names").split(' ').collect();
    let mut out: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for row in lines {
        for (name, word) in names.iter().zip(row.split(' ')) {
            out.entry((*name).into()).or_default().push(word.parse().expect("a number"));
        }
    }
    out
}

/// The mean.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Runs the program in a folder and waits until it ends.
pub fn galamost(folder: &Path, args: &[&str]) -> Output {
    Command::new(program()).args(args).current_dir(folder).output().expect("the program runs")
}

/// The text that a program wrote to standard error.
pub fn words(out: &Output) -> String {
    String::from_utf8_lossy(&out.stderr).into_owned()
}

/// Unpacks a file of `data/`.
pub fn unpack(name: &str, to: &Path) {
    let packed = std::fs::read(repository().join("tests/data").join(name)).expect("the packed file");
    let mut out = std::fs::File::create(to).expect("a file");
    lzma_rs::xz_decompress(&mut packed.as_slice(), &mut out).expect("unpacked");
}

/// Opens a backend for a plan.
pub fn backend(plan: &Plan) -> Box<dyn Backend> {
    galamost_engine::run::open(plan).unwrap_or_else(|e| panic!("{}", e.render()))
}

/// Runs a pipeline from start to end.
///
/// # Errors
/// Returns the error of the check or of the run.
pub fn run(text: &str, device: DeviceChoice) -> Result<(Summary, Box<dyn Backend>), Failure> {
    run_plan(&plan(text, device)?)
}

/// Runs a plan from start to end.
///
/// # Errors
/// Returns the error of the run.
pub fn run_plan(plan: &Plan) -> Result<(Summary, Box<dyn Backend>), Failure> {
    let mut b = backend(plan);
    let summary = execute(plan, &mut *b, &RunOptions { quiet: true, ..RunOptions::default() }, None)?;
    Ok((summary, b))
}

/// Reports that a test is skipped because a tool is missing. In continuous integration (`CI` is set) this is a failure,
/// unless the missing tool is a GPU.
pub fn skip(tool: &str, why: &str) {
    let gpu = tool == "GPU";
    assert!(
        gpu || std::env::var_os("CI").is_none(),
        "{tool} is missing, which continuous integration must have: {why}"
    );
    assert!(!(gpu && std::env::var_os("GALAMOST_NEED_GPU").is_some()), "a GPU is missing: {why}");
    // directly to standard error: the test harness hides the output of tests that pass
    let _ = writeln!(std::io::stderr(), "SKIPPED: needs {tool}: {why}");
}

/// Returns whether the emulated device can be used; reports a skip if not.
pub fn has_compiler() -> bool {
    match galamost_engine::device::choose(DeviceChoice::Emulated) {
        Ok(_) => true,
        Err(e) => {
            skip("g++", &e);
            false
        }
    }
}

/// A Python with the packages `gsd` and `freud`: `GALAMOST_PYTHON`, or `python3`. Reports a skip if there is none.
pub fn python() -> Option<PathBuf> {
    static FOUND: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let found = FOUND.get_or_init(|| python_with("gsd.hoomd, freud, numpy")).clone();
    found.map_err(|why| skip("Python with gsd and freud-analysis", &why)).ok()
}

/// A Python with these modules: `GALAMOST_PYTHON`, or `python3`.
///
/// # Errors
/// Returns the last line of Python's error.
pub fn python_with(modules: &str) -> Result<PathBuf, String> {
    let python: PathBuf = std::env::var_os("GALAMOST_PYTHON").map_or_else(|| "python3".into(), PathBuf::from);
    match Command::new(&python).args(["-c", &format!("import {modules}")]).env("QT_QPA_PLATFORM", "offscreen").output()
    {
        Ok(out) if out.status.success() => Ok(python),
        Ok(out) => Err(words(&out).lines().last().unwrap_or_default().to_string()),
        Err(e) => Err(e.to_string()),
    }
}

/// Like [`skip`], for what not every machine of continuous integration has.
pub fn skip_rare(tool: &str, why: &str) {
    let _ = writeln!(std::io::stderr(), "SKIPPED: needs {tool}, which is not everywhere: {why}");
}

/// Like [`skip_rare`], for Python packages of hundreds of megabytes.
pub fn skip_heavy(package: &str, why: &str) {
    skip_rare(&format!("the Python package {package}"), why);
}

/// Returns whether NVRTC can be used; reports a skip if not.
pub fn has_nvrtc() -> bool {
    match galamost_engine::device::nvrtc::load() {
        Ok(()) => true,
        Err(e) => {
            skip("NVRTC", &e.to_string());
            false
        }
    }
}

/// Returns the same particles in a box with these tilt factors, wrapped into it.
pub fn in_box(s: &Snapshot, tilt: [f64; 3]) -> Snapshot {
    let mut out = Snapshot { tilt, ..s.clone() };
    for (r, image) in out.position.iter_mut().zip(&mut out.image) {
        let mut q = to_reduced(*r, tilt);
        for k in 0..3 {
            let turns = (q[k] / s.box_length[k]).round();
            q[k] -= turns * s.box_length[k];
            image[k] += turns as i32;
        }
        *r = to_space(q, tilt);
    }
    out
}
