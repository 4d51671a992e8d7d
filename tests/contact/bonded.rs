//! Bonded forces in all units of length, at arms of length 0, and with parameters that a precision does not have.

use galamost_engine::pipeline::DeviceChoice;
use galamost_plugin_api::snapshot::{Link, Snapshot};
use galamost_tests::{devices, plan_of, started};

/// A dihedral with cos φ = 0.6.
const BENT: [[f64; 3]; 4] = [[1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.6, 1.0, 0.8]];
const OPLS: &str = r#"OplsDihedral(dihedrals: { "X": (k1: 1.0, k2: 1.0, k3: 2.0) })"#;
const IMPROPER: &str = r#"HarmonicImproper(impropers: { "X": (k: 2.0, phi0_deg: 20.0) })"#;
const ANGLE: &str = r#"HarmonicAngle(angles: { "X": (k: 2.0, theta0_deg: 120.0) })"#;

/// Four particles in units of length in which 1 is `scale`, with one link of each kind.
fn molecule(at: [[f64; 3]; 4], scale: f64) -> Snapshot {
    let mut s = Snapshot { dimensions: 3, box_length: [16.0 * scale; 3], ..Snapshot::default() };
    let a = s.type_id("A");
    for x in at {
        s.push(a, x.map(|x| scale * x));
    }
    for types in [&mut s.bond_types, &mut s.angle_types, &mut s.dihedral_types, &mut s.improper_types] {
        types.push("X".into());
    }
    s.bonds.push(Link { kind: 0, tags: [0, 1] });
    s.angles.push(Link { kind: 0, tags: [0, 1, 2] });
    s.dihedrals.push(Link { kind: 0, tags: [0, 1, 2, 3] });
    s.impropers.push(Link { kind: 0, tags: [0, 1, 2, 3] });
    s
}

fn pipeline(force: &str, precision: &str) -> String {
    format!(
        "(precision: {precision}, forces: [{force}], integrators: [VelocityVerlet()], stages: [(steps: 0, dt: 0.01)])"
    )
}

/// Energy of a component and forces on the particles.
fn evaluated(force: &str, s: Snapshot, precision: &str, device: DeviceChoice) -> (f64, Vec<[f64; 3]>) {
    let mut b = started(&pipeline(force, precision), s, device);
    let energy = b.sums().expect("sums").components[0].energy;
    let bytes = b.read("force").expect("forces");
    let numbers: Vec<f64> = match precision {
        "Double" => bytes.as_chunks::<8>().0.iter().map(|x| f64::from_ne_bytes(*x)).collect(),
        _ => bytes.as_chunks::<4>().0.iter().map(|x| f64::from(f32::from_ne_bytes(*x))).collect(),
    };
    (energy, numbers.as_chunks::<4>().0.iter().map(|f| [f[0], f[1], f[2]]).collect())
}

/// U of a scaled molecule is that of the molecule, and F is inverse to the scale, up to `rounding` in double precision.
fn scales(force: &dyn Fn(f64) -> String, rounding: f64, device: DeviceChoice) {
    let (energy, forces) = evaluated(&force(1.0), molecule(BENT, 1.0), "Double", DeviceChoice::Cpu);
    let largest = forces.iter().flatten().fold(0.0f64, |m, x| m.max(x.abs()));
    assert!(energy > 0.01 && largest > 0.01, "{}: {energy} {forces:?}", force(1.0));
    for (precision, limit, scale) in [
        ("Double", rounding, 1e-9),
        ("Double", rounding, 1e4),
        ("Mixed", 1e-5, 1e-9),
        ("Mixed", 1e-5, 1e-5),
        ("Mixed", 1e-5, 1.0),
        ("Mixed", 1e-5, 1e6),
    ] {
        let (u, f) = evaluated(&force(scale), molecule(BENT, scale), precision, device);
        let what = format!("{} at {scale:e}, {device:?} {precision}: {u} {f:?}", force(scale));
        assert!((u - energy).abs() <= limit * energy, "{what}; {energy} expected");
        // devices may order the particles differently
        let same = |x: &[f64; 3], y: &[f64; 3]| (0..3).all(|k| (x[k] * scale - y[k]).abs() <= limit * largest);
        assert!(forces.iter().all(|y| f.iter().any(|x| same(x, y))), "{what}; {forces:?} expected at 1");
    }
}

