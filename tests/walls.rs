//! Walls that repel and walls from which particles bounce; electric and periodic forces. On the CPU and, where a kernel is
//! involved, on the emulated device.

mod round;
mod virial;

use galamost::selftest::standard_system;
use galamost_engine::backend::Backend;
use galamost_engine::diagnostic::Failure;
use galamost_engine::pipeline::DeviceChoice;
use galamost_plugin_api::snapshot::{Array, Snapshot, Values};
use galamost_plugin_api::views::Wanted;
use galamost_tests::tolerances::near;
use galamost_tests::{
    advance, backend, columns, devices, has_compiler, largest_difference, mean, plan, plan_in, plan_of, run_plan,
    unwrapped,
};
use std::sync::atomic::AtomicBool;

/// Returns a plan and its backend at the start of the first stage.
fn begun(text: &str, state: Snapshot, device: DeviceChoice) -> (galamost_engine::plan::Plan, Box<dyn Backend>) {
    let plan = plan_of(text, state, device).unwrap_or_else(|e| panic!("{}", e.render()));
    let mut b = backend(&plan);
    plan.components.iter().for_each(|c| c.start(b.host()).expect("started"));
    b.begin_stage(&plan.stages[0], false).expect("a stage");
    (plan, b)
}

/// Particles of mass 1 or 2 at random places |x| < reach of each axis, with random velocities.
fn gas(n: u32, length: [f64; 3], reach: [f64; 3]) -> Snapshot {
    let mut s = Snapshot { dimensions: 3, box_length: length, ..Snapshot::default() };
    let a = s.type_id("A");
    let mut seed = 12345u64;
    let mut uniform = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 11) as f64 / (1u64 << 53) as f64 - 0.5
    };
    for i in 0..n as usize {
        s.push(a, std::array::from_fn(|k| 2.0 * reach[k] * uniform()));
        s.velocity[i] = std::array::from_fn(|_| 4.0 * uniform());
        s.mass[i] = if i % 2 == 0 { 1.0 } else { 2.0 };
    }
    s
}

const SLIT: [&str; 2] = [
    "Plane(point: [0.0, 0.0, -4.0], normal: [0.0, 0.0, 1.0])",
    "Plane(point: [0.0, 0.0, 4.0], normal: [0.0, 0.0, -1.0])",
];

/// One `Bounce` for each wall.
fn bounces(walls: &[&str], rule: &str) -> String {
    walls.iter().map(|w| format!("Bounce(wall: {w}, rule: {rule}), ")).collect()
}

/// A particle of an ideal gas is between two smooth walls where the mirror images of its free path say, to the bit or
/// nearly so; energies stay; velocities along the walls stay.
#[test]
#[ignore = "10 seconds"]
fn an_ideal_gas_bounces_forward() {
    let s = gas(300, [6.0, 7.0, 10.0], [3.0, 3.5, 4.0]);
    for device in devices() {
        for (precision, limit) in [("Double", 1e-11), ("Mixed", 5e-4), ("Single", 5e-4)] {
            let text = format!(
                "(precision: {precision}, integrators: [{} VelocityVerlet()], stages: [(steps: 1, dt: 0.01)])",
                bounces(&SLIT, "Forward")
            );
            let (_plan, mut b) = begun(&text, s.clone(), device);
            let steps = 1000;
            advance(&mut *b, steps);
            let (x, v) = unwrapped(&mut *b);
            let mut bounced = 0;
            for (i, start) in s.position.iter().enumerate() {
                let free: [f64; 3] = std::array::from_fn(|k| start[k] + 0.01 * steps as f64 * s.velocity[i][k]);
                // unfolded, the slit is a period of 16
                let z = (free[2] + 4.0).rem_euclid(16.0);
                let (z, sign) = if z <= 8.0 { (z - 4.0, 1.0) } else { (12.0 - z, -1.0) };
                bounced += u32::from(free[2].abs() > 4.0);
                for (k, truth) in [free[0], free[1], z].into_iter().enumerate() {
                    assert!(
                        (x[3 * i + k] - truth).abs() < limit,
                        "{device:?} {precision} {i}: {} {truth}",
                        x[3 * i + k]
                    );
                }
                let after = [s.velocity[i][0], s.velocity[i][1], sign * s.velocity[i][2]];
                // right at the wall rounding decides whether it has bounced
                if z.abs() < 4.0 - 1e-3 {
                    for k in 0..3 {
                        assert!((v[3 * i + k] - after[k]).abs() < 1e-6, "{device:?} {precision} {i}");
                    }
                }
            }
            assert!(bounced > 150, "only {bounced} particles met a wall");
        }
    }
}

