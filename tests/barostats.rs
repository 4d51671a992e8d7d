//! Changing boxes: barostats, prescribed box lengths, the neighbor list in a changing box, on the CPU and on the emulated
//! device.

use galamost::selftest::standard_system;
use galamost_engine::backend::Backend;
use galamost_engine::pipeline::DeviceChoice;
use galamost_plugin_api::snapshot::Snapshot;
use galamost_tests::tolerances::agrees;
use galamost_tests::{
    advance, columns, csv, devices, has_compiler, largest_difference, plan_of, run_plan, started, unwrapped,
};

const LJ: &str = r#"LennardJones(r_cut: 2.5, mode: ShiftForce, pairs: {
    ("A", "A"): (epsilon: 1.0, sigma: 1.0), ("A", "B"): (epsilon: 0.5, sigma: 0.95), ("B", "B"): (epsilon: 1.0, sigma: 0.9) })"#;

/// Potential and kinetic energy and the reservoir.
fn total(b: &mut dyn Backend) -> f64 {
    let s = b.sums().expect("sums");
    let potential: f64 = s.components.iter().map(|c| c.energy).sum();
    potential + 0.5 * s.kinetic_diagonal().iter().sum::<f64>() + s.reservoir
}

const BAROSTATS: [&str; 7] = [
    "MtkNpt(kT: 1.2, tau: 0.5, pressure: 2.0, tau_p: 1.0)",
    "MtkNpt(kT: 1.2, tau: 0.5, pressure: 2.0, tau_p: 1.0, couple: Xy)",
    "MtkNpt(kT: 1.2, tau: 0.5, pressure: 2.0, tau_p: 1.0, couple: None, length: 1)",
    "MtkNpt(kT: 1.2, tau: 0.5, pressure: 2.0, tau_p: 1.0, axes: [false, false, true])",
    "AndersenNpt(kT: 1.2, nu: 0.0, pressure: 2.0, tau_p: 1.0)",
    "TriclinicMtkNpt(kT: 1.2, tau: 0.5, pressure: 2.0, tau_p: 1.0)",
    "TriclinicMtkNpt(kT: 1.2, tau: 0.5, pressure: 2.0, tau_p: 1.0, deviator: [0.5, -0.2, -0.3, 1.0, -0.4, 0.8], length: 1)",
];

/// The error of the conserved quantity falls with dt², while the box changes a lot.
#[test]
#[ignore = "20 seconds"]
fn barostats_conserve_their_quantity() {
    for integrator in BAROSTATS {
        let error = |dt: f64| {
            let text = format!(
                "(precision: Double, seed: 5, forces: [{LJ}], integrators: [{integrator}], stages: [(steps: 1, dt: {dt})])"
            );
            let mut b = started(&text, standard_system(), DeviceChoice::Cpu);
            let (first, length) = (total(&mut *b), b.box_length());
            let (mut sum, samples) = (0.0, 60);
            for _ in 0..samples {
                advance(&mut *b, (0.03 / dt).round() as u64);
                sum += (total(&mut *b) - first).powi(2);
            }
            let now = b.box_length();
            let change = (0..3).map(|k| (now[k] / length[k] - 1.0).abs()).fold(0.0, f64::max);
            assert!(change > 0.01, "{integrator}: the box changed by {change}");
            (sum / f64::from(samples)).sqrt()
        };
        let (coarse, fine) = (error(0.006), error(0.003));
        println!("{integrator}: rms of H' − H'(0) {coarse:.2e} and {fine:.2e}, ratio {:.2}", coarse / fine);
        assert!((3.0..5.3).contains(&(coarse / fine)), "{integrator}: {coarse:e} and {fine:e}: not ∝ dt²");
    }
}

