//! Reactions: invariants, kinetics, the same network on every device, after a restart, and forces along new links.

use galamost::selftest::standard_system;
use galamost_engine::backend::Backend;
use galamost_engine::pipeline::DeviceChoice;
use galamost_engine::plan::Plan;
use galamost_plugin_api::philox::RandomKey;
use galamost_plugin_api::snapshot::{Array, Snapshot, Values};
use galamost_plugin_api::views::Wanted;
use galamost_tests::tolerances::{bound, near};
use galamost_tests::{backend, columns, csv, devices, galamost, largest_difference, mean, plan_of, run_plan, words};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicBool;

fn planned(text: &str, s: Snapshot, device: DeviceChoice) -> Plan {
    plan_of(text, s, device).unwrap_or_else(|e| panic!("{}", e.render()))
}

fn ints(values: Vec<i32>) -> Array {
    Array { width: 1, values: Values::Int(values) }
}

fn whole(b: &mut dyn Backend, name: &str) -> Vec<i32> {
    match columns(b).arrays.get(name).map(|a| a.values.clone()) {
        Some(Values::Int(v)) => v,
        other => panic!("{name}: {other:?}"),
    }
}

/// Particles at random, moving freely: `ends` active ones of type R, the others free monomers of type M. Bonds have no
/// force here: any two particles meet as often as any others.
fn gas(n: usize, ends: usize, l: f64) -> Snapshot {
    let mut s = Snapshot { dimensions: 3, box_length: [l; 3], ..Snapshot::default() };
    let (key, kinds) = (RandomKey::new(5, 6), [s.type_id("R"), s.type_id("M")]);
    for i in 0..n as u32 {
        let number = |draw: u32| key.single(0, i, draw).map(|w| (f64::from(w) + 0.5) / 4_294_967_296.0);
        let (r, u, v) = (number(0), number(1), number(2));
        s.push(kinds[usize::from(i as usize >= ends)], std::array::from_fn(|k| (r[k] - 0.5) * l));
        s.velocity[i as usize] =
            std::array::from_fn(|k| (-2.0 * u[k].ln()).sqrt() * (std::f64::consts::TAU * v[k]).cos());
    }
    s.bond_types = vec!["chain".into()];
    s.arrays.insert("h_init".into(), ints((0..n).map(|i| i32::from(i < ends)).collect()));
    s.arrays.insert("h_cris".into(), ints((0..n).map(|i| i32::from(i < ends)).collect()));
    s
}

/// Reactions of a gas, every step; the gas is stirred well, since a step of time 1 takes particles far from each other.
fn gas_text(reactions: &str, r_cut: f64, rule: &str, steps: u64, more: &str) -> String {
    format!(
        "(seed: 3, precision: Double, integrators: [VelocityVerlet()], updaters: [Reactions(every: 1, r_cut: {r_cut}, \
         partners: {rule}, reactions: [{reactions}]{more})], stages: [(steps: {steps}, dt: 1.0)])"
    )
}

const GROW: &str =
    r#"(kind: Grow, of: ("R", "M"), p: 0.02, bond: "chain"), (kind: Grow, of: ("M", "M"), p: 0.02, bond: "chain")"#;

/// Particles with each number of bonds, longest first, of every chain: the length of the chain of each initiator.
fn chains(b: &mut dyn Backend, ends: usize) -> Vec<usize> {
    let mut next: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for l in &b.topology().bonds {
        next.entry(l.tags[0]).or_default().push(l.tags[1]);
    }
    let length = |start: u32| {
        let (mut n, mut at) = (0, start);
        while let Some(to) = next.get(&at) {
            assert_eq!(to.len(), 1, "chain {start} branches at {at}");
            (n, at) = (n + 1, to[0]);
        }
        n
    };
    (0..ends as u32).map(length).collect()
}

