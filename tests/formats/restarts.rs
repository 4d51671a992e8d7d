//! Runs that fail in a writer and are resumed, and files whose frames must be evenly spaced.

use super::go;
use galamost_tests::{galamost, program, words};
use std::path::Path;
use std::process::Command;

/// Writes a pipeline of free particles with these lines.
fn write(folder: &Path, lines: &str) {
    let text = format!(
        "(\n    initial: [ Lattice(lattice: Sc, cells: [6, 6, 6], density: 0.5), Velocities(kT: 1.0) ],\n    \
         integrators: [ VelocityVerlet() ],\n    {lines}\n)\n"
    );
    std::fs::write(folder.join("p.ron"), text).expect("written");
}

/// Returns number of frames, first step and interval of a DCD file, and its dt.
fn header(path: &Path) -> ([u32; 3], f32) {
    let bytes = std::fs::read(path).expect("a file");
    let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|k| bytes[at + k]));
    ([8, 12, 16].map(word), f32::from_bits(word(44)))
}

const RUN: [&str; 4] = ["--pipeline", "p.ron", "--device", "cpu"];

/// Frames of `Gsd` in memory that cannot be written are not missing after the resume: no checkpoint is written without them.
#[test]
#[cfg(target_os = "linux")]
fn a_resumed_run_has_the_frames_that_could_not_be_written() {
    for checkpoint in ["checkpoint: (every: 100),", ""] {
        let [whole, f] = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
        for folder in [&whole, &f] {
            let gsd = "analyzers: [ Gsd(every: 50, file: \"t.gsd\") ], stages: [ (steps: 400, dt: 0.004) ],";
            write(folder.path(), &format!("{checkpoint} {gsd}"));
        }
        go(whole.path(), &RUN);
        // a limit for files takes the place of a full disk: room for the frames up to step 250
        let out = Command::new("sh")
            .args(["-c", "ulimit -f 80; exec \"$0\" \"$@\""])
            .arg(program())
            .args(RUN)
            .current_dir(f.path())
            .output()
            .expect("the program runs");
        let said = words(&out);
        assert_eq!(out.status.code(), Some(1), "{said}");
        assert!(said.contains("t.gsd") && said.contains("File too large"), "{said}");
        assert!(said.contains("frames could not be written; a checkpoint of this step would miss them"), "{said}");
        assert_eq!(said.contains("an earlier checkpoint is in"), !checkpoint.is_empty(), "{said}");
        if checkpoint.is_empty() {
            assert!(!f.path().join("p.checkpoint").exists(), "{said}");
            continue;
        }
        go(f.path(), &[&RUN[..], &["--resume"]].concat());
        let [a, b] = [&whole, &f].map(|f| std::fs::read(f.path().join("t.gsd")).expect("a file"));
        assert!(a == b, "{} and {} bytes", a.len(), b.len());
    }
}

/// A DCD file has one interval and one dt: stages with others cannot continue it.
#[test]
#[ignore = "3 seconds"]
fn stages_that_write_a_dcd_file_have_one_interval() {
    let f = tempfile::tempdir().expect("a folder");
    let stage = |name: &str, dt: f64, analyzers: &str| format!("(name: \"{name}\", steps: 20, dt: {dt}{analyzers}), ");
    let dcd = |every: u32| format!(", analyzers: [ Dcd(every: {every}, file: \"t.dcd\") ]");
    let stages = |all: &[String]| format!("stages: [ {} ],", all.concat());
    let gap = stages(&[stage("a", 0.004, &dcd(10)), stage("b", 0.004, ", analyzers: []"), stage("c", 0.004, &dcd(10))]);
    let every = stages(&[stage("a", 0.004, &dcd(10)), stage("b", 0.004, &dcd(5))]);
    let dt = stages(&[stage("a", 0.004, &dcd(10)), stage("b", 0.002, &dcd(10))]);
    let common = "analyzers: [ Dcd(every: 10, file: \"t.dcd\") ], ";
    let common_dt = format!("{common}{}", stages(&[stage("a", 0.004, ""), stage("b", 0.002, "")]));
    let of_dt = "`dt` is 0.004 in stage `a` and 0.002 in stage `b`";
    for (lines, expected) in [
        (&gap, "stage `b` before stage `c` does not write it"),
        (&every, "`t.dcd` continues the file of Dcd (p.ron:"),
        (&every, "writes every 5 steps instead of every 10"),
        (&dt, of_dt),
        (&common_dt, of_dt),
    ] {
        write(f.path(), lines);
        let out = galamost(f.path(), &["check", "p.ron"]);
        let said = words(&out);
        assert_eq!(out.status.code(), Some(2), "{lines}: {said}");
        assert!(said.contains("Dcd") && said.contains(expected), "{lines}: {said}");
        // a format that stores the step of each frame
        write(f.path(), &lines.replace("Dcd", "Xtc").replace("t.dcd", "t.xtc"));
        go(f.path(), &["check", "p.ron"]);
    }
    write(f.path(), &stages(&[stage("a", 0.004, &dcd(10)), stage("b", 0.004, &dcd(10))]));
    go(f.path(), &RUN);
    assert_eq!(header(&f.path().join("t.dcd")), ([5, 0, 10], 0.004));
    // an analyzer of the pipeline that begins in the second stage
    let lines = stages(&[stage("a", 0.002, ", analyzers: []"), stage("b", 0.004, "")]);
    write(f.path(), &format!("{common}{lines}"));
    go(f.path(), &[&RUN[..], &["--overwrite"]].concat());
    assert_eq!(header(&f.path().join("t.dcd")), ([3, 20, 10], 0.004));
}

