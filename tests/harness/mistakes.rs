//! Mistakes that `test-plugin` finds, and command lines that it refuses.

use super::{Row, end, harness, rows};
use galamost_tests::{fixture, galamost, has_compiler, program, words};
use std::process::Command;

/// Returns the results of components of the fixture, of which some fail.
fn tested(names: &[&str]) -> Vec<Row> {
    let library = fixture().join("libfixture.so").to_string_lossy().into_owned();
    let out = harness(&[&["test-plugin", &library], names].concat());
    assert_eq!(out.status.code(), Some(1), "{}", words(&out));
    let tables: serde_json::Value = serde_json::from_slice(&out.stdout).expect("JSON only");
    rows(&tables[0]["rows"])
}

/// Returns the checks that a component fails.
fn failed<'a>(rows: &'a [Row], name: &str) -> Vec<&'a str> {
    rows.iter().filter(|r| r.component == name && r.failed).map(|r| r.check.as_str()).collect()
}

#[test]
fn an_exit_is_a_failure_of_the_test() {
    let rows = tested(&["Quit"]);
    assert_eq!(end(&rows, "Quit"), "ended the process in `update` of Quit, exit status 0");
}

#[test]
fn an_exit_is_a_failure_of_the_run() {
    const PIPELINE: &str = r#"(
        seed: 1,
        initial: [ Lattice(lattice: Fcc, cells: [3, 3, 3], density: 0.1) ],
        integrators: [ VelocityVerlet() ],
        updaters: [ Quit(every: 10) ],
        stages: [ (steps: 20, dt: 0.001) ],
    )"#;
    let plugins = fixture().to_string_lossy().into_owned();
    for (log, expected) in [
        ("text", "error: step 0: Quit ended the program in `update` by a call of `exit`"),
        ("json", "\"status\":1,\"message\":\"step 0: Quit ended the program in `update` by a call of `exit`"),
    ] {
        let f = tempfile::tempdir().expect("a folder");
        std::fs::write(f.path().join("p.ron"), PIPELINE).expect("written");
        let run = ["--pipeline", "p.ron", "--device", "cpu", "--quiet", "--log", log, "--plugin-dir", &plugins];
        let out = galamost(f.path(), &run);
        assert!(out.status.code() == Some(1) && words(&out).contains(expected), "{}", words(&out));
    }
}

/// A force that declares `shared` and reads a particle of which another GPU has the new position. One that computes all particles on the first
/// GPU, and an analyzer, have the bits of one GPU.
#[test]
#[ignore = "15 seconds"]
fn a_force_that_several_gpus_cannot_share_is_found() {
    if !has_compiler() {
        return;
    }
    let names = ["Following", "BodyForce", "Thermo"];
    let mut c = Command::new(program());
    c.arg("selftest").args(names).args(["--device", "emulated", "--ranks", "2", "--json", "--quiet"]);
    let out = c.arg("--plugin-dir").arg(fixture()).output().expect("started");
    assert_eq!(out.status.code(), Some(1), "{}", words(&out));
    let rows = rows(&serde_json::from_slice(&out.stdout).expect("JSON only"));
    let check = "2 ranks = 1 rank, bits, Plain list";
    assert_eq!(failed(&rows, "Following"), [check]);
    let row = rows.iter().find(|r| r.failed).expect("a failed check");
    assert!(row.note.contains("force") && row.note.contains("velocity_mass"), "{}", row.note);
    for name in &names[1..] {
        assert!(failed(&rows, name).is_empty(), "{name}");
        assert!(rows.iter().any(|r| r.component == *name && r.check == check && !r.skipped), "{name}");
    }
}

#[test]
#[ignore = "20 seconds"]
fn mistakes_of_integrators_are_found() {
    const FLIGHT: &str = "free particles: displacement against v t";
    let rows = tested(&["Hasty", "HalfKick", "Sticky"]);
    assert!(failed(&rows, "Hasty").contains(&FLIGHT), "{:?}", failed(&rows, "Hasty"));
    assert_eq!(failed(&rows, "HalfKick"), ["NVE, 1000 steps: ΔE / kinetic"]);
    assert_eq!(failed(&rows, "Sticky"), ["free particles: velocities with dt and dt/2"]);
}

#[test]
#[ignore = "3 seconds"]
fn mistakes_of_updaters_are_found() {
    let rows = tested(&["PastEnd", "Unsaved", "Silent"]);
    assert_eq!(failed(&rows, "PastEnd"), ["runs"]);
    let said = end(&rows, "PastEnd");
    assert!(said.contains("PastEnd wrote past the end of the array"), "{said}");
    // it does not declare either that it changes velocities
    let undeclared = "changes that it does not declare";
    assert_eq!(failed(&rows, "Unsaved"), [undeclared, "2n = n + restart + n, bits"]);
    let row = rows.iter().find(|r| r.component == "Unsaved" && r.check == undeclared).expect("a row");
    assert!(row.note.contains("`needs.changes_velocities`"), "{}", row.note);
    let found = failed(&rows, "Silent");
    assert!(found.contains(&"forces after its calls against forces computed anew"), "{found:?}");
}

