//! Numbers that components must give, computed independently of the program.

use galamost::selftest::standard_system;
use galamost_engine::pipeline::DeviceChoice;
use galamost_plugin_api::snapshot::{Array, Link, Snapshot, Values};
use galamost_plugin_api::views::Sums;
use galamost_tests::{largest_difference, plan_of, repository, run_plan, unwrapped};
use serde::Deserialize;

mod styles;

#[derive(Deserialize)]
struct Case {
    component: String,
    rows: Vec<(f64, f64, f64)>,
    #[serde(default)]
    charges: Option<(f64, f64)>,
    #[serde(default)]
    diameters: Option<(f64, f64)>,
}

fn cases(file: &str) -> Vec<Case> {
    let text = std::fs::read_to_string(repository().join("tests/reference").join(file)).expect("a file of rows");
    ron::from_str(&text).expect("rows")
}

/// Energy and virial of the case's component.
fn sums_of(case: &Case, s: Snapshot) -> Sums {
    let text = format!("(precision: Double, forces: [{}], stages: [(steps: 0, dt: 0.01)])", case.component);
    let plan = plan_of(&text, s, DeviceChoice::Cpu).unwrap_or_else(|e| panic!("{}", e.render()));
    run_plan(&plan).unwrap_or_else(|e| panic!("{}", e.render())).1.sums().expect("sums").components[0]
}

/// Particles at these distances from the origin along (1, 2, 2)/3, one pair each run.
fn pair_at(case: &Case, r: f64) -> Snapshot {
    let mut s = Snapshot { dimensions: 3, box_length: [20.0; 3], ..Snapshot::default() };
    let a = s.type_id("A");
    s.push(a, [9.9, 0.0, 0.0]);
    // across the border of the box
    let x = 9.9 + r / 3.0;
    s.push(a, [if x > 10.0 { x - 20.0 } else { x }, 2.0 * r / 3.0, 2.0 * r / 3.0]);
    for (name, given) in [("charge", case.charges), ("diameter", case.diameters)] {
        if let Some((i, j)) = given {
            s.arrays.insert(name.into(), Array { width: 1, values: Values::Real(vec![i, j]) });
        }
    }
    s
}

#[test]
fn pairs_agree_with_their_formulas() {
    let mut n = 0;
    for case in &cases("pairs.ron") {
        for &(r, u, f) in &case.rows {
            n += 1;
            let text = format!("(precision: Double, forces: [{}], stages: [(steps: 0, dt: 0.01)])", case.component);
            let plan = plan_of(&text, pair_at(case, r), DeviceChoice::Cpu).unwrap_or_else(|e| panic!("{}", e.render()));
            // the potential alone knows only charges and diameters of 1
            if case.charges.is_none() && case.diameters.is_none() {
                let (fr, energy) = plan.components[0].pair().expect("a pair").evaluate(0, 0, r * r).expect("no panic");
                let near = |x: f64, y: f64| (x - y).abs() < 1e-12 * y.abs().max(1.0);
                assert!(near(energy, u) && near(fr * r, f), "{} at {r}: U {energy} F {}", case.component, fr * r);
            }
            // DPD adds a random force, which the loop's numbers then hold too
            if case.component.starts_with("Dpd") {
                continue;
            }
            let sums = sums_of(case, pair_at(case, r));
            let loose = |x: f64, y: f64| (x - y).abs() < 1e-11 * y.abs().max(1.0);
            let virial = sums.virial;
            assert!(loose(sums.energy, u), "{} at {r}: {} and {u}", case.component, sums.energy);
            assert!(loose(virial[0] + virial[3] + virial[5], r * f), "{} at {r}: virial {virial:?}", case.component);
            // xy : xx = 2 : 1 along this line
            assert!(loose(virial[1], 2.0 * virial[0]) && loose(virial[4], virial[3]), "{virial:?}");
        }
    }
    assert!(n >= 330, "{n} rows");
}

/// A bond across the border of the box.
#[test]
fn bonds_agree_with_their_formulas() {
    let mut n = 0;
    for case in &cases("bonds.ron") {
        for &(r, u, f) in &case.rows {
            n += 1;
            let mut s = pair_at(case, r);
            s.bond_types = vec!["X".into()];
            s.bonds = vec![Link { kind: 0, tags: [0, 1] }];
            let sums = sums_of(case, s);
            let near = |x: f64, y: f64| (x - y).abs() < 1e-11 * y.abs().max(1.0);
            assert!(near(sums.energy, u), "{} at {r}: U {}", case.component, sums.energy);
            let trace = sums.virial[0] + sums.virial[3] + sums.virial[5];
            assert!(near(trace, r * f), "{} at {r}: r F {trace}", case.component);
        }
    }
    assert!(n >= 30, "{n} rows");
}

