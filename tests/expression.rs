//! Potentials given as formulas against the same potentials written in Rust.

use galamost::selftest::standard_system;
use galamost_engine::backend::Backend;
use galamost_engine::diagnostic::Failure;
use galamost_engine::pipeline::DeviceChoice;
use galamost_plugin_api::component::Wants;
use galamost_plugin_api::snapshot::{Link, Snapshot, Values};
use galamost_plugin_api::tilt::to_space;
use galamost_plugin_api::views::{Sums, Wanted};
use galamost_tests::{
    backend, columns, devices, has_compiler, largest_difference, plan, plan_of, run_plan, started, unwrapped,
};
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// The standard system with one particle type, and with it one type of each kind of link.
fn one_type() -> Snapshot {
    let mut s = standard_system();
    s.types.truncate(1);
    s.type_id.fill(0);
    for list in [&mut s.bond_types, &mut s.angle_types, &mut s.dihedral_types, &mut s.improper_types] {
        list.truncate(1);
    }
    s.bonds.iter_mut().for_each(|l| l.kind = 0);
    s.angles.iter_mut().for_each(|l| l.kind = 0);
    s.dihedrals.iter_mut().for_each(|l| l.kind = 0);
    s.impropers.iter_mut().for_each(|l| l.kind = 0);
    s
}

/// Forces and sums of one component.
fn forces(force: &str, s: Snapshot, device: DeviceChoice) -> (Vec<f64>, Sums) {
    let text = format!("(precision: Double, forces: [{force}], stages: [(steps: 0, dt: 0.01)])");
    let plan = plan_of(&text, s, device).unwrap_or_else(|e| panic!("{}", e.render()));
    let mut b = run_plan(&plan).unwrap_or_else(|e| panic!("{}", e.render())).1;
    let sums = b.sums().expect("sums").components[0];
    let bytes = b.read("force").expect("forces");
    let f = bytes.as_chunks::<32>().0.iter().flat_map(|f| f.as_chunks::<8>().0[..3].to_vec());
    (f.map(f64::from_ne_bytes).collect(), sums)
}

/// Both give the same forces, energy and virial to rounding.
fn same(formula: &str, built_in: &str, s: &Snapshot, device: DeviceChoice) {
    let (f, sums) = forces(formula, s.clone(), device);
    let (truth, expected) = forces(built_in, s.clone(), device);
    let largest = truth.iter().fold(0.0f64, |m, x| m.max(x.abs()));
    assert!(largest > 0.1, "{built_in}: no force at all");
    let worst = largest_difference(&f, &truth) / largest;
    assert!(worst < 1e-13, "{formula}: forces differ by {worst:e}");
    let scale = expected.virial.iter().fold(expected.energy.abs().max(1.0), |m, w| m.max(w.abs()));
    let energy = (sums.energy - expected.energy).abs() / scale;
    let virial = largest_difference(&sums.virial, &expected.virial) / scale;
    assert!(energy < 1e-13 && virial < 1e-13, "{formula}: energy differs by {energy:e}, virial by {virial:e}");
}

fn pairs(rows: [&str; 3]) -> String {
    format!("pairs: {{ (\"A\", \"A\"): ({}), (\"A\", \"B\"): ({}), (\"B\", \"B\"): ({}) }}", rows[0], rows[1], rows[2])
}

#[test]
fn pairs_are_lennard_jones_in_all_modes() {
    for mode in ["Cut", "ShiftEnergy", "ShiftForce", "Smooth(2.0)"] {
        let formula = format!("PairExpression(energy: \"4*eps*((sig/r)^12 - (sig/r)^6)\", r_cut: 2.5, mode: {mode}, ");
        let built_in = format!("LennardJones(r_cut: 2.5, mode: {mode}, ");
        let rows = pairs(["eps: 1.0, sig: 1.0", "eps: 0.5, sig: 0.95", "eps: 1.3, sig: 0.9, r_cut: 2.25"]);
        let truth =
            pairs(["epsilon: 1.0, sigma: 1.0", "epsilon: 0.5, sigma: 0.95", "epsilon: 1.3, sigma: 0.9, r_cut: 2.25"]);
        same(&format!("{formula}{rows})"), &format!("{built_in}{truth})"), &standard_system(), DeviceChoice::Cpu);
        let row = "pairs: { (\"A\", \"A\"): (eps: 1.3, sig: 0.9) })";
        let truth = "pairs: { (\"A\", \"A\"): (epsilon: 1.3, sigma: 0.9) })";
        same(&format!("{formula}{row}"), &format!("{built_in}{truth}"), &one_type(), DeviceChoice::Cpu);
    }
}

