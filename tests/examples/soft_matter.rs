//! DPD, particle-field dynamics, reactions.

use super::{run, run_with};
use galamost_tests::tolerances::{agrees, below, bound, disagreement, estimate, near};
use galamost_tests::{csv, mean};

#[test]
fn example_03_dpd_liquid() {
    let (_keep, folder) = run("03-dpd-liquid");
    let t = csv(&folder.join("03-dpd-liquid.csv"));
    agrees("example 03: kT", &t["kT"][50..]);
    agrees("example 03: P", &t["pressure"][50..]);
    let p = ["momentum_x", "momentum_y", "momentum_z"].map(|n| t[n].last().copied().unwrap_or(f64::NAN).abs());
    p.into_iter().for_each(|p| below("example 03: momentum", p));
}

#[test]
fn example_04_diblock() {
    let (_keep, folder) = run("04-diblock");
    let t = csv(&folder.join("04-diblock.csv"));
    near("example 04: kT", mean(&t["kT"][12..]));
    assert!(t.contains_key("HarmonicBond") && t.contains_key("Dpd"), "an energy for each component");
    assert!(folder.join("04-diblock.gsd").metadata().expect("a trajectory").len() > 3000 * 12 * 5);
    let last = std::fs::read_to_string(folder.join("04-diblock.0000002000.xml")).expect("the last state");
    assert!(last.contains("<bond num=\"2700\">") && last.contains("time_step=\"2000\""));
}

#[test]
#[ignore = "a minute"]
fn example_24_many_body_film() {
    // random forces make 90 % of the variance of the pressure and are independent in every step: with all steps and five times
    // as many, the standard error of the surface tension falls from 1.5 to 0.2
    let longer = ["stages[1].steps=16_000", "stages[1].analyzers[0].every=1"];
    let (_keep, folder) = run_with("24-many-body-film", &longer);
    let t = csv(&folder.join("24-many-body-film.csv"));
    let tension = |k: usize| 8.0 * (t["pressure_zz"][k] - 0.5 * (t["pressure_xx"][k] + t["pressure_yy"][k]));
    agrees("example 24: kT", &t["kT"][1000..]);
    agrees("example 24: P across", &t["pressure_zz"][1000..]);
    agrees("example 24: surface tension", &(1000..t["kT"].len()).map(tension).collect::<Vec<_>>());
    let last = std::fs::read_to_string(folder.join("24-many-body-film.0000004000.xml")).expect("the last state");
    let body = last.split_once("<position num=\"1400\">").expect("positions").1.split_once("</").expect("its end").0;
    let inside = body.lines().filter_map(|l| l.split_whitespace().nth(2)?.parse::<f64>().ok());
    let inside = inside.filter(|z| z.abs() < 2.5).count();
    near("example 24: particles in a layer", inside as f64);
}

#[test]
#[ignore = "5 seconds"]
fn example_25_lowe_andersen() {
    let (_keep, folder) = run("25-lowe-andersen");
    let t = csv(&folder.join("25-lowe-andersen.csv"));
    agrees("example 25: kT", &t["kT"][40..]);
    agrees("example 25: P", &t["pressure"][40..]);
    let p = ["momentum_x", "momentum_y", "momentum_z"].map(|n| t[n].last().copied().unwrap_or(f64::NAN).abs());
    p.into_iter().for_each(|p| below("example 25: momentum", p));
}

#[test]
fn example_34_field_blend() {
    let (_keep, folder) = run("34-field-blend");
    let t = csv(&folder.join("34-field-blend.csv"));
    let w = &t["MdScf"];
    assert!(w[w.len() - 1] < 0.6 * w[0], "W {} … {}", w[0], w[w.len() - 1]);
    agrees("example 34: kT", &t["kT"][50..]);
    let p = csv(&folder.join("34-field-blend-profile.csv"));
    let last = p["A"].len() - 32..;
    let (most, least) =
        (p["A"][last.clone()].iter().copied().fold(0.0, f64::max), p["A"][last].iter().copied().fold(9.0, f64::min));
    assert!(most > 3.5 && least < 0.5, "A between {least} and {most}");
    assert!(folder.join("34-field-blend.0000003000.vtk").exists());
}

#[test]
fn example_35_dppc_water() {
    let (_keep, folder) = run("35-dppc-water");
    let t = csv(&folder.join("35-dppc-water.csv"));
    let w = &t["MdScf"];
    assert!(mean(&w[400..]) < 0.5 * w[0], "W {} … {}", w[0], mean(&w[400..]));
    agrees("example 35: kT", &t["kT"][50..]);
}

#[test]
#[ignore = "5 seconds"]
fn example_36_charged_field() {
    let (_keep, folder) = run("36-charged-field");
    let t = csv(&folder.join("36-charged-field.csv"));
    agrees("example 36: P", &t["pressure"][100..]);
    agrees("example 36: V", &t["volume"][100..]);
}

