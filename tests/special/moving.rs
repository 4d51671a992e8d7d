//! Runs with special pairs: both devices, threads, resumed runs, changes of the topology.

use super::*;
use galamost_tests::{galamost, run_plan, unwrapped, words};
use std::path::Path;

const BONDS: &str = r#"HarmonicBond(bonds: { "1-1": (k: 100.0, r0: 1.0) })"#;

fn pipeline(precision: &str, neighbors: &str, more: &str, steps: u64) -> String {
    format!(
        "(seed: 6, precision: {precision}, neighbors: (buffer: 0.2, {WEIGHTS}{neighbors}), forces: [{LJ}, {SCREENED}, {BONDS}], \
         integrators: [Langevin(kT: 1.0, gamma: 0.5)], {more} stages: [(steps: {steps}, dt: 0.004)])"
    )
}

fn run(text: &str, s: Snapshot, device: DeviceChoice) -> Box<dyn Backend> {
    let plan = plan_of(text, s, device).unwrap_or_else(|e| panic!("{}", e.render()));
    run_plan(&plan).unwrap_or_else(|e| panic!("{}", e.render())).1
}

#[test]
#[ignore = "3 seconds"]
fn particles_move_alike_on_all_devices_with_all_lists() {
    if !has_compiler() {
        return;
    }
    let still = "Langevin(kT: 1.0, gamma: 0.5)";
    // images of the box move and have other velocities
    let sheared = "Langevin(kT: 1.0, gamma: 0.5), LeesEdwards(rate: 1.5)";
    for (precision, list, integrators, limit) in [
        ("Double", "", still, 1e-10),
        ("Double", "", sheared, 1e-10),
        ("Mixed", "", still, 1e-4),
        ("Mixed", ", list: Staged", still, 1e-4),
    ] {
        let [(cpu, ..), (device, builds)] = [DeviceChoice::Cpu, DeviceChoice::Emulated].map(|device| {
            let text = pipeline(precision, list, "", 60).replace(still, integrators);
            let mut b = run(&text, rings(), device);
            (unwrapped(&mut *b).0, b.list_report().expect("a list").builds)
        });
        let far = galamost_tests::largest_difference(&cpu, &device);
        println!("{precision}{list}, {integrators}: {builds} builds, positions {far:.1e}");
        assert!(builds >= 3 && far < limit, "{precision}{list}: {builds} builds, positions {far:e}");
    }
}

#[test]
fn runs_do_not_depend_on_the_number_of_threads() {
    let state = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        pool.install(|| run(&pipeline("Mixed", "", "", 40), rings(), DeviceChoice::Cpu).export().expect("a state"))
    };
    assert!(state(1) == state(3));
}

/// Energy is conserved to second order in the time step, so the forces of a step are those of one potential.
#[test]
fn the_energy_error_is_second_order() {
    let width = |dt: f64| {
        let forces = [LJ, SCREENED].map(|f| f.replacen("r_cut", "mode: ShiftForce, r_cut", 1)).join(", ");
        let text = format!(
            "(precision: Double, neighbors: ({WEIGHTS}), forces: [{forces}, {BONDS}], integrators: [VelocityVerlet()], \
             stages: [(steps: 0, dt: {dt})])"
        );
        galamost_tests::energy_fluctuation(&mut *started(&text, rings(), DeviceChoice::Cpu), dt)
    };
    let (coarse, fine) = (width(0.004), width(0.002));
    println!("{coarse:e}, {fine:e}");
    assert!((3.0..5.0).contains(&(coarse / fine)), "{coarse:e} and {fine:e}: not ∝ dt²");
}

const REACTIONS: &str = r#"updaters: [Reactions(every: EVERY, r_cut: 2.0, partners: Each, limits: { "1": 5, "2": 5 }, reactions: [
    (kind: Join, of: ("1", "2"), p: 0.8, bond: "1-1"), (kind: Join, of: ("2", "2"), p: 0.8, bond: "1-1"),
    (kind: Break, of: ("1", "1"), p: 0.02, broken: "1-1")])],"#;

/// The molecules with their numbers of bonds as counts of reactions.
fn reactive() -> Snapshot {
    let mut s = rings();
    let count = |t: u32| s.bonds.iter().filter(|l| l.tags.contains(&t)).count() as i32;
    let counts = (0..s.len() as u32).map(count).collect();
    s.arrays.insert("h_cris".into(), Array { width: 1, values: Values::Int(counts) });
    s
}