/// Without repulsion DPD is its thermostat, and a pair's own kT is as good as the component's.
#[test]
fn dpd_thermostat_equals_dpd_without_repulsion() {
    let forces = |component: &str| {
        let text = format!(
            "(precision: Double, forces: [{component}], integrators: [GrootWarren()], stages: [(steps: 5, dt: 0.002)])"
        );
        let plan = plan_of(&text, standard_system(), DeviceChoice::Cpu).unwrap_or_else(|e| panic!("{}", e.render()));
        let (_, mut b) = run_plan(&plan).unwrap_or_else(|e| panic!("{}", e.render()));
        assert_eq!(b.sums().expect("sums").components[0].energy, 0.0);
        unwrapped(&mut *b).1
    };
    let all = |name: &str, kt: &str, row: &str| {
        let rows = ["(\"A\", \"A\")", "(\"A\", \"B\")", "(\"B\", \"B\")"].map(|p| format!("{p}: ({row})")).join(", ");
        forces(&format!("{name}(r_cut: 1.6, kT: {kt}, pairs: {{ {rows} }})"))
    };
    let dpd = all("Dpd", "1.5", "a: 0.0, gamma: 4.5, s: 0.7");
    assert!(largest_difference(&dpd, &all("DpdThermostat", "1.5", "gamma: 4.5, s: 0.7")) < 1e-12);
    assert!(largest_difference(&dpd, &all("DpdThermostat", "0.3", "gamma: 4.5, s: 0.7, kT: 1.5")) < 1e-12);
    assert!(largest_difference(&dpd, &all("DpdThermostat", "0.3", "gamma: 4.5, s: 0.7")) > 1e-3);
}

/// Four particles i–j–k–l with both angles θ and the dihedral angle φ (degrees), bonds of length 1.3 and 0.9 and 1.1,
/// turned and shifted so that the border of the box runs through them.
fn chain(theta: f64, phi: f64) -> Snapshot {
    let (t, p) = (theta.to_radians(), phi.to_radians());
    let (j, k) = ([0.0; 3], [0.9, 0.0, 0.0]);
    let i = [1.3 * t.cos(), 1.3 * t.sin(), 0.0];
    let l = [0.9 - 1.1 * t.cos(), 1.1 * t.sin() * p.cos(), 1.1 * t.sin() * p.sin()];
    let mut s = Snapshot { dimensions: 3, box_length: [12.0, 13.0, 14.0], ..Snapshot::default() };
    let a = s.type_id("A");
    for r in [i, j, k, l] {
        // a rotation about (1, 1, 1) by 120° and a shift to a corner of the box
        let turned = [r[2] + 5.9, r[0] + 6.4, r[1] - 6.9];
        let wrapped = std::array::from_fn(|d| turned[d] - s.box_length[d] * (turned[d] / s.box_length[d]).round());
        s.push(a, wrapped);
    }
    s.angle_types = vec!["X".into()];
    s.angles = vec![Link { kind: 0, tags: [0, 1, 2] }, Link { kind: 0, tags: [3, 2, 1] }];
    s.dihedral_types = vec!["X".into()];
    s.dihedrals = vec![Link { kind: 0, tags: [0, 1, 2, 3] }];
    (s.improper_types, s.impropers) = (s.dihedral_types.clone(), s.dihedrals.clone());
    s
}

