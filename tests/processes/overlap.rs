//! Pair forces that are computed during the transfer of ghosts.

use super::{DPD, LJ, files, folder, launch, mpiexec, pipeline};
use galamost_tests::words;
use std::path::Path;

/// A long box, in which each process has interior blocks, and a long stage with several rebuilds.
fn long(forces: &str, integrator: &str) -> String {
    let text = pipeline(forces, integrator, "neighbors: (buffer: 0.15, list: Staged)");
    let text = text.replace("[10, 10, 10]", "[8, 8, 72]").replace("steps: 12, dt: 0.004", "steps: 40, dt: 0.004");
    assert!(text.contains("72") && text.contains("steps: 40"), "{text}");
    text
}

#[test]
#[ignore = "10 seconds"]
fn overlapping_pairs_have_the_bits_of_one_process() {
    let Some(mpiexec) = mpiexec() else { return };
    // two potentials, one of which reads velocities and tags; a thermostat with sums over all particles
    let both = format!("{LJ}, {DPD}");
    for (name, forces, integrator) in
        [("lj", LJ, "NoseHoover(kT: 1.2, tau: 0.5)"), ("dpd", DPD, "GrootWarren()"), ("both", &both, "GrootWarren()")]
    {
        let text = long(forces, integrator);
        let run = |processes: u32| {
            let folder = folder(&format!("overlap-{name}-{processes}"));
            std::fs::write(folder.join("p.ron"), &text).expect("written");
            let args = ["--pipeline", "p.ron", "--device", "emulated", "--no-record", "-v"];
            let done = launch(Path::new(&mpiexec), &folder, processes, &args);
            assert!(done.status.success(), "{name}, {processes} processes: {}", words(&done));
            (files(&folder), words(&done))
        };
        let (one, said) = run(1);
        assert!(!said.contains("blocks have particles of other ranks"), "{said}");
        for processes in [2, 3] {
            let (several, said) = run(processes);
            assert_eq!(one, several, "{name}, {processes} processes");
            let counts = |line: &str| {
                let (boundary, rest) = line.split_once(" of ")?;
                let (blocks, _) = rest.split_once(" blocks have particles of other ranks")?;
                Some((boundary.rsplit(' ').next()?.parse::<u32>().ok()?, blocks.parse::<u32>().ok()?))
            };
            let counts: Vec<_> = said.lines().filter_map(counts).collect();
            assert!(
                counts.iter().filter(|(boundary, blocks)| 0 < *boundary && boundary < blocks).count() > 1,
                "{counts:?}"
            );
        }
    }
}
