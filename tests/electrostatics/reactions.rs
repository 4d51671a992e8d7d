//! Charges that reactions change: energies and pressures are those of a run that starts with these charges, and analyzers of charges use
//! those of each sample.

use galamost_engine::pipeline::DeviceChoice;
use galamost_plugin_api::snapshot::{Array, Snapshot, Values};
use galamost_tests::{csv, galamost, has_compiler, plan_of, run_plan, words};
use std::path::Path;

/// Runs reactions that set charges, or reads their last state. Returns what was said, and the row of the last state.
fn run(folder: &Path, charges: &str, force: &str, device: &str, again: bool) -> (bool, String, Vec<(String, f64)>) {
    let [from, to] = charges.split('|').collect::<Vec<_>>().try_into().expect("charges before and after");
    let made = format!(
        "Polymers(box: [7.0, 7.0, 7.0], bond_length: 0.97, distance: 1.0, molecules: [(molecule: \"C\", count: 40), \
         (molecule: \"A\", count: 40)], types: {{ \"C\": (charge: {from}), \"A\": (charge: -{from}) }}), \
         LinkTypes(bonds: [\"C-A\"]), Velocities(kT: 1.0)"
    );
    let (initial, steps, state) = match again {
        false => (made.as_str(), 40, "GalamostXml(at_end: true, file: \"q.xml\", digits: 17),"),
        true => ("GalamostXml(file: \"q.xml\")", 0, ""),
    };
    let text = format!(
        "(seed: 5, precision: Double, initial: [{initial}], \
         forces: [Wca(pairs: {{ (\"*\", \"*\"): (epsilon: 1.0, sigma: 0.9) }}), \
                  HarmonicBond(bonds: {{ \"*\": (k: 20.0, r0: 1.0) }}), {force}], integrators: [Langevin(kT: 1.0, gamma: 1.0)], \
         updaters: [Reactions(every: 5, r_cut: 1.6, reactions: [(kind: Join, of: (\"C\", \"A\"), p: 0.5, charges: {to})])], \
         analyzers: [{state} Thermo(at_end: true, file: \"t.csv\")], stages: [(steps: {steps}, dt: 0.002)])"
    );
    std::fs::write(folder.join("p.ron"), text).expect("written");
    let out = galamost(folder, &["--pipeline", "p.ron", "--device", device, "--overwrite", "--no-record"]);
    let row = if out.status.success() { csv(&folder.join("t.csv")) } else { Default::default() };
    let columns = row
        .into_iter()
        .filter(|(name, _)| name == "pressure" || name.contains(force.split('(').next().expect("a name")));
    (out.status.success(), words(&out), columns.map(|(name, v)| (name, *v.last().expect("a row"))).collect())
}

/// The net charge changes, or charges become 16,000 times as large as at the start.
#[test]
#[ignore = "3 seconds"]
fn reactions_may_change_charges() {
    let mesh = "Pppm(accuracy: 1e-2, r_cut: 2.0, alpha: 1.2, order: 5, grid: [16, 16, 16])";
    let waves = "Ewald(accuracy: 1e-2, r_cut: 2.0, alpha: 1.2, k_max: 4.0)";
    let devices = if has_compiler() { &["cpu", "emulated"][..] } else { &["cpu"] };
    for device in devices {
        for (charges, force) in [
            ("1.0|(0.3, -0.1)", mesh),
            ("1.0|(0.3, -0.1)", waves),
            ("0.0005|(8.0, -8.0)", mesh),
            ("0.0005|(8.0, -7.0)", mesh),
        ] {
            let f = tempfile::tempdir().expect("a folder");
            let [first, second] = [false, true].map(|again| run(f.path(), charges, force, device, again));
            assert!(first.0 && second.0, "{} {}", first.1, second.1);
            assert_eq!(first.2.len(), 3, "{:?}", first.2);
            for ((name, a), (_, b)) in first.2.iter().zip(&second.2) {
                println!("{device}, {charges}, {name}: {a} and {b}");
                // sums of about 80 terms in another order, and positions of 17 digits
                assert!((a - b).abs() < 1e-9 * b.abs().max(1.0), "{device}, {charges}, {name}: {a} and {b}");
            }
        }
    }
}

#[test]
#[ignore = "3 seconds"]
fn a_slab_must_stay_neutral() {
    let devices = if has_compiler() { &["cpu", "emulated"][..] } else { &["cpu"] };
    for device in devices {
        let f = tempfile::tempdir().expect("a folder");
        let slab = "Ewald(accuracy: 1e-2, r_cut: 2.0, alpha: 1.2, k_max: 4.0, slab: Z)";
        let (neutral, said, _) = run(f.path(), "1.0|(0.3, -0.3)", slab, device, false);
        assert!(neutral, "{said}");
        let (done, said, _) = run(f.path(), "1.0|(0.3, -0.1)", slab, device, false);
        assert!(!done && said.contains("Ewald: the slab correction needs a neutral system"), "{said}");
    }
}