/// 64 particles of two types in a triclinic box, with neighbors across all faces.
fn tilted(tilt: [f64; 3]) -> Snapshot {
    let length = [6.0, 5.6, 5.2];
    let mut s = Snapshot { dimensions: 3, box_length: length, tilt, ..Snapshot::default() };
    let types = [s.type_id("A"), s.type_id("B")];
    for i in 0..64 {
        let site = [i % 4, i / 4 % 4, i / 16];
        let reduced = std::array::from_fn(|k| {
            let shift = f64::from((37 * i + 53 * site[k]) % 97) / 97.0 - 0.5;
            0.25 * length[k] * (f64::from(site[k]) - 1.5 + 0.3 * shift)
        });
        s.push(types[i as usize / 3 % 2], to_space(reduced, tilt));
    }
    s
}

/// Forces, energy and virial of one pair potential at the start of a run.
fn at_start(force: &str, precision: &str, s: Snapshot, device: DeviceChoice) -> (Vec<f64>, Sums) {
    let text = format!(
        "(precision: {precision}, neighbors: (buffer: 0.3), forces: [{force}], integrators: [VelocityVerlet()], stages: [(steps: 1, dt: 1e-9)])"
    );
    let mut b = started(&text, s, device);
    let sums = b.sums().expect("sums").components[0];
    let facts = b.facts().clone();
    let wants = Wants { forces: true, ..Wants::default() };
    let c = galamost_engine::backend::columns(&mut *b, &facts, wants).expect("columns");
    let Values::Real(f) = &c.arrays["force"].values else { panic!("not real") };
    (f.clone(), sums)
}

/// `tests/triclinic.rs` compares the built-in potentials with sums over images; formulas have their own CPU loop.
#[test]
fn pairs_in_triclinic_boxes_are_the_built_in_ones() {
    let lj = pairs(["epsilon: 1.0, sigma: 1.0", "epsilon: 0.5, sigma: 0.95", "epsilon: 1.3, sigma: 0.9, r_cut: 1.5"]);
    let soft = pairs(["alpha: 20.0", "alpha: 15.0", "alpha: 25.0, r_cut: 1.5"]);
    let cases = [
        ("PairExpression(energy: \"alpha*(1 - r/r_cut)^2\", ", "HarmonicRepulsion(", "", &soft),
        (
            "PairExpression(energy: \"4*epsilon*((sigma/r)^12 - (sigma/r)^6)\", ",
            "LennardJones(",
            "mode: ShiftForce, ",
            &lj,
        ),
    ];
    for tilt in [[0.4, -0.3, 0.25], [-0.9, 0.2, 0.1]] {
        let s = tilted(tilt);
        for device in devices() {
            for (precision, limit) in [("Double", 1e-12), ("Mixed", 1e-5), ("Single", 1e-5)] {
                for (formula, built_in, mode, rows) in &cases {
                    let found = |name: &str| {
                        at_start(&format!("{name}r_cut: 1.6, {mode}{rows})"), precision, s.clone(), device)
                    };
                    let ((f, sums), (truth, expected)) = (found(formula), found(built_in));
                    let largest = |values: &[f64]| values.iter().fold(0.0f64, |m, x| m.max(x.abs()));
                    assert!(largest(&truth) > 0.1, "{built_in}: no force at all");
                    let scale = largest(&expected.virial).max(expected.energy.abs());
                    let errors = [
                        largest_difference(&f, &truth) / largest(&truth),
                        (sums.energy - expected.energy).abs() / scale,
                        largest_difference(&sums.virial, &expected.virial) / scale,
                    ];
                    assert!(errors.iter().all(|e| *e < limit), "{device:?} {precision} {tilt:?} {formula}: {errors:?}");
                }
            }
        }
    }
}

