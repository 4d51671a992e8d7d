//! The harness (`galamost selftest`, `galamost test-plugin`): what it reports for components that crash, hang, move
//! nothing, or declare facts about themselves. `new.rs` and `stranger.rs` test it with correct components.

mod mistakes;

use galamost_tests::{fixture, program, words};
use std::process::{Command, Output};

fn harness(args: &[&str]) -> Output {
    let mut c = Command::new(program());
    c.args(args).args(["--device", "cpu", "--json", "--quiet", "--plugin-dir"]).arg(fixture());
    c.output().expect("started")
}

/// The results of a component: check, whether it failed, whether it was skipped, note.
struct Row {
    component: String,
    check: String,
    failed: bool,
    skipped: bool,
    note: String,
}

fn rows(values: &serde_json::Value) -> Vec<Row> {
    let text = |v: &serde_json::Value, name: &str| v[name].as_str().expect(name).to_string();
    let row = |v: &serde_json::Value| Row {
        component: text(v, "component"),
        check: text(v, "check"),
        failed: v["failed"].as_bool().expect("failed"),
        skipped: v["skipped"].as_bool().expect("skipped"),
        note: text(v, "note"),
    };
    values.as_array().expect("rows").iter().map(row).collect()
}

/// Runs `selftest` for some components, which must fail, and returns the results.
fn selftest(args: &[&str]) -> Vec<Row> {
    let out = harness(&[&["selftest"], args].concat());
    assert_eq!(out.status.code(), Some(1), "{}", words(&out));
    rows(&serde_json::from_slice(&out.stdout).expect("JSON only"))
}

/// The note of the row `runs` of a component.
fn end<'a>(rows: &'a [Row], component: &str) -> &'a str {
    let row = rows.iter().find(|r| r.component == component && r.check == "runs").expect("a crash is reported");
    assert!(row.failed);
    &row.note
}

#[test]
fn a_crash_names_component_and_call_and_the_others_are_still_tested() {
    let rows = selftest(&["Segfault", "Abort", "HarmonicTrap", "VelocityVerlet"]);
    let note = end(&rows, "Segfault");
    assert!(note.contains("SIGSEGV") && note.ends_with("last call: `compute` of Segfault"), "{note}");
    let note = end(&rows, "Abort");
    assert!(note.contains("SIGABRT") && note.ends_with("last call: `analyze` of Abort"), "{note}");
    for name in ["HarmonicTrap", "VelocityVerlet"] {
        let mut found = rows.iter().filter(|r| r.component == name).peekable();
        assert!(found.peek().is_some() && found.all(|r| !r.failed), "{name}");
    }
}

#[test]
fn a_hang_is_ended_and_named() {
    let rows = selftest(&["Stuck", "HarmonicTrap", "--timeout", "15"]);
    assert_eq!(end(&rows, "Stuck"), "no call for 15 s; last call: `update` of Stuck");
    assert!(rows.iter().any(|r| r.component == "HarmonicTrap" && !r.failed));
}

#[test]
fn an_integrator_that_moves_nothing_fails() {
    let rows = selftest(&["Still"]);
    assert!(rows.iter().any(|r| r.check == "particles that do not move" && r.failed));
    // its wrong trajectory is the same on every device, so nothing else shows it
    assert_eq!(rows.iter().filter(|r| r.failed).count(), 1);
    let out = harness(&["selftest", "VelocityVerlet", "LeesEdwards", "Bounce"]);
    assert_eq!(out.status.code(), Some(0), "{}", words(&out));
    let rows = self::rows(&serde_json::from_slice(&out.stdout).expect("JSON only"));
    let checked: Vec<&str> =
        rows.iter().filter(|r| r.check == "particles that do not move").map(|r| r.component.as_str()).collect();
    // `LeesEdwards` changes the box only, and `Bounce` corrects what others move
    assert_eq!(checked, ["VelocityVerlet"]);
}