/// A resumed run with another `every` or dt is refused before any file is touched; another file, or an emptied one, has the new interval.
#[test]
fn a_resumed_run_keeps_the_interval_of_a_dcd_file() {
    let f = tempfile::tempdir().expect("a folder");
    write(
        f.path(),
        "analyzers: [ Dcd(every: 10, file: \"t.dcd\"), Thermo(every: 5, file: \"t.csv\") ], checkpoint: (every: 15), \
         stages: [ (steps: 60, dt: 0.004) ],",
    );
    let run = |more: &[&str]| galamost(f.path(), &[&RUN[..], more].concat());
    assert!(run(&["--steps", "25"]).status.success());
    // from the checkpoint of step 15, which both files are beyond
    let older = format!("--resume={}", f.path().join("p.checkpoint.1").display());
    let read = || ["t.dcd", "t.csv"].map(|name| std::fs::read(f.path().join(name)).expect("a file"));
    let before = read();
    for (set, now) in [
        ("analyzers[0].every=5", "5 × 0.004"),
        ("analyzers[0].every=20", "20 × 0.004"),
        ("stages[0].dt=0.002", "10 × 0.002"),
    ] {
        let out = run(&[&older, "--resume-changed", "--set", set]);
        let said = words(&out);
        let expected = format!("`t.dcd` has samples every 10 × 0.004 time units (steps × dt), now every {now}");
        assert!(out.status.code() == Some(2) && said.contains(&expected), "{said}");
        assert!(said.contains("choose another file") && !said.contains("starts anew"), "{said}");
        assert!(read() == before, "{set} changed files");
    }
    go(f.path(), &[&RUN[..], &["--resume"]].concat());
    assert_eq!(header(&f.path().join("t.dcd")), ([7, 0, 10], 0.004));
    let other = ["--steps", "70", "--set", "analyzers[0].every=5", "--resume"];
    go(f.path(), &[&RUN[..], &other, &["--set", "analyzers[0].file=\"u.dcd\""]].concat());
    assert_eq!(header(&f.path().join("u.dcd")), ([2, 65, 5], 0.004));
    std::fs::write(f.path().join("u.dcd"), "").expect("emptied");
    let other = ["--steps", "80", "--set", "analyzers[0].every=10", "--set", "analyzers[0].file=\"u.dcd\"", "--resume"];
    go(f.path(), &[&RUN[..], &other].concat());
    assert_eq!(header(&f.path().join("u.dcd")), ([1, 80, 10], 0.004));
}

/// A converted file has the steps of its source.
#[test]
fn a_converted_dcd_file_has_the_interval_of_its_frames() {
    let f = tempfile::tempdir().expect("a folder");
    write(f.path(), "analyzers: [ Gsd(every: 50, file: \"t.gsd\") ], stages: [ (steps: 200, dt: 0.004) ],");
    go(f.path(), &RUN);
    for (frames, expected) in [(":", [5, 0, 50]), ("1:", [4, 50, 50]), ("::2", [3, 0, 100])] {
        let out = galamost(f.path(), &["convert", "t.gsd", "t.dcd", "--overwrite", "--frames", frames]);
        assert!(out.status.success(), "{}", words(&out));
        assert_eq!(header(&f.path().join("t.dcd")).0, expected, "{frames}");
    }
}
