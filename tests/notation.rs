//! The notation of pipelines: encodings, nesting, numbers and lengths that a text may have.

use galamost_tests::{galamost, words};
use std::time::{Duration, Instant};

const PIPELINE: &str = r#"(
    initial: [ Lattice(lattice: Fcc, cells: [4, 4, 4], density: 0.7), Velocities(kT: 1.0) ],
    forces: [ LennardJones(r_cut: 2.0, pairs: { ("A", "A"): (epsilon: 1.0, sigma: 1.0) }) ],
    integrators: [ Langevin(kT: 1.0, gamma: 0.5) ],
    analyzers: [ Thermo(every: 10, file: "t.csv") ],
    stages: [ (steps: 40, dt: 0.002) ],
)"#;

/// Checks a pipeline of these bytes. Returns the exit status and what was said.
fn check(text: &[u8], args: &[&str]) -> (Option<i32>, String) {
    let f = tempfile::tempdir().expect("a folder");
    std::fs::write(f.path().join("p.ron"), text).expect("written");
    let begun = Instant::now();
    let out = galamost(f.path(), &[&["check", "p.ron", "--device", "cpu"], args].concat());
    assert!(begun.elapsed() < Duration::from_secs(60), "it took {:?}", begun.elapsed());
    (out.status.code(), words(&out) + &String::from_utf8_lossy(&out.stdout))
}

fn refused(text: &[u8], args: &[&str], message: &str) {
    refused_with(text, args, &[message]);
}

fn refused_with(text: &[u8], args: &[&str], messages: &[&str]) {
    let (status, said) = check(text, args);
    for message in messages {
        assert_eq!(status, Some(2), "{message}: {said}");
        assert!(said.contains(message), "{message}: {said}");
    }
}

#[test]
fn encodings_are_accepted_or_named() {
    let bom = ["\u{feff}", PIPELINE].concat();
    let (status, said) = check(bom.as_bytes(), &[]);
    assert!(status == Some(0) && said.contains("256 particles"), "{said}");
    // positions in the first line do not count the mark
    let text = format!("\u{feff}(seed: x, {}", &PIPELINE[1..]);
    refused(
        text.as_bytes(),
        &[],
        "p.ron:1:8: expected a non-negative integer, found `x`\n  |\n1 | (seed: x, \n  |        ^\n",
    );
    let mut bytes = PIPELINE.as_bytes().to_vec();
    let at = PIPELINE.find("Fcc").expect("a word") + 1;
    bytes[at] = 0xff;
    refused(&bytes, &[], "p.ron:2:34: this is not text (UTF-8)");
    let utf16: Vec<u8> = bom.encode_utf16().flat_map(u16::to_le_bytes).collect();
    refused(&utf16, &[], "this is UTF-16 text; save the file as UTF-8");
    for empty in ["", " \n", "\u{feff}", "// nothing\n/* at all */"] {
        refused(empty.as_bytes(), &[], "the file is empty; a pipeline has at least");
    }
}

#[test]
fn endless_files_are_refused() {
    let f = tempfile::tempdir().expect("a folder");
    let out = galamost(f.path(), &["check", "/dev/zero"]);
    assert_eq!(out.status.code(), Some(2), "{}", words(&out));
    assert!(words(&out).contains("/dev/zero: is a device or a pipe, expected a file"), "{}", words(&out));
}

#[test]
#[ignore = "3 seconds"]
fn deep_nesting_is_an_error_with_its_line() {
    let n = 100_000;
    for [open, close] in [["(", ")"], ["[", "]"], ["{", "}"], ["A(", ")"], ["Some(", ")"]] {
        let deep = format!("{}{}", open.repeat(n), close.repeat(n));
        let text = PIPELINE.replace("initial: [", &format!("initial: [\n{deep},"));
        refused_with(text.as_bytes(), &[], &["p.ron:3:", "more than 128 nested levels"]);
        // an argument has at most 128 kiB
        let deep = format!("forces={}{}", open.repeat(n / 10), close.repeat(n / 10));
        refused(PIPELINE.as_bytes(), &["--set", &deep], "--set forces: more than 128 nested levels");
    }
    for [open, close] in [["(", ")"], ["sqrt(", ")"], ["-", ""], ["r^", ""], ["min(1, ", ")"], ["if(r < 1, 1, ", ")"]] {
        for (n, message) in [(n, "the formula is too long"), (300, "more than 100 nested parentheses")] {
            let formula = format!("{}r{}", open.repeat(n), close.repeat(n));
            let force = format!("PairExpression(r_cut: 2.0, energy: \"{formula}\", pairs: {{ (\"A\", \"A\"): () }})");
            let text = PIPELINE.replace("forces: [", &format!("forces: [\n{force},"));
            refused_with(text.as_bytes(), &[], &["p.ron:4:", message]);
        }
    }
}

