//! Rigid bodies: what stays rigid, what is conserved, the pressure, both devices, and what files and mistakes say.

use galamost_engine::backend::Backend;
use galamost_engine::pipeline::DeviceChoice;
use galamost_engine::plan::Plan;
use galamost_engine::run::{Change, RunOptions, Session};
use galamost_plugin_api::snapshot::{Snapshot, Values};
use galamost_tests::{
    advance, backend, columns, devices, energies, energy_fluctuation, galamost, largest_difference, mean, plan,
    run_plan, unwrapped, words,
};
use std::fmt::Write as _;

/// Bent trimers with a heavy bead, so no two moments of inertia are equal.
const TRIMER: &str = r#"Bodies(center: "R", shape: [
    (type: "A", at: (0.0, 0.0, 0.0), mass: 2.0), (type: "A", at: (0.8, 0.0, 0.0)), (type: "A", at: (0.0, 0.9, 0.1)) ], kT: 1.0)"#;
const DIMER: &str =
    r#"Bodies(center: "R", shape: [ (type: "A", at: (0.0, 0.0, 0.5)), (type: "A", at: (0.0, 0.0, -0.5)) ], kT: 1.0)"#;

/// 125 bodies at this number density.
fn pipeline(bodies: &str, density: f64, integrator: &str, dt: f64, precision: &str) -> String {
    format!(
        r#"(seed: 4, precision: {precision}, neighbors: (only: OtherMolecules),
            initial: [Lattice(lattice: Sc, cells: [5, 5, 5], density: {density}, types: {{ "R": 1.0 }}), {bodies}, Velocities(kT: 1.0)],
            forces: [
                Wca(pairs: {{ ("A", "A"): (epsilon: 1.0, sigma: 1.0), ("A", "R"): None, ("R", "R"): None }}),
                RigidBodies(),
            ],
            integrators: [{integrator}], stages: [(steps: 0, dt: {dt})])"#
    )
}

fn started(text: &str, device: DeviceChoice) -> Box<dyn Backend> {
    let plan = plan(text, device).unwrap_or_else(|e| panic!("{}", e.render()));
    begun(&plan)
}

/// A backend at the start of the first stage, with its components started.
fn begun(plan: &Plan) -> Box<dyn Backend> {
    let mut b = backend(plan);
    plan.components.iter().for_each(|c| c.start(b.host()).expect("started"));
    b.begin_stage(&plan.stages[0], false).expect("a stage");
    b
}

#[test]
#[ignore = "3 seconds"]
fn the_energy_error_is_second_order() {
    for bodies in [TRIMER, DIMER] {
        let width = |dt: f64| {
            let mut b = started(&pipeline(bodies, 0.1, "RotationalVerlet()", dt, "Double"), DeviceChoice::Cpu);
            energy_fluctuation(&mut *b, dt) / 125.0
        };
        let (coarse, fine) = (width(0.002), width(0.001));
        println!("{coarse:e}, {fine:e} per body");
        // the ratio tells the order; the bound only excludes runs that are not stable
        assert!(coarse < 1e-2 && (3.0..5.0).contains(&(coarse / fine)), "{coarse:e} and {fine:e}: not ∝ dt²");
    }
}

/// The distances between the beads of [`TRIMER`]: tags 125 + 3k + i and 125 + 3k + j of body k.
const DISTANCES: [(usize, usize, f64); 3] = [(0, 1, 0.64), (0, 2, 0.82), (1, 2, 0.64 + 0.82)];

