//! The message of an unstable run names the force that moved a particle too far.

use super::LJ;
use galamost_engine::diagnostic::Failure;
use galamost_engine::pipeline::DeviceChoice;
use galamost_plugin_api::snapshot::{Link, Snapshot};
use galamost_tests::{devices, plan_of, run_plan};

/// Number of particles that are far from each other.
const LONELY: u32 = 8;

/// A chain of four particles with angles of 100° and a dihedral angle of 70°, after others that are far away.
fn chain() -> Snapshot {
    let mut s = Snapshot { dimensions: 3, box_length: [30.0; 3], ..Snapshot::default() };
    let a = s.type_id("A");
    for i in 0..LONELY {
        let place = [i % 10, i / 10 % 10, i / 100].map(f64::from);
        s.push(a, [3.0 * place[0] - 13.5, 3.0 * place[1] - 13.5, 2.0 * place[2] + 4.0]);
        s.velocity[i as usize] = [0.1, 0.2, 0.01 * place[0]];
    }
    let (theta, phi) = (100f64.to_radians(), 70f64.to_radians());
    let (along, aside) = (-1.2 * theta.cos(), 1.2 * theta.sin());
    for x in [[-along, aside, 0.0], [0.0; 3], [1.2, 0.0, 0.0], [1.2 + along, aside * phi.cos(), aside * phi.sin()]] {
        s.push(a, x);
    }
    for names in [&mut s.angle_types, &mut s.dihedral_types, &mut s.improper_types] {
        names.push("X".into());
    }
    s.angles.push(Link { kind: 0, tags: [LONELY, LONELY + 1, LONELY + 2] });
    s.dihedrals.push(Link { kind: 0, tags: [LONELY, LONELY + 1, LONELY + 2, LONELY + 3] });
    s.impropers.push(Link { kind: 0, tags: [LONELY, LONELY + 1, LONELY + 2, LONELY + 3] });
    s
}

/// Returns the message of a run that must fail, and its notes.
fn failure(text: &str, s: Snapshot, device: DeviceChoice) -> (String, String) {
    let plan = plan_of(text, s, device).unwrap_or_else(|e| panic!("{}", e.render()));
    match run_plan(&plan) {
        Err(Failure::Run(message, notes)) => (message, notes.join("\n")),
        Err(e) => panic!("{}", e.render()),
        Ok(_) => panic!("{device:?}: nothing was noticed: {text}"),
    }
}

