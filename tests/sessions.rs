//! Runs that a program advances in parts, as the Python module does.

use galamost_engine::backend::{Backend, ListReport, SystemSums};
use galamost_engine::checkpoint::Checkpoint;
use galamost_engine::pipeline::Pipeline;
use galamost_engine::plan::{CheckOptions, Plan, StagePlan, check};
use galamost_engine::plugins::Component;
use galamost_engine::profile::Timing;
use galamost_engine::run::{self, Change, RunOptions, Session, execute};
use galamost_engine::state::RawState;
use galamost_engine::state::raw::Facts;
use galamost_engine::state::topology::Topology;
use galamost_plugin_api::abi::WireHost;
use galamost_plugin_api::error::Result;
use galamost_plugin_api::views::{Globals, LinkView, ListView, StateView, Wanted};
use galamost_tests::registry;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Two stages, a thermostat with a state, random forces, updaters of which one is random, and checkpoints.
const PIPELINE: &str = r#"(
    seed: 9, device: Cpu,
    initial: [ RandomPositions(count: 300, box: [5.0, 5.0, 5.0]), Velocities(kT: 1.0) ],
    forces: [ Dpd(r_cut: 1.0, kT: 1.0, pairs: { ("A", "A"): (a: 25.0, sigma: 3.0) }) ],
    integrators: [ NoseHoover(kT: 1.0, tau: 0.5) ],
    updaters: [ ZeroMomentum(every: 7), LoweAndersen(kT: 1.0, nu: 5.0, r_cut: 0.8) ],
    analyzers: [ Thermo(every: 10, file: "t.csv"), ExtendedXyz(at_end: true, forces: true, file: "ends.xyz") ],
    checkpoint: (every: 50),
    stages: [ (name: "a", steps: 60, dt: 0.01), (name: "b", steps: 90, dt: 0.02) ],
)"#;

fn plan(folder: &Path) -> Plan {
    checked(folder, CheckOptions::default())
}

fn checked(folder: &Path, options: CheckOptions) -> Plan {
    let pipeline = Pipeline::parse(&folder.join("p.ron"), PIPELINE, &[]).expect("a pipeline");
    check(pipeline, registry(), options).unwrap_or_else(|e| panic!("{}", e.render()))
}

fn quiet() -> RunOptions {
    RunOptions { quiet: true, ..RunOptions::default() }
}

#[test]
fn a_run_in_parts_writes_the_files_of_a_whole_run() {
    let [whole, parts] = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
    let plan_of_whole = plan(whole.path());
    let mut backend = run::open(&plan_of_whole).expect("the CPU");
    let summary = execute(&plan_of_whole, &mut *backend, &quiet(), None).expect("a run");
    assert_eq!(summary.steps, 150);

    let plan_of_parts = plan(parts.path());
    let mut backend = run::open(&plan_of_parts).expect("the CPU");
    let options = quiet();
    let mut session = Session::start(&plan_of_parts, &mut *backend, &options, None).expect("a run");
    for steps in [1, 9, 50, 3, 40, 47] {
        session.advance(steps).expect("steps");
        // reading changes nothing
        let sample = session.sample().expect("sums");
        assert!(sample.thermo.kt > 0.0 && sample.forces[0].0 == "Dpd", "{sample:?}");
        assert_eq!(session.state().expect("a state").len(), 300);
    }
    assert_eq!((session.step(), session.remaining()), (150, 0));
    let summary = session.end().expect("an end");
    assert_eq!((summary.total_steps, summary.interrupted), (150, false));
    assert!(session.advance(1).is_err_and(|e| e.render().contains("the run has ended")));
    for file in ["t.csv", "ends.xyz", "p.checkpoint"] {
        let [a, b] = [&whole, &parts].map(|f| std::fs::read(f.path().join(file)).expect("a file"));
        assert!(a == b, "{file} differs");
    }
    // 60 steps of 0.01 and 90 of 0.02
    let table = std::fs::read_to_string(whole.path().join("t.csv")).expect("a table");
    let time: f64 =
        table.lines().last().and_then(|l| l.split(',').nth(1)).and_then(|t| t.parse().ok()).expect("a time");
    assert!((time - 2.4).abs() < 1e-12, "{time}");
}

