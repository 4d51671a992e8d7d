//! Energies, virials and forces of the styles that LAMMPS has, too. `lammps/make.py` wrote the numbers.

use galamost_plugin_api::component::Wants;
use galamost_plugin_api::snapshot::Values;
use galamost_tests::{devices, largest_difference, registry, repository, started};
use serde::Deserialize;

#[derive(Deserialize)]
struct Style {
    component: String,
    style: String,
    energy: f64,
    /// xx, yy, zz, xy, xz, yz.
    virial: [f64; 6],
    /// Those on the first molecule.
    forces: Vec<f64>,
}

#[test]
fn styles_agree_with_lammps() {
    let text = std::fs::read_to_string(repository().join("tests/reference/lammps/styles.ron")).expect("the references");
    let styles: Vec<Style> = ron::from_str(&text).expect("references");
    let reader = galamost::files::Reader::open(&repository().join("tests/formats/shares/chains.data"), registry())
        .expect("opened");
    let state = reader.read(None).expect("a state");
    for device in devices() {
        for s in &styles {
            let text = format!(
                "(precision: Double, forces: [{}], integrators: [VelocityVerlet()], stages: [(steps: 0, dt: 0.001)])",
                s.component
            );
            let mut b = started(&text, state.clone(), device);
            let sums = b.sums().expect("sums").components[0];
            let facts = b.facts().clone();
            let wants = Wants { forces: true, ..Wants::default() };
            let columns = galamost_engine::backend::columns(&mut *b, &facts, wants).expect("columns");
            let Values::Real(forces) = &columns.arrays["force"].values else { panic!("forces are numbers") };
            let near = |found: &[f64], wanted: &[f64], what: &str| {
                let largest = wanted.iter().fold(0.0f64, |m, x| m.max(x.abs()));
                let deviation = largest_difference(found, wanted) / largest;
                assert!(
                    deviation < 1e-10,
                    "{device:?}: {} and {}: {what} differ by {deviation:e}",
                    s.component,
                    s.style
                );
            };
            near(&[sums.energy], &[s.energy], "energies");
            near(&[0, 3, 5, 1, 2, 4].map(|k| sums.virial[k]), &s.virial, "virials");
            near(&forces[..s.forces.len()], &s.forces, "forces");
        }
    }
}
