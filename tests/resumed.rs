//! What a resumed run notices: other lags of analyzers, and other contents of files that plugins declare as inputs.

use galamost_tests::{csv, fixture, galamost, words};
use std::path::Path;

const PIPELINE: &str = r#"(
    seed: 4,
    initial: [ Lattice(lattice: Fcc, cells: [5, 5, 5], density: 0.7), Velocities(kT: 1.0) ],
    forces: [ LennardJones(r_cut: 2.5, pairs: { ("A", "A"): (epsilon: 1.0, sigma: 1.0) }) ],
    integrators: [ NoseHoover(kT: 1.0, tau: 0.5) ],
    checkpoint: (every: 20),
    stages: [ (steps: 100, dt: 0.004) ],
)"#;

fn folder() -> tempfile::TempDir {
    let f = tempfile::tempdir().expect("a folder");
    std::fs::write(f.path().join("p.ron"), PIPELINE).expect("written");
    f
}

/// Runs, and returns what was said; `status` is the exit status wanted.
fn go(folder: &Path, args: &[&str], status: i32) -> String {
    let out = galamost(folder, &[&["--pipeline", "p.ron", "--device", "cpu"], args].concat());
    let said = words(&out);
    assert_eq!(out.status.code(), Some(status), "{args:?}: {said}");
    said
}

/// Lags of another time step, or of another number of steps, are not mixed with those before: the analyzers start anew.
#[test]
fn other_lags_start_anew() {
    let analyzers = "analyzers=[Msd(every: 10, file: \"m.csv\", points: 4, levels: 1), Vacf(every: 5, file: \"v.csv\", points: 4, levels: 1), \
                     StressCorrelation(every: 10, file: \"s.csv\", longest: 4)]";
    let f = folder();
    go(f.path(), &["--steps", "40", "--set", analyzers], 0);
    let keep = f.path().join("keep");
    std::fs::copy(f.path().join("p.checkpoint"), &keep).expect("copied");
    let resume = format!("--resume={}", keep.display());
    let said = go(f.path(), &[&resume, "--resume-changed", "--set", analyzers, "--set", "stages[0].dt=0.002"], 0);
    for name in ["Msd", "StressCorrelation"] {
        let expected = format!(
            "{name} averaged over lags of 10 × 0.004 time units (steps × dt), now of 10 × 0.002: it starts anew"
        );
        assert!(said.contains(&expected), "{said}");
    }
    for (file, first) in [("m.csv", 0.02), ("v.csv", 0.01), ("s.csv", 0.02)] {
        let times = csv(&f.path().join(file))["time"].clone();
        // with samples of two lags, these are means of both
        assert!(times.iter().all(|t| (t / first - (t / first).round()).abs() < 1e-9), "{file}: {times:?}");
        assert!(times.iter().any(|t| (t / first - 1.0).abs() < 1e-9), "{file}: {times:?}");
    }
    // one analyzer with another interval: only this one, and without a further option
    let other = analyzers.replacen("every: 10", "every: 20", 1);
    let said = go(f.path(), &[&resume, "--set", &other], 0);
    assert!(said.contains("Msd averaged over lags of 10 × 0.004") && !said.contains("Vacf averaged"), "{said}");
    assert!((csv(&f.path().join("m.csv"))["time"][0] / 0.08 - 1.0).abs() < 1e-9);
    let said = go(f.path(), &[&resume, "--set", analyzers], 0);
    assert!(!said.contains("starts anew"), "{said}");
}

/// A plugin declares that a field with any name is an input file.
#[test]
fn other_contents_of_declared_input_files_are_noticed() {
    let (f, plugins) = (folder(), fixture());
    std::fs::write(f.path().join("numbers.prm"), "1.0").expect("written");
    let plugins = plugins.to_string_lossy();
    let more = ["--plugin-dir", &*plugins, "--set", "forces=[Numbers(table: \"numbers.prm\")]"];
    go(f.path(), &[&more[..], &["--steps", "40"]].concat(), 0);
    go(f.path(), &[&more[..], &["--steps", "60", "--resume"]].concat(), 0);
    std::fs::write(f.path().join("numbers.prm"), "1.1").expect("written");
    let said = go(f.path(), &[&more[..], &["--steps", "80", "--resume"]].concat(), 2);
    assert!(said.contains("`numbers.prm` of Numbers has other contents; --resume-changed accepts it"), "{said}");
}