/// Rough walls: speeds stay, walls that move turn v into 2 v_w − v, also with a factor that changes with time.
#[test]
#[ignore = "5 seconds"]
fn rough_walls_reverse_velocities() {
    let s = gas(200, [6.0, 7.0, 10.0], [3.0, 3.5, 4.0]);
    for device in devices() {
        let text = |more: &str| {
            format!(
                "(precision: Double, integrators: [VelocityVerlet(), {} {more}], stages: [(steps: 1, dt: 0.01)])",
                bounces(&SLIT[..1], "Back")
            )
        };
        let still = format!("Bounce(wall: {}, rule: Back)", SLIT[1]);
        let (_plan, mut b) = begun(&text(&still), s.clone(), device);
        advance(&mut *b, 1500);
        for (v, v0) in columns(&mut *b).velocity.iter().zip(&s.velocity) {
            let sign = if v[0] == v0[0] { 1.0 } else { -1.0 };
            assert!((0..3).all(|k| v[k] == sign * v0[k]), "{v:?} from {v0:?}");
        }
        // after the first encounter with the upper wall alone, which moves with (2, −1, 0)·(1 + step/1000)
        let moving = format!(
            "Bounce(wall: {}, rule: Back, velocity: [2.0, -1.0, 0.0], factor: Ramp(from: 1.0, to: 2.0, steps: 1000))",
            SLIT[1]
        );
        let (_plan, mut b) = begun(&text(&moving), s.clone(), device);
        let (mut before, mut met) = (columns(&mut *b).velocity, 0);
        for step in 0..100u32 {
            advance(&mut *b, 1);
            let now = columns(&mut *b).velocity;
            for (v, u) in now.iter().zip(&before).filter(|(v, u)| v != u) {
                let factor = if u[2] > 0.0 { 1.0 + f64::from(step) / 1000.0 } else { 0.0 };
                met += u32::from(u[2] > 0.0);
                let truth = [4.0 * factor - u[0], -2.0 * factor - u[1], -u[2]];
                assert!((0..3).all(|k| (v[k] - truth[k]).abs() < 1e-13), "{step}: {v:?} from {u:?}");
            }
            before = now;
        }
        assert!(met > 5, "{met} particles met the moving wall");
    }
}

