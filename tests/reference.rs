//! Numbers that components must give, computed independently of the program.

use galamost::pipeline::DeviceChoice;
use galamost_plugin_api::snapshot::{Link, Snapshot};
use galamost_tests::{plan_of, repository, run_plan};
use serde::Deserialize;

#[derive(Deserialize)]
struct Case {
    component: String,
    rows: Vec<(f64, f64, f64)>,
}

/// Particles at these distances from the origin along (1, 2, 2)/3, one pair each run.
fn pair_at(r: f64) -> Snapshot {
    let mut s = Snapshot { dimensions: 3, box_length: [20.0; 3], ..Snapshot::default() };
    let a = s.type_id("A");
    s.push(a, [9.9, 0.0, 0.0]);
    // across the border of the box
    let x = 9.9 + r / 3.0;
    s.push(a, [if x > 10.0 { x - 20.0 } else { x }, 2.0 * r / 3.0, 2.0 * r / 3.0]);
    s
}

#[test]
fn pairs_give_their_formulas() {
    let text = std::fs::read_to_string(repository().join("tests/reference/pairs.ron")).expect("pairs.ron");
    let cases: Vec<Case> = ron::from_str(&text).expect("rows");
    let mut n = 0;
    for case in &cases {
        for &(r, u, f) in &case.rows {
            n += 1;
            let text = format!("(precision: Double, forces: [{}], stages: [(steps: 0, dt: 0.01)])", case.component);
            let plan = plan_of(&text, pair_at(r), DeviceChoice::Cpu).unwrap_or_else(|e| panic!("{}", e.render()));
            let (fr, energy) = plan.components[0].pair().expect("a pair").evaluate(0, 0, r * r);
            let near = |x: f64, y: f64| (x - y).abs() < 1e-12 * y.abs().max(1.0);
            assert!(near(energy, u) && near(fr * r, f), "{} at {r}: U {energy} F {}", case.component, fr * r);
            // DPD adds a random force, which the loop's numbers then hold too
            if case.component.starts_with("Dpd") {
                continue;
            }
            let sums = run_plan(&plan).unwrap_or_else(|e| panic!("{}", e.render())).1.sums().expect("sums");
            let loose = |x: f64, y: f64| (x - y).abs() < 1e-11 * y.abs().max(1.0);
            let virial = sums.components[0].virial;
            assert!(loose(sums.components[0].energy, u), "{} at {r}", case.component);
            assert!(loose(virial[0] + virial[3] + virial[5], r * f), "{} at {r}: virial {virial:?}", case.component);
            // xy : xx = 2 : 1 along this line
            assert!(loose(virial[1], 2.0 * virial[0]) && loose(virial[4], virial[3]), "{virial:?}");
        }
    }
    assert!(n >= 30, "{n} rows");
}

/// U = k (r − r0)² without a factor ½, unless `convention: Half` asks for it.
#[test]
fn bonds_give_their_formulas() {
    for (r, k, r0) in [(0.8, 3.0, 1.0), (1.7, 10.0, 0.0), (1.0, 2.5, 1.0)] {
        for (convention, factor) in [("", 1.0), (", convention: Half", 0.5)] {
            let mut s = pair_at(r);
            s.bond_types = vec!["X".into()];
            s.bonds = vec![Link { kind: 0, tags: [0, 1] }];
            let text = format!(
                "(precision: Double, forces: [HarmonicBond(bonds: {{\"X\": (k: {k:?}, r0: {r0:?})}}{convention})], stages: [(steps: 0, dt: 0.01)])"
            );
            let plan = plan_of(&text, s, DeviceChoice::Cpu).unwrap_or_else(|e| panic!("{}", e.render()));
            let sums =
                run_plan(&plan).unwrap_or_else(|e| panic!("{}", e.render())).1.sums().expect("sums").components[0];
            let (u, f) = (factor * k * (r - r0) * (r - r0), -2.0 * factor * k * (r - r0));
            assert!((sums.energy - u).abs() < 1e-11, "{} and {u}", sums.energy);
            let trace = sums.virial[0] + sums.virial[3] + sums.virial[5];
            assert!((trace - r * f).abs() < 1e-11, "{trace} and {}", r * f);
        }
    }
}