/// Two particles at the distance (0, 1, 0): the tilt factor xy does not change it.
#[test]
#[ignore = "5 seconds"]
fn a_distance_in_a_triclinic_box_is_that_in_space() {
    let mut s = Snapshot { dimensions: 3, box_length: [10.0; 3], tilt: [0.5, 0.0, 0.0], ..Snapshot::default() };
    let a = s.type_id("A");
    s.push(a, [0.0; 3]);
    s.push(a, [0.0, 1.0, 0.0]);
    let force = "PairExpression(energy: \"(2 - r)^2\", r_cut: 2.0, pairs: { (\"A\", \"A\"): () })";
    for device in devices() {
        for (precision, limit) in [("Double", 1e-12), ("Mixed", 1e-5), ("Single", 1e-5)] {
            let (f, sums) = at_start(force, precision, s.clone(), device);
            let far = largest_difference(&f, &[0.0, -2.0, 0.0, 0.0, 2.0, 0.0])
                .max((sums.energy - 1.0).abs())
                .max(largest_difference(&sums.virial, &[0.0, 0.0, 0.0, 2.0, 0.0, 0.0]));
            assert!(far < limit, "{device:?} {precision}: {f:?} {sums:?}");
        }
    }
}

#[test]
fn links_agree_with_the_built_in_ones() {
    let cases = [
        (
            "BondExpression(energy: \"k*(r - r0)^2\", bonds: { \"A-A\": (k: 2.0, r0: 0.0), \"A-B\": (k: 2.0, r0: 1.0), \"B-B\": (k: 30.0, r0: 0.9) })",
            "HarmonicBond(bonds: { \"A-A\": (k: 2.0, r0: 0.0), \"A-B\": (k: 2.0, r0: 1.0), \"B-B\": (k: 30.0, r0: 0.9) })",
        ),
        (
            "AngleExpression(energy: \"k*(theta - t0*pi/180)^2\", angles: { \"A-A-A\": (k: 5.0, t0: 180.0), \"A-A-B\": (k: 4.0, t0: 120.0), \"A-B-B\": (k: 3.0, t0: 109.5), \"B-B-B\": (k: 2.0, t0: 90.0) })",
            "HarmonicAngle(angles: { \"A-A-A\": (k: 5.0, theta0_deg: 180.0), \"A-A-B\": (k: 4.0, theta0_deg: 120.0), \"A-B-B\": (k: 3.0, theta0_deg: 109.5), \"B-B-B\": (k: 2.0, theta0_deg: 90.0) })",
        ),
        (
            "DihedralExpression(energy: \"k*wrap(phi - p0*pi/180)^2\", dihedrals: { \"A-A-A-A\": (k: 1.0, p0: 150.0), \"A-A-A-B\": (k: 2.0, p0: -170.0), \"A-A-B-B\": (k: 0.5, p0: 0.0), \"A-B-B-B\": (k: 1.5, p0: 35.0), \"B-B-B-B\": (k: 1.0, p0: 180.0) })",
            "HarmonicDihedral(dihedrals: { \"A-A-A-A\": (k: 1.0, phi0_deg: 150.0), \"A-A-A-B\": (k: 2.0, phi0_deg: -170.0), \"A-A-B-B\": (k: 0.5, phi0_deg: 0.0), \"A-B-B-B\": (k: 1.5, phi0_deg: 35.0), \"B-B-B-B\": (k: 1.0, phi0_deg: 180.0) })",
        ),
        (
            "ImproperExpression(energy: \"k*wrap(phi - p0*pi/180)^2\", impropers: { \"A-A-A-A\": (k: 1.0, p0: 150.0), \"A-A-A-B\": (k: 2.0, p0: -170.0), \"A-A-B-B\": (k: 0.5, p0: 0.0), \"A-B-B-B\": (k: 1.5, p0: 35.0), \"B-B-B-B\": (k: 1.0, p0: 180.0) })",
            "HarmonicImproper(impropers: { \"A-A-A-A\": (k: 1.0, phi0_deg: 150.0), \"A-A-A-B\": (k: 2.0, phi0_deg: -170.0), \"A-A-B-B\": (k: 0.5, phi0_deg: 0.0), \"A-B-B-B\": (k: 1.5, phi0_deg: 35.0), \"B-B-B-B\": (k: 1.0, phi0_deg: 180.0) })",
        ),
    ];
    for (formula, built_in) in cases {
        same(formula, built_in, &standard_system(), DeviceChoice::Cpu);
    }
    let cases = [
        // the same potential, once by theta and once by its cosine and sine alone
        (
            "AngleExpression(energy: \"k*(1 - cos(theta)*cos(t0) - sin(theta)*sin(t0))\", angles: { \"A-A-A\": (k: 3.0, t0: 2.0) })",
            "AngleExpression(energy: \"k*(1 - cos(theta - t0))\", angles: { \"A-A-A\": (k: 3.0, t0: 2.0) })",
        ),
        (
            "AngleExpression(energy: \"k*(cos(theta) - cos(t0*pi/180))^2\", angles: { \"A-A-A\": (k: 3.0, t0: 120.0) })",
            "CosineSquaredAngle(angles: { \"A-A-A\": (k: 3.0, theta0_deg: 120.0) })",
        ),
        (
            "DihedralExpression(energy: \"k*(1 + cos(3*phi - d*pi/180))\", dihedrals: { \"A-A-A-A\": (k: 0.7, d: 40.0) })",
            "PeriodicDihedral(dihedrals: { \"A-A-A-A\": (k: 0.7, n: 3, delta_deg: 40.0) })",
        ),
        (
            "DihedralExpression(energy: \"(k1*(1 + cos(phi)) + k2*(1 - 2*cos(phi)^2 + 1) + k3*(1 + 4*cos(phi)^3 - 3*cos(phi)))/2\", dihedrals: { \"A-A-A-A\": (k1: 1.1, k2: 0.6, k3: 0.4) })",
            "OplsDihedral(dihedrals: { \"A-A-A-A\": (k1: 1.1, k2: 0.6, k3: 0.4, k4: 0.0) })",
        ),
        (
            "ExternalExpression(energy: \"k*z^2\", parameters: (k: 0.7))",
            "ExternalExpression(energy: \"k*z*z + 0*x*y\", parameters: (k: 0.7), group: Tags(first: 0, last: 999))",
        ),
    ];
    for (formula, built_in) in cases {
        same(formula, built_in, &one_type(), DeviceChoice::Cpu);
    }
}

