//! Distance constraints: lengths, energies, pressure, equipartition, both devices, and what ends a run.

mod ensembles;

use galamost_engine::backend::Backend;
use galamost_engine::diagnostic::Failure;
use galamost_engine::pipeline::DeviceChoice;
use galamost_engine::plan::Plan;
use galamost_plugin_api::snapshot::{Link, Snapshot};
use galamost_tests::{
    advance, backend, columns, devices, energies, energy_fluctuation, galamost, largest_difference, mean, plan,
    plan_of, run_plan, unwrapped, words,
};
use std::fmt::Write as _;

/// A molecule: positions, mass of each particle, constrained pairs.
struct Shape {
    at: &'static [[f64; 3]],
    mass: &'static [f64],
    bonds: &'static [[u32; 2]],
}

const DIMER: Shape = Shape { at: &[[0.0; 3], [1.0, 0.0, 0.0]], mass: &[1.0, 2.0], bonds: &[[0, 1]] };
/// Sides of length 1.
const TRIANGLE: Shape = Shape {
    at: &[[0.0; 3], [1.0, 0.0, 0.0], [0.5, 0.866_025_403_784_438_6, 0.0]],
    mass: &[4.0, 1.0, 1.5],
    bonds: &[[0, 1], [0, 2], [1, 2]],
};
const CHAIN: Shape = Shape {
    at: &[[0.0; 3], [0.8, 0.6, 0.0], [1.6, 0.0, 0.0], [2.4, 0.6, 0.0], [3.2, 0.0, 0.0]],
    mass: &[1.0, 1.0, 2.0, 1.0, 1.0],
    bonds: &[[1, 0], [1, 2], [2, 3], [4, 3]],
};
/// A pentagon of side 1. An odd number of equal sides cannot fold onto a line, where constraints depend on each other.
const RING: Shape = Shape {
    at: &[
        [1.7013016167040798, 0.8506508083520399, 0.0],
        [1.1135163644116066, 1.6596678027269873, 0.0],
        [0.1624598481164532, 1.3506508083520399, 0.0],
        [0.1624598481164531, 0.350_650_808_352_04, 0.0],
        [1.1135163644116064, 0.0416338139770924, 0.0],
    ],
    mass: &[1.0; 5],
    bonds: &[[0, 1], [1, 2], [2, 3], [3, 4], [4, 0]],
};
const TRIMER: Shape =
    Shape { at: &[[0.0; 3], [0.8, 0.6, 0.0], [1.6, 0.0, 0.0]], mass: &[1.0; 3], bonds: &[[0, 1], [1, 2]] };

/// Molecules on a lattice of `side`³ places with this distance, with velocities of kT = 1 that satisfy nothing.
fn molecules(shape: &Shape, side: usize, distance: f64) -> Snapshot {
    let l = side as f64 * distance;
    let mut s = Snapshot {
        dimensions: 3,
        box_length: [l; 3],
        types: vec!["A".into()],
        bond_types: vec!["A-A".into()],
        ..Snapshot::default()
    };
    let mut random = 12345u64;
    let mut uniform = || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as f64 / f64::from(1u32 << 31)
    };
    for m in 0..side * side * side {
        let cell = [m % side, m / side % side, m / side / side];
        let first = s.position.len() as u32;
        for (at, mass) in shape.at.iter().zip(shape.mass) {
            let x: [f64; 3] = std::array::from_fn(|k| distance * (cell[k] as f64 + 0.1) - 0.5 * l + at[(k + m) % 3]);
            let image = x.map(|x| (x / l).round());
            s.position.push(std::array::from_fn(|k| x[k] - l * image[k]));
            s.image.push(image.map(|n| n as i32));
            // the sum of twelve uniform numbers has the variance 1
            let mut normal = || (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
            s.velocity.push(std::array::from_fn(|_| normal() / mass.sqrt()));
            s.mass.push(*mass);
            s.type_id.push(0);
        }
        s.bonds.extend(shape.bonds.iter().map(|b| Link { kind: 0, tags: b.map(|t| first + t) }));
    }
    let total: f64 = s.mass.iter().sum();
    let p: [f64; 3] = std::array::from_fn(|k| s.velocity.iter().zip(&s.mass).map(|(v, m)| m * v[k]).sum());
    s.velocity.iter_mut().for_each(|v| (0..3).for_each(|k| v[k] -= p[k] / total));
    s
}

