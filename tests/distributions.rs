//! Distributions of pairs, bonds, angles and dihedrals, against freud, NumPy and each other.

use galamost::selftest::standard_system;
use galamost_engine::pipeline::DeviceChoice;
use galamost_plugin_api::snapshot::Snapshot;
use galamost_tests::{csv, plan_of, python, repository, run_plan, words};
use std::path::Path;
use std::process::Command;

/// Particles at random places that are multiples of 1/128, so that squares of distances are exact in single precision too.
fn scattered(n: usize, dimensions: u32) -> Snapshot {
    let flat = dimensions == 2;
    let box_length = if flat { [16.0, 20.0, 0.0] } else { [12.0, 10.0, 14.0] };
    let mut s = Snapshot { dimensions, box_length, ..Snapshot::default() };
    let kinds = [s.type_id("A"), s.type_id("B")];
    let mut x = 7u64;
    for i in 0..n {
        let position = box_length.map(|l| {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((x >> 11) as f64 / (1u64 << 53) as f64 * l * 128.0).floor() / 128.0 - 0.5 * l
        });
        s.push(kinds[usize::from(i % 3 == 0)], position);
    }
    s
}

/// Lets analyzers look at a state.
fn look(s: Snapshot, analyzers: &str) {
    let text = format!("(precision: Double, analyzers: [{analyzers}], stages: [(steps: 0, dt: 0.01)])");
    let plan = plan_of(&text, s, DeviceChoice::Cpu).unwrap_or_else(|e| panic!("{}", e.render()));
    run_plan(&plan).unwrap_or_else(|e| panic!("{}", e.render()));
}

fn file(folder: &Path, name: &str) -> String {
    format!("file: {:?}", folder.join(name).display().to_string())
}

/// The analyzers read by the field's own tools: g(r) as freud has it, links as NumPy computes them.
#[test]
#[ignore = "3 seconds"]
fn distributions_agree_with_freud_and_numpy() {
    let Some(python) = python() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let f = |name: &str| file(folder.path(), name);
    for (dimensions, n) in [(3, 3000), (2, 1500)] {
        look(
            scattered(n, dimensions),
            &format!(
                "Gsd(every: 1, {}), Rdf(every: 1, {}, r_max: 2.9, bins: 100)",
                f(&format!("{dimensions}.gsd")),
                f(&format!("{dimensions}.csv"))
            ),
        );
    }
    look(
        standard_system(),
        &format!(
            "Gsd(every: 1, {}), BondDistribution(every: 1, {}, min: 0.2, max: 3.0, bins: 40), AngleDistribution(every: 1, {}, bins: 36), \
             DihedralDistribution(every: 1, {}, bins: 24), Rdf(every: 1, {}, r_max: 2.5, bins: 50, exclude: [Bonds, Angles, Dihedrals]), \
             Rdf(every: 1, {}, r_max: 2.5, bins: 50, only: SameMolecule), Rdf(every: 1, {}, r_max: 2.5, bins: 50)",
            f("links.gsd"),
            f("bond.csv"),
            f("angle.csv"),
            f("dihedral.csv"),
            f("excluded.csv"),
            f("same.csv"),
            f("links.csv")
        ),
    );
    let script = repository().join("tests/python/distributions.py");
    let out = Command::new(python).arg(script).arg(folder.path()).output().expect("python runs");
    print!("{}", String::from_utf8_lossy(&out.stdout));
    assert!(out.status.success(), "{}", words(&out));
}

const LIQUID: &str = "(seed: 3, initial: [Lattice(lattice: Sc, cells: [6, 6, 6], density: 0.7, types: { \"A\": 0.6, \"B\": 0.4 }), \
    Velocities(kT: 1.0)], forces: [Wca(pairs: { (\"A\", \"A\"): (epsilon: 1.0, sigma: 1.0), (\"A\", \"B\"): (epsilon: 1.0, sigma: 1.0), \
    (\"B\", \"B\"): (epsilon: 1.0, sigma: 1.0) })], integrators: [VelocityVerlet()], analyzers: [ANALYZERS], stages: [(steps: STEPS, dt: 0.005)])";

