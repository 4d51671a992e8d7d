//! Shear flow by Lees and Edwards: images that slide, on the CPU and on the emulated device.

use galamost::selftest::standard_system;
use galamost_engine::backend::Backend;
use galamost_engine::pipeline::DeviceChoice;
use galamost_engine::plan::Plan;
use galamost_plugin_api::snapshot::Snapshot;
use galamost_plugin_api::views::Wanted;
use galamost_tests::tolerances::{agrees, below, near};
use galamost_tests::{
    backend, columns, csv, devices, energies, has_compiler, largest_difference, plan_in, plan_of, run_plan, started,
};
use std::sync::atomic::AtomicBool;

const DPD: &str = r#"Dpd(r_cut: 1.6, kT: 1.0, pairs: {
    ("A", "A"): (a: 25.0, sigma: 3.0), ("A", "B"): (a: 40.0, sigma: 3.0), ("B", "B"): (a: 25.0, sigma: 3.0) })"#;
/// The same for all types, so that the energy is easily summed.
const SOFT: &str = r#"HarmonicRepulsion(r_cut: 1.6, pairs: {
    ("A", "A"): (alpha: 20.0), ("A", "B"): (alpha: 20.0), ("B", "B"): (alpha: 20.0) })"#;

/// Σ α (1 − r/r_c)² over the nearest images of all pairs, where the image above along y stands at x + offset.
fn energy(position: &[[f64; 3]], l: [f64; 3], offset: f64) -> f64 {
    let mut sum = 0.0;
    for (i, a) in position.iter().enumerate() {
        for b in &position[..i] {
            let n = ((a[1] - b[1]) / l[1]).round();
            let d: [f64; 3] = std::array::from_fn(|k| {
                let d = a[k] - b[k] - if k == 0 { n * offset } else { 0.0 };
                d - l[k] * (d / l[k]).round()
            });
            let r = (d[0] * d[0] + d[1] * d[1] + d[2] * d[2]).sqrt();
            if r < 1.6 {
                sum += 20.0 * (1.0 - r / 1.6).powi(2);
            }
        }
    }
    sum
}

/// The energy is that of all pairs of images, however far they have slid: no neighbor is missed or met twice. The cells
/// are few along y in one box and many in the other.
#[test]
#[ignore = "5 seconds"]
fn neighbors_are_found_in_sliding_images() {
    for device in devices() {
        for (precision, limit) in [("Double", 1e-12), ("Mixed", 2e-6)] {
            for stretch in [[1.0, 1.0, 1.0], [2.0, 0.4, 1.25]] {
                let mut s = standard_system();
                for k in 0..3 {
                    s.box_length[k] *= stretch[k];
                    s.position.iter_mut().for_each(|p| p[k] *= stretch[k]);
                }
                let text = format!(
                    "(precision: {precision}, neighbors: (buffer: 0.5), forces: [{SOFT}], \
                     integrators: [Langevin(kT: 1.0, gamma: 1.0), LeesEdwards(rate: -0.9)], stages: [(steps: 60, dt: 0.01)])"
                );
                let mut b = started(&text, s.clone(), device);
                let l = s.box_length;
                for k in 1..=6 {
                    b.advance(10, Wanted::ALL, &AtomicBool::new(false)).expect("steps");
                    let offset = -0.9 * l[1] * 0.01 * f64::from(10 * k);
                    let truth = energy(&columns(&mut *b).position, l, offset);
                    let found = b.sums().expect("sums").components[0].energy;
                    assert!(
                        (found / truth - 1.0).abs() < limit,
                        "{device:?} {precision} {stretch:?}, step {}: {found} is not {truth}",
                        10 * k
                    );
                }
                let builds = b.list_report().expect("a list").builds;
                assert!((5..60).contains(&builds), "{builds} builds");
            }
        }
    }
}