/// Updaters of velocities and of the box that declare and report what they change pass.
#[test]
#[ignore = "3 seconds"]
fn correct_updaters_pass() {
    for (plugin, names) in
        [("flow", ["ZeroMomentum", "ReversePerturbation"]), ("barostats", ["BoxResize", "BerendsenBarostat"])]
    {
        let library = galamost_tests::output().join(format!("lib{plugin}.so")).to_string_lossy().into_owned();
        let out = harness(&[&["test-plugin", &library], names.as_slice()].concat());
        assert_eq!(out.status.code(), Some(0), "{}", words(&out));
        let tables: serde_json::Value = serde_json::from_slice(&out.stdout).expect("JSON only");
        let rows = rows(&tables[0]["rows"]);
        for name in names {
            let found =
                |check: &str| rows.iter().any(|r| r.component == name && r.check.starts_with(check) && !r.skipped);
            assert!(found("changes that it does not declare") && found("forces after its calls"), "{name}");
        }
    }
}

#[test]
#[ignore = "3 seconds"]
fn mistakes_of_components_with_files_are_found() {
    let rows = tested(&["Unasked", "Unwritten", "Batches"]);
    assert_eq!(failed(&rows, "Unasked"), ["files: alone = beside another analyzer, bits"]);
    assert_eq!(failed(&rows, "Unwritten"), ["declared files that it does not write"]);
    assert_eq!(failed(&rows, "Batches"), ["files: 2n = n + restart + n, bits"]);
}

/// Groups, shares of energies and virials, a force that is 0, a missing example, rows after a checkpoint, forces that were not wanted.
#[test]
#[ignore = "5 seconds"]
fn mistakes_in_sums_groups_and_rows_are_found() {
    let rows = tested(&["Everyone", "HalfShares", "Zero", "Idle", "Rows", "Hungry"]);
    // it reads charges, too
    assert_eq!(failed(&rows, "Everyone"), ["particles outside of `group` that it changes"]);
    let shares = ["energies of the particles against energy", "virials of the particles against virial"];
    assert_eq!(failed(&rows, "HalfShares"), shares);
    assert!(failed(&rows, "Zero").is_empty(), "{:?}", failed(&rows, "Zero"));
    assert!(rows.iter().any(|r| r.component == "Zero" && r.check == "CPU mixed: forces"));
    let said = end(&rows, "Idle");
    assert!(said.contains("its documentation has no example") && said.contains("made from its fields"), "{said}");
    assert_eq!(failed(&rows, "Rows"), ["files: 2n = n + restart + n, bits"]);
    assert_eq!(failed(&rows, "Hungry"), ["files: alone = beside another analyzer, bits"]);
}

#[test]
fn a_generator_that_reads_the_clock_is_found() {
    assert_eq!(failed(&tested(&["Clock"]), "Clock"), ["generated twice: differences"]);
}

/// Integrators without a thermostat that are correct pass the new checks, and others are left out.
#[test]
#[ignore = "3 seconds"]
fn correct_integrators_pass() {
    let library = galamost_tests::output().join("libintegrators.so").to_string_lossy().into_owned();
    let out = harness(&["test-plugin", &library, "VelocityVerlet", "Langevin"]);
    assert_eq!(out.status.code(), Some(0), "{}", words(&out));
    let tables: serde_json::Value = serde_json::from_slice(&out.stdout).expect("JSON only");
    let rows = rows(&tables[0]["rows"]);
    let found =
        |name: &str, check: &str| rows.iter().any(|r| r.component == name && r.check.starts_with(check) && !r.skipped);
    assert!(found("VelocityVerlet", "free particles") && found("VelocityVerlet", "NVE"));
    assert!(!found("Langevin", "free particles") && !found("Langevin", "NVE"));
}

#[test]
fn a_library_that_cannot_be_used_is_reported_once() {
    let f = tempfile::tempdir().expect("a folder");
    let out = galamost(f.path(), &["test-plugin", "."]);
    assert!(out.status.code() == Some(2) && words(&out).contains("is a folder"), "{}", words(&out));
    std::fs::write(f.path().join("libbroken.so"), "no library").expect("written");
    let out = galamost(f.path(), &["test-plugin", "libbroken.so"]);
    let said = words(&out);
    assert!(out.status.code() == Some(2) && !said.contains("WARN"), "{said}");
    assert_eq!(said.matches("is not a complete shared library").count(), 1, "{said}");
}
