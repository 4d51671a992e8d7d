//! Faults of one process are those of the run.

use super::nccl::substitute;
use super::{CPU, OPTIONS, check_aborted, compare, folder, launch, launcher, lj, mpiexec};
use crate::ranks::starts::{breaking, stretched};
use galamost_tests::{galamost, words};
use std::path::Path;
use std::process::Output;
use std::time::{Duration, Instant};

/// The error that a run reports.
fn message(out: &Output) -> String {
    let said = words(out);
    said.lines().find(|l| l.starts_with("error:")).unwrap_or_else(|| panic!("no error: {said}")).to_string()
}

#[test]
fn a_fault_in_one_process_is_that_of_the_run() {
    let Some(mpiexec) = mpiexec() else { return };
    let folder = folder("fault");
    // in such a long step some particles move too far
    std::fs::write(folder.join("p.ron"), lj().replace("dt: 0.005", "dt: 1.0").replace("tau: 0.5", "tau: 5.0"))
        .expect("written");
    let alone = galamost(&folder, &OPTIONS);
    assert_eq!(alone.status.code(), Some(1), "{}", words(&alone));
    let one = message(&alone);
    assert!(one.contains("particle with tag"), "{one}");
    let begun = Instant::now();
    let several = launch(&mpiexec, &folder, 3, &[&OPTIONS[..], &["--overwrite"]].concat());
    // the others do not wait for the time that the first process has to end the run
    assert!(begun.elapsed() < Duration::from_secs(20), "{}", words(&several));
    assert_eq!(words(&several).matches("error:").count(), 1, "{}", words(&several));
    check_aborted(several.status.code(), &words(&several));
    assert_eq!(message(&several), one);
    // the forces of a state whose parts are in several processes are not computed after a fault
    assert!(words(&several).contains("the same run in one process has the same bits"), "{}", words(&several));
}

/// A bond breaks in the forces of one rank, after which this rank sends nothing else in this step.
#[test]
fn a_fault_in_forces_of_one_process_is_that_of_the_run() {
    let Some(mpiexec) = mpiexec() else { return };
    let folder = folder("fault-in-forces");
    let library = substitute("nccl-fault-in-forces");
    std::fs::write(folder.join("p.ron"), breaking(&folder)).expect("written");
    let args = [&OPTIONS[..], &["--overwrite"]].concat();
    let alone = galamost(&folder, &args);
    assert!(words(&alone).contains("longer than its potential allows"), "{}", words(&alone));
    for nccl in [Path::new("0"), &library] {
        let begun = Instant::now();
        let mut command = launcher(&mpiexec, &folder, &[(3, &args)]);
        let several = command.env("GALAMOST_NCCL", nccl).output().expect("mpiexec starts");
        check_aborted(several.status.code(), &words(&several));
        assert_eq!(message(&several), message(&alone));
        assert!(begun.elapsed() < Duration::from_secs(20), "{}", words(&several));
    }
}

/// Constraints move particles of one rank at the beginning so far that its list is not valid any more.
#[test]
fn a_start_that_moves_particles_of_one_process_makes_all_lists_anew() {
    let Some(mpiexec) = mpiexec() else { return };
    let prepare = |folder: &Path| std::fs::write(folder.join("p.ron"), stretched(folder)).expect("written");
    compare(&mpiexec, "stretched", prepare, &OPTIONS, &[2]);
}

/// On the CPU all processes have the fault. Some hear of the others' before they announce their own; nobody may wait for them.
#[test]
fn a_fault_in_all_processes_ends_them_at_once() {
    let Some(mpiexec) = mpiexec() else { return };
    let folder = folder("fault-of-all");
    // the second stage has a step that is too long
    std::fs::write(folder.join("p.ron"), lj().replace("dt: 0.004", "dt: 0.05")).expect("written");
    for attempt in 0..10 {
        let begun = Instant::now();
        let out = launch(&mpiexec, &folder, 2, &[&CPU[..], &["--overwrite"]].concat());
        check_aborted(out.status.code(), &words(&out));
        assert_eq!(words(&out).matches("error:").count(), 1, "{}", words(&out));
        assert!(begun.elapsed() < Duration::from_secs(15), "attempt {attempt}: {}", words(&out));
    }
}

/// A particle of one rank moves too far, which the others learn from its message.
#[test]
fn a_fault_of_one_rank_is_the_same_through_nccl() {
    let Some(mpiexec) = mpiexec() else { return };
    let library = substitute("nccl-fault");
    let folder = folder("nccl-fault-run");
    std::fs::write(folder.join("p.ron"), lj().replace("dt: 0.004", "dt: 0.05")).expect("written");
    let alone = galamost(&folder, &OPTIONS);
    let mut command = launcher(&mpiexec, &folder, &[(3, &[&OPTIONS[..], &["--overwrite"]].concat())]);
    let several = command.env("GALAMOST_NCCL", &library).output().expect("mpiexec starts");
    check_aborted(several.status.code(), &words(&several));
    assert_eq!(message(&several), message(&alone));
}