/// Friction and noise between images that slide are the same on both devices.
#[test]
#[ignore = "3 seconds"]
fn a_sheared_liquid_moves_on_the_device_as_on_the_cpu() {
    if !has_compiler() {
        return;
    }
    for (precision, limit) in [("Double", 1e-10), ("Mixed", 2e-4), ("Single", 2e-4)] {
        let text = format!(
            "(seed: 5, precision: {precision}, forces: [{DPD}], \
             integrators: [LeesEdwards(rate: Ramp(from: 0.0, to: 1.5, steps: 20)), GrootWarren()], stages: [(steps: 60, dt: 0.005)])"
        );
        let [(xa, va), (xb, vb)] = [DeviceChoice::Cpu, DeviceChoice::Emulated].map(|device| {
            let plan = plan_of(&text, standard_system(), device).unwrap_or_else(|e| panic!("{}", e.render()));
            let (_, mut b) = run_plan(&plan).unwrap_or_else(|e| panic!("{}", e.render()));
            let c = columns(&mut *b);
            (c.position, c.velocity)
        });
        let l = standard_system().box_length;
        // a particle on the border may be above on one device and below on the other
        let near = xa.iter().zip(&xb).filter(|(a, b)| (a[1] - b[1]).abs() < 0.5 * l[1]);
        let apart = |d: f64, k: usize| (d - l[k] * (d / l[k]).round()).abs();
        let x = near.clone().flat_map(|(a, b)| (0..3).map(move |k| apart(a[k] - b[k], k))).fold(0.0, f64::max);
        assert!(near.count() > 990);
        println!(
            "{precision}: positions {x:e}, velocities {:e}",
            largest_difference(va.as_flattened(), vb.as_flattened())
        );
        assert!(x < limit, "{precision}: positions {x:e}");
        assert!(precision != "Double" || largest_difference(va.as_flattened(), vb.as_flattened()) < 50.0 * limit);
    }
}

/// The flow becomes v_x = γ̇ y, to the borders, and P_xy is not 0 any more.
#[test]
#[ignore = "20 seconds"]
fn the_profile_is_linear() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = r#"(
        seed: 3,
        initial: [ RandomPositions(count: 1536, box: [8.0, 8.0, 8.0]), Velocities(kT: 1.0) ],
        forces: [ Dpd(r_cut: 1.0, kT: 1.0, pairs: { ("A", "A"): (a: 25.0, sigma: 3.0) }) ],
        integrators: [ GrootWarren(), LeesEdwards(rate: 0.5) ],
        // in every step: two thirds of the noise are that of the random force, which has no memory
        analyzers: [ Thermo(every: 1, file: "t.csv") ],
        stages: [ (steps: 5000, dt: 0.02) ],
    )"#;
    let plan =
        plan_in(&folder.path().join("p.ron"), text, DeviceChoice::Cpu).unwrap_or_else(|e| panic!("{}", e.render()));
    let (_, mut b) = run_plan(&plan).unwrap_or_else(|e| panic!("{}", e.render()));
    // one slope for all: Σ v y/Σ y² is γ̇ for a linear profile
    let (mut vy, mut yy) = (0.0, 0.0);
    for _ in 0..60 {
        b.advance(20, Wanted::FORCE, &AtomicBool::new(false)).expect("steps");
        let c = columns(&mut *b);
        let shift = c.velocity.iter().map(|v| v[0]).sum::<f64>() / 1536.0;
        for (x, v) in c.position.iter().zip(&c.velocity) {
            vy += (v[0] - shift) * x[1];
            yy += x[1] * x[1];
        }
    }
    let slope = vy / yy;
    near("slope of a sheared DPD liquid", slope);
    let t = csv(&folder.path().join("t.csv"));
    let eta: Vec<f64> = t["pressure_xy"][1000..].iter().map(|p| -p / 0.5).collect();
    agrees("viscosity of a sheared DPD liquid", &eta);
}

#[test]
fn shear_alone_moves_nothing() {
    let text = "(integrators: [LeesEdwards(rate: 0.1)], stages: [(steps: 1, dt: 0.01)])";
    let Err(e) = plan_of(text, standard_system(), DeviceChoice::Cpu) else { panic!("it was taken") };
    assert!(e.render().contains("nothing would move"), "{}", e.render());
}

