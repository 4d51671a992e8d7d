//! Angles, dihedrals and impropers sampled by isolated molecules, against quadrature.
//!
//! Bond lengths, angles and dihedrals of a chain whose energy is a sum of terms of one of them each are independent: an
//! angle has the density sin θ exp(−U/kT), a dihedral exp(−U/kT), however stiff the rest is.

use super::distribution::{Distribution, Function, between, cross, dot};
use super::*;
use std::f64::consts::PI;

const KT: f64 = 1.3;
const LENGTH: f64 = 20.0;
const MOLECULES: u32 = 1000;
const BOND: &str = "HarmonicBond(bonds: {\"X\": (k: 150.0, r0: 1.0)})";

/// Molecules of three or four particles, all at one place, for they do not see each other. Angles are `theta`, dihedrals
/// spread over the full turn.
fn molecules(size: u32, theta: f64) -> Snapshot {
    let mut s = Snapshot { dimensions: 3, box_length: [LENGTH; 3], ..Snapshot::default() };
    let a = s.type_id("A");
    (s.bond_types, s.angle_types) = (vec!["X".into()], vec!["Y".into()]);
    if size == 4 {
        (s.dihedral_types, s.improper_types) = (vec!["Z".into()], vec!["Z".into()]);
    }
    for k in 0..MOLECULES {
        let phi = 2.0 * PI * f64::from(k) / f64::from(MOLECULES);
        // the second particle at 0, the third above it; the first and the last are turned by φ against each other
        let places = [
            [theta.sin(), 0.0, theta.cos()],
            [0.0, 0.0, 0.0],
            [0.0, 0.0, 1.0],
            [theta.sin() * phi.cos(), theta.sin() * phi.sin(), 1.0 - theta.cos()],
        ];
        let first = size * k;
        for place in &places[..size as usize] {
            s.push(a, *place);
        }
        s.bonds.extend((0..size - 1).map(|i| Link { kind: 0, tags: [first + i, first + i + 1] }));
        s.angles.extend((0..size - 2).map(|i| Link { kind: 0, tags: [0, 1, 2].map(|n| first + i + n) }));
        if size == 4 {
            s.dihedrals.push(Link { kind: 0, tags: [0, 1, 2, 3].map(|n| first + n) });
            s.impropers.push(Link { kind: 0, tags: [0, 1, 2, 3].map(|n| first + n) });
        }
    }
    s
}

fn plan_with(forces: &str, molecules: Snapshot) -> Plan {
    let text = format!(
        "(seed: 33, precision: {}, forces: [{BOND}, {forces}], integrators: [Langevin(kT: {KT}, gamma: 1.0)], \
         stages: [(steps: 1, dt: 0.005)])",
        precision()
    );
    plan_of(&text, molecules, device()).unwrap_or_else(|e| panic!("{}", e.render()))
}

/// θ of each molecule; at the middle particle, 180° is straight.
fn angles(position: &[[f64; 3]]) -> Vec<f64> {
    let one = |p: &[[f64; 3]]| {
        let (a, b) = (between(p[0], p[1], LENGTH), between(p[2], p[1], LENGTH));
        let c = cross(a, b);
        dot(c, c).sqrt().atan2(dot(a, b))
    };
    position.chunks_exact(3).map(one).collect()
}

/// φ of each molecule, −π … π; 0 is cis.
fn dihedrals(position: &[[f64; 3]]) -> Vec<f64> {
    let one = |p: &[[f64; 3]]| {
        let [a, b, c] = [0, 1, 2].map(|k| between(p[k + 1], p[k], LENGTH));
        let (m, n) = (cross(a, b), cross(b, c));
        (dot(b, b).sqrt() * dot(a, n)).atan2(dot(m, n))
    };
    position.chunks_exact(4).map(one).collect()
}