/// An external field against its formula, by particle.
#[test]
fn a_field_acts_only_on_its_group() {
    let s = standard_system();
    let force = "ExternalExpression(energy: \"k*x^2 + a*sin(2*pi*y/Ly)\", parameters: (k: 0.5, a: 2.0), group: GROUP)";
    let kinds = s.type_id.clone();
    let groups: [(&str, &dyn Fn(usize) -> bool); 3] = [
        ("All", &|_| true),
        ("Types([\"B\"])", &|tag| kinds[tag] == 1),
        ("Tags(first: 10, last: 500)", &|tag| (10..=500).contains(&tag)),
    ];
    let mut devices = vec![DeviceChoice::Cpu];
    if has_compiler() {
        devices.push(DeviceChoice::Emulated);
    }
    let wave = std::f64::consts::TAU / s.box_length[1];
    for device in devices {
        for (name, member) in &groups {
            let (f, sums) = forces(&force.replace("GROUP", name), s.clone(), device);
            let mut energy = 0.0;
            for (tag, r) in s.position.iter().enumerate() {
                let inside = if member(tag) { 1.0 } else { 0.0 };
                let truth = [-inside * r[0], -inside * 2.0 * wave * (wave * r[1]).cos(), 0.0];
                energy += inside * (0.5 * r[0] * r[0] + 2.0 * (wave * r[1]).sin());
                let worst = largest_difference(&f[3 * tag..3 * tag + 3], &truth);
                assert!(worst < 1e-13, "{device:?} {name}, tag {tag}: {worst:e}");
            }
            assert!((sums.energy - energy).abs() < 1e-10, "{device:?} {name}: U {} and {energy}", sums.energy);
            assert_eq!(sums.virial, [0.0; 6], "a field has no virial");
        }
    }
}