/// A few steps on both devices, with lists built in boxes of different sizes.
#[test]
#[ignore = "10 seconds"]
fn boxes_change_on_the_device_as_on_the_cpu() {
    if !has_compiler() {
        return;
    }
    let updaters = [
        (
            "VelocityVerlet()",
            "BerendsenBarostat(every: 5, pressure: 20.0, tau: 0.02, compressibility: 0.05, couple: Xy)",
        ),
        ("VelocityVerlet()", "BoxResize(every: 2, y: Ramp(from: LY, to: 9.0, steps: 40))"),
        ("AndersenNpt(kT: 1.2, nu: 3.0, pressure: 8.0, tau_p: 0.3)", ""),
    ];
    let y = standard_system().box_length[1];
    for (precision, limit) in [("Double", 1e-10), ("Mixed", 2e-4), ("Single", 2e-4)] {
        let all = BAROSTATS.map(|b| (b, "")).into_iter().chain(updaters);
        // Couplings and axes are numbers in the state of a barostat, which is f64 in every precision: only double
        // precision, with the smallest limit, runs them all. Single precision has the kernels of mixed precision
        // without the low digits of positions.
        let selected: &[usize] = match precision {
            "Double" => &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
            "Mixed" => &[0, 7, 9],
            _ => &[5],
        };
        for (_, (integrator, updater)) in all.enumerate().filter(|(k, _)| selected.contains(k)) {
            let updater = updater.replace("LY", &y.to_string());
            let text = format!(
                "(precision: {precision}, seed: 5, neighbors: (buffer: 0.2), forces: [{LJ}], integrators: [{integrator}], \
                 updaters: [{updater}], stages: [(steps: 24, dt: 0.005)])"
            );
            let [(xa, la), (xb, lb)] = [DeviceChoice::Cpu, DeviceChoice::Emulated].map(|device| {
                let plan = plan_of(&text, standard_system(), device).unwrap_or_else(|e| panic!("{}", e.render()));
                let (_, mut b) = run_plan(&plan).unwrap_or_else(|e| panic!("{}", e.render()));
                (unwrapped(&mut *b).0, b.box_length())
            });
            let (x, l) = (largest_difference(&xa, &xb), (0..3).map(|k| (la[k] - lb[k]).abs()).fold(0.0, f64::max));
            assert!(la != standard_system().box_length, "{integrator}, {updater}: the box did not change");
            assert!(x < limit && l < limit, "{integrator}, {updater}, {precision}: positions {x:e}, box {l:e}");
        }
    }
}

/// No neighbor is missed in a box that shrinks and grows a lot: forces equal those of a fresh start.
#[test]
#[ignore = "10 seconds"]
fn the_neighbor_list_is_complete_in_a_changing_box() {
    for device in devices() {
        for precision in ["Double", "Mixed"] {
            let mut s = standard_system();
            // a gas: there is room to shrink
            for k in 0..3 {
                s.box_length[k] *= 1.6;
                s.position.iter_mut().for_each(|p| p[k] *= 1.6);
            }
            let l = s.box_length[0];
            let text = format!(
                "(precision: {precision}, neighbors: (buffer: 0.4), forces: [{LJ}], \
                 integrators: [MtkNpt(kT: 1.2, tau: 0.5, pressure: Ramp(from: 6.0, to: -0.5, start: 80, steps: 10), tau_p: 0.4, \
                 couple: None)], stages: [(steps: 240, dt: 0.004)])"
            );
            let mut b = started(&text, s.clone(), device);
            let mut lengths = vec![];
            for _ in 0..8 {
                advance(&mut *b, 30);
                let now = columns(&mut *b);
                let (box_length, sums) = (b.box_length(), b.sums().expect("sums"));
                lengths.push(box_length[0]);
                let fresh = Snapshot { box_length, position: now.position, velocity: now.velocity, ..s.clone() };
                let text = format!(
                    "(precision: {precision}, forces: [{LJ}], integrators: [VelocityVerlet()], stages: [(steps: 0, dt: 0.004)])"
                );
                let anew = started(&text, fresh, DeviceChoice::Cpu).sums().expect("sums");
                let (a, c) = (sums.components[0], anew.components[0]);
                let scale = a.energy.abs().max(100.0);
                let limit = if precision == "Double" { 1e-11 } else { 1e-5 };
                assert!((a.energy - c.energy).abs() < limit * scale, "{device:?} {precision}: {a:?} and {c:?}");
            }
            let (least, most) =
                (lengths.iter().copied().fold(l, f64::min), lengths.iter().copied().fold(0.0, f64::max));
            println!("{device:?} {precision}: from {l} down to {least}, up to {most}: {lengths:?}");
            assert!(least < 0.85 * l && lengths[7] > 1.1 * least, "{lengths:?}");
        }
    }
}

