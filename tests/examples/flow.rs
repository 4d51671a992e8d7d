//! Walls, flow, and external fields.

use super::run;
use galamost_tests::{csv, mean};
use std::path::Path;

#[test]
fn example_18_shear() {
    let (_keep, folder) = run("18-shear");
    let t = csv(&folder.join("18-shear.csv"));
    let late = |name: &str| mean(&t[name][300..]);
    let eta = -late("pressure_xy") / 0.2;
    assert!((eta - 0.83).abs() < 0.12, "viscosity {eta}");
    assert!((late("kT") - 1.11).abs() < 0.03, "kT {}", late("kT"));
}

/// The numbers of a node of a `galamost_xml` file, three a particle.
fn node(text: &str, name: &str) -> Vec<[f64; 3]> {
    let rest = text.split_once(&format!("<{name} num=")).expect("a node").1;
    let rows = rest.split_once(">\n").expect("rows").1.split_once("</").expect("an end").0;
    let number = |x: &str| x.parse::<f64>().expect("a number");
    rows.lines()
        .map(|l| l.split_whitespace().map(number).collect::<Vec<_>>().try_into().expect("three numbers"))
        .collect()
}

#[test]
fn example_11_poiseuille() {
    let (_keep, folder) = run("11-poiseuille");
    let mut flows = vec![];
    for step in (1000..=3000).step_by(100) {
        let text = std::fs::read_to_string(folder.join(format!("11-poiseuille.{step:010}.xml"))).expect("a frame");
        let (r, v) = (node(&text, "position"), node(&text, "velocity"));
        let drift = mean(&v.iter().map(|v| v[0]).collect::<Vec<_>>());
        let towards = |(r, v): (&[f64; 3], &[f64; 3])| if r[2] >= 0.0 { v[0] - drift } else { drift - v[0] };
        flows.push(mean(&r.iter().zip(&v).map(towards).collect::<Vec<_>>()));
    }
    let eta = 3.0 * 0.05 * 25.0 / (12.0 * mean(&flows));
    println!("⟨v⟩ {} η {eta}", mean(&flows));
    assert!((eta - 0.87).abs() < 0.1, "η {eta}");
}

#[test]
fn example_12_frozen_walls() {
    let (_keep, folder) = run("12-frozen-walls");
    let t = csv(&folder.join("12-frozen-walls.csv"));
    let momentum = mean(&t["momentum_x"][30..]);
    assert!(momentum > 40.0, "the liquid does not flow: {momentum}");
    let read =
        |step: u32| std::fs::read_to_string(folder.join(format!("12-frozen-walls.{step:010}.xml"))).expect("a state");
    let (first, last) = (read(0), read(3000));
    let (a, b, v) = (node(&first, "position"), node(&last, "position"), node(&last, "velocity"));
    let (mut walls, mut moved) = (0, 0);
    for (k, r) in a.iter().enumerate() {
        if (-3.4..3.4).contains(&r[2]) {
            moved += u32::from(b[k] != *r);
        } else {
            walls += 1;
            assert!(b[k] == *r && v[k] == [0.0; 3], "a particle of the wall moved");
        }
    }
    assert!(walls > 400 && moved > 500, "{walls} in the walls, {moved} moved");
}

/// The numbers of a node in a file.
fn node_of(path: &Path, name: &str) -> Vec<[f64; 3]> {
    node(&std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display())), name)
}

/// Mean of f(r, v) over the particles of some frames.
fn over(folder: &Path, names: impl Iterator<Item = String>, f: impl Fn(&[f64], &[f64]) -> f64) -> f64 {
    let frame = |name: String| {
        let (r, v) = (node_of(&folder.join(&name), "position"), node_of(&folder.join(&name), "velocity"));
        mean(&r.iter().zip(&v).map(|(r, v)| f(r, v)).collect::<Vec<_>>())
    };
    mean(&names.map(frame).collect::<Vec<_>>())
}

#[test]
fn example_20_couette() {
    let (_keep, folder) = run("20-couette");
    let last = node_of(&folder.join("20-couette.0000003000.xml"), "position");
    assert!(last.iter().all(|r| r[2].abs() <= 3.0), "a particle is behind a wall");
    // v = (z + 3)/6 between the walls: ⟨v⟩ = 1/2, and the slope ⟨v z⟩/⟨z²⟩ is 1/6 (six seeds: 0.168)
    let frames = || (4..7).map(|k| format!("20-couette.{:010}.xml", 500 * k));
    let (v, vz) = (over(&folder, frames(), |_, v| v[0]), over(&folder, frames(), |r, v| v[0] * r[2]));
    let slope = vz / over(&folder, frames(), |r, _| r[2] * r[2]);
    assert!((v - 0.5).abs() < 0.08 && (slope - 1.0 / 6.0).abs() < 0.025, "{v} {slope}");
    let kt = mean(&csv(&folder.join("20-couette.csv"))["kT"][30..]);
    assert!((kt - 1.0 - 1.0 / 9.0).abs() < 0.06, "kT {kt}");
}

