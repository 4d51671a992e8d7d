//! Ranks whose neighbor lists have no room: on one of them only, or for a staged list at all.

use super::delayed::files_of;
use super::{LJ, SYSTEM, pipeline};
use galamost_engine::backend::Backend;
use galamost_engine::pipeline::DeviceChoice;
use galamost_plugin_api::views::Wanted;
use galamost_tests::{has_compiler, plan_in, repository};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

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
    // the other ranks compute the forces of that step again
    let steps: Vec<&str> = log.lines().filter(|l| l.contains("the neighbor list grows to")).collect();
    let step = |line: &str| line.split(':').next().map(String::from);
    let alone = |line: &&&str| steps.iter().filter(|other| step(other) == step(line)).count() == 1;
    assert!(steps.iter().any(|line| alone(&line)), "on one rank alone: {log}");
    assert!(one.len() == 2 && one == two && one == three, "files differ");
}

/// The state after some steps of a run that has left its staged list.
fn after_leaving(text: &str, gpus: u32) -> BTreeMap<String, Vec<u8>> {
    let mut plan = plan_in(&repository().join("examples/test.ron"), text, DeviceChoice::Emulated).expect("a plan");
    plan.pipeline.gpus = gpus;
    let mut backend: Box<dyn Backend> = galamost_engine::run::open(&plan).unwrap_or_else(|e| panic!("{}", e.render()));
    let mut state = backend.export().expect("a state");
    state.sections.insert("plain_list".into(), vec![]);
    state.sections.remove("order");
    for c in &plan.components {
        backend.start(c).expect("started");
    }
    backend.import(&state).expect("the state");
    backend.begin_stage(&plan.stages[0], false).expect("a stage");
    backend.advance(24, Wanted::FORCE, &AtomicBool::new(false)).expect("steps");
    backend.export().expect("a state").sections.into_iter().collect()
}

/// The ranks have whole groups of 1,024 particles, which with a staged list need no barrier after a sort.
#[test]
fn ranks_that_left_the_staged_list_wait_for_each_other_after_a_sort() {
    if !has_compiler() {
        return;
    }
    let system = SYSTEM.replace("[10, 10, 10]", "[16, 16, 16]");
    let text = pipeline(&system, LJ, "VelocityVerlet()", "neighbors: (buffer: 0.1, list: Staged)");
    let one = after_leaving(&text, 1);
    for _ in 0..3 {
        let two = after_leaving(&text, 2);
        let differ: Vec<&String> = one.keys().filter(|k| two.get(*k) != one.get(*k)).collect();
        assert!(differ.is_empty(), "{differ:?} differ");
    }
}