#[test]
#[ignore = "3 seconds"]
fn beads_keep_their_places_on_every_device() {
    // rounding of places and positions to single precision, and of what sixty steps make of it
    for (precision, place, agreement) in [("Double", 1e-12, 1e-10), ("Mixed", 1e-6, 2e-5), ("Single", 2e-6, 1e-4)] {
        let mut first: Option<Vec<f64>> = None;
        for device in devices() {
            let mut b = started(&pipeline(TRIMER, 0.1, "RotationalVerlet()", 0.002, precision), device);
            advance(&mut *b, 60);
            let (x, v) = unwrapped(&mut *b);
            let (at, speed) = (|tag: usize| &x[3 * tag..3 * tag + 3], |tag: usize| &v[3 * tag..3 * tag + 3]);
            for (i, j, square) in DISTANCES {
                for k in 0..125 {
                    let (i, j) = (125 + 3 * k + i, 125 + 3 * k + j);
                    let d: Vec<f64> = at(i).iter().zip(at(j)).map(|(a, b)| a - b).collect();
                    let distance = d.iter().map(|d| d * d).sum::<f64>().sqrt();
                    assert!(
                        (distance - f64::sqrt(square)).abs() < place,
                        "{precision} {device:?} body {k}: {distance}"
                    );
                    // v_i − v_j is across the distance: it does not change
                    let rate: f64 = speed(i).iter().zip(speed(j)).zip(&d).map(|((a, b), d)| (a - b) * d).sum();
                    assert!(rate.abs() < 20.0 * place, "{precision} {device:?} body {k}: {rate}");
                }
            }
            let s = b.sums().expect("sums");
            let rounding = if precision == "Double" { 1e-11 } else { 1e-4 };
            assert!(s.momentum.iter().all(|p| p.abs() < rounding), "{precision} {device:?}: {:?}", s.momentum);
            match &first {
                None => first = Some([x, v].concat()),
                Some(first) => {
                    let d = largest_difference(first, &[x, v].concat());
                    assert!(d < agreement, "{precision} {device:?}: differs by {d}");
                }
            }
        }
    }
}

/// Centers are scaled with the box, and bodies keep their size: −dU/d ln L is the trace of the virial.
#[test]
fn the_virial_is_the_response_to_a_change_of_the_box() {
    const H: f64 = 1e-6;
    for (bodies, device) in [TRIMER, DIMER].iter().flat_map(|b| devices().into_iter().map(move |d| (b, d))) {
        let at = |stretch: f64| {
            let density = 0.2 / f64::powi(stretch, 3);
            let mut b = started(&pipeline(bodies, density, "RotationalVerlet()", 0.001, "Double"), device);
            let s = b.sums().expect("sums");
            let virial: f64 = s.components.iter().map(|c| c.virial[0] + c.virial[3] + c.virial[5]).sum();
            (s.components.iter().map(|c| c.energy).sum::<f64>(), virial)
        };
        let slope = -(at(1.0 + H).0 - at(1.0 - H).0) / (2.0 * H);
        let virial = at(1.0).1;
        // the error of the central difference is of order H² times the third derivative, some 10³ times the first
        assert!((slope / virial - 1.0).abs() < 1e-6 && virial.abs() > 1.0, "{device:?}: {slope}, virial {virial}");
    }
}

/// Degrees of freedom, virial and box changes together: H' is conserved to second order.
#[test]
fn a_barostat_conserves_its_quantity() {
    let error = |dt: f64| {
        let integrator = "RotationalMtkNpt(kT: 1.0, tau: 0.3, tau_r: 0.15, pressure: 2.0, tau_p: 0.5)";
        let mut b = started(&pipeline(TRIMER, 0.1, integrator, dt, "Double"), DeviceChoice::Cpu);
        let conserved = |b: &mut dyn Backend| energies(b).iter().sum::<f64>() + b.sums().expect("sums").reservoir;
        advance(&mut *b, (0.2 / dt).round() as u64);
        let (first, before) = (conserved(&mut *b), b.box_length()[0]);
        let mut sum = 0.0;
        for _ in 0..50 {
            advance(&mut *b, (0.02 / dt).round() as u64);
            sum += (conserved(&mut *b) - first).powi(2);
        }
        assert!((b.box_length()[0] / before - 1.0).abs() > 0.01, "the box did not change");
        (sum / 50.0).sqrt()
    };
    let (coarse, fine) = (error(0.002), error(0.001));
    println!("{coarse:e}, {fine:e}");
    assert!(coarse < 1.0 && (2.5..6.0).contains(&(coarse / fine)), "{coarse:e} and {fine:e}");
}

