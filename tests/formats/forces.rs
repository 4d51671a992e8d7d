//! Forces and energies of particles in trajectories, and when writers write.

use super::go;
use galamost_tests::{csv, dump, galamost, words};

const RUN: &str = r#"(
    seed: 3, precision: Double,
    initial: [ Polymers(box: [8.0, 8.0, 8.0], distance: 0.8, molecules: [ (molecule: "A5", count: 40) ]), Velocities(kT: 1.0) ],
    forces: [
        LennardJones(r_cut: 2.5, pairs: { ("A", "A"): (epsilon: 1.0, sigma: 0.7) }),
        HarmonicBond(bonds: { "A-A": (k: 20.0, r0: 1.0) }),
    ],
    integrators: [ VelocityVerlet() ],
    analyzers: [
        LammpsDump(every: 20, file: "t.dump", columns: ["id", "vx", "vy", "vz", "fx", "fy", "fz", "energy"]),
        ExtendedXyz(every: 20, file: "t.xyz", forces: true),
        Gsd(every: 20, file: "t.gsd", forces: true),
        Thermo(every: 1, file: "t.csv"),
        Mst(every: 20, file: "t.mst"),
    ],
    stages: [ (steps: 20, dt: 0.0005) ],
)"#;

/// Forces are the changes of momentum, and the energies of the particles add up to the potential energy.
#[test]
#[ignore = "3 seconds"]
fn trajectories_have_forces_and_energies() {
    let f = tempfile::tempdir().expect("a folder");
    std::fs::write(f.path().join("p.ron"), RUN).expect("written");
    for device in ["cpu", "emulated"] {
        let run = ["--pipeline", "p.ron", "--device", device, "--quiet", "--overwrite"];
        if device == "emulated" && !galamost_tests::has_compiler() {
            continue;
        }
        go(f.path(), &run);
        let last = dump(&f.path().join("t.dump"));
        let thermo = csv(&f.path().join("t.csv"));
        let n = last["id"].len() as f64;
        let potential = *thermo["potential"].last().expect("a row");
        let total: f64 = last["energy"].iter().sum();
        assert!((total - potential).abs() < 1e-9 * total.abs(), "{device}: {total} and {potential}");
        // one more step and one less: v(t + dt) − v(t − dt) = 2 dt f(t)/m + O(dt³)
        let velocity = |steps: &str| {
            let set = format!("stages=[(steps: {steps}, dt: 0.0005)]");
            let analyzers =
                r#"analyzers=[LammpsDump(every: 1, file: "v.dump", columns: ["vx", "vy", "vz"])]"#.to_string();
            go(f.path(), &[&run[..], &["--set", &set, "--set", &analyzers]].concat());
            dump(&f.path().join("v.dump"))
        };
        let (before, after) = (velocity("19"), velocity("21"));
        for (v, force) in [("vx", "fx"), ("vy", "fy"), ("vz", "fz")] {
            let largest = last[force].iter().fold(0.0, |m: f64, x| m.max(x.abs()));
            for tag in 0..last[force].len() {
                let slope = (after[v][tag] - before[v][tag]) / 0.001;
                let d = (slope - last[force][tag]).abs();
                // differences over two steps: dt² F''/6, and velocities of six digits over dt
                assert!(d < 1e-3 * largest, "{device}: {force} of {tag}: {slope} and {}", last[force][tag]);
            }
        }
        let xyz = std::fs::read_to_string(f.path().join("t.xyz")).expect("a file");
        assert!(xyz.contains(":forces:R:3:energies:R:1 "), "{xyz}");
        let row: Vec<f64> =
            xyz.lines().last().expect("a row").split(' ').skip(1).map(|w| w.parse().expect("a number")).collect();
        let k = last["id"].iter().position(|id| *id == n).expect("the last one");
        assert_eq!(row[row.len() - 4..], [last["fx"][k], last["fy"][k], last["fz"][k], last["energy"][k]]);
    }
    let out = galamost(f.path(), &["convert", "t.gsd", "out.dump", "--write", "columns: [\"id\", \"fx\"]"]);
    assert!(
        out.status.code() == Some(2) && words(&out).contains("which particle files do not contain"),
        "{}",
        words(&out)
    );
}

/// The log of a GSD file as gsd reads it.
#[test]
#[ignore = "3 seconds"]
fn gsd_reads_forces_of_particles() {
    let Some(python) = galamost_tests::python() else { return };
    let f = tempfile::tempdir().expect("a folder");
    std::fs::write(f.path().join("p.ron"), RUN).expect("written");
    go(f.path(), &["--pipeline", "p.ron", "--device", "cpu", "--quiet"]);
    let script = "import gsd.hoomd\nlog = gsd.hoomd.open('t.gsd')[-1].log\n\
        for f, u in zip(log['particles/force'], log['particles/energy']): print(*f, u)";
    let out =
        std::process::Command::new(python).args(["-c", script]).current_dir(f.path()).output().expect("python runs");
    assert!(out.status.success(), "{}", words(&out));
    let said = String::from_utf8_lossy(&out.stdout);
    let rows: Vec<Vec<f64>> =
        said.lines().map(|l| l.split(' ').map(|w| w.parse().expect("a number")).collect()).collect();
    let last = dump(&f.path().join("t.dump"));
    let wanted: Vec<Vec<f64>> =
        (0..rows.len()).map(|k| ["fx", "fy", "fz", "energy"].map(|name| last[name][k]).to_vec()).collect();
    assert!(rows == wanted && rows.len() == 200, "{} rows", rows.len());
}