/// Covariances of counts are those of the counts that `Rdf` gives sample by sample.
#[test]
fn covariances_agree_with_the_counts() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |analyzers: &str, steps: u64| {
        let text = LIQUID.replace("ANALYZERS", analyzers).replace("STEPS", &steps.to_string());
        let plan = galamost_tests::plan_in(&folder.path().join("p.ron"), &text, DeviceChoice::Cpu);
        run_plan(&plan.unwrap_or_else(|e| panic!("{}", e.render()))).unwrap_or_else(|e| panic!("{}", e.render()));
    };
    let pairs =
        "pairs: { (\"A\", \"B\"): (min: 0.0, max: 2.0, bins: 20), (\"B\", \"B\"): (min: 0.5, max: 2.5, bins: 20) }";
    run(&format!("BinCovariance(every: 20, start: 20, file: \"c.csv\", {pairs})"), 80);
    // g of one sample alone, since those before `start` do not count
    let mut samples: Vec<[Vec<f64>; 2]> = vec![];
    for k in 1..=4 {
        run(&format!("Rdf(every: 20, start: {0}, file: \"g.csv\", r_max: 2.5, bins: 25)", 20 * k), 20 * k);
        let g = csv(&folder.path().join("g.csv"));
        samples.push([g["A-B"][..20].to_vec(), g["B-B"][5..].to_vec()]);
    }
    let text = std::fs::read_to_string(folder.path().join("c.csv")).expect("a table");
    // rows for all types, of which later ones replace others
    for (stars, written) in [
        (
            r#"("A", "*"): (min: 0.0, max: 2.0, bins: 9), ("A", "A"): None"#,
            r#"("A", "B"): (min: 0.0, max: 2.0, bins: 9)"#,
        ),
        (
            r#"("*", "*"): (min: 0.0, max: 2.0, bins: 9), ("B", "B"): (min: 1.0, max: 2.0, bins: 4)"#,
            r#"("A", "A"): (min: 0.0, max: 2.0, bins: 9), ("A", "B"): (min: 0.0, max: 2.0, bins: 9),
               ("B", "B"): (min: 1.0, max: 2.0, bins: 4)"#,
        ),
    ] {
        let [stars, written] = [stars, written].map(|pairs| {
            run(&format!("BinCovariance(every: 20, file: \"s.csv\", pairs: {{ {pairs} }})"), 40);
            std::fs::read_to_string(folder.path().join("s.csv")).expect("a table")
        });
        assert_eq!(stars, written);
    }
    let rows: Vec<Vec<&str>> = text.lines().skip(1).map(|l| l.split(',').collect()).collect();
    let number = |row: usize, column: usize| rows[row][column].parse::<f64>().expect("a number");
    assert_eq!((rows.len(), rows[0].len(), rows[0][0], rows[20][0]), (40, 44, "pair A-B", "pair B-B"));
    let count = |sample: &[Vec<f64>; 2], a: usize| sample[a / 20][a % 20] * number(a, 3);
    let mean_of = |f: &dyn Fn(&[Vec<f64>; 2]) -> f64| samples.iter().map(f).sum::<f64>() / 4.0;
    for a in 0..40 {
        let m = mean_of(&|s| count(s, a));
        assert!((number(a, 2) - m).abs() < 1e-10 * m.max(1.0), "mean {a}: {} and {m}", number(a, 2));
        for b in 0..40 {
            let c = mean_of(&|s| count(s, a) * count(s, b)) - m * mean_of(&|s| count(s, b));
            assert!((number(a, 4 + b) - c).abs() < 1e-9, "covariance {a} {b}: {} and {c}", number(a, 4 + b));
            assert_eq!(rows[a][4 + b], rows[b][4 + a]);
        }
    }
}

/// A run in two halves writes what the run in one piece writes, whatever the number of threads.
#[test]
fn restarts_and_threads_do_not_change_distributions() {
    let analyzers = "Rdf(every: 5, file: \"g.csv\", r_max: 2.5, bins: 50), \
        BinCovariance(every: 5, file: \"c.csv\", pairs: { (\"A\", \"B\"): (min: 0.0, max: 2.0, bins: 20) })";
    let run = |threads: &str, pieces: &[&[&str]]| {
        let folder = tempfile::tempdir().expect("a folder");
        let text = LIQUID.replace("ANALYZERS", analyzers).replace("STEPS", "100").replacen(
            '(',
            "(checkpoint: (every: 40), ",
            1,
        );
        std::fs::write(folder.path().join("p.ron"), text).expect("written");
        for more in pieces {
            let out = galamost_tests::galamost(
                folder.path(),
                &[&["--pipeline", "p.ron", "--device", "cpu", "--threads", threads], *more].concat(),
            );
            assert!(out.status.success(), "{}", words(&out));
        }
        ["g.csv", "c.csv"].map(|f| std::fs::read_to_string(folder.path().join(f)).expect("a table"))
    };
    let whole = run("1", &[&[]]);
    assert_eq!(run("2", &[&["--steps", "43"], &["--resume"]]), whole);
}

