//! Files that are harmless though unusual: names without a known ending, steps, compression, missing ends.

use super::{chains, go, needs_topology, read, write};
use galamost::files::Writer;
use galamost_plugin_api::snapshot::Snapshot;
use galamost_tests::{galamost, registry, words};
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