#[test]
fn example_30_brush() {
    let (_keep, folder) = run("30-brush");
    let t = csv(&folder.join("30-brush.csv"));
    let last = |name: &str| t[name].last().copied().unwrap_or(f64::NAN);
    assert!(t["ends"].iter().all(|n| *n == 57.0), "{:?}", t["ends"]);
    near("example 30: conversion", last("conversion"));
    let grown = (last("number_average") - 1.0) * last("molecules");
    let events = std::fs::read_to_string(folder.join("30-brush.events.csv")).expect("events").lines().count() - 1;
    assert_eq!(grown.round() as usize, events, "monomers in chains, and events");
    near("example 30: dispersity", last("dispersity"));
    near("example 30: kT", mean(&csv(&folder.join("30-brush.thermo.csv"))["kT"][10..]));
}

#[test]
fn example_31_network() {
    let (_keep, folder) = run("31-network");
    let t = csv(&folder.join("31-network.csv"));
    let (step, p) = (&t["step"], &t["conversion"]);
    let top = (0..p.len()).max_by(|a, b| t["reduced"][*a].total_cmp(&t["reduced"][*b])).expect("rows");
    near("example 31: gel point", p[top]);
    let cured = step.iter().position(|s| *s == 3000.0).expect("the end of the first stage");
    let end = p.len() - 1;
    assert!(p[cured] > 0.8 && p[end] == p[cured], "{} and {}", p[cured], p[end]);
    assert!(t["largest"][end] > 1000.0, "largest {}", t["largest"][end]);
    let events = std::fs::read_to_string(folder.join("31-network.events.csv")).expect("events");
    assert!(events.lines().filter(|l| l.contains(",Exchange,")).count() > 300);
}

#[test]
fn example_93_reversible_network() {
    let (_keep, folder) = run("93-reversible-network");
    agrees("example 93: kT", &csv(&folder.join("93-network.thermo.csv"))["kT"][100..]);
    assert!(folder.join("93-network.0000032000.xml").exists());
    let t = csv(&folder.join("93-network.csv"));
    let conversion = &t["conversion"];
    let events = std::fs::read_to_string(folder.join("93-network.events.csv")).expect("events");
    let of = |kind: &str, from: u64| {
        let step = |l: &str| l.split(',').next().and_then(|s| s.parse::<u64>().ok());
        events.lines().filter(|l| l.contains(kind) && step(l).is_some_and(|s| s >= from)).count() as f64
    };
    // each bond takes two of 300 ends
    let bonds = of(",Join,", 0) - of(",Break,", 0);
    let last = conversion[conversion.len() - 1];
    assert!((last - 2.0 * bonds / 300.0).abs() < 1e-12, "{bonds} bonds, conversion {last}");
    // in equilibrium both reactions have the same rate: independent events differ by the root of their number
    let (joins, breaks) = (of(",Join,", 12_000), of(",Break,", 12_000));
    assert!(joins > 100.0 && (joins - breaks).abs() < 4.0 * (joins + breaks).sqrt(), "{joins} joins, {breaks} breaks");
    agrees("example 93: conversion", &conversion[100..]);
    assert!(t["largest"].iter().all(|n| n % 4.0 == 0.0), "monomers of four particles");
}

#[test]
#[ignore = "3 seconds"]
fn example_74_rigid_bodies() {
    let (_keep, folder) = run("74-rigid-bodies");
    let t = csv(&folder.join("74-rigid-bodies.csv"));
    let second = t["step"].iter().position(|s| *s > 1500.0).expect("the second stage");
    let of = |name: &str| mean(&t[name][second..]);
    near("example 74: kT of rotation over kT", of("kT_rotational") / of("kT"));
    let total = &t["total"][second..];
    let (low, high) = total.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), x| (l.min(*x), h.max(*x)));
    assert!((high - low) / of("kinetic") < bound("example 74: change of the energy"), "{low} to {high}");
    assert!(std::fs::metadata(folder.join("74-rigid-bodies.xyz")).is_ok_and(|m| m.len() > 0));
}

#[test]
#[ignore = "5 seconds"]
fn example_77_virtual_sites() {
    let (_keep, folder) = run("77-virtual-sites");
    let t = csv(&folder.join("77-virtual-sites.csv"));
    let second = t["step"].iter().position(|s| *s > 1500.0).expect("the second stage");
    near("example 77: kT", mean(&t["kT"][second - 8..second]));
    let total = &t["total"][second..];
    let (low, high) = total.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), x| (l.min(*x), h.max(*x)));
    assert!((high - low) / mean(&t["kinetic"]) < bound("example 77: change of the energy"), "{low} to {high}");
    assert!(std::fs::metadata(folder.join("77-virtual-sites.xyz")).is_ok_and(|m| m.len() > 0));
}

