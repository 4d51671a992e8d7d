//! Oriented particles.

use super::{run, run_with};
use galamost_tests::csv;
use galamost_tests::tolerances::{agrees, below};

#[test]
#[ignore = "tens of seconds"]
fn example_14_patches() {
    // four times as long as the example: longer than the oscillations of the thermostats
    let (_keep, folder) = run_with("14-patches", &["analyzers[0].every=10", "stages[0].steps=20000"]);
    let (t, c) = (csv(&folder.join("14-thermo.csv")), csv(&folder.join("14-patches.csv")));
    agrees("example 14: kT", &t["kT"][500..]);
    agrees("example 14: kT_rotational", &t["kT_rotational"][500..]);
    let kept = &t["conserved"];
    below("example 14: change of the conserved quantity", kept[500] / kept[100] - 1.0);
    // what is single at first joins
    let (first, last) = (c["mean"][0], c["mean"][5]);
    assert!(last > 1.5 * first && c["largest"][5] >= 4.0, "mean {first}, then {last}");
    let sizes = csv(&folder.join("14-sizes.csv"));
    let of = |step: f64| (0..sizes["step"].len()).filter(move |k| sizes["step"][*k] == step).collect::<Vec<_>>();
    let sizes = csv(&folder.join("14-sizes.csv"));
    let particles: f64 = of(5000.0).iter().map(|k| sizes["size"][*k] * sizes["clusters"][*k]).sum();
    assert_eq!(particles, c["particles"][5]);
}

#[test]
#[ignore = "tens of seconds"]
fn example_16_rods() {
    let (_keep, folder) = run("16-rods");
    let t = csv(&folder.join("16-thermo.csv"));
    agrees("example 16: kT", &t["kT"][20..]);
    agrees("example 16: kT_rotational", &t["kT_rotational"][20..]);
    agrees("example 16: P", &t["pressure"][20..]);
    let kept = &t["conserved"];
    below("example 16: change of the conserved quantity", kept[40] / kept[10] - 1.0);
    let order = csv(&folder.join("16-order.csv"));
    assert!(order["P2"].iter().all(|p| (0.0..1.0).contains(p)) && order["n"][0] == 729.0);
}

#[test]
#[ignore = "half a minute"]
fn example_19_triblock() {
    let (_keep, folder) = run("19-triblock");
    let t = csv(&folder.join("19-thermo.csv"));
    agrees("example 19: kT", &t["kT"][20..]);
    agrees("example 19: kT_rotational", &t["kT_rotational"][20..]);
    let c = csv(&folder.join("19-correlation.csv"));
    assert_eq!((c["lag"].len(), c["lag"][1], c["origins"][0], c["origins"][40]), (41, 50.0, 101.0, 61.0));
    // unit vectors in single precision
    assert!((c["C1"][0] - 1.0).abs() < 1e-6 && c["C1"][40] < 0.9 && c["C2"][40] < c["C1"][40]);
    assert!((c["time"][40] - 4.0).abs() < 1e-9);
    let p = csv(&folder.join("19-pairs.csv"));
    let at = |r: f64, cos: f64| {
        // half the width of a bin
        let near = |k: &usize| (p["r"][*k] - r).abs() < 0.026 && (p["cos"][*k] - cos).abs() < 0.051;
        p["g"][(0..p["r"].len()).find(near).expect("a bin")]
    };
    // within a patch are many, at its edge few, and heads and tails are alike
    assert!(at(0.625, 0.85) > 3.0 * at(0.625, 0.45), "{} and {}", at(0.625, 0.85), at(0.625, 0.45));
    assert!((at(0.725, 0.95) / at(0.725, -0.95) - 1.0).abs() < 0.2);
    // within 2 of a particle are as many as the density says, but for the hole at the middle and the structure around it
    let within: f64 = p["pairs"].iter().sum();
    let expected = 11.0 * 729.0 * 728.0 / 243.0 * 4.0 / 3.0 * std::f64::consts::PI * 8.0;
    assert!((within / expected - 1.0).abs() < 0.05, "{within} pairs, {expected} at random places");
}

#[test]
#[ignore = "half a minute"]
fn example_13_janus() {
    let (_keep, folder) = run("13-janus");
    let t = csv(&folder.join("13-janus.csv"));
    agrees("example 13: kT", &t["kT"][60..]);
    agrees("example 13: kT_rotational", &t["kT_rotational"][60..]);
    assert!(folder.join("13-janus.gsd").metadata().expect("a trajectory").len() > 4 * 1000 * 28);
}

#[test]
#[ignore = "half a minute"]
fn example_83_biaxial() {
    let (_keep, folder) = run("83-biaxial");
    let t = csv(&folder.join("83-biaxial.csv"));
    agrees("example 83: kT", &t["kT"][20..61]);
    agrees("example 83: kT_rotational", &t["kT_rotational"][20..61]);
    // without a thermostat from step 3000 on
    let kept = &t["total"][61..];
    let largest = kept.iter().map(|e| (e / kept[0] - 1.0).abs()).fold(0.0, f64::max);
    assert!(largest < 2e-4, "the total energy changes by {largest:e}");
    let order = csv(&folder.join("83-order.csv"));
    assert!(order["P2"].iter().all(|p| (0.0..1.0).contains(p)) && order["n"][1] == 256.0);
}

#[test]
#[ignore = "10 seconds"]
fn example_94_ellipsoid_chains() {
    let (_keep, folder) = run("94-ellipsoid-chains");
    let t = csv(&folder.join("94-ellipsoid-chains.csv"));
    agrees("example 94: kT", &t["kT"][41..401]);
    agrees("example 94: kT_rotational", &t["kT_rotational"][41..401]);
    let per_bond: Vec<f64> = t["EllipsoidBond"][41..401].iter().map(|u| u / 108.0).collect();
    agrees("example 94: energy of a bond", &per_bond);
    // without a thermostat from step 20,000 on
    let kept = &t["total"][401..];
    let largest = kept.iter().map(|e| (e / kept[0] - 1.0).abs()).fold(0.0, f64::max);
    below("example 94: change of the total energy", largest);
    let order = csv(&folder.join("94-order.csv"));
    assert!(order["P2"][0] > 0.999 && order["P2"][40] < 0.8 && order["n"][1] == 144.0, "{:?}", order["P2"]);
}