/// dM/dt of a well-mixed system, and the law of Poisson, for both rules.
#[test]
fn growth_follows_the_rate_equation_and_poisson_lengths() {
    let (n, ends, l, r_cut, steps, p) = (12_000, 600, 13.0f64, 0.6f64, 300, 0.02);
    for rule in ["Each", "One"] {
        let plan = planned(&gas_text(GROW, r_cut, rule, steps, ""), gas(n, ends, l), DeviceChoice::Cpu);
        let (_, mut b) = run_plan(&plan).unwrap_or_else(|e| panic!("{}", e.render()));
        let found = chains(&mut *b, ends);
        let (mut m, mut spread) = ((n - ends) as f64, 0.0);
        for _ in 0..steps {
            let lambda = 4.0 / 3.0 * std::f64::consts::PI * r_cut.powi(3) * m / l.powi(3);
            let each = 1.0 - (-p * lambda).exp();
            let chance = if rule == "Each" { each } else { p * (1.0 - (-lambda).exp()) };
            m -= ends as f64 * chance;
            spread += chance * (1.0 - chance);
        }
        let nu = ((n - ends) as f64 - m) / ends as f64;
        let lengths: Vec<f64> = found.iter().map(|x| *x as f64).collect();
        let average = mean(&lengths);
        let variance = mean(&lengths.iter().map(|x| (x - average).powi(2)).collect::<Vec<_>>());
        let error = (spread / ends as f64).sqrt();
        println!("{rule}: ν {average:.3} ± {error:.3}, expected {nu:.3}; variance {variance:.3}, expected {spread:.3}");
        assert!((average - nu).abs() < 4.0 * error, "{rule}: {average} monomers a chain instead of {nu} ± {error}");
        // the variance of a sample of a Poisson law: σ² √(2/n + 1/(n σ²))
        let of_variance = spread * (2.0 / ends as f64 + 1.0 / (ends as f64 * spread)).sqrt();
        assert!(
            (variance - spread).abs() < 4.0 * of_variance,
            "{rule}: variance {variance}, not {spread} ± {of_variance}"
        );
        let pdi = 1.0 + variance / (1.0 + average).powi(2);
        let poisson = 1.0 + nu / (1.0 + nu).powi(2);
        println!("{rule}: dispersity {pdi:.4}, Poisson {poisson:.4}");
        // the binomial law of p per step is narrower by the factor 1 − p; four standard errors besides
        let slack = (nu - spread) / (1.0 + nu).powi(2) + 4.0 * of_variance / (1.0 + nu).powi(2);
        assert!((pdi - poisson).abs() < slack, "{rule}: dispersity {pdi}, Poisson {poisson}");
        let classes = lengths.iter().fold(BTreeMap::new(), |mut m: BTreeMap<u64, f64>, x| {
            *m.entry(*x as u64).or_default() += 1.0;
            m
        });
        let mut poisson = (-nu).exp() * ends as f64;
        let (mut chi2, mut bins, mut pool) = (0.0, 0, [0.0; 2]);
        for k in 0..60u64 {
            pool = [pool[0] + poisson, pool[1] + classes.get(&k).copied().unwrap_or(0.0)];
            if pool[0] > 10.0 {
                chi2 += (pool[1] - pool[0]).powi(2) / pool[0];
                (bins, pool) = (bins + 1, [0.0; 2]);
            }
            poisson *= nu / (k + 1) as f64;
        }
        println!("{rule}: χ² {chi2:.1} of {bins} classes");
        assert!(
            bins > 5 && chi2 < bins as f64 + 4.0 * (2.0 * bins as f64).sqrt(),
            "{rule}: χ² {chi2} of {bins} classes"
        );
    }
}