/// Energies by the formulas; no net force, no net torque, no pressure.
fn holds(force: &str, theta: f64, phi: f64, expected: f64) {
    for mirrored in [false, true] {
        let mut s = chain(theta, phi);
        if mirrored {
            s.dihedrals[0].tags.reverse();
            s.impropers[0].tags.reverse();
        }
        let text = format!("(precision: Double, forces: [{force}], stages: [(steps: 0, dt: 0.01)])");
        let plan = plan_of(&text, s, DeviceChoice::Cpu).unwrap_or_else(|e| panic!("{}", e.render()));
        let mut b = run_plan(&plan).unwrap_or_else(|e| panic!("{}", e.render())).1;
        let sums = b.sums().expect("sums").components[0];
        assert!(
            (sums.energy - expected).abs() < 1e-12 * expected.abs().max(1.0),
            "{force} θ {theta} φ {phi}: {}",
            sums.energy
        );
        let trace = sums.virial[0] + sums.virial[3] + sums.virial[5];
        let force_bytes = b.read("force").expect("forces");
        let f: Vec<f64> = force_bytes.as_chunks::<8>().0.iter().map(|x| f64::from_ne_bytes(*x)).collect();
        // distances are near 1, and forces are large near a straight line
        let largest = f.iter().fold(1.0f64, |m, x| m.max(x.abs()));
        assert!(
            trace.abs() < 1e-12 * largest,
            "{force}: angles do not change with the scale, but the trace is {trace:e}"
        );
        assert!(f.iter().any(|x| x.abs() > 1e-3), "{force}: no force at all");
        let x = galamost_tests::columns(&mut *b).position;
        let l = b.box_length();
        let near = |d: f64, k: usize| d - l[k] * (d / l[k]).round();
        let (mut sum, mut torque) = ([0.0; 3], [0.0; 3]);
        for (i, p) in x.iter().enumerate() {
            let (r, f): ([f64; 3], [f64; 3]) =
                (std::array::from_fn(|k| near(p[k] - x[0][k], k)), std::array::from_fn(|k| f[4 * i + k]));
            for k in 0..3 {
                sum[k] += f[k];
                torque[k] += r[(k + 1) % 3] * f[(k + 2) % 3] - r[(k + 2) % 3] * f[(k + 1) % 3];
            }
        }
        let worst = sum.iter().chain(&torque).fold(0.0f64, |m, x| m.max(x.abs()));
        assert!(worst < 1e-12 * largest, "{force}: Σ F {sum:?}, Σ r×F {torque:?}");
    }
}

#[test]
fn angles_dihedrals_and_impropers_agree_with_their_formulas() {
    let rad = f64::to_radians;
    for theta in [60.0, 109.5, 150.0, 179.0] {
        // both angles of the chain
        let (t, t0) = (rad(theta), rad(120.0));
        holds("HarmonicAngle(angles: {\"X\": (k: 3.0, theta0_deg: 120.0)})", theta, 50.0, 6.0 * (t - t0).powi(2));
        holds(
            "CosineSquaredAngle(convention: Half, angles: {\"X\": (k: 3.0, theta0_deg: 120.0)})",
            theta,
            50.0,
            3.0 * (t.cos() - t0.cos()).powi(2),
        );
        holds("CosineAngle(angles: {\"X\": (k: 3.0)})", theta, 50.0, 6.0 * (1.0 + t.cos()));
        holds("CosineAngle(angles: {\"X\": (k: 3.0, theta0_deg: 90.0)})", theta, 50.0, 6.0 * (1.0 - t.sin()));
        let restricted = (t.cos() - t0.cos()).powi(2) / t.sin().powi(2);
        holds("RestrictedAngle(angles: {\"X\": (k: 3.0, theta0_deg: 120.0)})", theta, 50.0, 6.0 * restricted);
        // at 60° and 150° the force vanishes for some n
        for n in (1..=6).filter(|_| [109.5, 179.0].contains(&theta)) {
            let (m, sign) = (f64::from(n), if n % 2 == 0 { -1.0 } else { 1.0 });
            let component = format!("CosinePeriodicAngle(angles: {{\"X\": (k: 3.0, n: {n}, b: -1)}})");
            holds(&component, theta, 50.0, 12.0 / (m * m) * (1.0 - sign * (m * t).cos()));
        }
    }
    for phi in [-170.0, -75.0, 20.0, 120.0] {
        let p = rad(phi);
        let (theta, c) = (110.0, p.cos());
        holds(
            "PeriodicDihedral(dihedrals: {\"X\": (k: 0.7, n: 3, delta_deg: 40.0)})",
            theta,
            phi,
            0.7 * (1.0 + (3.0 * p - rad(40.0)).cos()),
        );
        holds("PeriodicDihedral(convention: Half, dihedrals: {\"X\": (k: 0.7, n: 1)})", theta, phi, 0.35 * (1.0 + c));
        let opls = 0.5
            * (1.1 * (1.0 + c)
                + 0.6 * (1.0 - (2.0 * p).cos())
                + 0.4 * (1.0 + (3.0 * p).cos())
                + 0.3 * (1.0 - (4.0 * p).cos()));
        holds("OplsDihedral(dihedrals: {\"X\": (k1: 1.1, k2: 0.6, k3: 0.4, k4: 0.3)})", theta, phi, opls);
        let psi = p - std::f64::consts::PI;
        let rb: f64 = [9.28, 12.16, -13.12, -3.06, 26.24, -31.5]
            .iter()
            .enumerate()
            .map(|(n, c)| c * psi.cos().powi(n as i32))
            .sum();
        holds(
            "RyckaertBellemans(dihedrals: {\"X\": (c0: 9.28, c1: 12.16, c2: -13.12, c3: -3.06, c4: 26.24, c5: -31.5)})",
            theta,
            phi,
            rb,
        );
        // 150° and −170° are 40° apart
        let apart = rad(if phi == -170.0 { 40.0 } else { phi - 150.0 });
        let apart = if apart < -std::f64::consts::PI { apart + 2.0 * std::f64::consts::PI } else { apart };
        let harmonic = 2.0 * apart * apart;
        holds("HarmonicDihedral(dihedrals: {\"X\": (k: 2.0, phi0_deg: 150.0)})", theta, phi, harmonic);
        let improper = |convention: &str, expected: f64| {
            let force = format!("HarmonicImproper({convention}impropers: {{\"X\": (k: 2.0, phi0_deg: 150.0)}})");
            holds(&force, theta, phi, expected);
        };
        improper("", harmonic);
        improper("convention: Half, ", 0.5 * harmonic);
        let unsigned = 2.0 * (p.abs() - rad(150.0)).powi(2);
        improper("convention: Lammps, ", unsigned);
        improper("convention: Hoomd, ", 0.5 * unsigned);
        let cvff = 0.7 * (1.0 - (2.0 * p).cos());
        holds("CvffImproper(impropers: {\"X\": (k: 0.7, d: -1, n: 2)})", theta, phi, cvff);
        holds("PeriodicImproper(impropers: {\"X\": (k: 0.7, n: 2, delta_deg: 180.0)})", theta, phi, cvff);
        let table = "ImproperExpression(energy: \"k*(1 - cos(2*phi))\", impropers: {\"X\": (k: 0.7)})";
        holds(table, theta, phi, cvff);
    }
}

