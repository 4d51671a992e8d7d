//! Shear flow by Lees and Edwards: images that slide, on the CPU and on the emulated device.

use galamost::selftest::standard_system;
use galamost_engine::pipeline::DeviceChoice;
use galamost_plugin_api::views::Wanted;
use galamost_tests::tolerances::{agrees, near};
use galamost_tests::{columns, csv, devices, has_compiler, largest_difference, plan_of, run_plan, started};
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
fn the_profile_is_linear() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = r#"(
        seed: 3,
        initial: [ RandomPositions(count: 1536, box: [8.0, 8.0, 8.0]), Velocities(kT: 1.0) ],
        forces: [ Dpd(r_cut: 1.0, kT: 1.0, pairs: { ("A", "A"): (a: 25.0, sigma: 3.0) }) ],
        integrators: [ GrootWarren(), LeesEdwards(rate: 0.5) ],
        analyzers: [ Thermo(every: 5, file: "t.csv") ],
        stages: [ (steps: 4000, dt: 0.01) ],
    )"#;
    let plan = galamost_tests::plan_in(&folder.path().join("p.ron"), text, DeviceChoice::Cpu)
        .unwrap_or_else(|e| panic!("{}", e.render()));
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
    let eta: Vec<f64> = t["pressure_xy"][200..].iter().map(|p| -p / 0.5).collect();
    agrees("viscosity of a sheared DPD liquid", &eta);
}

#[test]
fn shear_alone_moves_nothing() {
    let text = "(integrators: [LeesEdwards(rate: 0.1)], stages: [(steps: 1, dt: 0.01)])";
    let Err(e) = plan_of(text, standard_system(), DeviceChoice::Cpu) else { panic!("it was taken") };
    assert!(e.render().contains("nothing would move"), "{}", e.render());
}
