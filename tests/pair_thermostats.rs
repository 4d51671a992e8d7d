//! Thermostats of pairs, Lowe-Andersen and Shardlow, against their definition: all pairs in the order of their draws, one
//! after the other.

use galamost::selftest::standard_system;
use galamost_engine::pipeline::DeviceChoice;
use galamost_engine::plan::Plan;
use galamost_plugin_api::philox::{RandomKey, unit_uniform};
use galamost_plugin_api::snapshot::Snapshot;
use galamost_tests::tolerances::{agrees, below, near};
use galamost_tests::{columns, csv, devices, largest_difference, mean, plan_in, plan_of, run_plan};

#[derive(Clone, Copy, Debug)]
enum Thermostat {
    /// With the probability that two near particles collide.
    Lowe(f64),
    Shardlow,
}

/// One step of free particles, before which pairs meet.
fn one_step(s: Snapshot, device: DeviceChoice, precision: &str, thermostat: Thermostat, more: &str) -> Plan {
    let own = match thermostat {
        Thermostat::Lowe(probability) => format!("LoweAndersen(nu: {:?}", probability / 0.01),
        Thermostat::Shardlow => "Shardlow(gamma: 4.5, s: 0.7".into(),
    };
    let text = format!(
        "(seed: 4, precision: {precision}, integrators: [VelocityVerlet()], \
         updaters: [{own}, kT: 1.5, r_cut: 1.6{more})], stages: [(steps: 1, dt: 0.01)])"
    );
    plan_of(&text, s, device).unwrap_or_else(|e| panic!("{}", e.render()))
}

fn velocities(plan: &Plan) -> Vec<f64> {
    let (_, mut b) = run_plan(plan).unwrap_or_else(|e| panic!("{}", e.render()));
    columns(&mut *b).velocity.into_iter().flatten().collect()
}

/// The same by all pairs; the second number counts meetings.
fn in_turn(plan: &Plan, thermostat: Thermostat, member: impl Fn(usize) -> bool) -> (Vec<f64>, usize) {
    let s = &plan.snapshot;
    let updater = |name: &str| name == "LoweAndersen" || name == "Shardlow";
    let id = plan.components.iter().find(|c| updater(&c.name)).expect("the thermostat").id;
    let key = RandomKey::new(4, id);
    let l = s.box_length[0];
    let apart = |i: usize, j: usize| -> [f64; 3] {
        std::array::from_fn(|k| {
            let d = s.position[i][k] - s.position[j][k];
            d - l * (d / l).round()
        })
    };
    let norm = |d: [f64; 3]| d.iter().map(|x| x * x).sum::<f64>().sqrt();
    let probability = if let Thermostat::Lowe(p) = thermostat { p } else { 1.0 };
    let mut pairs = vec![];
    for i in (0..s.len()).filter(|i| member(*i)) {
        for j in (i + 1..s.len()).filter(|j| member(*j)) {
            let words = key.pair(0, i as u32, j as u32);
            if norm(apart(i, j)) < 1.6 && f64::from(words[1]) < probability * 4_294_967_296.0 {
                pairs.push((words[0], i, j, words));
            }
        }
    }
    pairs.sort_unstable();
    let mut v = s.velocity.clone();
    for (_, i, j, words) in &pairs {
        let (i, j) = (*i, *j);
        let angle = (f64::from((words[3] as i32) >> 8) + 0.5) * std::f64::consts::PI / 8_388_608.0;
        let normal = (-2.0 * unit_uniform::<f64>(words[2]).ln()).sqrt() * angle.cos();
        let d = apart(i, j);
        let r = norm(d);
        let (m, n) = (s.mass[i], s.mass[j]);
        let mu = m * n / (m + n);
        let along = |v: &[[f64; 3]]| (0..3).map(|k| (v[i][k] - v[j][k]) * d[k] / r).sum::<f64>();
        let push = |v: &mut [[f64; 3]], p: f64| {
            for k in 0..3 {
                v[i][k] += p * d[k] / r / m;
                v[j][k] -= p * d[k] / r / n;
            }
        };
        match thermostat {
            Thermostat::Lowe(_) => {
                let wanted = normal * (1.5 / mu).sqrt();
                let now = along(&v);
                push(&mut v, mu * (wanted - now));
            }
            // as in Shardlow's paper: an explicit step of dt/2, and an implicit one
            Thermostat::Shardlow => {
                let dt = 0.01;
                let w = (1.0 - r / 1.6).powf(0.7);
                let (friction, noise) = (4.5 * w * w, (2.0 * 4.5 * 1.5f64).sqrt() * w * normal * f64::sqrt(dt));
                let now = along(&v);
                push(&mut v, 0.5 * (noise - friction * now * dt));
                // p = ½ (noise − friction u' dt) with u' = u + p/μ
                let now = along(&v);
                push(&mut v, 0.5 * (noise - friction * now * dt) / (1.0 + 0.5 * friction * dt / mu));
            }
        }
    }
    (v.into_iter().flatten().collect(), pairs.len())
}