/// What must hold after every reaction step of growing chains.
#[test]
#[ignore = "3 seconds"]
fn invariants_hold_after_every_reaction_step() {
    let (n, ends, l, r_cut) = (2000, 100, 8.0, 0.9);
    let rules = ["Each", "One", "Nearest"];
    for (device, rule) in devices().into_iter().flat_map(|d| rules.map(|r| (d, r))) {
        let (steps, least) = if device == DeviceChoice::Cpu { (150, 300) } else { (25, 30) };
        let plan = planned(&gas_text(GROW, r_cut, rule, steps, ""), gas(n, ends, l), device);
        let mut b = backend(&plan);
        plan.components.iter().for_each(|c| c.start(b.host()).expect("started"));
        b.begin_stage(&plan.stages[0], false).expect("begun");
        let mut bonds = BTreeSet::new();
        for step in 0..steps {
            b.update(&plan.stages[0].updaters[0], Wanted::FORCE).expect("updated");
            let (init, cris) = (whole(&mut *b, "h_init"), whole(&mut *b, "h_cris"));
            assert_eq!(init.iter().filter(|i| **i == 1).count(), ends, "step {step}: ends");
            let grown = cris[ends..].iter().filter(|c| **c == 1).count();
            assert!(cris.iter().all(|c| (0..=1).contains(c)), "step {step}: a monomer was claimed twice");
            let all: Vec<[u32; 2]> = b.topology().bonds.iter().map(|l| l.tags).collect();
            assert_eq!(all.len(), grown, "step {step}: bonds");
            let mut count = vec![0; n];
            all.iter().flatten().for_each(|t| count[*t as usize] += 1);
            let position = columns(&mut *b).position;
            for (t, count) in count.iter().enumerate() {
                let most = if init[t] == 1 || t < ends { 1 } else { 2 };
                assert!(*count <= most, "step {step}: particle {t} has {count} bonds");
                assert!(cris[t] == 1 || *count == 0, "step {step}: a free monomer has a bond");
            }
            for pair in &all {
                if bonds.insert(*pair) {
                    let [i, j] = pair.map(|t| position[t as usize]);
                    let d: f64 = (0..3).map(|k| i[k] - j[k]).map(|d| (d - l * (d / l).round()).powi(2)).sum();
                    assert!(d.sqrt() < r_cut, "step {step}: a new bond of length {}", d.sqrt());
                }
            }
            b.advance(1, Wanted::FORCE, &AtomicBool::new(false)).expect("a step");
        }
        println!("{device:?} {rule}: {} bonds", bonds.len());
        assert!(bonds.len() > least, "{device:?} {rule}: only {} bonds", bonds.len());
    }
}

/// Everything at once, on chains with angles, dihedrals and impropers: each kind, types and charges that change, energies.
const ALL_KINDS: &str = r#"
    (kind: Grow, of: ("A", "B"), p: 0.3, factor: 0.7, bond: "A-B", becomes: ("A", "A"), charges: (0.5, -0.5)),
    (kind: Grow, of: ("A", "A"), p: 0.3, bond: "A-A"),
    (kind: Join, of: ("A", "B"), p: 0.04, factor: 0.5, energy: Harmonic(k: 5.0, r0: 1.0, bound: 0.5), kT: 1.0),
    (kind: Join, of: ("B", "B"), p: 0.06, by_groups: true),
    (kind: Combine, of: ("A", "A"), p: 0.3, angle: "A-A-A", dihedral: "A-A-A-A"),
    (kind: Disproportionate, of: ("A", "B"), p: 0.5),
    (kind: Die, of: ["B"], p: 0.2),
    (kind: Exchange, of: ("B", "A"), p: 0.02, bond: "A-B", broken: "A-A"),
    (kind: Insert, of: ("A", "B"), p: 0.1, bond: "A-B", broken: "A-A"),
    (kind: Break, of: ("B", "B"), p: 0.1, broken: "B-B"),
    (kind: Break, of: ("A", "B"), p: 0.1, broken: "A-B", energy: Fene(k: 5.0, R0: 4.0, bound: 1.0), kT: 1.0),
    (kind: Unzip, of: ("A", "B"), p: 0.5, broken: "A-B")"#;