#[test]
#[ignore = "5 seconds"]
fn example_82_constraints() {
    let (_keep, folder) = run("82-constraints");
    let t = csv(&folder.join("82-constraints.csv"));
    let third = t["step"].iter().position(|s| *s > 5000.0).expect("the third stage");
    agrees("example 82: kT", &t["kT"][10..third]);
    let total = &t["total"][third..];
    let (low, high) = total.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), x| (l.min(*x), h.max(*x)));
    assert!((high - low) / mean(&t["kinetic"]) < bound("example 82: change of the energy"), "{low} to {high}");
}

#[test]
#[ignore = "a minute"]
fn example_73_polyelectrolyte() {
    let (_keep, folder) = run_with("73-polyelectrolyte", &["stages[1].steps=10000"]);
    agrees("example 73: kT", &csv(&folder.join("73-polyelectrolyte.csv"))["kT"][60..]);
    // chains repel themselves: larger than chains without charges
    let sizes = &csv(&folder.join("73-polyelectrolyte.gyration.csv"))["Rg2"];
    assert!(mean(&sizes[40..]) > bound("example 73: Rg2 without charges"), "{}", mean(&sizes[40..]));
}

#[test]
#[ignore = "half a minute"]
fn example_90_coacervate() {
    let (_keep, folder) = run("90-coacervate");
    agrees("example 90: kT", &csv(&folder.join("90-coacervate.csv"))["kT"][20..]);
    // chains begin apart, and unite
    let largest = &csv(&folder.join("90-coacervate.clusters.csv"))["largest"];
    let end = mean(&largest[largest.len() - 5..]);
    assert!(largest[0] < 150.0 && end > bound("example 90: largest cluster"), "{} to {end}", largest[0]);
}

#[test]
#[ignore = "3 seconds"]
fn example_88_triclinic() {
    let (_keep, folder) = run("88-triclinic");
    let t = csv(&folder.join("88-triclinic.csv"));
    // the lattice of density 1.05, sheared by 0.04: energy and stress of a particle
    let a = (4.0 / 1.05f64).cbrt();
    let (mut energy, mut stress) = (0.0, 0.0);
    for n in 0..9 * 9 * 9 {
        let [x, y, z] = [n % 9 - 4, n / 9 % 9 - 4, n / 81 - 4].map(|k| 0.5 * f64::from(k) * a);
        let r2 = (x + 0.04 * y).powi(2) + y * y + z * z;
        if (n % 9 + n / 9 % 9 + n / 81) % 2 == 0 && r2 > 0.0 && r2 < 6.25 {
            let s6 = r2.powi(-3);
            energy += 0.5 * 4.0 * (s6 * s6 - s6);
            stress += 0.5 * 24.0 * (2.0 * s6 * s6 - s6) / r2 * (x + 0.04 * y) * y * 1.05;
        }
    }
    below("example 88: energy of the sheared lattice", t["potential"][0] / 864.0 / energy - 1.0);
    // four digits of the reference of the pressure below
    assert!((stress + 1.923).abs() < 0.001, "{stress}");
    agrees("example 88: P_xy", &t["pressure_xy"][40..]);
    let d = std::fs::read_to_string(folder.join("88-triclinic.dump")).expect("a dump");
    assert!(d.contains("ITEM: BOX BOUNDS xy xz yz pp pp pp"));
}

#[test]
#[ignore = "tens of seconds"]
fn example_89_full_cell() {
    let (_keep, folder) = run("89-full-cell");
    let t = csv(&folder.join("89-full-cell.csv"));
    for name in ["xx", "yy", "zz", "xy", "xz", "yz"] {
        let (p, error) = estimate(&t[&format!("pressure_{name}")][130..]);
        // 3 kT/V for the difference between ensembles
        let why = disagreement(p, error, 0.0, 3.0 * 0.2 / 500.0, 0.16);
        assert!(why.is_none(), "pressure_{name}: {why:?}");
    }
    let h = &t["conserved"][130..];
    let change = h.iter().fold(0.0, |m: f64, x| m.max((x - h[0]).abs()));
    below("example 89: change of the conserved quantity", change / t["potential"][130]);
    // edges b and c are displaced along x and y by less than a tenth of their length
    let d = std::fs::read_to_string(folder.join("89-full-cell.dump")).expect("a dump");
    let displaced = |frame: &str| -> f64 {
        let bounds = frame.lines().skip(1).take(3);
        bounds.map(|l| l.split(' ').nth(2).expect("a tilt").parse::<f64>().expect("a number").abs()).fold(0.0, f64::max)
    };
    let frames: Vec<&str> = d.split("ITEM: BOX BOUNDS xy xz yz pp pp pp").skip(1).collect();
    assert!(displaced(frames[0]) > 1.0 && displaced(frames[frames.len() - 1]) < 0.5, "{}", displaced(frames[0]));
}