/// Six degrees of freedom for a body, five for a linear one, at the temperature of a thermostat.
#[test]
#[ignore = "a minute"]
fn translation_and_rotation_have_one_temperature() {
    for (bodies, degrees) in [(TRIMER, 3.0), (DIMER, 2.0)] {
        let langevin = "RotationalLangevin(kT: 1.5, gamma: 4.0, gamma_r: 4.0)";
        let mut b = started(&pipeline(bodies, 0.1, langevin, 0.004, "Mixed"), DeviceChoice::Cpu);
        advance(&mut *b, 500);
        let (mut translation, mut rotation) = (vec![], vec![]);
        const SAMPLES: usize = 150;
        for _ in 0..SAMPLES {
            // some 1/γ apart
            advance(&mut *b, 60);
            let [t, r, _] = energies(&mut *b);
            translation.push(2.0 * t / (3.0 * 125.0));
            rotation.push(2.0 * r / (degrees * 125.0));
        }
        for (kt, degrees, what) in [(mean(&translation), 3.0, "translation"), (mean(&rotation), degrees, "rotation")] {
            // var kT = 2 kT²/g for g degrees of freedom; samples one relaxation time apart count as half; four standard
            // errors, and the time step's error of 0.1 %
            let error = 1.5 * (2.0 / (degrees * 125.0) / (0.5 * SAMPLES as f64)).sqrt();
            assert!((kt - 1.5).abs() < 4.0 * error + 0.0015, "{what}: {kt}");
        }
    }
}

/// Bodies of a file, given by the array `body`: mass, momentum and kinetic energy of the beads pass to the centers.
#[test]
fn bodies_of_a_file_keep_mass_and_motion() {
    let folder = tempfile::tempdir().expect("a folder");
    // two squares that turn about z; the second crosses the boundary
    let (mut position, mut velocity) = (String::new(), String::new());
    let squares = [([0.0, 0.0, 1.0], 2.0, [0.5, 0.0, 0.0]), ([4.8, 0.0, 0.0], -1.0, [0.0, 0.0, 0.25])];
    for (center, rate, drift) in squares {
        for (x, y) in [(0.5, 0.5), (-0.5, 0.5), (-0.5, -0.5), (0.5, -0.5)] {
            let wrapped: f64 = center[0] + x - if center[0] + x > 5.0 { 10.0 } else { 0.0 };
            let _ = writeln!(position, "{wrapped} {} {}", center[1] + y, center[2]);
            let _ = writeln!(velocity, "{} {} {}", drift[0] - rate * y, drift[1] + rate * x, drift[2]);
        }
    }
    let xml = format!(
        "<?xml version=\"1.0\"?>\n<galamost_xml version=\"1.3\"><configuration time_step=\"0\" dimensions=\"3\" natoms=\"9\">\n\
         <box lx=\"10\" ly=\"10\" lz=\"10\"/>\n<position num=\"9\">\n{position}2 2 2\n</position>\n\
         <velocity num=\"9\">\n{velocity}0 0 0\n</velocity>\n<type num=\"9\">\n{}B\n</type>\n\
         <body num=\"9\">\n0\n0\n0\n0\n7\n7\n7\n7\n-1\n</body>\n</configuration></galamost_xml>\n",
        "A\n".repeat(8)
    );
    std::fs::write(folder.path().join("squares.xml"), xml).expect("written");
    let text = r#"(seed: 1, precision: Double, initial: [GalamostXml(file: "squares.xml"), Bodies()], forces: [RigidBodies()],
        integrators: [RotationalVerlet()], stages: [(steps: 0, dt: 0.01)])"#;
    let plan = galamost_tests::plan_in(&folder.path().join("p.ron"), text, DeviceChoice::Cpu);
    let plan = plan.unwrap_or_else(|e| panic!("{}", e.render()));
    let mut b = begun(&plan);
    let before = unwrapped(&mut *b);
    // ½ Σ m v² of the beads: each square has a mass of 4, and moments of 4 · ½
    let [translation, rotation, _] = energies(&mut *b);
    assert!((translation - 0.5 * 4.0 * (0.25 + 0.0625)).abs() < 1e-12, "{translation}");
    assert!((rotation - 0.5 * 2.0 * (4.0 + 1.0)).abs() < 1e-12, "{rotation}");
    let c = columns(&mut *b);
    assert_eq!(c.mass, [[0.0; 8].as_slice(), &[1.0, 4.0, 4.0]].concat());
    // the beads have the velocities of the file
    let [first, ..] = velocity
        .lines()
        .next()
        .expect("a line")
        .split(' ')
        .map(|v| v.parse::<f64>().expect("a number"))
        .collect::<Vec<_>>()[..]
    else {
        panic!()
    };
    assert!((before.1[0] - first).abs() < 1e-12, "{} {first}", before.1[0]);
    // a quarter of a turn of the first square, at the rate 2
    let steps = 100;
    advance(&mut *b, steps);
    let after = unwrapped(&mut *b).0;
    let angle = 2.0 * 0.01 * steps as f64;
    let (x, y) = (0.5 * (angle.cos() - angle.sin()) + 0.5 * 1.0, 0.5 * (angle.sin() + angle.cos()));
    assert!((after[0] - x).abs() < 1e-9 && (after[1] - y).abs() < 1e-9, "{:?}: not {x}, {y}", &after[..3]);
}

