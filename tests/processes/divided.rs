//! Particles that are divided among the processes again during a run.

use super::{CPU, DPD, LJ, OPTIONS, files, folder, launcher, mpiexec, pipeline};
use galamost_tests::{galamost, words};
use std::path::Path;

/// Compares the files of one process with those of several that divide the particles every few steps.
fn compare(mpiexec: &Path, name: &str, text: &str, args: &[&str], n: u32) {
    let run = |n: u32| {
        let folder = folder(&format!("{name}-{n}"));
        // nine blocks of 256 particles
        let larger = text.replace("[10, 10, 10]", "[13, 13, 13]");
        std::fs::write(folder.join("p.ron"), larger).expect("written");
        let args: Vec<&str> = args.iter().copied().filter(|a| *a != "--quiet").collect();
        let mut command = launcher(mpiexec, &folder, &[(n, &args)]);
        let done = if n == 1 {
            galamost(&folder, &args)
        } else {
            command.env("GALAMOST_BALANCE", "3").output().expect("started")
        };
        assert!(done.status.success(), "{name}, {n} processes: {}", words(&done));
        (files(&folder), words(&done))
    };
    let ((one, _), (several, log)) = (run(1), run(n));
    assert!(log.contains("the ranks now have"), "{name}: {log}");
    let differ: Vec<_> = one.keys().filter(|file| several.get(*file) != one.get(*file)).collect();
    assert!(differ.is_empty() && several.len() == one.len(), "{name}, {n} processes: {differ:?} differ");
}

#[test]
fn a_new_division_does_not_change_the_files() {
    let Some(mpiexec) = mpiexec() else { return };
    let npt = pipeline(LJ, "MtkNpt(kT: 1.2, tau: 0.5, pressure: 1.0, tau_p: 1.0)", "neighbors: (buffer: 0.15)");
    compare(&mpiexec, "divided-cpu", &npt, &CPU, 3);
    let staged = pipeline(DPD, "Bussi(kT: 1.0, tau: 0.5)", "neighbors: (buffer: 0.15, list: Staged)");
    compare(&mpiexec, "divided", &staged, &OPTIONS, 2);
}
