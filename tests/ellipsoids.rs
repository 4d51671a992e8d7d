//! Chains of ellipsoids: `EllipsoidBond` in runs.

use galamost_engine::backend::Backend;
use galamost_engine::pipeline::DeviceChoice;
use galamost_plugin_api::quaternion::Quaternion;
use galamost_plugin_api::snapshot::{Array, Link, Snapshot, Values};
use galamost_tests::tolerances::agrees;
use galamost_tests::{
    advance, backend, columns, energies, energy_fluctuation, has_compiler, largest_difference, mean, plan_of, run_plan,
    unwrapped,
};

/// Returns straight chains along z of ellipsoids of this length, at rest, side by side at the distance 3.
fn chains(chains: u32, ellipsoids: u32, length: f64) -> Snapshot {
    let side = f64::from(chains).sqrt().ceil() as u32;
    let (width, height) = (3.0 * f64::from(side) + 10.0, 2.0 * length * f64::from(ellipsoids) + 10.0);
    let mut s = Snapshot { dimensions: 3, box_length: [width, width, height], ..Snapshot::default() };
    let (kind, bond) = (s.type_id("A"), 0);
    s.bond_types = vec!["A-A".into()];
    for c in 0..chains {
        for k in 0..ellipsoids {
            let at = [c % side, c / side].map(|n| 3.0 * (f64::from(n) - 0.5 * f64::from(side)));
            let z = length * (f64::from(k) - 0.5 * f64::from(ellipsoids - 1));
            let tag = s.push(kind, [at[0], at[1], z]);
            s.mass[tag as usize] = 1.0 + f64::from(k % 2);
            if k > 0 {
                s.bonds.push(Link { kind: bond, tags: [tag - 1, tag] });
            }
        }
    }
    let n = s.len();
    let mut put = |name: &str, row: &[f64]| {
        s.arrays.insert(name.into(), Array { width: row.len() as u32, values: Values::Real(row.repeat(n)) });
    };
    put("quaternion", &[0.0, 0.0, 0.0, 1.0]);
    put("angular_momentum", &[0.0; 3]);
    put("inert", &[0.3, 0.4, 0.1]);
    s
}

/// Gives every particle another velocity, angular momentum and tilt, without a pattern.
fn disturb(s: &mut Snapshot) {
    let wave = |k: usize, of: f64| (of * (k as f64 + 0.3)).sin();
    for (k, v) in s.velocity.iter_mut().enumerate() {
        *v = [wave(k, 1.1), wave(k, 2.3), wave(k, 3.7)];
    }
    let n = s.len();
    let momenta = (0..n).flat_map(|k| [0.5 * wave(k, 1.9), 0.5 * wave(k, 2.9), 0.1 * wave(k, 0.7)]).collect();
    s.arrays.insert("angular_momentum".into(), Array { width: 3, values: Values::Real(momenta) });
    let tilted = (0..n).flat_map(|k| {
        let q = Quaternion::<f64>::new(0.2 * wave(k, 1.3), 0.2 * wave(k, 2.1), 0.3 * wave(k, 4.1), 1.0).normalized();
        [q.x, q.y, q.z, q.w]
    });
    let tilted = tilted.collect();
    s.arrays.insert("quaternion".into(), Array { width: 4, values: Values::Real(tilted) });
}

fn text(bond: &str, integrator: &str, precision: &str, steps: u64, dt: f64) -> String {
    format!(
        "(seed: 2, precision: {precision}, forces: [EllipsoidBond(bonds: {{ \"A-A\": {bond} }})], \
         integrators: [{integrator}], stages: [(steps: {steps}, dt: {dt})])"
    )
}

fn started(text: &str, s: Snapshot) -> Box<dyn Backend> {
    let plan = plan_of(text, s, DeviceChoice::Cpu).unwrap_or_else(|e| panic!("{}", e.render()));
    let mut b = backend(&plan);
    plan.components.iter().for_each(|c| b.start(c).expect("a component"));
    b.begin_stage(&plan.stages[0], false).expect("a stage");
    b
}

/// Total momentum, and total angular momentum about the origin.
fn momenta(b: &mut dyn Backend, mass: &[f64]) -> [f64; 6] {
    let (position, velocity) = unwrapped(b);
    let Values::Real(spin) = &columns(b).arrays["angular_momentum"].values else { panic!("integers") };
    let mut sum = [0.0; 6];
    for (k, m) in mass.iter().enumerate() {
        let of = |all: &[f64], axis: usize| all[3 * k + axis % 3];
        for a in 0..3 {
            let orbital = of(&position, a + 1) * of(&velocity, a + 2) - of(&position, a + 2) * of(&velocity, a + 1);
            sum[a] += m * of(&velocity, a);
            sum[3 + a] += m * orbital + of(spin, a);
        }
    }
    sum
}

