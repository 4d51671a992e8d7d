//! Components that panic in each of their methods: the message names component and method, and the program exits cleanly.

use galamost_tests::{fixture, galamost, has_compiler, plan, program, words};
use std::path::Path;
use std::process::{Command, Output};

/// A pipeline with one component of each kind that can be set to panic. None is.
const PIPELINE: &str = r#"(
    seed: 1,
    initial: [ TripGenerator(n: 64, breaks: "") ],
    forces: [
        TripPair(r_cut: 2.5, breaks: "", pairs: { ("A", "A"): (a: 0.01) }),
        TripBond(breaks: "", bonds: { "A-A": (k: 0.1) }),
        TripForce(breaks: ""),
    ],
    integrators: [ TripIntegrator(breaks: "") ],
    updaters: [ TripUpdater(every: 5, breaks: "") ],
    analyzers: [ TripAnalyzer(every: 5, breaks: ""), Thermo(every: 20, file: "t.csv") ],
    checkpoint: (every: 10),
    stages: [ (steps: 20, dt: 0.001) ],
)"#;

/// Writes the pipeline and sets one component to panic in these methods.
fn write(folder: &Path, component: &str, breaks: &str) {
    let at = PIPELINE.find(component).expect("a component");
    let (before, after) = PIPELINE.split_at(at);
    let text = before.to_string() + &after.replacen("breaks: \"\"", &format!("breaks: \"{breaks}\""), 1);
    std::fs::write(folder.join("p.ron"), text).expect("written");
}

fn start(folder: &Path, device: &str, more: &[&str]) -> Output {
    let plugins = fixture();
    let plugins = plugins.to_string_lossy();
    let args = ["--pipeline", "p.ron", "--device", device, "--quiet", "--plugin-dir", &plugins];
    galamost(folder, &[args.as_slice(), more].concat())
}

/// The error in one line, without the places of the pipeline and of the fixture's sources.
fn error(out: &Output) -> String {
    let said = words(out);
    let line = said.lines().find(|l| l.starts_with("error: ") || l.starts_with("p.ron:"));
    let line = line.unwrap_or_else(|| panic!("no error:\n{said}")).to_string();
    let line = match line.split_once(" (src/tripping/") {
        Some((message, place)) => {
            assert!(place.ends_with(')') && place.contains(".rs:"), "{place}");
            message.to_string()
        }
        None => line,
    };
    match line.strip_prefix("p.ron:") {
        Some(rest) => rest.split_once(' ').expect("a place").1.to_string(),
        None => line.trim_start_matches("error: ").to_string(),
    }
}

const TOLD: &str = "panic requested by the test";

#[test]
#[ignore = "3 seconds"]
fn a_panic_while_a_pipeline_is_checked() {
    let cases = [
        ("TripGenerator", "create generate"),
        ("TripPair", "create bind"),
        ("TripBond", "create bind"),
        ("TripForce", "create bind"),
        ("TripIntegrator", "create bind"),
        ("TripUpdater", "create bind"),
        ("TripAnalyzer", "create bind"),
    ];
    for (component, methods) in cases {
        for method in methods.split(' ') {
            let f = tempfile::tempdir().expect("a folder");
            write(f.path(), component, method);
            let out = start(f.path(), "cpu", &[]);
            assert_eq!(error(&out), format!("{component} panicked in `{method}`: {TOLD}"));
            assert!(words(&out).ends_with("1 error; nothing was done\n"), "{}", words(&out));
            assert_eq!(out.status.code(), Some(2));
        }
    }
}

