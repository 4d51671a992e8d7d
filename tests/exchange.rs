//! Replica exchange: the same bits after a restart, rejected attempts, failures, and mistakes found before the first step.

mod harmonic;

use galamost_tests::{csv, galamost, has_compiler, program, words};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

fn go(folder: &Path, device: &str, args: &[&str]) {
    go_with(folder, device, "2", args);
}

fn go_with(folder: &Path, device: &str, threads: &str, args: &[&str]) {
    let mut c = Command::new(program());
    c.current_dir(folder).args(["--quiet", "--threads", threads, "--device", device]).args(args);
    let out = c.output().expect("started");
    assert!(out.status.success(), "{args:?}: {}", words(&out));
}

/// A row of the table of exchanges: the energy in each replica before, and the replica that each took its particles from.
struct Attempt {
    potentials: Vec<f64>,
    from: Vec<usize>,
}

fn attempts(table: &BTreeMap<String, Vec<f64>>, replicas: usize) -> Vec<Attempt> {
    let mut before: Vec<f64> = (0..replicas).map(|r| r as f64).collect();
    let row = |k: usize| {
        let of = |what: &str| (0..replicas).map(|r| table[&format!("{what}_{r}")][k]).collect::<Vec<f64>>();
        let walkers = of("walker");
        let from = walkers.iter().map(|w| before.iter().position(|b| b == w).expect("a permutation")).collect();
        before = walkers;
        Attempt { potentials: of("potential"), from }
    };
    (0..table["step"].len()).map(row).collect()
}

fn devices() -> Vec<&'static str> {
    if has_compiler() { vec!["cpu", "emulated"] } else { vec!["cpu"] }
}

/// Systems whose restarts are compared: forces, integrators, updaters.
const SYSTEMS: [[&str; 3]; 3] = [
    // a thermostat with a state, equal forces
    [
        r#"HarmonicRepulsion(r_cut: 1.0, pairs: { ("*", "*"): (alpha: 12.5) })"#,
        "NoseHooverChain(kT: Each([1.0, 1.2, 1.4]), tau: 0.5)",
        "",
    ],
    // a thermostat in the forces, which differ
    [
        r#"Dpd(r_cut: 1.0, kT: Each([1.0, 1.1, 1.2]), pairs: { ("*", "*"): (a: Each([25.0, 26.0, 27.0]), sigma: 3.0) })"#,
        "GrootWarren()",
        "",
    ],
    // a thermostat as an updater
    [
        r#"HarmonicRepulsion(r_cut: 1.0, pairs: { ("*", "*"): (alpha: Each([12.5, 13.5, 14.5])) })"#,
        "VelocityVerlet()",
        "LoweAndersen(kT: 1.0, r_cut: 1.0, nu: 5.0)",
    ],
];

fn liquid([forces, integrators, updaters]: [&str; 3], steps: u64) -> String {
    format!(
        "(seed: 5, neighbors: (buffer: 0.15), checkpoint: (every: 20), exchange: (every: 10),\n\
         initial: [Lattice(lattice: Sc, cells: [5, 6, 5], density: 2.0, types: {{\"A\": 0.5, \"B\": 0.5}}), Velocities(kT: 1.0)],\n\
         forces: [{forces}],\nintegrators: [{integrators}],\nupdaters: [{updaters}],\n\
         analyzers: [Thermo(every: 7, file: \"t.{{replica}}.csv\"), Gsd(every: 20, file: \"t.{{replica}}.gsd\")],\n\
         stages: [(name: \"one\", steps: 60, dt: 0.01), (name: \"two\", steps: {}, dt: 0.02)])",
        steps - 60
    )
}

fn outputs() -> Vec<String> {
    let of = |r: usize| ["t.#.csv", "t.#.gsd", "p.#.checkpoint"].map(|n| n.replace('#', &r.to_string()));
    (0..3).flat_map(of).chain(["p.exchange.csv".to_string()]).collect()
}

fn same(what: &str, a: &Path, b: &Path) {
    for file in outputs() {
        let read = |f: &Path| std::fs::read(f.join(&file)).unwrap_or_else(|e| panic!("{what}: {file}: {e}"));
        let (x, y) = (read(a), read(b));
        assert!(!x.is_empty() && x == y, "{what}: {file} differs");
    }
}

/// A run in two parts has the bits of one part: cut between attempts, at a step with an attempt, and at the end of a stage. A
/// replica whose newest checkpoint is missing, as after a kill, makes all resume from earlier ones. So does a number of threads.
#[test]
#[ignore = "5 seconds"]
fn restarts_have_the_same_bits() {
    resumed("cpu", SYSTEMS[0], &["33", "40", "60"]);
    resumed("cpu", SYSTEMS[1], &["33"]);
    resumed("cpu", SYSTEMS[2], &["33"]);
    if has_compiler() {
        resumed("emulated", SYSTEMS[1], &["33"]);
    }
}

