//! Files of the field: read, written back, and read by the field's own readers.

use galamost_tests::{galamost, python, repository, unpack, words};
use std::path::Path;
use std::process::Command;

fn run(folder: &Path, text: &str) {
    std::fs::write(folder.join("p.ron"), text).expect("written");
    let out = galamost(folder, &["--pipeline", "p.ron", "--device", "cpu", "--quiet"]);
    assert!(out.status.success(), "{}", words(&out));
}

fn same_text(a: &Path, b: &Path) {
    let (x, y) = (std::fs::read_to_string(a).expect("a file"), std::fs::read_to_string(b).expect("a file"));
    if let Some((n, (p, q))) = x.lines().zip(y.lines()).enumerate().find(|(_, (p, q))| p.trim() != q.trim()) {
        panic!("line {}: `{p}` was written back as `{q}`", n + 1);
    }
    assert_eq!(x.lines().count(), y.lines().count());
    assert!(x.lines().count() > 70_000);
}

/// Files that another program wrote come back to the printed digit.
#[test]
fn galamost_xml_files_of_other_programs_round_trip() {
    for name in ["a5b5-dpd-24000", "dppc-water-21216"] {
        let f = tempfile::tempdir().expect("a folder");
        unpack(&format!("{name}.xml.xz"), &f.path().join("in.xml"));
        run(
            f.path(),
            r#"(precision: Double, initial: [ GalamostXml(file: "in.xml") ],
                analyzers: [ GalamostXml(every: 1, file: "out.xml", velocity: false) ], stages: [ (steps: 0, dt: 0.01) ])"#,
        );
        same_text(&f.path().join("in.xml"), &f.path().join("out.xml"));
    }
}

/// A trajectory of a system with everything in it, through the readers that people use.
#[test]
#[ignore = "10 seconds"]
fn gsd_and_freud_read_our_gsd_files() {
    let Some(python) = python() else { return };
    let f = tempfile::tempdir().expect("a folder");
    unpack("a5b5-dpd-24000.xml.xz", &f.path().join("in.xml"));
    run(
        f.path(),
        r#"(seed: 1, initial: [ GalamostXml(file: "in.xml"), Velocities(kT: 1.0) ],
            forces: [ Dpd(r_cut: 1.0, kT: 1.0, pairs: { ("A", "A"): (a: 25.0, sigma: 3.0), ("A", "B"): (a: 40.0, sigma: 3.0), ("B", "B"): (a: 25.0, sigma: 3.0) }) ],
            integrators: [ GrootWarren() ],
            analyzers: [ Gsd(every: 10, file: "t.gsd", velocity: true), GalamostXml(every: 20, file: "{step}.xml") ],
            stages: [ (steps: 20, dt: 0.01) ])"#,
    );
    let out = Command::new(python)
        .arg(repository().join("tests/python/check_gsd.py"))
        .args(["t.gsd", "0000000000.xml", "0000000020.xml"])
        .current_dir(f.path())
        .output()
        .expect("python runs");
    let said = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(out.status.success(), "{said}{}", words(&out));
    assert!(said.contains("3 frames of 24000 particles, types ['A', 'B']") && said.contains("all sound"), "{said}");
    assert!(said.contains("21600 bonds ['A-A', 'A-B', 'B-B']"), "{said}");
    assert!(said.contains("[20. 20. 20.]"), "{said}");
}

/// What was written is a start: positions and velocities of a GSD frame go on.
#[test]
fn a_gsd_file_is_an_initial_state() {
    let f = tempfile::tempdir().expect("a folder");
    let lj = r#"LennardJones(r_cut: 2.5, pairs: { ("A", "A"): (epsilon: 1.0, sigma: 1.0) })"#;
    run(
        f.path(),
        &format!(
            r#"(seed: 1, initial: [ Lattice(lattice: Fcc, cells: [5, 5, 5], density: 0.7), Velocities(kT: 1.0) ], forces: [{lj}],
            integrators: [ VelocityVerlet() ], analyzers: [ Gsd(every: 50, file: "t.gsd"), GalamostXml(every: 50, file: "{{step}}.xml") ],
            stages: [ (steps: 50, dt: 0.002) ])"#
        ),
    );
    run(
        f.path(),
        r#"(precision: Single, initial: [ Gsd(file: "t.gsd") ], analyzers: [ GalamostXml(every: 1, file: "again.xml") ], stages: [ (steps: 0, dt: 0.01) ])"#,
    );
    let rows = |name: &str| -> Vec<f64> {
        let text = std::fs::read_to_string(f.path().join(name)).expect("a file");
        let from = text.find("<position").expect("positions");
        let to = text[from..].find("</position>").expect("positions");
        let numbers = text[from..from + to].split_whitespace();
        numbers.filter_map(|w| w.parse().ok()).collect()
    };
    let (a, b) = (rows("0000000050.xml"), rows("again.xml"));
    assert_eq!(a.len(), 1500);
    // single precision: 6e-8 of lengths up to 9 in two files
    assert!(galamost_tests::largest_difference(&a, &b) < 2e-6);
}