fn trimers_sample(name: &str, angle: &str, u: Function<'_>, start: f64) {
    let density = |t: f64| t.sin() * (-u(t) / KT).exp();
    let means: [(&str, Function<'_>, f64); 3] =
        [("⟨θ⟩", &|t| t, 1e-3), ("⟨cos θ⟩", &f64::cos, 1e-3), ("⟨U⟩/kT", &|t| u(t) / KT, 3e-3)];
    let exact = Distribution { name, density: &density, range: (0.0, PI), means: &means };
    exact.holds(&plan_with(angle, molecules(3, start)), 120, 200, &angles);
}

#[test]
#[ignore = "minutes"]
fn angles_have_their_distributions() {
    let rad = f64::to_radians;
    trimers_sample(
        "harmonic angle",
        "HarmonicAngle(angles: {\"Y\": (k: 6.0, theta0_deg: 110.0)})",
        &|t| 6.0 * (t - rad(110.0)).powi(2),
        rad(110.0),
    );
    trimers_sample(
        "harmonic angle, straight",
        "HarmonicAngle(angles: {\"Y\": (k: 2.5, theta0_deg: 180.0)})",
        &|t| 2.5 * (t - PI).powi(2),
        rad(150.0),
    );
    trimers_sample(
        "cosine-squared angle",
        "CosineSquaredAngle(angles: {\"Y\": (k: 8.0, theta0_deg: 120.0)})",
        &|t| 8.0 * (t.cos() + 0.5).powi(2),
        rad(120.0),
    );
    trimers_sample("cosine angle", "CosineAngle(angles: {\"Y\": (k: 2.0)})", &|t| 2.0 * (1.0 + t.cos()), rad(150.0));
    trimers_sample(
        "cosine angle, bent",
        "CosineAngle(angles: {\"Y\": (k: 4.0, theta0_deg: 100.0)})",
        &|t| 4.0 * (1.0 - (t - rad(100.0)).cos()),
        rad(100.0),
    );
    trimers_sample(
        "angle from a formula",
        "AngleExpression(energy: \"k*(theta - t0)^4\", angles: {\"Y\": (k: 9.0, t0: 1.9)})",
        &|t| 9.0 * (t - 1.9).powi(4),
        1.9,
    );
}

fn tetramers_sample(name: &str, dihedral: &str, u: Function<'_>) {
    // far enough from a straight line, where φ is undefined: at 150° the angle costs 13 kT
    let angle = "HarmonicAngle(angles: {\"Y\": (k: 45.0, theta0_deg: 115.0)})";
    let density = |x: f64| (-u(x) / KT).exp();
    let means: [(&str, Function<'_>, f64); 3] =
        [("⟨cos φ⟩", &f64::cos, 1e-3), ("⟨sin φ⟩", &f64::sin, 1e-3), ("⟨U⟩/kT", &|x| u(x) / KT, 3e-3)];
    let exact = Distribution { name, density: &density, range: (-PI, PI), means: &means };
    let plan = plan_with(&format!("{angle}, {dihedral}"), molecules(4, 115f64.to_radians()));
    exact.holds(&plan, 120, 400, &dihedrals);
}

#[test]
#[ignore = "minutes"]
fn dihedrals_have_their_distributions() {
    let rad = f64::to_radians;
    tetramers_sample("periodic dihedral", "PeriodicDihedral(dihedrals: {\"Z\": (k: 1.3, n: 3)})", &|x| {
        1.3 * (1.0 + (3.0 * x).cos())
    });
    // not even in φ: its sign must be that of the books
    tetramers_sample(
        "periodic dihedral with a phase",
        "PeriodicDihedral(dihedrals: {\"Z\": (k: 1.5, n: 1, delta_deg: 70.0)})",
        &|x| 1.5 * (1.0 + (x - rad(70.0)).cos()),
    );
    let opls = |x: f64| {
        let c = |n: f64| (n * x).cos();
        0.5 * (1.8 * (1.0 + c(1.0)) - 0.6 * (1.0 - c(2.0)) + 2.0 * (1.0 + c(3.0)) + 0.5 * (1.0 - c(4.0)))
    };
    tetramers_sample("OPLS dihedral", "OplsDihedral(dihedrals: {\"Z\": (k1: 1.8, k2: -0.6, k3: 2.0, k4: 0.5)})", &opls);
    // the alkane of Ryckaert and Bellemans with barriers low enough to be crossed often
    let c = [2.78, 3.65, -3.94, -0.92, 7.87, -9.45];
    tetramers_sample(
        "Ryckaert-Bellemans dihedral",
        "RyckaertBellemans(dihedrals: {\"Z\": (c0: 2.78, c1: 3.65, c2: -3.94, c3: -0.92, c4: 7.87, c5: -9.45)})",
        &|x| c.iter().rev().fold(0.0, |sum, k| sum * (x - PI).cos() + k),
    );
    tetramers_sample("harmonic improper", "HarmonicImproper(impropers: {\"Z\": (k: 0.8, phi0_deg: 150.0)})", &|x| {
        let d = x - rad(150.0);
        0.8 * (d - 2.0 * PI * (d / (2.0 * PI)).round()).powi(2)
    });
    tetramers_sample(
        "dihedral from a formula",
        "DihedralExpression(energy: \"k*(1 - sin(phi))\", dihedrals: {\"Z\": (k: 1.5)})",
        &|x| 1.5 * (1.0 - x.sin()),
    );
}
