//! Simple liquids, potentials by formula and by table, temperature and pressure control.

use super::run;
use galamost_tests::{csv, mean};

#[test]
fn example_01_lj_fluid() {
    let (_keep, folder) = run("01-lj-fluid");
    let t = csv(&folder.join("01-lj-fluid.csv"));
    assert_eq!(t["step"].len(), 101);
    let late = |name: &str| mean(&t[name][20..]);
    assert!((late("kT") - 1.2).abs() < 0.02, "kT {}", late("kT"));
    // Thol et al. 2016, truncated at 3σ: P 0.969, U/N −4.543; bounds of four standard errors and the tolerance
    assert!((late("pressure") - 0.969).abs() < 0.15, "P {}", late("pressure"));
    assert!((late("potential") / 1000.0 + 4.543).abs() < 0.03, "U/N {}", late("potential") / 1000.0);
}

#[test]
fn example_02_lj_nve_drift() {
    let (_keep, folder) = run("02-lj-nve-drift");
    let e = &csv(&folder.join("02-lj-nve-drift.csv"))["total"];
    let m = mean(e);
    let rms = mean(&e.iter().map(|x| (x - m).powi(2)).collect::<Vec<_>>()).sqrt();
    assert!(rms / m.abs() < 2.2e-5, "ΔE = {:e}", rms / m.abs());
}

#[test]
fn example_05_two_stages() {
    let (_keep, folder) = run("05-two-stages");
    let t = csv(&folder.join("05-two-stages.csv"));
    assert_eq!(t["step"].len(), 61, "one row at the border of the stages, not two");
    let kt = mean(&t["kT"][52..]);
    assert!((kt - 1.0).abs() < 0.1, "kT {kt} after the ramp");
}

#[test]
fn example_07_soft_mixture() {
    let (_keep, folder) = run("07-soft-mixture");
    let t = csv(&folder.join("07-soft-mixture.csv"));
    let late = |name: &str| mean(&t[name][40..]);
    assert!((late("kT") - 1.0).abs() < 0.03, "kT {}", late("kT"));
    // a run five times as long, with another seed: 4.836 ± 0.011, 2915.9 ± 1.1, 556.7 ± 1.1
    for (name, value, tolerance) in
        [("pressure", 4.836, 0.12), ("Gaussian", 2915.9, 15.0), ("DebyeHueckel", 556.7, 12.0)]
    {
        assert!((late(name) - value).abs() < tolerance, "{name} {}", late(name));
    }
    assert!(folder.join("07-soft-mixture.gsd").metadata().expect("a trajectory").len() > 800 * 12 * 5);
}

#[test]
fn example_10_langevin_start() {
    let (_keep, folder) = run("10-langevin-start");
    let t = csv(&folder.join("10-langevin-start.csv"));
    let at = |step: f64, name: &str| t[name][t["step"].iter().position(|s| *s == step).expect("a row")];
    assert!(at(0.0, "potential") > 1e12 && at(300.0, "potential") < -2500.0);
    assert!(at(2300.0, "potential") < -5400.0 && at(2300.0, "kinetic") == 0.0, "it has not reached a minimum");
    let kt = mean(&t["kT"][t["kT"].len() - 30..]);
    assert!((kt - 1.0).abs() < 0.04, "kT {kt}");
}

#[test]
fn example_17_npt_liquid() {
    let (_keep, folder) = run("17-npt-liquid");
    let t = csv(&folder.join("17-npt-liquid.csv"));
    let late = |name: &str| mean(&t[name][60..]);
    // 1/⟨V⟩ of the state with ρ 0.80; four standard errors and the tolerance of the reference
    let density = 1000.0 / late("volume");
    assert!((density - 0.80).abs() < 0.012, "density {density}");
    assert!((late("kT") - 1.0).abs() < 0.03 && (late("pressure") - 1.42).abs() < 0.15, "P {}", late("pressure"));
    let (first, last) = (t["conserved"][60], t["conserved"][t["conserved"].len() - 1]);
    assert!((first - last).abs() < 15.0, "conserved from {first} to {last}");
    assert!((late("length_x") - late("length_y")).abs() < 1e-9);
}

#[test]
fn example_15_expression() {
    let (_keep, folder) = run("15-expression");
    let t = csv(&folder.join("15-expression.csv"));
    assert_eq!(t["step"].len(), 121);
    let e = &t["total"][41..];
    let m = mean(e);
    let rms = mean(&e.iter().map(|x| (x - m).powi(2)).collect::<Vec<_>>()).sqrt();
    assert!(rms / m.abs() < 1e-4, "ΔE = {:e}", rms / m.abs());
    // 500 particles without forces between them would have −a I₁(a/kT)/I₀(a/kT) = −0.316 each
    let field = mean(&t["ExternalExpression"][41..]) / 500.0;
    assert!((-0.5..-0.1).contains(&field), "{field} for each particle in the field");
}

#[test]
fn example_38_table() {
    let (_keep, folder) = run("38-table");
    let t = csv(&folder.join("38-table.csv"));
    let late = |name: &str| mean(&t[name][20..]);
    assert!((late("kT") - 1.2).abs() < 0.02, "kT {}", late("kT"));
    // the numbers and bounds of example_01_lj_fluid
    assert!((late("pressure") - 0.969).abs() < 0.15, "P {}", late("pressure"));
    assert!((late("potential") / 1000.0 + 4.543).abs() < 0.03, "U/N {}", late("potential") / 1000.0);
}

#[test]
fn example_39_tables() {
    let (_keep, folder) = run("39-tables");
    let t = csv(&folder.join("39-tables.csv"));
    let e = &t["total"][42..];
    let m = mean(e);
    let rms = mean(&e.iter().map(|x| (x - m).powi(2)).collect::<Vec<_>>()).sqrt();
    assert!(rms / m.abs() < 1e-5, "ΔE = {:e}", rms / m.abs());
    for name in ["PairTable", "BondTable", "AngleTable", "DihedralTable"] {
        assert!(mean(&t[name][42..]).abs() > 1.0, "{name} has no energy");
    }
}