/// Numbers of LAMMPS for quadruples in its order.
#[derive(serde::Deserialize)]
struct Impropers {
    position: Vec<[f64; 3]>,
    cases: Vec<ImproperCase>,
}

#[derive(serde::Deserialize)]
struct ImproperCase {
    style: String,
    force: String,
    energy: f64,
    virial: [f64; 6],
    forces: Vec<[f64; 3]>,
}

#[test]
fn impropers_agree_with_lammps() {
    let reference: Impropers = ron::from_str(include_str!("reference/impropers.ron")).expect("numbers");
    let mut s = Snapshot { dimensions: 3, box_length: [20.0; 3], ..Snapshot::default() };
    let a = s.type_id("A");
    reference.position.iter().for_each(|x| _ = s.push(a, *x));
    s.improper_types = vec!["1".into(), "2".into()];
    s.impropers = (0..8).map(|q| Link { kind: q % 2, tags: [0, 1, 2, 3].map(|k| 4 * q + k) }).collect();
    for case in reference.cases {
        let text = format!("(precision: Double, forces: [{}], stages: [(steps: 0, dt: 0.01)])", case.force);
        let plan = plan_of(&text, s.clone(), DeviceChoice::Cpu).unwrap_or_else(|e| panic!("{}", e.render()));
        let mut b = run_plan(&plan).unwrap_or_else(|e| panic!("{}", e.render())).1;
        let sums = b.sums().expect("sums").components[0];
        let bytes = b.read("force").expect("forces");
        let f: Vec<f64> = bytes.as_chunks::<8>().0.iter().map(|x| f64::from_ne_bytes(*x)).collect();
        let forces = f.as_chunks::<4>().0.iter().zip(&case.forces);
        let far = forces.flat_map(|(a, b)| (0..3).map(move |k| (a[k] - b[k]).abs())).fold(0.0, f64::max);
        let virial = sums.virial.iter().zip(&case.virial).fold(0.0, |m: f64, (a, b)| m.max((a - b).abs()));
        let energy = (sums.energy - case.energy).abs();
        println!("{}: energy {energy:.1e}, forces {far:.1e}, virial {virial:.1e}", case.style);
        assert!(energy < 1e-10 && far < 1e-10 && virial < 1e-10, "{}: {energy:e} {far:e} {virial:e}", case.style);
    }
}