/// Green and Kubo's viscosity is that of equilibrium: the mean stress of a flow would be counted as a correlation without end.
#[test]
fn stress_correlations_of_a_flow_are_refused() {
    let text = "(initial: [RandomPositions(count: 300, box: [5.0, 5.0, 5.0]), Velocities(kT: 1.0)], \
        forces: [Dpd(r_cut: 1.0, kT: 1.0, pairs: {(\"A\", \"A\"): (a: 25.0, sigma: 3.0)})], \
        integrators: [GrootWarren(), LeesEdwards(rate: 0.5)], \
        analyzers: [StressCorrelation(every: 1, file: \"s.csv\", longest: 200)], stages: [(steps: 10, dt: 0.02)])";
    let folder = tempfile::tempdir().expect("a folder");
    let check = |text: &str| plan_in(&folder.path().join("p.ron"), text, DeviceChoice::Cpu);
    let Err(e) = check(text) else { panic!("it was taken") };
    let message = "StressCorrelation does not know the displaced images of LeesEdwards";
    assert!(e.render().contains(message), "{}", e.render());
    assert!(check(&text.replace(", LeesEdwards(rate: 0.5)", "")).is_ok());
}

/// A stage that moves the images, and one that does not.
fn two_stages(forces: &str, more: &str) -> String {
    format!(
        "(seed: 7, {more} forces: [{forces}], stages: [
            (name: \"flow\", steps: 30, dt: 0.01, integrators: [Langevin(kT: 1.0, gamma: 1.0), LeesEdwards(rate: 1.1)]),
            (name: \"rest\", steps: 60, dt: 0.005, integrators: [VelocityVerlet()])])"
    )
}

/// Does a stage of a plan.
fn stage(b: &mut dyn Backend, plan: &Plan, number: usize) {
    b.begin_stage(&plan.stages[number], false).expect("a stage");
    b.advance(plan.stages[number].stage.steps, Wanted::ALL, &AtomicBool::new(false)).expect("steps");
}

/// After the stage with Lees-Edwards boundaries, images stay where they are and stand still: the energy is that of the displaced
/// images, and it is conserved. An import of the state, as a resumed run does it, continues with the same bits.
#[test]
#[ignore = "3 seconds"]
fn images_stand_still_after_the_stage_that_moves_them() {
    for device in devices() {
        let plan = plan_of(&two_stages(SOFT, "precision: Double,"), standard_system(), device);
        let plan = plan.unwrap_or_else(|e| panic!("{}", e.render()));
        let (mut b, mut other) = (backend(&plan), backend(&plan));
        stage(&mut *b, &plan, 0);
        let l = b.box_length();
        let offset = 1.1 * l[1] * 0.3;
        let offset = offset - l[0] * (offset / l[0]).round();
        assert!((b.globals().shear_offset - offset).abs() < 1e-9, "{} is not {offset}", b.globals().shear_offset);
        assert!(b.globals().shear_speed > 0.0);
        b.begin_stage(&plan.stages[1], false).expect("a stage");
        let total = |b: &mut dyn Backend| energies(b).iter().sum::<f64>();
        let begin = total(&mut *b);
        for _ in 0..2 {
            b.advance(30, Wanted::ALL, &AtomicBool::new(false)).expect("steps");
            let g = b.globals();
            assert!(
                (g.shear_offset - offset).abs() < 1e-9 && g.shear_speed == 0.0,
                "{} {}",
                g.shear_offset,
                g.shear_speed
            );
            let truth = energy(&columns(&mut *b).position, l, offset);
            assert!((energies(&mut *b)[2] / truth - 1.0).abs() < 1e-12);
            if b.step() == 60 {
                let state = b.export().expect("a state");
                other.import(&state).expect("the state");
                other.begin_stage(&plan.stages[1], false).expect("a stage");
                other.advance(30, Wanted::ALL, &AtomicBool::new(false)).expect("steps");
            }
        }
        // particles that cross the boundary would gain γ̇ L_y = 12.4 each time
        let drift = total(&mut *b) / begin - 1.0;
        println!("{device:?}: relative change of the energy {drift:e}");
        below("shear: energy after the images stop", drift.abs());
        let (x, y) = (columns(&mut *b), columns(&mut *other));
        assert!(
            x.position == y.position && x.velocity == y.velocity,
            "{device:?}: the imported state moves differently"
        );
    }
}

/// Several ranks have the bits of one, in both stages.
#[test]
#[ignore = "5 seconds"]
fn images_stand_still_on_several_ranks() {
    if !has_compiler() {
        return;
    }
    let [one, two] = [1, 2].map(|gpus| {
        let text = two_stages(DPD, &format!("gpus: {gpus},"));
        let plan =
            plan_of(&text, standard_system(), DeviceChoice::Emulated).unwrap_or_else(|e| panic!("{}", e.render()));
        let (_, mut b) = run_plan(&plan).unwrap_or_else(|e| panic!("{}", e.render()));
        assert_eq!(b.globals().shear_speed, 0.0);
        let c = columns(&mut *b);
        (c.position, c.velocity)
    });
    assert!(one == two);
}

const TRIMERS: &str = r#"(
    seed: 3, neighbors: (exclude: [Bonds]),
    initial: [
        Polymers(box: [8.0, 8.0, 8.0], bond_length: 1.0, distance: 0.8, molecules: [(molecule: "A3", count: 100)]),
        LinkTypes(angles: ["A-A-A"]), Velocities(kT: 1.0),
    ],
    forces: [ Wca(pairs: {("*", "*"): (epsilon: 1.0, sigma: 0.9)}), HarmonicBond(bonds: {"*": (k: 500.0, r0: 1.0)}) ],
    stages: [
        (name: "relax", steps: 200, dt: 0.002, integrators: [CappedVerlet(max_displacement: 0.01)]),
        (name: "flow", steps: 1500, dt: 0.002, integrators: [Langevin(kT: 1.0, gamma: 1.0), LeesEdwards(rate: 0.2)], analyzers: [
            BondDistribution(every: 1, start: 1700, file: "bonds.csv", min: 0.7, max: 1.3, bins: 1),
            Gyration(every: 1700, file: "gyration.csv"), InternalDistances(every: 1, start: 1700, file: "internal.csv"),
        ]),
    ],
)"#;

/// Bonds and molecules across the displaced boundary have their lengths and sizes.
#[test]
#[ignore = "5 seconds"]
fn molecules_across_displaced_images_are_whole() {
    for device in devices() {
        let folder = tempfile::tempdir().expect("a folder");
        let text = if device == DeviceChoice::Cpu { TRIMERS.into() } else { TRIMERS.replace("1500", "300") };
        let text = text.replace("1700", if device == DeviceChoice::Cpu { "1700" } else { "500" });
        let plan = plan_in(&folder.path().join("p.ron"), &text, device).unwrap_or_else(|e| panic!("{}", e.render()));
        let (_, mut b) = run_plan(&plan).unwrap_or_else(|e| panic!("{}", e.render()));
        let (c, l, offset) = (columns(&mut *b), b.box_length(), b.globals().shear_offset);
        let mut crossing = 0;
        let mut square = |i: usize, j: usize, k: usize| {
            // the sum of two bonds
            let mut sum = [0.0; 3];
            for [a, b] in [[i, j], [j, k]] {
                let (a, b) = (c.position[a], c.position[b]);
                let n = ((b[1] - a[1]) / l[1]).round();
                crossing += usize::from(n != 0.0);
                for x in 0..3 {
                    let d = b[x] - a[x] - if x == 0 { n * offset } else { 0.0 };
                    sum[x] += d - l[x] * (d / l[x]).round();
                }
            }
            sum.iter().map(|x| x * x).sum::<f64>()
        };
        // trimers have the tags 3 m, 3 m + 1, 3 m + 2 in the order of the chain
        let of = |square: &mut dyn FnMut(usize, usize, usize) -> f64, [i, j, k]: [usize; 3]| -> f64 {
            (0..100).map(|m| square(3 * m + i, 3 * m + j, 3 * m + k)).sum::<f64>() / 100.0
        };
        let (first, second, ends) =
            (of(&mut square, [0, 1, 1]), of(&mut square, [1, 2, 2]), of(&mut square, [0, 1, 2]));
        assert!(crossing > 10 && offset.abs() > 0.1, "{crossing} bonds cross the boundary, displaced by {offset}");
        let read = |file: &str| csv(&folder.path().join(file));
        let (bonds, gyration, internal) = (read("bonds.csv"), read("gyration.csv"), read("internal.csv"));
        let close = |what: &str, found: f64, truth: f64| {
            // single precision of positions in a box of length 8
            assert!((found / truth - 1.0).abs() < 1e-6, "{device:?} {what}: {found} is not {truth}");
        };
        let p = &bonds["A-A"];
        assert!((p[0] * 0.6 - 1.0).abs() < 1e-12, "{device:?}: {p:?}");
        close("R² of bonds", internal["R2"][0], 0.5 * (first + second));
        close("R² of ends", internal["R2"][1], ends);
        close("Re²", gyration["Re2"][0], ends);
        // equal masses: Rg² is the sum of all squared distances over n²
        close("Rg²", gyration["Rg2"][0], (first + second + ends) / 9.0);
    }
}

/// Images move from the first forces on: two heavy particles that are neighbors across the boundary have the friction of the relative
/// velocity before and after the first step, also in a stage that begins to shear.
#[test]
fn friction_knows_the_flow_before_the_first_step() {
    let mut s = Snapshot { dimensions: 3, box_length: [10.0, 12.0, 10.0], ..Snapshot::default() };
    let a = s.type_id("A");
    s.push(a, [0.3, 5.7, 0.0]);
    s.push(a, [0.0, -5.7, 0.0]);
    s.mass.iter_mut().for_each(|m| *m = 1e6);
    // r = (0.3, −0.6), v = (−24, 0): F = −γ (1 − r/r_cut)² (r̂·v) r̂
    let r = 0.45f64.sqrt();
    let strength = 4.5 * (1.0 - r / 1.5).powi(2) * 24.0 * 0.3 / r;
    let truth = [strength * 0.3 / r, -strength * 0.6 / r];
    for device in devices() {
        let text = "(precision: Double, \
            forces: [DpdThermostat(r_cut: 1.5, kT: 1e-28, pairs: {(\"A\", \"A\"): (gamma: 4.5)})], stages: [\
            (steps: 10, dt: 0.0001, integrators: [GrootWarren()]), \
            (steps: 10, dt: 0.0001, integrators: [LeesEdwards(rate: 2.0), GrootWarren()])])";
        let plan = plan_of(text, s.clone(), device).unwrap_or_else(|e| panic!("{}", e.render()));
        let mut b = backend(&plan);
        plan.components.iter().for_each(|c| c.start(b.host()).expect("started"));
        let force = |b: &mut dyn Backend| -> Vec<f64> {
            let bytes = b.read("force").expect("forces");
            bytes.as_chunks::<8>().0.iter().map(|x| f64::from_ne_bytes(*x)).collect()
        };
        b.begin_stage(&plan.stages[0], false).expect("a stage");
        assert!(force(&mut *b)[..2].iter().all(|f| f.abs() < 1e-9), "{device:?}");
        b.begin_stage(&plan.stages[1], false).expect("a stage");
        let first = force(&mut *b);
        // noise of kT 10⁻²⁸ and steps of 10⁻⁴
        let off = |f: f64, truth: f64| (f - truth).abs() / strength;
        assert!(
            off(first[0], truth[0]) < 1e-9 && off(first[1], truth[1]) < 1e-9,
            "{device:?}: {first:?} is not {truth:?}"
        );
        b.advance(1, Wanted::ALL, &AtomicBool::new(false)).expect("a step");
        // the image has moved by 0.0024
        let second = force(&mut *b);
        assert!(off(second[0], truth[0]) < 0.02 && off(second[0], first[0]) > 1e-4, "{device:?}: {second:?}");
    }
}
