//! Particle files and pictures.

use super::run;
use galamost_tests::tolerances::{agrees, near};
use galamost_tests::{csv, mean, program};
use std::process::Command;

#[test]
fn example_42_lammps_dump() {
    let (_keep, folder) = run("42-lammps-dump");
    let t = csv(&folder.join("42-lammps-dump.csv"));
    assert_eq!((t["step"][0], t["step"].last().copied()), (2000.0, Some(3000.0)), "the dump's step is the first");
    near("example 42: kT", mean(&t["kT"]));
    near("example 42: U/N", mean(&t["potential"]) / 343.0);
    let g = csv(&folder.join("42-rdf.csv"));
    let top = g["A-A"].iter().copied().fold(0.0, f64::max);
    near("example 42: first maximum of g", top);
}

#[test]
#[ignore = "10 seconds"]
fn example_60_pictures() {
    let (_keep, folder) = run("60-pictures");
    let t = csv(&folder.join("60-pictures.csv"));
    agrees("example 60: kT", &t["kT"][50..]);
    let g = &csv(&folder.join("60-pictures.rdf.csv"))["A-A"];
    // 60 bins of 0.05
    let near = mean(&g[14..18]);
    assert!(near > 3.0, "g(0.8) {near}");
    for step in [0, 500, 1000, 1500, 2000] {
        let file = std::fs::read(folder.join(format!("60-pictures.{step:010}.png"))).expect("a picture");
        assert!(file.starts_with(b"\x89PNG") && file.len() > 10_000, "{step}: {} bytes", file.len());
    }
    let out = Command::new(program())
        .args(["report", "60-pictures.ron"])
        .current_dir(&folder)
        .output()
        .expect("the program runs");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    assert!(folder.join("60-pictures.report.html").metadata().expect("a page").len() > 50_000);
}

#[test]
fn example_50_files() {
    let (_keep, folder) = run("50-files");
    for name in ["gsd", "dump", "xyz", "mst", "dcd", "xtc", "trr"] {
        let path = folder.join(format!("50-files.{name}"));
        let frames =
            galamost::files::frames(&path, galamost_tests::registry()).unwrap_or_else(|e| panic!("{}", e.render()));
        assert_eq!(frames, Some(11), "{name}");
    }
    let last = galamost::files::read(&folder.join("50-files.0000000500.data"), None, galamost_tests::registry());
    let last = last.unwrap_or_else(|e| panic!("{}", e.render()));
    assert_eq!((last.len(), last.bonds.len(), last.step), (1000, 960, 500));
}

#[test]
#[ignore = "5 seconds"]
fn example_95_gromacs() {
    let (_keep, folder) = run("95-gromacs");
    let t = csv(&folder.join("95-gromacs.csv"));
    agrees("example 95: kT", &t["kT"][150..]);
    // three coordinates of 256 particles with mass, without 60 constraints
    let freedom = 2.0 * t["kinetic"][400] / t["kT"][400];
    assert!((freedom - 708.0).abs() < 1e-9, "{freedom}");
    assert!(t["Constraints"].iter().chain(&t["VirtualSites"]).all(|u| *u == 0.0));
}

#[test]
fn example_70_pdb() {
    let (_keep, folder) = run("70-pdb");
    let registry = galamost_tests::registry();
    let fields = "b_factor: Charge";
    let open = |name: &str| {
        galamost::files::Reader::open_with(&folder.join(name), None, fields, registry)
            .unwrap_or_else(|e| panic!("{}", e.render()))
    };
    let trajectory = open("70-pdb.trajectory.pdb");
    assert_eq!(trajectory.frames().unwrap_or_else(|e| panic!("{}", e.render())), Some(11));
    let last = trajectory.read(None).unwrap_or_else(|e| panic!("{}", e.render()));
    assert_eq!((last.len(), last.bonds.len(), last.step), (240, 216, 2000));
    assert_eq!((last.bond_types.join(" "), last.types.join(" ")), ("P-M".into(), "P M".into()));
    use galamost_plugin_api::snapshot::Values;
    let charges = Values::Real((0..240).map(|k| if k % 2 == 0 { 1.0 } else { -1.0 }).collect());
    assert_eq!(last.arrays["charge"].values, charges);
    assert_eq!(last.arrays["molecule"].values, Values::Int((0..240).map(|k| k / 10).collect()));
    // chains are in one piece in the trajectory, and are the same as in the file of the last state
    let place = |tag: u32, k: usize| last.position[tag as usize][k] + 16.0 * f64::from(last.image[tag as usize][k]);
    for bond in &last.bonds {
        let [i, j] = bond.tags;
        let r = (0..3).map(|k| (place(i, k) - place(j, k)).powi(2)).sum::<f64>().sqrt();
        assert!((0.7..1.3).contains(&r), "bond {i}-{j}: {r}");
    }
    let state = open("70-pdb.0000002000.pdb").read(None).unwrap_or_else(|e| panic!("{}", e.render()));
    let far = state.position.as_flattened().iter().zip(last.position.as_flattened());
    // three decimals of 0.1 lengths, and a place at the border may be at either side
    let close = |d: f64| (d - 16.0 * (d / 16.0).round()).abs() < 2e-4;
    assert!(state.bonds == last.bonds && far.into_iter().all(|(a, b)| close(a - b)));
    let rg = &csv(&folder.join("70-pdb.csv"))["Rg2"];
    near("example 70: Rg2", mean(&rg[11..]));
    // the start of the file, with three decimals of 0.1 lengths
    assert!((rg[0] - 2.4928).abs() < 1e-3, "{rg:?}");
}
