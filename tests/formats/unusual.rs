//! Files that are harmless though unusual: names without a known ending, steps, compression, missing ends.

use super::{chains, go, needs_topology, read, write};
use galamost::files::Writer;
use galamost_plugin_api::snapshot::{Snapshot, Values};
use galamost_tests::{galamost, registry, repository, words};
use std::path::Path;
use std::process::Command;

/// The state in every format, under the names of LAMMPS users and others that say nothing.
fn unnamed(folder: &Path) -> Vec<(&'static str, &'static str)> {
    let s = chains();
    let all = vec![
        ("GalamostXml", "config"),
        ("Gsd", "run.1"),
        ("Mst", "state"),
        ("LammpsData", "data.melt"),
        ("LammpsDump", "dump.melt"),
        ("ExtendedXyz", "traj.0"),
        ("Dcd", "positions"),
        ("Pdb", "protein.txt"),
        ("Gro", "conf"),
        ("Xtc", "traj_comp.part0001"),
        ("Trr", "traj.part0001"),
    ];
    for (format, name) in &all {
        let writer = Writer::create(&folder.join(name), Some(format), "", &s, registry());
        let writer = writer.unwrap_or_else(|e| panic!("{}", e.render()));
        writer.write(&s).and_then(|()| writer.finish()).unwrap_or_else(|e| panic!("{}", e.render()));
    }
    all
}

#[test]
#[ignore = "3 seconds"]
fn files_are_recognized_by_their_contents() {
    let f = tempfile::tempdir().expect("a folder");
    for (format, name) in unnamed(f.path()) {
        if needs_topology(&format.to_lowercase()) {
            write(&chains(), &f.path().join("t.xml"));
            let said = go(f.path(), &["info", name, "--topology", "t.xml", "--json"]);
            assert!(said.contains(&format!("\"format\": \"{format}\"")), "{said}");
            continue;
        }
        let said = go(f.path(), &["info", name, "--json"]);
        assert!(said.contains(&format!("\"format\": \"{format}\"")), "{name}: {said}");
        assert!(said.contains("\"particles\": 80"), "{name}: {said}");
    }
    go(f.path(), &["render", "data.melt", "--size", "40x30"]);
    go(f.path(), &["render", "dump.melt", "--from", "LammpsDump", "--size", "40x30"]);
    std::fs::write(f.path().join("notes"), "these are notes\nof no format\n").expect("written");
    for args in [&["info", "notes"][..], &["render", "notes"], &["convert", "notes", "x.xml"]] {
        let out = galamost(f.path(), args);
        let said = words(&out);
        assert_eq!(out.status.code(), Some(2), "{said}");
        assert!(said.contains("no reader recognizes its contents; choose one with --from"), "{args:?}: {said}");
    }
}

/// `step` of every reader sets the step at which a run starts.
#[test]
#[ignore = "3 seconds"]
fn readers_set_the_first_step() {
    let f = tempfile::tempdir().expect("a folder");
    write(&chains(), &f.path().join("t.xml"));
    for (format, name) in unnamed(f.path()) {
        let before = if needs_topology(&format.to_lowercase()) { "GalamostXml(file: \"t.xml\"), " } else { "" };
        let pipeline = format!(
            "(initial: [ {before}{format}(file: \"{name}\", step: 0) ], stages: [ (steps: 3, dt: 0.0) ],\n\
             integrators: [ VelocityVerlet() ], analyzers: [ Mst(every: 1, file: \"{format}.out.mst\") ])"
        )
        .replace("dt: 0.0)", "dt: 1e-9)");
        std::fs::write(f.path().join("p.ron"), pipeline).expect("written");
        go(f.path(), &["--pipeline", "p.ron", "--device", "cpu", "--quiet", "--overwrite"]);
        let steps = (0..4).map(|k| read(&f.path().join(format!("{format}.out.mst")), Some(k)).step);
        assert_eq!(steps.collect::<Vec<_>>(), [0, 1, 2, 3], "{format}");
    }
}

/// What the programs `bzip2` and `zstd` pack is read like the file itself.
#[test]
fn files_packed_by_other_programs_are_read() {
    let f = tempfile::tempdir().expect("a folder");
    let s = Snapshot { step: 0, ..chains() };
    write(&s, &f.path().join("t.xml"));
    for (program, ending) in [("bzip2", "bz2"), ("zstd", "zst")] {
        let packed = Command::new(program).args(["-k", "-q", "t.xml"]).current_dir(f.path()).status();
        if !packed.is_ok_and(|status| status.success()) {
            galamost_tests::skip(program, "the program is not installed");
            continue;
        }
        assert_eq!(read(&f.path().join(format!("t.xml.{ending}")), None), read(&f.path().join("t.xml"), None));
    }
}