#[test]
#[ignore = "half a minute"]
fn restarts_of_other_systems_have_the_same_bits() {
    resumed("cpu", SYSTEMS[1], &["40", "60"]);
    resumed("cpu", SYSTEMS[2], &["40", "60"]);
    if has_compiler() {
        resumed("emulated", SYSTEMS[0], &["33"]);
        resumed("emulated", SYSTEMS[2], &["33"]);
    }
}

fn resumed(device: &str, system: [&str; 3], cuts: &[&str]) {
    let whole = tempfile::tempdir().expect("a folder");
    let text = liquid(system, 97);
    std::fs::write(whole.path().join("p.ron"), &text).expect("written");
    go(whole.path(), device, &["--pipeline", "p.ron"]);
    let rows = attempts(&csv(&whole.path().join("p.exchange.csv")), 3);
    assert_eq!(rows.len(), 9);
    let moved = rows.iter().flat_map(|row| row.from.iter().enumerate()).filter(|(r, from)| r != *from).count();
    assert!(moved >= 4, "{}: {moved} replicas moved", system[0]);
    for steps in cuts.iter().copied() {
        let cut = tempfile::tempdir().expect("a folder");
        std::fs::write(cut.path().join("p.ron"), &text).expect("written");
        go(cut.path(), device, &["--pipeline", "p.ron", "--steps", steps]);
        if steps == "33" {
            // the newest one of replica 1 is now that of step 20
            std::fs::rename(cut.path().join("p.1.checkpoint.1"), cut.path().join("p.1.checkpoint"))
                .expect("an earlier checkpoint");
        }
        go(cut.path(), device, &["--pipeline", "p.ron", "--resume"]);
        same(&format!("{device}, {}, cut at step {steps}", system[0]), cut.path(), whole.path());
    }
    if device == "cpu" {
        let other = tempfile::tempdir().expect("a folder");
        std::fs::write(other.path().join("p.ron"), &text).expect("written");
        go_with(other.path(), device, "7", &["--pipeline", "p.ron"]);
        same("7 threads", other.path(), whole.path());
    }
}