const FORCES: &str = r#"
    HarmonicBond(bonds: { "A-A": (k: 20.0, r0: 1.0), "A-B": (k: 20.0, r0: 1.0), "B-B": (k: 20.0, r0: 1.0) }),
    HarmonicAngle(angles: { "A-A-A": (k: 1.0, theta0_deg: 120.0), "A-A-B": (k: 2.0, theta0_deg: 110.0),
        "A-B-B": (k: 1.0, theta0_deg: 100.0), "B-B-B": (k: 1.0, theta0_deg: 90.0) }),
    DIHEDRAL,
    IMPROPER,
    HarmonicRepulsion(r_cut: 1.3, pairs: { ("A", "A"): (alpha: 10.0), ("A", "B"): (alpha: 12.0), ("B", "B"): (alpha: 9.0) })"#;

fn forces() -> String {
    let names = ["A-A-A-A", "A-A-A-B", "A-A-B-B", "A-B-B-B", "B-B-B-B"];
    let rows = names.map(|n| format!("\"{n}\": (k: 0.5, n: 1, delta_deg: 0.0)")).join(", ");
    let forces = FORCES.replace("DIHEDRAL", &format!("PeriodicDihedral(dihedrals: {{ {rows} }})"));
    forces.replace("IMPROPER", &format!("PeriodicImproper(impropers: {{ {rows} }})"))
}

/// The standard system, cut into chains of five, some of which end actively.
fn many() -> Snapshot {
    let mut s = standard_system();
    s.bonds.retain(|l| l.tags[1] % 5 != 0);
    s.angles.retain(|l| l.tags[0] / 5 == l.tags[2] / 5);
    s.dihedrals.retain(|l| l.tags[0] / 5 == l.tags[3] / 5);
    s.arrays.insert("h_init".into(), ints((0..1000).map(|t| i32::from(t % 5 == 0 && t % 15 != 0)).collect()));
    s.arrays.insert("h_cris".into(), ints((0..1000).map(|t| i32::from(t % 5 < 2) + i32::from(t % 5 == 0)).collect()));
    s
}

fn many_text(precision: &str, rule: &str, every: u64, steps: u64) -> String {
    format!(
        "(seed: 8, precision: {precision}, neighbors: (buffer: 0.3, exclude: [Bonds, Angles]), forces: [{}], \
         integrators: [Langevin(kT: 1.0, gamma: 1.0)], updaters: [Reactions(every: {every}, r_cut: 1.25, partners: {rule}, \
         limits: {{ \"A\": 2, \"B\": 3 }}, reactions: [{ALL_KINDS}])], stages: [(steps: {steps}, dt: 0.004)])",
        forces()
    )
}

/// What reactions change, in tag order.
fn outcome(b: &mut dyn Backend) -> (galamost_engine::state::topology::Topology, Vec<Vec<i32>>) {
    let mut arrays = vec![whole(b, "h_init"), whole(b, "h_cris")];
    let c = columns(b);
    arrays.push(c.type_id.iter().map(|k| *k as i32).collect());
    if let Some(Values::Real(q)) = c.arrays.get("charge").map(|a| &a.values) {
        arrays.push(q.iter().map(|q| (1000.0 * q).round() as i32).collect());
    }
    (b.topology().clone(), arrays)
}

