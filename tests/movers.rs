//! What moves particles, and which: groups, frozen particles, numbers that change with time, body forces, removal of
//! momentum, capped steps and the minimiser. On the CPU and, where a kernel is involved, on the emulated device.

use galamost::selftest::standard_system;
use galamost_engine::backend::Backend;
use galamost_engine::pipeline::DeviceChoice;
use galamost_plugin_api::snapshot::{Array, Snapshot, Values};
use galamost_plugin_api::varying::Varying;
use galamost_plugin_api::views::Wanted;
use galamost_tests::{backend, columns, devices, largest_difference, plan, plan_of, run_plan, unwrapped};
use std::sync::atomic::AtomicBool;

const LJ: &str = r#"LennardJones(r_cut: 2.5, mode: ShiftForce, pairs: {
    ("A", "A"): (epsilon: 1.0, sigma: 1.0), ("A", "B"): (epsilon: 0.5, sigma: 0.95), ("B", "B"): (epsilon: 1.0, sigma: 0.9) })"#;

/// Runs a text in f64 from a given state.
fn run(text: &str, state: Snapshot, device: DeviceChoice) -> Box<dyn Backend> {
    let text = text.replacen('(', "(precision: Double, ", 1);
    let plan = plan_of(&text, state, device).unwrap_or_else(|e| panic!("{}", e.render()));
    run_plan(&plan).unwrap_or_else(|e| panic!("{}", e.render())).1
}

/// The standard system with molecules of ten: chains along x.
fn chains() -> Snapshot {
    let mut s = standard_system();
    let molecule = (0..s.len() as i32).map(|i| i / 10).collect();
    s.arrays.insert("molecule".into(), Array { width: 1, values: Values::Int(molecule) });
    s
}

/// Tags of the particles of a group.
fn members(group: &str) -> Vec<u32> {
    let text = format!("(integrators: [VelocityVerlet(group: {group})], stages: [(steps: 0, dt: 0.01)])");
    let plan = plan_of(&text, chains(), DeviceChoice::Cpu).unwrap_or_else(|e| panic!("{}", e.render()));
    let need = &plan.components[0].needs.group;
    (0..1000).filter(|tag| need.contains(*tag, &plan.snapshot)).collect()
}

/// Random forces have three components; in two dimensions particles stay in their plane.
#[test]
fn particles_in_a_plane_stay_there() {
    for integrator in ["Langevin(kT: 1.0, gamma: 2.0)", "Brownian(kT: 1.0, gamma: 5.0)", "Andersen(kT: 1.0, nu: 20.0)"]
    {
        let text = format!(
            "(seed: 3, initial: [RandomPositions(count: 100, box: [9.0, 10.0, 0.0]), Velocities(kT: 1.0)], \
             integrators: [{integrator}], stages: [(steps: 20, dt: 0.01)])"
        );
        for device in devices() {
            let plan = plan(&text, device).unwrap_or_else(|e| panic!("{}", e.render()));
            let (_, mut b) = run_plan(&plan).unwrap_or_else(|e| panic!("{}", e.render()));
            let now = columns(&mut *b);
            assert!(now.velocity.iter().all(|v| v[2] == 0.0 && v[0] != 0.0), "{integrator} {device:?}");
            assert!(now.position.iter().all(|x| x[2] == 0.0), "{integrator} {device:?}");
        }
    }
}

