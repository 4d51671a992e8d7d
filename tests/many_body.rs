//! Many-body DPD against its formula, written once more here, and against differences of its energy.

use galamost::selftest::standard_system;
use galamost_engine::backend::Backend;
use galamost_engine::pipeline::DeviceChoice;
use galamost_plugin_api::snapshot::Snapshot;
use galamost_plugin_api::views::Sums;
use galamost_tests::{backend, has_compiler, largest_difference, plan_of};

const ROWS: &str = r#"pairs: { ("A", "A"): (A: -40.0), ("A", "B"): (A: -30.0, r_cut: 1.5), ("B", "B"): (A: -35.0) }"#;
const R_D: f64 = 1.1;
const B: f64 = 25.0;

/// A and r_c of a pair of types.
fn row(a: u32, b: u32) -> (f64, f64) {
    [(-40.0, 1.3), (-30.0, 1.5), (-35.0, 1.3)][(a + b) as usize]
}

fn ready(s: Snapshot, device: DeviceChoice, precision: &str) -> Box<dyn Backend> {
    let text = format!(
        "(precision: {precision}, forces: [ManyBodyDpd(B: {B:?}, r_d: {R_D}, r_cut: 1.3, {ROWS})], \
         integrators: [VelocityVerlet()], stages: [(steps: 0, dt: 0.01)])"
    );
    let plan = plan_of(&text, s, device).unwrap_or_else(|e| panic!("{}", e.render()));
    let mut b = backend(&plan);
    plan.components.iter().for_each(|c| c.start(b.host()).expect("started"));
    b.begin_stage(&plan.stages[0], false).expect("forces");
    // the component lives as long as the plan: what is wanted of it is computed now
    b
}

fn sums(b: &mut dyn Backend) -> Sums {
    b.sums().expect("sums").components[0]
}

/// Forces in tag order.
fn forces(b: &mut dyn Backend, precision: &str) -> Vec<f64> {
    let bytes = b.read("force").expect("forces");
    let all: Vec<f64> = if precision == "Double" {
        bytes.as_chunks::<8>().0.iter().map(|b| f64::from_ne_bytes(*b)).collect()
    } else {
        bytes.as_chunks::<4>().0.iter().map(|b| f64::from(f32::from_ne_bytes(*b))).collect()
    };
    all.as_chunks::<4>().0.iter().flat_map(|f| [f[0], f[1], f[2]]).collect()
}

/// Forces, energy and virial by all pairs.
fn brute_force(s: &Snapshot) -> (Vec<f64>, Sums) {
    let l = s.box_length[0];
    let apart = |i: usize, j: usize| -> [f64; 3] {
        std::array::from_fn(|k| {
            let d = s.position[i][k] - s.position[j][k];
            d - l * (d / l).round()
        })
    };
    let norm = |d: [f64; 3]| d.iter().map(|x| x * x).sum::<f64>().sqrt();
    let n = s.len();
    let pi = std::f64::consts::PI;
    let weight = |i: usize, j: usize| (1.0 - norm(apart(i, j)) / R_D).max(0.0).powi(2);
    let density = |i: usize| (0..n).filter(|j| *j != i).map(|j| weight(i, j)).sum::<f64>();
    let rho: Vec<f64> = (0..n).map(|i| 15.0 / (2.0 * pi * R_D.powi(3)) * density(i)).collect();
    let mut out = Sums { energy: rho.iter().map(|r| pi * R_D.powi(4) * B / 30.0 * r * r).sum(), ..Sums::default() };
    let mut f = vec![0.0; 3 * n];
    for i in 0..n {
        for j in 0..i {
            let d = apart(i, j);
            let r = norm(d);
            let (a, cutoff) = row(s.type_id[i], s.type_id[j]);
            let (x, y) = ((1.0 - r / cutoff).max(0.0), (1.0 - r / R_D).max(0.0));
            out.energy += 0.5 * a * cutoff * x * x;
            let strength = (a * x + B * (rho[i] + rho[j]) * y) / r;
            for k in 0..3 {
                f[3 * i + k] += strength * d[k];
                f[3 * j + k] -= strength * d[k];
            }
            for (w, (p, q)) in out.virial.iter_mut().zip([(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)]) {
                *w += strength * d[p] * d[q];
            }
        }
    }
    (f, out)
}

