//! The staged neighbor list on the emulated device, against the plain list: forces, energies, virials, trajectories,
//! restarts.

use galamost_engine::backend::Backend;
use galamost_engine::pipeline::DeviceChoice;
use galamost_engine::state::arrays::ArrayId;
use galamost_plugin_api::views::Wanted;
use galamost_tests::tolerances::below;
use galamost_tests::{advance, galamost, has_compiler, largest_difference, plan, run_plan, unwrapped, words};
use std::path::Path;
use std::sync::atomic::AtomicBool;

const LJ: &str = r#"LennardJones(r_cut: 2.0, mode: MODE, pairs: {
    ("A", "A"): (epsilon: 1.0, sigma: 1.0), ("A", "B"): (epsilon: 0.5, sigma: 0.9, r_cut: 1.7), ("B", "B"): (epsilon: 1.0, sigma: 0.9) })"#;
const DPD: &str = r#"Dpd(r_cut: 1.0, kT: 1.0, pairs: {
    ("A", "A"): (a: 25.0, sigma: 3.0), ("A", "B"): (a: 40.0, sigma: 3.0), ("B", "B"): (a: 25.0, sigma: 3.0) })"#;
const SOFT: &str = r#"HarmonicRepulsion(r_cut: 1.1, pairs: {
    ("A", "A"): (alpha: 12.5), ("A", "B"): (alpha: 20.0), ("B", "B"): (alpha: 12.5) })"#;

/// Random particles of two types in a box in which most blocks are narrower than half of it.
const FLUID: &str =
    r#"RandomPositions(count: 5000, box: [11.0, 12.5, 13.0], types: {"A": 0.5, "B": 0.5}), Velocities(kT: 1.0)"#;
/// In this one all are wider.
const SMALL: &str =
    r#"RandomPositions(count: 700, box: [5.0, 5.5, 6.0], types: {"A": 0.5, "B": 0.5}), Velocities(kT: 1.0)"#;
const LIQUID: &str =
    r#"Lattice(lattice: Fcc, cells: [10, 11, 12], density: 0.85, types: {"A": 0.5, "B": 0.5}), Velocities(kT: 1.0)"#;

fn pipeline(initial: &str, neighbors: &str, forces: &str, integrators: &str, precision: &str, steps: u64) -> String {
    format!(
        "(seed: 5, precision: {precision}, neighbors: ({neighbors}), initial: [{initial}], forces: [{forces}], \
         integrators: [{integrators}], stages: [(steps: {steps}, dt: 0.005)])"
    )
}

/// Begins a run on the emulated device, with energies and virials; `length` replaces the box lengths of the generators.
fn started(text: &str, length: Option<[f64; 3]>) -> Box<dyn Backend> {
    let p = plan(text, DeviceChoice::Emulated).unwrap_or_else(|e| panic!("{}", e.render()));
    let mut snapshot = p.snapshot.clone();
    snapshot.box_length = length.unwrap_or(snapshot.box_length);
    let (before, rest) = text.split_once("initial: [").expect("generators");
    let (_, after) = rest.split_once("], forces").expect("generators");
    galamost_tests::started(&format!("{before}forces{after}"), snapshot, DeviceChoice::Emulated)
}

/// Forces of all particles by tag, four numbers each.
fn forces(b: &mut dyn Backend) -> Vec<f64> {
    let bytes = b.read(ArrayId::Force.name()).expect("forces");
    bytes.as_chunks::<4>().0.iter().map(|f| f64::from(f32::from_ne_bytes(*f))).collect()
}

/// Evaluates forces with both lists, without and with energies, and compares them.
fn compare(what: &str, initial: &str, neighbors: &str, force: &str, integrators: &str, precision: &str) {
    compare_in(None, what, initial, neighbors, force, integrators, precision);
}

