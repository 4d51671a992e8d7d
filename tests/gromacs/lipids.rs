//! DPPC and water of Martini 2: 21,216 beads, against OpenMM.

use galamost_tests::{csv, galamost, python_with, repository, skip_heavy, unpack, words};
use std::path::Path;
use std::process::Command;

/// Relative deviation of an energy: both sums are in double precision, and coordinates have twelve digits.
const DIGITS: f64 = 1e-9;

/// Runs a pipeline in a folder.
fn run(folder: &Path, pipeline: &str) {
    let out = galamost(folder, &["--pipeline", pipeline, "--device", "cpu", "--quiet", "--overwrite"]);
    assert_eq!(out.status.code(), Some(0), "{}", words(&out));
}

/// The particles of a file by PyGAMD's generator, with a topology of Martini 2. They overlap, so the frame that is compared is the one
/// after some steps with a bounded displacement.
#[test]
#[ignore = "a minute, and it needs OpenMM; `cargo xtask validate` runs it"]
fn energies_of_lipids_are_those_of_openmm() {
    let python = match python_with("openmm, numpy") {
        Ok(python) => python,
        Err(why) => return skip_heavy("openmm", &why),
    };
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    for file in ["tests/data/gromacs/dppc.top", "examples/80-martini/martini.itp"] {
        let from = repository().join(file);
        std::fs::copy(&from, folder.join(from.file_name().expect("a name"))).expect("copied");
    }
    unpack("dppc-water-21216.xml.xz", &folder.join("dppc.xml"));
    let out = galamost(folder, &["convert", "dppc.top", "sim.ron", "--coordinates", "dppc.xml"]);
    assert_eq!(out.status.code(), Some(0), "{}", words(&out));
    let text = std::fs::read_to_string(folder.join("sim.ron")).expect("a pipeline");
    let text = text.replace("seed: 1,", "seed: 1, precision: Double,");
    let (head, _) = text.split_once("    analyzers: [").expect("analyzers");
    let relax = format!(
        "{head} analyzers: [GalamostXml(every: 300, file: \"relaxed.xml\", digits: 12)], stages: [(steps: 300, dt: 0.02, \
         integrators: [CappedVerlet(max_displacement: 0.02)])])"
    );
    std::fs::write(folder.join("relax.ron"), relax).expect("written");
    run(folder, "relax.ron");
    let frame = head.replace("sim.xml", "relaxed.xml");
    let frame = format!(
        "{frame} analyzers: [Thermo(every: 1, file: \"frame.csv\")], integrators: [VelocityVerlet()], stages: [(steps: 0, dt: 0.02)])"
    );
    std::fs::write(folder.join("frame.ron"), frame).expect("written");
    run(folder, "frame.ron");
    let ours = csv(&folder.join("frame.csv"));
    let script = repository().join("tests/python/martini_openmm.py");
    let out = Command::new(&python).arg(script).args(["dppc.top", "relaxed.xml"]).current_dir(folder).output();
    let out = out.expect("Python runs");
    assert!(out.status.success(), "{}", words(&out));
    let said = String::from_utf8_lossy(&out.stdout).into_owned();
    let mut sum = 0.0;
    for line in said.lines() {
        let (name, energy) = line.split_once(' ').expect("a name and an energy");
        let energy: f64 = energy.parse().expect("a number");
        let value = ours.get(name).unwrap_or_else(|| panic!("no column {name}"))[0];
        println!("{name}: {value}, OpenMM {energy}");
        assert!((value - energy).abs() < DIGITS * energy.abs(), "{name}: {value} instead of {energy}");
        sum += energy;
    }
    assert_eq!(said.lines().count(), 5, "{said}");
    assert!((ours["potential"][0] - sum).abs() < DIGITS * sum.abs());
}
