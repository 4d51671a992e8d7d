//! Forces with their own kernels and updaters, through the fixture plugin, on the CPU and the emulated device.

use galamost::selftest::standard_system;
use galamost_engine::pipeline::DeviceChoice;
use galamost_plugin_api::snapshot::{Link, Snapshot};
use galamost_tests::{columns, devices, has_compiler, largest_difference, plan_of, run_plan, unwrapped};

/// The standard system with a bond only between tags 2k and 2k + 1 of its first hundred, all of one type.
fn loose() -> Snapshot {
    let mut s = standard_system();
    s.bond_types = vec!["X".into()];
    s.bonds = (0..50).map(|k| Link { kind: 0, tags: [2 * k, 2 * k + 1] }).collect();
    s
}

#[test]
fn a_force_with_its_own_kernel() {
    let text = "(precision: Double, forces: [HarmonicTrap(k: 3.0)], integrators: [VelocityVerlet()], stages: [(steps: 50, dt: 0.01)])";
    let mut found = vec![];
    for device in devices() {
        let plan = plan_of(text, standard_system(), device).unwrap_or_else(|e| panic!("{}", e.render()));
        let (_, mut b) = run_plan(&plan).unwrap_or_else(|e| panic!("{}", e.render()));
        found.push(unwrapped(&mut *b).0);
    }
    // one particle of the trap against the exact recursion of velocity-Verlet: z'' = −2k z/m
    let s = standard_system();
    for tag in [0usize, 500] {
        let (mut z, mut v, w) = (s.position[tag][2], s.velocity[tag][2], 6.0 / s.mass[tag]);
        for _ in 0..50 {
            v -= 0.005 * w * z;
            z += 0.01 * v;
            v -= 0.005 * w * z;
        }
        assert!((found[0][3 * tag + 2] - z).abs() < 1e-12, "{} and {z}", found[0][3 * tag + 2]);
    }
    for other in &found[1..] {
        assert!(largest_difference(&found[0], other) < 1e-12);
    }
}

#[test]
fn an_updater_makes_and_breaks_bonds_on_the_device() {
    let text = r#"(precision: Double, neighbors: (exclude: [Bonds]),
        forces: [ HarmonicBond(bonds: {"X": (k: 5.0, r0: 1.0)}),
                  LennardJones(r_cut: 2.0, pairs: { ("A", "A"): (epsilon: 1.0, sigma: 0.8), ("A", "B"): (epsilon: 1.0, sigma: 0.8), ("B", "B"): (epsilon: 1.0, sigma: 0.8) }) ],
        integrators: [ VelocityVerlet() ], updaters: [ PairUp(every: 10, r: 1.2, broken: 6) ], stages: [ (steps: 55, dt: 0.002) ])"#;
    let mut found = vec![];
    for device in devices() {
        let plan = plan_of(text, loose(), device).unwrap_or_else(|e| panic!("{}", e.render()));
        let (_, mut b) = run_plan(&plan).unwrap_or_else(|e| panic!("{}", e.render()));
        let mut bonds: Vec<[u32; 2]> = columns(&mut *b).bonds.iter().map(|l| l.tags).collect();
        bonds.sort_unstable();
        found.push((bonds, unwrapped(&mut *b).0));
    }
    let bonds = &found[0].0;
    assert!(bonds.len() > 150, "{} bonds: too few were made", bonds.len());
    assert!(bonds.iter().flatten().all(|t| t % 6 != 0), "a bond that must be broken exists");
    let mut once = bonds.clone();
    once.dedup();
    assert_eq!(once.len(), bonds.len(), "a bond exists twice");
    for other in &found[1..] {
        assert_eq!(&other.0, bonds, "other bonds on the device");
        assert!(largest_difference(&found[0].1, &other.1) < 1e-10);
    }
}

/// An updater whose search is queued behind the steps gathers from all ranks: on one GPU, on three, and on the CPU.
#[test]
#[ignore = "3 seconds"]
fn an_updater_that_searches_gathers_from_all_ranks() {
    for device in devices() {
        for gpus in if device == DeviceChoice::Emulated { vec![1, 3] } else { vec![1] } {
            let text = format!(
                "(gpus: {gpus}, updaters: [Census(every: 10)], integrators: [VelocityVerlet()], stages: [(steps: 45, dt: 0.002)])"
            );
            let mut s = loose();
            s.bonds.clear();
            let plan = plan_of(&text, s, device).unwrap_or_else(|e| panic!("{}", e.render()));
            let (_, mut b) = run_plan(&plan).unwrap_or_else(|e| panic!("{gpus} of {device:?}: {}", e.render()));
            let bonds: Vec<[u32; 2]> = columns(&mut *b).bonds.iter().map(|l| l.tags).collect();
            assert_eq!(bonds, [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9]], "{gpus} of {device:?}");
        }
    }
}

