//! Arrays of ranks in several processes pass through a substitute of NCCL.

use super::{DPD, LJ, OPTIONS, files, folder, launcher, mpiexec, pipeline};
use galamost_tests::{repository, words};
use std::path::PathBuf;
use std::process::Command;

/// A substitute of NCCL for memory of the host, in an empty folder.
pub(super) fn substitute(name: &str) -> PathBuf {
    let library = folder(name);
    let source = repository().join("tests/processes/nccl.cc");
    let built = Command::new("g++")
        .args(["-shared", "-fPIC", "-O1", "-pthread", "-o"])
        .arg(library.join("libnccl.so.2"))
        .arg(source)
        .output();
    let built = built.expect("g++ starts");
    assert!(built.status.success(), "{}", words(&built));
    library
}

/// Compares the files of one process with those of `n` whose arrays pass through NCCL.
fn compare_with_nccl(name: &str, text: &str, n: u32) {
    let Some(mpiexec) = mpiexec() else { return };
    let library = substitute(name);
    let run = |n: u32| {
        let folder = folder(&format!("{name}-{n}"));
        std::fs::write(folder.join("p.ron"), text).expect("written");
        let mut command = launcher(&mpiexec, &folder, &[(n, &OPTIONS)]);
        let done = command.env("GALAMOST_NCCL", &library).output().expect("mpiexec starts");
        assert!(done.status.success(), "{n} processes: {}", words(&done));
        if n > 1 {
            // a rank connects again when particles are divided again
            let ended = words(&done).matches("substitute of NCCL").count();
            assert!(ended > 0 && ended.is_multiple_of(n as usize), "{ended}: {}", words(&done));
        }
        files(&folder)
    };
    assert_eq!(run(1), run(n));
}

#[test]
#[ignore = "3 seconds"]
fn arrays_pass_through_nccl() {
    let staged = "neighbors: (buffer: 0.15, list: Staged)";
    let forces = format!("{LJ}, BodyForce(force: [0.1, 0.0, -0.2])");
    compare_with_nccl("nccl", &pipeline(&forces, "NoseHoover(kT: 1.2, tau: 0.5)", staged), 3);
}

/// A stage of 60 steps with few samples: steps are launched ahead of the rebuilds that interrupt them, some of which sort.
#[test]
#[ignore = "10 seconds"]
fn long_stages_pass_through_nccl() {
    let long = |text: String| {
        text.replace("steps: 12, dt: 0.004", "steps: 60, dt: 0.004")
            .replace("every: 2,", "every: 36,")
            .replace("every: 8,", "every: 36,")
    };
    let npt = "MtkNpt(kT: 1.2, tau: 0.5, pressure: 1.0, tau_p: 1.0)";
    for (list, ranks) in [("Staged", 2), ("Plain", 3)] {
        let more = format!("neighbors: (buffer: 0.15, list: {list})");
        let dpd = long(pipeline(DPD, "GrootWarren()", &more));
        compare_with_nccl(&format!("nccl-dpd-{list}"), &dpd, ranks);
        compare_with_nccl(&format!("nccl-npt-{list}"), &long(pipeline(LJ, npt, &more)), ranks);
    }
}

#[test]
#[ignore = "3 seconds"]
fn reactions_pass_through_nccl() {
    compare_with_nccl("nccl-reactions", &crate::reaction_laws::stars(200, "Mixed", "Each", 4, 20), 3);
}