#[test]
#[ignore = "5 seconds"]
fn boxes_follow_their_prescribed_pressure_and_length() {
    for device in devices() {
        let steps = if device == DeviceChoice::Cpu { 3000 } else { 60 };
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("t.csv");
        let text = format!(
            "(seed: 3, forces: [{LJ}], integrators: [Langevin(kT: 1.2, gamma: 2.0)], \
             updaters: [BerendsenBarostat(every: 5, pressure: 3.0, tau: 0.5, compressibility: 0.1)], \
             analyzers: [Thermo(every: 5, file: {file:?})], \
             stages: [(steps: {steps}, dt: 0.005)])"
        );
        let plan = plan_of(&text, standard_system(), device).unwrap_or_else(|e| panic!("{}", e.render()));
        let (_, b) = run_plan(&plan).unwrap_or_else(|e| panic!("{}", e.render()));
        let (l, old) = (b.box_length(), standard_system().box_length);
        // one factor for all axes
        assert!((l[0] / old[0] - l[2] / old[2]).abs() < 1e-12 && l != old);
        if device == DeviceChoice::Cpu {
            agrees("BerendsenBarostat: P", &csv(&file)["pressure"][200..]);
        }

        // positions scale with a prescribed box length, which stays constant after the ramp
        let mut still = standard_system();
        still.velocity.iter_mut().for_each(|v| *v = [0.0; 3]);
        let (x, z) = (old[0], old[2]);
        let text = format!(
            "(integrators: [VelocityVerlet()], updaters: [BoxResize(every: 3, x: Ramp(from: {x}, to: 8.0, steps: 21), z: {z})], \
             stages: [(steps: 30, dt: 0.01)])"
        );
        let plan = plan_of(&text, still.clone(), device).unwrap_or_else(|e| panic!("{}", e.render()));
        let (_, mut b) = run_plan(&plan).unwrap_or_else(|e| panic!("{}", e.render()));
        assert_eq!(b.box_length(), [8.0, old[1], old[2]]);
        for (a, c) in columns(&mut *b).position.iter().zip(&still.position) {
            // positions are fixed-point numbers of 2⁻³² of the box length, 2e-9 here, rounded at the start and in the comparison
            assert!((a[0] - c[0] * 8.0 / x).abs() < 1e-8 && (a[1] - c[1]).abs() < 1e-8 && (a[2] - c[2]).abs() < 1e-8);
        }
    }
}

#[test]
#[ignore = "3 seconds"]
fn collapsing_boxes_are_reported() {
    for device in devices() {
        let text = format!(
            "(forces: [{LJ}], integrators: [VelocityVerlet()], updaters: [BoxResize(every: 1, x: Ramp(from: {}, to: 3.0, steps: 20))], \
             stages: [(steps: 30, dt: 0.0001)])",
            standard_system().box_length[0]
        );
        let plan = plan_of(&text, standard_system(), device).unwrap_or_else(|e| panic!("{}", e.render()));
        let Err(e) = run_plan(&plan) else { panic!("the box collapsed without an error") };
        let told = e.render();
        assert!(told.contains("BoxResize: the box would be shorter than two cutoffs along x"), "{told}");
        assert!(!told.contains("4294967295"), "{told}");

        let text = format!(
            "(forces: [{LJ}], integrators: [MtkNpt(kT: 1.2, tau: 0.5, pressure: 1e4, tau_p: 0.1)], stages: [(steps: 100, dt: 0.005)])"
        );
        let plan = plan_of(&text, standard_system(), device).unwrap_or_else(|e| panic!("{}", e.render()));
        let Err(e) = run_plan(&plan) else { panic!("the box collapsed without an error") };
        assert!(e.render().contains("MtkNpt: "), "{}", e.render());
    }
}

