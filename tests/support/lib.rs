//! What the tests share: where things are, how a pipeline is run, and how a missing tool is told.

use galamost_engine::backend::{Backend, Columns};
use galamost_engine::diagnostic::Failure;
use galamost_engine::pipeline::{DeviceChoice, Pipeline};
use galamost_engine::plan::{CheckOptions, Plan, check};
use galamost_engine::plugins::Registry;
use galamost_engine::run::{RunOptions, Summary, execute};
use galamost_plugin_api::component::Wants;
use galamost_plugin_api::snapshot::Snapshot;
use galamost_plugin_api::views::Wanted;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;

pub mod fuzz;
pub mod variants;

/// The folder of this repository; `GALAMOST_REPOSITORY` where the tests run elsewhere than where they were built.
pub fn repository() -> PathBuf {
    std::env::var_os("GALAMOST_REPOSITORY")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join(".."), PathBuf::from)
}

/// Cargo's output folder: the program and the plugins lie in it.
pub fn output() -> PathBuf {
    let exe = std::env::current_exe().expect("the test program has a path");
    // …/target/release/deps/all-0123456789
    exe.parent().and_then(Path::parent).expect("cargo's folder").to_path_buf()
}

/// The program `galamost`.
pub fn program() -> PathBuf {
    output().join("galamost")
}

/// Builds a plugin outside of the workspace and returns its library. The output folder is kept and shared, so that only
/// the first of them takes long; the versions are this workspace's, so that nothing has to be fetched.
pub fn build_plugin(folder: &Path, name: &str) -> PathBuf {
    let library = repository().join("target/outside/built").join(format!("lib{name}.so"));
    build_crate(folder, &["build", "--release"], &library);
    library
}

/// Builds a plugin with these arguments of cargo, and puts its library at `to`.
pub fn build_crate(folder: &Path, how: &[&str], to: &Path) {
    let told = cargo_outside(folder, how);
    // the last file that cargo tells is the library's
    let library = told.rsplit('"').find(|f| f.ends_with(".so") && f.contains("/lib")).expect("a library");
    replace_library(Path::new(library), to);
}

/// Puts a library in its place as a new file: one that is written over breaks every process that has it loaded, such as
/// another run of the tests.
fn replace_library(from: &Path, to: &Path) {
    let folder = to.parent().expect("a folder");
    std::fs::create_dir_all(folder).expect("a folder");
    let new = tempfile::NamedTempFile::new_in(folder).expect("a file").into_temp_path();
    std::fs::copy(from, &new).expect("copied");
    new.persist(to).expect("renamed");
}

/// Builds a crate outside of the workspace, as [`build_plugin`], and returns the folder of what was built.
pub fn build_outside(folder: &Path) -> PathBuf {
    cargo_outside(folder, &["build", "--release"]);
    repository().join("target/outside/release")
}

/// Runs cargo in a crate outside of the workspace, with the shared output folder; what it tells, as JSON.
fn cargo_outside(folder: &Path, how: &[&str]) -> String {
    static ONE_AT_A_TIME: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _held = ONE_AT_A_TIME.lock();
    std::fs::copy(repository().join("Cargo.lock"), folder.join("Cargo.lock")).expect("copied");
    let (first, rest) = how.split_first().expect("a command");
    let out = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".into()))
        .args([first, "--offline", "--quiet", "--message-format=json-render-diagnostics"])
        .args(rest)
        .current_dir(folder)
        .env("CARGO_TARGET_DIR", repository().join("target/outside"))
        .output()
        .expect("cargo runs");
    assert!(out.status.success(), "{}", words(&out));
    String::from_utf8_lossy(&out.stdout).into_owned()
}