const PAIRS: &str = r#"Wca(pairs: { ("*", "*"): (epsilon: 1.0, sigma: 0.9) }),"#;

fn pipeline(forces: &str, integrator: &str, dt: f64, precision: &str) -> String {
    format!(
        r#"(seed: 4, precision: {precision}, neighbors: (exclude: [Bonds]),
            forces: [{forces} Constraints(types: {{ "A-A": 1.0 }}, tolerance: 1e-10)],
            integrators: [{integrator}], stages: [(name: "s", steps: 0, dt: {dt})])"#
    )
}

fn begun(plan: &Plan) -> Box<dyn Backend> {
    let mut b = backend(plan);
    plan.components.iter().for_each(|c| c.start(b.host()).expect("started"));
    b.begin_stage(&plan.stages[0], false).expect("a stage");
    b
}

fn started(text: &str, state: &Snapshot, device: DeviceChoice) -> Box<dyn Backend> {
    begun(&plan_of(text, state.clone(), device).unwrap_or_else(|e| panic!("{}", e.render())))
}

fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    (0..3).map(|k| a[k] * b[k]).sum()
}

/// Returns the largest deviation of a length from 1, and the largest velocity along a bond.
fn deviations(x: &[f64], v: &[f64], s: &Snapshot) -> (f64, f64) {
    let across = |of: &[f64], b: &Link<2>| -> [f64; 3] {
        let [i, j] = b.tags.map(|t| 3 * t as usize);
        std::array::from_fn(|k| of[i + k] - of[j + k])
    };
    s.bonds.iter().fold((0.0, 0.0), |(length, rate): (f64, f64), b| {
        let (d, w) = (across(x, b), across(v, b));
        (length.max((dot(d, d).sqrt() - 1.0).abs()), rate.max(dot(d, w).abs()))
    })
}

/// Thrice the pressure times the volume.
fn triple_pv(b: &mut dyn Backend) -> f64 {
    let s = b.sums().expect("sums");
    let virial: f64 = s.components.iter().map(|c| c.virial[0] + c.virial[3] + c.virial[5]).sum();
    2.0 * energies(b)[0] + virial
}

/// Σ P²/M over molecules of `n` particles.
fn molecular(v: &[f64], mass: &[f64], n: usize) -> f64 {
    let molecules = v.chunks_exact(3 * n).zip(mass.chunks_exact(n));
    let one = |(v, mass): (&[f64], &[f64])| {
        let p = |k: usize| v.chunks_exact(3).zip(mass).map(|(v, m)| m * v[k]).sum::<f64>();
        (0..3).map(|k| p(k).powi(2)).sum::<f64>() / mass.iter().sum::<f64>()
    };
    molecules.map(one).sum()
}

