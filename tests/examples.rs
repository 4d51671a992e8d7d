//! Every example runs to its end as it is, and gives what its first lines promise.

use galamost_tests::{csv, mean, program, repository};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Copies the examples to a folder of their own and runs one there.
fn run(name: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    for e in std::fs::read_dir(repository().join("examples")).expect("examples/").filter_map(Result::ok) {
        let path = e.path();
        let number = |p: &Path| p.file_name().unwrap_or_default().to_string_lossy()[..2].to_string();
        if path.extension().is_some_and(|x| x == "ron" || x == "xml") && number(&path) == name[..2] {
            std::fs::copy(&path, folder.path().join(e.file_name())).expect("copied");
        }
    }
    let out = Command::new(program())
        .args(["--pipeline", &format!("{name}.ron"), "--device", "cpu", "--quiet"])
        .current_dir(folder.path())
        .output()
        .expect("the program runs");
    assert!(out.status.success(), "{name}: {}", String::from_utf8_lossy(&out.stderr));
    let path = folder.path().to_path_buf();
    (folder, path)
}

#[test]
fn example_01_lj_fluid() {
    let (_keep, folder) = run("01-lj-fluid");
    let t = csv(&folder.join("01-lj-fluid.csv"));
    assert_eq!(t["step"].len(), 101);
    let late = |name: &str| mean(&t[name][20..]);
    assert!((late("kT") - 1.2).abs() < 0.02, "kT {}", late("kT"));
    // Thol et al. 2016, truncated at 3σ: P 0.969, U/N −4.543; bounds of four standard errors and the tolerance
    assert!((late("pressure") - 0.969).abs() < 0.15, "P {}", late("pressure"));
    assert!((late("potential") / 1000.0 + 4.543).abs() < 0.03, "U/N {}", late("potential") / 1000.0);
}

#[test]
fn example_02_lj_nve_drift() {
    let (_keep, folder) = run("02-lj-nve-drift");
    let e = &csv(&folder.join("02-lj-nve-drift.csv"))["total"];
    let m = mean(e);
    let rms = mean(&e.iter().map(|x| (x - m).powi(2)).collect::<Vec<_>>()).sqrt();
    assert!(rms / m.abs() < 2.2e-5, "ΔE = {:e}", rms / m.abs());
}

#[test]
fn example_03_dpd_liquid() {
    let (_keep, folder) = run("03-dpd-liquid");
    let t = csv(&folder.join("03-dpd-liquid.csv"));
    let late = |name: &str| mean(&t[name][50..]);
    assert!((late("kT") - 1.002).abs() < 0.015, "kT {}", late("kT"));
    assert!((late("pressure") - 23.68).abs() < 0.15, "P {}", late("pressure"));
    let p = ["momentum_x", "momentum_y", "momentum_z"].map(|n| t[n].last().copied().unwrap_or(f64::NAN).abs());
    assert!(p.iter().all(|p| *p < 1e-3), "momentum {p:?}");
}

#[test]
fn example_04_diblock() {
    let (_keep, folder) = run("04-diblock");
    let t = csv(&folder.join("04-diblock.csv"));
    let kt = mean(&t["kT"][12..]);
    assert!((kt - 1.0).abs() < 0.02, "kT {kt}");
    assert!(t.contains_key("HarmonicBond") && t.contains_key("Dpd"), "an energy for each component");
    assert!(folder.join("04-diblock.gsd").metadata().expect("a trajectory").len() > 3000 * 12 * 5);
    let last = std::fs::read_to_string(folder.join("04-diblock.0000002000.xml")).expect("the last state");
    assert!(last.contains("<bond num=\"2700\">") && last.contains("time_step=\"2000\""));
}

#[test]
fn example_05_two_stages() {
    let (_keep, folder) = run("05-two-stages");
    let t = csv(&folder.join("05-two-stages.csv"));
    assert_eq!(t["step"].len(), 61, "one row at the border of the stages, not two");
    let kt = mean(&t["kT"][52..]);
    assert!((kt - 1.0).abs() < 0.1, "kT {kt} after the ramp");
}

#[test]
fn example_15_expression() {
    let (_keep, folder) = run("15-expression");
    let t = csv(&folder.join("15-expression.csv"));
    assert_eq!(t["step"].len(), 121);
    let e = &t["total"][41..];
    let m = mean(e);
    let rms = mean(&e.iter().map(|x| (x - m).powi(2)).collect::<Vec<_>>()).sqrt();
    assert!(rms / m.abs() < 1e-4, "ΔE = {:e}", rms / m.abs());
    // 500 particles without forces between them would have −a I₁(a/kT)/I₀(a/kT) = −0.316 each
    let field = mean(&t["ExternalExpression"][41..]) / 500.0;
    assert!((-0.5..-0.1).contains(&field), "{field} for each particle in the field");
}

#[test]
fn every_example_has_a_test() {
    let here = include_str!("examples.rs");
    let mut n = 0;
    for e in std::fs::read_dir(repository().join("examples")).expect("examples/").filter_map(Result::ok) {
        let name = e.file_name().to_string_lossy().into_owned();
        if let Some(stem) = name.strip_suffix(".ron") {
            n += 1;
            assert!(here.contains(&format!("run(\"{stem}\")")), "{name} is not run");
        }
    }
    assert!(n >= 5);
}