/// The motion and the shape of a body that is longer than half the box do not depend on the order of its beads.
#[test]
fn a_long_body_of_a_file_keeps_its_shape() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = r#"(seed: 1, precision: Double, initial: [GalamostXml(file: "long.xml"), Bodies()], forces: [RigidBodies()],
        integrators: [RotationalVerlet()], stages: [(steps: 0, dt: 0.01)])"#;
    for order in [[-3, 0, 3], [0, 3, -3], [3, -3, 0]] {
        let rows = |row: fn(i32) -> String| order.map(row).join("\n");
        let xml = format!(
            "<?xml version=\"1.0\"?>\n<galamost_xml version=\"1.3\"><configuration time_step=\"0\" dimensions=\"3\" natoms=\"3\">\n\
             <box lx=\"10\" ly=\"10\" lz=\"10\"/>\n<position num=\"3\">\n{}\n</position>\n\
             <velocity num=\"3\">\n{}\n</velocity>\n<type num=\"3\">\nA\nA\nA\n</type>\n\
             <body num=\"3\">\n0\n0\n0\n</body>\n</configuration></galamost_xml>\n",
            rows(|x| format!("{x} 0 0")),
            rows(|x| format!("0 {x} 0"))
        );
        std::fs::write(folder.path().join("long.xml"), xml).expect("written");
        let plan = galamost_tests::plan_in(&folder.path().join("p.ron"), text, DeviceChoice::Cpu);
        let plan = plan.unwrap_or_else(|e| panic!("{}", e.render()));
        for (place, x) in plan.snapshot.position.iter().zip(order.into_iter().chain([0])) {
            let off = largest_difference(place, &[f64::from(x), 0.0, 0.0]);
            assert!(off < 1e-12, "{order:?}: {place:?}");
        }
        // ½ I ω² with I = 2 · 3² and ω = 1
        let [translation, rotation, _] = energies(&mut *begun(&plan));
        assert!(translation.abs() < 1e-12 && (rotation - 9.0).abs() < 1e-12, "{order:?}: {translation} {rotation}");
    }
}

