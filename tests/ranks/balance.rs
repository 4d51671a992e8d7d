//! Particles that are divided among the ranks again during a run: every bit is that of a run on one GPU.

use super::delayed::files_of;
use super::{DPD, LJ, SYSTEM, pipeline};
use galamost_tests::{has_compiler, program, words};

/// Compares the outputs of a run on one GPU with those of runs that divide the particles every few steps.
fn compare(what: &str, text: &str, gpus: &str) {
    let (one, _) = files_of(text, "1", None);
    let (divided, log) = files_of(text, gpus, Some(("GALAMOST_BALANCE", "3")));
    assert!(log.contains("the ranks now have"), "{what}, {gpus} GPUs: {log}");
    let differ: Vec<&String> = one.keys().filter(|k| divided.get(*k) != one.get(*k)).collect();
    assert!(one.len() == 2 && differ.is_empty(), "{what}, {gpus} GPUs: {differ:?} differ");
}

const OUTPUT: &str = "analyzers: [Thermo(every: 4, file: \"o.csv\"), Gsd(every: 8, file: \"o.gsd\")]";

#[test]
fn a_new_division_does_not_change_a_bit() {
    if !has_compiler() {
        return;
    }
    let npt = "MtkNpt(kT: 1.2, tau: 0.5, pressure: 2.0, tau_p: 0.5)";
    // nine blocks of 256 particles
    let system = SYSTEM.replace("[10, 10, 10]", "[13, 13, 13]");
    let staged = format!("neighbors: (buffer: 0.15, list: Staged), {OUTPUT}");
    compare("a staged list in a box that changes", &pipeline(&system, LJ, npt, &staged), "2");
    let plain = format!("neighbors: (buffer: 0.15, list: Plain), {OUTPUT}");
    compare("a plain list", &pipeline(&system, DPD, "GrootWarren()", &plain), "3");
}

/// Runs with less and less room for a new division: they continue with the one before, or end with an error that says why.
#[test]
#[ignore = "20 seconds"]
fn a_division_without_memory_is_not_made() {
    if !has_compiler() {
        return;
    }
    let system = SYSTEM.replace("[10, 10, 10]", "[12, 12, 12]");
    let text = pipeline(&system, LJ, "VelocityVerlet()", &format!("neighbors: (buffer: 0.15, list: Staged), {OUTPUT}"));
    let (one, _) = files_of(&text, "1", None);
    let mut continued = 0;
    for limit in (700..1400).step_by(20) {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("p.ron"), &text).expect("a pipeline");
        let mut command = std::process::Command::new(program());
        command.args(["--pipeline", "p.ron", "--device", "emulated", "--gpus", "2"]).current_dir(folder.path());
        command.env("GALAMOST_BALANCE", "3").env("GALAMOST_EMULATED_FAULT", format!("memory:{limit}000"));
        let done = command.output().expect("the program runs");
        let said = words(&done);
        if !done.status.success() {
            assert!(done.status.code() == Some(1) && said.contains("out of memory"), "{limit}: {said}");
        } else if said.contains("the particles are not divided again") {
            let files = ["o.csv", "o.gsd"].map(|f| std::fs::read(folder.path().join(f)).expect("a file"));
            assert!(files.iter().eq(one.values()), "{limit}: files differ");
            continued += 1;
        } else if continued > 0 {
            return;
        }
    }
    panic!("{continued} runs continued, and none had room");
}
