//! Restart and determinism: 2n steps give the same bits as n steps, a restart, and n more steps.

use galamost_tests::{galamost, has_compiler, program, words};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const PIPELINE: &str = r#"(
    seed: 9,
    initial: [ RandomPositions(count: 1500, box: [8.0, 8.0, 8.0], types: {"A": 0.5, "B": 0.5}), Velocities(kT: 1.0) ],
    forces: [
        Dpd(r_cut: 1.0, kT: 1.0, pairs: {
            ("A", "A"): (a: 25.0, sigma: 3.0), ("A", "B"): (a: 35.0, sigma: 3.0), ("B", "B"): (a: 25.0, sigma: 3.0) }),
    ],
    integrators: [ INTEGRATOR ],
    analyzers: [ Thermo(every: 7, file: "t.csv"), Gsd(every: 30, file: "t.gsd"), Thermo(every: 7, file: "t.parquet") ],
    checkpoint: (every: 50),
    stages: [ (name: "one", steps: 120, dt: 0.01), (name: "two", steps: STEPS, dt: 0.02) ],
)"#;

fn folder(integrator: &str, steps: u64) -> tempfile::TempDir {
    let f = tempfile::tempdir().expect("a folder");
    let text = PIPELINE.replace("INTEGRATOR", integrator).replace("STEPS", &steps.to_string());
    std::fs::write(f.path().join("p.ron"), text).expect("written");
    f
}

fn go(folder: &Path, args: &[&str]) {
    let out = galamost(folder, &[&["--pipeline", "p.ron", "--quiet"], args].concat());
    assert!(out.status.success(), "{args:?}: {}", words(&out));
}

fn same(a: &Path, b: &Path) {
    for file in ["t.csv", "t.gsd", "t.parquet/part-000000.parquet", "p.checkpoint"] {
        let (x, y) = (std::fs::read(a.join(file)).expect(file), std::fs::read(b.join(file)).expect(file));
        assert!(!x.is_empty() && x == y, "{file} differs: {} and {} bytes", x.len(), y.len());
    }
    assert_eq!(std::fs::read_dir(b.join("t.parquet")).expect("a folder").count(), 1);
    // written by updaters with an output file
    assert_eq!(std::fs::read(a.join("m.csv")).ok(), std::fs::read(b.join("m.csv")).ok());
}

#[test]
#[ignore = "20 seconds"]
fn a_stopped_and_resumed_run_equals_an_uninterrupted_one() {
    for (k, integrator) in [
        "GrootWarren()",
        "DpdVerlet()",
        "VelocityVerlet() ], updaters: [ LoweAndersen(kT: Sine(mean: 1.0, amplitude: 0.2, period: 70), nu: 20.0, r_cut: 0.8)",
        "VelocityVerlet() ], updaters: [ Shardlow(kT: 1.0, gamma: 4.5, r_cut: 1.0, group: Types([\"A\"]))",
        "NoseHoover(kT: 1.0, tau: 0.5)",
        "NoseHooverChain(kT: Sine(mean: 1.0, amplitude: 0.2, period: 70), tau: 0.5)",
        "VelocityVerlet()",
        "CappedVerlet(max_displacement: 0.01)",
        "Fire(f_max: 0.1, dt_max: 0.05)",
        "Langevin(kT: Cycle(points: [(0, 1.0), (40, 2.0), (90, 1.0)]), gamma: 1.0)",
        "Brownian(kT: 1.0, gamma: 5.0)",
        "Andersen(kT: 1.0, nu: 7.0, group: Types([\"A\"])), Berendsen(kT: 1.0, tau: 0.5, group: Types([\"B\"]))",
        "Bussi(kT: 1.0, tau: 0.2) ], updaters: [ ZeroMomentum(every: 20), ZeroMomentum(every: 30, group: Tags(first: 0, last: 99))",
        "MtkNpt(kT: 1.0, tau: 0.5, pressure: 30.0, tau_p: 0.5, couple: Xy)",
        "TriclinicMtkNpt(kT: 1.0, tau: 0.5, pressure: 30.0, tau_p: 0.5)",
        "LeesEdwards(rate: 0.7), GrootWarren()",
        "AndersenNpt(kT: 1.0, nu: 2.0, pressure: 30.0, tau_p: 0.5)",
        "GrootWarren() ], updaters: [ BerendsenBarostat(every: 3, pressure: 30.0, tau: 0.5, compressibility: 0.01)",
        "GrootWarren() ], updaters: [ BoxResize(every: 4, z: Ramp(from: 8.0, to: 7.5, steps: 250))",
        "GrootWarren(), Bounce(wall: Plane(point: [0.0, 0.0, -3.5], normal: [0.0, 0.0, 1.0]), rule: Back), \
         Bounce(wall: Plane(point: [0.0, 0.0, 3.5], normal: [0.0, 0.0, -1.0]), rule: Back, velocity: [1.0, 0.0, 0.0])",
        "GrootWarren() ], updaters: [ ReversePerturbation(every: 10, swaps: 3, slabs: 8, report: 30, file: \"m.csv\")",
    ]
    .into_iter()
    .enumerate()
    {
        let (whole, parts) = (folder(integrator, 180), folder(integrator, 180));
        go(whole.path(), &["--device", "cpu", "--threads", "1"]);
        // in the first stage or, at a border of no period, in the second one, for two in both; with another number of threads
        let cuts: &[&str] = if k < 2 { &["100", "211"] } else { [&["100"], &["211"]][k % 2] };
        for (n, steps) in cuts.iter().enumerate() {
            let resume: &[&str] = if n > 0 { &["--resume"] } else { &[] };
            let threads = if n > 0 { "1" } else { "2" };
            go(parts.path(), &[&["--device", "cpu", "--threads", threads, "--steps", steps], resume].concat());
        }
        go(parts.path(), &["--device", "cpu", "--threads", "2", "--resume"]);
        same(whole.path(), parts.path());
    }
}

