//! Analyzers in triclinic boxes: against freud and NumPy, and in boxes of other shapes that have the same lattice. Files with
//! triclinic boxes, read by other programs.

use galamost::files;
use galamost::selftest::standard_system;
use galamost_engine::pipeline::DeviceChoice;
use galamost_plugin_api::snapshot::Snapshot;
use galamost_plugin_api::tilt::{image_shift, to_space};
use galamost_tests::{
    columns, csv, devices, in_box, plan_of, python, python_with, registry, repository, run_plan, skip, words,
};
use std::path::Path;
use std::process::Command;

const SOFT: &str = r#"HarmonicRepulsion(r_cut: 1.6, pairs: {
    ("A", "A"): (alpha: 20.0), ("A", "B"): (alpha: 10.0), ("B", "B"): (alpha: 20.0) })"#;

/// Runs 60 steps with all analyzers that support triclinic boxes.
fn measured(folder: &Path, s: &Snapshot, precision: &str, device: DeviceChoice) {
    let file = |name: &str| folder.join(name);
    let text = format!(
        "(seed: 4, precision: {precision}, forces: [{SOFT}], integrators: [VelocityVerlet()], analyzers: [\
         Gsd(every: 10, file: {:?}), Rdf(every: 10, file: {:?}, r_max: 3.0, bins: 60), \
         Rdf(every: 10, file: {:?}, r_max: 3.0, bins: 20, of: Molecules), \
         Msd(every: 10, file: {:?}, points: 4, levels: 1, axes: true), Vacf(every: 10, file: {:?}, points: 4, levels: 1), \
         StructureFactor(every: 10, file: {:?}, q_max: 3.0, bins: 6, vectors: 10000)], stages: [(steps: 60, dt: 0.004)])",
        file("t.gsd"),
        file("rdf.csv"),
        file("centers.csv"),
        file("msd.csv"),
        file("vacf.csv"),
        file("sq.csv"),
    );
    let plan = plan_of(&text, s.clone(), device).unwrap_or_else(|e| panic!("{}", e.render()));
    run_plan(&plan).unwrap_or_else(|e| panic!("{}", e.render()));
}

#[test]
fn tables_agree_with_freud_and_numpy() {
    let Some(python) = python() else { return };
    let tilt = [0.3, -0.2, 0.4];
    let mut s = standard_system();
    s.position.iter_mut().for_each(|r| *r = to_space(*r, tilt));
    s.tilt = tilt;
    let folder = tempfile::tempdir().expect("a folder");
    measured(folder.path(), &s, "Double", DeviceChoice::Cpu);
    let script = repository().join("tests/python/triclinic.py");
    let out = Command::new(python).arg(script).arg(folder.path()).output().expect("python runs");
    assert!(out.status.success(), "{}", words(&out));
    println!("{}", words(&out));
}

/// A box that is tilted by whole edges has the lattice of the rectangular one, so all tables are the same, on every device.
#[test]
#[ignore = "3 seconds"]
fn boxes_of_the_same_lattice_have_the_same_tables() {
    let s = standard_system();
    let folder = tempfile::tempdir().expect("a folder");
    for (precision, limit) in [("Double", 1e-9), ("Mixed", 1e-3), ("Single", 1e-3)] {
        let reference = folder.path().join(precision);
        std::fs::create_dir(&reference).expect("a folder");
        measured(&reference, &s, precision, DeviceChoice::Cpu);
        for device in devices() {
            let other = folder.path().join(format!("{precision}-{device:?}").replace(['(', ')'], ""));
            std::fs::create_dir(&other).expect("a folder");
            measured(&other, &in_box(&s, [1.0, 0.0, -1.0]), precision, device);
            for name in ["rdf.csv", "centers.csv", "msd.csv", "vacf.csv", "sq.csv"] {
                let [a, b] = [&reference, &other].map(|f| csv(&f.join(name)));
                // cosines in single precision: errors of 2·10⁻⁸ √N in ρ, 6·10⁻⁸ √S in S
                let limit = if name == "sq.csv" { f64::max(limit, 1e-7) } else { limit };
                assert!(a.keys().eq(b.keys()), "{name}");
                for (column, values) in &a {
                    let largest = values.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
                    let far = galamost_tests::largest_difference(values, &b[column]);
                    assert!(far <= limit * largest, "{device:?} {precision} {name}, {column}: {far} of {largest}");
                }
            }
        }
    }
}