#[test]
#[ignore = "3 seconds"]
fn a_panic_in_a_run() {
    let saved = "the state of step 5 is saved in p.checkpoint";
    let lost = "an earlier checkpoint is in p.checkpoint";
    // component, panicking method, device, error message, message about the checkpoint
    let mut cases = vec![
        ("TripForce", "start", "cpu", "step 0: TripForce panicked in `start`", ""),
        ("TripUpdater", "start", "cpu", "step 0: TripUpdater panicked in `start`", ""),
        ("TripAnalyzer", "start", "cpu", "step 0: TripAnalyzer panicked in `start`", ""),
        ("TripIntegrator", "state", "cpu", "step 0: TripIntegrator panicked in `state`", ""),
        // inside a step the state is incomplete: the checkpoint of step 10 remains
        ("TripPair", "cpu", "cpu", "step 15: TripPair panicked in `cpu`", lost),
        // the check calls a bond once, to find bonds that are too long
        ("TripBond", "cpu", "cpu", "step 13: TripBond panicked in `cpu`", lost),
        ("TripForce", "compute", "cpu", "step 15: TripForce panicked in `compute`", lost),
        ("TripForce", "parallel", "cpu", "step 15: TripForce panicked in `compute`", lost),
        ("TripIntegrator", "cpu_particles", "cpu", "step 14: TripIntegrator panicked in `cpu_particles`", lost),
        ("TripIntegrator", "cpu_scalar", "cpu", "step 15: TripIntegrator panicked in `cpu_scalar`", lost),
        // between steps the state is complete
        ("TripUpdater", "update", "cpu", "step 5: TripUpdater panicked in `update`", ""),
        ("TripAnalyzer", "analyze", "cpu", "step 5: TripAnalyzer panicked in `analyze`", saved),
        ("TripIntegrator", "conserved", "cpu", "step 0: TripIntegrator panicked in `conserved`", ""),
        ("TripForce", "save", "cpu", "step 10: TripForce panicked in `save`", "no checkpoint could be written"),
        ("TripUpdater", "save", "cpu", "step 10: TripUpdater panicked in `save`", "no checkpoint could be written"),
        ("TripAnalyzer", "save", "cpu", "step 10: TripAnalyzer panicked in `save`", "no checkpoint could be written"),
        (
            "TripAnalyzer",
            "finish",
            "cpu",
            "step 20: TripAnalyzer panicked in `finish`",
            "the state of step 20 is saved in p.checkpoint",
        ),
    ];
    if has_compiler() {
        cases.extend([
            ("TripPair", "device", "emulated", "step 0: TripPair panicked in `device`", ""),
            ("TripBond", "device", "emulated", "step 0: TripBond panicked in `device`", ""),
            ("TripForce", "start", "emulated", "step 0: TripForce panicked in `start`", ""),
            ("TripIntegrator", "state", "emulated", "step 0: TripIntegrator panicked in `state`", ""),
            ("TripForce", "compute", "emulated", "TripForce panicked in `compute`", lost),
            ("TripUpdater", "update", "emulated", "step 5: TripUpdater panicked in `update`", ""),
            ("TripAnalyzer", "analyze", "emulated", "step 5: TripAnalyzer panicked in `analyze`", saved),
        ]);
    }
    for (component, breaks, device, expected, note) in cases {
        let f = tempfile::tempdir().expect("a folder");
        write(f.path(), component, breaks);
        let out = start(f.path(), device, &[]);
        let said = words(&out);
        // on the device it depends on how steps are taken together when the call comes
        let error = error(&out);
        let error = if expected.starts_with("step") { &error } else { error.split_once(": ").expect("a step").1 };
        assert_eq!(error, format!("{expected}: {TOLD}"), "{component} {breaks}: {said}");
        assert_eq!(out.status.code(), Some(1), "{component} {breaks}: {said}");
        assert!(said.contains(note), "{component} {breaks}: `{note}` is not in\n{said}");
        let mentioned = said.contains("p.checkpoint");
        assert_eq!(mentioned, f.path().join("p.checkpoint").exists(), "{component} {breaks}: {said}");
        // what was saved is a whole state (an integrator's own state holds that it shall break)
        if mentioned && component != "TripIntegrator" {
            write(f.path(), component, "");
            let out = start(f.path(), device, &["--resume", "--resume-changed"]);
            assert!(out.status.success(), "{component} {breaks}: {}", words(&out));
            let whole = tempfile::tempdir().expect("a folder");
            write(whole.path(), component, "");
            assert!(start(whole.path(), device, &[]).status.success());
            let rows = |d: &Path| std::fs::read_to_string(d.join("t.csv")).expect("rows");
            assert_eq!(rows(f.path()), rows(whole.path()), "{component} {breaks}: the resumed run is another one");
        }
    }
}

#[test]
fn a_panic_while_a_run_is_resumed() {
    for component in ["TripForce", "TripUpdater", "TripAnalyzer"] {
        let f = tempfile::tempdir().expect("a folder");
        // a new run loads no state
        write(f.path(), component, "load");
        assert!(start(f.path(), "cpu", &[]).status.success());
        let before = std::fs::read(f.path().join("p.checkpoint")).expect("a checkpoint");
        let out = start(f.path(), "cpu", &["--resume", "--steps", "40"]);
        assert!(error(&out).ends_with(&format!("{component} panicked in `load`: {TOLD}")), "{}", words(&out));
        // states are loaded by the check, before anything runs
        assert_eq!(out.status.code(), Some(2));
        let after = std::fs::read(f.path().join("p.checkpoint")).expect("a checkpoint");
        assert!(before == after, "the checkpoint was touched");
    }
}