#[test]
#[ignore = "20 seconds"]
fn a_resumed_run_on_the_emulated_device_equals_an_uninterrupted_one() {
    for integrator in [
        "VelocityVerlet() ], updaters: [ LoweAndersen(kT: 1.0, nu: 20.0, r_cut: 0.8)",
        "Langevin(kT: 1.0, gamma: 1.0, group: Types([\"A\"])), NoseHooverChain(kT: 1.0, tau: 0.5, group: Types([\"B\"]))",
        "MtkNpt(kT: 1.0, tau: 0.5, pressure: 60.0, tau_p: 0.2, couple: None)",
        "GrootWarren(), LeesEdwards(rate: 0.7)",
    ] {
        resumed_on_the_emulated_device(integrator);
    }
}

#[test]
#[ignore = "half a minute"]
fn runs_of_other_integrators_resume_on_the_emulated_device() {
    for integrator in
        ["GrootWarren()", "DpdVerlet()", "Bussi(kT: 1.0, tau: 0.2) ], updaters: [ ZeroMomentum(every: 20)"]
    {
        resumed_on_the_emulated_device(integrator);
    }
}

fn resumed_on_the_emulated_device(integrator: &str) {
    if has_compiler() {
        let (whole, parts) = (folder(integrator, 10), folder(integrator, 10));
        // the density of the CPU's system, in a quarter of the volume: the emulation takes seconds for each thousand
        let small = |args: &[&str], folder: &Path| {
            let size =
                ["--device", "emulated", "--set", "initial[0].count=375", "--set", "initial[0].box=[5.0, 5.0, 5.0]"];
            go(folder, &[&size, args].concat());
        };
        small(&[], whole.path());
        small(&["--steps", "75"], parts.path());
        small(&["--resume"], parts.path());
        same(whole.path(), parts.path());
    }
}

/// Forces that depend on time, with two opposite flows.
#[test]
fn body_forces_resume_at_their_step() {
    let set = "forces=[Dpd(r_cut: 1.0, kT: 1.0, pairs: {(\"A\", \"A\"): (a: 25.0, sigma: 3.0), (\"A\", \"B\"): (a: 25.0, sigma: 3.0), \
               (\"B\", \"B\"): (a: 25.0, sigma: 3.0)}), PeriodicPoiseuille(force: Sine(mean: 0.0, amplitude: 1.0, period: 80)), \
               BodyForce(force: [0.0, 0.1, 0.0], group: Types([\"B\"]), factor: Ramp(from: 0.0, to: 1.0, steps: 150))]";
    let (whole, parts) = (folder("GrootWarren()", 30), folder("GrootWarren()", 30));
    go(whole.path(), &["--device", "cpu", "--threads", "1", "--set", set]);
    go(parts.path(), &["--device", "cpu", "--threads", "2", "--steps", "93", "--set", set]);
    go(parts.path(), &["--device", "cpu", "--threads", "2", "--resume", "--set", set]);
    same(whole.path(), parts.path());
    let (plain, pushed) = (folder("GrootWarren()", 30), galamost_tests::csv(&whole.path().join("t.csv")));
    go(plain.path(), &["--device", "cpu"]);
    let momentum = galamost_tests::csv(&plain.path().join("t.csv"))["momentum_y"].last().copied();
    assert!((pushed["momentum_y"].last().copied().unwrap_or(0.0) - momentum.unwrap_or(0.0)).abs() > 10.0);
}