/// `Rdf` follows a box whose tilt factors change; `Msd` and `StructureFactor` need constant ones, which the check says.
#[test]
fn changing_tilts_are_followed_or_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |analyzer: &str| {
        format!(
            "(precision: Double, forces: [], integrators: [VelocityVerlet()], analyzers: [{analyzer}], \
             updaters: [BoxResize(every: 10, xy: Ramp(from: 0.0, to: 2.0, steps: 200))], stages: [(steps: 200, dt: 1e-9)])"
        )
    };
    for (name, fields) in [("Msd", "every: 10"), ("StructureFactor", "every: 10, q_max: 3.0")] {
        let text = at(&format!("{name}(file: \"f.csv\", {fields})"));
        let e = plan_of(&text, standard_system(), DeviceChoice::Cpu).map(drop).expect_err("refused").render();
        assert!(e.contains(&format!("{name} needs constant tilt factors of the box; BoxResize changes them")), "{e}");
    }
    // the last sample is that of a constant box with the same particles
    for device in devices() {
        let [moving, still] = ["moving", "still"].map(|name| folder.path().join(format!("{name}.csv")));
        let run = |text: &str, s: Snapshot| {
            let plan = plan_of(text, s, device).unwrap_or_else(|e| panic!("{}", e.render()));
            run_plan(&plan).unwrap_or_else(|e| panic!("{}", e.render())).1
        };
        let rdf =
            |file: &Path, start: u64| format!("Rdf(file: {file:?}, every: 50, start: {start}, r_max: 3.0, bins: 50)");
        let mut b = run(&at(&rdf(&moving, 200)), standard_system());
        let (tilt, box_length) = (b.tilt(), b.box_length());
        assert!(tilt[0].abs() < 0.6, "{tilt:?}");
        let now = columns(&mut *b);
        let last = Snapshot { tilt, box_length, position: now.position, velocity: now.velocity, ..standard_system() };
        let text = format!(
            "(precision: Double, forces: [], integrators: [VelocityVerlet()], analyzers: [{}], stages: [(steps: 1, dt: 1e-9)])",
            rdf(&still, 0)
        );
        run(&text, last);
        assert_eq!(csv(&moving), csv(&still), "{device:?}");
        assert!(csv(&moving)["A-A"].iter().sum::<f64>() > 10.0);
    }
}

/// Files with a triclinic box, as other programs read them: edges and positions.
#[test]
#[ignore = "5 seconds"]
fn other_programs_read_the_box() {
    let python = match python_with("MDAnalysis, ase, gsd.hoomd, freud, numpy") {
        Ok(python) => python,
        Err(why) => return skip("Python with MDAnalysis, ASE, gsd and freud", &why),
    };
    let folder = tempfile::tempdir().expect("a folder");
    let tilt = [0.3, -0.2, 0.4];
    let mut s = standard_system();
    s.box_length = [10.0, 11.0, 12.0];
    // ASE reads only symbols of elements
    s.types = vec!["C".into(), "O".into()];
    let from = standard_system().box_length;
    s.position.iter_mut().for_each(|r| *r = to_space(std::array::from_fn(|k| r[k] * s.box_length[k] / from[k]), tilt));
    s.tilt = tilt;
    for (name, fields) in [
        ("a.gro", "digits: 9"),
        ("a.pdb", ""),
        ("a.gsd", ""),
        ("a.dcd", ""),
        ("a.xtc", "precision: 1e5"),
        ("a.trr", "double: true"),
        ("a.dump", "digits: 17"),
        ("a.xyz", "digits: 17"),
    ] {
        let w = files::Writer::create(&folder.path().join(name), None, fields, &s, registry())
            .unwrap_or_else(|e| panic!("{}", e.render()));
        w.write(&s).and_then(|()| w.finish()).unwrap_or_else(|e| panic!("{}", e.render()));
    }
    let edges = (0..3).map(|k| image_shift(std::array::from_fn(|a| i32::from(a == k)), s.box_length, tilt));
    let rows = edges.chain(s.position.iter().copied()).map(|[x, y, z]| format!("{x:?},{y:?},{z:?}\n"));
    std::fs::write(folder.path().join("reference.csv"), rows.collect::<String>()).expect("written");
    let script = repository().join("tests/python/triclinic_files.py");
    let out = Command::new(python).arg(script).arg(folder.path()).output().expect("python runs");
    assert!(out.status.success(), "{}", words(&out));
    println!("{}", words(&out));
}
