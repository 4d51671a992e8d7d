//! Rows of parameters by type: wildcards, rows without interaction, mixing rules, types that a bonded component does not
//! name.

use galamost_engine::pipeline::DeviceChoice;
use galamost_engine::plan::Plan;
use galamost_plugin_api::snapshot::{Link, Snapshot};
use galamost_tests::{columns, devices, plan_of, run_plan};

/// Particles of the types A, B, C at random positions, with bonds of two types.
fn state() -> Snapshot {
    let mut s = Snapshot { dimensions: 3, box_length: [9.0; 3], ..Snapshot::default() };
    (s.types, s.bond_types) = (["A", "B", "C"].map(String::from).into(), ["soft", "stiff"].map(String::from).into());
    for k in 0..216u32 {
        let place = [k % 6, k / 6 % 6, k / 36].map(|i| 1.5 * f64::from(i) - 4.0);
        let shift = [0.2, 0.3, 0.1].map(|a: f64| a * (f64::from(k) * 1.7 + 10.0 * a).sin());
        s.push(k % 3, std::array::from_fn(|i| place[i] + shift[i]));
        if k % 6 < 5 {
            s.bonds.push(Link { kind: k % 2, tags: [k, k + 1] });
        }
    }
    s
}

fn plan_for(forces: &str, state: Snapshot, device: DeviceChoice, steps: u32) -> Plan {
    let stage = format!("integrators: [VelocityVerlet()], stages: [(steps: {steps}, dt: 0.001)]");
    let text = format!("(precision: Double, forces: [{forces}], {stage})");
    plan_of(&text, state, device).unwrap_or_else(|e| panic!("{}", e.render()))
}

fn plan(forces: &str, device: DeviceChoice) -> Plan {
    plan_for(forces, state(), device, 3)
}

/// The energy of the initial state.
fn energy(forces: &str, state: Snapshot, device: DeviceChoice) -> f64 {
    let plan = plan_for(forces, state, device, 0);
    let mut backend = run_plan(&plan).unwrap_or_else(|e| panic!("{}", e.render())).1;
    backend.sums().expect("sums").components.iter().map(|c| c.energy).sum()
}

/// Positions after three steps, to the bit, and the energy.
fn result(forces: &str, device: DeviceChoice) -> (Vec<[f64; 3]>, f64) {
    let mut backend = run_plan(&plan(forces, device)).unwrap_or_else(|e| panic!("{}", e.render())).1;
    (columns(&mut *backend).position.into_vec(), energy(forces, state(), device))
}

fn same(forces: &str, spelled_out: &str) {
    for device in devices() {
        let (a, b) = (result(forces, device), result(spelled_out, device));
        assert!(a == b, "{forces}\ndiffers from\n{spelled_out}\non {device:?}: {} and {}", a.1, b.1);
    }
}

const LJ: &str = "LennardJones(r_cut: 2.5, mode: ShiftForce, ";

/// Later rows win, and `*` stands for all types.
#[test]
fn wildcards_stand_for_all_types() {
    let all = |ab: &str, others: &str| {
        let row = |a: &str, b: &str, row: &str| format!("(\"{a}\", \"{b}\"): {row}, ");
        format!(
            "{LJ} pairs: {{ {}{}{}{}{}{} }})",
            row("A", "A", others),
            row("A", "B", ab),
            row("A", "C", others),
            row("B", "B", others),
            row("C", "B", others),
            row("C", "C", others)
        )
    };
    let (one, two) = ("(epsilon: 1.0, sigma: 1.0)", "(epsilon: 0.5, sigma: 1.1, r_cut: 2.0)");
    same(&format!("{LJ} pairs: {{ (\"*\", \"*\"): {one} }})"), &all(one, one));
    same(&format!("{LJ} pairs: {{ (\"*\", \"*\"): {one}, (\"B\", \"A\"): {two} }})"), &all(two, one));
    // the last row that matches counts
    same(&format!("{LJ} pairs: {{ (\"A\", \"B\"): {two}, (\"*\", \"*\"): {one} }})"), &all(one, one));
    let a = format!(
        "{LJ} pairs: {{ (\"*\", \"*\"): {two}, (\"A\", \"*\"): {one}, (\"B\", \"*\"): {one}, (\"C\", \"C\"): {one} }})"
    );
    same(&a, &all(one, one));
}

/// A pair of types whose row is `None` has no force: the energy is that of the other pairs.
#[test]
fn none_removes_a_pair() {
    let zero = "(epsilon: 0.0, sigma: 1.0)";
    let one = "(epsilon: 1.0, sigma: 1.0)";
    for mode in ["Cut", "ShiftEnergy", "ShiftForce", "Smooth(2.0)"] {
        let with = |row: &str| {
            format!(
                "LennardJones(r_cut: 2.5, mode: {mode}, pairs: {{ (\"*\", \"*\"): {one}, (\"A\", \"B\"): {row}, (\"C\", \"C\"): {row} }})"
            )
        };
        same(&with("None"), &with(zero));
    }
    let p = plan("Wca(pairs: { (\"*\", \"*\"): None, (\"A\", \"A\"): (epsilon: 1.0, sigma: 1.0) })", DeviceChoice::Cpu);
    let at = |i: u32, j: u32| p.components[0].pair().expect("a pair").evaluate(i, j, 1.0).expect("no panic");
    assert_eq!((at(0, 0).1, at(0, 1), at(2, 2)), (1.0, (0.0, 0.0), (0.0, 0.0)));
}