#[test]
fn groups_contain_the_particles_they_name() {
    let s = chains();
    let all = |f: &dyn Fn(usize) -> bool| (0..1000u32).filter(|t| f(*t as usize)).collect::<Vec<_>>();
    let a = s.types.iter().position(|t| t == "A").expect("a type") as u32;
    assert_eq!(members("All").len(), 1000);
    assert_eq!(members("Tags(first: 3, last: 7)"), [3, 4, 5, 6, 7]);
    assert_eq!(members("Molecules(first: 2, last: 3)"), (20..40).collect::<Vec<_>>());
    let half = "Box(min: [-100.0, -100.0, 0.0], max: [100.0, 100.0, 100.0])";
    let upper = all(&|t| s.position[t][2] >= 0.0);
    assert_eq!(members(half), upper);
    assert!(upper.len() > 450 && upper.len() < 550);
    assert_eq!(members(&format!("Not({half})")), all(&|t| s.position[t][2] < 0.0));
    assert_eq!(
        members(&format!("And([{half}, Types([\"A\"])])")),
        all(&|t| s.position[t][2] >= 0.0 && s.type_id[t] == a)
    );
    assert_eq!(
        members(&format!("Or([{half}, Types([\"A\"])])")),
        all(&|t| s.position[t][2] >= 0.0 || s.type_id[t] == a)
    );
    // a difference is And with Not
    assert_eq!(
        members("And([Tags(first: 0, last: 29), Not(Molecules(first: 1, last: 1))])"),
        (0..10).chain(20..30).collect::<Vec<_>>()
    );
}

/// Particles in no integrator's group stay where they are, to the bit, and the others feel them.
#[test]
fn frozen_particles_exert_forces_and_do_not_move() {
    let group = "Not(Types([\"B\"]))";
    let text =
        format!("(forces: [{LJ}], integrators: [VelocityVerlet(group: {group})], stages: [(steps: 40, dt: 0.002)])");
    let s = standard_system();
    for device in devices() {
        let mut b = run(&text, s.clone(), device);
        let now = columns(&mut *b);
        let b_type = s.types.iter().position(|t| t == "B").expect("a type") as u32;
        let (mut frozen, mut moved) = (0, 0);
        for t in 0..s.len() {
            if s.type_id[t] == b_type {
                assert!(now.position[t] == s.position[t] && now.velocity[t] == s.velocity[t], "particle {t} moved");
                frozen += 1;
            } else {
                moved += u32::from(now.position[t] != s.position[t]);
            }
        }
        assert!(frozen > 400 && moved > 400, "{frozen} frozen, {moved} moved");
    }
    // one frozen and one moving particle: the first step of velocity-Verlet under their force
    let mut two = Snapshot { dimensions: 3, box_length: [10.0; 3], ..Snapshot::default() };
    let a = two.type_id("A");
    two.push(a, [0.0; 3]);
    two.push(a, [1.5, 0.0, 0.0]);
    let text = "(forces: [LennardJones(r_cut: 3.0, pairs: { (\"A\", \"A\"): (epsilon: 1.0, sigma: 1.0) })], \
                integrators: [VelocityVerlet(group: Tags(first: 1, last: 1))], stages: [(steps: 1, dt: 0.01)])";
    let mut b = run(text, two, DeviceChoice::Cpu);
    let x = columns(&mut *b).position;
    let r6 = 1.5f64.powi(-6);
    let force = 24.0 / 1.5 * (2.0 * r6 * r6 - r6);
    assert!((x[1][0] - 1.5 - 0.5 * force * 1e-4).abs() < 1e-15 && x[0] == [0.0; 3], "{x:?}");
}

#[test]
fn a_run_has_at_most_32_groups() {
    let parts = |n: u32| {
        let list: Vec<String> = (0..n).map(|k| format!("VelocityVerlet(group: Tags(first: {k}, last: {k}))")).collect();
        format!("(integrators: [{}], stages: [(steps: 1, dt: 0.001)])", list.join(", "))
    };
    assert!(plan_of(&parts(32), standard_system(), DeviceChoice::Cpu).is_ok());
    let Err(e) = plan_of(&parts(33), standard_system(), DeviceChoice::Cpu) else { panic!("33 groups were taken") };
    assert!(e.render().contains("a run has at most 32 different groups"), "{}", e.render());
    // the 32nd group is not taken for all particles
    let mut b = run(&parts(32), standard_system(), DeviceChoice::Cpu);
    let (now, then) = (columns(&mut *b).position, standard_system().position);
    let moved: Vec<usize> = (0..1000).filter(|t| now[*t] != then[*t]).collect();
    assert_eq!(moved, (0..32).collect::<Vec<_>>());
}