fn compare_in(
    length: Option<[f64; 3]>,
    what: &str,
    initial: &str,
    neighbors: &str,
    force: &str,
    integrators: &str,
    precision: &str,
) {
    let text = |list: &str| pipeline(initial, &format!("list: {list}, {neighbors}"), force, integrators, precision, 1);
    let [mut plain, mut staged] = ["Plain", "Staged"].map(|list| started(&text(list), length));
    let (f, g) = (forces(&mut *plain), forces(&mut *staged));
    let rms = (f.iter().map(|x| x * x).sum::<f64>() / f.len() as f64).sqrt();
    let worst = largest_difference(&f, &g);
    println!("{what}: largest difference {worst:e}, rms force {rms}");
    // staged positions are rounded to 2^-24 of the size of a block; the gradient of a force is some 100 times the force
    assert!(rms > 0.1 && worst < 2e-4 * rms.max(10.0), "{what}: {worst:e} of {rms}");
    let (a, b) = (plain.sums().expect("sums"), staged.sums().expect("sums"));
    for (x, y) in a.components.iter().zip(&b.components) {
        let scale = x.energy.abs().max(1.0);
        // staged positions are rounded to 2⁻²⁴ of a block: 100 times that in energies, as in forces, less in their sum
        assert!((x.energy - y.energy).abs() < 1e-5 * scale, "{what}: energies {} and {}", x.energy, y.energy);
        let scale = x.virial.iter().fold(1.0f64, |m, w| m.max(w.abs()));
        assert!(largest_difference(&x.virial, &y.virial) < 1e-5 * scale, "{what}: {:?} {:?}", x.virial, y.virial);
    }
    let (a, b) = (plain.list_report().expect("a list"), staged.list_report().expect("a list"));
    // at least the same pairs, and few more
    assert!(b.mean >= a.mean && b.mean < 1.03 * a.mean + 0.5, "{what}: {} and {} neighbors", a.mean, b.mean);
    // the kernel without energies gives the same forces
    let stop = AtomicBool::new(false);
    plain.advance(1, Wanted::FORCE, &stop).expect("a step");
    staged.advance(1, Wanted::FORCE, &stop).expect("a step");
    let worst = largest_difference(&forces(&mut *plain), &forces(&mut *staged));
    // the difference of forces before the step, and the same again after it, with a margin of 2.5
    assert!(worst < 1e-3 * rms.max(10.0), "{what}, after a step: {worst:e} of {rms}");
}

#[test]
#[ignore = "5 seconds"]
fn forces_energies_and_virials_are_those_of_the_plain_list() {
    if !has_compiler() {
        return;
    }
    let nve = "VelocityVerlet()";
    compare("DPD in a small box", SMALL, "buffer: 0.3", DPD, "GrootWarren()", "Single");
    compare("two functions", FLUID, "buffer: 0.2", &format!("{DPD}, {SOFT}"), nve, "Mixed");
    compare("LJ", LIQUID, "buffer: 0.3", &LJ.replace("MODE", "Smooth(1.6)"), nve, "Mixed");
    // most entries of the list are beyond the cutoff, so pairs are collected first
    compare("long buffer", LIQUID, "buffer: 1.0", &LJ.replace("MODE", "Cut"), nve, "Mixed");
    let janus = "Lattice(lattice: Sc, cells: [14, 14, 14], density: 3.0), Velocities(kT: 1.0), Orientations(inertia: (0.1, 0.1, 0.0), kT: 1.0)";
    let pair = r#"TriblockJanus(pairs: {("A", "A"): (alpha_r: 396.0, alpha_a: 132.0, beta_deg: 65.0, nu: 2.0)})"#;
    compare("Janus", janus, "buffer: 0.3", pair, "RotationalBerendsen(kT: 1.0, tau: 0.3, tau_r: 0.1)", "Mixed");
}

#[test]
#[ignore = "half a minute"]
fn forces_of_other_modes_and_longer_rows_are_those_of_the_plain_list() {
    if !has_compiler() {
        return;
    }
    let nve = "VelocityVerlet()";
    compare("DPD", FLUID, "buffer: 0.3", DPD, "GrootWarren()", "Mixed");
    for mode in ["Cut", "ShiftForce"] {
        compare(mode, LIQUID, "buffer: 0.3", &LJ.replace("MODE", mode), nve, "Mixed");
    }
    // rows of more than 255 entries are not sorted by length
    let large = FLUID.replace("count: 5000, box: [11.0, 12.5, 13.0]", "count: 7000, box: [13.0, 13.5, 14.0]");
    compare("rows of about 300 entries", &large, "buffer: 0.3", &DPD.replace("r_cut: 1.0", "r_cut: 2.6"), nve, "Mixed");
}

#[test]
fn trajectories_are_those_of_the_cpu() {
    if !has_compiler() {
        return;
    }
    for (initial, force, integrator) in [
        (SMALL, SOFT, "NoseHoover(kT: 1.0, tau: 0.5)"),
        (FLUID, DPD, "DpdVerlet()"),
        (SMALL, DPD, "MtkNpt(kT: 1.0, tau: 0.5, pressure: 30.0, tau_p: 0.5)"),
    ] {
        let text = pipeline(initial, "buffer: 0.15, list: Staged", force, integrator, "Mixed", 30);
        let [(_, mut a), (_, mut b)] = [DeviceChoice::Cpu, DeviceChoice::Emulated].map(|device| {
            let p = plan(&text, device).unwrap_or_else(|e| panic!("{}", e.render()));
            run_plan(&p).unwrap_or_else(|e| panic!("{}", e.render()))
        });
        let ((xa, va), (xb, vb)) = (unwrapped(&mut *a), unwrapped(&mut *b));
        let (x, v, builds) =
            (largest_difference(&xa, &xb), largest_difference(&va, &vb), b.list_report().expect("a list").builds);
        println!("{integrator}: positions {x:e}, velocities {v:e}, {builds} builds");
        assert!(builds >= 3, "the list was built {builds} times: too few to test that");
        below("staged lists: positions after 30 steps", x);
        below("staged lists: velocities after 30 steps", v);
    }
}