/// From few collisions to all pairs, with groups; a single pair chosen otherwise would show as a difference of order 1.
#[test]
#[ignore = "5 seconds"]
fn collisions_equal_sequential_ones_on_every_device() {
    let s = standard_system();
    for device in devices() {
        for (precision, limit) in [("Double", 1e-11), ("Mixed", 2e-4), ("Single", 2e-4)] {
            let all = [Thermostat::Lowe(0.01), Thermostat::Lowe(0.3), Thermostat::Lowe(1.0), Thermostat::Shardlow];
            for thermostat in all {
                let plan = one_step(s.clone(), device, precision, thermostat, "");
                let (truth, n) = in_turn(&plan, thermostat, |_| true);
                let far = largest_difference(&velocities(&plan), &truth);
                println!("{device:?} {precision} {thermostat:?}: {n} meetings, velocities {far:.1e}");
                assert!(n > 50 && far < limit, "{device:?} {precision} {thermostat:?}: {far:e}");
            }
        }
        for thermostat in [Thermostat::Lowe(0.5), Thermostat::Shardlow] {
            let plan = one_step(s.clone(), device, "Double", thermostat, ", group: Tags(first: 100, last: 899)");
            let (truth, _) = in_turn(&plan, thermostat, |i| (100..900).contains(&i));
            let found = velocities(&plan);
            assert!(largest_difference(&found, &truth) < 1e-11, "{device:?}: a group");
            assert!(found[..300] == *s.velocity[..100].as_flattened(), "{device:?}: a particle outside of the group");
            // and the same bits in a second run
            let plan = one_step(s.clone(), device, "Mixed", thermostat, "");
            assert!(velocities(&plan) == velocities(&plan), "{device:?}");
        }
    }
}

/// A free cluster far from the border of the box: momentum and angular momentum stay, and kT comes.
#[test]
#[ignore = "3 seconds"]
fn momentum_and_angular_momentum_are_conserved() {
    let own = ["LoweAndersen(kT: 1.0, nu: 50.0, r_cut: 1.6)", "Shardlow(kT: 1.0, gamma: 4.5, r_cut: 1.6)"];
    for (device, own) in devices().into_iter().flat_map(|d| own.map(|o| (d, o))) {
        let mut s = standard_system();
        s.box_length = [60.0; 3];
        // a net flow and a rotation
        for (v, x) in s.velocity.iter_mut().zip(&s.position) {
            *v = [v[0] + 0.4 - 0.3 * x[1], v[1] + 0.3 * x[0], v[2]];
        }
        let text = format!(
            "(seed: 4, precision: Double, integrators: [VelocityVerlet()], updaters: [{own}], stages: [(steps: 20, dt: 0.001)])"
        );
        let plan = plan_of(&text, s.clone(), device).unwrap_or_else(|e| panic!("{}", e.render()));
        let (_, mut b) = run_plan(&plan).unwrap_or_else(|e| panic!("{}", e.render()));
        let c = columns(&mut *b);
        let moments = |x: &[[f64; 3]], v: &[[f64; 3]]| -> [f64; 6] {
            let mut m = [0.0; 6];
            for i in 0..x.len() {
                let (x, v, mass) = (x[i], v[i], s.mass[i]);
                for k in 0..3 {
                    let (p, q) = ((k + 1) % 3, (k + 2) % 3);
                    m[k] += mass * v[k];
                    m[3 + k] += mass * (x[p] * v[q] - x[q] * v[p]);
                }
            }
            m
        };
        let far = largest_difference(&moments(&s.position, &s.velocity), &moments(&c.position, &c.velocity));
        let moved = largest_difference(s.velocity.as_flattened(), c.velocity.as_flattened());
        println!("{device:?} {own}: momentum and angular momentum change by {far:.1e}, velocities by {moved:.2}");
        assert!(far < 1e-9 && moved > 0.5, "{device:?} {own}: {far:e}, moved {moved}");
    }
}

/// kT at a time step at which DPD would be 4 % off, the fourth moment of velocities, and no momentum.
#[test]
#[ignore = "5 seconds"]
fn the_temperature_is_correct_at_a_long_time_step() {
    let f = tempfile::tempdir().expect("a folder");
    let text = "(seed: 6, initial: [RandomPositions(count: 1536, box: [8.0, 8.0, 8.0]), Velocities(kT: 1.0)], \
                forces: [HarmonicRepulsion(r_cut: 1.0, pairs: {(\"A\", \"A\"): (alpha: 12.5)})], \
                integrators: [VelocityVerlet()], updaters: [LoweAndersen(kT: 1.0, nu: 10.0, r_cut: 1.0)], \
                analyzers: [Thermo(every: 5, file: \"t.csv\")], stages: [(steps: 1000, dt: 0.04)])";
    let plan = plan_in(&f.path().join("p.ron"), text, DeviceChoice::Cpu).unwrap_or_else(|e| panic!("{}", e.render()));
    let (_, mut b) = run_plan(&plan).unwrap_or_else(|e| panic!("{}", e.render()));
    let t = csv(&f.path().join("t.csv"));
    println!("P {:.3}", mean(&t["pressure"][40..]));
    agrees("LoweAndersen at a long time step: kT", &t["kT"][40..]);
    let v = columns(&mut *b).velocity;
    let fourth = mean(&v.iter().flatten().map(|v| v.powi(4)).collect::<Vec<_>>());
    near("LoweAndersen at a long time step: fourth moment", fourth);
    let momentum = b.sums().expect("sums").momentum;
    momentum.into_iter().for_each(|p| below("LoweAndersen at a long time step: momentum", p));
}

