//! Energies, virials and forces of the styles that LAMMPS has, too. `lammps/make.py` wrote the numbers.

use galamost_engine::pipeline::DeviceChoice;
use galamost_plugin_api::component::Wants;
use galamost_plugin_api::snapshot::{Array, Snapshot, Values};
use galamost_tests::{devices, largest_difference, plan, registry, repository, run_plan, started};
use serde::Deserialize;
use std::fmt::Write as _;
use std::path::Path;

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

/// Energy, virial (xx, yy, zz, xy, xz, yz), forces and torques of a component.
struct Found {
    energy: f64,
    virial: [f64; 6],
    forces: Vec<f64>,
    torques: Vec<f64>,
}

fn found(component: &str, state: Snapshot, device: DeviceChoice) -> Found {
    let integrator = if component.starts_with("Dpd") { "GrootWarren" } else { "VelocityVerlet" };
    let text = format!(
        "(precision: Double, forces: [{component}], integrators: [{integrator}()], stages: [(steps: 0, dt: 0.001)])"
    );
    let mut b = started(&text, state, device);
    let sums = b.sums().expect("sums").components[0];
    let facts = b.facts().clone();
    let wants = Wants { particles: true, forces: true, ..Wants::default() };
    let columns = galamost_engine::backend::columns(&mut *b, &facts, wants).expect("columns");
    let array = |name: &str| match columns.arrays.get(name).map(|a| &a.values) {
        Some(Values::Real(values)) => values.clone(),
        _ => vec![],
    };
    Found {
        energy: sums.energy,
        virial: [0, 3, 5, 1, 2, 4].map(|k| sums.virial[k]),
        forces: array("force"),
        torques: array("torque"),
    }
}

/// Compares numbers with those of LAMMPS, relative to the largest.
fn near(found: &[f64], wanted: &[f64], what: &str) {
    assert_eq!(found.len(), wanted.len(), "{what}");
    let largest = wanted.iter().fold(0.0f64, |m, x| m.max(x.abs()));
    // of a thermostat without energy
    let deviation = largest_difference(found, wanted) / if largest > 0.0 { largest } else { 1.0 };
    assert!(deviation < 1e-10, "{what} differ by {deviation:e}");
}

/// Writes the tables that `make.py` writes.
fn tables(folder: &Path) {
    let write = |name: &str, head: &str, rows: Vec<[f64; 3]>| {
        let mut text = format!("{}\nN {} {head}\n\n", name.to_uppercase(), rows.len());
        for (k, [x, u, f]) in (1..).zip(rows) {
            writeln!(text, "{k} {x:?} {u:?} {f:?}").expect("a text");
        }
        std::fs::write(folder.join(format!("{name}.table")), text).expect("written");
    };
    let pair = |k: i32| {
        let r = 0.2 + 2.3 * (f64::from(k) / 4000.0);
        let q = 1.0 - r * r / 6.25;
        [r, 5.0 * q * q * q, 5.0 * 3.0 * q * q * 2.0 * r / 6.25]
    };
    write("pair", "R 0.2 2.5", (0..=4000).map(pair).collect());
    let bond = |k: i32| {
        let r = 0.25 + 2.0 * (f64::from(k) / 100.0);
        let s = r - 1.0;
        [r, s * s * (30.0 - 10.0 * s), -s * (60.0 - 30.0 * s)]
    };
    write("bond", "FP -105.0 15.0 EQ 1.0", (0..=100).map(bond).collect());
    let angle = |k: i32| {
        let t = 180.0 * (f64::from(k) / 100.0);
        let s = t / 180.0 - 0.625;
        [t, s * s * (40.0 + 20.0 * s), -s * (80.0 + 60.0 * s) / 180.0]
    };
    let slope = |s: f64| -(80.0 + 120.0 * s) / (180.0 * 180.0);
    write("angle", &format!("FP {:?} {:?}", slope(-0.625), slope(0.375)), (0..=100).map(angle).collect());
}