/// Each pause once began the profile of single steps anew, which made runs in parts slower.
#[test]
fn parts_do_not_repeat_the_profile() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = PIPELINE.replace("steps: 60", "steps: 400").replace("checkpoint: (every: 50),", "");
    let pipeline = Pipeline::parse(&folder.path().join("p.ron"), &text, &[]).expect("a pipeline");
    let plan = check(pipeline, registry(), CheckOptions::default()).unwrap_or_else(|e| panic!("{}", e.render()));
    let mut backend = run::open(&plan).expect("the CPU");
    let options = quiet();
    let mut session = Session::start(&plan, &mut *backend, &options, None).expect("a run");
    for _ in 0..40 {
        session.advance(10).expect("steps");
    }
    let summary = session.end().expect("an end");
    assert_eq!((summary.steps, summary.component_times.steps), (400, 16));
}

/// A backend that is asked once to stop, just before the first step after `step`, also amid several steps at once.
struct StopsAt {
    inner: Box<dyn Backend>,
    step: u64,
}

impl Backend for StopsAt {
    fn advance(&mut self, steps: u64, wanted: Wanted, stop: &AtomicBool) -> Result<u64> {
        let Some(before) = self.step.checked_sub(self.step()).filter(|n| *n < steps) else {
            return self.inner.advance(steps, wanted, stop);
        };
        self.step = u64::MAX;
        let done = if before > 0 { self.inner.advance(before, Wanted::FORCE, stop)? } else { 0 };
        stop.store(true, Ordering::Relaxed);
        Ok(done)
    }
    fn begin_stage(&mut self, stage: &StagePlan, forces_are_valid: bool) -> Result<()> {
        self.inner.begin_stage(stage, forces_are_valid)
    }
    fn evaluate(&mut self) -> Result<()> {
        self.inner.evaluate()
    }
    fn step(&self) -> u64 {
        self.inner.step()
    }
    fn sums(&mut self) -> Result<SystemSums> {
        self.inner.sums()
    }
    fn read(&mut self, section: &str) -> Result<Vec<u8>> {
        self.inner.read(section)
    }
    fn facts(&self) -> &Facts {
        self.inner.facts()
    }
    fn topology(&self) -> &Topology {
        self.inner.topology()
    }
    fn update(&mut self, updater: &Arc<Component>, wanted: Wanted) -> Result<()> {
        self.inner.update(updater, wanted)
    }
    fn export(&mut self) -> Result<RawState> {
        self.inner.export()
    }
    fn import(&mut self, state: &RawState) -> Result<()> {
        self.inner.import(state)
    }
    fn globals(&self) -> Globals {
        self.inner.globals()
    }
    fn box_length(&self) -> [f64; 3] {
        self.inner.box_length()
    }
    fn views(&mut self) -> Result<(StateView, ListView, LinkView)> {
        self.inner.views()
    }
    fn end_views(&mut self) {
        self.inner.end_views();
    }
    fn host(&self) -> &WireHost {
        self.inner.host()
    }
    fn list_report(&mut self) -> Result<ListReport> {
        self.inner.list_report()
    }
    fn memory(&self) -> u64 {
        self.inner.memory()
    }
    fn begin_profile(&mut self) {
        self.inner.begin_profile();
    }
    fn end_profile(&mut self) -> Result<Vec<Timing>> {
        self.inner.end_profile()
    }
}

/// Step 30 has its energies, since `Thermo` is due. Stopped before step 31, the run once lost them, and the resumed run
/// computed forces anew and started the integrators again.
#[test]
fn a_stop_between_two_steps_keeps_the_energies() {
    let [whole, parts] = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
    let plan_of_whole = plan(whole.path());
    let mut backend = run::open(&plan_of_whole).expect("the CPU");
    execute(&plan_of_whole, &mut *backend, &quiet(), None).expect("a run");

    let plan_of_first = plan(parts.path());
    let mut backend = StopsAt { inner: run::open(&plan_of_first).expect("the CPU"), step: 30 };
    let summary = execute(&plan_of_first, &mut backend, &quiet(), None).expect("a run");
    assert_eq!((summary.steps, summary.interrupted), (30, true));
    let plan_of_rest = checked(parts.path(), CheckOptions { resumed: true, ..CheckOptions::default() });
    let checkpoint = Checkpoint::read(&parts.path().join("p.checkpoint"), &plan_of_rest).expect("a checkpoint");
    assert!(checkpoint.sums.is_some());
    let mut backend = run::open(&plan_of_rest).expect("the CPU");
    execute(&plan_of_rest, &mut *backend, &quiet(), Some(checkpoint)).expect("the rest");
    for file in ["t.csv", "ends.xyz"] {
        let [a, b] = [&whole, &parts].map(|f| std::fs::read_to_string(f.path().join(file)).expect("a file"));
        assert_eq!(a.lines().collect::<Vec<_>>(), b.lines().collect::<Vec<_>>(), "{file}");
    }
}