/// v(n) = v(0) + dt/m Σ (F(k) + F(k + 1))/2 for a force that changes with time, whichever way.
#[test]
fn forces_that_change_with_time_do_so_on_every_device() {
    let cases = [
        ("Ramp(from: 2.0, to: 1.0, start: 10, steps: 20)", Varying::ramp(2.0, 1.0, 10, 20)),
        (
            "Cycle(points: [(0, 1.0), (3, -2.0), (7, 0.5)])",
            Varying::cycle(&[(0, 1.0), (3, -2.0), (7, 0.5)]).expect("valid"),
        ),
        ("Sine(mean: 0.5, amplitude: 2.0, period: 13, phase: 0.3)", Varying::sine(0.5, 2.0, 13, 0.3)),
    ];
    let s = standard_system();
    for device in devices() {
        for (text, varying) in &cases {
            let text = format!(
                "(forces: [BodyForce(force: [0.0, 3.0, 0.0], factor: {text})], integrators: [VelocityVerlet()], \
                 stages: [(steps: 45, dt: 0.01)])"
            );
            let mut b = run(&text, s.clone(), device);
            let sum: f64 = (0..45).map(|k| 0.5 * (varying.at(k) + varying.at(k + 1))).sum();
            for (v, (v0, m)) in columns(&mut *b).velocity.iter().zip(s.velocity.iter().zip(&s.mass)) {
                assert!((v[1] - v0[1] - 0.01 * 3.0 * sum / m).abs() < 1e-12, "{text}: {v:?} from {v0:?}");
                assert!(v[0] == v0[0] && v[2] == v0[2]);
            }
        }
    }
}

/// x = x₀ + v₀ t + a t²/2 exactly, a = F/m or F; particles outside the group keep their velocity; the energy of the
/// unwrapped position keeps K + U the same over many crossings of the box.
#[test]
#[ignore = "5 seconds"]
fn a_body_force_accelerates_exactly() {
    let s = standard_system();
    let t = 400.0 * 0.01;
    for device in devices() {
        for (per_mass, group, last) in [(false, "All", 999), (true, "Tags(first: 0, last: 499)", 499)] {
            let text = format!(
                "(forces: [BodyForce(force: [1.5, 0.0, -2.0], per_mass: {per_mass}, group: {group})], \
                 integrators: [VelocityVerlet()], stages: [(steps: 400, dt: 0.01)])"
            );
            let mut b = run(&text, s.clone(), device);
            let (x, v) = unwrapped(&mut *b);
            for tag in 0..s.len() {
                let m = if per_mass { 1.0 } else { s.mass[tag] };
                for (k, f) in [1.5, 0.0, -2.0].into_iter().enumerate() {
                    let a = if tag <= last { f / m } else { 0.0 };
                    let (x0, v0) = (s.position[tag][k], s.velocity[tag][k]);
                    assert!((x[3 * tag + k] - x0 - v0 * t - 0.5 * a * t * t).abs() < 1e-10);
                    assert!((v[3 * tag + k] - v0 - a * t).abs() < 1e-11);
                }
            }
            let energy = |b: &mut dyn Backend| {
                let sums = b.sums().expect("sums");
                let k = sums.kinetic_tensor;
                assert_eq!(sums.components[0].virial, [0.0; 6]);
                (0.5 * (k[0] + k[3] + k[5]), sums.components[0].energy)
            };
            let plan = plan_of(&text.replacen('(', "(precision: Double, ", 1), s.clone(), device)
                .unwrap_or_else(|e| panic!("{}", e.render()));
            let mut b = backend(&plan);
            plan.components.iter().for_each(|c| c.start(b.host()).expect("started"));
            b.begin_stage(&plan.stages[0], false).expect("a stage");
            let before = energy(&mut *b);
            b.advance(400, Wanted::ALL, &AtomicBool::new(false)).expect("steps");
            let after = energy(&mut *b);
            let drift = (after.0 + after.1 - before.0 - before.1).abs() / after.0;
            assert!(drift < 1e-11 && after.0 > 2.0 * before.0, "{before:?} {after:?}");
        }
    }
}

