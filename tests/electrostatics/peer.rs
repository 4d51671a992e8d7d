//! Energies, virials and forces of LAMMPS and OpenMM for the same files; see `lammps/make.py` and `openmm/make.py`.

use super::{charged, on};
use galamost_engine::pipeline::DeviceChoice;
use galamost_plugin_api::snapshot::{Link, Snapshot};
use galamost_tests::repository;

fn text(file: &str) -> String {
    let path = repository().join("tests/electrostatics").join(file);
    std::fs::read_to_string(path).expect("a reference file")
}

fn numbers(line: &str) -> Vec<f64> {
    line.split_whitespace().map_while(|w| w.parse().ok()).collect()
}

/// The system of a data file with a box around the origin.
fn system(name: &str) -> Snapshot {
    let text = text(&format!("lammps/{name}.data"));
    let length = ["xlo", "ylo", "zlo"].map(|word| {
        let line = text.lines().find(|l| l.contains(word)).expect("box lengths");
        let ends = numbers(line);
        ends[1] - ends[0]
    });
    let section = |title: &str| -> Vec<Vec<f64>> {
        let rest = text.split(title).nth(1).unwrap_or_default();
        rest.lines().skip(2).map(numbers).take_while(|r| !r.is_empty()).collect()
    };
    let particles: Vec<_> = section("\nAtoms # full").iter().map(|r| ([r[4], r[5], r[6]], r[3])).collect();
    let mut s = charged(length, &particles);
    s.bond_types = vec!["A-A".into()];
    s.bonds = section("\nBonds").iter().map(|r| Link { kind: 0, tags: [r[2] as u32 - 1, r[3] as u32 - 1] }).collect();
    s
}

/// Compares a method with a reference; `accuracy` is that of both together, in units of the force between unit charges at
/// unit distance.
fn compare(name: &str, reference: &str, component: &str, accuracy: f64) {
    let s = system(name);
    let exclude = if s.bonds.is_empty() { "" } else { ", neighbors: (exclude: [Bonds])" };
    let o = on(&s, &format!("forces: [{component}]{exclude}"), DeviceChoice::Cpu, "Double");
    let rows: Vec<Vec<f64>> = text(&format!("{reference}.txt")).lines().map(numbers).collect();
    assert_eq!(rows.len(), s.len() + 1);
    let square: f64 =
        rows[1..].iter().zip(&o.force).flat_map(|(a, b)| (0..3).map(move |k| (a[k] - b[k]).powi(2))).sum();
    let found = (square / s.len() as f64).sqrt();
    assert!(found < accuracy, "{name}, {reference}, {component}: forces differ by {found:.2e}");
    // an error of the force of every particle over the mean distance bounds what energy and virial may differ by
    let limit = accuracy * s.len() as f64 * (s.volume() / s.len() as f64).cbrt();
    assert!((o.energy - rows[0][0]).abs() < limit, "{component}: energy {} and {}", o.energy, rows[0][0]);
    // LAMMPS writes xx yy zz xy xz yz, OpenMM no virial
    for (virial, slot) in rows[0][1..].iter().zip([0, 3, 5, 1, 2, 4]) {
        assert!((o.virial[slot] - virial).abs() < limit, "{component}: {:?} and {:?}", o.virial, rows[0]);
    }
}

#[test]
fn ions_agree_with_lammps() {
    compare("ions", "lammps/ions-ewald", "Ewald(accuracy: 1e-7)", 1e-6);
    compare("ions", "lammps/ions-ewald", "Pppm(accuracy: 1e-5)", 2e-5);
    compare("ions", "lammps/ions-pppm", "Pppm(accuracy: 1e-5)", 4e-5);
}

/// Particle-mesh Ewald of OpenMM with a fine grid.
#[test]
fn ions_agree_with_openmm() {
    compare("ions", "openmm/ions-pme", "Ewald(accuracy: 1e-7)", 1e-6);
    compare("ions", "openmm/ions-pme", "Pppm(accuracy: 1e-5)", 2e-5);
}

#[test]
fn smeared_ions_agree_with_lammps() {
    compare("ions", "lammps/ions-slater", "Ewald(accuracy: 1e-7, r_cut: 5.0, charges: Slater(0.25))", 1e-6);
    compare("ions", "lammps/ions-slater", "Pppm(accuracy: 1e-5, charges: Slater(0.25))", 2e-5);
}

#[test]
fn chains_with_excluded_bonds_agree_with_lammps() {
    compare("polymers", "lammps/polymers-ewald", "Ewald(accuracy: 1e-7)", 1e-6);
    compare("polymers", "lammps/polymers-ewald", "Pppm(accuracy: 1e-5)", 2e-5);
}