/// Curved walls conserve the speed, and with `Forward` the angular momentum about the center; no particle escapes.
#[test]
#[ignore = "5 seconds"]
fn particles_stay_inside_and_outside_of_round_walls() {
    let walls = [
        ("Sphere(center: [0.0, 0.0, 0.0], radius: 4.0, side: Inside)", [2.3; 3]),
        ("Cylinder(point: [0.0, 0.0, 0.0], axis: Y, radius: 4.0, side: Inside)", [2.8, 5.0, 2.8]),
    ];
    for device in devices() {
        for precision in ["Double", "Mixed", "Single"] {
            for (n, (wall, reach)) in walls.iter().enumerate() {
                let s = gas(100, [10.0; 3], *reach);
                // an obstacle in the middle, whose inside has no particles
                let hole = wall.replace("radius: 4.0, side: Inside", "radius: 0.5, side: Outside");
                let text = format!(
                    "(precision: {precision}, integrators: [{} VelocityVerlet()], stages: [(steps: 1, dt: 0.005)])",
                    bounces(&[wall, &hole], "Forward")
                );
                let (_plan, mut b) = begun(&text, s.clone(), device);
                // those that start in the obstacle are put before it
                advance(&mut *b, 1);
                let start = columns(&mut *b);
                let radius = |r: &[f64; 3]| (r[0] * r[0] + r[2] * r[2] + if n == 0 { r[1] * r[1] } else { 0.0 }).sqrt();
                for _ in 0..20 {
                    advance(&mut *b, 25);
                    for r in &columns(&mut *b).position {
                        let rho = radius(r);
                        assert!((0.5..=4.0).contains(&rho), "{device:?} {precision} {wall}: ρ = {rho:.9}");
                    }
                }
                let now = columns(&mut *b);
                let speed = |v: &[f64; 3]| v.iter().map(|x| x * x).sum::<f64>().sqrt();
                let spin = |r: &[f64; 3], v: &[f64; 3]| r[2] * v[0] - r[0] * v[2];
                let limit = if precision == "Double" { 1e-12 } else { 1e-5 };
                for i in 0..s.len() {
                    assert!(
                        (speed(&now.velocity[i]) - speed(&start.velocity[i])).abs() < limit,
                        "{device:?} {precision}"
                    );
                    // a step that ends o behind a wall of radius R is put back along the normal, which changes it by 2o/R
                    let (a, b) =
                        (spin(&start.position[i], &start.velocity[i]), spin(&now.position[i], &now.velocity[i]));
                    assert!((a - b).abs() < 0.15 + 0.05 * a.abs(), "{device:?} {precision}: {a} {b}");
                }
            }
        }
    }
}

/// Forces that depend on places alone: λ of Groot and Warren does not matter, with walls neither. It carries a velocity of
/// its own from before the walls to after the forces, which must bounce too.
#[test]
#[ignore = "10 seconds"]
fn velocities_in_an_integrator_s_state_bounce_too() {
    let s = gas(200, [6.0, 7.0, 10.0], [3.0, 3.5, 4.0]);
    for device in devices() {
        for rule in ["Forward", "Back"] {
            let run = |mover: &str| {
                let text = format!(
                    "(precision: Double, forces: [BodyForce(force: [0.3, 0.0, -8.0])], integrators: [{} {mover}], \
                     stages: [(steps: 1, dt: 0.02)])",
                    bounces(&SLIT, rule)
                );
                let (_plan, mut b) = begun(&text, s.clone(), device);
                advance(&mut *b, 400);
                unwrapped(&mut *b)
            };
            let (x, v) = run("VelocityVerlet()");
            for lambda in ["0.5", "0.65", "1.0"] {
                let (y, w) = run(&format!("GrootWarren(lambda: {lambda})"));
                let (dx, dv) = (largest_difference(&x, &y), largest_difference(&v, &w));
                assert!(dx < 1e-10 && dv < 1e-10, "{device:?} {rule} λ = {lambda}: {dx:e} {dv:e}");
            }
        }
    }
}

/// A liquid of soft particles with noise between rough walls, one of which moves.
fn confined(integrator: &str, precision: &str, n: u32) -> (String, Snapshot) {
    let text = format!(
        "(seed: 5, precision: {precision}, forces: [Dpd(r_cut: 1.0, kT: 1.0, pairs: {{(\"A\", \"A\"): (a: 25.0, sigma: 3.0)}})], \
         integrators: [Bounce(wall: {}, rule: Back), Bounce(wall: {}, rule: Back, velocity: [1.0, 0.0, 0.0]), {integrator}], \
         stages: [(steps: 1, dt: 0.02)])",
        SLIT[0], SLIT[1]
    );
    let side = (f64::from(n) / (3.0 * 8.0)).sqrt();
    let mut s = gas(n, [side, side, 9.0], [0.5 * side, 0.5 * side, 4.0]);
    s.mass.fill(1.0);
    (text, s)
}