/// Mixed parameters are those that the rules give, for each potential that mixes.
#[test]
#[ignore = "3 seconds"]
fn mixing_rules_fill_missing_pairs() {
    let (eps, sig): ([f64; 3], [f64; 3]) = ([1.0, 0.5, 1.3], [1.0, 1.2, 0.9]);
    let rules: [(&str, fn(f64, f64, f64, f64) -> (f64, f64)); 3] = [
        ("LorentzBerthelot", |e, f, s, t| ((e * f).sqrt(), 0.5 * (s + t))),
        ("Geometric", |e, f, s, t| ((e * f).sqrt(), (s * t).sqrt())),
        ("SixthPower", |e, f, s, t| {
            let (x, y) = (s.powi(3), t.powi(3));
            ((e * f).sqrt() * (2.0 * x * y / (x * x + y * y)), (0.5 * (s.powi(6) + t.powi(6))).powf(1.0 / 6.0))
        }),
    ];
    let names = ["A", "B", "C"];
    for (head, tail) in [
        ("LennardJones(r_cut: 2.5", ""),
        ("Wca(", ""),
        ("Lj96(r_cut: 2.5, mode: ShiftEnergy", ""),
        ("Mie(r_cut: 2.5", ", n: 10.0, m: 5.0"),
    ] {
        let comma = if head.ends_with('(') { "" } else { ", " };
        let row = |i: usize, j: usize, e: f64, s: f64| {
            format!("(\"{}\", \"{}\"): (epsilon: {e:?}, sigma: {s:?}{tail}), ", names[i], names[j])
        };
        let like: String = (0..3).map(|i| row(i, i, eps[i], sig[i])).collect();
        for (rule, mix) in rules {
            let mut all = like.clone();
            for (i, j) in [(0, 1), (0, 2), (1, 2)] {
                let (e, s) = mix(eps[i], eps[j], sig[i], sig[j]);
                all += &row(i, j, e, s);
            }
            same(
                &format!("{head}{comma}mixing: {rule}, pairs: {{ {like} }})"),
                &format!("{head}{comma}pairs: {{ {all} }})"),
            );
            // a row of its own counts
            let own = row(0, 1, 0.3, 1.0);
            let (e, s) = mix(eps[0], eps[1], sig[0], sig[1]);
            let replaced = all.replace(&row(0, 1, e, s), &own);
            assert_ne!(replaced, all);
            let text = format!("{head}{comma}mixing: {rule}, pairs: {{ {like}{own} }})");
            same(&text, &format!("{head}{comma}pairs: {{ {replaced} }})"));
        }
    }
    // cutoffs of single types are mixed as σ
    let text = "LennardJones(r_cut: 2.5, mixing: Geometric, pairs: { (\"*\", \"*\"): None, \
        (\"A\", \"A\"): (epsilon: 1.0, sigma: 1.0, r_cut: 1.6), (\"B\", \"B\"): (epsilon: 1.0, sigma: 1.0) })";
    assert_eq!(plan(text, DeviceChoice::Cpu).components[0].needs.cutoff, 2.5);
}

/// Each bonded component acts on the types that it names.
#[test]
fn bonded_components_act_on_the_types_they_name() {
    // what users had to write before
    let (fene, harmonic) = ("(k: 30.0, R0: 4.0)", "(k: 10.0, r0: 1.4)");
    let both = format!("Fene(bonds: {{ \"stiff\": {fene} }}), HarmonicBond(bonds: {{ \"soft\": {harmonic} }})");
    let padded = format!(
        "Fene(bonds: {{ \"stiff\": {fene}, \"soft\": (k: 1e-300, R0: 4.4) }}), \
         HarmonicBond(bonds: {{ \"soft\": {harmonic}, \"stiff\": (k: 0.0, r0: 1.0) }})"
    );
    same(&both, &padded);
    same(
        &format!("HarmonicBond(bonds: {{ \"*\": {harmonic} }})"),
        &format!("HarmonicBond(bonds: {{ \"soft\": {harmonic}, \"stiff\": {harmonic} }})"),
    );
    // every potential of bonds has parameters without a force
    for one in [
        "Fene(bonds: { \"stiff\": (k: 30.0, R0: 4.0) })",
        "HarmonicBond(bonds: { \"stiff\": (k: 10.0, r0: 1.0) })",
        "MorseBond(bonds: { \"stiff\": (depth: 3.0, r0: 1.0, a: 2.0) })",
        "QuarticBond(bonds: { \"stiff\": (k2: 3.0, k3: -1.0, k4: 2.0, r0: 1.0) })",
    ] {
        let forces = one.replace(" })", ", \"soft\": None })");
        let mut stiff = state();
        stiff.bonds.retain(|l| l.kind == 1);
        let (all, alone) = (energy(&forces, state(), DeviceChoice::Cpu), energy(&forces, stiff, DeviceChoice::Cpu));
        assert!((all - alone).abs() <= 1e-12 * alone.abs() && alone != 0.0, "{one}: {all} and {alone}");
    }
}