/// Rigid bodies of one particle with mass and two without: only those with mass collide or exchange velocities.
#[test]
#[ignore = "5 seconds"]
fn particles_without_mass_take_no_part() {
    let beads =
        r#"(type: "A", at: (0.0, 0.0, 0.0)), (type: "A", at: (0.8, 0.0, 0.0)), (type: "A", at: (0.0, 0.9, 0.0))"#;
    for updater in [
        "LoweAndersen(kT: 2.0, nu: 100.0, r_cut: 2.5)",
        "Shardlow(kT: 2.0, gamma: 20.0, r_cut: 2.5)",
        "ReversePerturbation(every: 10, report: 20, file: \"m.csv\", slabs: 4)",
    ] {
        let mut found = vec![];
        for device in devices() {
            let f = tempfile::tempdir().expect("a folder");
            let text = format!(
                r#"(seed: 74, precision: Double, neighbors: (only: OtherMolecules), initial: [
                    Lattice(lattice: Sc, cells: [6, 6, 6], density: 0.3, types: {{ "R": 1.0 }}),
                    Bodies(center: "R", shape: [{beads}], kT: 1.0), Velocities(kT: 1.0)], forces: [RigidBodies()],
                    integrators: [RotationalVerlet()], updaters: [{updater}], analyzers: [Thermo(every: 50, file: "t.csv"),
                    Profile(every: 50, file: "p.csv", geometry: Slabs(axis: Z), bins: 1)], stages: [(steps: 51, dt: 0.002)])"#
            );
            let p = plan_in(&f.path().join("p.ron"), &text, device).unwrap_or_else(|e| panic!("{}", e.render()));
            let (_, mut b) = run_plan(&p).unwrap_or_else(|e| panic!("{device:?} {updater}: {}", e.render()));
            let (thermo, profile) = (csv(&f.path().join("t.csv")), csv(&f.path().join("p.csv")));
            // both count the particles with mass: the mean of the samples at steps 0 and 50. The profile removes the velocity of its bin,
            // which is that of 216 particles: 1/216 of kT at most in each mean
            let (kt, of_profile) = (mean(&thermo["kT"]), profile["kT"][0]);
            assert!((of_profile / kt - 1.0).abs() < 0.01, "{device:?} {updater}: kT {kt}, in the profile {of_profile}");
            if updater.starts_with("Reverse") {
                let exchanged = csv(&f.path().join("m.csv"))["exchanged"].clone();
                assert!(exchanged[0] > 1.0, "{device:?}: {exchanged:?}");
            } else {
                assert!(thermo["kT"][1] > 1.2, "{device:?} {updater}: {:?}", thermo["kT"]);
            }
            found.push(columns(&mut *b).velocity.into_iter().flatten().collect::<Vec<f64>>());
        }
        for other in &found[1..] {
            // double precision, and errors of rounding that grow in 51 steps by less than a factor of 10⁴
            assert!(largest_difference(&found[0], other) < 1e-8, "{updater}");
        }
    }
}

/// Particles that no integrator moves get no velocities.
#[test]
fn frozen_particles_are_refused() {
    for (name, fields) in [
        ("LoweAndersen", "kT: 1.0, nu: 10.0, r_cut: 1.5"),
        ("Shardlow", "kT: 1.0, gamma: 5.0, r_cut: 1.5"),
        ("ZeroMomentum", "every: 1"),
        ("ReversePerturbation", "every: 2, report: 10, file: \"m.csv\", slabs: 4"),
    ] {
        let said = |group: &str| {
            let text = format!(
                "(integrators: [VelocityVerlet(group: Types([\"A\"]))], updaters: [{name}({fields}{group})], \
                 stages: [(steps: 1, dt: 0.001)])"
            );
            plan_of(&text, standard_system(), DeviceChoice::Cpu).err().map(|e| e.render()).unwrap_or_default()
        };
        let frozen = standard_system().type_id.iter().position(|t| *t == 1).expect("a B");
        let expected =
            format!("{name} would give a velocity to particle {frozen}, which no integrator moves; give it a `group`");
        assert!(said("").contains(&expected), "{}", said(""));
        assert_eq!(said(", group: Types([\"A\"])"), "");
    }
}