/// A folder with the plugin of `abi/fixture`: kinds that no shipped plugin has, and components that misbehave.
pub fn fixture() -> PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER
        .get_or_init(|| {
            // where the tests were carried to, it lies beside them
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

/// All plugins of the workspace, built by `cargo build --workspace` before the tests, and the fixture.
pub fn registry() -> &'static Registry {
    static REGISTRY: OnceLock<Registry> = OnceLock::new();
    REGISTRY.get_or_init(|| {
        let r = Registry::load(&[output(), fixture()], 2);
        assert!(
            r.libraries().len() >= 19,
            "plugins are missing in {}: run `cargo build --release --workspace` first",
            output().display()
        );
        r
    })
}

/// Devices that tests have: the CPU, and the emulated device where there is a compiler for it.
pub fn devices() -> Vec<DeviceChoice> {
    let mut devices = vec![DeviceChoice::Cpu];
    if has_compiler() {
        devices.push(DeviceChoice::Emulated);
    }
    devices
}

/// A pipeline with a given initial state at the beginning of its first stage, with forces.
pub fn started(text: &str, state: Snapshot, device: DeviceChoice) -> Box<dyn Backend> {
    let plan = plan_of(text, state, device).unwrap_or_else(|e| panic!("{}", e.render()));
    let mut b = backend(&plan);
    b.begin_stage(&plan.stages[0], false).expect("begun");
    b
}

/// Steps, the last one with energies and virials.
pub fn advance(b: &mut dyn Backend, steps: u64) {
    let mut left = steps;
    while left > 0 {
        left -= b.advance(left, Wanted::ALL, &AtomicBool::new(false)).expect("steps");
    }
}

/// A pipeline text as a checked plan.
///
/// # Errors
/// What the check finds.
pub fn plan(text: &str, device: DeviceChoice) -> Result<Plan, Failure> {
    plan_in(Path::new("test.ron"), text, device)
}

/// A pipeline text as a checked plan; relative paths start at the folder of `path`.
///
/// # Errors
/// What the check finds.
pub fn plan_in(path: &Path, text: &str, device: DeviceChoice) -> Result<Plan, Failure> {
    let parsed = Pipeline::parse(path, text, &[]);
    let mut pipeline = parsed.map_err(|e| {
        let list = e.into_iter().map(|e| galamost_engine::diagnostic::Diagnostic::new(path, e.at, e.message));
        Failure::Input(list.collect())
    })?;
    pipeline.device = device;
    check(pipeline, registry(), CheckOptions::default())
}

/// A pipeline text with a given initial state instead of generators.
///
/// # Errors
/// What the check finds.
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

/// Positions without periodic boundaries, and velocities, as plain rows of numbers.
pub fn unwrapped(backend: &mut dyn Backend) -> (Vec<f64>, Vec<f64>) {
    let length = backend.box_length();
    let c = columns(backend);
    let one =
        |(p, i): (&[f64; 3], &[i32; 3])| -> [f64; 3] { std::array::from_fn(|k| p[k] + length[k] * f64::from(i[k])) };
    let position = c.position.iter().zip(&c.image).flat_map(one).collect();
    (position, c.velocity.into_iter().flatten().collect())
}

/// The largest difference of two rows of numbers.
pub fn largest_difference(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).fold(0.0, |m, (a, b)| if (a - b).is_nan() { f64::NAN } else { f64::max(m, (a - b).abs()) })
}

/// Columns of a CSV file.
pub fn csv(path: &Path) -> BTreeMap<String, Vec<f64>> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().expect("a header").split(',').collect();
    let mut columns = BTreeMap::new();
    for line in lines {
        for (name, value) in names.iter().zip(line.split(',')) {
            // an empty field is a value that there is not
            let value = if value.is_empty() { f64::NAN } else { value.parse().expect("a number") };
            columns.entry(name.to_string()).or_insert_with(Vec::new).push(value);
        }
    }
    columns
}

/// The mean.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Runs the program in a folder and waits for its end.
pub fn galamost(folder: &Path, args: &[&str]) -> Output {
    Command::new(program()).args(args).current_dir(folder).output().expect("the program runs")
}