/// A virial that no step could survive ends the run with the particle's tag. Overlaps at the start are found by the single launches of the
/// first evaluation.
#[test]
fn overlapping_particles_are_reported() {
    if !has_compiler() {
        return;
    }
    let text = r#"(seed: 4, initial: [RandomPositions(count: 300, box: [7.0, 7.0, 7.0], types: {"A": 1.0})],
        forces: [LennardJones(r_cut: 2.5, pairs: {("A", "A"): (epsilon: 1.0, sigma: 1.0)})],
        integrators: [MtkNpt(kT: 1.0, tau: 0.5, pressure: 1.0, tau_p: 2.0)], stages: [(steps: 3, dt: 0.001)])"#;
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("p.ron"), text).expect("written");
    let mut c = std::process::Command::new(galamost_tests::program());
    c.current_dir(folder.path()).args(["--pipeline", "p.ron", "--quiet", "--device", "emulated"]);
    let out = c.output().expect("started");
    let said = galamost_tests::words(&out);
    assert!(!out.status.success() && said.contains("particles overlap") && said.contains("with tag"), "{said}");
}

/// The virial for barostats, a sum of integers, is that of the components, also with time steps that are far too short.
#[test]
fn virials_for_barostats_are_those_of_the_components() {
    if !has_compiler() {
        return;
    }
    for (precision, dt) in [("Double", 1e-9_f64), ("Double", 0.002), ("Mixed", 0.002)] {
        let text = format!(
            "(precision: {precision}, forces: [{LJ}], integrators: [MtkNpt(kT: 1.2, tau: 0.5, pressure: 2.0, tau_p: 1.0)], stages: [(steps: 4, dt: {dt})])"
        );
        let mut b = started(&text, standard_system(), DeviceChoice::Emulated);
        advance(&mut *b, 4);
        let components = b.sums().expect("sums").components;
        let n = standard_system().len() as f64;
        for (k, virial) in b.globals().virial.into_iter().enumerate() {
            let expected: f64 = components.iter().map(|c| c.virial[[0, 3, 5][k]]).sum();
            // half of a last digit for each particle, and rounding in f64 of a sum of positive and negative numbers
            let digit = (2.5 / dt).powi(2) * 2f64.powi(-76);
            let tolerance = n * (0.5 * digit + f64::EPSILON * expected.abs().max(n));
            assert!((virial - expected).abs() < tolerance, "{precision} {dt}: {virial} and {expected}");
            assert!(expected != 0.0);
        }
    }
}

#[test]
fn mistakes_of_barostats_are_reported() {
    let told = |text: &str| match plan_of(text, standard_system(), DeviceChoice::Cpu) {
        Ok(_) => panic!("{text} was taken"),
        Err(e) => e.render(),
    };
    let with = |updater: &str| {
        told(&format!("(integrators: [VelocityVerlet()], updaters: [{updater}], stages: [(steps: 1, dt: 0.01)])"))
    };
    assert!(with("BoxResize(every: 1)").contains("give at least one of `x`, `y`, `z`, `xy`, `xz`, `yz`"));
    assert!(with("BoxResize(every: 1, x: 50.0)").contains("`x` starts at 50, but the box length is"));
    let none =
        "BerendsenBarostat(every: 1, pressure: 1.0, tau: 1.0, compressibility: 1.0, axes: [false, false, false])";
    assert!(with(none).contains("all `axes` are disabled"));
    let coupled = "BerendsenBarostat(every: 1, pressure: 1.0, tau: 1.0, compressibility: 1.0, couple: Yz)";
    assert!(with(coupled).contains("expected `Isotropic`, `Xy` or `None`"));
}