/// Copies of a system have bodies of their own.
#[test]
fn replicated_bodies_keep_their_beads() {
    let text = pipeline(TRIMER, 0.1, "RotationalVerlet()", 0.002, "Double");
    let text = text.replace("Velocities(kT: 1.0)", "Replicate(times: [2, 1, 1]), Velocities(kT: 1.0)");
    for device in devices() {
        let mut b = started(&text, device);
        advance(&mut *b, 20);
        let x = unwrapped(&mut *b).0;
        assert_eq!(x.len(), 3 * 2 * 500);
        for (copy, body) in (0..2).flat_map(|c| (0..125).map(move |k| (c, k))) {
            for (i, j, expected) in DISTANCES {
                let place = |k: usize| &x[3 * (500 * copy + 125 + 3 * body + k)..][..3];
                let square: f64 = place(i).iter().zip(place(j)).map(|(a, b)| (a - b).powi(2)).sum();
                assert!((square - expected).abs() < 1e-10, "{device:?}, copy {copy}, body {body}: {square}");
            }
        }
    }
}

/// A run continues from a written file: GSD has centers with mass, moments, orientation and motion in single precision, XML their
/// angular velocity in decimal digits.
#[test]
fn bodies_continue_from_a_written_file() {
    for (format, file) in [("Gsd", "last.gsd"), ("GalamostXml", "last.xml")] {
        continue_from(format, file);
    }
}