/// Methods that belong to a type: the environment makes them panic.
#[test]
fn a_panic_without_an_object() {
    let cases = [
        ("program", "TripIntegrator panicked in `create`: panic requested by the environment"),
        ("describe", "`TripIntegrator` should be in "),
    ];
    for (method, expected) in cases {
        let f = tempfile::tempdir().expect("a folder");
        write(f.path(), "TripForce", "");
        let out = Command::new(program())
            .args(["--pipeline", "p.ron", "--device", "cpu", "--quiet", "--plugin-dir"])
            .arg(fixture())
            .env("GALAMOST_FIXTURE_PANICS_IN", method)
            .current_dir(f.path())
            .output()
            .expect("the program runs");
        let said = words(&out);
        assert!(said.contains(expected), "{said}");
        assert_eq!(out.status.code(), Some(2), "{said}");
        if method == "describe" {
            let warned = "libfixture.so: the plugin panicked in `describe`: panic requested by the environment";
            assert!(said.contains("WARN") && said.contains(warned), "{said}");
        }
    }
}

/// A panic in a destructor is dropped and the run continues.
#[test]
fn a_panic_in_a_destructor() {
    for component in ["TripGenerator", "TripPair", "TripForce", "TripIntegrator", "TripAnalyzer"] {
        let f = tempfile::tempdir().expect("a folder");
        write(f.path(), component, "drop");
        let out = start(f.path(), "cpu", &[]);
        assert!(out.status.success(), "{component}: {:?} {}", out.status, words(&out));
        assert_eq!(std::fs::read_to_string(f.path().join("t.csv")).expect("rows").lines().count(), 3);
    }
}

/// The destructor of the value that a component panics with panics, too.
#[test]
fn a_panic_with_a_value_that_panics() {
    for (component, method, code) in [("TripForce", "bind", 2), ("TripAnalyzer", "analyze", 1)] {
        let f = tempfile::tempdir().expect("a folder");
        write(f.path(), component, &format!("value {method}"));
        let out = start(f.path(), "cpu", &[]);
        let expected = format!("{component} panicked in `{method}`: a panic payload that is not text");
        assert!(error(&out).ends_with(&expected), "{}", words(&out));
        assert_eq!(out.status.code(), Some(code));
    }
}

#[test]
#[ignore = "3 seconds"]
fn an_error_names_its_component() {
    let told = "error requested by the test";
    let cases = [
        ("TripGenerator", "generate", 2, ""),
        ("TripPair", "bind", 2, ""),
        ("TripForce", "bind", 2, ""),
        ("TripForce", "start", 1, "step 0: "),
        ("TripIntegrator", "state", 1, "step 0: "),
        ("TripForce", "compute", 1, "step 15: "),
        ("TripUpdater", "update", 1, "step 5: "),
        ("TripAnalyzer", "analyze", 1, "step 5: "),
        ("TripForce", "save", 1, "step 10: "),
        ("TripAnalyzer", "finish", 1, "step 20: "),
    ];
    for (component, method, code, step) in cases {
        let f = tempfile::tempdir().expect("a folder");
        write(f.path(), component, &format!("error {method}"));
        let out = start(f.path(), "cpu", &[]);
        assert_eq!(error(&out), format!("{step}{component}: {told}"), "{method}");
        assert_eq!(out.status.code(), Some(code), "{component} {method}");
    }
}

/// `evaluate` is asked by the instruments alone.
#[test]
fn a_panic_in_a_pair_s_function_is_an_error() {
    use galamost_engine::pipeline::DeviceChoice;
    let f = tempfile::tempdir().expect("a folder");
    for (breaks, expected) in [("", None), ("evaluate", Some("TripPair panicked in `evaluate`: "))] {
        write(f.path(), "TripPair", breaks);
        let text = std::fs::read_to_string(f.path().join("p.ron")).expect("a pipeline");
        let plan = plan(&text, DeviceChoice::Cpu).unwrap_or_else(|e| panic!("{}", e.render()));
        let pair = plan.components.iter().find_map(|c| c.pair()).expect("a pair");
        match (pair.evaluate(0, 0, 4.0), expected) {
            (Ok((f, u)), None) => assert!((u - 0.005).abs() < 1e-15 && (f - 0.00125).abs() < 1e-15, "{f} {u}"),
            (Err(e), Some(words)) => assert!(e.to_string().starts_with(words), "{e}"),
            (other, _) => panic!("{other:?}"),
        }
    }
}