#[test]
#[ignore = "3 seconds"]
fn lengths_hold_on_every_device() {
    // rounding of positions in a box of 13 or 64-bit units, of velocities, and of what sixty steps make of them
    // (velocities: the tolerance divided by dt, and rounding)
    let cases = [("Double", 1e-10, 2.5e-8, 1e-8), ("Mixed", 1e-9, 2e-6, 1e-4), ("Single", 1e-8, 2e-6, 1e-3)];
    for (shape, what) in [(DIMER, "dimers"), (TRIANGLE, "triangles"), (CHAIN, "chains"), (RING, "rings")] {
        let state = molecules(&shape, 3, 4.3);
        for (precision, place, speed, agreement) in cases {
            let mut first: Option<Vec<f64>> = None;
            for device in devices() {
                let mut b = started(&pipeline(PAIRS, "VelocityVerlet()", 0.004, precision), &state, device);
                for steps in [0, 1, 59] {
                    advance(&mut *b, steps);
                    let (x, v) = unwrapped(&mut *b);
                    let (length, rate) = deviations(&x, &v, &state);
                    println!("{what} {precision} {device:?}: {length:e} {rate:e}");
                    assert!(length < place, "{what} {precision} {device:?}: lengths differ by {length:e}");
                    assert!(rate < speed, "{what} {precision} {device:?}: the velocity along a bond is {rate:e}");
                }
                let (x, v) = unwrapped(&mut *b);
                let moved = x.iter().zip(state.position.as_flattened()).any(|(a, b)| (a - b).abs() > 0.1);
                assert!(moved, "nothing moved");
                let s = b.sums().expect("sums");
                let rounding = if precision == "Double" { 1e-10 } else { 1e-3 };
                assert!(s.momentum.iter().all(|p| p.abs() < rounding), "{what} {precision}: {:?}", s.momentum);
                let pressure = triple_pv(&mut *b) / state.position.len() as f64;
                match &first {
                    None => first = Some([x, v, vec![pressure]].concat()),
                    Some(first) => {
                        let d = largest_difference(first, &[x, v, vec![pressure]].concat());
                        println!("{what} {precision}: devices differ by {d:e}");
                        assert!(d < agreement, "{what} {precision} {device:?}: differs by {d}");
                    }
                }
            }
        }
    }
}

#[test]
fn the_energy_error_is_second_order() {
    for (shape, what, distance) in
        [(DIMER, "dimers", 2.0), (TRIANGLE, "triangles", 2.1), (CHAIN, "chains", 4.3), (RING, "rings", 2.6)]
    {
        let state = molecules(&shape, 3, distance);
        let width = |dt: f64| {
            let mut b = started(&pipeline(PAIRS, "VelocityVerlet()", dt, "Double"), &state, DeviceChoice::Cpu);
            energy_fluctuation(&mut *b, dt) / 27.0
        };
        let (coarse, fine) = (width(0.004), width(0.002));
        println!("{what}: {coarse:e}, {fine:e} per molecule");
        // the ratio tells the order; the bound only excludes runs that are not stable
        assert!(coarse < 1e-2 && (3.0..5.0).contains(&(coarse / fine)), "{what}: {coarse:e}, {fine:e}: not ∝ dt²");
    }
}

/// The total energy walks, as that of any potential with a cutoff, but has no trend: the mean change of eight runs over fifty
/// units of time is zero within four standard errors.
#[test]
#[ignore = "20 seconds"]
fn the_energy_does_not_drift() {
    let block = |b: &mut dyn Backend| {
        let sample = |_| {
            advance(b, 40);
            energies(b).iter().sum()
        };
        mean(&(0..25).map(sample).collect::<Vec<f64>>())
    };
    let run = |k: usize| {
        let mut state = molecules(&CHAIN, 3, 4.3);
        state.velocity.rotate_left(5 * k);
        let mut b = started(&pipeline(PAIRS, "VelocityVerlet()", 0.005, "Double"), &state, DeviceChoice::Cpu);
        advance(&mut *b, 500);
        let first = block(&mut *b);
        advance(&mut *b, 8_000);
        (block(&mut *b) - first, energies(&mut *b)[0])
    };
    let (changes, kinetic): (Vec<f64>, Vec<f64>) = (0..8).map(run).unzip();
    let m = mean(&changes);
    let error = (changes.iter().map(|c| (c - m).powi(2)).sum::<f64>() / (7.0 * 8.0)).sqrt();
    println!("{m:e} ± {error:e} of {}: {changes:?}", mean(&kinetic));
    // a drift of 1e-4 of the kinetic energy in 8,000 steps would be noticed
    assert!(m.abs() < 4.0 * error && error < 1e-4 * mean(&kinetic), "{m:e} ± {error:e}");
}