/// 10⁴ steps with every kind of integrator: no particle is ever behind a wall, and the temperature is right.
#[test]
#[ignore = "10 seconds"]
fn a_liquid_stays_between_its_walls() {
    for integrator in ["GrootWarren()", "VelocityVerlet()", "Langevin(kT: 1.0, gamma: 1.0)"] {
        for precision in ["Double", "Mixed", "Single"] {
            stays(integrator, precision, 216, 10_000, DeviceChoice::Cpu);
        }
    }
}

fn stays(integrator: &str, precision: &str, n: u32, steps: u64, device: DeviceChoice) {
    let (text, s) = confined(integrator, precision, n);
    let (_plan, mut b) = begun(&text, s, device);
    let (mut farthest, mut kt) = (0.0f64, vec![]);
    for k in 0..steps / 20 {
        advance(&mut *b, 20);
        let c = columns(&mut *b);
        farthest = c.position.iter().fold(farthest, |m, r| m.max(r[2].abs()));
        assert!(farthest <= 4.0, "{device:?} {integrator} {precision}: |z| = {farthest:.9} in step {}", 20 * (k + 1));
        if k > steps / 100 {
            kt.push(mean(&c.velocity.iter().map(|v| 0.5 * (v[1] * v[1] + v[2] * v[2])).collect::<Vec<_>>()));
        }
    }
    let kt = mean(&kt);
    println!("{device:?} {integrator} {precision}: farthest {farthest:.6}, kT {kt:.3}");
    assert!(farthest > 3.9, "{device:?} {integrator} {precision}: {farthest}");
    near("kT of a gas between walls", kt);
}

/// The kernels keep the particles between the walls. 1,500 steps are 30 units of time, some 60 correlation times of the
/// kinetic energy of 150 particles: kT has a standard error of about 0.013.
#[test]
#[ignore = "10 seconds"]
fn a_liquid_stays_between_its_walls_on_the_device() {
    if has_compiler() {
        stays("GrootWarren()", "Mixed", 150, 1_500, DeviceChoice::Emulated);
        stays("GrootWarren()", "Single", 150, 1_000, DeviceChoice::Emulated);
        stays("Langevin(kT: 1.0, gamma: 1.0)", "Double", 150, 1_000, DeviceChoice::Emulated);
    }
}

/// The first steps of a confined liquid agree with the CPU.
#[test]
#[ignore = "3 seconds"]
fn a_confined_liquid_moves_on_the_device_as_on_the_cpu() {
    if !has_compiler() {
        return;
    }
    for integrator in ["GrootWarren()", "VelocityVerlet()", "Langevin(kT: 1.0, gamma: 1.0)"] {
        let (text, s) = confined(integrator, "Double", 216);
        let run = |device| {
            let (_plan, mut b) = begun(&text, s.clone(), device);
            advance(&mut *b, 60);
            unwrapped(&mut *b)
        };
        let (a, b) = (run(DeviceChoice::Cpu), run(DeviceChoice::Emulated));
        let (x, v) = (largest_difference(&a.0, &b.0), largest_difference(&a.1, &b.1));
        println!("{integrator}: {x:e} {v:e}");
        assert!(x < 1e-9 && v < 1e-9, "{integrator}: {x:e} {v:e}");
    }
}