const DUMP: &str =
    "ITEM: TIMESTEP\n0\nITEM: NUMBER OF ATOMS\n2\nITEM: BOX BOUNDS pp pp pp\n-4 4\n-4 4\n-0.5 0.5\nITEM: ATOMS ";

/// Two dimensions need two components; in three, vectors that lack one are named.
#[test]
fn dumps_without_a_third_component_are_read() {
    let f = tempfile::tempdir().expect("a folder");
    std::fs::write(
        f.path().join("a.dump"),
        format!("{DUMP}id type x y vx vy ix iy\n1 1 1 2 3 4 5 6\n2 1 0 0 0 0 0 0\n"),
    )
    .expect("written");
    let said = go(f.path(), &["convert", "a.dump", "a.xml", "--read", "dimensions: 2"]);
    assert!(!said.contains("WARN"), "{said}");
    let s = read(&f.path().join("a.xml"), None);
    assert_eq!((s.dimensions, s.position[0], s.velocity[0]), (2, [1.0, 2.0, 0.0], [3.0, 4.0, 0.0]));
    assert_eq!(s.image[0], [5, 6, 0]);
    let out = galamost(f.path(), &["info", "a.dump"]);
    assert!(
        out.status.code() == Some(2) && words(&out).contains("without z only with `dimensions: 2`"),
        "{}",
        words(&out)
    );
    std::fs::write(
        f.path().join("b.dump"),
        format!("{DUMP}id type x y z vx vy ix iy\n1 1 1 2 0 3 4 5 6\n2 1 0 0 0 0 0 0 0\n"),
    )
    .expect("written");
    let said = go(f.path(), &["info", "b.dump"]);
    assert!(said.contains("columns that are not read: vx, vy, ix and iy"), "{said}");
}

/// Unwrapped positions give the images, once.
#[test]
fn images_of_dumps_are_those_of_unwrapped_positions() {
    let f = tempfile::tempdir().expect("a folder");
    let path = f.path().join("a.dump");
    for (columns, row) in [
        ("x y z xu yu zu", "1 -4 0.25 17 4 -1.75"),
        ("xu yu zu ix iy iz", "17 4 -1.75 2 1 -2"),
        ("xs ys zs xsu ysu zsu", "0.625 0 0.75 2.625 1 -1.25"),
    ] {
        let other = ["0"; 6].join(" ");
        std::fs::write(&path, format!("{DUMP}id type {columns}\n1 1 {row}\n2 1 {other}\n")).expect("written");
        let s = read(&path, None);
        assert_eq!((s.position[0], s.image[0]), ([1.0, -4.0, 0.25], [2, 1, -2]), "{columns}");
    }
    // a row with more values than columns
    std::fs::write(&path, format!("{DUMP}id type x y z\n1 1 1 1 0\n2 1 1 1 0 7 8\n")).expect("written");
    let out = galamost(f.path(), &["info", "a.dump"]);
    assert_eq!(out.status.code(), Some(2));
    let said = words(&out);
    assert!(said.contains("a.dump:11:1:") && said.contains("found 7 values for 5 columns"), "{said}");
}

/// Numbers of few decimal places are read back by the reader of the same format.
#[test]
fn few_digits_leave_no_particle_outside() {
    let f = tempfile::tempdir().expect("a folder");
    let mut s = Snapshot { dimensions: 3, box_length: [9.1312; 3], types: vec!["A".into()], ..Snapshot::default() };
    s.push(0, [4.5651, -4.5655, 0.0]);
    for ending in ["xml", "mst", "data", "dump", "xyz"] {
        // only this format has decimal places by default, so only it gives small numbers an exponent
        s.mass[0] = if ending == "xml" { 1.2e-12 } else { 1.0 };
        let path = f.path().join(format!("a.{ending}"));
        let writer =
            Writer::create(&path, None, "digits: 2", &s, registry()).unwrap_or_else(|e| panic!("{}", e.render()));
        writer.write(&s).and_then(|()| writer.finish()).unwrap_or_else(|e| panic!("{}", e.render()));
        let back = read(&path, None);
        // nearest images
        let far = |k: usize| {
            let d: f64 = back.position[0][k] - s.position[0][k];
            (d - 9.1312 * (d / 9.1312).round()).abs()
        };
        // half a unit of the last digit written, 0.005, and as much again for formats in other units of length
        assert!((0..3).all(|k| far(k) < 0.0101), "{ending}: {:?}", back.position[0]);
        assert_eq!(back.mass, s.mass, "{ending}");
    }
}

