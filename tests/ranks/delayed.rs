//! Kernels that run after the host has continued, as on GPUs: what must wait for them, waits.

use super::{DPD, LJ, SYSTEM, pipeline};
use galamost_tests::{has_compiler, program, words};
use std::collections::BTreeMap;
use std::path::Path;

/// Tables and trajectories of a run with a variable of the environment, by file, and what it said.
pub fn files_of(text: &str, gpus: &str, variable: Option<(&str, &str)>) -> (BTreeMap<String, Vec<u8>>, String) {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("p.ron"), text).expect("a pipeline");
    let mut command = std::process::Command::new(program());
    command.args(["--pipeline", "p.ron", "--device", "emulated", "--gpus", gpus]).current_dir(folder.path());
    command.envs(variable);
    let done = command.output().expect("the program runs");
    assert!(done.status.success(), "{gpus} GPUs: {}", words(&done));
    let output = |name: &String| Path::new(name).extension().is_some_and(|e| e == "csv" || e == "gsd");
    let name = |e: std::io::Result<std::fs::DirEntry>| e.expect("an entry").file_name().into_string().expect("UTF-8");
    let names = folder.path().read_dir().expect("a folder").map(name).filter(output);
    let files = names.map(|n| (n.clone(), std::fs::read(folder.path().join(n)).expect("a file"))).collect();
    (files, words(&done))
}

#[test]
#[ignore = "5 seconds"]
fn samples_on_the_device_are_those_before_particles_of_other_gpus_move() {
    if !has_compiler() {
        return;
    }
    let analyzers = r#"analyzers: [Thermo(every: 3, file: "thermo.csv"), Rdf(every: 4, file: "rdf.csv", r_max: 2.0, bins: 40),
        StructureFactor(every: 4, file: "s.csv", q_max: 4.0, bins: 8), Msd(every: 2, file: "msd.csv"), Vacf(every: 2, file: "vacf.csv"),
        IntermediateScattering(every: 4, file: "f.csv", q: [2.0, 5.0], width: 1.0), Gsd(every: 8, file: "t.gsd")]"#;
    for (list, forces, integrator, gpus) in
        [("Staged", LJ, "NoseHoover(kT: 1.2, tau: 0.5)", "2"), ("Plain", DPD, "GrootWarren()", "3")]
    {
        let more = format!("neighbors: (buffer: 0.15, list: {list}), {analyzers}");
        let text = pipeline(SYSTEM, forces, integrator, &more);
        let (one, several) =
            (files_of(&text, "1", None).0, files_of(&text, gpus, Some(("GALAMOST_EMULATED_DELAY", "300"))).0);
        assert_eq!(one.len(), 7, "{list}");
        let differ: Vec<&String> = one.keys().filter(|k| several.get(*k) != one.get(*k)).collect();
        assert!(differ.is_empty(), "{list}, {gpus} GPUs: {differ:?} differ");
    }
}