/// +g in the upper half of the box, −g in the lower one, on the group only.
#[test]
fn the_two_halves_of_a_poiseuille_flow_are_pushed_apart() {
    let s = standard_system();
    for device in devices() {
        for (flow, gradient, f, g) in [("X", "Z", 0, 2), ("Y", "X", 1, 0), ("Z", "Y", 2, 1)] {
            let text = format!(
                "(forces: [PeriodicPoiseuille(force: 0.5, flow: {flow}, gradient: {gradient}, per_mass: true, \
                 group: Types([\"A\"]))], integrators: [VelocityVerlet()], stages: [(steps: 1, dt: 1.0e-3)])"
            );
            let mut b = run(&text, s.clone(), device);
            let now = columns(&mut *b);
            for tag in 0..s.len() {
                let sign = if s.position[tag][g] >= 0.0 { 1.0 } else { -1.0 };
                let kick = if s.types[s.type_id[tag] as usize] == "A" { 0.5 * sign * 1e-3 } else { 0.0 };
                // a particle that crosses the middle in this step gets half of each
                if s.position[tag][g].abs() > 2e-3 {
                    assert!(
                        (now.velocity[tag][f] - s.velocity[tag][f] - kick).abs() < 1e-14,
                        "{flow} {gradient} {tag}"
                    );
                }
                assert_eq!(now.velocity[tag][g], s.velocity[tag][g]);
            }
        }
    }
}

#[test]
fn zero_momentum_removes_the_drift_of_its_group() {
    let s = standard_system();
    let mut found: Vec<Vec<f64>> = vec![];
    for device in devices() {
        // without forces velocities only change by the updater
        let text = "(integrators: [VelocityVerlet()], updaters: [ZeroMomentum(every: 3, group: Tags(first: 100, last: 899))], \
                    stages: [(steps: 4, dt: 0.001)])";
        let mut b = run(text, s.clone(), device);
        let v = columns(&mut *b).velocity;
        let (mut p, mut mass) = ([0.0; 3], 0.0);
        for t in 100..900 {
            p = std::array::from_fn(|k| p[k] + s.mass[t] * s.velocity[t][k]);
            mass += s.mass[t];
        }
        for (t, v) in v.iter().enumerate() {
            for k in 0..3 {
                let drift = if (100..900).contains(&t) { p[k] / mass } else { 0.0 };
                assert!((v[k] - s.velocity[t][k] + drift).abs() < 1e-15, "particle {t}");
            }
        }
        assert!(p.iter().any(|p| p.abs() > 1.0), "there was no drift to take off: {p:?}");
        // with a thermostat that does not conserve momentum, and forces
        let text = format!(
            "(seed: 4, forces: [{LJ}], integrators: [Langevin(kT: 1.0, gamma: 1.0)], updaters: [ZeroMomentum(every: 10)], \
             stages: [(steps: 41, dt: 0.002)])"
        );
        let mut b = run(&text, s.clone(), device);
        found.push(unwrapped(&mut *b).0);
    }
    for other in &found[1..] {
        assert!(largest_difference(&found[0], other) < 1e-10);
    }
    let text = "(precision: Double, integrators: [VelocityVerlet()], updaters: [ZeroMomentum(every: 1)], stages: [(steps: 1, dt: 0.001)])";
    let plan = plan_of(text, s, DeviceChoice::Cpu).unwrap_or_else(|e| panic!("{}", e.render()));
    let momentum = run_plan(&plan).unwrap_or_else(|e| panic!("{}", e.render())).1.sums().expect("sums").momentum;
    assert!(momentum.iter().all(|p| p.abs() < 1e-11), "{momentum:?}");
}

