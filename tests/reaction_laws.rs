//! Energies and angles of `Reactions`: probabilities of single events, the limit of angles, equilibrium, and equal bits
//! after a restart and on several ranks.

use galamost_engine::pipeline::DeviceChoice;
use galamost_plugin_api::snapshot::{Array, Link, Snapshot, Values};
use galamost_plugin_api::views::Wanted;
use galamost_tests::{backend, columns, csv, devices, galamost, has_compiler, mean, plan_of, run_plan, words};
use std::collections::BTreeSet;
use std::f64::consts::PI;
use std::sync::atomic::AtomicBool;

const SIDE: usize = 64;
const GROUPS: usize = SIDE * SIDE;

/// Groups A–B B–A far from each other: a distance r of the two B, and the angles A–B–B in degrees.
fn groups(r: f64, angles: [f64; 2], bonded: bool) -> Snapshot {
    let spacing = 6.0;
    let mut s = Snapshot { dimensions: 3, ..Snapshot::default() };
    s.box_length = [SIDE as f64 * spacing, SIDE as f64 * spacing, spacing];
    let (a, b) = (s.type_id("A"), s.type_id("B"));
    s.bond_types = ["A-B", "B-B"].map(String::from).to_vec();
    s.angle_types = vec!["A-B-B".into()];
    for k in 0..GROUPS {
        let at = [k % SIDE, k / SIDE].map(|n| (n as f64 + 0.5 - SIDE as f64 / 2.0) * spacing);
        let (first, turn) = (4 * k as u32, angles.map(|x| x.to_radians().sin_cos()));
        let x = [-r / 2.0 + turn[0].1, -r / 2.0, r / 2.0, r / 2.0 - turn[1].1];
        let y = [turn[0].0, 0.0, 0.0, turn[1].0];
        for m in 0..4 {
            s.push(if m == 0 || m == 3 { a } else { b }, [at[0] + x[m], at[1] + y[m], 0.0]);
        }
        let mut bond = |kind, i, j| s.bonds.push(Link { kind, tags: [first + i, first + j] });
        bond(0, 0, 1);
        bond(0, 2, 3);
        if bonded {
            bond(1, 1, 2);
            s.angles.extend([[0, 1, 2], [3, 2, 1]].map(|t| Link { kind: 0, tags: t.map(|i| first + i) }));
        }
    }
    let ends = (0..4 * GROUPS).map(|t| i32::from(bonded && (t % 4 == 1 || t % 4 == 2))).collect();
    s.arrays.insert("h_cris".into(), Array { width: 1, values: Values::Int(ends) });
    s
}

/// Reacts once and returns the tags of the bonds B–B afterwards.
fn once(reaction: &str, precision: &str, s: Snapshot, device: DeviceChoice) -> BTreeSet<[u32; 2]> {
    let text = format!(
        "(seed: 12, precision: {precision}, integrators: [VelocityVerlet()], updaters: [Reactions(every: 10, \
         r_cut: 1.122462, reactions: [{reaction}])], stages: [(steps: 1, dt: 1e-6)])"
    );
    let plan = plan_of(&text, s, device).unwrap_or_else(|e| panic!("{}", e.render()));
    let (_, b) = run_plan(&plan).unwrap_or_else(|e| panic!("{}", e.render()));
    b.topology().bonds.iter().filter(|l| l.kind == 1).map(|l| l.tags).collect()
}

fn wca(r: f64) -> f64 {
    4.0 * (r.powi(-12) - r.powi(-6)) + 1.0
}

const BENT: &str =
    "energy: Harmonic(k: 625.0, r0: 1.0, bound: BOUND), angle_energy: Harmonic(k: 500.0, theta0_deg: 180.0)";