/// `test-plugin` of some components: declared facts decide which checks a component gets. `shipped_forces_pass` and the
/// plugins of `guide.rs` and `new.rs` test whole libraries.
#[test]
#[ignore = "20 seconds"]
fn declared_facts_select_the_checks() {
    let library = fixture().join("libfixture.so").to_string_lossy().into_owned();
    let names = ["Vortex", "SkewVirial", "HarmonicTrap", "SkewTrap", "Segfault"];
    let out = harness(&[&["test-plugin", &library], names.as_slice()].concat());
    assert_eq!(out.status.code(), Some(1), "{}", words(&out));
    let tables: serde_json::Value = serde_json::from_slice(&out.stdout).expect("JSON only");
    // on the CPU there is nothing to compare a device with
    let [thorough] = tables.as_array().expect("tables").as_slice() else { panic!("one table, not {tables}") };
    let rows = rows(&thorough["rows"]);
    assert!(rows.iter().all(|r| names.contains(&r.component.as_str())));
    let of = |component: &str, check: &str| {
        let found = rows.iter().find(|r| r.component == component && r.check.starts_with(check));
        found.unwrap_or_else(|| panic!("{component} has no check `{check}`"))
    };
    // a force without potential has no energy that could be conserved
    for check in ["NVE, 1000 steps", "virial of each axis"] {
        let row = of("Vortex", check);
        assert!(row.skipped && row.note.contains("not conservative"), "{check}: {}", row.note);
    }
    assert!(rows.iter().all(|r| r.component != "Vortex" || !r.failed));
    // a virial without components xy, xz and yz
    assert!(!of("SkewVirial", "virial of each axis").failed && of("SkewVirial", "virial xy xz yz").failed);
    assert!(!of("SkewVirial", "NVE, 1000 steps").failed);
    // traps along z, with Σ x F_z and Σ y F_z and without
    for (trap, whole) in [("HarmonicTrap", true), ("SkewTrap", false)] {
        assert!(!of(trap, "virial of each axis").failed, "{trap}");
        assert_eq!(!of(trap, "virial xx xy xz yy yz zz").failed, whole, "{trap}");
    }
    assert!(end(&rows, "Segfault").contains("SIGSEGV"));
    let out = harness(&["test-plugin", &library, "Vortex", "HarmonicTrip"]);
    assert!(
        out.status.code() == Some(2) && words(&out).contains("unknown component `HarmonicTrip`"),
        "{}",
        words(&out)
    );
}

/// An integrator that moves particles outside of its group and adds momentum without saying so; an updater that writes types which do
/// not exist.
#[test]
fn wrong_declarations_fail() {
    let library = fixture().join("libfixture.so").to_string_lossy().into_owned();
    let out = harness(&["test-plugin", &library, "Wind", "WrongType"]);
    assert_eq!(out.status.code(), Some(1), "{}", words(&out));
    let tables: serde_json::Value = serde_json::from_slice(&out.stdout).expect("JSON only");
    let rows = rows(&tables[0]["rows"]);
    let failed = |name: &str| -> Vec<&str> {
        rows.iter().filter(|r| r.component == name && r.failed).map(|r| r.check.as_str()).collect()
    };
    let expected = ["change of the total momentum, 20 steps", "particles outside of `group` that it changes"];
    assert_eq!(failed("Wind"), expected);
    assert_eq!(failed("WrongType"), ["runs"]);
    let said = end(&rows, "WrongType");
    assert!(said.contains("WrongType: a particle has particle type number 7, but the run has 2 types"), "{said}");
}

