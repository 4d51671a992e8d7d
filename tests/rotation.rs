//! Particles that turn: energy, equipartition, both devices, what files say of orientations.

use galamost::selftest::standard_system;
use galamost_engine::backend::Backend;
use galamost_engine::pipeline::DeviceChoice;
use galamost_plugin_api::snapshot::{Array, Snapshot, Values};
use galamost_tests::tolerances::{below, near};
use galamost_tests::{
    advance, backend, columns, energies, energy_fluctuation, galamost, has_compiler, largest_difference, mean, plan,
    plan_of, run_plan, unwrapped, words,
};

const RODS: &str = r#"SoftRod(pairs: { ("A", "A"): (alpha: 80.0, mu: 0.7, nu: 2.0) })"#;

fn real(s: &Snapshot, name: &str) -> Vec<f64> {
    match s.arrays.get(name).map(|a| &a.values) {
        Some(Values::Real(v)) => v.clone(),
        _ => panic!("no `{name}`"),
    }
}

/// A backend at the start of its first stage.
fn started(text: &str) -> Box<dyn Backend> {
    let plan = plan(text, DeviceChoice::Cpu).unwrap_or_else(|e| panic!("{}", e.render()));
    let mut b = backend(&plan);
    b.begin_stage(&plan.stages[0], false).expect("a stage");
    b
}

/// The system of these tests: 512 particles, three to a unit of volume.
fn pipeline(forces: &str, inertia: &str, integrator: &str, dt: f64) -> String {
    format!(
        "(seed: 4, precision: Double, initial: [Lattice(lattice: Sc, cells: [8, 8, 8], density: 3.0), Velocities(kT: 1.0), \
         Orientations(inertia: {inertia}, kT: 1.0)], forces: [{forces}], integrators: [{integrator}], \
         stages: [(steps: 0, dt: {dt})])"
    )
}

#[test]
#[ignore = "5 seconds"]
fn the_energy_error_of_rotation_is_second_order() {
    for inertia in ["(0.1, 0.1, 0.0)", "(0.05, 0.1, 0.2)"] {
        let width = |dt: f64| {
            let mut b = started(&pipeline(RODS, inertia, "RotationalVerlet()", dt));
            energy_fluctuation(&mut *b, dt) / 512.0
        };
        let (coarse, fine) = (width(0.004), width(0.002));
        println!("{inertia}: {coarse:e}, {fine:e} per particle");
        // the bound only excludes runs that are not stable; the next line tells the order
        assert!(coarse < 1e-3, "{coarse:e}");
        assert!((3.0..5.0).contains(&(coarse / fine)), "{coarse:e} and {fine:e}: not ∝ dt²");
    }
}

/// Quaternions are normalized in every step: their rounding errors do not add up.
#[test]
#[ignore = "3 seconds"]
fn orientations_stay_normalized() {
    let text = pipeline(RODS, "(0.05, 0.1, 0.2)", "RotationalVerlet()", 0.004).replace("Double", "Single");
    let mut b = started(&text);
    advance(&mut *b, 2000);
    let arrays = columns(&mut *b).arrays;
    let Values::Real(q) = &arrays["quaternion"].values else { panic!("integers") };
    let norms = q.as_chunks::<4>().0.iter().map(|q| q.iter().map(|x| x * x).sum::<f64>());
    let worst = norms.map(|n| (n - 1.0).abs()).fold(0.0, f64::max);
    // one normalization in f32 leaves a few units of its last place
    assert!(q.len() == 4 * 512 && worst < 4.0 * f64::from(f32::EPSILON), "{worst:e}");
}

/// The former name `RigidLangevin` gives the same trajectory as `RotationalLangevin`, and a note.
#[test]
fn former_names_of_integrators_are_accepted() {
    let parameters = "(kT: 1.0, gamma: 1.0, gamma_r: 0.5)";
    let text = |name: &str| pipeline(RODS, "(0.1, 0.1, 0.0)", &format!("{name}{parameters}"), 0.002);
    let run = |name: &str| {
        let mut b = started(&text(name));
        advance(&mut *b, 20);
        energies(&mut *b).map(f64::to_bits)
    };
    assert_eq!(run("RigidLangevin"), run("RotationalLangevin"));
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("p.ron"), text("RigidLangevin")).expect("written");
    let out = galamost(folder.path(), &["check", "p.ron", "--device", "cpu"]);
    assert!(out.status.success(), "{}", words(&out));
    let log = words(&out);
    assert!(log.contains("RigidLangevin is now called RotationalLangevin"), "{log}");
}