/// After a reversal of all velocities, the system returns: within rounding and the tolerance, as they grow in 200 steps.
#[test]
fn constrained_motion_is_reversible() {
    for (shape, distance) in [(TRIANGLE, 2.1), (CHAIN, 4.3), (RING, 2.6)] {
        let state = molecules(&shape, 3, distance);
        let text = pipeline(PAIRS, "VelocityVerlet()", 0.004, "Double").replace("1e-10", "1e-13");
        let mut forth = started(&text, &state, DeviceChoice::Cpu);
        let first = unwrapped(&mut *forth);
        advance(&mut *forth, 200);
        let c = columns(&mut *forth);
        let turned = c.velocity.iter().map(|v| v.map(|x| -x)).collect();
        let state = Snapshot { position: c.position, image: c.image, velocity: turned, ..state };
        let mut back = started(&text, &state, DeviceChoice::Cpu);
        advance(&mut *back, 200);
        let d = largest_difference(&first.0, &unwrapped(&mut *back).0);
        println!("{d:e}");
        // the tolerance is 1e-10; errors grow with the largest Lyapunov exponent, about e⁴ in this time
        assert!(d < 1e-8, "the system returns to a distance of {d:e}");
    }
}

/// A dimer of two constrained particles moves as a rigid body of two: trajectories agree to O(dt²), pressures at the start.
#[test]
fn a_constrained_dimer_is_a_rigid_dimer() {
    let difference = |dt: f64| {
        let text = format!(
            r#"(seed: 4, precision: Double, neighbors: (only: OtherMolecules),
                initial: [Lattice(lattice: Sc, cells: [4, 4, 4], density: 0.2, types: {{ "R": 1.0 }}),
                    Bodies(center: "R", shape: [ (type: "A", at: (0.0, 0.0, 0.5)), (type: "A", at: (0.0, 0.0, -0.5)) ], kT: 1.0),
                    Velocities(kT: 1.0)],
                forces: [Wca(pairs: {{ ("A", "A"): (epsilon: 1.0, sigma: 0.9), ("A", "R"): None, ("R", "R"): None }}), RigidBodies()],
                integrators: [RotationalVerlet()], stages: [(steps: 0, dt: {dt:?})])"#
        );
        let rigid_plan = plan(&text, DeviceChoice::Cpu).unwrap_or_else(|e| panic!("{}", e.render()));
        let mut rigid = begun(&rigid_plan);
        let c = columns(&mut *rigid);
        let n = c.position.len() - 64;
        let state = Snapshot {
            dimensions: 3,
            box_length: rigid.box_length(),
            types: vec!["A".into()],
            bond_types: vec!["A-A".into()],
            position: c.position[64..].into(),
            image: c.image[64..].into(),
            velocity: c.velocity[64..].into(),
            type_id: vec![0; n].into(),
            mass: vec![1.0; n].into(),
            bonds: (0..64).map(|k| Link { kind: 0, tags: [2 * k, 2 * k + 1] }).collect(),
            ..Snapshot::default()
        };
        let mut b = started(&pipeline(PAIRS, "VelocityVerlet()", dt, "Double"), &state, DeviceChoice::Cpu);
        let pressures = [triple_pv(&mut *rigid), triple_pv(&mut *b)];
        println!("{pressures:?}");
        // the start corrects lengths and velocities to the tolerance of the solver, 1e-10; here they enter relative to pressures
        assert!((pressures[0] / pressures[1] - 1.0).abs() < 1e-8, "{pressures:?}");
        let steps = (0.4 / dt).round() as u64;
        advance(&mut *rigid, steps);
        advance(&mut *b, steps);
        let [all, x] = [&mut rigid, &mut b].map(|b| unwrapped(&mut **b).0);
        let pressures = [triple_pv(&mut *rigid), triple_pv(&mut *b)];
        (largest_difference(&all[3 * 64..], &x), (pressures[0] / pressures[1] - 1.0).abs())
    };
    let (coarse, fine) = (difference(0.002), difference(0.001));
    println!("{coarse:?}, {fine:?}");
    // the ratio tells the order; the bounds only exclude runs that are not stable
    assert!(coarse.0 < 1e-3 && (3.0..5.0).contains(&(coarse.0 / fine.0)), "{coarse:?} and {fine:?}: not ∝ dt²");
    assert!(fine.1 < 1e-3, "pressures differ by {fine:?}");
}

