//! All ranks take part in what one of them needs before the first step, or when it fails.

use super::{LJ, SYSTEM, outcome, pipeline};
use galamost_engine::pipeline::DeviceChoice;
use galamost_tests::{has_compiler, output, plan, plan_in, run_plan};
use std::path::{Path, PathBuf};

/// Writes a file of particles of type A at rest, but one of which moves along x.
fn write(folder: &Path, sides: [f64; 3], places: &[[f64; 3]], mover: (usize, f64), bonds: &[[usize; 2]]) {
    let n = places.len();
    let rows = |row: &dyn Fn(usize) -> String| (0..n).map(row).collect::<Vec<_>>().join("\n");
    let [x, y, z] = sides;
    let velocity = |i: usize| format!("{} 0 0", if i == mover.0 { mover.1 } else { 0.0 });
    let linked: Vec<String> = bonds.iter().map(|[a, b]| format!("X {a} {b}")).collect();
    let xml = format!(
        "<galamost_xml version=\"1.3\"><configuration time_step=\"0\" dimensions=\"3\" natoms=\"{n}\">
         <box lx=\"{x}\" ly=\"{y}\" lz=\"{z}\"/><position num=\"{n}\">\n{}\n</position><velocity num=\"{n}\">\n{}\n</velocity>
         <type num=\"{n}\">\n{}\n</type><bond num=\"{}\">\n{}\n</bond></configuration></galamost_xml>",
        rows(&|i| places[i].map(|p| p.to_string()).join(" ")),
        rows(&velocity),
        rows(&|_| "A".into()),
        linked.len(),
        linked.join("\n")
    );
    std::fs::write(folder.join("p.xml"), xml).expect("written");
}

/// A pipeline, for this folder, of 1,000 particles that do not touch, two of which have a bond of length 1.4 that breaks at 1.5, and move apart.
pub fn breaking(folder: &Path) -> String {
    let place = |i: usize| {
        let x = 3.0 * (i % 10) as f64 + if i == 9 { -1.6 } else { 0.0 };
        [x - 13.5, 3.0 * (i / 10 % 10) as f64 - 13.5, 3.0 * (i / 100) as f64 - 13.5]
    };
    let places: Vec<_> = (0..1000).map(place).collect();
    write(folder, [30.0; 3], &places, (9, 40.0), &[[8, 9]]);
    let fene = "Fene(bonds: { \"X\": (k: 30.0, R0: 1.5, epsilon: 1.0, sigma: 1.0) })";
    format!(
        "(initial: [GalamostXml(file: \"p.xml\")], forces: [{LJ}, {fene}], integrators: [VelocityVerlet()],
          stages: [(steps: 100, dt: 0.002)])"
    )
}

/// A pipeline, for this folder, of 1,000 pairs at a fixed distance of 1, one of which begins with 1.2: more than the buffer allows.
pub fn stretched(folder: &Path) -> String {
    let a = 1.3;
    let place = |i: usize| {
        let of_pair = if i.is_multiple_of(2) { 0.15 } else { -0.15 }
            + if i == 454 {
                -0.1
            } else if i == 455 {
                0.1
            } else {
                0.0
            };
        [a * (i % 10) as f64 - 5.85 + of_pair, a * (i / 10 % 10) as f64 - 5.85, a * (i / 100) as f64 - 12.35]
    };
    let places: Vec<_> = (0..2000).map(place).collect();
    let bonds: Vec<_> = (0..1000).map(|k| [2 * k, 2 * k + 1]).collect();
    write(folder, [10.0 * a, 10.0 * a, 20.0 * a], &places, (0, 0.0), &bonds);
    "(initial: [GalamostXml(file: \"p.xml\")], integrators: [VelocityVerlet()], neighbors: (buffer: 0.1, exclude: [Bonds]),
      forces: [Wca(pairs: { (\"A\", \"A\"): (epsilon: 1.0, sigma: 0.9) }), Constraints(types: { \"X\": 1.0 })],
      analyzers: [Thermo(every: 2, file: \"t.csv\")], stages: [(steps: 16, dt: 0.001)])"
        .into()
}

/// An empty folder.
fn folder(name: &str) -> PathBuf {
    let folder = output().join(format!("starts-{name}"));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

#[test]
fn a_start_that_moves_particles_of_one_rank_makes_all_lists_anew() {
    if !has_compiler() {
        return;
    }
    let folder = folder("stretched");
    let text = stretched(&folder).replace("p.xml", &folder.join("p.xml").to_string_lossy());
    assert!(outcome(&text, 2) == outcome(&text, 1), "two GPUs have another state than one");
}

#[test]
fn a_fault_in_the_first_forces_of_one_rank_ends_all() {
    if !has_compiler() {
        return;
    }
    let folder = folder("broken");
    let text = breaking(&folder);
    let mut plan =
        plan_in(&folder.join("p.ron"), &text, DeviceChoice::Emulated).unwrap_or_else(|e| panic!("{}", e.render()));
    plan.pipeline.gpus = 3;
    // the check refuses such a bond
    plan.snapshot.position[9][0] += 0.2;
    let begun = std::time::Instant::now();
    let error = run_plan(&plan).err().expect("a fault").render();
    assert!(error.contains("longer than its potential allows"), "{error}");
    assert!(begun.elapsed().as_secs() < 20, "{error}");
}

/// In a step in which one rank halts, others request a rebuild: all learn both, and none waits for the one that has halted.
#[test]
#[ignore = "5 seconds"]
fn a_rank_that_fails_while_others_rebuild_ends_all_of_them() {
    if !has_compiler() {
        return;
    }
    let text = pipeline(SYSTEM, LJ, "VelocityVerlet()", "neighbors: (buffer: 0.02, list: Staged)");
    let mut faults = 0;
    for dt in ["0.05", "0.07", "0.1", "0.15", "0.2"] {
        let mut plan = plan(&text.replace("dt: 0.005", &format!("dt: {dt}")), DeviceChoice::Emulated).expect("a plan");
        plan.pipeline.gpus = 4;
        let started = std::time::Instant::now();
        if let Err(error) = run_plan(&plan) {
            faults += 1;
            let error = error.render();
            assert!(error.contains("particle with tag") && started.elapsed().as_secs() < 60, "{dt}: {error}");
        }
    }
    assert!(faults > 1, "{faults} faults");
}
