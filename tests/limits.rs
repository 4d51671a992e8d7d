//! Sizes that follow from numbers in the pipeline: dilute systems cost little, and what does not fit is refused before the
//! run with the component, the size and the bytes.

use galamost_engine::pipeline::DeviceChoice;
use galamost_plugin_api::snapshot::Snapshot;
use galamost_tests::{advance, backend, devices, plan_of, program, words};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

const LJ: &str = r#"LennardJones(r_cut: 2.5, pairs: { ("A", "A"): (epsilon: 1.0, sigma: 1.0) })"#;

/// Runs a command of the program with at most this much address space.
fn limited(folder: &std::path::Path, megabytes: u32, args: &[&str]) -> Output {
    let script = format!("ulimit -c 0; ulimit -v {}; exec \"$0\" \"$@\"", megabytes * 1024);
    let mut shell = Command::new("bash");
    // threads reserve address space for their stacks and heaps
    shell.args(["-c", &script]).arg(program()).args(args).args(["--threads", "2"]).current_dir(folder);
    shell.env("MALLOC_ARENA_MAX", "2").output().expect("bash runs")
}

/// A cluster of 125 particles that interact.
fn cluster(box_length: f64) -> Snapshot {
    let mut s = Snapshot { dimensions: 3, box_length: [box_length; 3], ..Snapshot::default() };
    let a = s.type_id("A");
    for i in 0..125u32 {
        let cell = [i % 5, i / 5 % 5, i / 25];
        s.push(a, std::array::from_fn(|k| 1.2 * f64::from(cell[k]) - 0.3 * box_length));
        s.velocity[i as usize] = std::array::from_fn(|k| 0.1 * (f64::from((i * (k as u32 + 3)) % 7) - 3.0));
    }
    s
}

/// The grid of a dilute system has few cells, and its forces are those of a small box.
#[test]
fn a_dilute_system_has_a_small_grid() {
    let text = format!(
        "(precision: Double, forces: [{LJ}], integrators: [VelocityVerlet()], stages: [(steps: 50, dt: 0.002)])"
    );
    let energy = |box_length: f64, device: DeviceChoice| {
        let plan = plan_of(&text, cluster(box_length), device).unwrap_or_else(|e| panic!("{}", e.render()));
        let mut b = backend(&plan);
        b.begin_stage(&plan.stages[0], false).expect("begun");
        advance(&mut *b, 50);
        b.sums().expect("sums").components[0].energy
    };
    let expected = energy(30.0, DeviceChoice::Cpu);
    for device in devices() {
        let begun = Instant::now();
        let found = energy(20_000.0, device);
        // positions are rounded to 2⁻⁵² of the box, so forces differ in the last digits only
        assert!((found - expected).abs() < 1e-8 * expected.abs(), "{device:?}: {found}, {expected}");
        assert!(begun.elapsed() < Duration::from_secs(60), "{device:?}: {:?}", begun.elapsed());
    }
}

const PIPELINE: &str = r#"(
    seed: 1,
    initial: [ RandomPositions(count: 125, box: [20000.0, 20000.0, 20000.0]), Velocities(kT: 1.0) ],
    forces: [ LennardJones(r_cut: 2.5, pairs: { ("A", "A"): (epsilon: 1.0, sigma: 1.0) }) ],
    integrators: [ VelocityVerlet() ],
    stages: [ (steps: 10, dt: 0.001) ],
)"#;

#[test]
fn dilute_systems_and_tiny_cutoffs_run_in_little_memory() {
    let f = tempfile::tempdir().expect("a folder");
    std::fs::write(f.path().join("p.ron"), PIPELINE).expect("written");
    let small = "initial[0]=RandomPositions(count: 1000, box: [10.0, 10.0, 10.0])";
    for set in [vec![], vec![small, "forces[0].r_cut=1e-9"], vec!["forces[0].r_cut=1e-9"]] {
        let mut args = vec!["--pipeline", "p.ron", "--device", "cpu"];
        set.iter().for_each(|s| args.extend(["--set", s]));
        let begun = Instant::now();
        let out = limited(f.path(), 1000, &args);
        assert!(out.status.success(), "{set:?}: {}", words(&out));
        assert!(begun.elapsed() < Duration::from_secs(60), "{set:?}: {:?}", begun.elapsed());
    }
}