/// K + U and what thermostats and barostats hold.
fn conserved(b: &mut dyn Backend) -> f64 {
    let reservoir = b.sums().expect("sums").reservoir;
    energies(b).iter().sum::<f64>() + reservoir
}

/// The error of the conserved quantity falls with dt², of thermostats with other times for each kind of motion, and of a
/// box that changes its lengths by themselves.
#[test]
#[ignore = "5 seconds"]
fn rotational_thermostats_conserve_their_quantity() {
    for integrator in [
        "RotationalNoseHoover(kT: 2.0, tau: 0.3, tau_r: 0.15)",
        "RotationalMtkNpt(kT: 2.0, tau: 0.3, tau_r: 0.15, pressure: 40.0, tau_p: 0.5)",
        "RotationalMtkNpt(kT: 2.0, tau: 0.3, tau_r: 0.15, pressure: 40.0, tau_p: 0.5, couple: None, length: 1)",
    ] {
        let error = |dt: f64| {
            let mut b = started(&pipeline(RODS, "(0.1, 0.1, 0.0)", integrator, dt));
            // the lattice melts first
            advance(&mut *b, (0.4 / dt).round() as u64);
            let (first, before) = (conserved(&mut *b), b.sums().expect("sums").reservoir);
            let (mut sum, samples) = (0.0, 50);
            for _ in 0..samples {
                advance(&mut *b, (0.02 / dt).round() as u64);
                sum += (conserved(&mut *b) - first).powi(2);
            }
            let exchanged = b.sums().expect("sums").reservoir - before;
            assert!(exchanged.abs() > 10.0, "{integrator}: the reservoir changed by {exchanged}");
            (sum / f64::from(samples)).sqrt()
        };
        let (coarse, fine) = (error(0.004), error(0.002));
        println!("{integrator}: {coarse:e}, {fine:e}");
        assert!(coarse < 1.0 && (2.5..6.0).contains(&(coarse / fine)), "{integrator}: {coarse:e} and {fine:e}");
    }
}

/// Free particles: both temperatures go to the target as (kT − kT_0)(1 − dt/τ)ⁿ, each with its own τ.
#[test]
fn berendsen_couples_translation_and_rotation_separately() {
    let text = "(seed: 4, precision: Double, initial: [Lattice(lattice: Sc, cells: [8, 8, 8], density: 3.0), \
                Velocities(kT: 1.0), Orientations(inertia: (0.2, 0.2, 0.3), kT: 4.0)], \
                integrators: [RotationalBerendsen(kT: 2.0, tau: 0.5, tau_r: 0.1)], stages: [(steps: 0, dt: 0.01)])";
    let mut b = started(text);
    let temperatures = |b: &mut dyn Backend| {
        let [t, r, _] = energies(b);
        [2.0 * t / (3.0 * 511.0), 2.0 * r / (3.0 * 512.0)]
    };
    let (first, total) = (temperatures(&mut *b), conserved(&mut *b));
    for n in 1..=3 {
        advance(&mut *b, 20);
        let now = temperatures(&mut *b);
        for (k, tau) in [0.5f64, 0.1].into_iter().enumerate() {
            let expected = 2.0 + (first[k] - 2.0) * (1.0 - 0.01 / tau).powi(20 * n);
            assert!((now[k] / expected - 1.0).abs() < 1e-10, "{} not {expected} after {} steps", now[k], 20 * n);
        }
        assert!((conserved(&mut *b) / total - 1.0).abs() < 1e-12);
    }
}