#[test]
fn example_21_slit() {
    let (_keep, folder) = run("21-slit");
    let t = csv(&folder.join("21-slit.csv"));
    assert!((mean(&t["kT"][40..]) - 1.0).abs() < 0.05, "kT {}", mean(&t["kT"][40..]));
    let (first, last) = (t["ElectricField"][0], mean(&t["ElectricField"][60..]));
    assert!(last < first - 50.0, "the field gave {first} and gives {last}");
    let frame = |step: u32| over(&folder, std::iter::once(format!("21-slit.{step:010}.xml")), |r, _| r[2].abs());
    let last = node_of(&folder.join("21-slit.0000004000.xml"), "position");
    assert!(last.iter().all(|r| r[2].abs() < 6.0) && frame(4000) > 1.0);
}

#[test]
fn example_22_droplet_pore() {
    let (_keep, folder) = run("22-droplet-pore");
    let t = csv(&folder.join("22-droplet-pore.csv"));
    assert!((mean(&t["kT"][20..]) - 1.0).abs() < 0.05, "kT {}", mean(&t["kT"][20..]));
    assert!(mean(&t["Lj93Wall"][20..]) < -20.0, "the ball is not wet: {}", mean(&t["Lj93Wall"][20..]));
    for r in node_of(&folder.join("22-droplet-pore.0000002000.xml"), "position") {
        let rho2 = r[0] * r[0] + r[1] * r[1];
        assert!(rho2 < 5.5 * 5.5 && rho2 + r[2] * r[2] > 1.5 * 1.5, "{r:?}");
    }
}

#[test]
fn example_23_kolmogorov() {
    let (_keep, folder) = run("23-kolmogorov");
    let k = std::f64::consts::TAU / 10.0;
    let frames = (10..31).map(|n| format!("23-kolmogorov.{:010}.xml", 100 * n));
    let amplitude = 2.0 * over(&folder, frames, |r, v| v[0] * (k * r[2]).cos());
    let eta = 3.0 * 0.1 / (k * k * amplitude);
    assert!((eta / 0.9 - 1.0).abs() < 0.25, "η {eta}");
}

#[test]
fn example_27_reverse_perturbation() {
    let (_keep, folder) = run("27-reverse-perturbation");
    let t = csv(&folder.join("27-reverse-perturbation.csv"));
    assert_eq!(t["step"], [1000.0, 2000.0, 3000.0, 4000.0, 5000.0]);
    let at = |k: usize| mean(&t[&format!("v{k}")][1..]);
    // both lines between the slabs 0 and 5, which are left out
    let gradient = 0.5 * ((at(1) - at(4)) + (at(9) - at(6))) / (3.0 * 2.0);
    let eta = mean(&t["flux"][1..]) / gradient;
    assert!((eta / 0.9 - 1.0).abs() < 0.25, "η {eta}");
}

#[test]
fn example_66_profile() {
    let (_keep, folder) = run("66-profile");
    let t = csv(&folder.join("66-profile.csv"));
    let v = &t["velocity_x"];
    // a parabola with its tops in the middle of each half; bins beside the borders have a tenth of the top
    let (low, high) = (mean(&v[4..6]), mean(&v[14..16]));
    // ρ g D²/(8 η) with η = 0.85; three times what some seven independent profiles leave as noise
    assert!((high - 0.55).abs() < 0.09 && (low + 0.55).abs() < 0.09, "{low} {high}");
    assert!([v[0], v[9], v[10], v[19]].iter().all(|v| (v.abs() - 0.1).abs() < 0.12), "{v:?}");
    assert!(t["density"].iter().all(|d| (d - 3.0).abs() < 0.1), "{:?}", t["density"]);
    assert!(t["kT"].iter().all(|x| (x - 1.0).abs() < 0.06), "{:?}", t["kT"]);
}

#[test]
fn example_67_viscosity() {
    let (_keep, folder) = run("67-viscosity");
    let t = csv(&folder.join("67-stress.csv"));
    assert!((t["G"][0] - 25.0).abs() < 4.0, "G(0) = {}", t["G"][0]);
    let k = t["time"].iter().position(|x| *x > 0.9).expect("a lag");
    assert!((t["eta"][k] - 3.0).abs() < 1.0, "η({}) = {}", t["time"][k], t["eta"][k]);
}