/// A droplet: blocks have far more neighbors than the mean density tells, so buffers grow.
#[test]
fn buffers_grow() {
    if !has_compiler() {
        return;
    }
    let droplet = "Lattice(lattice: Sc, cells: [10, 10, 10], density: 3.0), Velocities(kT: 1.0)";
    let one = r#"HarmonicRepulsion(r_cut: 1.1, pairs: { ("A", "A"): (alpha: 12.5) })"#;
    compare_in(Some([24.0; 3]), "a droplet", droplet, "buffer: 0.3", one, "VelocityVerlet()", "Mixed");
}

/// Blocks with more neighbors than a row can address: the run continues with a plain list, also after a restart.
#[test]
#[ignore = "20 seconds"]
fn a_collapsed_system_continues_with_a_plain_list() {
    if !has_compiler() {
        return;
    }
    let dense = "Lattice(lattice: Sc, cells: [20, 20, 20], density: 100.0), Velocities(kT: 1.0)";
    let one = r#"HarmonicRepulsion(r_cut: 1.1, pairs: { ("A", "A"): (alpha: 0.01) })"#;
    let [mut plain, mut left, mut resumed] = ["Plain", "Staged", "Staged"].map(|list| {
        let neighbors = format!("list: {list}, buffer: 0.3");
        started(&pipeline(dense, &neighbors, one, "VelocityVerlet()", "Mixed", 20), Some([24.0; 3]))
    });
    assert!(forces(&mut *plain) == forces(&mut *left));
    advance(&mut *left, 2);
    resumed.import(&left.export().expect("a state")).expect("imported");
    advance(&mut *left, 2);
    advance(&mut *resumed, 2);
    assert!(left.export().expect("a state") == resumed.export().expect("a state"));
    advance(&mut *plain, 4);
    assert!(forces(&mut *plain) == forces(&mut *left));
}

#[test]
fn excluded_pairs_are_left_out() {
    if !has_compiler() {
        return;
    }
    let chains = r#"Polymers(box: [9.0, 9.0, 9.0], density: 3.0, bond_length: 0.8, molecules: [(molecule: "A10", fraction: 1.0)]), Velocities(kT: 1.0)"#;
    let bonds = r#"HarmonicBond(bonds: { "A-A": (k: 20.0, r0: 0.8) })"#;
    let soft = r#"HarmonicRepulsion(r_cut: 1.1, pairs: { ("A", "A"): (alpha: 12.5) })"#;
    compare(
        "chains",
        chains,
        "buffer: 0.3, exclude: [Bonds]",
        &format!("{soft}, {bonds}"),
        "VelocityVerlet()",
        "Mixed",
    );
}

const RESTARTED: &str = r#"(
    seed: 9, precision: PRECISION, neighbors: (buffer: 0.15, list: Staged),
    initial: [ RandomPositions(count: 900, box: [6.0, 6.5, 7.0], types: {"A": 0.5, "B": 0.5}), Velocities(kT: 1.0) ],
    forces: [ FORCES ], integrators: [ INTEGRATOR ],
    analyzers: [ Thermo(every: 7, file: "t.csv"), Gsd(every: 15, file: "t.gsd") ],
    checkpoint: (every: 20),
    stages: [ (name: "one", steps: 30, dt: 0.01), (name: "two", steps: 20, dt: 0.02) ],
)"#;

fn go(folder: &Path, args: &[&str]) {
    let out = galamost(folder, &[&["--pipeline", "p.ron", "--quiet", "--device", "emulated"], args].concat());
    assert!(out.status.success(), "{args:?}: {}", words(&out));
}

/// The order of the particles is not that of the last rebuild: not every rebuild sorts.
#[test]
#[ignore = "5 seconds"]
fn a_resumed_run_equals_an_uninterrupted_one() {
    if !has_compiler() {
        return;
    }
    for (precision, force, integrator) in
        [("Mixed", DPD, "GrootWarren()"), ("Single", SOFT, "MtkNpt(kT: 1.0, tau: 0.5, pressure: 30.0, tau_p: 0.5)")]
    {
        let folders = [tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder")];
        for f in &folders {
            let text =
                RESTARTED.replace("PRECISION", precision).replace("FORCES", force).replace("INTEGRATOR", integrator);
            std::fs::write(f.path().join("p.ron"), text).expect("written");
        }
        let [whole, parts] = &folders;
        go(whole.path(), &[]);
        go(parts.path(), &["--steps", "13"]);
        go(parts.path(), &["--steps", "37", "--resume"]);
        go(parts.path(), &["--resume"]);
        for file in ["t.csv", "t.gsd", "p.checkpoint"] {
            let [x, y] = [whole, parts].map(|f| std::fs::read(f.path().join(file)).expect(file));
            assert!(!x.is_empty() && x == y, "{integrator}: {file} differs: {} and {} bytes", x.len(), y.len());
        }
    }
}