const ALL: &str = r#"
    PairExpression(energy: "4*eps*((sig/r)^12 - (sig/r)^6) + q*exp(-kappa*r)/r", r_cut: 2.5, mode: ShiftForce, pairs: {
        ("A", "A"): (eps: 1.0, sig: 1.0, q: 0.5, kappa: 1.0), ("A", "B"): (eps: 0.5, sig: 0.95, q: -0.5, kappa: 1.0),
        ("B", "B"): (eps: 1.0, sig: 0.9, q: 0.5, kappa: 1.0) }),
    BondExpression(energy: "k*(r - r0)^2", bonds: { "A-A": (k: 20.0, r0: 1.0), "A-B": (k: 20.0, r0: 1.0), "B-B": (k: 20.0, r0: 0.9) }),
    AngleExpression(energy: "k*(1 + cos(theta))", angles: { "A-A-A": (k: 1.5), "A-A-B": (k: 2.0), "A-B-B": (k: 3.0), "B-B-B": (k: 0.5) }),
    DihedralExpression(energy: "k*(1 + cos(n*phi))", dihedrals: { "A-A-A-A": (k: 1.0, n: 3.0), "A-A-A-B": (k: 0.5, n: 2.0),
        "A-A-B-B": (k: 0.7, n: 1.0), "A-B-B-B": (k: 1.2, n: 1.0), "B-B-B-B": (k: 0.3, n: 3.0) }),
    ExternalExpression(energy: "k*z^2", parameters: (k: 0.2), group: Types(["A"])),"#;

#[test]
#[ignore = "3 seconds"]
fn formulas_move_particles_on_the_device_as_on_the_cpu() {
    if !has_compiler() {
        return;
    }
    for (precision, limit) in [("Double", 1e-10), ("Mixed", 2e-4), ("Single", 2e-4)] {
        let text = format!(
            "(seed: 5, precision: {precision}, neighbors: (buffer: 0.2), forces: [{ALL}], integrators: [NoseHoover(kT: 1.2, tau: 0.5)], \
             stages: [(steps: 60, dt: 0.005)])"
        );
        let mut found = vec![];
        for device in [DeviceChoice::Cpu, DeviceChoice::Emulated] {
            let plan = plan_of(&text, standard_system(), device).unwrap_or_else(|e| panic!("{}", e.render()));
            let (_, mut b) = run_plan(&plan).unwrap_or_else(|e| panic!("{}", e.render()));
            found.push(unwrapped(&mut *b).0);
        }
        let x = largest_difference(&found[0], &found[1]);
        println!("{precision}: positions {x:e}");
        assert!(x < limit, "{precision}: positions {x:e}");
    }
}

/// Runs a pipeline that must fail during the run; returns the message.
fn fails(text: &str, s: Snapshot, device: DeviceChoice) -> String {
    let plan = plan_of(text, s, device).unwrap_or_else(|e| panic!("{}", e.render()));
    match run_plan(&plan) {
        Err(Failure::Run(message, _)) => message,
        Err(e) => panic!("{}", e.render()),
        Ok(_) => panic!("{device:?}: the undefined value was not noticed: {text}"),
    }
}

