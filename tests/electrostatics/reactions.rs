//! Charges that reactions change: energies and pressures are those of a run that starts with these charges.

use galamost_tests::{csv, galamost, has_compiler, words};
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