/// Eight pairs at rest without charges, which reactions charge at once, and a particle with this charge.
fn pairs(charge: f64) -> Snapshot {
    let mut s = Snapshot { dimensions: 3, box_length: [20.0; 3], ..Snapshot::default() };
    let [c, a, d] = ["C", "A", "D"].map(|name| s.type_id(name));
    for k in 0..8u32 {
        let at: [f64; 3] = std::array::from_fn(|axis| if (k >> axis) & 1 == 1 { 5.0 } else { -5.0 });
        s.push(c, at);
        s.push(a, [at[0] + 0.6, at[1] + 0.1 * f64::from(k), at[2]]);
    }
    s.push(d, [0.3, 0.7, 1.1]);
    s.bond_types = vec!["C-A".into()];
    let mut charges = vec![0.0; 16];
    charges.push(charge);
    s.arrays.insert("charge".into(), Array { width: 1, values: Values::Real(charges) });
    s
}

const CHARGING: &str = "seed: 5, precision: Double, integrators: [VelocityVerlet()], updaters: [Reactions(every: 10, r_cut: 1.2, \
    reactions: [(kind: Join, of: (\"C\", \"A\"), p: 1.0, charges: (1.0, -1.0))])]";

/// |Σ z e^(i q·r)|²/N after the reactions, mean over all q up to 1.
fn structure(s: &Snapshot, charge: f64) -> f64 {
    let q = std::f64::consts::TAU / 20.0;
    let charges = (0..17).map(|tag| if tag == 16 { charge } else { [1.0, -1.0][tag % 2] });
    let charged: Vec<_> = s.position.iter().zip(charges).filter(|(_, z)| *z != 0.0).collect();
    let (mut sum, mut vectors) = (0.0, 0.0);
    for k in 0..343i32 {
        let n = [k / 49 - 3, k / 7 % 7 - 3, k % 7 - 3].map(f64::from);
        let square = n.iter().map(|n| n * n).sum::<f64>();
        if square == 0.0 || q * square.sqrt() > 1.0 {
            continue;
        }
        let (mut re, mut im) = (0.0, 0.0);
        for (r, z) in &charged {
            let phase = q * (0..3).map(|axis| n[axis] * r[axis]).sum::<f64>();
            re += z * phase.cos();
            im += z * phase.sin();
        }
        sum += (re * re + im * im) / charged.len() as f64;
        vectors += 1.0;
    }
    sum / vectors
}

/// The number of charged particles is that of each sample; samples without any do not count.
#[test]
fn structure_factors_follow_the_number_of_charged_particles() {
    for charge in [1.0, 0.0] {
        let (f, s) = (tempfile::tempdir().expect("a folder"), pairs(charge));
        let expected = structure(&s, charge);
        let path = |name: &str| f.path().join(name);
        let one = |name: &str, start: u64| {
            format!(
                "ChargeStructure(every: 20, start: {start}, file: {:?}, q_max: 1.0, bins: 1)",
                path(name).display().to_string()
            )
        };
        let analyzers = [one("both.csv", 0), one("late.csv", 20)].join(", ");
        let text = format!("({CHARGING}, analyzers: [{analyzers}], stages: [(steps: 20, dt: 0.001)])");
        let plan = plan_of(&text, s, DeviceChoice::Cpu).unwrap_or_else(|e| panic!("{}", e.render()));
        run_plan(&plan).unwrap_or_else(|e| panic!("{}", e.render()));
        // a single charge scatters by 1 at any q
        let mean = if charge == 0.0 { expected } else { 0.5 * (1.0 + expected) };
        for (name, value) in [("late.csv", expected), ("both.csv", mean)] {
            let found = csv(&path(name))["S_ZZ"][0];
            // sums of 17 terms
            assert!((found - value).abs() < 1e-10, "{name}, {charge}: {found} instead of {value}");
        }
    }
}

/// A change of charge is not transport: the conductivity is that of stages whose charges are constant.
#[test]
fn the_conductivity_needs_constant_charges() {
    let errors = |stages: &str| {
        let analyzer = "Conductivity(every: 5, start: 25, file: \"c.csv\", kT: 1.0, lags: 2)";
        let text = format!("({CHARGING}, analyzers: [{analyzer}], stages: [{stages}])");
        plan_of(&text, pairs(1.0), DeviceChoice::Cpu).err().map(|e| e.render()).unwrap_or_default()
    };
    let expected = "Conductivity needs constant charges, which Reactions may change in stage `measure`; sample in a stage without it";
    let react = "(name: \"react\", steps: 20, dt: 0.01)";
    let found = errors(&format!("{react}, (name: \"measure\", steps: 20, dt: 0.01)"));
    assert!(found.contains(expected), "{found}");
    assert_eq!(errors(&format!("{react}, (name: \"measure\", steps: 20, dt: 0.01, updaters: [])")), "");
}