/// A run that is killed resumes with the bits of one that was not.
#[test]
#[ignore = "3 seconds"]
fn killed_runs_resume_with_the_same_bits() {
    let text = liquid(SYSTEMS[0], 3_000);
    let [whole, killed] = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
    for f in [&whole, &killed] {
        std::fs::write(f.path().join("p.ron"), &text).expect("written");
    }
    go(whole.path(), "cpu", &["--pipeline", "p.ron"]);
    let mut resume = vec![];
    let mut kills = 0;
    for checkpoint in ["p.2.checkpoint", "p.0.checkpoint.1"] {
        let _ = std::fs::remove_file(killed.path().join("mark"));
        let mut c = Command::new(program());
        c.current_dir(killed.path()).args(["--quiet", "--device", "cpu", "--pipeline", "p.ron"]).args(&resume);
        let before = std::fs::metadata(killed.path().join(checkpoint)).and_then(|m| m.modified()).ok();
        let mut child = c.spawn().expect("started");
        let begun = std::time::Instant::now();
        while std::fs::metadata(killed.path().join(checkpoint)).and_then(|m| m.modified()).ok() == before {
            assert!(begun.elapsed().as_secs() < 120, "no checkpoint");
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        std::thread::sleep(std::time::Duration::from_millis(37));
        child.kill().expect("killed");
        kills += usize::from(!child.wait().expect("ended").success());
        resume = vec!["--resume=auto"];
    }
    assert_eq!(kills, 2, "the run ended before it was killed");
    go(killed.path(), "cpu", &["--pipeline", "p.ron", "--resume"]);
    same("killed", killed.path(), whole.path());
}

/// A replica whose attempts are all rejected has the bits of a run without exchange: with energies that differ too much, and with
/// bonds that are too long for the other replica's potential, which is an error during a step.
#[test]
#[ignore = "5 seconds"]
fn rejected_attempts_change_nothing() {
    let chains = r#"Fene(bonds: { "*": (k: 30.0, R0: Each([4.0, 1.0, 4.0])) })"#;
    let soft = r#"HarmonicRepulsion(r_cut: 1.0, pairs: { ("*", "*"): (alpha: Each([1.0, 300.0, 1.0])) })"#;
    let polymers = "Polymers(box: [9.0, 9.0, 9.0], bond_length: Each([2.0, 0.8, 2.0]), distance: 0.0, molecules: [(molecule: \"A5\", count: 20)])";
    for device in devices() {
        for (forces, generator) in [(soft, None), (chains, Some(polymers))] {
            let text = liquid([forces, "NoseHooverChain(kT: 1.0, tau: 0.5)", ""], 61).replace("dt: 0.01", "dt: 0.001");
            let lattice =
                &text[text.find("Lattice").expect("a lattice")..text.find(", Velocities").expect("velocities")];
            let text = generator.map_or(text.clone(), |g| text.replace(lattice, g));
            let [with, without] = [text.clone(), text.replace("exchange: (every: 10),", "")].map(|text| {
                let f = tempfile::tempdir().expect("a folder");
                std::fs::write(f.path().join("p.ron"), text).expect("written");
                go(f.path(), device, &["--pipeline", "p.ron"]);
                f
            });
            let rows = attempts(&csv(&with.path().join("p.exchange.csv")), 3);
            assert_eq!(rows.len(), 6);
            assert!(rows.iter().all(|row| row.from == [0, 1, 2]), "{forces}: an attempt was accepted");
            for file in outputs().iter().filter(|f| f.ends_with("csv") && f.starts_with('t') || f.ends_with("gsd")) {
                let read = |f: &tempfile::TempDir| std::fs::read(f.path().join(file)).expect("a file");
                assert!(read(&with) == read(&without), "{device}, {forces}: {file} differs");
            }
        }
    }
}

/// The emulated device makes the decisions of the CPU while the trajectories agree.
#[test]
#[ignore = "3 seconds"]
fn the_emulated_device_agrees_with_the_cpu() {
    if !has_compiler() {
        return;
    }
    for system in &SYSTEMS[..2] {
        let tables = ["cpu", "emulated"].map(|device| {
            let f = tempfile::tempdir().expect("a folder");
            let text = liquid(*system, 61).replace("seed: 5", "precision: Double, seed: 5");
            std::fs::write(f.path().join("p.ron"), text).expect("written");
            go(f.path(), device, &["--pipeline", "p.ron"]);
            csv(&f.path().join("p.exchange.csv"))
        });
        for (name, cpu) in &tables[0] {
            for (a, b) in cpu.iter().zip(&tables[1][name]) {
                assert!((a - b).abs() <= 1e-9 * a.abs(), "{name}: {a} on the CPU, {b} on the emulated device");
            }
        }
        assert_eq!(tables[0]["step"], [10.0, 20.0, 30.0, 40.0, 50.0, 60.0]);
    }
}

/// If a replica fails, the others end at the next attempt with checkpoints of the one before.
#[test]
#[ignore = "3 seconds"]
fn a_replica_that_fails_ends_the_others() {
    for device in devices() {
        let f = tempfile::tempdir().expect("a folder");
        // the state of NoseHooverChain at the begin of a stage depends on its time step
        let system = [SYSTEMS[0][0], "Langevin(kT: Each([1.0, 1.2, 1.4]), gamma: 1.0)", ""];
        let text = liquid(system, 97).replace("dt: 0.02", "dt: Each([0.02, 9.0, 0.02])");
        std::fs::write(f.path().join("p.ron"), &text).expect("written");
        let out = galamost(f.path(), &["--pipeline", "p.ron", "--device", device]);
        let log = words(&out);
        assert_eq!(out.status.code(), Some(1), "{log}");
        assert!(log.contains("1 of 3 replicas failed; the others ended at the next exchange"), "{log}");
        assert!(log.contains("another replica has ended its run"), "{log}");
        // after a correction, all resume together
        std::fs::write(f.path().join("p.ron"), text.replace("Each([0.02, 9.0, 0.02])", "0.02")).expect("written");
        go(f.path(), device, &["--pipeline", "p.ron", "--resume", "--resume-changed"]);
        assert_eq!(csv(&f.path().join("p.exchange.csv"))["step"].len(), 9);
    }
}

/// Checks that a pipeline has this mistake, which is reported once, where its text has `at` first.
fn is_located(folder: &Path, text: &str, at: &str, message: &str) {
    std::fs::write(folder.join("p.ron"), text).expect("written");
    let out = galamost(folder, &["check", "p.ron", "--device", "cpu"]);
    let printed = words(&out);
    assert_eq!(out.status.code(), Some(2), "{message}: {printed}");
    let (k, line) = text.lines().enumerate().find(|(_, l)| l.contains(at)).expect(at);
    let column = line[..line.find(at).expect(at)].chars().count() + 1;
    let begin = format!("p.ron:{}:{column}:", k + 1);
    assert!(printed.lines().any(|l| l.starts_with(&begin) && l.contains(message)), "{begin} {message}\n{printed}");
    assert_eq!(printed.matches(message).count(), 1, "once: {printed}");
}

/// Flows and forces that change with time have no equilibrium whose states replicas could exchange.
#[test]
fn driven_systems_do_not_exchange() {
    let f = tempfile::tempdir().expect("a folder");
    let good = liquid(SYSTEMS[0], 97);
    let force = |text: &str| good.replace("forces: [", &format!("forces: [{text}, "));
    let flow = "drives a flow; replicas exchange particles in equilibrium only";
    for (text, component) in [
        (force("PeriodicPoiseuille(force: Each([0.0, 0.1, 0.2]))"), "PeriodicPoiseuille"),
        (force("PeriodicForce(force: 0.1, flow: X, gradient: Z)"), "PeriodicForce"),
        (
            good.replace("updaters: [", "updaters: [ReversePerturbation(every: 10, slabs: 4, report: 20, file: \"r.{replica}.csv\")"),
            "ReversePerturbation",
        ),
        (
            good.replace(
                "tau: 0.5)",
                "tau: 0.5), Bounce(wall: Plane(point: (0.0, 0.0, 0.0), normal: (0.0, 0.0, 1.0)), rule: Back, velocity: [0.5, 0.0, 0.0])",
            ),
            "Bounce",
        ),
    ] {
        is_located(f.path(), &text, component, &format!("{component} {flow}"));
    }
    let field = "PeriodicForce(force: Sine(mean: 0.0, amplitude: 1.0, period: 100), flow: Z, gradient: Z)";
    is_located(f.path(), &force(field), "PeriodicForce", "a parameter of PeriodicForce changes with time");
    // along its own gradient the force has an energy
    let wave = force("PeriodicForce(force: Each([0.1, 0.2, 0.3]), flow: Z, gradient: Z)");
    std::fs::write(f.path().join("p.ron"), wave).expect("written");
    let out = galamost(f.path(), &["check", "p.ron", "--device", "cpu"]);
    assert!(out.status.success(), "{}", words(&out));
}

/// Replicas that move other particles have no states in common.
#[test]
fn replicas_with_other_groups_do_not_exchange() {
    let f = tempfile::tempdir().expect("a folder");
    let (tags, exchange) = ("group: Tags(first: 0, last: 99)", "(every: 10)");
    let good = liquid(SYSTEMS[0], 97).replace("tau: 0.5)", &format!("tau: 0.5, {tags})"));
    is_located(
        f.path(),
        &good.replace("last: 99", "last: Each([99, 99, 149])"),
        exchange,
        "the same particles in the group of NoseHooverChain; those of replicas 0 and 2 differ",
    );
    let random = "RandomPositions(count: 300, box: [5.0, 6.0, 5.0])";
    let lattice = "Lattice(lattice: Sc, cells: [5, 6, 5], density: 2.0, types: {\"A\": 0.5, \"B\": 0.5})";
    is_located(
        f.path(),
        &good.replace(lattice, random),
        exchange,
        "the same places of particles that no integrator moves; those of replicas 0 and 1 differ",
    );
    std::fs::write(f.path().join("p.ron"), good).expect("written");
    let out = galamost(f.path(), &["check", "p.ron", "--device", "cpu"]);
    assert!(out.status.success(), "{}", words(&out));
}

/// No energy forbids positions behind a `Bounce` wall, so replicas with different ones would accept each other's particles there.
#[test]
fn replicas_with_other_bounce_walls_do_not_exchange() {
    let f = tempfile::tempdir().expect("a folder");
    let text = |wall: &str| {
        format!(
            "(seed: 5, replicas: 2, exchange: (every: 10), device: Cpu, initial: [Polymers(box: [10.0, 10.0, 10.0], \
             molecules: [(molecule: \"A\", count: 20, region: Sphere(radius: 1.9))]), Velocities(kT: 1.0)], integrators: [\
             Langevin(kT: Each([1.0, 1.1]), gamma: 1.0), Bounce(wall: Sphere(center: [0.0, 0.0, 0.0], radius: {wall}, side: Inside), \
             rule: Forward)], stages: [(steps: 20, dt: 0.02)])"
        )
    };
    for (wall, code) in [("Each([2.0, 3.0])", 2), ("2.0", 0)] {
        std::fs::write(f.path().join("p.ron"), text(wall)).expect("written");
        let out = galamost(f.path(), &["--pipeline", "p.ron", "--overwrite", "-q"]);
        let printed = words(&out);
        assert_eq!(out.status.code(), Some(code), "{wall}: {printed}");
        let refused = printed.contains("must have the same parameters of Bounce");
        assert_eq!(refused, code == 2, "{wall}: {printed}");
        assert!(!refused || printed.contains("p.ron:1:"), "{printed}");
    }
}

/// Every mistake is found before the first step and has its place in the file.
#[test]
#[ignore = "3 seconds"]
fn mistakes_are_located() {
    let f = tempfile::tempdir().expect("a folder");
    let good = liquid(SYSTEMS[0], 97);
    let check = |text: &str, at: &str, message: &str| is_located(f.path(), text, at, message);
    let (kt, exchange) = ("Each([1.0, 1.2, 1.4])", "(every: 10)");
    check(&good.replace(exchange, "(every: 0 )"), "0 )", "0 is not allowed here");
    check(&good.replace(exchange, "(evry: 10)"), "evry", "did you mean `every`?");
    check(&good.replace(kt, "1.0"), exchange, "an exchange needs all replicas in one run: set `replicas`");
    check(&good.replace("(every: 20)", "(every: 25)"), exchange, "must be a multiple of 10");
    check(&good.replace("(every: 20)", "(every: 20, keep: 1)"), exchange, "`keep` of `checkpoint` must be at least 2");
    let chain = "NoseHooverChain(kT: Each([1.0, 1.2, 1.4]), tau: 0.5)";
    check(
        &good.replace(chain, "Berendsen(kT: Each([1.0, 1.2, 1.4]), tau: 0.5)"),
        "(name: \"one\"",
        "stage `one` has no thermostat that samples the canonical distribution, as an exchange of replicas needs it: use Langevin, Bussi \
         or NoseHooverChain, for example; relax overlaps in a pipeline without `exchange`",
    );
    let ramp = good.replace(kt, "Each([1.0, 1.2, Ramp(from: 1.0, to: 2.0, steps: 50)])");
    check(&ramp, "NoseHooverChain", "NoseHooverChain: kT changes with time");
    let two = "Langevin(kT: 1.0, gamma: 1.0, group: Types([\"A\"])), Langevin(kT: Each([1.0, 1.2, 1.4]), gamma: 1.0, group: Types([\"B\"]))";
    let two = good.replace(chain, two).replace("[Langevin", "[\n Langevin").replace("), Langevin", "),\n   Langevin");
    check(&two, "Langevin(kT: E", "Langevin has kT 1.2, but Langevin has 1;");
    check(
        &good.replace(chain, &format!("{chain}, LeesEdwards(rate: 0.1)")),
        "LeesEdwards",
        "LeesEdwards drives a flow",
    );
    let npt = "MtkNpt(kT: Each([1.0, 1.2, 1.4]), tau: 0.5, pressure: 20.0, tau_p: 0.5)";
    check(
        &good.replace(chain, npt),
        "MtkNpt",
        "MtkNpt changes the box; replicas exchange particles at constant volume only",
    );
    check(
        &good.replace("density: 2.0", "density: Each([2.0, 2.0, 2.1])"),
        exchange,
        "the same box; those of replicas 0 and 2 differ",
    );
    check(
        &good.replace("[5, 6, 5]", "[5, 6, Each([5, 5, 6])]"),
        exchange,
        "numbers of particles of each type and mass",
    );
    check(
        &good.replace("{\"A\": 0.5, \"B\": 0.5}", "{\"A\": Each([0.5, 0.5, 0.4]), \"B\": Each([0.5, 0.5, 0.6])}"),
        exchange,
        "numbers of particles of each type and mass",
    );
    check(&good.replace("steps: 60", "steps: Each([60, 60, 70])"), exchange, "the same steps in each stage");
    check(
        &good.replace("seed: 5", "seed: 5, precision: Each([Mixed, Mixed, Double])"),
        exchange,
        "the same `precision`",
    );
    check(
        &good.replace("(every: 10)", "(every: 10, file: \"x.{replica}.csv\")"),
        "(every: 10, f",
        "the same `exchange`; those of replicas 0 and 1",
    );
    check(
        &good.replace("(every: 10)", "(every: 10, file: \"t.1.csv\")"),
        "\"t.{replica}.csv\"",
        "is the table of exchanges",
    );
    std::fs::write(f.path().join("p.ron"), &good).expect("written");
    let out = galamost(f.path(), &["--pipeline", "p.ron", "--device", "cpu", "--resume"]);
    assert!(words(&out).contains("the replicas have no checkpoints of the same attempt"), "{}", words(&out));
}