/// Mean temperatures of both motions, and the variance of the rotational energy, of 1,500 states of a Janus liquid.
fn equipartition_and_distribution(inertia: &str, degrees: f64, integrator: &str) {
    let janus = r#"Janus(pairs: { ("A", "A"): (alpha_r: 396.0, alpha_a: 132.0, beta_deg: 90.0, nu: 2.0) })"#;
    let mut b = started(&pipeline(janus, inertia, integrator, 0.001));
    advance(&mut *b, 2000);
    let (mut translation, mut rotation) = (vec![], vec![]);
    for _ in 0..1500 {
        advance(&mut *b, 100);
        let [t, r, _] = energies(&mut *b);
        translation.push(2.0 * t / (3.0 * 512.0));
        rotation.push(2.0 * r / (degrees * 512.0));
    }
    let (t, r) = (mean(&translation), mean(&rotation));
    let g = degrees * 512.0;
    let variance = rotation.iter().map(|x| (x - r).powi(2)).sum::<f64>() / 1500.0;
    println!("{integrator}, {inertia}: kT {t:.4}, rotation {r:.4}, g var/2 {:.3}", variance * g / 2.0);
    [t - 1.0, r / t - 1.0].into_iter().for_each(|d| below("rotors: kT", d));
    // var K = g kT²/2
    near("variance of the rotational kinetic energy", variance * g / 2.0);
}

// one test for each system: each takes minutes on one thread, and validation runs them side by side

#[test]
#[ignore = "minutes"]
fn equipartition_of_linear_bodies() {
    equipartition_and_distribution("(0.1, 0.1, 0.0)", 2.0, "RotationalLangevin(kT: 1.0, gamma: 5.0, gamma_r: 1.0)");
}

#[test]
#[ignore = "minutes"]
fn equipartition_of_bodies_with_three_moments() {
    equipartition_and_distribution("(0.05, 0.1, 0.2)", 3.0, "RotationalLangevin(kT: 1.0, gamma: 5.0, gamma_r: 1.0)");
}

#[test]
#[ignore = "minutes"]
fn equipartition_under_a_deterministic_thermostat() {
    equipartition_and_distribution("(0.1, 0.1, 0.0)", 2.0, "RotationalNoseHoover(kT: 1.0, tau: 0.2, tau_r: 0.2)");
}

#[test]
#[ignore = "10 seconds"]
fn particles_rotate_on_the_device_as_on_the_cpu() {
    if !has_compiler() {
        return;
    }
    let janus = r#"Janus(pairs: { ("A", "A"): (alpha_r: 39.6, alpha_a: 13.2, beta_deg: 90.0, nu: 2.0),
        ("A", "B"): (alpha_r: 39.6, alpha_a: 0.0, beta_deg: 90.0), ("B", "B"): (alpha_r: 39.6, alpha_a: 8.8, beta_deg: 60.0, nu: 3.0) })"#;
    let lj = r#"LennardJones(r_cut: 2.5, mode: ShiftForce, pairs: { ("A", "A"): (epsilon: 1.0, sigma: 1.0),
        ("A", "B"): (epsilon: 0.5, sigma: 0.95), ("B", "B"): (epsilon: 1.0, sigma: 0.9) })"#;
    // beside another pair in the fused loop; with groups; the first stage has no oriented pair: torques are 0
    let pairs = [
        "RotationalLangevin(kT: 1.0, gamma: 1.0, gamma_r: 0.5, group: Types([\"A\"])), RotationalVerlet(group: Types([\"B\"]))",
        "RotationalBerendsen(kT: 1.0, tau: 0.1, tau_r: 0.2, group: Types([\"A\"])), \
         RotationalNoseHoover(kT: 1.0, tau: 0.2, tau_r: 0.1, group: Types([\"B\"]))",
        "RotationalMtkNpt(kT: 1.0, tau: 0.2, tau_r: 0.1, pressure: 5.0, tau_p: 0.3, couple: None)",
    ];
    for (integrators, precision, limit) in [
        (pairs[0], "Double", 1e-10),
        (pairs[0], "Mixed", 2e-4),
        (pairs[1], "Single", 2e-4),
        (pairs[2], "Double", 1e-10),
    ] {
        let text = format!(
            "(seed: 5, precision: {precision}, neighbors: (buffer: 0.2), forces: [{lj}, {janus}], \
             integrators: [{integrators}], \
             stages: [(steps: 20, dt: 0.002, forces: [{lj}]), (steps: 40, dt: 0.002)])"
        );
        let turned = |device| {
            let plan = plan_of(&text, standard_system(), device).unwrap_or_else(|e| panic!("{}", e.render()));
            let (_, mut b) = run_plan(&plan).unwrap_or_else(|e| panic!("{}", e.render()));
            let arrays = columns(&mut *b).arrays;
            let of = |name: &str| match &arrays[name].values {
                Values::Real(v) => v.clone(),
                Values::Int(_) => panic!("{name}"),
            };
            (unwrapped(&mut *b).0, [of("quaternion"), of("angular_momentum")].concat(), energies(&mut *b)[1])
        };
        let (cpu, device) = (turned(DeviceChoice::Cpu), turned(DeviceChoice::Emulated));
        let (x, q) = (largest_difference(&cpu.0, &device.0), largest_difference(&cpu.1, &device.1));
        println!("{integrators}, {precision}: positions {x:e}, rotation {q:e}, energy {}", cpu.2);
        assert!(x < limit && q < 10.0 * limit, "{integrators}, {precision}: positions {x:e}, rotation {q:e}");
        // positions and rotations agree to `limit` times ten, energies are quadratic in them
        assert!(cpu.2 > 100.0 && (cpu.2 / device.2 - 1.0).abs() < 1e-3, "rotational energy {} and {}", cpu.2, device.2);
    }
}

