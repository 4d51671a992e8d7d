//! Special pairs: weights of pair forces by the distance in bonds, against sums over all pairs by hand and against LAMMPS.

use galamost_engine::backend::Backend;
use galamost_engine::pipeline::DeviceChoice;
use galamost_plugin_api::snapshot::{Array, Link, Snapshot, Values};
use galamost_tests::{backend, columns, devices, has_compiler, plan_of, repository, started};

mod exact;
mod moving;

/// Weights that differ for all distances and for both kinds of potentials: those of `lammps/make.py`.
const WEIGHTS: &str = r#"special: { "1-2": (pair: 0.1, coulomb: 0.0), "1-3": (pair: 0.4, coulomb: 0.3), "1-4": (pair: 0.5, coulomb: 0.8333) }"#;
const LJ: &str = r#"LennardJones(r_cut: 2.5, pairs: { ("1", "1"): (epsilon: 1.0, sigma: 0.8),
    ("1", "2"): (epsilon: 0.7, sigma: 0.75, r_cut: 2.2), ("2", "2"): (epsilon: 0.5, sigma: 0.7, r_cut: 2.0) })"#;
const SCREENED: &str = "DebyeHueckel(r_cut: 4.0, prefactor: 1.0, kappa: 0.8)";

fn numbers(line: &str) -> Vec<f64> {
    line.split_whitespace().map_while(|w| w.parse().ok()).collect()
}

fn reference(file: &str) -> String {
    std::fs::read_to_string(repository().join("tests/special/lammps").join(file)).expect("a reference file")
}

/// The molecules of `rings.data`: rings with side chains, of two types, charged.
fn rings() -> Snapshot {
    let text = reference("rings.data");
    let length = ["xlo", "ylo", "zlo"].map(|word| {
        let ends = numbers(text.lines().find(|l| l.contains(word)).expect("box lengths"));
        ends[1] - ends[0]
    });
    let section = |title: &str| -> Vec<Vec<f64>> {
        let rest = text.split(title).nth(1).unwrap_or_default();
        rest.lines().skip(2).map(numbers).take_while(|r| !r.is_empty()).collect()
    };
    let mut s = Snapshot { dimensions: 3, box_length: length, ..Snapshot::default() };
    let types = [s.type_id("1"), s.type_id("2")];
    let atoms = section("\nAtoms # full");
    for r in &atoms {
        s.push(types[r[2] as usize - 1], [r[4], r[5], r[6]]);
    }
    let charges = atoms.iter().map(|r| r[3]).collect();
    s.arrays.insert("charge".into(), Array { width: 1, values: Values::Real(charges) });
    s.bond_types = vec!["1-1".into()];
    s.bonds = section("\nBonds").iter().map(|r| Link { kind: 0, tags: [r[2] as u32 - 1, r[3] as u32 - 1] }).collect();
    s
}

/// Forces and torques in tag order, energies of the components, and the virial of all.
#[derive(Debug, PartialEq)]
struct Outcome {
    force: Vec<f64>,
    energy: Vec<f64>,
    virial: [f64; 6],
    /// Sum of the particles' energies.
    shared: f64,
}

fn outcome(b: &mut dyn Backend, precision: &str) -> Outcome {
    let mut read = |name: &str| -> Vec<f64> {
        let bytes = b.read(name).unwrap_or_default();
        match precision {
            "Double" => bytes.as_chunks::<8>().0.iter().map(|x| f64::from_ne_bytes(*x)).collect(),
            _ => bytes.as_chunks::<4>().0.iter().map(|x| f64::from(f32::from_ne_bytes(*x))).collect(),
        }
    };
    let (forces, torques) = (read("force"), read("array.torque"));
    let rows = forces.as_chunks::<4>().0;
    let sums = b.sums().expect("sums").components;
    Outcome {
        force: rows.iter().flat_map(|f| f[..3].to_vec()).chain(torques).collect(),
        energy: sums.iter().map(|s| s.energy).collect(),
        virial: std::array::from_fn(|k| sums.iter().map(|s| s.virial[k]).sum()),
        shared: rows.iter().map(|f| f[3]).sum(),
    }
}

/// Forces on a state; `neighbors` are fields of the neighbor list.
fn found(s: &Snapshot, forces: &str, neighbors: &str, device: DeviceChoice, precision: &str) -> Outcome {
    let text = format!(
        "(precision: {precision}, neighbors: ({neighbors}), forces: [{forces}], integrators: [VelocityVerlet()], \
         stages: [(steps: 0, dt: 0.001)])"
    );
    let plan = plan_of(&text, s.clone(), device).unwrap_or_else(|e| panic!("{}", e.render()));
    let mut b = backend(&plan);
    plan.components.iter().for_each(|c| c.start(b.host()).expect("started"));
    b.begin_stage(&plan.stages[0], false).expect("forces");
    outcome(&mut *b, precision)
}

/// The largest deviation of two outcomes, relative to the largest force, energy and virial.
fn deviation(a: &Outcome, b: &Outcome) -> f64 {
    let of = |a: &[f64], b: &[f64]| {
        let largest = b.iter().fold(f64::MIN_POSITIVE, |m, x| m.max(x.abs()));
        galamost_tests::largest_difference(a, b) / largest
    };
    of(&a.force, &b.force).max(of(&a.energy, &b.energy)).max(of(&a.virial, &b.virial)).max(of(&[a.shared], &[b.shared]))
}