fn continue_from(format: &str, file: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |name: &str, text: &str| {
        std::fs::write(folder.path().join(name), text).expect("written");
        let out = galamost(folder.path(), &["--pipeline", name, "--device", "cpu"]);
        assert!(out.status.success(), "{}", words(&out));
    };
    let text = pipeline(TRIMER, 0.1, "RotationalVerlet()", 0.002, "Double").replace(
        "stages: [(steps: 0",
        &format!(r#"analyzers: [{format}(at_end: true, velocity: true, file: "{file}")], stages: [(steps: 200"#),
    );
    run("first.ron", &text);
    let text = pipeline(TRIMER, 0.1, "RotationalVerlet()", 0.002, "Double");
    let from = text.find("initial").expect("generators");
    let to = text.find("forces").expect("forces");
    let text =
        format!("{}initial: [{format}(file: \"{file}\"), Bodies(center: \"R\")], {}", &text[..from], &text[to..]);
    let plan = galamost_tests::plan_in(&folder.path().join("next.ron"), &text, DeviceChoice::Cpu);
    let plan = plan.unwrap_or_else(|e| panic!("{}", e.render()));
    let centers: Vec<i32> = (0..125).chain((0..375).map(|k| k / 3)).collect();
    assert_eq!(integers(&plan.snapshot, "body"), centers);
    assert_eq!(plan.snapshot.mass, [[4.0; 125].as_slice(), &[0.0; 375]].concat());

    // the motion at the end of the first run, from a second one of the same length
    let text = pipeline(TRIMER, 0.1, "RotationalVerlet()", 0.002, "Double");
    let mut whole = started(&text, DeviceChoice::Cpu);
    advance(&mut *whole, 200);
    let mut next = begun(&plan);
    for steps in [0, 100] {
        advance(&mut *whole, steps);
        advance(&mut *next, steps);
        // rounding of the file, 6e-8 of lengths up to 11, grows little in 0.2 time units
        let [a, b] = [&mut whole, &mut next].map(|b| unwrapped(&mut **b).0);
        assert!(largest_difference(&a, &b) < 2e-5, "{}", largest_difference(&a, &b));
        let [a, b] = [&mut whole, &mut next].map(|b| energies(&mut **b));
        // forces of about 10 along errors of 2e-5 of some hundred positions: 4e-3, of a kinetic energy of some hundred
        assert!(largest_difference(&a, &b) < 1e-4 * a[0], "{a:?} {b:?}");
    }
}

/// Centers that a program moves take their beads with them, far from where the list knows them.
#[test]
fn beads_follow_centers_that_a_program_moves() {
    let mut energies: Vec<f64> = vec![];
    for device in devices() {
        let folder = tempfile::tempdir().expect("a folder");
        let text = pipeline(TRIMER, 0.2, "RotationalVerlet()", 0.001, "Double").replace("steps: 0", "steps: 10");
        let plan = galamost_tests::plan_in(&folder.path().join("p.ron"), &text, device);
        let plan = plan.unwrap_or_else(|e| panic!("{}", e.render()));
        let mut b = backend(&plan);
        let options = RunOptions { quiet: true, ..RunOptions::default() };
        let mut session = Session::start(&plan, &mut *b, &options, None).expect("a run");
        let mut position = session.state().expect("a state").position;
        // other neighbors for every body: each takes the place of the one seven further
        position[..125].rotate_left(7);
        session.replace(Change { position: Some(position), ..Change::default() }).expect("a state");
        energies.push(session.sample().expect("sums").thermo.potential);
        let c = session.state().expect("a state");
        let nearest = |k: usize| {
            let (d, l) = (c.position[125][k] - c.position[0][k], c.box_length[k]);
            d - l * (d / l).round()
        };
        let d = (0..3).map(|k| nearest(k).powi(2)).sum::<f64>().sqrt();
        assert!(d < 1.0, "{device:?}: the first bead is {d} from its center");
    }
    assert!(energies[0] > 1.0, "{energies:?}");
    assert!(energies.iter().all(|u| (u / energies[0] - 1.0).abs() < 1e-9), "{energies:?}");
}

/// What a user sees of a bead in an output: the state after a restart is that before it, bit for bit.
#[test]
fn a_run_resumes_bit_for_bit() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = pipeline(TRIMER, 0.1, "RotationalLangevin(kT: 1.0, gamma: 1.0, gamma_r: 1.0)", 0.002, "Mixed");
    let text = text.replace(
        "stages: [(steps: 0",
        r#"checkpoint: (every: 50), analyzers: [ExtendedXyz(every: 25, file: "t.xyz")], stages: [(steps: 200"#,
    );
    let run = |name: &str, more: &[&str]| {
        let here = folder.path().join(name);
        std::fs::create_dir_all(&here).expect("a folder");
        std::fs::write(here.join("p.ron"), &text).expect("written");
        let out = galamost(&here, &[&["--pipeline", "p.ron", "--device", "cpu"], more].concat());
        assert!(out.status.success(), "{}", words(&out));
        std::fs::read(here.join("t.xyz")).expect("a trajectory")
    };
    let whole = run("whole", &[]);
    run("parts", &["--steps", "110"]);
    assert!(run("parts", &["--resume"]) == whole);
}

/// A snapshot's integers.
fn integers<'a>(s: &'a Snapshot, name: &str) -> &'a [i32] {
    match &s.arrays[name].values {
        Values::Int(v) => v,
        Values::Real(_) => panic!("{name} has real numbers"),
    }
}

#[test]
fn bodies_are_molecules_of_their_own() {
    let plan = plan(&pipeline(DIMER, 0.1, "RotationalVerlet()", 0.001, "Double"), DeviceChoice::Cpu).expect("a plan");
    let molecule = integers(&plan.snapshot, "molecule");
    for body in 0..125 {
        assert!(molecule[125 + 2 * body] == molecule[body] && molecule[126 + 2 * body] == molecule[body], "{body}");
    }
    let mut numbers = molecule.to_vec();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), 125);
}