#[test]
fn numbers_must_be_finite_and_have_a_decimal_point() {
    for (from, to, message) in [
        ("gamma: 0.5", "gamma: 0,5", "p.ron:4:47: `0,5` has a decimal comma; write `0.5`"),
        ("kT: 1.0, gamma", "kT: 1,0, gamma", "p.ron:4:35: `1,0` has a decimal comma; write `1.0`"),
        ("[4, 4, 4]", "[4,0, 4,0, 4,0]", "expected 3 values, found 6; `4,0` has a decimal comma; write `4.0`"),
        ("gamma: 0.5", "gamma: inf", "p.ron:4:45: Langevin: inf is not allowed here"),
        ("gamma: 0.5", "gamma: 1e999", "p.ron:4:45: Langevin: inf is not allowed here"),
        ("dt: 0.002", "dt: NaN", "p.ron:6:31: NaN is not allowed here"),
        ("epsilon: 1.0", "epsilon: -inf", "p.ron:3:71: LennardJones: -inf is not allowed here"),
        ("density: 0.7", "density: inf", "p.ron:2:65: Lattice: inf is not allowed here"),
        ("density: 0.7", "density: 0.7, types: {\"A\": inf}", "p.ron:2:77: Lattice: inf is not allowed here"),
        ("steps: 40", "steps: 1e30", "p.ron:6:23: expected a non-negative integer"),
    ] {
        assert!(PIPELINE.contains(from), "{from}");
        refused(PIPELINE.replace(from, to).as_bytes(), &[], message);
    }
    refused(PIPELINE.as_bytes(), &["--set", "stages[0].dt=0,01"], "--set stages[0].dt: `0,01` has a decimal comma");
    refused(PIPELINE.as_bytes(), &["--set", "stages[0].dt=(1"], "--set stages[0].dt: ");
}

/// Long lists are read in linear time, and refused before anything is created.
#[test]
#[ignore = "5 seconds"]
fn long_lists_are_refused() {
    let many = |n: usize| (0..n).map(|k| format!("Thermo(every: 10, file: \"{k}.csv\"),\n")).collect::<String>();
    let text = PIPELINE.replace("analyzers: [", &format!("analyzers: [ {}", many(30_000)));
    refused(text.as_bytes(), &[], "p.ron:5:16: 30001 components are too many; at most 10000 are allowed");
    let text = PIPELINE.replace("stages: [", &format!("stages: [{}", "(steps: 1, dt: 0.1),\n".repeat(30_000)));
    refused(text.as_bytes(), &[], "30001 stages are too many; at most 10000 are allowed");
    let text = PIPELINE.replace("analyzers: [", &format!("analyzers: [ {}", many(3000)));
    let (status, said) = check(text.as_bytes(), &[]);
    assert!(status == Some(0) && said.contains("3003 components"), "{said}");
    let terms = (1..30_000).map(|k| format!("r^{k}.5")).collect::<Vec<_>>().join(" + ");
    let force = format!("PairExpression(r_cut: 2.0, energy: \"{terms}\", pairs: {{ (\"A\", \"A\"): () }})");
    let text = PIPELINE.replace("forces: [", &format!("forces: [ {force},"));
    refused(text.as_bytes(), &[], "the formula is too long: more than 4000 numbers, names and signs");
}

/// Checks the pipeline with these values of `--set`.
fn set(options: &[&str]) -> (Option<i32>, String) {
    check(PIPELINE.as_bytes(), &options.iter().flat_map(|o| ["--set", o]).collect::<Vec<_>>())
}

#[test]
fn the_last_value_of_a_path_counts() {
    let (status, said) = set(&["stages[0].steps=2", "stages[0].steps=3"]);
    assert!(status == Some(0) && said.contains(", 3 steps in 1 stage"), "{said}");
    // also of a field that the file does not have
    let (status, said) = set(&["precision=Nothing", "seed=x", "precision=Single", "seed=1"]);
    assert_eq!(status, Some(0), "{said}");
    for (options, both) in [
        (["stages[0]=(steps: 5, dt: 0.01)", "stages[0].dt=0.02"], "--set stages[0] and --set stages[0].dt: "),
        (["stages[0].dt=0.02", "stages=[(steps: 5, dt: 0.01)]"], "--set stages[0].dt and --set stages: "),
        (["neighbors=(buffer: 0.3)", "neighbors.buffer=0.2"], "--set neighbors and --set neighbors.buffer: "),
    ] {
        let (status, said) = set(&options);
        let expected = format!("p.ron: {both}one of these values is a part of the other; give both with one option");
        assert!(status == Some(2) && said.contains(&expected), "{options:?}: {said}");
    }
}

#[test]
fn wrong_options_are_named() {
    for (option, message) in [
        ("integrators[0].kT=3 // x", "--set integrators[0].kT=3 // x: a value cannot begin or end with a comment"),
        ("=3", "--set =3: write it as path=value"),
        ("stages[0].=3", "--set stages[0].=3: `` is not the name of a field"),
        ("neighbors.buffer=-1", "--set neighbors.buffer=-1: -1 is not allowed here"),
        ("neighbours.buffer=0.2", "--set neighbours.buffer=0.2: there is no field `neighbours`"),
    ] {
        let (status, said) = set(&[option]);
        assert!(status == Some(2) && said.contains(message), "{option}: {said}");
    }
}

/// A block of settings that the file does not have is added.
#[test]
fn options_add_blocks() {
    let (status, said) = set(&["neighbors.buffer=0.2", "checkpoint.every=10", "neighbors.exclude=[Bonds]"]);
    assert_eq!(status, Some(0), "{said}");
}