/// A component without code for the device is tested on the CPU only, and one whose example has parameters for all types refuses none.
#[test]
#[ignore = "20 seconds"]
fn checks_that_do_not_apply_are_left_out() {
    if !galamost_tests::has_compiler() {
        return;
    }
    let (out, names) = (fixture(), ["Vortex", "SoundPair"]);
    let mut c = Command::new(program());
    let library = out.join("libfixture.so");
    c.arg("test-plugin")
        .arg(library)
        .args(names)
        .args(["--device", "emulated", "--json", "--quiet", "--plugin-dir"])
        .arg(out);
    let out = c.output().expect("started");
    assert_eq!(out.status.code(), Some(0), "{}", words(&out));
    let tables: serde_json::Value = serde_json::from_slice(&out.stdout).expect("JSON only");
    let [device, cpu] = tables.as_array().expect("tables").as_slice() else { panic!("two tables, not {tables}") };
    let [device, cpu] = [device, cpu].map(|t| rows(&t["rows"]));
    let skipped = |rows: &[Row], component: &str, check: &str| {
        let row = rows.iter().find(|r| r.component == component && r.check == check).expect(check);
        assert!(row.skipped, "{check}: {}", row.note);
    };
    skipped(&device, "Vortex", "on the device");
    skipped(&cpu, "SoundPair", "a type without parameters is refused");
    let of =
        |component: &str| device.iter().filter(|r| r.component == component && r.check.starts_with("device")).count();
    assert!(of("Vortex") == 0 && of("SoundPair") > 0);
}

/// Fields without a virial, walls whose forces are not parallel to r, potentials with defaults for all types, cutoffs that
/// differ between types: what shipped components declare, the harness knows.
#[test]
fn shipped_forces_pass() {
    plugin_passes("external");
    // a formula, an energy at the cutoff, cutoffs that differ between types, a diverging bond, a diverging angle, links of four
    let names = ["PairExpression", "Gem", "ReactionField", "ShiftedLj", "Tether", "RestrictedAngle", "CvffImproper"];
    let out = harness(&[&["selftest"], names.as_slice()].concat());
    assert_eq!(out.status.code(), Some(0), "{}", String::from_utf8_lossy(&out.stdout));
    let rows = rows(&serde_json::from_slice(&out.stdout).expect("JSON only"));
    for name in names {
        assert!(rows.iter().any(|r| r.component == name && !r.skipped), "{name} was not tested");
    }
}

#[test]
#[ignore = "minutes"]
fn all_shipped_plugins_pass() {
    let plugins = [
        "anisotropic",
        "barostats",
        "bodies",
        "bonded",
        "constraints",
        "dpd",
        "electrostatics",
        "expression",
        "flow",
        "integrators",
        "md_scf",
        "pairs",
        "reactions",
        "rotational",
        "sites",
        "table",
    ];
    plugins.into_iter().for_each(plugin_passes);
}

fn plugin_passes(plugin: &str) {
    let library = galamost_tests::output().join(format!("lib{plugin}.so")).to_string_lossy().into_owned();
    let out = harness(&["test-plugin", &library]);
    assert_eq!(out.status.code(), Some(0), "{plugin}: {}", String::from_utf8_lossy(&out.stdout));
}

/// Generators and analyzers with the example of their page; some need particles of their own kind: without links, without mass, or
/// neutral molecules. `Gromacs` reads files that no component writes; `tests/gromacs` tests it.
#[test]
#[ignore = "5 seconds"]
fn shipped_generators_and_analyzers_pass() {
    let listed = include_str!("components.txt").lines().map(|l| l.split_whitespace().collect::<Vec<_>>());
    let of_kind = listed.filter(|l| ["Generator", "Analyzer"].contains(&l[1])).map(|l| l[2]);
    let names: Vec<&str> = of_kind.filter(|name| *name != "Gromacs").collect();
    let out = harness(&[&["selftest"], names.as_slice()].concat());
    assert_eq!(out.status.code(), Some(0), "{}", words(&out));
    let rows = rows(&serde_json::from_slice(&out.stdout).expect("JSON only"));
    for name in names {
        assert!(rows.iter().any(|r| r.component == name && !r.skipped), "{name} was not tested");
    }
}
