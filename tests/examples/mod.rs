//! Every example runs to its end and gives the results that its first lines promise. Two run longer than they would
//! unchanged, because their results are noisy. Long ones are left to `cargo xtask validate`; here, only their first steps are done.

mod analysis;
mod anisotropic;
mod files;
mod flow;
mod liquids;
mod polymers;
mod soft_matter;

use galamost_tests::{output, program, repository};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, OnceLock};

/// Examples that pages of the book run, too: their tests and those pages share one run.
pub const SHARED: [&str; 11] = [
    "03-dpd-liquid",
    "04-diblock",
    "06-kremer-grest-melt",
    "30-brush",
    "31-network",
    "34-field-blend",
    "35-dppc-water",
    "44-rosenbluth",
    "45-perm",
    "46-build-melt",
    "65-chain-sizes",
];

/// The folder in which a shared example has run. It is removed by a later run of the tests: other tests of this process
/// may use it until the process ends.
pub fn finished(name: &str) -> PathBuf {
    static RUNS: Mutex<BTreeMap<String, Arc<OnceLock<PathBuf>>>> = Mutex::new(BTreeMap::new());
    let run = RUNS.lock().unwrap_or_else(std::sync::PoisonError::into_inner).entry(name.into()).or_default().clone();
    run.get_or_init(|| {
        static FOLDER: OnceLock<PathBuf> = OnceLock::new();
        let folder = FOLDER.get_or_init(folder_of_runs).join(name);
        std::fs::create_dir(&folder).expect("a folder");
        run_in(&folder, name, &[]);
        folder
    })
    .clone()
}

/// Creates a folder of this process. Removes those of processes that have ended.
fn folder_of_runs() -> PathBuf {
    let all = output().join("runs-of-examples");
    std::fs::create_dir_all(&all).expect("a folder");
    for e in std::fs::read_dir(&all).expect("a folder").filter_map(Result::ok) {
        if !Path::new("/proc").join(e.file_name()).exists() {
            // another run of the tests may be removing it
            let _ = std::fs::remove_dir_all(e.path());
        }
    }
    let own = all.join(std::process::id().to_string());
    let _ = std::fs::remove_dir_all(&own);
    std::fs::create_dir(&own).expect("a folder");
    own
}

/// Copies an example with its files to a temporary folder and runs it there.
fn run(name: &str) -> (tempfile::TempDir, PathBuf) {
    run_with(name, &[])
}

/// As [`run`], with overrides for `--set`.
fn run_with(name: &str, overrides: &[&str]) -> (tempfile::TempDir, PathBuf) {
    run_options(name, &overrides.iter().flat_map(|o| ["--set", o]).collect::<Vec<_>>())
}

/// As [`run`], with more options of the program.
fn run_options(name: &str, options: &[&str]) -> (tempfile::TempDir, PathBuf) {
    let keep = tempfile::tempdir().expect("a folder");
    let folder = keep.path().to_path_buf();
    if options.is_empty() && SHARED.contains(&name) {
        let copied = Command::new("cp").arg("-r").arg(finished(name).join(".")).arg(&folder).status();
        assert!(copied.expect("cp").success(), "{name}: its files cannot be copied");
    } else {
        run_in(&folder, name, options);
    }
    (keep, folder)
}

fn run_in(folder: &Path, name: &str, options: &[&str]) {
    for e in std::fs::read_dir(repository().join("examples")).expect("examples/").filter_map(Result::ok) {
        let path = e.path();
        let number = |p: &Path| p.file_name().unwrap_or_default().to_string_lossy()[..2].to_string();
        let endings = ["ron", "xml", "dump", "gz", "pdb", "top", "itp", "gro"];
        if path.extension().is_some_and(|x| endings.iter().any(|e| x == *e)) && number(&path) == name[..2] {
            std::fs::copy(&path, folder.join(e.file_name())).expect("copied");
        }
    }
    let out = Command::new(program())
        .args(["--pipeline", &format!("{name}.ron"), "--device", "cpu", "--quiet"])
        .args(options)
        .current_dir(folder)
        .output()
        .expect("the program runs");
    assert!(out.status.success(), "{name}: {}", String::from_utf8_lossy(&out.stderr));
}

/// Names of examples whose tests are ignored for their length.
fn ignored() -> Vec<String> {
    let mut names = vec![];
    for file in std::fs::read_dir(repository().join("tests/examples")).expect("tests/examples/").filter_map(Result::ok)
    {
        let text = std::fs::read_to_string(file.path()).expect("a source");
        for test in text.split("\n#[test]\n").filter(|t| t.starts_with("#[ignore")) {
            let run = test.split_once("= run(\"").or_else(|| test.split_once("= run_with(\""));
            let name = run.and_then(|(_, t)| t.split('"').next());
            names.push(name.unwrap_or_else(|| panic!("a test of {:?} runs no example", file.path())).into());
        }
    }
    names
}

/// The first steps of long examples succeed.
#[test]
fn long_examples_begin() {
    for name in ignored() {
        run_options(&name, &["--steps", "100"]);
    }
}

#[test]
fn every_example_has_a_test() {
    let mut here = String::new();
    for file in std::fs::read_dir(repository().join("tests/examples")).expect("tests/examples/").filter_map(Result::ok)
    {
        here += &std::fs::read_to_string(file.path()).expect("a source");
    }
    let mut n = 0;
    for e in std::fs::read_dir(repository().join("examples")).expect("examples/").filter_map(Result::ok) {
        let name = e.file_name().to_string_lossy().into_owned();
        if let Some(stem) = name.strip_suffix(".ron") {
            n += 1;
            let runs = [format!("= run(\"{stem}\")"), format!("= run_with(\"{stem}\"")];
            assert!(runs.iter().any(|r| here.contains(r)), "{name} is not run");
        }
    }
    // the tests run nothing else
    let runs = here.matches("= run(\"").count() + here.matches("= run_with(\"").count();
    assert_eq!(n, runs, "examples, and runs of them");
}