/// `offset` and `at_end` of every writer of states.
#[test]
fn writers_begin_at_an_offset_and_write_at_the_end() {
    let f = tempfile::tempdir().expect("a folder");
    let writer = |name: &str, fields: &str| format!("{name}({fields})");
    let analyzers = [
        writer("LammpsDump", "every: 10, offset: 3, at_end: true, file: \"t.dump\""),
        writer("Mst", "every: 10, offset: 3, file: \"t.mst\""),
        writer("ExtendedXyz", "at_end: true, file: \"t.xyz\""),
        writer("GalamostXml", "at_end: true, file: \"{step}.xml\""),
        writer("LammpsData", "every: 20, at_end: true, file: \"{step}.data\""),
        writer("Pdb", "at_end: true, file: \"{step}.pdb\""),
        writer("Gsd", "at_end: true, file: \"t.gsd\", log: false"),
    ];
    let text = format!(
        "(seed: 3, initial: [ RandomPositions(count: 20, box: [8.0, 8.0, 8.0]), Velocities(kT: 1.0) ], \
         integrators: [ VelocityVerlet() ], analyzers: [{}], stages: [ (name: \"a\", steps: 15, dt: 0.01), \
         (name: \"b\", steps: 10, dt: 0.01) ])",
        analyzers.join(", ")
    );
    std::fs::write(f.path().join("p.ron"), text).expect("written");
    go(f.path(), &["--pipeline", "p.ron", "--device", "cpu", "--quiet"]);
    let steps = |name: &str| {
        let reader = galamost::files::Reader::open(&f.path().join(name), galamost_tests::registry()).expect("opened");
        let n = reader.frames().expect("frames").expect("a trajectory");
        (0..n as i64).map(|k| reader.read(Some(k)).expect("read").step).collect::<Vec<_>>()
    };
    assert_eq!(steps("t.dump"), [3, 13, 15, 23, 25]);
    assert_eq!(steps("t.mst"), [3, 13, 23]);
    assert_eq!((steps("t.xyz"), steps("t.gsd")), (vec![15, 25], vec![15, 25]));
    let files = |ending: &str| {
        let mut all: Vec<String> = std::fs::read_dir(f.path())
            .expect("a folder")
            .map(|e| e.expect("an entry").file_name().to_string_lossy().into_owned())
            .filter_map(|n| n.strip_suffix(ending).map(String::from))
            .collect();
        all.sort();
        all
    };
    assert_eq!(files(".xml"), ["0000000015", "0000000025"]);
    assert_eq!(files(".pdb"), ["0000000015", "0000000025"]);
    assert_eq!(files(".data"), ["0000000000", "0000000015", "0000000020", "0000000025"]);
}

/// `from_stage` counts from the start of each stage; `Thermo` and `Render` have the fields of writers.
#[test]
fn writers_count_from_the_start_of_the_stage() {
    let f = tempfile::tempdir().expect("a folder");
    let text = r#"(seed: 3, checkpoint: (every: 20), initial: [ RandomPositions(count: 20, box: [8.0, 8.0, 8.0]), Velocities(kT: 1.0) ],
        integrators: [ VelocityVerlet() ], analyzers: [
            Thermo(every: 10, offset: 2, from_stage: true, at_end: true, file: "t.csv"),
            LammpsDump(every: 10, from_stage: true, file: "t.dump"),
            Render(at_end: true, file: "{step}.png", size: "16x16"),
        ], stages: [ (name: "a", steps: 17, dt: 0.01), (name: "b", steps: 25, dt: 0.01) ])"#;
    std::fs::write(f.path().join("p.ron"), text).expect("written");
    let steps = || csv(&f.path().join("t.csv"))["step"].iter().map(|s| *s as u64).collect::<Vec<_>>();
    let wanted = [2, 12, 17, 19, 29, 39, 42];
    go(f.path(), &["--pipeline", "p.ron", "--device", "cpu", "--quiet"]);
    assert_eq!(steps(), wanted);
    let reader = galamost::files::Reader::open(&f.path().join("t.dump"), galamost_tests::registry()).expect("opened");
    let frames = (0..5).map(|k| reader.read(Some(k)).expect("a frame").step).collect::<Vec<_>>();
    assert_eq!((frames, reader.frames().expect("frames")), (vec![0, 10, 17, 27, 37], Some(5)));
    for step in ["0000000017.png", "0000000042.png"] {
        assert!(f.path().join(step).exists(), "{step}");
    }
    // stopped in the second stage and resumed
    go(f.path(), &["--pipeline", "p.ron", "--device", "cpu", "--quiet", "--overwrite", "--steps", "25"]);
    go(f.path(), &["--pipeline", "p.ron", "--device", "cpu", "--quiet", "--resume"]);
    let resumed = steps();
    assert!(wanted.iter().all(|s| resumed.contains(s)), "{resumed:?}");
}