/// A file of all steps has no step in its name, and its frames do not have one step.
#[test]
fn trajectories_of_one_step_are_refused() {
    let f = tempfile::tempdir().expect("a folder");
    let frame = |step: u32| {
        format!("1\nLattice=\"5 0 0 0 5 0 0 0 5\" Properties=species:S:1:pos:R:3 Timestep={step}\nA 1 1 1\n")
    };
    std::fs::write(f.path().join("a.xyz"), frame(0) + &frame(10)).expect("written");
    for output in ["o.{step}.gsd", "o.{step}.dcd", "o.{step}.dump"] {
        let out = galamost(f.path(), &["convert", "a.xyz", output]);
        let refused = format!("{output}: cannot be written: it holds all steps; remove {{step}} from its name");
        assert!(out.status.code() == Some(2) && words(&out).contains(&refused), "{output}: {}", words(&out));
        assert_eq!(std::fs::read_dir(f.path()).expect("a folder").count(), 1, "nothing is written");
    }
    let mut args = vec!["convert", "a.xyz", "b.mst", "--read", "step: 7"];
    let out = galamost(f.path(), &args);
    let said = words(&out);
    assert!(out.status.code() == Some(2) && said.contains("`step` would give all frames the same step"), "{said}");
    args.extend(["--frames", "1"]);
    go(f.path(), &args);
    assert_eq!(read(&f.path().join("b.mst"), None).step, 7);
}

/// Data of LAMMPS have the molecules that bonds define. Names of bond types that a format does not write may be any.
#[test]
fn lammps_data_have_molecules_but_no_names_of_bond_types() {
    let f = tempfile::tempdir().expect("a folder");
    let input = repository().join("examples/57-molecules.xml");
    go(f.path(), &["convert", &input.to_string_lossy(), "c.data"]);
    let s = read(&f.path().join("c.data"), None);
    assert_eq!(s.arrays["molecule"].values, Values::Int((0..400).map(|k| k / 20).collect()));
    let mut s = chains();
    s.bond_types[0] = "A A".into();
    let path = f.path().join("d.data");
    let create = |fields: &str| Writer::create(&path, None, fields, &s, registry()).map(|writer| writer.write(&s));
    assert!(create("").is_ok_and(|written| written.is_ok()));
    for ending in ["dump", "xyz"] {
        let path = f.path().join(format!("d.{ending}"));
        assert!(Writer::create(&path, None, "", &s, registry()).is_ok(), "{ending}");
    }
    let e = create("labels: true").map(drop).expect_err("a label of two words").render();
    assert!(e.contains("the type name \"A A\" cannot be written in this format"), "{e}");
}

/// Dumps and tables of particles have the molecules that bonds define, if `columns` lists them.
#[test]
fn columns_of_molecules_follow_bonds() {
    let f = tempfile::tempdir().expect("a folder");
    let analyzers = r#"LammpsDump(every: 1, file: "t.dump", columns: ["id", "mol", "x", "y", "z"]), LammpsDump(every: 1, file: "d.dump"),
        ParticleTable(every: 1, file: "t.csv", columns: ["id", "mol"])"#;
    let pipeline = |initial: &str| {
        let text = format!("(initial: [ {initial} ], analyzers: [ {analyzers} ], stages: [ (steps: 0, dt: 0.01) ])");
        std::fs::write(f.path().join("p.ron"), text).expect("written");
        ["--pipeline", "p.ron", "--device", "cpu", "--quiet"]
    };
    let mut s = Snapshot { step: 0, ..chains() };
    s.arrays.remove("molecule");
    // one particle alone, and the first chain in two parts
    let single = s.push(0, [0.0, 0.0, 4.5]);
    if let Some(Values::Real(charge)) = s.arrays.get_mut("charge").map(|a| &mut a.values) {
        charge.push(0.0);
    }
    s.bonds.retain(|b| b.tags != [3, 4]);
    write(&s, &f.path().join("in.xml"));
    go(f.path(), &pipeline("GalamostXml(file: \"in.xml\")"));
    let mut expected: Vec<f64> = (0..80).map(|tag| f64::from(if tag < 4 { 1 } else { tag / 8 + 2 })).collect();
    expected.push(0.0);
    assert_eq!(expected.len(), single as usize + 1);
    assert_eq!(galamost_tests::dump(&f.path().join("t.dump"))["mol"], expected);
    assert_eq!(galamost_tests::csv(&f.path().join("t.csv"))["mol"], expected);
    // not by default: `mol` of a dump becomes an array when it is read
    let text = std::fs::read_to_string(f.path().join("d.dump")).expect("a dump");
    assert!(text.contains("ITEM: ATOMS id type element x y z ix iy iz q\n"), "{text}");
    let out = galamost(f.path(), &pipeline("RandomPositions(count: 5, box: [5.0, 5.0, 5.0])"));
    let refused = "column `mol`: the initial state has neither an array `molecule` nor bonds";
    assert!(out.status.code() == Some(2) && words(&out).contains(refused), "{}", words(&out));
}