/// All styles on the CPU, and every third one on the emulated device.
#[test]
fn styles_agree_with_lammps() {
    agree_with_lammps(|device, k| device == DeviceChoice::Cpu || k % 3 == 0);
}

#[test]
#[ignore = "half a minute"]
fn all_styles_agree_with_lammps_on_the_emulated_device() {
    agree_with_lammps(|device, k| device == DeviceChoice::Emulated && k % 3 != 0);
}

fn agree_with_lammps(wanted: impl Fn(DeviceChoice, usize) -> bool) {
    let text = std::fs::read_to_string(repository().join("tests/reference/lammps/styles.ron")).expect("the references");
    let styles: Vec<Style> = ron::from_str(&text).expect("references");
    let reader = galamost::files::Reader::open(&repository().join("tests/formats/shares/chains.data"), registry())
        .expect("opened");
    let mut state = reader.read(None).expect("a state");
    for (i, v) in state.velocity.iter_mut().enumerate() {
        *v = std::array::from_fn(|k| (((7 * i + 3 * k) % 11) as f64 - 5.0) / 8.0);
    }
    let charges = (0..state.len()).map(|i| 0.3 * ((i % 5) as f64 - 2.0)).collect();
    state.arrays.insert("charge".into(), Array { width: 1, values: Values::Real(charges) });
    let folder = tempfile::tempdir().expect("a folder");
    tables(folder.path());
    for device in devices() {
        for (_, s) in styles.iter().enumerate().filter(|(k, _)| wanted(device, *k)) {
            let component = s.component.replace("FOLDER", &folder.path().display().to_string());
            let f = found(&component, state.clone(), device);
            let of = |what: &str| format!("{device:?}: {} and {}: {what}", s.component, s.style);
            near(&[f.energy], &[s.energy], &of("energies"));
            near(&f.virial, &s.virial, &of("virials"));
            near(&f.forces[..s.forces.len()], &s.forces, &of("forces"));
        }
    }
}

#[derive(Deserialize)]
struct Ellipsoids {
    position: Vec<[f64; 3]>,
    quaternion: Vec<[f64; 4]>,
    cases: Vec<Ellipsoid>,
}

#[derive(Deserialize)]
struct Ellipsoid {
    component: String,
    style: String,
    energy: f64,
    virial: [f64; 6],
    forces: Vec<[f64; 3]>,
    torques: Vec<[f64; 3]>,
}

#[test]
fn ellipsoids_agree_with_lammps() {
    let text = std::fs::read_to_string(repository().join("tests/reference/lammps/oriented.ron")).expect("references");
    let reference: Ellipsoids = ron::from_str(&text).expect("references");
    let mut state = Snapshot { dimensions: 3, box_length: [9.0; 3], ..Snapshot::default() };
    let a = state.type_id("A");
    reference.position.iter().for_each(|x| _ = state.push(a, *x));
    let mut real = |name: &str, width: u32, values: Vec<f64>| {
        state.arrays.insert(name.into(), Array { width, values: Values::Real(values) });
    };
    real("inert", 3, vec![1.0; 3 * reference.position.len()]);
    // the axis is the body's z
    let axis = |[x, y, z, w]: &[f64; 4]| [2.0 * (x * z + w * y), 2.0 * (y * z - w * x), 1.0 - 2.0 * (x * x + y * y)];
    real("orientation", 3, reference.quaternion.iter().flat_map(axis).collect());
    real("quaternion", 4, reference.quaternion.as_flattened().to_vec());
    for device in devices() {
        for c in &reference.cases {
            let f = found(&c.component, state.clone(), device);
            let of = |what: &str| format!("{device:?}: {} and {}: {what}", c.component, c.style);
            near(&[f.energy], &[c.energy], &of("energies"));
            near(&f.virial, &c.virial, &of("virials"));
            near(&f.forces, c.forces.as_flattened(), &of("forces"));
            near(&f.torques, c.torques.as_flattened(), &of("torques"));
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