/// The words that the program wrote for its user.
pub fn words(out: &Output) -> String {
    String::from_utf8_lossy(&out.stderr).into_owned()
}

/// A file of `data/`, unpacked.
pub fn unpack(name: &str, to: &Path) {
    let packed = std::fs::read(repository().join("tests/data").join(name)).expect("the packed file");
    let mut out = std::fs::File::create(to).expect("a file");
    lzma_rs::xz_decompress(&mut packed.as_slice(), &mut out).expect("unpacked");
}

/// A backend for a plan.
pub fn backend(plan: &Plan) -> Box<dyn Backend> {
    galamost_engine::run::open(plan).unwrap_or_else(|e| panic!("{}", e.render()))
}

/// Runs a text from start to end.
///
/// # Errors
/// What broke.
pub fn run(text: &str, device: DeviceChoice) -> Result<(Summary, Box<dyn Backend>), Failure> {
    run_plan(&plan(text, device)?)
}

/// Runs a plan from start to end.
///
/// # Errors
/// What broke.
pub fn run_plan(plan: &Plan) -> Result<(Summary, Box<dyn Backend>), Failure> {
    let mut b = backend(plan);
    let summary = execute(plan, &mut *b, &RunOptions { quiet: true, ..RunOptions::default() }, None)?;
    Ok((summary, b))
}

/// Tells that a test could not be done because a tool is missing. In continuous integration (`CI` is set) that is a
/// failure, unless what is missing is a GPU.
pub fn skip(tool: &str, why: &str) {
    let gpu = tool == "GPU";
    assert!(
        gpu || std::env::var_os("CI").is_none(),
        "{tool} is missing, which continuous integration must have: {why}"
    );
    assert!(!(gpu && std::env::var_os("GALAMOST_NEED_GPU").is_some()), "a GPU is missing: {why}");
    // past the test harness, which keeps the output of tests that pass to itself
    let _ = writeln!(std::io::stderr(), "SKIPPED: needs {tool}: {why}");
}

/// Whether the emulated device can be used; says aloud if not.
pub fn has_compiler() -> bool {
    match galamost_engine::device::choose(DeviceChoice::Emulated) {
        Ok(_) => true,
        Err(e) => {
            skip("g++", &e);
            false
        }
    }
}

/// A Python with the packages `gsd` and `freud`: `GALAMOST_PYTHON`, or `python3`; says aloud if there is none.
pub fn python() -> Option<PathBuf> {
    let found = python_with("gsd.hoomd, freud, numpy");
    found.map_err(|why| skip("Python with gsd and freud-analysis", &why)).ok()
}

/// A Python with these modules: `GALAMOST_PYTHON`, or `python3`.
///
/// # Errors
/// What Python says.
pub fn python_with(modules: &str) -> Result<PathBuf, String> {
    let python: PathBuf = std::env::var_os("GALAMOST_PYTHON").map_or_else(|| "python3".into(), PathBuf::from);
    match Command::new(&python).args(["-c", &format!("import {modules}")]).env("QT_QPA_PLATFORM", "offscreen").output()
    {
        Ok(out) if out.status.success() => Ok(python),
        Ok(out) => Err(words(&out).lines().last().unwrap_or_default().to_string()),
        Err(e) => Err(e.to_string()),
    }
}

/// As [`skip`], for packages of hundreds of megabytes that continuous integration does without.
pub fn skip_heavy(package: &str, why: &str) {
    let _ = writeln!(
        std::io::stderr(),
        "SKIPPED: needs the Python package {package}, which is not installed everywhere: {why}"
    );
}

/// Whether NVRTC can be used; says aloud if not.
pub fn has_nvrtc() -> bool {
    match galamost_engine::device::nvrtc::load() {
        Ok(()) => true,
        Err(e) => {
            skip("NVRTC", &e.to_string());
            false
        }
    }
}