/// An undefined formula of a bond or a field ends the run, also without any step and for particles at rest.
#[test]
fn an_undefined_value_stops_the_run() {
    const FENE: &str = r#"BondExpression(energy: "-k/2*R^2*ln(1 - (r/R)^2)", bonds: { "*": (k: 30.0, R: 1.5) })"#;
    let mut dimer = Snapshot { dimensions: 3, box_length: [30.0; 3], ..Snapshot::default() };
    let types = [dimer.type_id("A"), dimer.type_id("B")];
    dimer.push(types[0], [0.0; 3]);
    dimer.push(types[1], [1.0, 0.0, 0.0]);
    dimer.bond_types = vec!["X".into()];
    dimer.bonds.push(Link { kind: 0, tags: [0, 1] });
    dimer.velocity[1] = [60.0, 0.0, 0.0];
    let broken = "BondExpression: the bond to particle 1 is longer than its potential allows (particle with tag 0)";
    let (mut long, mut short) = (dimer.clone(), dimer.clone());
    (long.position[1][0], short.position[1][0]) = (1.6, 0.0);
    // the force 1/(1 - x) accelerates particle 1 towards x = 1, which it passes in the third step
    let mut falling = dimer.clone();
    falling.position = vec![[-3.0, 0.0, 0.0], [0.95, 0.0, 0.0]].into();
    falling.velocity[1] = [2.0, 0.0, 0.0];
    falling.bonds.clear();
    let undefined =
        "ExternalExpression: the formula is undefined (NaN) at the position of a particle (particle with tag 1)";
    for device in devices() {
        for precision in ["Single", "Mixed", "Double"] {
            let text = |force: &str, integrator: &str, steps: u64| {
                format!(
                    "(precision: {precision}, forces: [{force}], integrators: [{integrator}], stages: [(steps: {steps}, dt: 0.01)])"
                )
            };
            let stops = |force: &str, integrator: &str, steps: u64, s: &Snapshot, expected: String| {
                let said = fails(&text(force, integrator, steps), s.clone(), device);
                assert!(said.contains(&expected), "{device:?} {precision}: {said} instead of {expected}");
            };
            let (all, first) = ("VelocityVerlet()", "VelocityVerlet(group: Types([\"A\"]))");
            stops(FENE, all, 5, &dimer, format!("step 1: {broken}"));
            stops(FENE, all, 0, &long, format!("step 0: {broken}"));
            // the check knows the length of the bond
            let Err(e) = plan_of(&text(FENE, all, 5), long.clone(), device) else { panic!("the bond is too long") };
            assert!(e.render().contains("which is longer than its potential allows"), "{}", e.render());
            // an infinite force has no direction
            for sign in ["", "-"] {
                let diverging = format!(r#"BondExpression(energy: "{sign}k/r", bonds: {{ "*": (k: 1.0) }})"#);
                stops(&diverging, all, 0, &short, format!("step 0: {broken}"));
                let Err(e) = plan_of(&text(&diverging, all, 5), short.clone(), device) else { panic!("no length") };
                assert!(e.render().contains("at which its potential has no finite force"), "{}", e.render());
            }
            let field = r#"ExternalExpression(energy: "ln(1 - x)")"#;
            stops(field, all, 10, &falling, format!("step 3: {undefined}"));
            // undefined everywhere, for one particle at rest
            let field = r#"ExternalExpression(energy: "ln(-1 - x^2)", group: Types(["B"]))"#;
            for steps in [0, 5] {
                stops(field, first, steps, &falling, format!("step 0: {undefined}"));
            }
        }
    }
}

/// A parameter as exponent needs a nonnegative base, whatever its value; the error says so.
#[test]
fn an_undefined_power_of_a_parameter_is_explained() {
    let mut s = Snapshot { dimensions: 3, box_length: [30.0; 3], ..Snapshot::default() };
    let a = s.type_id("A");
    s.push(a, [-3.0, 0.0, 0.0]);
    let text = |field: &str| {
        let field = format!("ExternalExpression(energy: {field})");
        format!("(forces: [{field}], integrators: [VelocityVerlet()], stages: [(steps: 1, dt: 0.01)])")
    };
    let undefined = "step 0: ExternalExpression: the formula is undefined (NaN) at the position of a particle";
    let hint = "; a power whose exponent is a parameter needs a nonnegative base";
    let said = fails(&text("\"x^n\", parameters: (n: 3.0)"), s.clone(), DeviceChoice::Cpu);
    assert!(said.contains(&format!("{undefined}{hint}")), "{said}");
    for field in ["\"abs(x)^n + ln(x)\", parameters: (n: 3.0)", "\"x^2.7\""] {
        let said = fails(&text(field), s.clone(), DeviceChoice::Cpu);
        assert!(said.contains(undefined) && !said.contains(hint), "{field}: {said}");
    }
    let plan = plan_of(&text("\"x^3\""), s, DeviceChoice::Cpu).unwrap_or_else(|e| panic!("{}", e.render()));
    assert!(run_plan(&plan).is_ok(), "an integer in the formula");
}

/// Two dimensions know no z.
#[test]
fn a_field_in_two_dimensions_stays_in_the_plane() {
    let text = r#"(precision: Double, initial: [ Lattice(lattice: Square, cells: [12, 12, 1], density: 0.7), Velocities(kT: 0.8) ],
        forces: [ ExternalExpression(energy: "k*(x^2 + y^2)", parameters: (k: 0.5)) ],
        integrators: [ VelocityVerlet() ], stages: [ (steps: 20, dt: 0.005) ])"#;
    let p = plan(text, DeviceChoice::Cpu).unwrap_or_else(|e| panic!("{}", e.render()));
    let mut b = run_plan(&p).unwrap_or_else(|e| panic!("{}", e.render())).1;
    assert!(columns(&mut *b).position.iter().all(|p| p[2] == 0.0));
    let wrong = text.replace("k*(x^2 + y^2)", "k*z^2");
    let Err(e) = plan(&wrong, DeviceChoice::Cpu) else { panic!("there is no z") };
    assert!(e.render().contains("test.ron:2:49: ExternalExpression: the system has two dimensions"), "{}", e.render());
}