/// The same reactions at the same positions, whatever the device and the precision; and all of a run in double precision.
#[test]
fn all_devices_make_the_same_network() {
    for rule in ["Each", "One", "Nearest"] {
        for (precision, every, steps) in [("Single", 100, 1), ("Mixed", 100, 1), ("Double", 5, 40)] {
            let mut found = vec![];
            for device in devices() {
                let plan = planned(&many_text(precision, rule, every, steps), many(), device);
                let (_, mut b) = run_plan(&plan).unwrap_or_else(|e| panic!("{}", e.render()));
                found.push(outcome(&mut *b));
            }
            let before = many();
            let now = &found[0].0.bonds;
            let (old, new): (BTreeSet<_>, BTreeSet<_>) = (before.bonds.iter().collect(), now.iter().collect());
            let (made, broken) = (new.difference(&old).count(), old.difference(&new).count());
            println!("{rule} {precision}: {made} bonds made, {broken} broken, {} angles", found[0].0.angles.len());
            assert!(made > 20 && broken > 20, "{rule} {precision}: {made} made, {broken} broken");
            for other in &found[1..] {
                assert!(found[0].1 == other.1, "{rule} {precision}: states differ");
                assert!(found[0].0 == other.0, "{rule} {precision}: links differ");
            }
        }
    }
}

/// All kinds of reactions with angles, dihedrals, impropers and charges, on several ranks: every bit of the state is that of one.
#[test]
#[ignore = "5 seconds"]
fn any_number_of_ranks_makes_the_same_network() {
    ranks_make_the_same_network(&[("Each", "Mixed", &[4]), ("One", "Double", &[2])]);
}

#[test]
#[ignore = "half a minute"]
fn other_numbers_of_ranks_make_the_same_network() {
    ranks_make_the_same_network(&[("Each", "Mixed", &[2, 3]), ("One", "Double", &[3]), ("Nearest", "Single", &[2, 4])]);
}

fn ranks_make_the_same_network(cases: &[(&str, &str, &[u32])]) {
    if !galamost_tests::has_compiler() {
        return;
    }
    for (rule, precision, numbers) in cases.iter().copied() {
        let on = |gpus: u32| {
            let mut plan = planned(&many_text(precision, rule, 5, 40), many(), DeviceChoice::Emulated);
            plan.pipeline.gpus = gpus;
            let (_, mut b) = run_plan(&plan).unwrap_or_else(|e| panic!("{gpus} GPUs: {}", e.render()));
            b.export().expect("a state")
        };
        let one = on(1);
        let bonds = [many().bonds, one.topology.bonds.clone()].map(|b| b.into_iter().collect::<BTreeSet<_>>());
        let (made, broken) = (bonds[1].difference(&bonds[0]).count(), bonds[0].difference(&bonds[1]).count());
        println!("{rule} {precision}: {made} bonds made, {broken} broken");
        assert!(made > 40 && broken > 40, "{rule} {precision}: {made} made, {broken} broken");
        // a rank has at least 256 particles
        for gpus in numbers.iter().copied() {
            let several = on(gpus);
            assert!(several.topology == one.topology, "{rule} {precision}, {gpus} GPUs: links differ");
            let differ: Vec<_> = one.sections.iter().filter(|(k, v)| several.sections.get(*k) != Some(v)).collect();
            let names: Vec<&String> = differ.into_iter().map(|(name, _)| name).collect();
            assert!(names.is_empty(), "{rule} {precision}, {gpus} GPUs: {names:?} differ");
        }
    }
}

/// The same bits with one thread and with four, and in a second run on the device.
#[test]
fn a_run_is_reproducible_to_the_bit() {
    for device in devices() {
        let plan = planned(&many_text("Mixed", "Each", 5, 60), many(), device);
        let state = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
            pool.install(|| run_plan(&plan).unwrap_or_else(|e| panic!("{}", e.render())).1.export().expect("a state"))
        };
        assert!(state(1) == state(4), "{device:?}");
    }
}