/// Without interactions, the pressure of dimers is that of their centers at every step, to O(dt²).
#[test]
fn the_pressure_of_free_dimers_is_that_of_their_centers() {
    let state = molecules(&DIMER, 3, 3.0);
    for device in devices() {
        let error = |dt: f64| {
            let mut b = started(&pipeline("", "VelocityVerlet()", dt, "Double"), &state, device);
            let difference = |b: &mut dyn Backend| {
                let exact = molecular(&unwrapped(b).1, &state.mass, 2);
                (triple_pv(b) - exact).abs() / exact
            };
            // the tolerance of the solver is 1e-10; relative velocities along constraints follow from it and dt
            assert!(difference(&mut *b) < 1e-8, "{device:?}: {}", difference(&mut *b));
            advance(&mut *b, 30);
            difference(&mut *b)
        };
        let (coarse, fine) = (error(0.02), error(0.01));
        println!("{device:?}: {coarse:e}, {fine:e}");
        // as at the start
        assert!(coarse < 1e-8 && fine < 1e-8, "{device:?}: {coarse:e}, {fine:e}");
    }
}

/// Barostats change the box and keep the lengths.
#[test]
#[ignore = "3 seconds"]
fn lengths_hold_while_the_box_changes() {
    let state = molecules(&CHAIN, 3, 4.3);
    let verlet = "VelocityVerlet()";
    let cases = [
        ("MtkNpt(kT: 1.0, tau: 0.3, pressure: 3.0, tau_p: 0.5)", "", 2.5e-8),
        // after an updater, velocities along bonds vanish and lengths are right
        (verlet, "updaters: [BoxResize(every: 10, x: Ramp(from: 12.9, to: 12.5, steps: 200))],", 2.5e-8),
        (verlet, "updaters: [BerendsenBarostat(every: 5, pressure: 5.0, tau: 1.0, compressibility: 0.1)],", 2.5e-8),
    ];
    for device in devices() {
        for (integrator, updaters, speed) in cases {
            let text = pipeline(PAIRS, integrator, 0.004, "Double").replace("stages", &format!("{updaters} stages"));
            let text = text.replace("steps: 0", "steps: 200");
            let plan = plan_of(&text, state.clone(), device).unwrap_or_else(|e| panic!("{}", e.render()));
            let (_, mut b) = run_plan(&plan).unwrap_or_else(|e| panic!("{}", e.render()));
            assert!((b.box_length()[0] - 12.9).abs() > 0.02, "{integrator}: the box is {:?}", b.box_length());
            let (x, v) = unwrapped(&mut *b);
            let (length, rate) = deviations(&x, &v, &state);
            println!("{device:?} {integrator} {updaters}: {length:e} {rate:e}");
            assert!(length < 1e-9 && rate < speed, "{device:?} {integrator} {updaters}: {length:e} {rate:e}");
        }
    }
}

