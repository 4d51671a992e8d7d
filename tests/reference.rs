//! Numbers that components must give, computed independently of the program.

use galamost::pipeline::DeviceChoice;
use galamost::selftest::standard_system;
use galamost_plugin_api::snapshot::{Array, Link, Snapshot, Values};
use galamost_plugin_api::views::Sums;
use galamost_tests::{largest_difference, plan_of, repository, run_plan, unwrapped};
use serde::Deserialize;

#[derive(Deserialize)]
struct Case {
    component: String,
    rows: Vec<(f64, f64, f64)>,
    #[serde(default)]
    charges: Option<(f64, f64)>,
    #[serde(default)]
    diameters: Option<(f64, f64)>,
}

fn cases(file: &str) -> Vec<Case> {
    let text = std::fs::read_to_string(repository().join("tests/reference").join(file)).expect("a file of rows");
    ron::from_str(&text).expect("rows")
}

/// Energy and virial of the case's component.
fn sums_of(case: &Case, s: Snapshot) -> Sums {
    let text = format!("(precision: Double, forces: [{}], stages: [(steps: 0, dt: 0.01)])", case.component);
    let plan = plan_of(&text, s, DeviceChoice::Cpu).unwrap_or_else(|e| panic!("{}", e.render()));
    run_plan(&plan).unwrap_or_else(|e| panic!("{}", e.render())).1.sums().expect("sums").components[0]
}

/// Particles at these distances from the origin along (1, 2, 2)/3, one pair each run.
fn pair_at(case: &Case, r: f64) -> Snapshot {
    let mut s = Snapshot { dimensions: 3, box_length: [20.0; 3], ..Snapshot::default() };
    let a = s.type_id("A");
    s.push(a, [9.9, 0.0, 0.0]);
    // across the border of the box
    let x = 9.9 + r / 3.0;
    s.push(a, [if x > 10.0 { x - 20.0 } else { x }, 2.0 * r / 3.0, 2.0 * r / 3.0]);
    for (name, given) in [("charge", case.charges), ("diameter", case.diameters)] {
        if let Some((i, j)) = given {
            s.arrays.insert(name.into(), Array { width: 1, values: Values::Real(vec![i, j]) });
        }
    }
    s
}

#[test]
fn pairs_give_their_formulas() {
    let mut n = 0;
    for case in &cases("pairs.ron") {
        for &(r, u, f) in &case.rows {
            n += 1;
            let text = format!("(precision: Double, forces: [{}], stages: [(steps: 0, dt: 0.01)])", case.component);
            let plan = plan_of(&text, pair_at(case, r), DeviceChoice::Cpu).unwrap_or_else(|e| panic!("{}", e.render()));
            // the potential alone knows only charges and diameters of 1
            if case.charges.is_none() && case.diameters.is_none() {
                let (fr, energy) = plan.components[0].pair().expect("a pair").evaluate(0, 0, r * r);
                let near = |x: f64, y: f64| (x - y).abs() < 1e-12 * y.abs().max(1.0);
                assert!(near(energy, u) && near(fr * r, f), "{} at {r}: U {energy} F {}", case.component, fr * r);
            }
            // DPD adds a random force, which the loop's numbers then hold too
            if case.component.starts_with("Dpd") {
                continue;
            }
            let sums = sums_of(case, pair_at(case, r));
            let loose = |x: f64, y: f64| (x - y).abs() < 1e-11 * y.abs().max(1.0);
            let virial = sums.virial;
            assert!(loose(sums.energy, u), "{} at {r}: {} and {u}", case.component, sums.energy);
            assert!(loose(virial[0] + virial[3] + virial[5], r * f), "{} at {r}: virial {virial:?}", case.component);
            // xy : xx = 2 : 1 along this line
            assert!(loose(virial[1], 2.0 * virial[0]) && loose(virial[4], virial[3]), "{virial:?}");
        }
    }
    assert!(n >= 330, "{n} rows");
}

/// A bond across the border of the box.
#[test]
fn bonds_give_their_formulas() {
    let mut n = 0;
    for case in &cases("bonds.ron") {
        for &(r, u, f) in &case.rows {
            n += 1;
            let mut s = pair_at(case, r);
            s.bond_types = vec!["X".into()];
            s.bonds = vec![Link { kind: 0, tags: [0, 1] }];
            let sums = sums_of(case, s);
            let near = |x: f64, y: f64| (x - y).abs() < 1e-11 * y.abs().max(1.0);
            assert!(near(sums.energy, u), "{} at {r}: U {}", case.component, sums.energy);
            let trace = sums.virial[0] + sums.virial[3] + sums.virial[5];
            assert!(near(trace, r * f), "{} at {r}: r F {trace}", case.component);
        }
    }
    assert!(n >= 30, "{n} rows");
}

/// Without repulsion DPD is its thermostat, and a pair's own kT is as good as the component's.
#[test]
fn the_thermostat_of_dpd_is_dpd_without_repulsion() {
    let forces = |component: &str| {
        let text = format!(
            "(precision: Double, forces: [{component}], integrators: [GrootWarren()], stages: [(steps: 5, dt: 0.002)])"
        );
        let plan = plan_of(&text, standard_system(), DeviceChoice::Cpu).unwrap_or_else(|e| panic!("{}", e.render()));
        let (_, mut b) = run_plan(&plan).unwrap_or_else(|e| panic!("{}", e.render()));
        assert_eq!(b.sums().expect("sums").components[0].energy, 0.0);
        unwrapped(&mut *b).1
    };
    let all = |name: &str, kt: &str, row: &str| {
        let rows = ["(\"A\", \"A\")", "(\"A\", \"B\")", "(\"B\", \"B\")"].map(|p| format!("{p}: ({row})")).join(", ");
        forces(&format!("{name}(r_cut: 1.6, kT: {kt}, pairs: {{ {rows} }})"))
    };
    let dpd = all("Dpd", "1.5", "a: 0.0, gamma: 4.5, s: 0.7");
    assert!(largest_difference(&dpd, &all("DpdThermostat", "1.5", "gamma: 4.5, s: 0.7")) < 1e-12);
    assert!(largest_difference(&dpd, &all("DpdThermostat", "0.3", "gamma: 4.5, s: 0.7, kT: 1.5")) < 1e-12);
    assert!(largest_difference(&dpd, &all("DpdThermostat", "0.3", "gamma: 4.5, s: 0.7")) > 1e-3);
}