/// Links that were made and broken on the way act like those of a state that is read: forces, lists, exclusions.
#[test]
fn forces_equal_those_of_a_fresh_start() {
    for device in devices() {
        let plan = planned(&many_text("Double", "Each", 4, 60), many(), device);
        let (_, mut b) = run_plan(&plan).unwrap_or_else(|e| panic!("{}", e.render()));
        let c = columns(&mut *b);
        let mut s = many();
        (s.position, s.image, s.velocity, s.type_id) = (c.position, c.image, c.velocity, c.type_id);
        (s.bonds, s.angles, s.dihedrals, s.arrays) = (c.bonds, c.angles, c.dihedrals, c.arrays);
        // those with a broken bond are gone
        assert!((100..s.impropers.len()).contains(&c.impropers.len()), "{} impropers", c.impropers.len());
        s.impropers = c.impropers;
        let (angles, dihedrals) = (s.angles.len(), s.dihedrals.len());
        println!("{device:?}: {} bonds, {angles} angles, {dihedrals} dihedrals", s.bonds.len());
        assert!(s.bonds.len() > 600 && angles > 500 && dihedrals > 200);
        s.step = 60;
        let fresh = planned(&many_text("Double", "Each", 1000, 0), s, device);
        let (_, mut f) = run_plan(&fresh).unwrap_or_else(|e| panic!("{}", e.render()));
        let force = |b: &mut dyn Backend| -> Vec<f64> {
            let bytes = b.read("force").expect("forces");
            let all: Vec<f64> = bytes.as_chunks::<8>().0.iter().map(|b| f64::from_ne_bytes(*b)).collect();
            all.chunks(4).flat_map(|f| f[..3].to_vec()).collect()
        };
        let (a, b) = (force(&mut *b), force(&mut *f));
        let largest = b.iter().fold(0.0f64, |m, x| m.max(x.abs()));
        let far = largest_difference(&a, &b) / largest;
        println!("{device:?}: forces differ by {far:.1e} of the largest");
        assert!(far < 1e-12, "{device:?}: {far:e}");
    }
}

/// More reactions in one call than there is room for at first: searched and asked for again, none lost and none twice.
#[test]
fn thousands_of_reactions_fit_into_one_call() {
    let join =
        r#"(kind: Join, of: ("M", "M"), p: 1.0, bond: "chain"), (kind: Join, of: ("R", "M"), p: 0.5, bond: "chain")"#;
    let folder = tempfile::tempdir().expect("a folder");
    let mut found = vec![];
    for device in devices() {
        let file = folder.path().join(format!("{device:?}.csv"));
        let more = format!(", file: {:?}", file.display().to_string());
        let plan = planned(&gas_text(join, 0.9, "Each", 1, &more), gas(11_000, 5, 14.0), device);
        let (_, b) = run_plan(&plan).unwrap_or_else(|e| panic!("{}", e.render()));
        let bonds = b.topology().bonds.len();
        let log = std::fs::read_to_string(&file).expect("a log");
        println!("{device:?}: {bonds} bonds");
        assert!(bonds > 4200, "{bonds} bonds");
        assert_eq!(log.lines().count(), bonds + 1, "the log");
        found.push((b.topology().clone(), log));
    }
    assert!(found.iter().all(|f| *f == found[0]));
}

const RESTART: &str = r#"(
    seed: 9, precision: Mixed, neighbors: (exclude: [Bonds]),
    initial: [ InitiatorSurface(box: [9.0, 9.0, 9.0], surface: Sphere(radius: 2.0), initiators: 0.5, density: 0.7),
               LinkTypes(bonds: ["chain"], angles: ["I-M-M", "M-M-M"]), Velocities(kT: 1.0, group: Types(["M"])) ],
    forces: [
        HarmonicRepulsion(r_cut: 1.0, pairs: { ("S", "S"): (alpha: 25.0), ("S", "I"): (alpha: 25.0), ("S", "M"): (alpha: 25.0),
            ("I", "I"): (alpha: 25.0), ("I", "M"): (alpha: 25.0), ("M", "M"): (alpha: 25.0) }),
        HarmonicBond(bonds: { "chain": (k: 40.0, r0: 0.8) }),
        HarmonicAngle(angles: { "I-M-M": (k: 2.0, theta0_deg: 180.0), "M-M-M": (k: 2.0, theta0_deg: 180.0) }),
    ],
    integrators: [ Langevin(kT: 1.0, gamma: 1.0, group: Types(["M"])) ],
    updaters: [ Reactions(every: 7, r_cut: 1.0, file: "events.csv", reactions: [
        (kind: Grow, of: ("I", "M"), p: 0.2, bond: "chain"), (kind: Grow, of: ("M", "M"), p: 0.2, bond: "chain"),
        (kind: Unzip, of: ("M", "M"), p: 0.1, broken: "chain") ]) ],
    analyzers: [ ChainLengths(every: 20, file: "lengths.csv", distribution: "distribution.csv", groups: {"M": 1}, shortest: 2),
                 GalamostXml(every: 50, file: "state") ],
    checkpoint: (every: 50),
    stages: [ (steps: STEPS, dt: 0.005) ],
)"#;