#[test]
fn orientations_and_angular_velocities_of_a_file_round_trip() {
    let mut s = standard_system();
    let q = real(&s, "quaternion");
    s.arrays.retain(|name, _| name != "quaternion" && name != "angular_momentum");
    let axes: Vec<f64> =
        q.as_chunks::<4>().0.iter().flat_map(|[x, y, _, _]| [x.cos() * y.sin(), x.sin() * y.sin(), y.cos()]).collect();
    // rates across the axes: about them these rods do not turn
    let rates = axes.as_chunks::<3>().0.iter().flat_map(|[x, y, z]| [y - z, z - x, x - y]).collect::<Vec<f64>>();
    let mut put = |name: &str, v: &[f64]| {
        s.arrays.insert(name.into(), Array { width: 3, values: Values::Real(v.to_vec()) });
    };
    put("orientation", &axes);
    put("rotation", &rates);
    put("inert", &[0.2, 0.2, 0.0].repeat(1000));
    let text = "(precision: Double, integrators: [RotationalVerlet()], stages: [(steps: STEPS, dt: 0.01)])";
    let after = |steps: &str| {
        let plan = plan_of(&text.replace("STEPS", steps), s.clone(), DeviceChoice::Cpu)
            .unwrap_or_else(|e| panic!("{}", e.render()));
        columns(&mut *run_plan(&plan).unwrap_or_else(|e| panic!("{}", e.render())).1).arrays
    };
    let array = |name: &str, arrays: &std::collections::BTreeMap<String, Array>| match &arrays[name].values {
        Values::Real(v) => v.clone(),
        Values::Int(_) => panic!("{name}"),
    };
    let now = after("0");
    assert!(largest_difference(&array("orientation", &now), &axes) < 1e-14);
    assert!(largest_difference(&array("rotation", &now), &rates) < 1e-13);
    // free rods: the rates stay, the axes turn by |ω| t
    let later = after("50");
    assert!(largest_difference(&array("rotation", &later), &rates) < 1e-12);
    for ((n, m), w) in axes
        .as_chunks::<3>()
        .0
        .iter()
        .zip(array("orientation", &later).as_chunks::<3>().0)
        .zip(rates.as_chunks::<3>().0)
    {
        let dot: f64 = n.iter().zip(m).map(|(a, b)| a * b).sum();
        let angle = 0.5 * w.iter().map(|x| x * x).sum::<f64>().sqrt();
        assert!((dot - angle.cos()).abs() < 1e-12, "turned by {} not {angle}", dot.acos());
    }
}

