//! Simple liquids, potentials by formula and by table, temperature and pressure control.

use super::{run, run_with};
use galamost_tests::tolerances::{agrees, below, bound, controlled, near};
use galamost_tests::{csv, mean};

#[test]
fn example_01_lj_fluid() {
    let (_keep, folder) = run("01-lj-fluid");
    let t = csv(&folder.join("01-lj-fluid.csv"));
    assert_eq!(t["step"].len(), 101);
    agrees("example 01: kT", &t["kT"][20..]);
    agrees("example 01: P", &t["pressure"][20..]);
    agrees("example 01: U", &t["potential"][20..]);
}

#[test]
#[ignore = "10 seconds"]
fn example_02_lj_nve_drift() {
    let (_keep, folder) = run("02-lj-nve-drift");
    let e = &csv(&folder.join("02-lj-nve-drift.csv"))["total"];
    let m = mean(e);
    let rms = mean(&e.iter().map(|x| (x - m).powi(2)).collect::<Vec<_>>()).sqrt();
    below("example 02: noise of the energy", rms / m);
}

#[test]
#[ignore = "half a minute"]
fn example_05_two_stages() {
    let (_keep, folder) = run("05-two-stages");
    let t = csv(&folder.join("05-two-stages.csv"));
    assert_eq!(t["step"].len(), 61, "one row at the border of the stages, not two");
    near("example 05: kT after the ramp", mean(&t["kT"][52..]));
}

#[test]
#[ignore = "tens of seconds"]
fn example_07_soft_mixture() {
    let (_keep, folder) = run("07-soft-mixture");
    let t = csv(&folder.join("07-soft-mixture.csv"));
    agrees("example 07: kT", &t["kT"][40..]);
    agrees("example 07: P", &t["pressure"][40..]);
    agrees("example 07: Gaussian", &t["Gaussian"][40..]);
    agrees("example 07: DebyeHueckel", &t["DebyeHueckel"][40..]);
    assert!(folder.join("07-soft-mixture.gsd").metadata().expect("a trajectory").len() > 800 * 12 * 5);
}

#[test]
#[ignore = "5 seconds"]
fn example_10_langevin_start() {
    let (_keep, folder) = run("10-langevin-start");
    let t = csv(&folder.join("10-langevin-start.csv"));
    let at = |step: f64, name: &str| t[name][t["step"].iter().position(|s| *s == step).expect("a row")];
    assert!(at(0.0, "potential") > 1e12 && at(300.0, "potential") < -2500.0);
    assert!(at(2300.0, "potential") < -5400.0 && at(2300.0, "kinetic") == 0.0, "it has not reached a minimum");
    agrees("example 10: kT", &t["kT"][t["kT"].len() - 30..]);
}

#[test]
#[ignore = "tens of seconds"]
fn example_17_npt_liquid() {
    let (_keep, folder) = run("17-npt-liquid");
    let t = csv(&folder.join("17-npt-liquid.csv"));
    let late = |name: &str| mean(&t[name][60..]);
    agrees("example 17: V", &t["volume"][60..]);
    agrees("example 17: kT", &t["kT"][60..]);
    agrees("example 17: P", &t["pressure"][60..]);
    let (first, last) = (t["conserved"][60], t["conserved"][t["conserved"].len() - 1]);
    let drift = (first - last).abs();
    assert!(drift < bound("example 17: drift of the conserved quantity"), "conserved from {first} to {last}");
    assert!((late("length_x") - late("length_y")).abs() < 1e-9);
}

#[test]
#[ignore = "tens of seconds"]
fn example_15_expression() {
    let (_keep, folder) = run("15-expression");
    let t = csv(&folder.join("15-expression.csv"));
    assert_eq!(t["step"].len(), 121);
    let e = &t["total"][41..];
    let m = mean(e);
    let rms = mean(&e.iter().map(|x| (x - m).powi(2)).collect::<Vec<_>>()).sqrt();
    below("example 15: noise of the energy", rms / m);
    // 500 particles without forces between them would have −a I₁(a/kT)/I₀(a/kT) = −0.316 each
    let field = mean(&t["ExternalExpression"][41..]) / 500.0;
    near("example 15: energy of a particle in the field", field);
}