/// Random positions of Lennard-Jones particles: energies of 10¹¹ and forces of 10¹⁶.
const OVERLAPS: &str = r#"
    initial: [ RandomPositions(count: 500, box: [8.5, 8.5, 8.5]) ],
    forces: [ LennardJones(r_cut: 2.5, mode: ShiftForce, pairs: { ("A", "A"): (epsilon: 1.0, sigma: 1.0) }) ],"#;

fn overlapping(
    integrator: &str,
    precision: &str,
    dt: f64,
    device: DeviceChoice,
) -> (galamost_engine::plan::Plan, Box<dyn Backend>) {
    let text = format!(
        "(seed: 12, precision: {precision}, {OVERLAPS} integrators: [{integrator}], stages: [(steps: 1, dt: {dt})])"
    );
    let plan = plan(&text, device).unwrap_or_else(|e| panic!("{}", e.render()));
    let mut b = backend(&plan);
    b.begin_stage(&plan.stages[0], false).expect("a stage");
    (plan, b)
}

fn potential(b: &mut dyn Backend) -> f64 {
    b.sums().expect("sums").components[0].energy
}

#[test]
fn displacements_are_at_most_the_limit_of_capped_verlet() {
    let stop = AtomicBool::new(false);
    for precision in ["Single", "Mixed", "Double"] {
        let (_plan, mut b) = overlapping("CappedVerlet(max_displacement: 0.02)", precision, 0.005, DeviceChoice::Cpu);
        let start = potential(&mut *b);
        let mut before = unwrapped(&mut *b).0;
        let mut longest = 0.0f64;
        for _ in 0..20 {
            b.advance(1, Wanted::ALL, &stop).expect("a step");
            let now = unwrapped(&mut *b).0;
            for (x, y) in now.chunks(3).zip(before.chunks(3)) {
                longest = longest.max(x.iter().zip(y).map(|(x, y)| (x - y).powi(2)).sum::<f64>().sqrt());
            }
            before = now;
        }
        // rounding of positions in single precision, and steps of just this length
        assert!(longest < 0.02 * 1.0001 && longest > 0.0199, "{precision}: a step of {longest}");
        b.advance(300, Wanted::ALL, &stop).expect("steps");
        let end = potential(&mut *b);
        assert!(start > 1e10 && end < 0.0, "{precision}: from {start:e} to {end:e}");
    }
    // where nothing reaches the limit it is velocity-Verlet, to the bit
    let text =
        |integrator: &str| format!("(forces: [{LJ}], integrators: [{integrator}], stages: [(steps: 50, dt: 0.001)])");
    let mut a = run(&text("CappedVerlet(max_displacement: 1.0)"), standard_system(), DeviceChoice::Cpu);
    let mut b = run(&text("VelocityVerlet()"), standard_system(), DeviceChoice::Cpu);
    assert_eq!(unwrapped(&mut *a), unwrapped(&mut *b));
}

#[test]
#[ignore = "3 seconds"]
fn fire_reaches_its_largest_force_and_stops() {
    let stop = AtomicBool::new(false);
    for precision in ["Mixed", "Double"] {
        let (_plan, mut b) = overlapping("Fire(f_max: 1.0e-2, dt_max: 0.02)", precision, 0.002, DeviceChoice::Cpu);
        let start = potential(&mut *b);
        let kinetic = |b: &mut dyn Backend| b.sums().expect("sums").kinetic_tensor.iter().map(|k| k.abs()).sum::<f64>();
        let mut steps = 0;
        b.advance(10, Wanted::ALL, &stop).expect("steps");
        while kinetic(&mut *b) > 0.0 && steps < 20_000 {
            steps += b.advance(100, Wanted::ALL, &stop).expect("steps");
        }
        let largest = {
            let bytes = b.read("force").expect("forces");
            let f: Vec<f64> = if precision == "Double" {
                bytes.as_chunks::<8>().0.iter().map(|b| f64::from_ne_bytes(*b)).collect()
            } else {
                bytes.as_chunks::<4>().0.iter().map(|b| f64::from(f32::from_ne_bytes(*b))).collect()
            };
            f.chunks(4).map(|f| (f[0] * f[0] + f[1] * f[1] + f[2] * f[2]).sqrt()).fold(0.0, f64::max)
        };
        let end = potential(&mut *b);
        println!("{precision}: {steps} steps, U from {start:e} to {end}, largest force {largest:e}");
        // the criterion of `Fire` that the test sets
        assert!(steps < 20_000 && largest < 1e-2, "{steps} steps, a force of {largest}");
        // Lennard-Jones particles at this density: an amorphous minimum
        assert!(start > 1e10 && end / 500.0 < -4.0, "U from {start:e} to {end}");
        let before = unwrapped(&mut *b);
        b.advance(50, Wanted::ALL, &stop).expect("steps");
        assert_eq!(before, unwrapped(&mut *b), "it moves on");
    }
}