/// 2n steps are n steps, a restart and n steps, with every file; and the file of the state has h_init and h_cris.
#[test]
#[ignore = "3 seconds"]
fn a_restart_changes_nothing() {
    for device in devices() {
        let device = if device == DeviceChoice::Cpu { "cpu" } else { "emulated" };
        let go = |folder: &std::path::Path, steps: u64, resume: bool| {
            std::fs::write(folder.join("p.ron"), RESTART.replace("STEPS", &steps.to_string())).expect("written");
            let mut args = vec!["--pipeline", "p.ron", "--quiet", "--no-record", "--device", device];
            if resume {
                args.push("--resume");
            }
            let out = galamost(folder, &args);
            assert!(out.status.success(), "{}", words(&out));
        };
        let (a, b) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        go(a.path(), 200, false);
        go(b.path(), 100, false);
        go(b.path(), 200, true);
        let mut files: Vec<_> =
            std::fs::read_dir(a.path()).expect("files").filter_map(|e| Some(e.ok()?.file_name())).collect();
        files.sort();
        assert!(files.len() == 7, "{files:?}");
        for f in &files {
            let read = |folder: &tempfile::TempDir| std::fs::read(folder.path().join(f)).unwrap_or_default();
            assert!(!read(&a).is_empty() && read(&a) == read(&b), "{device}: {f:?} differs");
        }
        let lengths = csv(&a.path().join("lengths.csv"));
        let last = |name: &str| lengths[name].last().copied().unwrap_or(0.0);
        println!("{device}: conversion {:.3}, PDI {:.3}", last("conversion"), last("dispersity"));
        assert!(last("conversion") > 0.05 && last("ends") == 25.0 && last("number_average") > 2.0);
        let state = files.iter().rfind(|f| f.to_string_lossy().contains("state")).expect("a state");
        let text = std::fs::read_to_string(a.path().join(state)).expect("text");
        assert!(text.contains("<h_init num=") && text.contains("<h_cris num=") && text.contains("M-M-M"), "{state:?}");
    }
}