#[test]
fn a_stopped_run_knows_its_energies_and_continues() {
    let f = tempfile::tempdir().expect("a folder");
    let plan = plan(f.path());
    let mut backend = run::open(&plan).expect("the CPU");
    let options = quiet();
    let mut session = Session::start(&plan, &mut *backend, &options, None).expect("a run");
    session.advance(20).expect("steps");
    options.stop.store(true, Ordering::Relaxed);
    session.advance(1000).expect("a stop");
    let step = session.step();
    assert!((20..=22).contains(&step), "{step}");
    assert!(session.sample().expect("sums").thermo.potential > 0.0);
    session.advance(30).expect("steps");
    assert_eq!(session.step(), step + 30);
}

/// `Thermo` wants the energies of step 10. A run that is stopped on the way does not have them, and must not return those of step 0.
#[test]
fn a_run_that_is_stopped_between_two_samples_computes_its_energies() {
    let (before, after) = PIPELINE.split_once("    updaters:").expect("updaters");
    let text = before.to_string() + after.split_once('\n').expect("further lines").1;
    let potential = |stop: u64, steps: u64| {
        let f = tempfile::tempdir().expect("a folder");
        let pipeline = Pipeline::parse(&f.path().join("p.ron"), &text, &[]).expect("a pipeline");
        let plan = check(pipeline, registry(), CheckOptions::default()).unwrap_or_else(|e| panic!("{}", e.render()));
        let mut backend = StopsAt { inner: run::open(&plan).expect("the CPU"), step: stop };
        let options = quiet();
        let mut session = Session::start(&plan, &mut backend, &options, None).expect("a run");
        session.advance(steps).expect("steps");
        (session.step(), session.sample().expect("sums").thermo.potential)
    };
    // between two groups of steps, and amid the last group before the sample
    for stop in [1, 8] {
        assert_eq!(potential(stop, 1000), potential(u64::MAX, stop + 1), "{stop}");
    }
    // step 10 has its energies: no further step is needed
    assert_eq!(potential(10, 1000), potential(u64::MAX, 10));
}

#[test]
fn a_new_state_is_checked_and_has_its_forces() {
    let f = tempfile::tempdir().expect("a folder");
    let plan = plan(f.path());
    let mut backend = run::open(&plan).expect("the CPU");
    let options = quiet();
    let mut session = Session::start(&plan, &mut *backend, &options, None).expect("a run");
    session.advance(30).expect("steps");
    let (state, before) = (session.state().expect("a state"), session.sample().expect("sums").thermo);
    let forces = session.forces().expect("forces");
    let mut outside = state.position.clone();
    outside[4][1] = 9.0;
    let refused = session.replace(Change { position: Some(outside), ..Change::default() });
    assert!(refused.is_err_and(|e| e.render().contains("particle 4 is outside the box")));
    assert_eq!(session.state().expect("a state"), state);

    // reversed velocities: the same positions and energies, and forces that differ by dissipation only
    let reversed = state.velocity.iter().map(|v| v.map(|x| -x)).collect();
    session.replace(Change { velocity: Some(reversed), ..Change::default() }).expect("a state");
    let after = session.sample().expect("sums").thermo;
    assert_eq!((after.kinetic, after.potential), (before.kinetic, before.potential));
    assert_ne!(session.forces().expect("forces"), forces);

    // one particle elsewhere, and back
    let mut moved = state.position.clone();
    moved[4] = moved[5].map(|x| x + 0.1);
    session.replace(Change { position: Some(moved), ..Change::default() }).expect("a state");
    let elsewhere = session.sample().expect("sums").thermo.potential;
    session.replace(Change { position: Some(state.position.clone()), ..Change::default() }).expect("a state");
    let back = session.sample().expect("sums").thermo.potential;
    // sums of 300 terms in another order
    assert!((elsewhere - back).abs() > 1.0 && (back - before.potential).abs() < 1e-3, "{elsewhere} {back} {before:?}");
    session.advance(10).expect("steps");
    assert_eq!(session.step(), 40);
}
