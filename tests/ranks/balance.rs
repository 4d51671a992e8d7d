//! Particles that are divided among the ranks again during a run: every bit is that of a run on one GPU.

use super::delayed::files_of;
use super::{DPD, LJ, SYSTEM, pipeline};
use galamost_tests::has_compiler;

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
