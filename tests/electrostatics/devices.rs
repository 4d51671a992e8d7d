//! The mesh of CUDA, emulated, against that of the CPU, for grids that its kernels treat in different ways.

use super::{charged, ions, polymer, uniform};
use galamost_engine::pipeline::DeviceChoice;
use galamost_plugin_api::snapshot::Snapshot;
use galamost_tests::{has_compiler, largest_difference, plan_of, run_plan, unwrapped};

/// Velocities after `n` steps from rest, most of them without energies.
fn velocities_after(s: &Snapshot, forces: &str, device: DeviceChoice, precision: &str, n: u32) -> Vec<f64> {
    after(s, &format!("(precision: {precision}, {}", steps(forces, "VelocityVerlet()", n)), device)
}

/// Fields of a pipeline with a few steps.
fn steps(forces: &str, integrator: &str, n: u32) -> String {
    format!("forces: [{forces}], integrators: [{integrator}], stages: [(steps: {n}, dt: 0.002)])")
}

/// Velocities after a run.
fn after(s: &Snapshot, text: &str, device: DeviceChoice) -> Vec<f64> {
    let plan = plan_of(text, s.clone(), device).unwrap_or_else(|e| panic!("{}", e.render()));
    let (_, mut backend) = run_plan(&plan).unwrap_or_else(|e| panic!("{}", e.render()));
    unwrapped(&mut *backend).1
}

/// Compares forces on both devices in units of the largest one.
fn compare(s: &Snapshot, component: &str, precisions: &[&str]) {
    let expected = velocities_after(s, component, DeviceChoice::Cpu, "Double", 3);
    let largest = expected.iter().fold(0.0f64, |a, v| a.max(v.abs()));
    for precision in precisions {
        let found = velocities_after(s, component, DeviceChoice::Emulated, precision, 3);
        let error = largest_difference(&expected, &found) / largest;
        println!("{component} {precision}: {error:.2e}");
        // about ten operations on each number of a sum of a hundred, in units of the last digit
        let limit = if *precision == "Double" { 1e-11 } else { 1e-5 };
        assert!(error < limit, "{component} in {precision}: velocities differ by {error:.2e} of the largest one");
    }
}

#[test]
#[ignore = "3 seconds"]
fn grids_of_all_kinds_have_the_forces_of_the_cpu() {
    if !has_compiler() {
        return;
    }
    let s = ions(150, [8.0, 7.5, 9.0]);
    let all = &["Single", "Mixed", "Double"][..];
    for (order, grid, precisions) in [
        // planes: factors of a power of 2, odd factors, more points than threads, one brick along an axis
        (3, "[16, 18, 20]", all),
        (4, "[32, 16, 24]", &all[1..]),
        (5, "[45, 30, 16]", &all[1..2]),
        (6, "[64, 40, 10]", &all[1..2]),
        (7, "[80, 100, 20]", all),
        (7, "[7, 8, 9]", &all[1..2]),
        // lines along x and y: an odd number along y
        (7, "[20, 25, 36]", &all[1..]),
        // large prime factors along x and y, and along z
        (5, "[43, 16, 20]", &all[1..]),
        (6, "[16, 18, 82]", &all[1..]),
    ] {
        let component = format!("Pppm(accuracy: 1e-3, alpha: 0.9, r_cut: 3.0, order: {order}, grid: {grid})");
        compare(&s, &component, precisions);
    }
}

#[test]
#[ignore = "5 seconds"]
fn a_crowded_brick_has_the_forces_of_the_cpu() {
    if !has_compiler() {
        return;
    }
    // most of the box is empty, so that many particles are in few bricks
    let mut s = ions(600, [10.0, 10.0, 10.0]);
    s.box_length = [60.0; 3];
    compare(&s, "Pppm(accuracy: 1e-3, alpha: 0.9, r_cut: 3.0, order: 5, grid: [80, 80, 80])", &["Mixed", "Double"]);
}

#[test]
fn excluded_pairs_have_the_forces_of_the_cpu() {
    if !has_compiler() {
        return;
    }
    let s = polymer(10, [9.0, 9.0, 9.0]);
    compare(&s, "Pppm(accuracy: 1e-3, alpha: 0.9, r_cut: 3.0, order: 5, grid: [24, 24, 24])", &["Mixed"]);
}