/// Every wall with a potential, by its name, and a particle behind it.
#[test]
fn a_particle_behind_a_wall_is_reported_with_its_tag() {
    let entry = [
        ("LjWall", "(epsilon: 1.0, sigma: 1.0, r_cut: 2.5)"),
        ("Lj93Wall", "(epsilon: 1.0, sigma: 1.0, r_cut: 2.5)"),
        ("WcaWall", "(epsilon: 1.0, sigma: 1.0)"),
        ("HarmonicWall", "(k: 10.0, r0: 1.0)"),
    ];
    let mut s = gas(20, [10.0; 3], [1.0; 3]);
    s.velocity.fill([0.0; 3]);
    // too fast for any wall to act on: 2.9 in a step, tag 7 from 1.4 to 4.3 in the fifth and tag 3 in the sixth
    for (tag, z) in [(7, -0.2), (3, -3.1)] {
        s.position[tag] = [0.0, 0.0, z];
        s.velocity[tag] = [0.0, 0.0, 2.9 / 1.2e-5];
    }
    for device in devices() {
        for precision in ["Single", "Mixed", "Double"] {
            for (name, entry) in entry {
                let text = format!(
                    "(precision: {precision}, forces: [{name}(wall: Plane(point: [0.0, 0.0, 4.0], normal: [0.0, 0.0, -1.0]), \
                     types: {{\"A\": {entry}}})], integrators: [VelocityVerlet()], stages: [(steps: 50, dt: 1.2e-5)])"
                );
                let plan = plan_of(&text, s.clone(), device).unwrap_or_else(|e| panic!("{}", e.render()));
                let Err(Failure::Run(said, _)) = run_plan(&plan) else { panic!("{name}: no error was reported") };
                let expected = format!("step 5: {name}: the particle is behind the wall, or too close to it");
                assert!(
                    said.contains(&expected) && said.contains("(particle with tag 7)"),
                    "{device:?} {precision}: {said}"
                );
            }
        }
    }
}

/// ∫ f exp(−U) over a ≤ x ≤ b by Simpson's rule.
fn average(a: f64, b: f64, weight: impl Fn(f64) -> f64, f: impl Fn(f64) -> f64) -> f64 {
    let n = 20_000;
    let h = (b - a) / f64::from(n);
    let (mut above, mut below) = (0.0, 0.0);
    for k in 0..=n {
        let x = a + h * f64::from(k);
        let c = if k == 0 || k == n {
            1.0
        } else if k % 2 == 1 {
            4.0
        } else {
            2.0
        };
        above += c * weight(x) * f(x);
        below += c * weight(x);
    }
    above / below
}

/// An ideal gas under gravity above a wall with an attractive well, and one in a soft sphere: the distribution is that of
/// Boltzmann, by mean values against quadrature.
#[test]
#[ignore = "5 seconds"]
fn a_gas_at_walls_has_the_boltzmann_distribution() {
    const N: u32 = 3000;
    let sampled = |forces: &str, of: &dyn Fn(&[f64; 3]) -> f64, reach: f64, up: f64| {
        let text = format!(
            "(seed: 8, precision: Mixed, forces: [{forces}], integrators: [Langevin(kT: 1.0, gamma: 1.0)], stages: [(steps: 1, dt: 0.01)])"
        );
        let mut s = gas(N, [12.0; 3], [reach; 3]);
        s.mass.fill(1.0);
        s.position.iter_mut().for_each(|r| r[2] += up);
        let (_plan, mut b) = begun(&text, s, DeviceChoice::Cpu);
        advance(&mut *b, 1000);
        let (mut found, mut energy, mut virial) = (vec![], vec![], vec![]);
        for _ in 0..60 {
            b.advance(80, Wanted::ALL, &AtomicBool::new(false)).expect("steps");
            found.push(mean(&columns(&mut *b).position.iter().map(of).collect::<Vec<_>>()));
            let sums = b.sums().expect("sums");
            energy.push(sums.components[0].energy / f64::from(N));
            virial.push(sums.components.iter().map(|c| c.virial[5]).sum::<f64>() / f64::from(N));
        }
        (mean(&found), mean(&energy), mean(&virial))
    };
    // gravity, and a wall at z = −5.5; no particle gets up to the face of the box
    let lj = |d: f64| {
        if d < 2.5 { 8.0 * (d.powi(-12) - d.powi(-6)) - 8.0 * (2.5f64.powi(-12) - 2.5f64.powi(-6)) } else { 0.0 }
    };
    let weight = |d: f64| (-lj(d) - 2.0 * d).exp();
    let wall = "LjWall(wall: Plane(point: [0.0, 0.0, -5.5], normal: [0.0, 0.0, 1.0]), types: {\"A\": (epsilon: 2.0, sigma: 1.0, r_cut: 2.5)})";
    let (z, u, _) = sampled(&format!("{wall}, BodyForce(force: [0.0, 0.0, -2.0])"), &|r| r[2] + 5.5, 0.7, -3.6);
    let truth = [average(0.6, 11.0, weight, |d| d), average(0.6, 11.0, weight, lj)];
    println!("gravity: ⟨d⟩ {z:.4}, quadrature {:.4}; ⟨U⟩ {u:.4}, quadrature {:.4}", truth[0], truth[1]);
    near("gas over a wall: mean distance", z - truth[0]);
    near("gas over a wall: energy", u - truth[1]);

    let soft = |r: f64| if r > 3.0 { 4.0 * (r - 3.0).powi(2) } else { 0.0 };
    let weight = |r: f64| r * r * (-soft(r)).exp();
    let wall = "HarmonicWall(wall: Sphere(center: [0.0, 0.0, 0.0], radius: 5.5, side: Inside), types: {\"A\": (k: 4.0, r0: 2.5)})";
    let (r, u, w) = sampled(wall, &|r| r.iter().map(|x| x * x).sum::<f64>().sqrt(), 1.7, 0.0);
    let truth = [average(0.0, 5.5, weight, |r| r), average(0.0, 5.5, weight, soft)];
    println!(
        "sphere: ⟨r⟩ {r:.4}, quadrature {:.4}; ⟨U⟩ {u:.4}, quadrature {:.4}; ⟨z F_z⟩ {w:.4} of −1",
        truth[0], truth[1]
    );
    near("gas in a sphere: mean radius", r - truth[0]);
    near("gas in a sphere: energy", u - truth[1]);
    near("gas in a sphere: virial", w);
}