/// Steps per second of PairExpression against LennardJones, in turns, on the device of `GALAMOST_TEST_DEVICE`.
#[test]
#[ignore = "a measurement: needs a quiet machine"]
fn speed_against_lennard_jones() {
    let device = std::env::var("GALAMOST_TEST_DEVICE").unwrap_or_else(|_| "cpu".into());
    let device = DeviceChoice::parse(&device).expect("a device");
    let sizes: &[u32] = if device == DeviceChoice::Cpu { &[20] } else { &[20, 40, 80] };
    let forces = [
        "LennardJones(r_cut: 3.0, pairs: {PAIRS})",
        "PairExpression(energy: \"4*epsilon*((sigma/r)^12 - (sigma/r)^6)\", r_cut: 3.0, pairs: {PAIRS})",
    ];
    for precision in ["Mixed", "Double"] {
        for types in [1, 2] {
            for side in sizes {
                let row = "(epsilon: 1.0, sigma: 1.0)";
                let (rows, kinds) = if types == 1 {
                    (format!("(\"A\", \"A\"): {row}"), "")
                } else {
                    (
                        format!("(\"A\", \"A\"): {row}, (\"A\", \"B\"): {row}, (\"B\", \"B\"): {row}"),
                        ", types: {\"A\": 0.5, \"B\": 0.5}",
                    )
                };
                let mut systems: Vec<(Box<dyn Backend>, Vec<f64>)> = vec![];
                let stop = AtomicBool::new(false);
                for force in forces {
                    let text = format!(
                        "(seed: 1, precision: {precision}, initial: [Lattice(lattice: Sc, cells: [{side}, {side}, {side}], density: 0.381972{kinds}), Velocities(kT: 1.2)], \
                         forces: [{}], integrators: [NoseHoover(kT: 1.2, tau: 0.5)], stages: [(steps: 1, dt: 0.005)])",
                        force.replace("PAIRS", &rows)
                    );
                    let plan = plan(&text, device).unwrap_or_else(|e| panic!("{}", e.render()));
                    let mut b = backend(&plan);
                    b.begin_stage(&plan.stages[0], false).expect("a run");
                    b.advance(200, Wanted::FORCE, &stop).expect("a run");
                    systems.push((b, vec![]));
                }
                let steps = if device == DeviceChoice::Cpu { 200 } else { 2000 };
                for _ in 0..5 {
                    for (b, rates) in &mut systems {
                        let start = Instant::now();
                        b.advance(steps, Wanted::FORCE, &stop).expect("a run");
                        rates.push(steps as f64 / start.elapsed().as_secs_f64());
                    }
                }
                let best: Vec<f64> = systems.iter().map(|(_, r)| r.iter().copied().fold(0.0, f64::max)).collect();
                println!(
                    "{precision}, {types} types, N {}: LennardJones {:.0} TPS, PairExpression {:.0} TPS, ratio of times {:.2}",
                    side.pow(3),
                    best[0],
                    best[1],
                    best[0] / best[1]
                );
                assert!(best[0] / best[1] < 3.0);
            }
        }
    }
}