/// More charges at a point than a sum of 32 bits holds. They are not so close that single precision loses the difference of 1/r and
/// the smooth charges' potential.
#[test]
#[ignore = "10 seconds"]
fn many_charges_at_a_point_have_the_forces_of_the_cpu() {
    if !has_compiler() {
        return;
    }
    let at = |i: u32, side: f64, center: f64| {
        let u = uniform(23, i);
        [0, 1, 2].map(|k| center + side * (u[k] - 0.5))
    };
    let particles: Vec<_> =
        (0..2400).map(|i| if i % 2 == 0 { (at(i, 0.8, -3.0), 1.0) } else { (at(i, 3.0, 3.0), -1.0) }).collect();
    let s = charged([16.0; 3], &particles);
    for order in [3, 5] {
        let charges = "charges: { \"*\": Gaussian(0.3) }";
        let grid = "grid: [20, 20, 20]";
        compare(
            &s,
            &format!("Pppm(accuracy: 1e-3, alpha: 0.9, r_cut: 3.0, order: {order}, {grid}, {charges})"),
            &["Mixed"],
        );
    }
}

/// Checks that a charge that leaves its slab ends the run before it reaches the other side.
fn check_gap(device: DeviceChoice, precision: &str) {
    let mut s = charged([5.0, 5.0, 20.0], &[([0.0; 3], 1.0), ([0.0, 0.0, 3.0], -1.0)]);
    // the gap from 3 to 20 has its middle at 11.5, and 8.3 are 83 steps
    s.velocity[1] = [0.0, 0.0, 50.0];
    let force = "Ewald(accuracy: 1e-2, r_cut: 2.4, slab: Z)";
    let text = format!("(precision: {precision}, {}", steps(force, "VelocityVerlet()", 100));
    let plan = plan_of(&text, s, device).unwrap_or_else(|e| panic!("{}", e.render()));
    let Err(e) = run_plan(&plan) else { panic!("{device:?}, {precision}: the charge was not noticed") };
    let message = e.render();
    assert!(
        message.contains("tag 1") && message.contains("Ewald: a charged particle is in the middle of the longest gap"),
        "{device:?}, {precision}: {message}"
    );
}

#[test]
fn a_charge_in_the_gap_of_a_slab_ends_the_run() {
    check_gap(DeviceChoice::Cpu, "Double");
}

/// A slab across a face of the box.
#[test]
#[ignore = "3 seconds"]
fn slabs_across_a_face_have_the_forces_of_the_cpu() {
    if !has_compiler() {
        return;
    }
    let mut s = ions(40, [8.0, 8.0, 6.0]);
    s.box_length[2] = 24.0;
    s.position.iter_mut().for_each(|r| r[2] += if r[2] < 0.0 { 12.0 } else { -12.0 });
    let precisions = ["Mixed", "Double"];
    compare(&s, "Ewald(accuracy: 1e-3, r_cut: 3.0, alpha: 0.9, k_max: 5.0, slab: Z)", &precisions);
    precisions.iter().for_each(|precision| check_gap(DeviceChoice::Emulated, precision));
}

/// The table of the influence function follows the box, which changes before steps without energies.
#[test]
fn a_changing_box_has_the_forces_of_the_cpu() {
    if !has_compiler() {
        return;
    }
    let s = ions(150, [8.0, 7.5, 9.0]);
    let force = "Pppm(accuracy: 1e-3, alpha: 0.9, r_cut: 3.0, order: 5, grid: [16, 18, 20])";
    let barostat = "BerendsenBarostat(every: 4, pressure: 20.0, tau: 0.05, compressibility: 0.1)";
    let text = format!("(precision: Double, updaters: [{barostat}], {}", steps(force, "VelocityVerlet()", 12));
    let (cpu, gpu) = (after(&s, &text, DeviceChoice::Cpu), after(&s, &text, DeviceChoice::Emulated));
    let fixed = velocities_after(&s, force, DeviceChoice::Cpu, "Double", 12);
    let (error, change) = (largest_difference(&cpu, &gpu), largest_difference(&cpu, &fixed));
    // differences grow with time from the last digit on
    assert!(error < 1e-9 && change > 1e-5, "velocities differ by {error:.2e}; the box changes them by {change:.2e}");
}
