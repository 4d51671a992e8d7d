//! What the tests share: where things are, how a pipeline is run, and how a missing tool is told.

use galamost::pipeline::{DeviceChoice, Pipeline};
use galamost::plan::{CheckOptions, Plan, check};
use galamost::plugins::Registry;
use galamost::report::Failure;
use galamost::run::{Backend, RunOptions, Summary, execute};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The folder of this repository.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
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

/// All plugins of the workspace; they are built by `cargo build --workspace` before the tests.
pub fn registry() -> &'static Registry {
    static REGISTRY: OnceLock<Registry> = OnceLock::new();
    REGISTRY.get_or_init(|| {
        let r = Registry::load(&[output()], 1);
        assert!(
            r.libraries().len() >= 11,
            "plugins are missing in {}: run `cargo build --release --workspace` first",
            output().display()
        );
        r
    })
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
        let list = e.into_iter().map(|e| galamost::report::Diagnostic::new(path, e.at, e.message));
        Failure::Input(list.collect())
    })?;
    pipeline.device = device;
    check(pipeline, registry(), CheckOptions::default())
}

/// A backend for a plan.
pub fn backend(plan: &Plan) -> Box<dyn Backend> {
    galamost::cli::backend(plan).unwrap_or_else(|e| panic!("{}", e.render()))
}

/// Runs a text from start to end.
///
/// # Errors
/// What broke.
pub fn run(text: &str, device: DeviceChoice) -> Result<(Summary, Box<dyn Backend>), Failure> {
    let plan = plan(text, device)?;
    let mut b = backend(&plan);
    let summary = execute(&plan, &mut *b, &RunOptions { quiet: true, ..RunOptions::default() }, None)?;
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
    println!("SKIPPED: needs {tool}: {why}");
}

/// Whether the emulated device can be used; says aloud if not.
pub fn has_compiler() -> bool {
    match galamost::device::choose(DeviceChoice::Emulated) {
        Ok(_) => true,
        Err(e) => {
            skip("g++", &e);
            false
        }
    }
}

/// Whether NVRTC can be used; says aloud if not.
pub fn has_nvrtc() -> bool {
    match galamost::device::nvrtc::load() {
        Ok(()) => true,
        Err(e) => {
            skip("NVRTC", &e.to_string());
            false
        }
    }
}
