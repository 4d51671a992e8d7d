//! Particles at the same place or in contact: soft potentials are finite there, and cutoffs inside of particles are refused.

mod bonded;

use galamost_engine::diagnostic::Failure;
use galamost_engine::pipeline::DeviceChoice;
use galamost_plugin_api::snapshot::{Array, Snapshot, Values};
use galamost_tests::{backend, devices, plan_of, run_plan};
use std::f64::consts::PI;

/// A component, and the energy of a pair at r = 0 and at a tiny distance across the axes of both particles.
type Soft = (&'static str, f64, f64);

fn central() -> Vec<Soft> {
    let morse = 1.5 * 1f64.exp() * (1f64.exp() - 2.0);
    let born = 2.0 * 1f64.exp();
    let density = 15.0 / (2.0 * PI * 0.75f64.powi(3));
    let many = -20.0 + 2.0 * PI * 0.75f64.powi(4) * 25.0 / 30.0 * density * density;
    [
        (r#"Dpd(r_cut: 1.0, kT: 1.0, pairs: { ("A", "A"): (a: 25.0, sigma: 3.0) })"#, 12.5),
        (r#"Dpd(r_cut: 1.5, kT: 1.0, pairs: { ("A", "A"): (a: 25.0, gamma: 4.5, s: 0.5) })"#, 18.75),
        (r#"DpdThermostat(r_cut: 1.5, kT: 1.0, pairs: { ("A", "A"): (gamma: 4.5) })"#, 0.0),
        (r#"HarmonicRepulsion(r_cut: 1.5, pairs: { ("A", "A"): (alpha: 12.5) })"#, 12.5),
        (r#"Morse(r_cut: 3.0, pairs: { ("A", "A"): (depth: 1.5, a: 2.0, r0: 0.5) })"#, morse),
        (r#"Buckingham(r_cut: 2.5, pairs: { ("A", "A"): (a: 10.0, rho: 0.5, c: 0.0) })"#, 10.0),
        (r#"Born(r_cut: 2.5, pairs: { ("A", "A"): (A: 2.0, rho: 0.5, sigma: 0.5) })"#, born),
        (r#"ManyBodyDpd(B: 25.0, r_d: 0.75, r_cut: 1.0, pairs: { ("A", "A"): (A: -40.0) })"#, many),
    ]
    .map(|(component, u)| (component, u, u))
    .into()
}

fn oriented() -> Vec<Soft> {
    // the straight line of the bracket at ϱ = 0, with (1 − χ²)^(−½) = 1.25 for κ = 2
    let y6 = 2.5f64.powi(6);
    let ellipsoids = 4.0 * 1.25 * (y6 * (y6 - 1.0) + 6.0 * y6 * (2.0 * y6 - 1.0));
    vec![
        (r#"Janus(pairs: { ("A", "A"): (alpha_r: 396.0, alpha_a: 132.0, beta_deg: 120.0, nu: 2.0) })"#, 198.0, 198.0),
        (r#"TriblockJanus(pairs: { ("A", "A"): (alpha_r: 396.0, alpha_a: 132.0, beta_deg: 60.0) })"#, 198.0, 198.0),
        (
            r#"BandJanus(pairs: { ("A", "A"): (alpha_r: 396.0, alpha_a: 132.0, beta_deg: 40.0, nu: 2.0) })"#,
            198.0,
            198.0,
        ),
        (
            r#"Patches(patches: { "A": [(name: "p", beta_deg: 120.0, direction: [0.0, 0.0, 1.0])] },
                attraction: { ("p", "p"): (alpha_a: 220.0, nu: 2.0) }, pairs: { ("A", "A"): (alpha_r: 396.0) })"#,
            198.0,
            198.0,
        ),
        (r#"SoftDisk(pairs: { ("A", "A"): (alpha: 50.0, mu: 0.5) })"#, 25.0, 25.0),
        // f is 1 for a direction across the axes
        (r#"SoftRod(pairs: { ("A", "A"): (alpha: 50.0, mu: 0.5) })"#, 25.0, 12.5),
        (
            r#"GayBerne(r_cut: 4.0, pairs: {
                ("A", "A"): (epsilon0: 1.0, sigma0: 1.0, kappa: 2.0, kappa_prime: 5.0) })"#,
            ellipsoids,
            ellipsoids,
        ),
        (
            r#"BiaxialGayBerne(r_cut: 4.0, shapes: { "A": (sigma: [1.0, 1.0, 2.0], epsilon: [1.0, 1.0, 0.2]) },
                pairs: { ("A", "A"): (epsilon0: 1.0, sigma_c: 1.0) })"#,
            ellipsoids,
            ellipsoids,
        ),
    ]
}

/// Two particles at this distance along x, with axes along z.
fn pair_at(r: f64) -> Snapshot {
    let mut s = Snapshot { dimensions: 3, box_length: [20.0; 3], ..Snapshot::default() };
    let a = s.type_id("A");
    s.push(a, [1.0, 2.0, 3.0]);
    s.push(a, [1.0 + r, 2.0, 3.0]);
    (s.velocity[0], s.velocity[1]) = ([0.3, -0.2, 0.1], [-0.1, 0.4, 0.2]);
    let turned = [0.0, 0.0, 0.0, 1.0].repeat(2);
    s.arrays.insert("quaternion".into(), Array { width: 4, values: Values::Real(turned) });
    s.arrays.insert("inert".into(), Array { width: 3, values: Values::Real(vec![1.0; 6]) });
    s
}

/// Checks the energies of components; forces and torques are 0 at r = 0, else finite.
fn holds(components: &[Soft], r: f64, precision: &str, device: DeviceChoice) {
    let list: Vec<&str> = components.iter().map(|c| c.0).collect();
    let text = format!(
        "(precision: {precision}, forces: [{}], integrators: [GrootWarren()], stages: [(steps: 0, dt: 0.01)])",
        list.join(", ")
    );
    let plan = plan_of(&text, pair_at(r), device).unwrap_or_else(|e| panic!("{}", e.render()));
    let mut b = backend(&plan);
    plan.components.iter().for_each(|c| c.start(b.host()).expect("started"));
    b.begin_stage(&plan.stages[0], false).expect("forces");
    let sums = b.sums().expect("sums").components;
    // rounding of f32, and 10⁻¹² of a slope of 500
    let limit = if precision == "Double" { 1e-9 } else { 3e-6 };
    for ((component, at_0, near), sum) in components.iter().zip(&sums) {
        let u = if r == 0.0 { at_0 } else { near };
        let what = format!("{component} at {r}, {device:?} {precision}: U {}, virial {:?}", sum.energy, sum.virial);
        assert!((sum.energy - u).abs() <= limit * u.abs(), "{what}; {u} expected");
        assert!(sum.virial.iter().all(|w| w.is_finite()), "{what}");
    }
    let mut read = |name: &str| -> Vec<f64> {
        let bytes = b.read(name).unwrap_or_default();
        match precision {
            "Double" => bytes.as_chunks::<8>().0.iter().map(|x| f64::from_ne_bytes(*x)).collect(),
            _ => bytes.as_chunks::<4>().0.iter().map(|x| f64::from(f32::from_ne_bytes(*x))).collect(),
        }
    };
    let (forces, torques) = (read("force"), read("array.torque"));
    assert_eq!(forces.len(), 8);
    let all: Vec<f64> = forces.as_chunks::<4>().0.iter().flat_map(|f| f[..3].to_vec()).chain(torques).collect();
    let allowed = |x: &f64| if r == 0.0 { *x == 0.0 } else { x.is_finite() };
    assert!(all.iter().all(allowed), "{list:?} at {r}, {device:?} {precision}: {all:?}");
}

#[test]
fn soft_potentials_are_finite_for_coinciding_particles() {
    for device in devices() {
        for components in [central(), oriented()] {
            holds(&components, 0.0, "Double", device);
            holds(&components, 1e-12, "Double", device);
            holds(&components, 0.0, "Mixed", device);
        }
    }
}

/// The move of a heavy particle in a short step is refused, too.
#[test]
fn touching_colloids_end_the_run_with_an_error() {
    let dlvo = r#"Dlvo(r_cut: 4.0, pairs: { ("A", "A"): (hamaker: 0.5, radii: [1.0, 1.0], Z: 60.0, kappa: 3.0) })"#;
    for device in devices() {
        for precision in ["Mixed", "Double"] {
            let run = |r: f64| {
                let mut s = pair_at(r);
                (s.mass[0], s.mass[1]) = (1000.0, 1000.0);
                let text = format!(
                    "(precision: {precision}, forces: [{dlvo}], integrators: [VelocityVerlet()], stages: [(steps: 20, dt: 0.0001)])"
                );
                let plan = plan_of(&text, s, device).unwrap_or_else(|e| panic!("{}", e.render()));
                run_plan(&plan).map(|_| ())
            };
            match run(1.9) {
                Err(Failure::Run(message, notes)) => {
                    assert!(message.contains("step 0") && message.contains("(particle with tag "), "{message}");
                    assert!(notes.join("\n").contains("the force of Dlvo on the particle with tag "), "{notes:?}");
                }
                Err(e) => panic!("{}", e.render()),
                Ok(()) => panic!("{device:?} {precision}: the contact was not noticed"),
            }
            run(2.1).unwrap_or_else(|e| panic!("{}", e.render()));
        }
    }
}

#[test]
fn cutoffs_inside_of_particles_are_refused() {
    let colloid = "hamaker: 0.5, Z: 60.0, kappa: 3.0";
    let rod = "epsilon0: 1.0, sigma0: 1.0, kappa: 3.0, kappa_prime: 5.0";
    let disk = "epsilon0: 1.0, sigma0: 2.0, kappa: 0.4, kappa_prime: 0.2";
    let shapes = r#"shapes: { "A": (sigma: [1.0, 0.5, 3.0]), "B": (sigma: [1.0, 1.0, 1.0]) }"#;
    let well = "epsilon0: 1.0, sigma_c: 0.5";
    let mie = "epsilon: 1.0, sigma: 0.7, n: 12.0, delta: 4.0";
    let all = |row: &str| format!(r#"pairs: {{ ("*", "*"): ({row}) }}"#);
    let biaxial = |of_all: f64, mixed: &str| {
        let row = format!(r#"("A", "B"): ({well}{mixed}), ("A", "A"): ({well}, r_cut: 3.1), ("B", "B"): ({well})"#);
        format!("BiaxialGayBerne(r_cut: {of_all:?}, {shapes}, pairs: {{ {row} }})")
    };
    let cases = [
        (format!("Dlvo(r_cut: 1.5, {})", all(&format!("{colloid}, radii: [1.0, 1.0]"))), "r_cut = 1.5 must be above"),
        (format!("Dlvo(r_cut: 2.0, {})", all(&format!("{colloid}, radii: [1.5, 0.5]"))), "sum of the radii, 2"),
        (
            format!("Dlvo(r_cut: 3.0, mode: ShiftEnergy, {})", all(&format!("{colloid}, radii: [2.0, 2.0]"))),
            "r_cut = 3 must be above the distance at contact, the sum of the radii, 4",
        ),
        (
            format!("Dlvo(r_cut: 4.0, {})", all(&format!("{colloid}, radii: [1.0, 1.0], r_cut: 1.5"))),
            "r_cut = 1.5 must be above",
        ),
        (format!("Dlvo({})", all(&format!("{colloid}, radii: [1.0, 1.0], r_cut: 2.1"))), ""),
        (
            format!("GayBerne(r_cut: 2.0, {})", all(rod)),
            "r_cut = 2 must be above the longest diameter of the particles, 3",
        ),
        (
            format!("GayBerne(r_cut: 1.9, {})", all(disk)),
            "r_cut = 1.9 must be above the longest diameter of the particles, 2",
        ),
        (format!("GayBerne(r_cut: 2.0, {})", all(&format!("{rod}, r_cut: 3.2"))), ""),
        (biaxial(2.5, ""), ""),
        (
            biaxial(2.5, ", r_cut: 2.2"),
            "r_cut = 2.2 must be above the distance of particles that touch end to end, 2.236",
        ),
        (biaxial(0.9, ", r_cut: 2.3"), "r_cut = 0.9 must be above the distance of particles that touch end to end, 1"),
        (
            format!("ExpandedMie(r_cut: 3.0, {})", all(mie)),
            "r_cut = 3 must be above delta, below which particles overlap, 4",
        ),
        (format!("ExpandedMie(r_cut: 5.0, {})", all(mie)), ""),
        // one message for a number that is wrong itself
        (format!("GayBerne(r_cut: -2.0, {})", all(rod)), "-2 is not allowed here: it must be above 0"),
    ];
    for (component, message) in cases {
        let mut s = pair_at(6.0);
        let b = s.type_id("B");
        s.type_id[1] = b;
        let text = format!("(forces: [{component}], stages: [(steps: 0, dt: 0.01)])");
        match (plan_of(&text, s, DeviceChoice::Cpu), message) {
            (Ok(_), "") => {}
            (Ok(_), _) => panic!("{component} is accepted"),
            (Err(Failure::Input(list)), message) => {
                assert!(!message.is_empty() && list.len() == 1, "{component}: {list:?}");
                assert!(list[0].at.is_some() && list[0].message.contains(message), "{component}: {list:?}");
            }
            (Err(e), _) => panic!("{component}: {}", e.render()),
        }
    }
}
