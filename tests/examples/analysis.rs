//! Analyzers and their files.

use super::run;
use galamost_measure::columns::{Cells, Column};
use galamost_tests::tolerances::{agrees, bound, near};
use galamost_tests::{csv, mean};

#[test]
#[ignore = "5 seconds"]
fn example_68_parquet() {
    let (_keep, folder) = run("68-parquet");
    let table = |name: &str| galamost_measure::columns::read(&folder.join(name)).unwrap_or_else(|e| panic!("{e}"));
    let numbers = |table: &[Column], name: &str| -> Vec<f64> {
        match &table.iter().find(|c| c.name == name).expect(name).cells {
            Cells::Number(v) => v.iter().map(|x| x.expect("a number")).collect(),
            other => panic!("{name}: {other:?}"),
        }
    };
    let each = table("68-each.parquet");
    assert_eq!(each[0].len(), 401 * 200);
    assert!(folder.join("68-each.parquet/part-000001.parquet").exists());
    // the later half of the samples
    let late = |name: &str| mean(&numbers(&each, name)[200 * 200..]);
    near("example 68: Re2 and Rg2", late("Re2") / late("Rg2"));
    let thermo = table("68-thermo.parquet");
    agrees("example 68: kT", &numbers(&thermo, "kT")[100..]);
    assert_eq!(thermo[0].len(), 401);
}

#[test]
#[ignore = "5 seconds"]
fn example_69_spinodal() {
    let (_keep, folder) = run("69-spinodal");
    let t = csv(&folder.join("69-domains.csv"));
    let (l, q) = (&t["L (length)"], &t["q_peak (1/length)"]);
    let last = l.len() - 1;
    println!("L: {} … {}, q*: {} … {}", l[5], l[last], q[5], q[last]);
    assert!(l[last] > 1.6 * l[5] && q[last] < q[5], "L {} {}, q* {} {}", l[5], l[last], q[5], q[last]);
    // domains coarsen: L grows through the whole run, but for noise
    assert!(l.windows(20).all(|w| w[19] > 0.97 * w[0]), "{l:?}");
    assert!(t["L2 (length)"].iter().zip(l).all(|(b, a)| b < a));
    assert!(t["S_peak"][last] > 10.0 * t["S_peak"][0]);
}

#[test]
#[ignore = "tens of seconds"]
fn example_55_msd() {
    let (_keep, folder) = run("55-msd");
    let (msd, vacf, f) =
        (csv(&folder.join("55-msd.csv")), csv(&folder.join("55-vacf.csv")), csv(&folder.join("55-scattering.csv")));
    let last = msd["time"].len() - 1;
    let from_msd = msd["msd_A"][last] / (6.0 * msd["time"][last]);
    let from_vacf = vacf["diffusion_A"][vacf["lag"].iter().position(|l| *l >= 500.0).expect("a lag")];
    println!("D = {from_msd} by displacements, {from_vacf} by velocities; C(0) = {}", vacf["vacf_A"][0]);
    near("example 55: D by displacements and velocities", from_msd / from_vacf);
    near("example 55: C(0)", vacf["vacf_A"][0]);
    assert!(vacf["vacf_A"].iter().any(|c| *c < -0.05));
    let sum: f64 = ["x", "y", "z"].iter().map(|k| msd[&format!("msd_{k}_A")][last]).sum();
    assert!((sum / msd["msd_A"][last] - 1.0).abs() < 1e-12);
    assert!((f["Fs_7_A"][0] - 1.0).abs() < 1e-12 && f["F_7"][0] > 1.5, "S at its peak: {}", f["F_7"][0]);
    let end = f["lag"].len() - 1;
    // correlations of a liquid have decayed at the longest lag; noise of a few hundred particles
    assert!(f["Fs_7_A"][end].abs() < 0.05 && f["F_7"][end].abs() < 0.5);
}

#[test]
#[ignore = "tens of seconds"]
fn example_56_structure() {
    let (_keep, folder) = run("56-structure");
    let (g, s) = (csv(&folder.join("56-rdf.csv")), csv(&folder.join("56-structure.csv")));
    let tail = |name: &str| mean(&s[name][s[name].len() - 8..]);
    println!("S at the end: {}, {}, {}; first {}, {}", tail("S"), tail("A-A"), tail("A-B"), s["S"][0], s["A-B"][0]);
    let noise = bound("example 56: S at large q");
    assert!((tail("S") - 1.0).abs() < noise && (tail("A-A") - 1.0).abs() < noise && tail("A-B").abs() < noise);
    assert!(s["S"][0] < 0.15 && s["A-B"][0] < -0.2 && s["A-A"][0] > 0.5);
    near("example 56: g at large r", mean(&g["A-A"][50..]));
}