/// What the numbers of a pipeline would need more memory for than there is, and what is said at their position.
const TOO_LARGE: &[(&str, &str)] = &[
    (
        "initial[0]=RandomPositions(count: 2000000000, box: [2000.0, 2000.0, 2000.0])",
        "RandomPositions: 2000000000 particles",
    ),
    ("initial[0]=Lattice(lattice: Fcc, cells: [700, 700, 700], density: 1.0)", "Lattice: 1372000000 particles"),
    ("initial[0]=Lattice(lattice: Fcc, cells: [4000000000, 4000000000, 4000000000], density: 1.0)", "particles exceed"),
    (
        "initial[0]=Polymers(box: [900.0, 900.0, 900.0], molecules: [(molecule: \"A10\", count: 100000000)])",
        "Polymers: 1000000000 particles",
    ),
    (
        "initial=[RandomPositions(count: 1000, box: [9.0, 9.0, 9.0]), Replicate(times: [100, 100, 100])]",
        "1000000000 particles",
    ),
    (
        "analyzers=[DensityGrid(every: 10, file: \"{step}.npy\", grid: [2000, 2000, 2000])]",
        "DensityGrid: the grid of 2000 × 2000 × 2000 cells for 1 types: this needs 96.0 GB of memory",
    ),
    (
        "forces=[MdScf(scheme: Paper, grid: [1000, 1000, 1000], kappa: 0.1, chi: { (\"A\", \"A\"): 0.0 })]",
        "MdScf: the grid of 1000 × 1000 × 1000 cells for 1 fields: this needs 24.0 GB of memory",
    ),
    (
        "analyzers=[Msd(every: 1, file: \"m.csv\", lags: [1, 1000000000000000000], origins: 1)]",
        "it would store 1000000000000000001 samples",
    ),
];

#[test]
fn sizes_that_do_not_fit_are_refused_before_the_run() {
    let f = tempfile::tempdir().expect("a folder");
    std::fs::write(f.path().join("p.ron"), PIPELINE).expect("written");
    for (set, expected) in TOO_LARGE {
        let begun = Instant::now();
        let out = limited(f.path(), 2000, &["check", "p.ron", "--device", "cpu", "--set", set]);
        let said = words(&out);
        assert_eq!(out.status.code(), Some(2), "{set}: {said}");
        assert!(said.contains(expected), "{set}: {said}");
        assert!(begun.elapsed() < Duration::from_secs(30), "{set}: {:?}", begun.elapsed());
    }
}

#[test]
fn rows_of_a_table_that_do_not_fit_are_refused() {
    let f = tempfile::tempdir().expect("a folder");
    let lj = "LennardJones(r_cut: 2.5, pairs: { (\"A\", \"A\"): (epsilon: 1.0, sigma: 1.0) })";
    let args = ["table", "make", lj, "--pair", "A", "A", "--n", "1000000000000", "--out", "t.csv"];
    let out = limited(f.path(), 2000, &args);
    let said = words(&out);
    assert_eq!(out.status.code(), Some(2), "{said}");
    assert!(said.contains("--n 1000000000000: this needs 100000.0 GB of memory"), "{said}");
}

/// A neighbor list that does not fit is an error of the run: its length depends on the positions.
#[test]
fn a_neighbor_list_that_does_not_fit_is_reported() {
    let f = tempfile::tempdir().expect("a folder");
    std::fs::write(f.path().join("p.ron"), PIPELINE).expect("written");
    let set = "initial[0]=RandomPositions(count: 30000, box: [10.0, 10.0, 10.0])";
    let soft = "forces=[HarmonicRepulsion(r_cut: 5.0, pairs: { (\"A\", \"A\"): (alpha: 1.0) })]";
    let args =
        ["--pipeline", "p.ron", "--device", "cpu", "--set", set, "--set", soft, "--set", "neighbors=(buffer: 1.0)"];
    let out = limited(f.path(), 1500, &args);
    let said = words(&out);
    assert_eq!(out.status.code(), Some(1), "{said}");
    assert!(
        said.contains("the neighbor list of 30000 particles with up to ") && said.contains("this needs "),
        "{said}"
    );
}
