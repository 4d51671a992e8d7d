//! The dielectric constant of independent dipoles, and their response to a field.

use galamost_tests::{csv, devices, galamost, plan_in, run_plan, words};
use std::collections::BTreeMap;
use std::f64::consts::PI;

const VOLUME: f64 = 1000.0;
const DIMERS: usize = 60;

/// Stiff dimers of two opposite charges without any forces between dimers, in a field along z.
fn rotors(field: f64, steps: u64, every: u64, analyzer: &str) -> String {
    format!(
        "(seed: 5, precision: Double, initial: [Polymers(box: [10.0, 10.0, 10.0], bond_length: 0.8, \
         molecules: [(molecule: \"AB\", count: {DIMERS})], types: {{\"A\": (charge: 1.0), \"B\": (charge: -1.0)}}), Velocities(kT: 1.0)], \
         forces: [HarmonicBond(bonds: {{\"A-B\": (k: 50.0, r0: 0.8)}}), ElectricField(field: [0.0, 0.0, {field:?}])], \
         integrators: [Langevin(kT: 1.0, gamma: 1.0)], \
         analyzers: [Dielectric(every: {every}, start: {every}, file: \"m.csv\", kT: 1.0, coulomb: 5.0{analyzer})], \
         stages: [(steps: {steps}, dt: 0.01)])"
    )
}

fn table(text: &str, device: galamost_engine::pipeline::DeviceChoice) -> BTreeMap<String, Vec<f64>> {
    let folder = tempfile::tempdir().expect("a folder");
    let plan = plan_in(&folder.path().join("p.ron"), text, device).unwrap_or_else(|e| panic!("{}", e.render()));
    run_plan(&plan).unwrap_or_else(|e| panic!("{}", e.render()));
    csv(&folder.path().join("m.csv"))
}

/// Returns ⟨μ_z⟩, ⟨μ_z²⟩ and ⟨μ²⟩ of one dimer: the length d has the weight d² exp(−50 (d − 0.8)²), the direction exp(E μ_z).
fn exact(field: f64) -> [f64; 3] {
    let mut sums = [0.0; 4];
    for k in 1..2000 {
        let d = 1e-3 * f64::from(k);
        for c in 0..200 {
            let z = d * ((f64::from(c) + 0.5) / 100.0 - 1.0);
            let weight = d * d * (field * z - 50.0 * (d - 0.8).powi(2)).exp();
            [1.0, z, z * z, d * d].iter().zip(&mut sums).for_each(|(x, s)| *s += weight * x);
        }
    }
    [sums[1] / sums[0], sums[2] / sums[0], sums[3] / sums[0]]
}

#[test]
#[ignore = "3 seconds"]
fn independent_dipoles_have_the_exact_fluctuation() {
    let t = table(&rotors(0.0, 60_000, 20, ""), galamost_engine::pipeline::DeviceChoice::Cpu);
    let last = t["epsilon"].len() - 1;
    let (found, error, kirkwood) = (t["epsilon"][last], t["epsilon_error"][last], t["kirkwood"][last]);
    let expected = 1.0 + 4.0 * PI * 5.0 / (3.0 * VOLUME) * DIMERS as f64 * exact(0.0)[2];
    assert!(error < 0.15 * (expected - 1.0), "the error is {error}");
    assert!((found - expected).abs() < 3.0 * error, "{found} ± {error}, expected {expected}");
    assert!((kirkwood - 1.0).abs() < 3.0 * error / (expected - 1.0), "{kirkwood}");
    assert!(t["epsilon_error"][..15].iter().all(|e| e.is_nan()) && t["epsilon_error"][15] > 0.0);
}

/// In a field E, the mean dipole is that of the Boltzmann distribution, and its fluctuations decrease as they should. To the first
/// order in E both follow from ε without the field: ⟨M_z⟩ = (ε − 1) V E/4πC.
#[test]
#[ignore = "3 seconds"]
fn dipoles_in_a_field_respond_as_their_fluctuations_say() {
    let field = 0.6;
    let t = table(&rotors(field, 60_000, 20, ""), galamost_engine::pipeline::DeviceChoice::Cpu);
    let [z, z2, d2] = exact(field);
    let (mean, error) = galamost_tests::tolerances::estimate(&t["Mz"]);
    let expected = DIMERS as f64 * z;
    // a mean dipole that is wrong by a third of its value fails: the limit for the standard error is 5 %
    assert!((mean - expected).abs() < 3.0 * error && error < 0.05 * expected, "{mean} ± {error}, expected {expected}");
    let linear = DIMERS as f64 * exact(0.0)[2] / 3.0 * field;
    // the next order is (E μ)²/15, 2 % at E μ = 0.5
    assert!((expected / linear - 1.0).abs() < 0.03, "{expected} and {linear}");
    let last = t["epsilon"].len() - 1;
    let (found, error) = (t["epsilon"][last], t["epsilon_error"][last]);
    let epsilon = 1.0 + 4.0 * PI * 5.0 / (3.0 * VOLUME) * DIMERS as f64 * (d2 - z * z);
    assert!(z * z < 0.2 * z2 && (found - epsilon).abs() < 3.0 * error, "{found} ± {error}, expected {epsilon}");
}

/// The first samples on every device, from the same configuration.
#[test]
fn all_devices_see_the_same_dipoles() {
    let tables: Vec<_> = devices().into_iter().map(|d| table(&rotors(0.5, 20, 4, ""), d)).collect();
    for t in &tables[1..] {
        for name in ["Mx", "My", "Mz", "epsilon", "kirkwood"] {
            for (a, b) in t[name].iter().zip(&tables[0][name]) {
                assert!((a - b).abs() < 1e-9 * b.abs().max(1.0), "{name}: {a} and {b}");
            }
        }
    }
}

/// The total charge is 0, but molecules are charged: an error at the first sample.
#[test]
fn charged_molecules_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = rotors(0.0, 10, 1, "")
        .replace("molecule: \"AB\"", "molecule: \"AA\"")
        .replace("A-B", "*")
        .replace("count: 60)", "count: 60), (molecule: \"BB\", count: 60)");
    std::fs::write(folder.path().join("p.ron"), text).expect("written");
    let out = galamost(folder.path(), &["--pipeline", "p.ron", "--quiet", "--device", "cpu"]);
    assert_eq!(out.status.code(), Some(1), "{}", words(&out));
    assert!(words(&out).contains("the molecule of particle 0 has the charge 2"), "{}", words(&out));
}