/// Centers of a file keep their orientation and angular velocity with `shape`, as bodies of HOOMD-blue are given.
#[test]
fn centers_of_a_file_keep_their_motion_with_a_shape() {
    let folder = tempfile::tempdir().expect("a folder");
    // turned by 90° about z, with an angular velocity about x; the shape is a dimer along its x, so along y of the space
    let xml = "<?xml version=\"1.0\"?>\n<galamost_xml version=\"1.3\"><configuration time_step=\"0\" dimensions=\"3\" natoms=\"1\">\n\
               <box lx=\"10\" ly=\"10\" lz=\"10\"/>\n<position num=\"1\">\n1 2 3\n</position>\n<type num=\"1\">\nR\n</type>\n\
               <mass num=\"1\">\n2\n</mass>\n<quaternion num=\"1\">\n0 0 1 1\n</quaternion>\n\
               <rotation num=\"1\">\n3 0 0\n</rotation>\n</configuration></galamost_xml>\n";
    std::fs::write(folder.path().join("center.xml"), xml).expect("written");
    let text = r#"(seed: 1, precision: Double, initial: [GalamostXml(file: "center.xml"), Bodies(center: "R", shape: [
            (type: "A", at: (0.5, 0.0, 0.0)), (type: "A", at: (-0.5, 0.0, 0.0)) ])], forces: [RigidBodies()],
        integrators: [RotationalVerlet()], stages: [(steps: 0, dt: 0.01)])"#;
    let plan = galamost_tests::plan_in(&folder.path().join("p.ron"), text, DeviceChoice::Cpu);
    let plan = plan.unwrap_or_else(|e| panic!("{}", e.render()));
    for (bead, y) in plan.snapshot.position[1..].iter().zip([2.5, 1.5]) {
        let off = largest_difference(bead, &[1.0, y, 3.0]);
        assert!(off < 1e-12, "{bead:?}");
    }
    // ½ I ω² with I = 2 · ½²
    let [_, rotation, _] = energies(&mut *begun(&plan));
    assert!((rotation - 0.5 * 0.5 * 9.0).abs() < 1e-12, "{rotation}");
}

/// A body whose beads are at one point is a point particle; the check says so.
#[test]
fn bodies_of_one_point_are_a_warning() {
    let folder = tempfile::tempdir().expect("a folder");
    let point = r#"Bodies(center: "R", shape: [ (type: "A", at: (0.0, 0.0, 0.5)) ], kT: 1.0)"#;
    for (bodies, warns) in [(point, true), (DIMER, false)] {
        let text = pipeline(bodies, 0.1, "RotationalVerlet()", 0.001, "Double");
        std::fs::write(folder.path().join("p.ron"), text).expect("written");
        let out = galamost(folder.path(), &["check", "p.ron"]);
        let message = "Bodies: 125 bodies, the first of the center 0, have no moments of inertia";
        assert!(out.status.code() == Some(0) && words(&out).contains(message) == warns, "{}", words(&out));
    }
}

/// A box that becomes too short for a body is the cause that the error names.
#[test]
fn a_box_that_is_too_short_for_a_body_is_an_error() {
    let ramp = "Ramp(from: 10.0, to: 4.0, steps: 20)";
    // along one axis at least, beads are 4/√3 = 2.3 from the center
    let text = format!(
        r#"(seed: 4, precision: Double, initial: [
                RandomPositions(count: 1, box: [10.0, 10.0, 10.0], types: {{ "R": 1.0 }}),
                Bodies(center: "R", shape: [ (type: "A", at: (0.0, 0.0, 4.0)), (type: "A", at: (0.0, 0.0, -4.0)) ], kT: 1.0),
            ],
            forces: [RigidBodies()], integrators: [RotationalVerlet()],
            updaters: [BoxResize(every: 1, x: {ramp}, y: {ramp}, z: {ramp})], stages: [(steps: 20, dt: 0.0001)])"#
    );
    for device in devices() {
        let plan = plan(&text, device).unwrap_or_else(|e| panic!("{}", e.render()));
        let Err(e) = run_plan(&plan) else { panic!("{device:?}: the fault was not noticed") };
        let message = e.render();
        assert!(
            message.contains("RigidBodies: half a box length is less than the distance of this particle"),
            "{message}"
        );
    }
}