/// The algorithm of the page of `Fire`, for particles of mass 1 with U = a x² + b y²: their positions after some steps.
fn minimized(start: &[[f64; 2]], [a, b]: [f64; 2], steps: usize) -> Vec<[f64; 2]> {
    let (mut x, mut v, mut dt, mut alpha, mut downhill) = (start.to_vec(), vec![[0.0; 2]; start.len()], 0.02, 0.2, 0);
    let force = |x: &[f64; 2]| [-2.0 * a * x[0], -2.0 * b * x[1]];
    for _ in 0..steps {
        for (x, v) in x.iter_mut().zip(&mut v) {
            let f = force(x);
            *v = [v[0] + 0.5 * dt * f[0], v[1] + 0.5 * dt * f[1]];
            let shorten = (0.03 / (dt * v[0].hypot(v[1]))).min(1.0);
            *x = [x[0] + shorten * dt * v[0], x[1] + shorten * dt * v[1]];
            let f = force(x);
            *v = [v[0] + 0.5 * dt * f[0], v[1] + 0.5 * dt * f[1]];
        }
        let product =
            |p: &[[f64; 2]], q: &[[f64; 2]]| p.iter().zip(q).map(|(p, q)| p[0] * q[0] + p[1] * q[1]).sum::<f64>();
        let f: Vec<[f64; 2]> = x.iter().map(force).collect();
        let (keep, steer);
        if product(&f, &v) > 0.0 {
            (keep, steer) = (1.0 - alpha, alpha * (product(&v, &v) / product(&f, &f)).sqrt());
            downhill += 1;
            if downhill > 3 {
                (dt, alpha) = ((dt * 1.2f64).min(0.2), alpha * 0.9);
            }
        } else {
            (keep, steer, downhill, alpha) = (0.0, 0.0, 0, 0.2);
            dt *= 0.4;
        }
        v.iter_mut().zip(&f).for_each(|(v, f)| *v = [keep * v[0] + steer * f[0], keep * v[1] + steer * f[1]]);
    }
    x
}

#[test]
fn fire_steps_as_its_page_says() {
    let start = [[1.0, 0.3], [-0.4, 0.5]];
    let mut state = Snapshot { dimensions: 3, box_length: [20.0; 3], ..Snapshot::default() };
    let kind = state.type_id("A");
    start.iter().for_each(|[x, y]| _ = state.push(kind, [*x, *y, 0.0]));
    for steps in [1, 4, 20, 60, 200] {
        let text = format!(
            "(forces: [ExternalExpression(energy: \"a*x^2 + b*y^2\", parameters: (a: 1.0, b: 40.0))], \
             integrators: [Fire(f_max: 1.0e-9, dt_max: 0.2, max_displacement: 0.03, alpha: 0.2, n_min: 3, f_inc: 1.2, f_dec: 0.4, \
             f_alpha: 0.9)], stages: [(steps: {steps}, dt: 0.02)])"
        );
        for device in devices() {
            let found = unwrapped(&mut *run(&text, state.clone(), device)).0;
            let expected: Vec<f64> =
                minimized(&start, [1.0, 40.0], steps).iter().flat_map(|[x, y]| [*x, *y, 0.0]).collect();
            let x = largest_difference(&found, &expected);
            println!("{device:?}, {steps} steps: {x:e}");
            assert!(x < 1e-11, "{device:?}, {steps} steps: {x:e}");
        }
    }
}

