//! Ranks of which one has no room for its neighbor list: the others compute the forces of that step again.

use super::delayed::files_of;
use super::{SYSTEM, pipeline};
use galamost_tests::has_compiler;

#[test]
#[ignore = "10 seconds"]
fn lists_grow_on_some_ranks_only_without_a_change_of_bits() {
    if !has_compiler() {
        return;
    }
    // particles attract each other, so halos become larger and larger
    let collapse = "Dpd(r_cut: 1.6, kT: 1.0, pairs: { (\"*\", \"*\"): (a: -60.0, sigma: 3.0) })";
    let more = "neighbors: (buffer: 0.15, list: Staged), analyzers: [Thermo(every: 4, file: \"o.csv\"), Gsd(every: 8, file: \"o.gsd\")]";
    let system = SYSTEM.replace("[10, 10, 10]", "[14, 14, 14]");
    let text = pipeline(&system, collapse, "GrootWarren()", more).replace("steps: 24", "steps: 60");
    let [(one, _), (two, log), (three, _)] = ["1", "2", "3"].map(|gpus| files_of(&text, gpus, None));
    let steps: Vec<&str> = log.lines().filter(|l| l.contains("the neighbor list grows to")).collect();
    let alone =
        |line: &&&str| steps.iter().filter(|other| other.split(':').next() == line.split(':').next()).count() == 1;
    assert!(steps.iter().filter(alone).count() > 0, "on one rank alone: {log}");
    assert!(one.len() == 2 && one == two && one == three, "files differ");
}