/// Join and Break with an energy: dimers in equilibrium, N₂ = N₁²/(2V) ∫ exp(−U/kT) d³r.
#[test]
#[ignore = "10 seconds"]
fn the_energy_criterion_leads_to_equilibrium() {
    let n = 1500usize;
    let l = 16.0f64;
    for bound in [0.0, 2.0] {
        let s = gas(n, 0, l);
        let energy = format!("energy: Harmonic(k: 15.0, r0: 0.6, bound: {bound:?}), kT: 1.0");
        let folder = tempfile::tempdir().expect("a folder");
        let text = format!(
            "(seed: 4, precision: Mixed, forces: [HarmonicBond(bonds: {{ \"chain\": (k: 15.0, r0: 0.6) }})], \
             integrators: [Langevin(kT: 1.0, gamma: 1.0)], updaters: [Reactions(every: 2, r_cut: 1.6, reactions: [ \
             (kind: Join, of: (\"M\", \"M\"), p: 0.02, bond: \"chain\", {energy}), \
             (kind: Break, of: (\"M\", \"M\"), p: 0.02, broken: \"chain\", {energy})])], \
             analyzers: [ChainLengths(every: 25, file: {:?}, groups: {{ \"M\": 1 }})], stages: [(steps: 9000, dt: 0.02)])",
            folder.path().join("x.csv").display().to_string()
        );
        let (_, _b) = run_plan(&planned(&text, s, DeviceChoice::Cpu)).unwrap_or_else(|e| panic!("{}", e.render()));
        let molecules = &csv(&folder.path().join("x.csv"))["molecules"][80..];
        let dimers = n as f64 - mean(molecules);
        // by Simpson's rule over the reach
        let f = |r: f64| r * r * (bound - 15.0 * (r - 0.6) * (r - 0.6)).exp();
        let steps = 1600;
        let h = 1.6 / f64::from(steps);
        let sum: f64 = (0..=steps)
            .map(|k| if k == 0 || k == steps { 1.0 } else if k % 2 == 1 { 4.0 } else { 2.0 } * f(h * f64::from(k)))
            .sum();
        let q = 4.0 * std::f64::consts::PI * sum * h / 3.0 / (2.0 * l.powi(3));
        // N₂ = q (N − 2 N₂)²
        let (a, b, c) = (4.0 * q, 4.0 * q * n as f64 + 1.0, q * (n as f64).powi(2));
        let root = (b - (b * b - 4.0 * a * c).sqrt()) / (2.0 * a);
        let blocks: Vec<f64> = molecules.chunks(40).filter(|c| c.len() == 40).map(mean).collect();
        let average = mean(&blocks);
        let spread = mean(&blocks.iter().map(|x| (x - average).powi(2)).collect::<Vec<_>>());
        let error = (spread / (blocks.len() as f64 - 1.0)).sqrt();
        println!("bound {bound}: {dimers:.1} ± {error:.1} dimers, expected {root:.1}");
        assert!(
            (dimers - root).abs() < 4.0 * error + 0.005 * root,
            "bound {bound}: {dimers} dimers instead of {root} ± {error}"
        );
    }
}

/// Three groups, well mixed: the network gels at the conversion 1/2 (Flory, Stockmayer).
#[test]
#[ignore = "10 seconds"]
fn monomers_of_three_groups_gel_at_one_half() {
    let s = gas(20_000, 0, 16.0);
    let folder = tempfile::tempdir().expect("a folder");
    let join = r#"(kind: Join, of: ("M", "M"), p: 0.006, by_groups: true, bond: "chain")"#;
    let text = gas_text(join, 0.6, "Each", 500, ", limits: { \"M\": 3 }").replacen(
        "stages",
        &format!(
            "analyzers: [ChainLengths(every: 2, file: {:?}, groups: {{ \"M\": 3 }})], stages",
            folder.path().join("x.csv").display().to_string()
        ),
        1,
    );
    let (_, _b) = run_plan(&planned(&text, s, DeviceChoice::Cpu)).unwrap_or_else(|e| panic!("{}", e.render()));
    let t = csv(&folder.path().join("x.csv"));
    let top = (0..t["reduced"].len()).max_by(|a, b| t["reduced"][*a].total_cmp(&t["reduced"][*b])).expect("rows");
    let (p, reduced) = (t["conversion"][top], t["reduced"][top]);
    // below the gel point N_w = (1 + p)/(1 − 2p)
    let mut rows = 0;
    for (row, p) in t["conversion"].iter().enumerate().filter(|(_, p)| (0.1..0.42).contains(*p)) {
        rows += 1;
        let expected = (1.0 + p) / (1.0 - 2.0 * p);
        let found = t["weight_average"][row];
        let noise = bound("weight average below the gel point");
        assert!((found / expected - 1.0).abs() < noise, "conversion {p}: {found} instead of {expected}");
    }
    near("gel point of three groups", p);
    assert!(reduced > 50.0 && rows > 10, "reduced weight average {reduced}, {rows} rows");
}