/// The state as a file.
fn xml(s: &Snapshot) -> String {
    let [mut position, mut image, mut velocity, mut mass, mut bonds] = std::array::from_fn(|_| String::new());
    for i in 0..s.position.len() {
        let [x, y, z] = s.position[i];
        let [u, v, w] = s.velocity[i];
        let [a, b, c] = s.image[i];
        let _ = writeln!(position, "{x:?} {y:?} {z:?}");
        let _ = writeln!(velocity, "{u:?} {v:?} {w:?}");
        let _ = writeln!(image, "{a} {b} {c}");
        let _ = writeln!(mass, "{:?}", s.mass[i]);
    }
    s.bonds.iter().for_each(|b| _ = writeln!(bonds, "A-A {} {}", b.tags[0], b.tags[1]));
    let (n, l) = (s.position.len(), s.box_length[0]);
    format!(
        "<?xml version=\"1.0\"?>\n<galamost_xml version=\"1.3\"><configuration time_step=\"0\" dimensions=\"3\" natoms=\"{n}\">\n\
         <box lx=\"{l:?}\" ly=\"{l:?}\" lz=\"{l:?}\"/>\n<position num=\"{n}\">\n{position}</position>\n\
         <image num=\"{n}\">\n{image}</image>\n<velocity num=\"{n}\">\n{velocity}</velocity>\n<mass num=\"{n}\">\n{mass}</mass>\n\
         <type num=\"{n}\">\n{}</type>\n<bond num=\"{}\">\n{bonds}</bond>\n</configuration></galamost_xml>\n",
        "A\n".repeat(n),
        s.bonds.len()
    )
}

/// The state after a restart is that before it, bit for bit, with any number of threads, in every precision.
#[test]
#[ignore = "3 seconds"]
fn a_run_resumes_bit_for_bit() {
    let folder = tempfile::tempdir().expect("a folder");
    for precision in ["Single", "Mixed", "Double"] {
        let text = pipeline(PAIRS, "MtkNpt(kT: 1.0, tau: 0.3, pressure: 1.0, tau_p: 0.5)", 0.004, precision);
        let text = text.replace("(seed", "(initial: [GalamostXml(file: \"../m.xml\")], seed").replace(
            "stages: [(name: \"s\", steps: 0",
            r#"checkpoint: (every: 50), analyzers: [ExtendedXyz(every: 25, file: "t.xyz")], stages: [(steps: 200"#,
        );
        std::fs::write(folder.path().join("m.xml"), xml(&molecules(&CHAIN, 6, 4.3))).expect("written");
        let run = |name: &str, more: &[&str]| {
            let here = folder.path().join(format!("{name}-{precision}"));
            std::fs::create_dir_all(&here).expect("a folder");
            std::fs::write(here.join("p.ron"), &text).expect("written");
            let out = galamost(&here, &[&["--pipeline", "p.ron", "--device", "cpu"], more].concat());
            assert!(out.status.success(), "{}", words(&out));
            std::fs::read(here.join("t.xyz")).expect("a trajectory")
        };
        let whole = run("whole", &["--threads", "1"]);
        run("parts", &["--steps", "110", "--threads", "2"]);
        assert!(run("parts", &["--resume", "--threads", "2"]) == whole, "{precision}");
    }
}

/// Lengths that deviate by 30 % in both directions, along a straight line.
#[test]
fn initial_lengths_are_corrected() {
    const STRAIGHT: Shape = Shape {
        at: &[
            [0.0; 3],
            [1.3, 0.0, 0.0],
            [2.0, 0.0, 0.0],
            [3.3, 0.0, 0.0],
            [4.0, 0.0, 0.0],
            [5.3, 0.0, 0.0],
            [6.0, 0.0, 0.0],
        ],
        mass: &[1.0, 1.0, 3.0, 1.0, 1.0, 1.0, 0.5],
        bonds: &[[0, 1], [1, 2], [2, 3], [3, 4], [4, 5], [5, 6]],
    };
    let state = molecules(&STRAIGHT, 2, 9.0);
    for device in devices() {
        let mut b = started(&pipeline("", "VelocityVerlet()", 0.004, "Double"), &state, device);
        let (x, v) = unwrapped(&mut *b);
        let (length, rate) = deviations(&x, &v, &state);
        // the tolerance of the solver is 1e-10, that of velocities is this over dt = 0.004, and a straight chain is nearly singular
        assert!(length < 1e-9 && rate < 1e-7, "{device:?}: {length:e} {rate:e}");
        let s = b.sums().expect("sums");
        assert!(s.momentum.iter().all(|p| p.abs() < 1e-10), "{:?}", s.momentum);
    }
}