#[test]
#[ignore = "tens of seconds"]
fn example_38_table() {
    let (_keep, folder) = run("38-table");
    let t = csv(&folder.join("38-table.csv"));
    agrees("example 38: kT", &t["kT"][20..]);
    agrees("example 38: P", &t["pressure"][20..]);
    agrees("example 38: U", &t["potential"][20..]);
}

#[test]
#[ignore = "5 seconds"]
fn example_39_tables() {
    let (_keep, folder) = run("39-tables");
    let t = csv(&folder.join("39-tables.csv"));
    let e = &t["total"][42..];
    let m = mean(e);
    let rms = mean(&e.iter().map(|x| (x - m).powi(2)).collect::<Vec<_>>()).sqrt();
    below("example 39: noise of the energy", rms / m);
    for name in ["PairTable", "BondTable", "AngleTable", "DihedralTable"] {
        assert!(mean(&t[name][42..]).abs() > 1.0, "{name} has no energy");
    }
}

#[test]
#[ignore = "a minute"]
fn example_72_electrolyte() {
    // three times as long: the osmotic coefficient is noisy
    let (_keep, folder) = run_with("72-electrolyte", &["stages[0].steps=60000"]);
    let (t, g) = (csv(&folder.join("72-electrolyte.csv")), csv(&folder.join("72-electrolyte.rdf.csv")));
    let energy: Vec<f64> = t["Pppm"][200..].iter().map(|u| u / 500.0).collect();
    agrees("example 72: Coulomb energy", &energy);
    // the kinetic part of the pressure is replaced by that of kT = 1
    let rows = t["pressure"].iter().zip(t["kinetic"].iter().zip(&t["volume"])).skip(200);
    let osmotic: Vec<f64> = rows.map(|(p, (k, v))| 1.0 + (p * v - 2.0 / 3.0 * k) / 500.0).collect();
    agrees("example 72: osmotic coefficient", &osmotic);
    agrees("example 72: kT", &t["kT"][200..]);
    // the bin of ions in contact
    assert!(g["C-A"][10] > 1.8 && g["C-C"][10] < 0.7, "{} and {}", g["C-A"][10], g["C-C"][10]);
}

#[test]
#[ignore = "10 seconds"]
fn example_87_replicas() {
    let (_keep, folder) = run("87-replicas");
    let tables: Vec<_> = (0..4).map(|k| csv(&folder.join(format!("87-replicas.{k}.csv")))).collect();
    let late = |k: usize, name: &str| tables[k][name][40..].to_vec();
    agrees("example 87: kT of replica 0", &late(0, "kT"));
    agrees("example 87: kT of replica 3", &late(3, "kT"));
    // U/N of the equation of state, as in example 01; nine tenths of the noise of P are that of U
    let pressure = controlled(&late(1, "pressure"), &late(1, "potential"), -4.543 * 512.0);
    agrees("example 87: P of replica 1", &pressure);
    let pressures: Vec<f64> = (0..4).map(|k| mean(&late(k, "pressure"))).collect();
    assert!(pressures.is_sorted(), "{pressures:?}");
    assert!(folder.join("87-replicas.3.ron").exists());
}

#[test]
#[ignore = "tens of seconds"]
fn example_92_dielectric() {
    let (_keep, folder) = run("92-dielectric");
    agrees("example 92: kT", &csv(&folder.join("92-dielectric.thermo.csv"))["kT"][100..]);
    let t = csv(&folder.join("92-dielectric.csv"));
    let last = |name: &str| t[name][t[name].len() - 1];
    let (epsilon, error, kirkwood) = (last("epsilon"), last("epsilon_error"), last("kirkwood"));
    near("example 92: dielectric constant", epsilon);
    let relative = error / (epsilon - 1.0);
    assert!(relative < 0.15, "{epsilon} ± {error}");
    // both follow from ⟨M²⟩ − ⟨M⟩²: kirkwood = (ε − 1) 3VkT/(4πC Σμ²). A dipole of two charges 1.5 at the bond length 0.5 is 0.75; they
    // shorten the bond by q²/(2k r²) = 1.8 %, and Σμ² by 4 %
    let dipoles = 108.0 * 0.75f64.powi(2);
    let expected = (epsilon - 1.0) * 3.0 * 7.0f64.powi(3) / (4.0 * std::f64::consts::PI * dipoles);
    assert!((kirkwood / expected - 1.0).abs() < 0.05, "{kirkwood} and {expected}");
}
