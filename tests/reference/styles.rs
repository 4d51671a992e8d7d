//! Energies, virials and forces of the styles that LAMMPS has, too. `lammps/make.py` wrote the numbers.

use galamost_plugin_api::component::Wants;
use galamost_plugin_api::snapshot::Values;
use galamost_tests::{devices, largest_difference, plan, registry, repository, run_plan, started};
use serde::Deserialize;

#[derive(Deserialize)]
struct Style {
    component: String,
    style: String,
    energy: f64,
    /// xx, yy, zz, xy, xz, yz.
    virial: Vec<f64>,
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

/// A cutoff beyond half the box is an error that names the copies with room for it. Their number does not change the energy of a
/// particle and the pressure of a crystal.
#[test]
fn copies_have_room_for_any_cutoff() {
    let text = |copies: &str| {
        format!(
            "(precision: Double, initial: [Lattice(lattice: Fcc, cells: [2, 2, 2], density: 1.0){copies}], \
             forces: [LennardJones(r_cut: 3.0, pairs: {{ (\"A\", \"A\"): (epsilon: 1.0, sigma: 1.0) }})], \
             integrators: [VelocityVerlet()], stages: [(steps: 0, dt: 0.001)])"
        )
    };
    for device in devices() {
        let said = plan(&text(""), device).expect_err("too small").render();
        assert!(said.contains("add Replicate(times: [2, 2, 2]) to `initial` for a larger box"), "{said}");
        let found = [2, 3, 4].map(|n| {
            let copies = format!(", Replicate(times: [{n}, {n}, {n}])");
            let plan = plan(&text(&copies), device).unwrap_or_else(|e| panic!("{}", e.render()));
            let sums = run_plan(&plan).unwrap_or_else(|e| panic!("{}", e.render())).1.sums().expect("sums");
            let particles = plan.snapshot.len() as f64;
            [sums.components[0].energy, sums.components[0].virial[0]].map(|x| x / particles)
        });
        for other in &found[1..] {
            let deviation = largest_difference(other, &found[0]) / found[0][0].abs();
            assert!(deviation < 1e-12, "{device:?}: {found:?}");
        }
    }
}