/// A bond that turns by more than a right angle in a step ends the run.
#[test]
fn constraints_that_do_not_converge_end_the_run() {
    let mut state = molecules(&DIMER, 3, 4.0);
    for device in devices() {
        // perpendicular to the bond of the molecule 5, which is along y: no correction along it makes up for a move by 1.5
        state.velocity[10] = [0.0; 3];
        state.velocity[11] = [15.0, 0.0, 0.0];
        let text = pipeline("", "VelocityVerlet()", 0.1, "Double").replace("steps: 0", "steps: 10");
        match run_plan(&plan_of(&text, state.clone(), device).unwrap_or_else(|e| panic!("{}", e.render()))) {
            Err(Failure::Run(message, _)) => {
                println!("{message}");
                assert!(message.contains("step 0") || message.contains("step 1"), "{message}");
                assert!(message.contains("tag 11") && message.contains("Constraints: the constraints of"), "{message}");
            }
            Err(e) => panic!("{}", e.render()),
            Ok(_) => panic!("{device:?}: the fault was not noticed"),
        }
    }
}

/// Sites follow the constrained positions, and constraints act against the forces that sites pass on.
#[test]
fn sites_on_constrained_particles_follow_them() {
    let state = molecules(&TRIANGLE, 3, 3.6);
    let folder = tempfile::tempdir().expect("a folder");
    // a fourth particle without mass on each triangle
    let mut with = state.clone();
    (with.position, with.image, with.velocity, with.mass) = Default::default();
    for m in 0..27 {
        for i in [3 * m, 3 * m + 1, 3 * m + 2, 3 * m] {
            with.position.push(state.position[i]);
            with.image.push(state.image[i]);
            with.velocity.push(state.velocity[i]);
            with.mass.push(if with.mass.len() % 4 == 3 { 0.0 } else { state.mass[i] });
        }
    }
    let tag = |t: u32| 4 * (t / 3) + t % 3;
    with.bonds.iter_mut().for_each(|b| b.tags = b.tags.map(tag));
    std::fs::write(folder.path().join("m.xml"), xml(&with)).expect("written");
    let fluctuation = |dt: f64| {
        let sites = "Sites(atoms: 4, bonds: \"site\", sites: [(site: 3, from: [0, 1, 2], kind: ThreeOut(a: 0.3, b: 0.3, c: 0.4))])";
        let text = pipeline(PAIRS, "VelocityVerlet()", dt, "Double")
            .replace("(seed", &format!("(initial: [GalamostXml(file: \"m.xml\"), {sites}], seed"))
            .replace("Constraints(", "VirtualSites(), Constraints(")
            .replace("\"A-A\": 1.0", "\"A-A\": 1.0, \"site\": None");
        let plan = galamost_tests::plan_in(&folder.path().join("p.ron"), &text, DeviceChoice::Cpu);
        let mut b = begun(&plan.unwrap_or_else(|e| panic!("{}", e.render())));
        let width = energy_fluctuation(&mut *b, dt) / 27.0;
        let (x, v) = unwrapped(&mut *b);
        let (length, rate) = deviations(&x, &v, &with);
        // the tolerance of the solver is 1e-10, that of velocities is this over dt
        assert!(length < 1e-9 && rate < 1e-8, "{length:e} {rate:e}");
        for m in x.chunks_exact(12) {
            let arm = |k: usize| -> [f64; 3] { std::array::from_fn(|a| m[3 * k + a] - m[a]) };
            let (u, v, s) = (arm(1), arm(2), arm(3));
            let cross = [u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]];
            let off: f64 = (0..3).map(|k| (s[k] - 0.3 * (u[k] + v[k]) - 0.4 * cross[k]).powi(2)).sum();
            assert!(off.sqrt() < 1e-12, "{off}");
        }
        width
    };
    let (coarse, fine) = (fluctuation(0.004), fluctuation(0.002));
    println!("{coarse:e}, {fine:e}");
    assert!((3.0..5.0).contains(&(coarse / fine)), "{coarse:e} and {fine:e}: not ∝ dt²");
}
