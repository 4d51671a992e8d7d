//! Averages of constrained molecules: temperatures, pressures, angles.

use super::{CHAIN, PAIRS, RING, Shape, TRIANGLE, TRIMER, dot, molecular, molecules, pipeline, started, triple_pv};
use galamost_engine::diagnostic::Failure;
use galamost_engine::pipeline::DeviceChoice;
use galamost_plugin_api::snapshot::{Link, Snapshot};
use galamost_tests::{advance, columns, devices, energies, mean, plan_of, run_plan, unwrapped};

/// Samples of a stationary run: mean and standard error of ten blocks.
fn estimate(samples: &[f64]) -> (f64, f64) {
    let blocks: Vec<f64> = samples.chunks_exact(samples.len() / 10).map(mean).collect();
    let m = mean(&blocks);
    let variance = blocks.iter().map(|b| (b - m).powi(2)).sum::<f64>() / 9.0;
    (m, (variance / 10.0).sqrt())
}

/// Mean temperatures of all degrees of freedom, and of the centers of molecules.
fn temperatures(shape: &Shape, integrator: &str, removed: f64) -> [(f64, f64); 2] {
    let state = molecules(shape, 4, 4.3);
    let (n, size) = (state.position.len(), shape.at.len());
    let mut b = started(&pipeline(PAIRS, integrator, 0.004, "Mixed"), &state, DeviceChoice::Cpu);
    advance(&mut *b, 1_000);
    let degrees = 3.0 * n as f64 - state.bonds.len() as f64 - removed;
    let centers = 3.0 * (n / size) as f64 - removed;
    let samples: Vec<(f64, f64)> = (0..200)
        .map(|_| {
            advance(&mut *b, 40);
            let kt = 2.0 * energies(&mut *b)[0] / degrees;
            (kt, molecular(&unwrapped(&mut *b).1, &state.mass, size) / centers)
        })
        .collect();
    let (all, centers): (Vec<f64>, Vec<f64>) = samples.into_iter().unzip();
    [estimate(&all), estimate(&centers)]
}

#[test]
#[ignore = "10 seconds"]
fn all_degrees_of_freedom_have_one_temperature() {
    for (shape, what) in [(CHAIN, "chains"), (TRIANGLE, "triangles")] {
        for (integrator, removed) in [
            ("Langevin(kT: 1.5, gamma: 2.0)", 0.0),
            ("NoseHooverChain(kT: 1.5, tau: 0.2)", 3.0),
            ("Bussi(kT: 1.5, tau: 0.2)", 3.0),
        ] {
            let [(all, e1), (centers, e2)] = temperatures(&shape, integrator, removed);
            println!("{what} {integrator}: {all} ± {e1}, centers {centers} ± {e2}");
            // four standard errors, and the time step's error of some (ω dt)²/12 < 0.3 %
            assert!((all - 1.5).abs() < 4.0 * e1 + 0.0045, "{what} {integrator}: {all} ± {e1}");
            assert!((centers - 1.5).abs() < 4.0 * e2 + 0.0045, "{what} {integrator}: {centers} ± {e2}");
            // a wrong number of degrees of freedom would be seen
            assert!(e1 < 0.04 && e2 < 0.06, "{e1} {e2}");
        }
    }
}

/// Without interactions, PV = kT for each molecule, flexible or rigid.
#[test]
#[ignore = "5 seconds"]
fn ideal_molecules_have_the_pressure_of_an_ideal_gas() {
    for (shape, what) in [(CHAIN, "chains"), (RING, "rings"), (TRIANGLE, "triangles")] {
        let state = molecules(&shape, 4, 3.8);
        let mut b = started(&pipeline("", "Langevin(kT: 1.0, gamma: 2.0)", 0.005, "Double"), &state, DeviceChoice::Cpu);
        advance(&mut *b, 400);
        let samples: Vec<f64> = (0..300)
            .map(|_| {
                advance(&mut *b, 20);
                triple_pv(&mut *b) / (3.0 * 64.0)
            })
            .collect();
        let (p, error) = estimate(&samples);
        println!("{what}: PV/NkT = {p} ± {error}");
        // three standard errors, and the time step's error of 0.2 %
        assert!((p - 1.0).abs() < 3.0 * error + 0.002 && error < 0.04, "{what}: {p} ± {error}");
    }
}