/// Bonds that are made and broken change special pairs up to three bonds away; forces equal those of a fresh start.
#[test]
#[ignore = "3 seconds"]
fn reactions_update_special_pairs() {
    for device in devices() {
        for list in ["", ", list: Staged"] {
            let precision = if list.is_empty() { "Double" } else { "Mixed" };
            let text = |every: u64, steps: u64| {
                pipeline(precision, list, &REACTIONS.replace("EVERY", &every.to_string()), steps)
            };
            let mut b = run(&text(4, 60), reactive(), device);
            let c = columns(&mut *b);
            let mut s = reactive();
            let (before, now) = (s.bonds.clone(), c.bonds.clone());
            let made = now.iter().filter(|l| !before.contains(l)).count();
            let broken = before.iter().filter(|l| !now.contains(l)).count();
            println!("{device:?}{list}: {made} bonds made, {broken} broken");
            assert!(made > 10 && broken > 10, "{device:?}{list}: {made} made, {broken} broken");
            (s.position, s.image, s.velocity, s.type_id) = (c.position, c.image, c.velocity, c.type_id);
            (s.bonds, s.arrays, s.step) = (c.bonds, c.arrays, 60);
            let mut fresh = run(&text(1000, 0), s, device);
            // the last evaluation, after the updater, has no energies
            let [found, expected] = [&mut b, &mut fresh].map(|b| outcome(&mut **b, precision).force);
            let largest = expected.iter().fold(0.0f64, |m, x| m.max(x.abs()));
            let far = galamost_tests::largest_difference(&found, &expected) / largest;
            println!("{device:?}{list}: {far:.1e}");
            assert!(far < if list.is_empty() { 1e-12 } else { 1e-5 }, "{device:?}{list}: {far:e}");
        }
    }
}

/// A resumed run equals an uninterrupted one to the bit, also one whose state comes from a file of another format.
#[test]
#[ignore = "3 seconds"]
fn a_resumed_run_equals_an_uninterrupted_one() {
    for device in devices() {
        let name = if device == DeviceChoice::Cpu { "cpu" } else { "emulated" };
        let go = |folder: &Path, args: &[&str]| {
            let out = galamost(folder, &[&["--pipeline", "p.ron", "--quiet", "--device", name], args].concat());
            assert!(out.status.success(), "{args:?}: {}", words(&out));
        };
        let folders = [tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder")];
        let [whole, parts] = folders.each_ref().map(tempfile::TempDir::path);
        for folder in [whole, parts] {
            std::fs::copy(repository().join("tests/special/lammps/rings.data"), folder.join("rings.data"))
                .expect("copied");
            let more = r#"initial: [LammpsData(file: "rings.data"), Replicate(times: [2, 1, 1]), Velocities(kT: 1.0)],
                analyzers: [Thermo(every: 5, file: "t.csv"), Gsd(every: 10, file: "t.gsd")], checkpoint: (every: 20),"#;
            std::fs::write(folder.join("p.ron"), pipeline("Mixed", "", more, 40).replace("\"1-1\": (k", "\"1\": (k"))
                .expect("written");
        }
        go(whole, &[]);
        go(parts, &["--steps", "13"]);
        go(parts, &["--resume"]);
        for file in ["t.csv", "t.gsd", "p.checkpoint"] {
            let [x, y] = [whole, parts].map(|f| std::fs::read(f.join(file)).expect(file));
            assert!(!x.is_empty() && x == y, "{name}: {file} differs");
        }
        // the last frame of the trajectory, with its bonds, has the energy of the run
        let text = pipeline("Mixed", "", "", 0).replacen(
            '(',
            r#"(initial: [Gsd(file: "t.gsd")], analyzers: [Thermo(every: 1, file: "u.csv")], "#,
            1,
        );
        std::fs::write(whole.join("p.ron"), text.replace("\"1-1\": (k", "\"1\": (k")).expect("written");
        let last = *galamost_tests::csv(&whole.join("t.csv"))["LennardJones"].last().expect("a row");
        go(whole, &[]);
        let read = galamost_tests::csv(&whole.join("u.csv"))["LennardJones"][0];
        // the trajectory has positions in single precision: 1e-6 of a length of the core, whose energy falls as r⁻¹²
        assert!((read / last - 1.0).abs() < 1e-4, "{name}: {read} and {last}");
    }
}