#[test]
fn bonded_forces_hold_in_all_units_of_length() {
    let (energy, forces) = evaluated(OPLS, molecule(BENT, 1.0), "Double", DeviceChoice::Cpu);
    assert!((energy - 1.504).abs() < 1e-12, "{energy}");
    assert!(forces.iter().any(|f| (f[2] + 0.496).abs() < 1e-12), "{forces:?}");
    for component in [
        r#"RyckaertBellemans(dihedrals: { "X": (c0: 2.0, c1: 1.0, c2: -0.5, c3: 0.3) })"#,
        r#"PeriodicDihedral(dihedrals: { "X": (k: 1.3, n: 2, delta_deg: 20.0) })"#,
        r#"HarmonicDihedral(dihedrals: { "X": (k: 2.0, phi0_deg: 20.0) })"#,
        r#"DihedralExpression(energy: "k*(1 - sin(phi)/2)", dihedrals: { "X": (k: 1.5) })"#,
        r#"DihedralTable(unit: Degrees, dihedrals: { "X": (angle: [0.0, 90.0, 180.0, 270.0], u: [0.6, 0.2, 0.1, 0.3]) })"#,
        r#"CvffImproper(impropers: { "X": (k: 1.1, d: 1, n: 1) })"#,
        r#"PeriodicImproper(impropers: { "X": (k: 1.3, n: 2, delta_deg: 20.0) })"#,
        r#"ImproperExpression(energy: "k*phi^2", impropers: { "X": (k: 1.5) })"#,
    ] {
        scales(&|_| component.into(), 1e-9, DeviceChoice::Cpu);
    }
    let table = |scale: f64| {
        let r = [0.6, 0.8, 1.0, 1.2, 1.4].map(|r| scale * r);
        format!(r#"BondTable(bonds: {{ "X": (r: {r:?}, u: [9.0, 4.0, 2.0, 1.0, 0.5]) }})"#)
    };
    for device in devices() {
        for component in [OPLS, IMPROPER, ANGLE] {
            scales(&|_| component.into(), 1e-9, device);
        }
        // the grid of the spline depends on the last row
        scales(&table, 1e-5, device);
    }
}

/// An arm of length 0 counts as a right angle, without force.
#[test]
fn angles_with_an_arm_of_length_0_have_no_force() {
    let at = [[0.0; 3], [0.0; 3], [1.0, 0.0, 0.0], [1.0, 1.0, 0.5]];
    let right = std::f64::consts::FRAC_PI_2;
    let cases = [
        (ANGLE, 2.0 * (right / 3.0).powi(2)),
        (r#"CosineSquaredAngle(angles: { "X": (k: 2.0, theta0_deg: 120.0) })"#, 0.5),
        (r#"CosineAngle(angles: { "X": (k: 2.0, theta0_deg: 90.0) })"#, 0.0),
        (r#"CosineAngle(angles: { "X": (k: 2.0) })"#, 2.0),
        (r#"CosinePeriodicAngle(angles: { "X": (k: 2.0, n: 2) })"#, 2.0),
        (r#"RestrictedAngle(angles: { "X": (k: 2.0, theta0_deg: 120.0) })"#, 0.5),
        (r#"AngleExpression(energy: "k*(theta - 1)^2", angles: { "X": (k: 2.0) })"#, 2.0 * (right - 1.0).powi(2)),
        (
            r#"AngleTable(unit: Degrees, angles: { "X": (angle: [0.0, 30.0, 60.0, 90.0, 120.0, 150.0, 180.0],
                u: [8.0, 7.4641, 6.0, 4.0, 2.0, 0.5359, 0.0]) })"#,
            4.0,
        ),
    ];
    let holds = |(component, energy): (&str, f64), precision: &str, device: DeviceChoice| {
        let (u, f) = evaluated(component, molecule(at, 1.0), precision, device);
        let what = format!("{component}, {device:?} {precision}: {u} {f:?}");
        let limit = if precision == "Double" { 1e-12 } else { 1e-5 };
        assert!((u - energy).abs() < limit && f.iter().flatten().all(|x| *x == 0.0), "{what}; {energy} expected");
    };
    for precision in ["Mixed", "Double"] {
        cases.iter().for_each(|case| holds(*case, precision, DeviceChoice::Cpu));
        devices().into_iter().for_each(|device| holds(cases[0], precision, device));
    }
}

/// Numbers whose products single precision does not have are refused, and accepted in double precision.
#[test]
fn lengths_and_stiffnesses_out_of_range_are_refused() {
    let stiff = r#"HarmonicBond(bonds: { "X": (k: 3e38, r0: 1.0) })"#;
    let quartic = r#"QuarticBond(bonds: { "X": (k2: 1.0, k4: 1.2e38, r0: 1.0) })"#;
    for (force, scale, message) in [
        (stiff, 1.0, "which is out of range in Mixed precision; use units"),
        (quartic, 1.0, "which is out of range in Mixed precision; use units"),
        (OPLS, 1e-16, "the box length 1.6e-15 is out of range for bonded forces in Mixed precision"),
        (ANGLE, 1e18, "the box length 1.6e19 is out of range for bonded forces in Mixed precision"),
    ] {
        let plan = |precision: &str| plan_of(&pipeline(force, precision), molecule(BENT, scale), DeviceChoice::Cpu);
        let Err(e) = plan("Mixed") else { panic!("{force} at {scale:e} is accepted") };
        assert!(e.render().contains(message), "{}", e.render());
        plan("Double").unwrap_or_else(|e| panic!("{}", e.render()));
    }
}

/// Initial bonds without a finite force are refused; only one that is too long is called that.
#[test]
fn initial_bonds_without_a_force_are_refused() {
    let (long, other) = ("which is longer than its potential allows", "at which its potential has no finite force");
    let tether = r#"Tether(bonds: { "X": (k: 80.0, l_min: 0.5, l_c1: 0.85, l_c0: 1.15, l_max: 2.0) })"#;
    let logarithm = r#"BondExpression(energy: "k*ln(r - 1.5)", bonds: { "X": (k: 1.0) })"#;
    let fene = r#"Fene(bonds: { "X": (k: 30.0, R0: 1.5) })"#;
    for (force, r, message) in [
        (tether, 0.3, other),
        (tether, 0.5, other),
        (tether, 1.0, ""),
        (tether, 2.0, long),
        (logarithm, 1.1, other),
        (logarithm, 1.6, ""),
        (fene, 1.6, long),
    ] {
        let mut s = molecule(BENT, 1.0);
        s.position[0] = [r, 0.0, 0.0];
        match plan_of(&pipeline(force, "Mixed").replace("steps: 0", "steps: 5"), s, DeviceChoice::Cpu) {
            Ok(_) => assert!(message.is_empty(), "{force} at {r} is accepted"),
            Err(e) => assert!(!message.is_empty() && e.render().contains(message), "{}", e.render()),
        }
    }
}