#[test]
fn a_component_without_code_for_the_device_is_rejected() {
    for (name, device, kind) in [("CpuOnly", DeviceChoice::Emulated, "CUDA"), ("CudaOnly", DeviceChoice::Cpu, "CPU")] {
        if device == DeviceChoice::Emulated && !has_compiler() {
            continue;
        }
        let text = format!("(forces: [{name}()], integrators: [VelocityVerlet()], stages: [(steps: 1, dt: 0.01)])");
        let Err(e) = plan_of(&text, standard_system(), device) else { panic!("{name} was accepted") };
        assert!(e.render().contains(&format!("{name} has no code for")) && e.render().contains(kind), "{}", e.render());
        assert_eq!(e.exit_code(), 2);
    }
}

/// `ShiftEnergy` and `ShiftForce` subtract values at the cutoff with the current value of a time-dependent parameter.
#[test]
fn shifts_follow_time_dependent_parameters() {
    for mode in ["ShiftEnergy", "ShiftForce"] {
        // both parameters are 2 in the last step
        let timed = "TimedPair(v: Ramp(from: 1.0, to: 2.0, start: 0, steps: 1)";
        for device in devices() {
            let found = [(timed, 0.5), ("TimedPair(v: 2.0", 0.5), ("SoundPair(", 1.0)].map(|(name, a)| {
                let comma = if name.ends_with('(') { "" } else { ", " };
                let text = format!(
                    "(precision: Double, forces: [{name}{comma}r_cut: 2.0, mode: {mode}, pairs: {{ (\"*\", \"*\"): (a: {a:?}) }})], \
                     integrators: [VelocityVerlet()], stages: [(steps: 1, dt: 0.001)])"
                );
                let mut s = standard_system();
                // the ramp begins at 1, so positions must not depend on the first forces
                s.velocity.iter_mut().for_each(|v| *v = [0.0; 3]);
                s.mass.iter_mut().for_each(|m| *m = 1e9);
                let plan = plan_of(&text, s, device).unwrap_or_else(|e| panic!("{}", e.render()));
                let (_, mut b) = run_plan(&plan).unwrap_or_else(|e| panic!("{}", e.render()));
                b.evaluate().expect("energies");
                let energy: f64 = b.sums().expect("sums").components.iter().map(|c| c.energy).sum();
                let force = b.read("force").expect("forces");
                let force: Vec<f64> = force.as_chunks::<8>().0.iter().map(|x| f64::from_ne_bytes(*x)).collect();
                (energy, force)
            });
            for other in &found[..2] {
                let (energy, force) = &found[2];
                // tolerance: sums of doubles in another order; a shift with another parameter changes them by half
                assert!((other.0 - energy).abs() < 1e-6 * energy.abs(), "{mode}: {} instead of {energy}", other.0);
                let far = largest_difference(&other.1, force);
                // tolerance: the same
                assert!(far < 1e-6, "{mode}: forces differ by {far}");
            }
        }
    }
}

#[test]
fn an_updater_must_not_add_a_bond_twice_or_hide_it() {
    let twice =
        "Bonder: a change of topology adds the bond of the particles 200, 203 of type number 0, which exists already";
    let hidden = |name: &str| format!("{name} has requested changes of the topology and set `changed::NOTHING`");
    let mut cases = vec![
        (DeviceChoice::Cpu, "Bonder(every: 10, forgets: false)", twice.to_string()),
        (DeviceChoice::Cpu, "Bonder(every: 10, forgets: true)", hidden("Bonder")),
    ];
    // the queue of the device, too
    cases.extend(devices().into_iter().map(|d| (d, "PairUp(every: 10, r: 1.2, forgets: true)", hidden("PairUp"))));
    for (device, updater, expected) in cases {
        let text =
            format!("(updaters: [{updater}], integrators: [VelocityVerlet()], stages: [(steps: 30, dt: 0.001)])");
        let plan = plan_of(&text, loose(), device).unwrap_or_else(|e| panic!("{}", e.render()));
        let said = run_plan(&plan).err().unwrap_or_else(|| panic!("{updater} on {device:?}")).render();
        assert!(said.contains("step ") && said.contains(&expected), "{said}");
    }
}