/// With `DpdVerlet` the forces at the end of a step are those of its last velocities, to the bit: computing them once
/// more changes nothing. With velocity-Verlet it does, since friction is that of other velocities.
#[test]
fn dpd_verlet_ends_a_step_with_the_forces_of_its_velocities() {
    let dpd = r#"Dpd(r_cut: 1.6, kT: 1.0, pairs: {
        ("A", "A"): (a: 25.0, sigma: 3.0), ("A", "B"): (a: 40.0, sigma: 3.0), ("B", "B"): (a: 25.0, sigma: 3.0) })"#;
    for device in devices() {
        let again = |integrator: &str, wanted: Wanted| -> (bool, bool) {
            let text = format!(
                "(seed: 5, precision: Mixed, forces: [{dpd}], integrators: [{integrator}], stages: [(steps: 9, dt: 0.01)])"
            );
            let plan = plan_of(&text, standard_system(), device).unwrap_or_else(|e| panic!("{}", e.render()));
            let mut b = backend(&plan);
            b.begin_stage(&plan.stages[0], false).expect("a stage");
            b.advance(9, wanted, &AtomicBool::new(false)).expect("steps");
            let found = (b.read("force").expect("forces"), b.sums().expect("sums").components);
            b.begin_stage(&plan.stages[0], false).expect("a stage");
            let now = (b.read("force").expect("forces"), b.sums().expect("sums").components);
            // without energies the fourth number of each force is not of this step
            let forces = |f: &[u8]| f.chunks(16).flat_map(|f| f[..12].to_vec()).collect::<Vec<_>>();
            (forces(&found.0) == forces(&now.0), found.1 == now.1)
        };
        assert_eq!(again("DpdVerlet()", Wanted::ALL), (true, true), "{device:?}");
        assert!(again("DpdVerlet()", Wanted::FORCE).0, "{device:?}");
        assert!(!again("VelocityVerlet()", Wanted::ALL).0, "{device:?}");
    }
}

/// Without friction `DpdVerlet` is velocity-Verlet, to the bit.
#[test]
fn dpd_verlet_without_friction_is_velocity_verlet() {
    let of = |integrator: &str| {
        let text = format!("(forces: [{LJ}], integrators: [{integrator}], stages: [(steps: 40, dt: 0.003)])");
        unwrapped(&mut *run(&text, standard_system(), DeviceChoice::Cpu))
    };
    assert!(of("DpdVerlet()") == of("VelocityVerlet()"));
}

/// What a step computes besides forces does not change the motion, in any treatment of the cutoff.
#[test]
#[ignore = "3 seconds"]
fn energies_do_not_change_the_motion() {
    for device in devices() {
        for mode in ["Cut", "ShiftEnergy", "ShiftForce", "Smooth(2.0)"] {
            let positions = |analyzers: &str| {
                let text = format!(
                    "(seed: 2, precision: Double, initial: [Lattice(lattice: Sc, cells: [6, 6, 6], density: 0.8), Velocities(kT: 1.0)], \
                     forces: [LennardJones(r_cut: 2.5, mode: {mode}, pairs: {{ (\"A\", \"A\"): (epsilon: 1.0, sigma: 1.0) }})], \
                     integrators: [VelocityVerlet()], analyzers: [{analyzers}], stages: [(steps: 30, dt: 0.004)])"
                );
                let folder = tempfile::tempdir().expect("a folder");
                let text = text.replace("FOLDER", &folder.path().to_string_lossy());
                let plan = plan(&text, device).unwrap_or_else(|e| panic!("{}", e.render()));
                let (_, mut b) = run_plan(&plan).unwrap_or_else(|e| panic!("{}", e.render()));
                columns(&mut *b).position
            };
            let alone = positions("");
            assert!(alone == positions("Thermo(every: 1, file: \"FOLDER/t.csv\")"), "{mode} {device:?}");
        }
    }
}