/// A potential (q − q₀)^1.5 pulls q to q₀, behind which it is undefined. A thermostat spreads the NaN to all particles in the same
/// step, and a force that depends on velocities to its neighbors.
#[test]
fn an_undefined_formula_is_named() {
    let formulas = [
        ("PairExpression", r#"energy: "9*(r - 1.15)^1.5", r_cut: 1.3, pairs: { ("A", "A"): () }"#),
        ("AngleExpression", r#"energy: "9*(theta - 1.7)^1.5", angles: { "X": () }"#),
        ("DihedralExpression", r#"energy: "9*(abs(phi) - 1.2)^1.5", dihedrals: { "X": () }"#),
        ("ImproperExpression", r#"energy: "9*(abs(phi) - 1.2)^1.5", impropers: { "X": () }"#),
    ];
    let dpd = r#"Dpd(kT: 0.1, r_cut: 1.5, pairs: { ("A", "A"): (a: 1.0, gamma: 1.0) })"#;
    for device in devices() {
        for precision in ["Mixed", "Double"] {
            for (name, formula) in formulas {
                let text = format!(
                    "(precision: {precision}, forces: [{LJ}, {name}({formula}), {dpd}], \
                     integrators: [NoseHoover(kT: 0.1, tau: 0.5)], stages: [(steps: 2000, dt: 0.005)])"
                );
                let (message, notes) = failure(&text, chain(), device);
                println!("{device:?} {precision}: {message}\n    {notes}");
                let of_chain = (LONELY..LONELY + 4).any(|tag| {
                    notes == format!("the force of {name} on the particle with tag {tag} is NaN or infinite")
                });
                assert!(of_chain, "{device:?} {precision}: {message}: {notes}");
            }
        }
    }
}

/// Of several forces, the one that is too large is named, with its size.
#[test]
fn the_largest_force_on_an_overlap_is_named() {
    let harmonic = r#"HarmonicAngle(angles: { "X": (k: 10.0, theta0_deg: 100.0) })"#;
    let mut s = chain();
    s.position[7] = s.position[6];
    s.position[7][0] += 1e-3;
    for device in devices() {
        let text = format!(
            "(precision: Double, forces: [{harmonic}, {LJ}], integrators: [VelocityVerlet()], stages: [(steps: 9, dt: 0.005)])"
        );
        let (message, notes) = failure(&text, s.clone(), device);
        println!("{device:?}: {message}\n    {notes}");
        assert!(message.contains("tag 6") && message.contains("VelocityVerlet"), "{message}");
        let expected = "the largest force on the particle with tag 6 is that of LennardJones, ";
        assert!(notes.starts_with(expected), "{notes}");
        if device == DeviceChoice::Cpu {
            // 48 (σ/r)¹³ at r = 10⁻³
            assert_eq!(&notes[expected.len()..], "4.80e40");
        }
    }
}

/// A particle that is too fast, on which no large force acts.
#[test]
fn no_force_is_named_without_need() {
    let mut s = chain();
    s.velocity[3] = [1e6, 0.0, 0.0];
    for device in devices() {
        let text = format!(
            "(precision: Mixed, forces: [{LJ}], integrators: [VelocityVerlet()], stages: [(steps: 9, dt: 0.005)])"
        );
        let (message, notes) = failure(&text, s.clone(), device);
        assert!(message.contains("tag 3") && notes.is_empty(), "{message}: {notes}");
    }
}

/// The factor of a half step would be 0: particles would stop for ever, and the run would continue.
#[test]
fn a_thermostat_that_would_stop_all_particles_ends_the_run() {
    let integrators = [
        "NoseHoover(kT: 1.0, tau: 0.5)",
        "NoseHooverChain(kT: 1.0, tau: 0.5)",
        "MtkNpt(kT: 1.0, tau: 0.5, pressure: 1.0, tau_p: 2.0)",
    ];
    for device in devices() {
        for integrator in integrators {
            let text = format!("(forces: [{LJ}], integrators: [{integrator}], stages: [(steps: 2, dt: 0.005)])");
            let mut s = chain();
            s.velocity.iter_mut().flatten().for_each(|v| *v *= 1e7);
            let (message, _) = failure(&text, s, device);
            let name = integrator.split('(').next().unwrap_or_default();
            // particles would move by NaN, or the box would
            let undefined = message.contains("or by NaN") || message.contains("or NaN");
            assert!(message.starts_with(&format!("step 0: {name}: ")) && undefined, "{device:?}: {message}");
        }
    }
}

/// The force on a particle is undefined in the last step only: no later step would notice its velocity.
#[test]
fn an_undefined_force_in_the_last_step_is_noticed() {
    for device in devices() {
        // the pair is at 1.2 at the start and flies apart; behind 1.25 the formula is undefined
        let text = format!(
            "(forces: [PairExpression(energy: \"sqrt(1.25 - r)\", r_cut: 2.0, pairs: {{ (\"A\", \"A\"): () }})], \
             integrators: [VelocityVerlet()], checkpoint: (every: 1_000, file: {:?}), stages: [(steps: STEPS, dt: 0.01)])",
            galamost_tests::output().join(format!("undefined-{device:?}.checkpoint"))
        );
        let mut s = Snapshot { dimensions: 3, box_length: [10.0; 3], ..Snapshot::default() };
        let a = s.type_id("A");
        for (x, v) in [(0.0, -1.0), (1.2, 1.0), (4.0, 0.1)] {
            s.push(a, [x - 4.0, 0.0, 0.0]);
            s.velocity[s.position.len() - 1] = [v, 0.0, 0.0];
        }
        let defined =
            plan_of(&text.replace("STEPS", "1"), s.clone(), device).unwrap_or_else(|e| panic!("{}", e.render()));
        run_plan(&defined).unwrap_or_else(|e| panic!("{}", e.render()));
        let last = (2..9).find(|steps| {
            let text = text.replace("STEPS", &steps.to_string());
            let plan = plan_of(&text, s.clone(), device).unwrap_or_else(|e| panic!("{}", e.render()));
            matches!(run_plan(&plan), Err(Failure::Run(..)))
        });
        let (message, notes) = failure(&text.replace("STEPS", &last.unwrap_or(8).to_string()), s, device);
        assert!(message.contains("the velocity of a particle is NaN or infinite"), "{device:?}: {message}");
        assert!(message.contains("(particle with tag 0)"), "{device:?}: {message}");
        assert!(notes.contains("PairExpression on the particle with tag 0 is NaN"), "{device:?}: {notes}");
    }
}
