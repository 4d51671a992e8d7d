//! Every example runs to its end and gives the results that its first lines promise. Two run longer than they would
//! unchanged, because their results are noisy. The longest are left to `cargo xtask validate`; here, only their first steps are done.

mod analysis;
mod anisotropic;
mod files;
mod flow;
mod liquids;
mod polymers;
mod soft_matter;

use galamost_tests::{program, repository};
use std::path::{Path, PathBuf};
use std::process::Command;

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
    let folder = tempfile::tempdir().expect("a folder");
    for e in std::fs::read_dir(repository().join("examples")).expect("examples/").filter_map(Result::ok) {
        let path = e.path();
        let number = |p: &Path| p.file_name().unwrap_or_default().to_string_lossy()[..2].to_string();
        if path.extension().is_some_and(|x| x == "ron" || x == "xml" || x == "dump" || x == "gz" || x == "pdb")
            && number(&path) == name[..2]
        {
            std::fs::copy(&path, folder.path().join(e.file_name())).expect("copied");
        }
    }
    let out = Command::new(program())
        .args(["--pipeline", &format!("{name}.ron"), "--device", "cpu", "--quiet"])
        .args(options)
        .current_dir(folder.path())
        .output()
        .expect("the program runs");
    assert!(out.status.success(), "{name}: {}", String::from_utf8_lossy(&out.stderr));
    let path = folder.path().to_path_buf();
    (folder, path)
}

/// Examples whose tests are ignored for their length, a table that each writes, and steps until it has two rows.
const LONG: [(&str, &str, &str); 10] = [
    ("05-two-stages", "05-two-stages.csv", "400"),
    ("13-janus", "13-janus.csv", "400"),
    ("19-triblock", "19-thermo.csv", "400"),
    ("24-many-body-film", "24-many-body-film.csv", "1100"),
    ("67-viscosity", "67-stress.csv", "3000"),
    ("72-electrolyte", "72-electrolyte.csv", "400"),
    ("73-polyelectrolyte", "73-polyelectrolyte.csv", "400"),
    ("81-special-pairs", "81-special-pairs.csv", "400"),
    ("83-biaxial", "83-biaxial.csv", "400"),
    ("90-coacervate", "90-coacervate.csv", "400"),
];

#[test]
fn long_examples_begin() {
    for (name, table, steps) in LONG {
        let (_keep, folder) = run_options(name, &["--steps", steps]);
        let rows =
            std::fs::read_to_string(folder.join(table)).unwrap_or_else(|e| panic!("{table}: {e}")).lines().count();
        assert!(rows > 2, "{name}: {table} has {rows} lines");
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