/// The angle of trimers of equal masses has the density sin θ √(1 − cos²θ/4).
#[test]
#[ignore = "5 seconds"]
fn the_angle_of_free_trimers_has_the_density_of_rigid_bonds() {
    let state = molecules(&TRIMER, 6, 3.0);
    let mut b = started(&pipeline("", "Langevin(kT: 1.0, gamma: 2.0)", 0.01, "Double"), &state, DeviceChoice::Cpu);
    advance(&mut *b, 500);
    let samples: Vec<f64> = (0..300)
        .map(|_| {
            advance(&mut *b, 40);
            let x = unwrapped(&mut *b).0;
            let one = |m: &[f64]| {
                let arm = |k: usize| -> [f64; 3] { std::array::from_fn(|a| m[3 * k + a] - m[3 + a]) };
                let (u, v) = (arm(0), arm(2));
                (dot(u, v) / (dot(u, u) * dot(v, v)).sqrt()).powi(2)
            };
            mean(&x.chunks_exact(9).map(one).collect::<Vec<_>>())
        })
        .collect();
    let (square, error) = estimate(&samples);
    // ⟨cos²θ⟩ by the midpoint rule
    let steps = 10_000;
    let (mut sum, mut norm) = (0.0, 0.0);
    for k in 0..steps {
        let c = (f64::from(k) + 0.5) / f64::from(steps);
        let w = (1.0 - 0.25 * c * c).sqrt();
        (sum, norm) = (sum + c * c * w, norm + w);
    }
    println!("{square} ± {error}, expected {}", sum / norm);
    // 0.012 from that of flexible bonds, 1/3
    assert!((square - sum / norm).abs() < 3.0 * error && error < 0.003, "{square} ± {error}, not {}", sum / norm);
}

/// In a barostat, the mean pressure is the target; at the mean volume, the pressure is the same with a thermostat only.
#[test]
#[ignore = "minutes"]
fn a_barostat_samples_the_pressure() {
    let state = molecules(&CHAIN, 4, 4.3);
    let npt = "MtkNpt(kT: 1.0, tau: 0.3, pressure: 1.0, tau_p: 1.0)";
    let mut b = started(&pipeline(PAIRS, npt, 0.004, "Double"), &state, DeviceChoice::Cpu);
    advance(&mut *b, 10_000);
    let (mut pressures, mut volumes) = (vec![], vec![]);
    for _ in 0..2_000 {
        advance(&mut *b, 50);
        let volume: f64 = b.box_length().iter().product();
        pressures.push(triple_pv(&mut *b) / (3.0 * volume));
        volumes.push(volume);
    }
    let ((p, error), (volume, _)) = (estimate(&pressures), estimate(&volumes));
    println!("NPT: {p} ± {error} in {volume}");
    assert!((p - 1.0).abs() < 3.0 * error + 0.005, "{p} ± {error}");
    // the last state in the mean box; the start corrects the lengths
    let (c, scale) = (columns(&mut *b), volume.cbrt() / b.box_length()[0]);
    let position = c.position.iter().map(|x| x.map(|x| scale * x)).collect();
    let state = Snapshot { position, image: c.image, velocity: c.velocity, box_length: [volume.cbrt(); 3], ..state };
    let mut b = started(&pipeline(PAIRS, "Langevin(kT: 1.0, gamma: 1.0)", 0.004, "Double"), &state, DeviceChoice::Cpu);
    advance(&mut *b, 10_000);
    let pressures: Vec<f64> = (0..2_000)
        .map(|_| {
            advance(&mut *b, 50);
            triple_pv(&mut *b) / (3.0 * volume)
        })
        .collect();
    let (q, other) = estimate(&pressures);
    println!("NVT: {q} ± {other}");
    // ensembles differ by O(1/N)
    assert!((q - p).abs() < 3.0 * (error * error + other * other).sqrt() + 0.01, "{q} ± {other}, {p} ± {error}");
}

/// A box that becomes shorter than twice a constraint is the cause that the error names.
#[test]
fn a_box_below_twice_a_constraint_is_an_error() {
    let mut s =
        Snapshot { dimensions: 3, box_length: [10.0; 3], bond_types: vec!["A-A".into()], ..Snapshot::default() };
    let a = s.type_id("A");
    for x in [-2.395, 2.395] {
        s.push(a, [x, 0.0, 0.0]);
    }
    s.bonds.push(Link { kind: 0, tags: [0, 1] });
    let updaters = "updaters: [BoxResize(every: 1, x: Ramp(from: 10.0, to: 9.0, steps: 20))], stages";
    let text = pipeline("", "VelocityVerlet()", 0.001, "Double")
        .replace("\"A-A\": 1.0", "\"A-A\": 4.79")
        .replace("stages", updaters)
        .replace("steps: 0", "steps: 20");
    for device in devices() {
        let plan = plan_of(&text, s.clone(), device).unwrap_or_else(|e| panic!("{}", e.render()));
        match run_plan(&plan) {
            Err(Failure::Run(message, _)) => {
                assert!(
                    message.contains("Constraints: half the shortest box length is less than a constraint"),
                    "{message}"
                );
            }
            Err(e) => panic!("{}", e.render()),
            Ok(_) => panic!("{device:?}: the fault was not noticed"),
        }
    }
}