#[test]
fn a_killed_and_resumed_run_equals_an_uninterrupted_one() {
    let (whole, killed) = (folder("GrootWarren()", 1500), folder("GrootWarren()", 1500));
    let mut child = Command::new(program())
        .args(["--pipeline", "p.ron", "--quiet", "--device", "cpu"])
        .current_dir(killed.path())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    let begun = Instant::now();
    while !killed.path().join("p.checkpoint").exists() && begun.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(300));
    child.kill().expect("killed");
    let status = child.wait().expect("ended");
    assert!(!status.success(), "the run was over before it could be killed");
    go(killed.path(), &["--device", "cpu", "--resume"]);
    go(whole.path(), &["--device", "cpu"]);
    same(whole.path(), killed.path());
}

/// An analyzer that is added at a restart and due immediately gets the energies of that step.
#[test]
fn an_analyzer_added_at_a_restart_sees_the_right_energies() {
    let f = folder("GrootWarren()", 20);
    go(f.path(), &["--device", "cpu", "--steps", "100"]);
    // step 100 is none of the first Thermo's
    let more = "analyzers=[Thermo(every: 7, file: \"t.csv\"), Gsd(every: 30, file: \"t.gsd\"), Thermo(every: 10, file: \"u.csv\")]";
    go(f.path(), &["--device", "cpu", "--steps", "110", "--resume", "--set", more]);
    let u = galamost_tests::csv(&f.path().join("u.csv"));
    assert_eq!(u["step"], [100.0, 110.0]);
    // ten steps of a liquid: energies fluctuate by some percent; wrong ones would be 0 or twice as large
    assert!((u["potential"][0] / u["potential"][1] - 1.0).abs() < 0.1, "{:?}", u["potential"]);
    assert!((u["pressure"][0] / u["pressure"][1] - 1.0).abs() < 0.1, "{:?}", u["pressure"]);
}

/// A checkpoint that is due at the last step of a stage is written.
#[test]
fn a_checkpoint_is_written_between_stages() {
    let f = folder("GrootWarren()", 20);
    let out = galamost(f.path(), &["--pipeline", "p.ron", "--device", "cpu", "--set", "checkpoint=(every: 60)"]);
    let said = words(&out);
    for step in [60, 120, 140] {
        assert!(said.contains(&format!("checkpoint of step {step} written")), "{said}");
    }
    assert!(!said.contains('\u{1b}'), "colors in a log that is no terminal");
}

/// No analyzer or updater is due at the steps of the checkpoints.
#[test]
fn checkpoints_need_no_other_event() {
    let f = folder("GrootWarren()", 20);
    let set = ["--set", "checkpoint=(every: 45)", "--set", "analyzers=[]"];
    let out = galamost(f.path(), &[&["--pipeline", "p.ron", "--device", "cpu"], &set[..]].concat());
    let said = words(&out);
    for step in [45, 90, 135, 140] {
        assert!(said.contains(&format!("checkpoint of step {step} written")), "{said}");
    }
}

/// A total number of steps that ends with a stage does not begin the next one.
#[test]
fn a_run_ends_with_its_last_stage() {
    let f = folder("GrootWarren()", 20);
    let said = |steps: &str| words(&galamost(f.path(), &["--pipeline", "p.ron", "--device", "cpu", "--steps", steps]));
    let (whole, more) = (said("120"), said("121"));
    assert!(whole.contains("stage `one`") && !whole.contains("stage `two`"), "{whole}");
    assert!(more.contains("stage `two`"), "{more}");
}

#[test]
fn a_checkpoint_of_another_run_is_rejected() {
    let f = folder("GrootWarren()", 20);
    go(f.path(), &["--device", "cpu", "--set", "checkpoint=(every: 50, keep: 1)"]);
    for (set, said) in [
        ("seed=10", "seed was 9, is 10"),
        ("precision=Double", "precision was Mixed, is Double"),
        ("integrators=[VelocityVerlet()]", "is Integrator VelocityVerlet"),
        ("initial[0].count=1400", "the number of particles was 1500, is 1400"),
    ] {
        let out = galamost(f.path(), &["--pipeline", "p.ron", "-q", "--device", "cpu", "--resume", "--set", set]);
        assert_eq!(out.status.code(), Some(2));
        assert!(words(&out).contains(said), "{}", words(&out));
    }
    let path = f.path().join("p.checkpoint");
    let mut bytes = std::fs::read(&path).expect("a checkpoint");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&path, &bytes).expect("written");
    let out = galamost(f.path(), &["--pipeline", "p.ron", "-q", "--device", "cpu", "--resume"]);
    assert_eq!(out.status.code(), Some(2));
    assert!(words(&out).contains("is damaged or truncated"), "{}", words(&out));
    std::fs::remove_file(&path).expect("removed");
    let out = galamost(f.path(), &["--pipeline", "p.ron", "-q", "--device", "cpu", "--resume"]);
    assert_eq!(out.status.code(), Some(2));
    assert!(words(&out).contains("no checkpoint to resume from"), "{}", words(&out));
}