#[test]
fn every_device_and_precision_agrees_with_the_formula() {
    let s = standard_system();
    let (f, all) = brute_force(&s);
    let largest = f.iter().fold(0.0f64, |m, f| m.max(f.abs()));
    let mut devices = vec![DeviceChoice::Cpu];
    if has_compiler() {
        devices.push(DeviceChoice::Emulated);
    }
    for device in devices {
        for (precision, limit) in [("Double", 1e-13), ("Mixed", 2e-5), ("Single", 2e-5)] {
            let mut b = ready(s.clone(), device, precision);
            let (found, sum) = (forces(&mut *b, precision), sums(&mut *b));
            let far = largest_difference(&found, &f) / largest;
            let energy = (sum.energy - all.energy).abs() / all.energy.abs();
            let virial = largest_difference(&sum.virial, &all.virial) / all.virial[0].abs();
            println!("{device:?} {precision}: forces {far:.1e}, energy {energy:.1e}, virial {virial:.1e}");
            assert!(
                far < limit && energy < limit && virial < limit,
                "{device:?} {precision}: {far:e} {energy:e} {virial:e}"
            );
            let total = (0..3).map(|k| found.iter().skip(k).step_by(3).sum::<f64>().abs()).fold(0.0, f64::max);
            assert!(total < 1000.0 * limit * largest, "{device:?} {precision}: Σ F = {total:e}");
            if precision == "Double" {
                assert!(total < 1e-11 * largest, "{device:?}: Σ F = {total:e}");
            }
        }
    }
}

/// Differences of fourth order of the energy of all, for some particles.
#[test]
fn the_force_is_the_gradient_of_the_energy() {
    let s = standard_system();
    let found = forces(&mut *ready(s.clone(), DeviceChoice::Cpu, "Double"), "Double");
    let largest = found.iter().fold(0.0f64, |m, f| m.max(f.abs()));
    let h = 1e-4;
    let mut worst = 0.0f64;
    for tag in [0usize, 17, 333, 518, 998] {
        for k in 0..3 {
            let energy = |x: f64| {
                let mut s = s.clone();
                s.position[tag][k] += x;
                sums(&mut *ready(s, DeviceChoice::Cpu, "Double")).energy
            };
            let slope = (8.0 * (energy(h) - energy(-h)) - (energy(2.0 * h) - energy(-2.0 * h))) / (12.0 * h);
            worst = worst.max((found[3 * tag + k] + slope).abs() / largest);
        }
    }
    println!("|F + dU/dr| / largest force: {worst:.1e}");
    // fourth order: h⁴ U⁽⁵⁾, and rounding 1e-16 · U/h, both about 1e-10 of the largest force; forces jump in their second derivative at cutoffs
    assert!(worst < 1e-8, "{worst:e}");
}

/// With lengths of 10⁻¹⁰ and 10⁹, ρ² and π r_d⁴ B/30 are out of the range of f32, but not their product.
#[test]
fn units_far_from_1_keep_the_energy_of_the_densities() {
    for (length, energy) in [(1e-10, 1e-21), (1e9, 1.0)] {
        let mut s = standard_system();
        s.box_length = s.box_length.map(|l| l * length);
        s.position.iter_mut().flatten().for_each(|x| *x *= length);
        let all_sums = |device: DeviceChoice, precision: &str| {
            let text = format!(
                "(precision: {precision}, forces: [ManyBodyDpd(B: {:e}, r_d: {:e}, r_cut: {:e}, pairs: {{ \
                 (\"A\", \"A\"): (A: {a:e}), (\"A\", \"B\"): (A: {a:e}), (\"B\", \"B\"): (A: {a:e}) }})], \
                 integrators: [VelocityVerlet()], stages: [(steps: 0, dt: {:e})])",
                B * energy * length * length,
                R_D * length,
                1.3 * length,
                0.001 * length,
                a = -40.0 * energy / length
            );
            let plan = plan_of(&text, s.clone(), device).unwrap_or_else(|e| panic!("{}", e.render()));
            let mut b = backend(&plan);
            plan.components.iter().for_each(|c| c.start(b.host()).expect("started"));
            b.begin_stage(&plan.stages[0], false).expect("forces");
            sums(&mut *b)
        };
        let exact = all_sums(DeviceChoice::Cpu, "Double");
        for device in galamost_tests::devices() {
            let found = all_sums(device, "Mixed");
            let off = (found.energy - exact.energy).abs() / exact.energy.abs();
            let virial = largest_difference(&found.virial, &exact.virial) / exact.virial[0].abs();
            // single precision: 6e-8 for each of some ten operations, and attraction and repulsion cancel to no less than a tenth
            assert!(off < 1e-4 && virial < 1e-4, "{device:?}, {length:e}: {found:?} {exact:?}");
        }
    }
}
