//! `galamost bench` without a GPU: its cases run and its table is complete.

use galamost_tests::{galamost, has_compiler, program, repository, words};
use std::process::Command;
use std::time::{Duration, Instant};

#[test]
fn a_benchmark_case_has_a_row_its_parts_and_a_plot() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = galamost(
        folder.path(),
        &["bench", "lj 1000", "--all", "--device", "cpu", "--window", "0.05", "--plot", "b.svg", "--out", "b.json"],
    );
    assert!(out.status.success(), "{}", words(&out));
    let table = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(table.contains("| lj | 1000 |") && table.contains("neighbor list"), "{table}");
    let text = std::fs::read_to_string(folder.path().join("b.json")).expect("a table for programs");
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(json["cases"].as_array().map(Vec::len), Some(1));
    let case = &json["cases"][0];
    assert!(case["windows"].as_array().is_some_and(|w| w.len() == 3 && w.iter().all(|t| t.as_f64() > Some(0.0))));
    assert!((case["kT"].as_f64().expect("kT") - 1.2).abs() < 0.3, "{case}");
    let kernels = case["profile"]["kernels"].as_array().expect("parts");
    let seconds = |part: &str| -> f64 {
        kernels.iter().filter(|k| k["part"] == part).filter_map(|k| k["seconds"].as_f64()).sum()
    };
    assert!(seconds("LennardJones") > 0.0 && seconds("NoseHoover") > 0.0, "{kernels:?}");
    assert!(std::fs::read_to_string(folder.path().join("b.svg")).expect("a plot").starts_with("<svg"));
}

/// Replicas count as one case of all their particles.
#[test]
fn replicas_are_measured_together() {
    let folder = tempfile::tempdir().expect("a folder");
    let args = ["bench", "replicas 64000", "--all", "--device", "cpu", "--window", "0.01", "--json"];
    let out = galamost(folder.path(), &args);
    assert!(out.status.success(), "{}", words(&out));
    let json: serde_json::Value = serde_json::from_slice(&out.stdout).expect("JSON");
    let case = &json["cases"][0];
    assert!(case["windows"].as_array().is_some_and(|w| w.len() == 3 && w.iter().all(|t| t.as_f64() > Some(0.0))));
    assert!((case["kT"].as_f64().expect("kT") - 1.2).abs() < 0.3, "{case}");
    assert!(case["bytes_per_particle"].as_f64() > Some(0.0), "{case}");
}

/// The particles attract each other, so the lists of replicas grow, and at different steps: some replicas are behind when
/// others have done theirs.
#[test]
fn replicas_that_are_behind_are_measured() {
    if !has_compiler() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(
        folder.path().join("replicas.ron"),
        "(seed: 1, neighbors: (buffer: 0.6), initial: [RandomPositions(count: 256, box: [8.0, 8.0, 8.0]), Velocities(kT: 1.0)], \
         forces: [Gaussian(r_cut: 2.5, pairs: { (\"*\", \"*\"): (epsilon: -1.0, sigma: 1.0) })], \
         integrators: [NoseHoover(kT: 1.0, tau: 0.5)], stages: [(steps: 1, dt: 0.01)])",
    )
    .expect("a pipeline");
    let args =
        ["bench", "replicas 4000", "--all", "--device", "emulated", "--window", "0.01", "--json", "--cases", "."];
    let mut bench = Command::new(program()).args(args).current_dir(folder.path()).spawn().expect("the program runs");
    let deadline = Instant::now() + Duration::from_secs(60);
    let status = loop {
        if let Some(status) = bench.try_wait().expect("a status") {
            break status;
        }
        if Instant::now() > deadline {
            bench.kill().expect("it ends");
            panic!("the measurement has stopped");
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    assert!(status.success());
}

/// The pipelines of cases pass their check, with the values that rows replace.
#[test]
fn pipelines_of_cases_are_sound() {
    let data = repository().join("tests/data/dppc-water-21216.xml.xz");
    let file = format!("initial[0].file={:?}", data.to_string_lossy());
    let check = |args: &[&str]| {
        let out = galamost(&repository(), &[&["check"], args].concat());
        assert!(out.status.success(), "{args:?}: {}", words(&out));
    };
    check(&["benches/cases/polymerization.ron"]);
    check(&[
        "benches/cases/md-scf.ron",
        "--set",
        &file,
        "--set",
        "initial[1].times=[2, 1, 1]",
        "--set",
        "forces[3].grid=[44, 22, 22]",
        "--set",
        "precision=Mixed",
    ]);
}

#[test]
fn benchmark_cases_without_their_files_are_reported() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = galamost(folder.path(), &["bench", "polymerization", "--all", "--device", "cpu", "--cases", "nowhere"]);
    let table = String::from_utf8_lossy(&out.stdout).into_owned();
    assert_eq!(out.status.code(), Some(1), "{}", words(&out));
    assert!(table.contains("not measured: polymerization 81407") && table.contains("nowhere"), "{table}");
}