#[test]
fn missing_orientations_are_reported() {
    let mut s = standard_system();
    s.arrays.clear();
    let told = |forces: &str, integrator: &str| {
        let text = format!("(forces: [{forces}],\n integrators: [{integrator}], stages: [(steps: 1, dt: 0.01)])");
        match plan_of(&text, s.clone(), DeviceChoice::Cpu) {
            Ok(_) => panic!("{text} was taken"),
            Err(e) => e.render(),
        }
    };
    let rods = r#"SoftRod(pairs: { ("A", "A"): (alpha: 80.0, mu: 0.7), ("A", "B"): (alpha: 80.0, mu: 0.7), ("B", "B"): (alpha: 80.0, mu: 0.7) })"#;
    let no = told(rods, "VelocityVerlet()");
    assert!(no.contains("SoftRod: particles have no `quaternion`"), "{no}");
    let no = told("", "RotationalVerlet()");
    assert!(no.contains("test.ron:2:16: RotationalVerlet: propagates orientations, but particles have no"), "{no}");
    let text = format!("(forces: [{rods}], integrators: [RotationalVerlet()], stages: [(steps: 1, dt: 0.01)])");
    let mut flat = standard_system();
    if let Some(Values::Real(q)) = flat.arrays.get_mut("quaternion").map(|a| &mut a.values) {
        q[40..44].fill(0.0);
        q[80..84].iter_mut().for_each(|x| *x *= 2.0);
    }
    match plan_of(&text, flat, DeviceChoice::Cpu) {
        Ok(_) => panic!("a quaternion without length was taken"),
        Err(e) => {
            assert!(e.render().contains("no length for 1 of 1000 particles; the first has tag 10"), "{}", e.render())
        }
    }
    let disks = rods.replace("SoftRod", "SoftDisk").replacen("mu: 0.7", "mu: 0.7, nu: 3.0", 1);
    assert!(told(&disks, "VelocityVerlet()").contains("disks need an even integer"), "{}", told(&disks, ""));
}

/// `kT_rotational` counts the particles that an integrator turns: half of them are turned by a thermostat, the others rest.
#[test]
#[ignore = "3 seconds"]
fn the_rotational_temperature_is_that_of_turned_particles() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = |others: &str| {
        format!(
            r#"(seed: 1, initial: [RandomPositions(count: 400, box: [9.0, 9.0, 9.0], types: {{ "A": 0.5, "B": 0.5 }}),
                Orientations(inertia: (0.1, 0.1, 0.0)), Velocities(kT: 1.0, group: Types(["A"]))],
            integrators: [RotationalLangevin(kT: 1.0, gamma: 1.0, gamma_r: 1.0, group: Types(["A"])){others}],
            analyzers: [Thermo(every: 100, offset: 500, file: "t.csv")], stages: [(steps: 6000, dt: 0.02)])"#
        )
    };
    for others in ["", r#", Langevin(kT: 1.0, gamma: 1.0, group: Types(["B"]))"#] {
        std::fs::write(folder.path().join("p.ron"), text(others)).expect("written");
        let out = galamost(folder.path(), &["--pipeline", "p.ron", "--device", "cpu", "--overwrite", "-q"]);
        assert!(out.status.success(), "{}", words(&out));
        let kt = mean(&galamost_tests::csv(&folder.path().join("t.csv"))["kT_rotational"]);
        // 56 samples of 400 degrees of freedom; correlated over a few hundred steps, and 0.5 if all particles counted
        assert!((kt - 1.0).abs() < 0.1, "{others}: {kt}");
    }
}

/// A rotation that is NaN ends the run at the next sample, and no checkpoint is written from such a state. The time constant fits the time
/// step of the first stage only.
#[test]
fn undefined_rotations_end_the_run() {
    for outputs in [
        r#"analyzers: [Thermo(every: 5, file: "t.csv")]"#,
        r#"analyzers: [Gsd(every: 5, file: "t.gsd")]"#,
        "checkpoint: (every: 10)",
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let text = format!(
            "(seed: 1, precision: Double, initial: [Lattice(lattice: Sc, cells: [4, 4, 4], density: 0.5), \
             Orientations(inertia: (0.1, 0.1, 0.1), kT: 1.0)], integrators: [RotationalVerlet()], \
             {outputs}, stages: [(steps: 1, dt: 0.001), (steps: 19, dt: 1e160)])"
        );
        std::fs::write(folder.path().join("p.ron"), text).expect("written");
        let out = galamost(folder.path(), &["--pipeline", "p.ron", "--device", "cpu", "-q"]);
        let printed = words(&out);
        assert_eq!(out.status.code(), Some(1), "{outputs}: {printed}");
        assert!(printed.contains("an orientation or angular momentum is NaN or infinite"), "{outputs}: {printed}");
        assert!(!folder.path().join("p.checkpoint").exists(), "{outputs}");
        if outputs.contains("Thermo") {
            assert_eq!(galamost_tests::csv(&folder.path().join("t.csv"))["step"], [0.0]);
        }
    }
}