#[test]
fn an_isolated_chain_conserves_energy_momentum_and_angular_momentum() {
    const BOND: &str = "(k: 40.0, length: 1.6, r0: 0.4, k_angle: 12.0, theta0_deg: 0.0)";
    let mut s = chains(1, 6, 2.0);
    disturb(&mut s);
    let run = |dt: f64| {
        let mut b = started(&text(BOND, "RotationalVerlet()", "Double", 0, dt), s.clone());
        let before = momenta(&mut *b, &s.mass);
        let fluctuation = energy_fluctuation(&mut *b, dt);
        let change = largest_difference(&before, &momenta(&mut *b, &s.mass));
        assert!(before[3..].iter().any(|l| l.abs() > 1.0), "{before:?}");
        // rounding of some hundred steps of sums of order 10
        assert!(change < 1e-11, "dt {dt}: momenta change by {change:e}");
        fluctuation
    };
    let (coarse, fine) = (run(0.004), run(0.002));
    println!("{coarse:e}, {fine:e}");
    assert!((3.0..5.0).contains(&(coarse / fine)), "{coarse:e} and {fine:e}: not ∝ dt²");
}

/// Without pair forces, the spring of a bond has three quadratic degrees of freedom, and the angle is independent of it.
#[test]
#[ignore = "5 seconds"]
fn ideal_chains_have_the_energy_of_the_canonical_distribution() {
    let (kt, k_angle, theta0) = (1.3, 4.0, 60.0f64);
    let bond = format!("(k: 25.0, length: 1.5, k_angle: {k_angle:?}, theta0_deg: {theta0:?})");
    let integrator = format!("RotationalLangevin(kT: {kt:?}, gamma: 1.0, gamma_r: 1.0)");
    let mut b = started(&text(&bond, &integrator, "Double", 0, 0.005), chains(64, 5, 1.5));
    advance(&mut *b, 4_000);
    let samples: Vec<f64> = (0..400)
        .map(|_| {
            advance(&mut *b, 20);
            energies(&mut *b)[2] / 256.0
        })
        .collect();
    let (mut weight, mut sum) = (0.0, 0.0);
    for k in 0..10_000 {
        let theta = std::f64::consts::PI * (f64::from(k) + 0.5) / 10_000.0;
        let u = 0.5 * k_angle * (theta.cos() - theta0.to_radians().cos()).powi(2);
        let w = theta.sin() * (-u / kt).exp();
        weight += w;
        sum += w * u;
    }
    let expected = 1.5 * kt + sum / weight;
    println!("{} per bond, expected {expected}", mean(&samples));
    let relative: Vec<f64> = samples.iter().map(|u| u / expected).collect();
    agrees("ideal chains of ellipsoids: energy", &relative);
}

/// The first particle of a bond has its head at the tail of the second one.
#[test]
fn a_bond_connects_head_and_tail() {
    const BOND: &str = "(k: 10.0, length: 2.0)";
    let energy = |s: Snapshot| energies(&mut *started(&text(BOND, "RotationalVerlet()", "Double", 0, 0.001), s))[2];
    let s = chains(1, 2, 2.0);
    assert!(energy(s.clone()).abs() < 1e-24);
    let mut reversed = s.clone();
    reversed.bonds[0].tags = [1, 0];
    // the head of 1 is at z = 2, the tail of 0 at −2
    assert!((energy(reversed.clone()) / (0.5 * 10.0 * 4.0 * 4.0) - 1.0).abs() < 1e-12);
    reversed
        .arrays
        .insert("quaternion".into(), Array { width: 4, values: Values::Real([1.0, 0.0, 0.0, 0.0].repeat(2)) });
    assert!(energy(reversed).abs() < 1e-24);
}

#[test]
fn chains_of_ellipsoids_move_on_the_device_as_on_the_cpu() {
    if !has_compiler() {
        return;
    }
    const BOND: &str = "(k: 40.0, length: 1.7, r0: 0.3, k_angle: 12.0, theta0_deg: 30.0)";
    let mut s = chains(60, 5, 2.0);
    disturb(&mut s);
    for (precision, limit) in [("Double", 1e-11), ("Mixed", 2e-5), ("Single", 2e-4)] {
        let text = text(BOND, "RotationalVerlet()", precision, 40, 0.002);
        let state = |device| {
            let plan = plan_of(&text, s.clone(), device).unwrap_or_else(|e| panic!("{}", e.render()));
            let (_, mut b) = run_plan(&plan).unwrap_or_else(|e| panic!("{}", e.render()));
            let Values::Real(q) = columns(&mut *b).arrays["quaternion"].values.clone() else { panic!("integers") };
            [unwrapped(&mut *b).0, q].concat()
        };
        let far = largest_difference(&state(DeviceChoice::Cpu), &state(DeviceChoice::Emulated));
        println!("{precision}: {far:e}");
        assert!(far < limit, "{precision}: {far:e}");
    }
}