/// Particles that reactions join, beginning without any bond.
const JOINED: &str = r#"(
    seed: 7,
    precision: Double,
    initial: [ RandomPositions(count: 200, box: [6.0, 6.0, 6.0]), LinkTypes(bonds: ["A-A"]), Velocities(kT: 1.0) ],
    forces: [ HarmonicBond(bonds: { "A-A": (k: 20.0, r0: 0.5) }) ],
    integrators: [ Langevin(kT: 1.0, gamma: 1.0) ],
    updaters: [ Reactions(every: 5, r_cut: 1.0, limits: { "A": 2 }, file: "events.csv", reactions: [
        (kind: Join, of: ("A", "A"), p: 0.05),
    ]) ],
    analyzers: [ ANALYZERS ],
    checkpoint: (every: 50),
    stages: [ (steps: 60, dt: 0.005) ],
)"#;

/// Runs `JOINED` with analyzers in pieces and returns whether all of them succeeded, and what they said.
fn joined(folder: &Path, device: &str, analyzers: &str, pieces: &[&[&str]]) -> (bool, String) {
    std::fs::write(folder.join("p.ron"), JOINED.replace("ANALYZERS", analyzers)).expect("written");
    let (mut done, mut said) = (true, String::new());
    for more in pieces {
        let out = galamost_tests::galamost(folder, &[&["--pipeline", "p.ron", "--device", device], *more].concat());
        done &= out.status.success();
        said += &words(&out);
    }
    (done, said)
}

/// The molecules of a table are those of its first sample, also in a run that was resumed after further reactions.
fn a_restart_keeps_the_molecules(device: &str) {
    let analyzers = "Rdf(every: 10, start: 10, file: \"g.csv\", r_max: 2.5, bins: 20, of: Molecules), \
        Msd(every: 10, start: 10, file: \"m.csv\", points: 4, levels: 1, of: Molecules)";
    let run = |pieces: &[&[&str]]| {
        let folder = tempfile::tempdir().expect("a folder");
        let (done, said) = joined(folder.path(), device, analyzers, pieces);
        assert!(done, "{said}");
        ["g.csv", "m.csv", "events.csv"].map(|f| std::fs::read_to_string(folder.path().join(f)).expect("a table"))
    };
    let whole = run(&[&[]]);
    // reactions between the first sample and the checkpoint change which particles bonds connect
    let steps = whole[2].lines().skip(1).filter_map(|l| l.split(',').next()?.parse::<u64>().ok());
    let (early, later): (Vec<u64>, Vec<u64>) = steps.filter(|s| *s < 35).partition(|s| *s < 10);
    assert!(!early.is_empty() && !later.is_empty(), "{}", whole[2]);
    assert_eq!(run(&[&["--steps", "35"], &["--resume"]]), whole, "{device}");
}

#[test]
fn a_restart_keeps_the_molecules_of_a_table() {
    a_restart_keeps_the_molecules("cpu");
}

#[test]
#[ignore = "10 seconds"]
fn a_restart_keeps_the_molecules_on_a_device() {
    if galamost_tests::has_compiler() {
        a_restart_keeps_the_molecules("emulated");
    }
}

/// Before the first bond there is no molecule to measure; the message says how to begin later.
#[test]
fn molecules_that_form_later_need_a_later_start() {
    for analyzer in
        ["Rdf(every: 10, file: \"t.csv\", r_max: 2.5, of: Molecules)", "Msd(every: 10, file: \"t.csv\", of: Molecules)"]
    {
        let folder = tempfile::tempdir().expect("a folder");
        let (done, said) = joined(folder.path(), "cpu", analyzer, &[&[]]);
        assert!(!done && said.contains("begin with `start` after reactions have formed the first ones"), "{said}");
    }
}