/// Ions accelerate with q E and conserve the total energy; the periodic force follows its cosine.
#[test]
#[ignore = "3 seconds"]
fn fields_accelerate_particles_exactly() {
    let mut s = standard_system();
    let charge: Vec<f64> = (0..s.len()).map(|i| 0.5 * (i % 5) as f64 - 1.0).collect();
    s.arrays.insert("charge".into(), Array { width: 1, values: Values::Real(charge.clone()) });
    for device in devices() {
        let text = "(precision: Double, forces: [ElectricField(field: [1.5, 0.0, -2.0], group: Tags(first: 0, last: 499))], \
                    integrators: [VelocityVerlet()], stages: [(steps: 1, dt: 0.01)])";
        let (_plan, mut b) = begun(text, s.clone(), device);
        let energy = |b: &mut dyn Backend| {
            let sums = b.sums().expect("sums");
            assert_eq!(sums.components[0].virial, [0.0; 6]);
            0.5 * (sums.kinetic_tensor[0] + sums.kinetic_tensor[3] + sums.kinetic_tensor[5]) + sums.components[0].energy
        };
        let before = energy(&mut *b);
        b.advance(400, Wanted::ALL, &AtomicBool::new(false)).expect("steps");
        assert!((energy(&mut *b) / before - 1.0).abs() < 1e-10);
        let (x, v) = unwrapped(&mut *b);
        for i in 0..s.len() {
            for (k, e) in [1.5, 0.0, -2.0].into_iter().enumerate() {
                let a = if i < 500 { charge[i] * e / s.mass[i] } else { 0.0 };
                assert!((v[3 * i + k] - s.velocity[i][k] - 4.0 * a).abs() < 1e-11);
                assert!((x[3 * i + k] - s.position[i][k] - 4.0 * s.velocity[i][k] - 8.0 * a).abs() < 1e-10);
            }
        }
        for (per_mass, flow, gradient, f, g) in
            [(false, "X", "Z", 0, 2), (true, "Y", "X", 1, 0), (false, "Z", "Z", 2, 2)]
        {
            let text = format!(
                "(precision: Double, forces: [PeriodicForce(force: Sine(mean: 0.5, amplitude: 0.2, period: 8, phase: 1.0), flow: {flow}, \
                 gradient: {gradient}, waves: 2, phase: 0.7, per_mass: {per_mass})], integrators: [VelocityVerlet()], \
                 stages: [(steps: 1, dt: 1.0e-6)])"
            );
            let (_plan, mut b) = begun(&text, s.clone(), device);
            advance(&mut *b, 1);
            let amplitude = 0.5 * (2.0 * 0.5 + 0.2 * (1f64.sin() + (std::f64::consts::TAU / 8.0 + 1.0).sin()));
            let now = columns(&mut *b).velocity;
            for (i, now) in now.iter().enumerate() {
                let angle = 2.0 * std::f64::consts::TAU * s.position[i][g] / s.box_length[g] + 0.7;
                let a = amplitude * angle.cos() / if per_mass { 1.0 } else { s.mass[i] };
                for (k, now) in now.iter().enumerate() {
                    let kick = if k == f { 1e-6 * a } else { 0.0 };
                    // it moves by 10⁻⁶ in the step, and the phase with it
                    assert!((now - s.velocity[i][k] - kick).abs() < 1e-11, "{device:?} {flow} {gradient} {i}");
                }
            }
        }
    }
}

