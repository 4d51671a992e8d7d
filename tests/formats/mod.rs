//! Particle files: round trips, conversions, other programs, killed and resumed runs.

mod commands;
mod damaged;
mod forces;
mod gromacs;
mod losses;
mod other_programs;
mod restarts;
mod shares;
mod trajectories;
mod unusual;

use galamost::files;
use galamost_plugin_api::snapshot::{Array, Link, Snapshot, Values};
use galamost_tests::{galamost, registry, words};
use std::path::Path;

/// Ten chains of eight particles with everything that files may hold, on a loose lattice.
fn chains() -> Snapshot {
    let mut s = Snapshot { step: 5, dimensions: 3, box_length: [9.5, 10.0, 11.25], ..Snapshot::default() };
    s.types = vec!["A".into(), "B".into()];
    (s.bond_types, s.angle_types) = (vec!["A-A".into(), "A-B".into()], vec!["A-A-A".into()]);
    (s.dihedral_types, s.improper_types) = (vec!["turn".into()], vec!["flat".into()]);
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
                s.impropers.push(Link { kind: 0, tags: [tag - 2, tag - 3, tag - 1, tag] });
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

/// Returns whether files of this format only move particles of another file.
fn needs_topology(ending: &str) -> bool {
    ["dcd", "xtc", "trr"].contains(&ending)
}

fn go(folder: &Path, args: &[&str]) -> String {
    let out = galamost(folder, args);
    assert!(out.status.success(), "{args:?}: {}", words(&out));
    String::from_utf8_lossy(&out.stdout).into_owned() + &words(&out)
}

/// Files that a state is converted to, options of their writers, and what is lost.
const LOSSES: &[(&str, &str, &[&str])] = &[
    ("out.data", "labels: true", &[]),
    ("out.data", "", &["bond type names", "angle type names", "dihedral type names", "improper type names"]),
    (
        "out.data",
        "atom_style: Bond",
        &["charge of particles", "bond type names", "all of 60 angles", "all of 50 dihedrals", "all of 50 impropers"],
    ),
    ("out.mst", "", &["all of 50 impropers"]),
    ("out.{step}.mst", "", &["all of 50 impropers"]),
    ("out.xml", "digits: 17", &[]),
    ("out.xml", "digits: 3", &["positions are rounded by at most 5.0e-4", "velocities are rounded"]),
    (
        "out.dump",
        "",
        &["velocities", "masses", "all of 70 bonds", "all of 60 angles", "all of 50 dihedrals", "all of 50 impropers"],
    ),
    ("out.xyz", "", &["images", "all of 70 bonds", "all of 60 angles", "all of 50 dihedrals", "all of 50 impropers"]),
    (
        "out.xyz",
        "unwrapped: true",
        &["all of 70 bonds", "all of 60 angles", "all of 50 dihedrals", "all of 50 impropers"],
    ),
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
            "all of 50 impropers",
            "bond type names",
        ],
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
            "all of 50 impropers",
            "bond type names",
        ],
    ),
    ("out.gsd", "", &["molecule of particles", "positions are rounded", "velocities are rounded", "masses"]),
];

/// Into each format and back: what the format has a place for comes back to the bit, and what it has none for is told.
#[test]
#[ignore = "3 seconds"]
fn every_format_round_trips_or_reports_its_losses() {
    let f = tempfile::tempdir().expect("a folder");
    let s = chains();
    write(&s, &f.path().join("in.xml"));
    let s = read(&f.path().join("in.xml"), None);
    for &(name, options, lost) in LOSSES {
        let said = go(f.path(), &["convert", "in.xml", name, "--write", options, "--overwrite"]);
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
        let mut back = read(&f.path().join(name.replace("{step}", "0000000005")), None);
        assert_eq!((back.len(), &back.types, back.step), (80, &s.types, 5), "{name}");
        if name.ends_with("mst") {
            (back.improper_types, back.impropers) = (s.improper_types.clone(), s.impropers.clone());
            assert_eq!(back, s, "{name}");
        }
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
        // weak: the chains begin nearly straight
        CvffImproper(impropers: { "flat": (k: 0.001, d: -1, n: 2) }),
    ],
    integrators: [ VelocityVerlet() ],
    analyzers: [
        Gsd(every: 10, file: "t.gsd"), LammpsDump(every: 10, file: "t.dump"), ExtendedXyz(every: 10, file: "t.xyz"),
        Mst(every: 10, file: "t.mst"), Dcd(every: 10, file: "t.dcd", unwrapped: true),
        Pdb(every: 10, file: "t.pdb", scale: 3.0, b_factor: Charge, occupancy: Mass), Pdb(every: 60, file: "{step}.pdb"),
        Mst(every: 60, file: "{step}.mst"), Gro(every: 10, file: "t.gro"),
        Xtc(every: 10, file: "t.xtc", unwrapped: true), Trr(every: 10, file: "t.trr", unwrapped: true, forces: true),
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