/// One attempt for each of 4,096 pairs at rest: the fraction that reacts against the formula, within four standard
/// deviations of the binomial law. The first four cases are the laws of GALAMOST's `Polymerization` and `DePolymerization`.
#[test]
#[ignore = "5 seconds"]
fn single_events_have_the_probabilities_of_the_formulas() {
    let barrier = "activation_energy: 2.77, pair_energy: Wca(epsilon: 1.0, sigma: 1.0), min_angle_deg: 120.0, kT: 1.0";
    let join = format!(r#"(kind: Join, of: ("B", "B"), p: 0.5, {barrier})"#);
    let part = |name: &str, more: &str| format!(r#"(kind: {name}, of: ("B", "B"), p: 0.8, {more}, kT: 1.5)"#);
    let cut = |bound: &str, more: &str| {
        let energies = BENT.replace("BOUND", bound);
        part("Break", &format!("broken: \"B-B\", {energies}{more}"))
    };
    let degrees = |x: f64| x.to_radians();
    let bond = |r: f64| 625.0 * (r - 1.0) * (r - 1.0);
    let bent = |one: f64, two: f64| 500.0 * (degrees(180.0 - one).powi(2) + degrees(180.0 - two).powi(2));
    let metropolis =
        part("Join", &format!("{}, pair_energy: LennardJones(epsilon: 2.0, sigma: 0.9)", BENT.replace("BOUND", "1.0")));
    let lj = |r: f64| 8.0 * ((0.9 / r).powi(12) - (0.9 / r).powi(6));
    let mean_of = |r: f64, one: f64, two: f64| (bond(r) + bent(one, two)) / 3.0;
    let cases = [
        (&join, 1.0, [180.0, 180.0], false, 0.5 * (wca(1.0) - 2.77).exp()),
        (&join, 1.05, [125.0, 150.0], false, 0.5 * (wca(1.05) - 2.77).exp()),
        (&join, 0.9, [150.0, 121.0], false, 0.5),
        (&join, 1.0, [119.0, 180.0], false, 0.0),
        (&join, 1.0, [180.0, 119.0], false, 0.0),
        (
            &cut("0.0", ", activation_energy: 3.0, mean_energy: true"),
            1.06,
            [177.0, 180.0],
            true,
            0.8 * ((mean_of(1.06, 177.0, 180.0) - 3.0) / 1.5).exp(),
        ),
        (
            &cut("0.0", ", activation_energy: 3.0"),
            1.03,
            [178.0, 177.0],
            true,
            0.8 * ((bond(1.03) + bent(178.0, 177.0) - 3.0) / 1.5).exp(),
        ),
        (&cut("3.0", ""), 1.03, [178.0, 177.0], true, 0.8 * ((bond(1.03) + bent(178.0, 177.0) - 3.0) / 1.5).exp()),
        (&cut("0.0", ", activation_energy: 3.0"), 1.1, [180.0, 180.0], true, 0.8),
        (
            &metropolis,
            1.04,
            [177.0, 178.0],
            false,
            0.8 * (-(bond(1.04) + bent(177.0, 178.0) - 1.0 - lj(1.04)) / 1.5).exp(),
        ),
    ];
    for (reaction, r, angles, bonded, expected) in cases {
        let state = groups(r, angles, bonded);
        let mut found = vec![];
        for (precision, device) in devices().into_iter().flat_map(|d| ["Double", "Mixed"].map(|p| (p, d))) {
            let bonds = once(reaction, precision, state.clone(), device);
            let events = if bonded { GROUPS - bonds.len() } else { bonds.len() };
            let p = events as f64 / GROUPS as f64;
            let error = (expected * (1.0 - expected) / GROUPS as f64).sqrt();
            println!(
                "{device:?} {precision} r {r} angles {angles:?}: {p:.4} for {expected:.4} ± {error:.4}: {reaction}"
            );
            assert!(
                (p - expected).abs() <= 4.0 * error,
                "{device:?} {precision} {reaction}: {p}, expected {expected} ± {error}"
            );
            found.push((precision, bonds));
        }
        for (precision, bonds) in &found {
            let first = found.iter().find(|f| f.0 == *precision).expect("one");
            assert!(first.1 == *bonds, "{precision} {reaction}: devices differ");
        }
    }
}

/// A lattice that collapses, so that rows of the neighbor list overflow: steps halt before a call, whose search is behind them.
fn collapsing() -> Snapshot {
    let (side, spacing) = (5, 1.2);
    let mut s = Snapshot { dimensions: 3, box_length: [40.0; 3], ..Snapshot::default() };
    let kind = s.type_id("A");
    s.bond_types = vec!["A-A".into()];
    for k in 0..side * side * side {
        let at =
            [k % side, k / side % side, k / side / side].map(|x| (f64::from(x) - 0.5 * f64::from(side - 1)) * spacing);
        let t = s.push(kind, at);
        s.velocity[t as usize] = at.map(|x| -1.2 * x);
    }
    s
}

/// A search that is queued behind steps and one that follows them find the same, also if the steps halt and are done again.
#[test]
#[ignore = "5 seconds"]
fn a_search_behind_steps_that_halt_is_repeated() {
    if !has_compiler() {
        return;
    }
    let (steps, every) = (60, 3);
    let text = format!(
        "(seed: 3, neighbors: (buffer: 0.3, exclude: [Bonds]), forces: [HarmonicRepulsion(r_cut: 1.0, pairs: {{ (\"A\", \"A\"): (alpha: 2.0) }}), \
         HarmonicBond(bonds: {{ \"A-A\": (k: 5.0, r0: 0.8) }})], integrators: [VelocityVerlet()], updaters: [Reactions(every: {every}, r_cut: 1.0, \
         limits: {{ \"A\": 3 }}, reactions: [(kind: Join, of: (\"A\", \"A\"), p: 0.02), \
         (kind: Break, of: (\"A\", \"A\"), p: 0.05, broken: \"A-A\")])], stages: [(steps: {steps}, dt: 0.01)])"
    );
    let planned = || plan_of(&text, collapsing(), DeviceChoice::Emulated).unwrap_or_else(|e| panic!("{}", e.render()));
    let (_, mut run) = run_plan(&planned()).unwrap_or_else(|e| panic!("{}", e.render()));
    // without the announcements of the run loop
    let plan = planned();
    let mut by_hand = backend(&plan);
    plan.components.iter().try_for_each(|c| by_hand.start(c)).expect("started");
    let stage = &plan.stages[0];
    by_hand.begin_stage(stage, false).expect("begun");
    for _ in 0..steps / every {
        by_hand.update(&stage.updaters[0], Wanted::FORCE).expect("an update");
        by_hand.advance(every, Wanted::FORCE, &AtomicBool::new(false)).expect("steps");
    }
    let report = run.list_report().expect("a list");
    println!("{} bonds, at most {} neighbors", run.topology().bonds.len(), report.longest);
    assert!(report.longest > 40 && run.topology().bonds.len() > 40);
    assert!(run.export().expect("a state") == by_hand.export().expect("a state"));
}

/// Monomers A(B)(B)B at random, in three dimensions; arms have no angles, so they point anywhere.
const STARS: &str = r#"(
    seed: 7, precision: PRECISION, neighbors: (buffer: 0.3),
    initial: [
        Polymers(box: [BOX, BOX, BOX], bond_length: 0.8, distance: 0.5, molecules: [ (molecule: "A(B)(B)B", count: COUNT) ]),
        LinkTypes(bonds: ["A-B", "B-B"], angles: ["A-B-B"]), Velocities(kT: 1.0),
    ],
    forces: [
        HarmonicRepulsion(r_cut: 0.8, pairs: { ("*", "*"): (alpha: 10.0) }),
        HarmonicBond(bonds: { "A-B": (k: 50.0, r0: 0.8), "B-B": (k: 50.0, r0: 0.8) }),
        HarmonicAngle(angles: { "A-B-B": (k: 5.0, theta0_deg: 180.0) }),
    ],
    integrators: [ Langevin(kT: 1.0, gamma: 1.0) ],
    updaters: [ Reactions(every: EVERY, r_cut: 1.2, partners: RULE, file: "events.csv", reactions: [
        (kind: Join, of: ("B", "B"), p: 0.3, min_angle_deg: 110.0, activation_energy: 0.5, pair_energy: Wca(epsilon: 1.0, sigma: 0.8), kT: 1.0),
        (kind: Break, of: ("B", "B"), p: 0.5, broken: "B-B", activation_energy: 2.5, mean_energy: true, kT: 1.0,
            energy: Harmonic(k: 50.0, r0: 0.8), angle_energy: Harmonic(k: 5.0, theta0_deg: 180.0)),
    ]) ],
    analyzers: [ Thermo(every: 20, file: "thermo.csv"), GalamostXml(every: 20, file: "state") ],
    checkpoint: (every: 40),
    stages: [ (steps: STEPS, dt: 0.004) ],
)"#;

/// 120 or 200 monomers.
pub fn stars(count: u32, precision: &str, rule: &str, every: u64, steps: u64) -> String {
    let (count, length) = (count.to_string(), if count == 120 { "9.0" } else { "10.7" });
    let text =
        STARS.replace("PRECISION", precision).replace("RULE", rule).replace("COUNT", &count).replace("BOX", length);
    text.replace("EVERY", &every.to_string()).replace("STEPS", &steps.to_string())
}

/// Every new bond has only angles above the limit at the positions of its step; bonds that break leave no angle.
#[test]
#[ignore = "3 seconds"]
fn no_bond_forms_below_the_smallest_angle() {
    for (device, rule) in devices().into_iter().flat_map(|d| ["Each", "Nearest"].map(|r| (d, r))) {
        let folder = tempfile::tempdir().expect("a folder");
        let text = stars(120, "Double", rule, 1, 100).replace(r#", file: "events.csv""#, "");
        let plan = galamost_tests::plan_in(&folder.path().join("p.ron"), &text, device)
            .unwrap_or_else(|e| panic!("{}", e.render()));
        let mut b = backend(&plan);
        plan.components.iter().for_each(|c| c.start(b.host()).expect("started"));
        b.begin_stage(&plan.stages[0], false).expect("begun");
        let length = 9.0;
        let (mut known, mut formed, mut broken, mut smallest) = (BTreeSet::new(), 0, 0, 180.0f64);
        for step in 0..if device == DeviceChoice::Cpu { 400 } else { 60 } {
            b.update(&plan.stages[0].updaters[0], Wanted::FORCE).expect("updated");
            let c = columns(&mut *b);
            let angle = |[i, j, k]: [u32; 3]| {
                let from = |t: u32| -> [f64; 3] {
                    std::array::from_fn(|a| {
                        let d = c.position[t as usize][a] - c.position[j as usize][a];
                        d - length * (d / length).round()
                    })
                };
                let dot = |u: [f64; 3], v: [f64; 3]| (0..3).map(|a| u[a] * v[a]).sum::<f64>();
                let (u, v) = (from(i), from(k));
                (dot(u, v) / (dot(u, u) * dot(v, v)).sqrt()).acos().to_degrees()
            };
            let partners = |t: u32| {
                c.bonds.iter().filter(move |l| l.tags.contains(&t)).map(move |l| l.tags[usize::from(l.tags[0] == t)])
            };
            let now: BTreeSet<[u32; 2]> = c.bonds.iter().filter(|l| l.kind == 1).map(|l| l.tags).collect();
            for [i, j] in now.difference(&known) {
                for [x, y] in [[*i, *j], [*j, *i]] {
                    for other in partners(x).filter(|o| *o != y) {
                        smallest = smallest.min(angle([other, x, y]));
                    }
                }
                formed += 1;
            }
            broken += known.difference(&now).count();
            assert_eq!(c.angles.len(), 2 * now.len(), "{device:?} {rule}, step {step}: angles");
            known = now;
            b.advance(1, Wanted::FORCE, &AtomicBool::new(false)).expect("a step");
        }
        println!("{device:?} {rule}: {formed} formed, {broken} broken, smallest angle {smallest:.3}°");
        // rounding of the angle itself
        assert!(smallest > 110.0 - 1e-9, "{device:?} {rule}: {smallest}");
        assert!(
            formed > 30 && broken > 5 && smallest < 120.0,
            "{device:?} {rule}: {formed} formed, {broken} broken, {smallest}°"
        );
    }
}

/// The same files after a restart, and on 1, 2, and 3 GPUs: new angles have members that are no neighbors.
#[test]
#[ignore = "5 seconds"]
fn restarts_and_ranks_change_no_bit() {
    let go = |count: u32, more: &[&str], parts: &[u64]| {
        let f = tempfile::tempdir().expect("a folder");
        for (k, steps) in parts.iter().enumerate() {
            std::fs::write(f.path().join("p.ron"), stars(count, "Mixed", "Each", 4, *steps)).expect("written");
            let mut args = vec!["--pipeline", "p.ron", "--quiet", "--no-record"];
            args.extend(more);
            if k > 0 {
                args.push("--resume");
            }
            let out = galamost(f.path(), &args);
            assert!(out.status.success(), "{more:?}: {}", words(&out));
        }
        ["events.csv", "thermo.csv", "state"].map(|name| std::fs::read_to_string(f.path().join(name)).expect(name))
    };
    let emulated = has_compiler().then_some("emulated");
    for device in ["cpu"].into_iter().chain(emulated) {
        let whole = go(120, &["--device", device], &[120]);
        let of = |kind: &str| whole[0].lines().filter(|l| l.contains(kind)).count();
        println!("{device}: {} joins, {} breaks", of("Join"), of("Break"));
        assert!(of("Join") > 15 && of("Break") > 3, "{device}: {} joins, {} breaks", of("Join"), of("Break"));
        assert!(go(120, &["--device", device], &[40, 120]) == whole, "{device}: a restart changes files");
    }
    if emulated.is_some() {
        // a rank has at least a block of 256 particles
        let on = |gpus: &str| go(200, &["--device", "emulated", "--gpus", gpus], &[20]);
        let one = on("1");
        assert!(one[0].lines().count() > 100, "{}", one[0]);
        for gpus in ["2", "3"] {
            assert!(on(gpus) == one, "{gpus} GPUs: files differ from those of one");
        }
    }
}

/// Dimers A–B whose ends join: N₂ = N₁²/(2V) a² ∫ exp(−U/kT) d³r, with a = ½ ∫ exp(−U(θ)/kT) sin θ dθ of each angle.
#[test]
#[ignore = "10 seconds"]
fn energies_of_bonds_and_angles_lead_to_equilibrium() {
    let (n, l, bound) = (700usize, 12.0f64, 5.0);
    let energies = format!(
        "energy: Harmonic(k: 30.0, r0: 0.6, bound: {bound:?}), angle_energy: Harmonic(k: 3.0, theta0_deg: 180.0), kT: 1.0"
    );
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("x.csv").display().to_string();
    let text = format!(
        r#"(seed: 4, precision: Mixed,
        initial: [ Polymers(box: [{l:?}, {l:?}, {l:?}], bond_length: 0.8, distance: 0.1, molecules: [ (molecule: "AB", count: {n}) ]),
            LinkTypes(bonds: ["A-B", "B-B"], angles: ["A-B-B"]), Velocities(kT: 1.0) ],
        forces: [ HarmonicBond(bonds: {{ "A-B": (k: 30.0, r0: 0.8), "B-B": (k: 30.0, r0: 0.6) }}),
            HarmonicAngle(angles: {{ "A-B-B": (k: 3.0, theta0_deg: 180.0) }}) ],
        integrators: [Langevin(kT: 1.0, gamma: 1.0)],
        updaters: [Reactions(every: 2, r_cut: 1.4, reactions: [
            (kind: Join, of: ("B", "B"), p: 0.04, {energies}), (kind: Break, of: ("B", "B"), p: 0.04, broken: "B-B", {energies})])],
        analyzers: [ChainLengths(every: 25, file: {file:?}, groups: {{ "B": 1 }})], stages: [(steps: 12000, dt: 0.02)])"#
    );
    let plan = galamost_tests::plan(&text, DeviceChoice::Cpu).unwrap_or_else(|e| panic!("{}", e.render()));
    let (_, _b) = run_plan(&plan).unwrap_or_else(|e| panic!("{}", e.render()));
    let molecules = &csv(&folder.path().join("x.csv"))["molecules"][60..];
    let simpson = |f: &dyn Fn(f64) -> f64, end: f64| {
        let h = end / 4000.0;
        let weight = |k: u32| {
            if k == 0 || k == 4000 {
                1.0
            } else if k % 2 == 1 {
                4.0
            } else {
                2.0
            }
        };
        (0..=4000).map(|k| weight(k) * f(h * f64::from(k))).sum::<f64>() * h / 3.0
    };
    let radial = 4.0 * PI * simpson(&|r| r * r * (bound - 30.0 * (r - 0.6) * (r - 0.6)).exp(), 1.4);
    let angular = 0.5 * simpson(&|x| x.sin() * (-3.0 * (x - PI) * (x - PI)).exp(), PI);
    let q = radial * angular * angular / (2.0 * l.powi(3));
    // N₂ = q (N − 2 N₂)²
    let (a, b, c) = (4.0 * q, 4.0 * q * n as f64 + 1.0, q * (n as f64).powi(2));
    let root = (b - (b * b - 4.0 * a * c).sqrt()) / (2.0 * a);
    let blocks: Vec<f64> = molecules.chunks_exact(42).map(mean).collect();
    let average = mean(&blocks);
    let spread = mean(&blocks.iter().map(|x| (x - average).powi(2)).collect::<Vec<_>>());
    let (joined, error) = (n as f64 - average, (spread / (blocks.len() as f64 - 1.0)).sqrt());
    println!("{joined:.1} ± {error:.1} joined, expected {root:.1}");
    // the error of a time step of 0.02, as in the test of dimers
    assert!((joined - root).abs() < 4.0 * error + 0.005 * root, "{joined} joined instead of {root} ± {error}");
}