/// The check orders integrators before constraints and reports particles without an integrator.
#[test]
fn the_check_orders_and_rejects_walls() {
    let said = |integrators: &str| {
        let text = format!(
            "(initial: [RandomPositions(count: 10, box: [5.0, 5.0, 10.0])], integrators: [{integrators}], stages: [(steps: 1, dt: 0.01)])"
        );
        match plan(&text, DeviceChoice::Cpu) {
            Ok(p) => p.stages[0].integrators.iter().map(|c| c.name.clone()).collect::<Vec<_>>().join(" "),
            Err(e) => e.render(),
        }
    };
    let wall = format!("Bounce(wall: {}, rule: Back)", SLIT[0]);
    // those that correct come last, whatever the pipeline says
    assert_eq!(said(&format!("{wall}, GrootWarren()")), "GrootWarren Bounce");
    assert!(said(&wall).contains("has no integrator: nothing would move"));
    let half = said(&format!("{wall}, GrootWarren(group: Tags(first: 0, last: 4))"));
    assert!(half.contains("no integrator moves particle 5, which Bounce corrects"), "{half}");
}

/// A run ends with an error that names the wall when a barostat makes the box too short for it.
#[test]
fn a_wall_outside_of_the_box_ends_the_run() {
    // a lattice with the length 8.2 along z, whose particles are 0.9 from the wall
    let initial = "Lattice(lattice: Sc, cells: [7, 7, 6], density: 0.391753), Velocities(kT: 1.0)";
    let wall = format!("HarmonicWall(wall: {}, types: {{ \"A\": (k: 600.0, r0: 0.3) }})", SLIT[1]);
    let updater =
        "BerendsenBarostat(every: 2, pressure: 20.0, tau: 1.0, compressibility: 0.1, axes: (false, false, true))";
    let integrator = "MtkNpt(kT: 1.0, tau: 0.5, pressure: 20.0, tau_p: 2.0, couple: None)";
    for device in devices() {
        for (integrator, updater) in [("VelocityVerlet()", updater), (integrator, "")] {
            let folder = tempfile::tempdir().expect("a folder");
            let text = format!(
                "(seed: 2, initial: [{initial}], forces: [{wall}], integrators: [{integrator}], updaters: [{updater}], \
                 stages: [(steps: 400, dt: 0.01)])"
            );
            let plan =
                plan_in(&folder.path().join("p.ron"), &text, device).unwrap_or_else(|e| panic!("{}", e.render()));
            let Err(e) = run_plan(&plan) else { panic!("{device:?} {integrator}: the run ends without an error") };
            let said = e.render();
            assert!(said.contains("HarmonicWall: the wall needs a box length of 8 along z, which is now 7."), "{said}");
        }
    }
}
