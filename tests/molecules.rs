//! Neighbor lists inside of molecules and between them, against all pairs.

use galamost::selftest::standard_system;
use galamost_engine::pipeline::DeviceChoice;
use galamost_plugin_api::snapshot::{Array, Snapshot, Values};
use galamost_tests::{has_compiler, plan_of, run_plan, unwrapped};

const LJ: &str = r#"LennardJones(r_cut: 2.5, pairs: {
    ("A", "A"): (epsilon: 1.0, sigma: 1.0), ("A", "B"): (epsilon: 1.0, sigma: 1.0), ("B", "B"): (epsilon: 1.0, sigma: 1.0) })"#;

/// The standard system with chains twice as long as its bonds make them; some particles belong to no molecule.
fn given() -> Snapshot {
    let mut s = standard_system();
    let molecule = (0..s.len() as i32).map(|i| if i % 20 == 7 { -1 } else { i / 20 }).collect();
    s.arrays.insert("molecule".into(), Array { width: 1, values: Values::Int(molecule) });
    s
}

/// Energy of pairs within 2.5 that are taken.
fn energy(s: &Snapshot, take: impl Fn(usize, usize) -> bool) -> f64 {
    let l = s.box_length[0];
    let mut sum = 0.0;
    for i in 0..s.len() {
        for j in (0..i).filter(|j| take(i, *j)) {
            let d2: f64 = (0..3)
                .map(|k| {
                    let d = s.position[i][k] - s.position[j][k];
                    (d - l * (d / l).round()).powi(2)
                })
                .sum();
            if d2 < 6.25 {
                let r6 = d2.powi(-3);
                sum += 4.0 * (r6 * r6 - r6);
            }
        }
    }
    sum
}

fn found(s: &Snapshot, device: DeviceChoice, precision: &str, neighbors: &str) -> f64 {
    let text =
        format!("(precision: {precision}, neighbors: ({neighbors}), forces: [{LJ}], stages: [(steps: 0, dt: 0.01)])");
    let plan = plan_of(&text, s.clone(), device).unwrap_or_else(|e| panic!("{}", e.render()));
    run_plan(&plan).unwrap_or_else(|e| panic!("{}", e.render())).1.sums().expect("sums").components[0].energy
}

#[test]
#[ignore = "3 seconds"]
fn neighbor_lists_of_molecules_contain_the_right_pairs() {
    let (chains, given) = (standard_system(), given());
    // chains of ten by bonds, of twenty by the array
    let by_bonds = |i: usize, j: usize| i / 10 == j / 10;
    let by_array = |i: usize, j: usize| i / 20 == j / 20 && i % 20 != 7 && j % 20 != 7;
    let bonded = |i: usize, j: usize| by_bonds(i, j) && i.abs_diff(j) == 1;
    let mut devices = vec![DeviceChoice::Cpu];
    if has_compiler() {
        devices.push(DeviceChoice::Emulated);
    }
    type Take<'a> = &'a dyn Fn(usize, usize) -> bool;
    let cases: [(&str, &Snapshot, &str, Take); 5] = [
        ("bonds, inside", &chains, "only: SameMolecule", &by_bonds),
        ("bonds, between", &chains, "only: OtherMolecules", &|i, j| !by_bonds(i, j)),
        ("array, inside", &given, "only: SameMolecule", &by_array),
        ("array, between", &given, "only: OtherMolecules, buffer: 0.1", &|i, j| !by_array(i, j)),
        ("bonds, inside, no bonded pairs", &chains, "only: SameMolecule, exclude: [Bonds]", &|i, j| {
            by_bonds(i, j) && !bonded(i, j)
        }),
    ];
    for (what, s, neighbors, take) in cases {
        let truth = energy(s, take);
        for device in &devices {
            for (precision, limit) in [("Double", 1e-12), ("Mixed", 1e-4), ("Single", 1e-4)] {
                let e = found(s, *device, precision, neighbors);
                println!("{what}, {device:?} {precision}: U = {e:.6}, all pairs {truth:.6}");
                assert!((e / truth - 1.0).abs() < limit, "{what}, {device:?} {precision}: {e} and {truth}");
            }
        }
    }
    let all = found(&given, DeviceChoice::Cpu, "Double", "");
    let parts = ["only: SameMolecule", "only: OtherMolecules"].map(|n| found(&given, DeviceChoice::Cpu, "Double", n));
    assert!((all / (parts[0] + parts[1]) - 1.0).abs() < 1e-12);
}

/// The list is built again as particles move, and the molecules go with their tags.
#[test]
#[ignore = "3 seconds"]
fn molecules_survive_the_sort_of_particles() {
    if !has_compiler() {
        return;
    }
    let text = format!(
        "(seed: 5, precision: Double, neighbors: (buffer: 0.2, only: SameMolecule, exclude: [Bonds]), forces: [{LJ}, \
         HarmonicBond(bonds: {{ \"A-A\": (k: 20.0, r0: 1.0), \"A-B\": (k: 20.0, r0: 1.0), \"B-B\": (k: 20.0, r0: 1.0) }})], \
         integrators: [NoseHoover(kT: 1.0, tau: 0.5)], stages: [(steps: 80, dt: 0.005)])"
    );
    let run = |device| {
        let plan = plan_of(&text, given(), device).unwrap_or_else(|e| panic!("{}", e.render()));
        let (_, mut b) = run_plan(&plan).unwrap_or_else(|e| panic!("{}", e.render()));
        let builds = b.list_report().expect("a list").builds;
        (unwrapped(&mut *b).0, builds)
    };
    let ((cpu, _), (device, builds)) = (run(DeviceChoice::Cpu), run(DeviceChoice::Emulated));
    let far = galamost_tests::largest_difference(&cpu, &device);
    println!("{builds} builds, positions {far:.1e}");
    assert!(builds >= 3 && far < 1e-9, "{builds} builds, positions {far:e}");
}
