//! Every example runs to its end as it is, and gives what its first lines promise.

use galamost_measure::columns::{Cells, Column};
use galamost_tests::{csv, mean, program, repository};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Copies the examples to a folder of their own and runs one there.
fn run(name: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    for e in std::fs::read_dir(repository().join("examples")).expect("examples/").filter_map(Result::ok) {
        let path = e.path();
        let number = |p: &Path| p.file_name().unwrap_or_default().to_string_lossy()[..2].to_string();
        if path.extension().is_some_and(|x| x == "ron" || x == "xml" || x == "dump" || x == "gz" || x == "pdb")
            && number(&path) == name[..2]
        {
            std::fs::copy(&path, folder.path().join(e.file_name())).expect("copied");
        }
    }
    let out = Command::new(program())
        .args(["--pipeline", &format!("{name}.ron"), "--device", "cpu", "--quiet"])
        .current_dir(folder.path())
        .output()
        .expect("the program runs");
    assert!(out.status.success(), "{name}: {}", String::from_utf8_lossy(&out.stderr));
    let path = folder.path().to_path_buf();
    (folder, path)
}

#[test]
fn example_01_lj_fluid() {
    let (_keep, folder) = run("01-lj-fluid");
    let t = csv(&folder.join("01-lj-fluid.csv"));
    assert_eq!(t["step"].len(), 101);
    let late = |name: &str| mean(&t[name][20..]);
    assert!((late("kT") - 1.2).abs() < 0.02, "kT {}", late("kT"));
    // Thol et al. 2016, truncated at 3σ: P 0.969, U/N −4.543; bounds of four standard errors and the tolerance
    assert!((late("pressure") - 0.969).abs() < 0.15, "P {}", late("pressure"));
    assert!((late("potential") / 1000.0 + 4.543).abs() < 0.03, "U/N {}", late("potential") / 1000.0);
}

#[test]
fn example_02_lj_nve_drift() {
    let (_keep, folder) = run("02-lj-nve-drift");
    let e = &csv(&folder.join("02-lj-nve-drift.csv"))["total"];
    let m = mean(e);
    let rms = mean(&e.iter().map(|x| (x - m).powi(2)).collect::<Vec<_>>()).sqrt();
    assert!(rms / m.abs() < 2.2e-5, "ΔE = {:e}", rms / m.abs());
}

#[test]
fn example_03_dpd_liquid() {
    let (_keep, folder) = run("03-dpd-liquid");
    let t = csv(&folder.join("03-dpd-liquid.csv"));
    let late = |name: &str| mean(&t[name][50..]);
    assert!((late("kT") - 1.002).abs() < 0.015, "kT {}", late("kT"));
    assert!((late("pressure") - 23.68).abs() < 0.15, "P {}", late("pressure"));
    let p = ["momentum_x", "momentum_y", "momentum_z"].map(|n| t[n].last().copied().unwrap_or(f64::NAN).abs());
    assert!(p.iter().all(|p| *p < 1e-3), "momentum {p:?}");
}

#[test]
fn example_04_diblock() {
    let (_keep, folder) = run("04-diblock");
    let t = csv(&folder.join("04-diblock.csv"));
    let kt = mean(&t["kT"][12..]);
    assert!((kt - 1.0).abs() < 0.02, "kT {kt}");
    assert!(t.contains_key("HarmonicBond") && t.contains_key("Dpd"), "an energy for each component");
    assert!(folder.join("04-diblock.gsd").metadata().expect("a trajectory").len() > 3000 * 12 * 5);
    let last = std::fs::read_to_string(folder.join("04-diblock.0000002000.xml")).expect("the last state");
    assert!(last.contains("<bond num=\"2700\">") && last.contains("time_step=\"2000\""));
}

#[test]
fn example_05_two_stages() {
    let (_keep, folder) = run("05-two-stages");
    let t = csv(&folder.join("05-two-stages.csv"));
    assert_eq!(t["step"].len(), 61, "one row at the border of the stages, not two");
    let kt = mean(&t["kT"][52..]);
    assert!((kt - 1.0).abs() < 0.1, "kT {kt} after the ramp");
}

#[test]
fn example_06_kremer_grest_melt() {
    let (_keep, folder) = run("06-kremer-grest-melt");
    let t = csv(&folder.join("06-kremer-grest-melt.csv"));
    let late = |name: &str| mean(&t[name][45..]);
    assert!((late("kT") - 1.0).abs() < 0.03, "kT {}", late("kT"));
    // a run ten times as long, with another seed: 4.98 ± 0.01
    assert!((late("pressure") - 4.98).abs() < 0.4, "P {}", late("pressure"));
    let last = std::fs::read_to_string(folder.join("06-kremer-grest-melt.0000004000.xml")).expect("the last state");
    let rows = |node: &str| -> Vec<Vec<f64>> {
        let (_, rest) = last.split_once(&format!("<{node} num=\"1000\">\n")).expect("a node");
        let text = rest.split_once(&format!("</{node}>")).expect("its end").0;
        text.lines().map(|l| l.split_whitespace().map(|x| x.parse().expect("a number")).collect()).collect()
    };
    let (position, length) = (rows("position"), 10.5567);
    let mut lengths = vec![];
    for chain in 0..40 {
        for k in 25 * chain..25 * chain + 24 {
            let d = |a: usize| {
                let x: f64 = position[k + 1][a] - position[k][a];
                x - length * (x / length).round()
            };
            lengths.push((d(0).powi(2) + d(1).powi(2) + d(2).powi(2)).sqrt());
        }
    }
    let longest = lengths.iter().copied().fold(0.0, f64::max);
    assert!((mean(&lengths) - 0.967).abs() < 0.01 && longest < 1.25, "{} {longest}", mean(&lengths));
}

#[test]
fn example_07_soft_mixture() {
    let (_keep, folder) = run("07-soft-mixture");
    let t = csv(&folder.join("07-soft-mixture.csv"));
    let late = |name: &str| mean(&t[name][40..]);
    assert!((late("kT") - 1.0).abs() < 0.03, "kT {}", late("kT"));
    // a run five times as long, with another seed: 4.836 ± 0.011, 2915.9 ± 1.1, 556.7 ± 1.1
    for (name, value, tolerance) in
        [("pressure", 4.836, 0.12), ("Gaussian", 2915.9, 15.0), ("DebyeHueckel", 556.7, 12.0)]
    {
        assert!((late(name) - value).abs() < tolerance, "{name} {}", late(name));
    }
    assert!(folder.join("07-soft-mixture.gsd").metadata().expect("a trajectory").len() > 800 * 12 * 5);
}

#[test]
fn example_10_langevin_start() {
    let (_keep, folder) = run("10-langevin-start");
    let t = csv(&folder.join("10-langevin-start.csv"));
    let at = |step: f64, name: &str| t[name][t["step"].iter().position(|s| *s == step).expect("a row")];
    assert!(at(0.0, "potential") > 1e12 && at(300.0, "potential") < -2500.0);
    assert!(at(2300.0, "potential") < -5400.0 && at(2300.0, "kinetic") == 0.0, "it has not reached a minimum");
    let kt = mean(&t["kT"][t["kT"].len() - 30..]);
    assert!((kt - 1.0).abs() < 0.04, "kT {kt}");
}

#[test]
fn example_14_patches() {
    let (_keep, folder) = run("14-patches");
    let (t, c) = (csv(&folder.join("14-thermo.csv")), csv(&folder.join("14-patches.csv")));
    for name in ["kT", "kT_rotational"] {
        assert!((mean(&t[name][20..]) - 1.0).abs() < 0.03, "{name} {}", mean(&t[name][20..]));
    }
    let kept = &t["conserved"];
    assert!((kept[50] / kept[10] - 1.0).abs() < 1e-3, "conserved {} and {}", kept[10], kept[50]);
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
fn example_16_rods() {
    let (_keep, folder) = run("16-rods");
    let t = csv(&folder.join("16-thermo.csv"));
    let late = |name: &str| mean(&t[name][20..]);
    assert!((late("kT") - 1.0).abs() < 0.03 && (late("kT_rotational") - 1.0).abs() < 0.03);
    assert!((late("pressure") - 60.0).abs() < 1.5, "P {}", late("pressure"));
    let kept = &t["conserved"];
    assert!((kept[40] / kept[10] - 1.0).abs() < 1e-4, "conserved {} and {}", kept[10], kept[40]);
    let order = csv(&folder.join("16-order.csv"));
    assert!(order["P2"].iter().all(|p| (0.0..1.0).contains(p)) && order["n"][0] == 729.0);
}

#[test]
fn example_19_triblock() {
    let (_keep, folder) = run("19-triblock");
    let t = csv(&folder.join("19-thermo.csv"));
    for name in ["kT", "kT_rotational"] {
        assert!((mean(&t[name][20..]) - 1.0).abs() < 0.03, "{name} {}", mean(&t[name][20..]));
    }
    let c = csv(&folder.join("19-correlation.csv"));
    assert_eq!((c["lag"].len(), c["lag"][1], c["origins"][0], c["origins"][40]), (41, 50.0, 101.0, 61.0));
    assert!((c["C1"][0] - 1.0).abs() < 1e-6 && c["C1"][40] < 0.9 && c["C2"][40] < c["C1"][40]);
    assert!((c["time"][40] - 4.0).abs() < 1e-9);
    let p = csv(&folder.join("19-pairs.csv"));
    let at = |r: f64, cos: f64| {
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
fn example_17_npt_liquid() {
    let (_keep, folder) = run("17-npt-liquid");
    let t = csv(&folder.join("17-npt-liquid.csv"));
    let late = |name: &str| mean(&t[name][60..]);
    // 1/⟨V⟩ of the state with ρ 0.80; four standard errors and the tolerance of the reference
    let density = 1000.0 / late("volume");
    assert!((density - 0.80).abs() < 0.012, "density {density}");
    assert!((late("kT") - 1.0).abs() < 0.03 && (late("pressure") - 1.42).abs() < 0.15, "P {}", late("pressure"));
    let (first, last) = (t["conserved"][60], t["conserved"][t["conserved"].len() - 1]);
    assert!((first - last).abs() < 15.0, "conserved from {first} to {last}");
    assert!((late("length_x") - late("length_y")).abs() < 1e-9);
}

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

#[test]
fn example_13_janus() {
    let (_keep, folder) = run("13-janus");
    let t = csv(&folder.join("13-janus.csv"));
    let late = |name: &str| mean(&t[name][60..]);
    // 1,000 particles, 50 of which turn: standard errors of some 0.005 and 0.03
    assert!((late("kT") - 1.0).abs() < 0.03, "kT {}", late("kT"));
    assert!((late("kT_rotational") - 1.0).abs() < 0.2, "kT_rotational {}", late("kT_rotational"));
    assert!(folder.join("13-janus.gsd").metadata().expect("a trajectory").len() > 4 * 1000 * 28);
}

#[test]
fn example_15_expression() {
    let (_keep, folder) = run("15-expression");
    let t = csv(&folder.join("15-expression.csv"));
    assert_eq!(t["step"].len(), 121);
    let e = &t["total"][41..];
    let m = mean(e);
    let rms = mean(&e.iter().map(|x| (x - m).powi(2)).collect::<Vec<_>>()).sqrt();
    assert!(rms / m.abs() < 1e-4, "ΔE = {:e}", rms / m.abs());
    // 500 particles without forces between them would have −a I₁(a/kT)/I₀(a/kT) = −0.316 each
    let field = mean(&t["ExternalExpression"][41..]) / 500.0;
    assert!((-0.5..-0.1).contains(&field), "{field} for each particle in the field");
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
fn example_24_many_body_film() {
    let (_keep, folder) = run("24-many-body-film");
    let t = csv(&folder.join("24-many-body-film.csv"));
    let late = |name: &str| mean(&t[name][50..]);
    let across = late("pressure_zz");
    let tension = 8.0 * (across - 0.5 * (late("pressure_xx") + late("pressure_yy")));
    assert!((late("kT") - 1.0).abs() < 0.04, "kT {}", late("kT"));
    // six runs: −0.2 ± 0.2 and 8.1 ± 1.3
    assert!(across.abs() < 0.9 && (tension - 7.4).abs() < 3.5, "P across {across}, surface tension {tension}");
    let last = std::fs::read_to_string(folder.join("24-many-body-film.0000004000.xml")).expect("the last state");
    let body = last.split_once("<position num=\"1400\">").expect("positions").1.split_once("</").expect("its end").0;
    let inside = body.lines().filter_map(|l| l.split_whitespace().nth(2)?.parse::<f64>().ok());
    let inside = inside.filter(|z| z.abs() < 2.5).count();
    // 763 at a density of 6.1
    assert!((690..840).contains(&inside), "{inside} particles in a layer of 5 × 5 × 5");
}

#[test]
fn example_25_lowe_andersen() {
    let (_keep, folder) = run("25-lowe-andersen");
    let t = csv(&folder.join("25-lowe-andersen.csv"));
    let late = |name: &str| mean(&t[name][40..]);
    assert!((late("kT") - 1.0).abs() < 0.015, "kT {}", late("kT"));
    assert!((late("pressure") - 23.64).abs() < 0.3, "P {}", late("pressure"));
    let p = ["momentum_x", "momentum_y", "momentum_z"].map(|n| t[n].last().copied().unwrap_or(f64::NAN).abs());
    assert!(p.iter().all(|p| *p < 1e-2), "momentum {p:?}");
}

#[test]
fn example_26_single_chains() {
    let (_keep, folder) = run("26-single-chains");
    let t = csv(&folder.join("26-single-chains.csv"));
    let pairs = mean(&t["LennardJones"][150..]) / 400.0;
    assert!((-3.0..-1.2).contains(&pairs), "U/N {pairs}");
    assert!((mean(&t["kT"][100..]) - 0.5).abs() < 0.03, "kT {}", mean(&t["kT"][100..]));
    // beads of different chains do not see each other: many are where one chain would not let them be
    let last = std::fs::read_to_string(folder.join("26-single-chains.0000020000.xml")).expect("the last state");
    let body = last.split_once("<position num=\"400\">").expect("positions").1.split_once("</").expect("its end").0;
    let x: Vec<Vec<f64>> = body
        .split_terminator('\n')
        .filter(|l| !l.is_empty())
        .map(|l| l.split_whitespace().map(|x| x.parse().expect("a number")).collect())
        .collect();
    assert_eq!(x.len(), 400);
    let near = |i: usize, j: usize| {
        let d = |k: usize| {
            let d = x[i][k] - x[j][k];
            d - 8.0 * (d / 8.0).round()
        };
        d(0).powi(2) + d(1).powi(2) + d(2).powi(2) < 0.49
    };
    let pairs = (0..400).flat_map(|i| (0..i).map(move |j| (i, j)));
    let (mut inside, mut between) = (0, 0);
    for (i, j) in pairs.filter(|(i, j)| near(*i, *j)) {
        *(if i / 20 == j / 20 { &mut inside } else { &mut between }) += 1;
    }
    assert!(inside < 3 && between > 20, "{inside} close pairs inside of chains, {between} between them");
}

#[test]
fn every_example_has_a_test() {
    let here = include_str!("examples.rs");
    let mut n = 0;
    for e in std::fs::read_dir(repository().join("examples")).expect("examples/").filter_map(Result::ok) {
        let name = e.file_name().to_string_lossy().into_owned();
        if let Some(stem) = name.strip_suffix(".ron") {
            n += 1;
            assert!(here.contains(&format!("run(\"{stem}\")")), "{name} is not run");
        }
    }
    assert!(n >= 7);
}

#[test]
fn example_34_field_blend() {
    let (_keep, folder) = run("34-field-blend");
    let t = csv(&folder.join("34-field-blend.csv"));
    let w = &t["MdScf"];
    assert!(w[w.len() - 1] < 0.6 * w[0], "W {} … {}", w[0], w[w.len() - 1]);
    assert!((mean(&t["kT"][50..]) - 1.0).abs() < 0.02);
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
    assert!((mean(&t["kT"][50..]) - 2.644).abs() < 0.05, "kT {}", mean(&t["kT"][50..]));
}

#[test]
fn example_36_charged_field() {
    let (_keep, folder) = run("36-charged-field");
    let t = csv(&folder.join("36-charged-field.csv"));
    let density = 600.0 / mean(&t["volume"][100..]);
    assert!((mean(&t["pressure"][100..]) - 5.0).abs() < 0.15, "P {}", mean(&t["pressure"][100..]));
    assert!((3.1..3.4).contains(&density), "ρ {density}");
}

#[test]
fn example_30_brush() {
    let (_keep, folder) = run("30-brush");
    let t = csv(&folder.join("30-brush.csv"));
    let last = |name: &str| t[name].last().copied().unwrap_or(f64::NAN);
    assert!(t["ends"].iter().all(|n| *n == 57.0), "{:?}", t["ends"]);
    assert!((0.15..0.4).contains(&last("conversion")), "conversion {}", last("conversion"));
    let grown = (last("number_average") - 1.0) * last("molecules");
    let events = std::fs::read_to_string(folder.join("30-brush.events.csv")).expect("events").lines().count() - 1;
    assert_eq!(grown.round() as usize, events, "monomers in chains, and events");
    assert!((1.02..1.5).contains(&last("dispersity")), "dispersity {}", last("dispersity"));
    // the formation of bonds heats a little
    let kt = mean(&csv(&folder.join("30-brush.thermo.csv"))["kT"][10..]);
    assert!((kt - 1.0).abs() < 0.06, "kT {kt}");
}

#[test]
fn example_31_network() {
    let (_keep, folder) = run("31-network");
    let t = csv(&folder.join("31-network.csv"));
    let (step, p) = (&t["step"], &t["conversion"]);
    // rings put the gel point behind that of Flory and Stockmayer, sqrt(1/2)
    let top = (0..p.len()).max_by(|a, b| t["reduced"][*a].total_cmp(&t["reduced"][*b])).expect("rows");
    assert!((0.69..0.82).contains(&p[top]), "gel point {}", p[top]);
    let cured = step.iter().position(|s| *s == 3000.0).expect("the end of the first stage");
    let end = p.len() - 1;
    assert!(p[cured] > 0.8 && p[end] == p[cured], "{} and {}", p[cured], p[end]);
    assert!(t["largest"][end] > 1000.0, "largest {}", t["largest"][end]);
    let events = std::fs::read_to_string(folder.join("31-network.events.csv")).expect("events");
    assert!(events.lines().filter(|l| l.contains(",Exchange,")).count() > 300);
}

#[test]
fn example_38_table() {
    let (_keep, folder) = run("38-table");
    let t = csv(&folder.join("38-table.csv"));
    let late = |name: &str| mean(&t[name][20..]);
    assert!((late("kT") - 1.2).abs() < 0.02, "kT {}", late("kT"));
    // the numbers and bounds of example_01_lj_fluid
    assert!((late("pressure") - 0.969).abs() < 0.15, "P {}", late("pressure"));
    assert!((late("potential") / 1000.0 + 4.543).abs() < 0.03, "U/N {}", late("potential") / 1000.0);
}

#[test]
fn example_39_tables() {
    let (_keep, folder) = run("39-tables");
    let t = csv(&folder.join("39-tables.csv"));
    let e = &t["total"][42..];
    let m = mean(e);
    let rms = mean(&e.iter().map(|x| (x - m).powi(2)).collect::<Vec<_>>()).sqrt();
    assert!(rms / m.abs() < 1e-5, "ΔE = {:e}", rms / m.abs());
    for name in ["PairTable", "BondTable", "AngleTable", "DihedralTable"] {
        assert!(mean(&t[name][42..]).abs() > 1.0, "{name} has no energy");
    }
}

#[test]
fn example_40_distributions() {
    let (_keep, folder) = run("40-distributions");
    for (file, width, name) in
        [("40-bonds.csv", 0.01, "A-A"), ("40-angles.csv", 3.0, "A-A-A"), ("40-dihedrals.csv", 10.0, "A-A-A-A")]
    {
        let t = csv(&folder.join(file));
        assert!((t[name].iter().sum::<f64>() * width - 1.0).abs() < 1e-9, "{file}");
    }
    // both wells of the bonds: 0.92 and 1.08, the first one deeper
    let bonds = csv(&folder.join("40-bonds.csv"));
    let near = |r: f64| bonds["r"].iter().zip(&bonds["A-A"]).find(|(x, _)| (**x - r).abs() < 0.006).expect("a bin").1;
    assert!(*near(0.925) > 2.0 * near(1.005) && *near(0.925) > 1.5 * near(1.075) && *near(1.075) > 1.2 * near(1.005));
    let g = csv(&folder.join("40-rdf.csv"));
    let far = mean(&g["A-A"][60..]);
    assert!(g["A-A"][15] < 0.01 && (0.93..1.01).contains(&far), "g {} … {far}", g["A-A"][15]);
}

#[test]
fn example_42_lammps_dump() {
    let (_keep, folder) = run("42-lammps-dump");
    let t = csv(&folder.join("42-lammps-dump.csv"));
    assert_eq!((t["step"][0], t["step"].last().copied()), (2000.0, Some(3000.0)), "the dump's step is the first");
    let (kt, u) = (mean(&t["kT"]), mean(&t["potential"]) / 343.0);
    assert!((kt - 1.0).abs() < 0.1 && (-5.4..-4.8).contains(&u), "kT {kt}, U/N {u}");
    let g = csv(&folder.join("42-rdf.csv"));
    let top = g["A-A"].iter().copied().fold(0.0, f64::max);
    assert!((2.3..3.2).contains(&top), "g {top}");
}

#[test]
fn example_44_rosenbluth() {
    let (_keep, folder) = run("44-rosenbluth");
    let t = csv(&folder.join("44-rosenbluth.csv"));
    assert_eq!((t["monomers"][1], t["begun"][1]), (3.0, 50_000.0));
    assert!((t["ln_Z"][1] - 30f64.ln()).abs() < 1e-8 && (t["ln_Z"][3] - 726f64.ln()).abs() < 4.0 * t["ln_Z_error"][3]);
    let fit = std::fs::read_to_string(folder.join("44-rosenbluth-fit.csv")).expect("fits");
    let mu: f64 = fit.lines().nth(1).and_then(|l| l.split(',').nth(1)?.parse().ok()).expect("μ");
    assert!((mu - 4.684).abs() < 0.05, "μ {mu}");
    let beads = csv(&folder.join("44-beads.csv"));
    assert!((beads["ln_Z"][1] - 0.75f64.ln()).abs() < 4.0 * beads["ln_Z_error"][1]);
    let h = csv(&folder.join("44-distances.csv"));
    assert!((h["density"].iter().sum::<f64>() - 1.0).abs() < 1e-6);
    assert_eq!(csv(&folder.join("44-chains.csv"))["x"].len(), 480);
}

#[test]
fn example_45_perm() {
    let (_keep, folder) = run("45-perm");
    let theta = std::fs::read_to_string(folder.join("45-contacts-fit.csv")).expect("fits");
    let line = theta.lines().find(|l| l.starts_with("kT_theta")).expect("a temperature");
    let kt: f64 = line.split(',').nth(1).and_then(|x| x.parse().ok()).expect("a number");
    // chains of 64 and 32 are short: their crossing lies below 3.717
    assert!((2.8..3.5).contains(&kt), "kT_theta {kt}");
    let slit = csv(&folder.join("45-slit.csv"));
    let last = slit["R2"].last().copied().unwrap_or(f64::NAN);
    // longer than in free space, where R² of 127 steps is 1.22 · 127^1.176
    assert!(last > 1.22 * 127f64.powf(1.176), "R² {last}");
    assert!(csv(&folder.join("45-star.csv"))["chains"].last().is_some_and(|n| *n > 100.0));
}

#[test]
fn example_46_build_melt() {
    let (_keep, folder) = run("46-build-melt");
    let t = csv(&folder.join("46-build-melt.csv"));
    let kt = mean(&t["kT"][10..]);
    assert!((kt - 1.0).abs() < 0.05, "kT {kt}");
    assert!(folder.join("46-build-melt.gsd").metadata().expect("a trajectory").len() > 1536 * 12 * 3);
}

#[test]
fn example_47_build_brush() {
    let (_keep, folder) = run("47-build-brush");
    let t = csv(&folder.join("47-build-brush.csv"));
    assert!(t["potential"].iter().all(|u| u.is_finite()) && mean(&t["kT"][5..]) < 1.1);
}

#[test]
fn example_65_chain_sizes() {
    let (_keep, folder) = run("65-chain-sizes");
    let each = csv(&folder.join("65-each.csv"));
    // from the middle of the run on; rings are the molecules without ends
    let late = |rings: bool| -> Vec<f64> {
        let rows = (0..each["step"].len()).filter(|i| each["step"][*i] >= 2500.0 && each["Re2"][*i].is_nan() == rings);
        rows.map(|i| each["Rg2"][i]).collect()
    };
    let (chains, rings) = (mean(&late(false)), mean(&late(true)));
    // ½ for random walks; short chains are stiffened by the repulsion between their beads, which swells rings
    assert!((0.5..0.7).contains(&(rings / chains)), "Rg2 of rings {rings}, of chains {chains}");
    let t = csv(&folder.join("65-chains.csv"));
    let ends = mean(&t["Re2"][50..]);
    assert!((ends / chains / (6.0 * 20.0 / 21.0) - 1.0).abs() < 0.15, "Re2 {ends}, Rg2 {chains}");
    let internal = csv(&folder.join("65-internal.csv"));
    assert_eq!(internal["n"].len(), 19);
    assert!((internal["R2/n"][9] / internal["R2/n"][4] - 1.0).abs() < 0.1, "{:?}", internal["R2/n"]);
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

#[test]
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
    let ratio = late("Re2") / late("Rg2");
    assert!((4.5..5.5).contains(&ratio), "Re2/Rg2 {ratio}");
    let thermo = table("68-thermo.parquet");
    let kt = mean(&numbers(&thermo, "kT")[100..]);
    assert!((kt - 1.0).abs() < 0.03, "kT {kt}");
    assert_eq!(thermo[0].len(), 401);
}

#[test]
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
fn example_55_msd() {
    let (_keep, folder) = run("55-msd");
    let (msd, vacf, f) =
        (csv(&folder.join("55-msd.csv")), csv(&folder.join("55-vacf.csv")), csv(&folder.join("55-scattering.csv")));
    let last = msd["time"].len() - 1;
    let from_msd = msd["msd_A"][last] / (6.0 * msd["time"][last]);
    let from_vacf = vacf["diffusion_A"][vacf["lag"].iter().position(|l| *l >= 500.0).expect("a lag")];
    println!("D = {from_msd} by displacements, {from_vacf} by velocities; C(0) = {}", vacf["vacf_A"][0]);
    assert!((from_msd / from_vacf - 1.0).abs() < 0.2, "D = {from_msd} and {from_vacf}");
    assert!((vacf["vacf_A"][0] - 3.0).abs() < 0.2 && vacf["vacf_A"].iter().any(|c| *c < -0.05));
    let sum: f64 = ["x", "y", "z"].iter().map(|k| msd[&format!("msd_{k}_A")][last]).sum();
    assert!((sum / msd["msd_A"][last] - 1.0).abs() < 1e-12);
    assert!((f["Fs_7_A"][0] - 1.0).abs() < 1e-12 && f["F_7"][0] > 1.5, "S at its peak: {}", f["F_7"][0]);
    let end = f["lag"].len() - 1;
    assert!(f["Fs_7_A"][end].abs() < 0.05 && f["F_7"][end].abs() < 0.5);
}

#[test]
fn example_56_structure() {
    let (_keep, folder) = run("56-structure");
    let (g, s) = (csv(&folder.join("56-rdf.csv")), csv(&folder.join("56-structure.csv")));
    let tail = |name: &str| mean(&s[name][s[name].len() - 8..]);
    println!("S at the end: {}, {}, {}; first {}, {}", tail("S"), tail("A-A"), tail("A-B"), s["S"][0], s["A-B"][0]);
    assert!((tail("S") - 1.0).abs() < 0.05 && (tail("A-A") - 1.0).abs() < 0.05 && tail("A-B").abs() < 0.05);
    assert!(s["S"][0] < 0.15 && s["A-B"][0] < -0.2 && s["A-A"][0] > 0.5);
    assert!((mean(&g["A-A"][50..]) - 1.0).abs() < 0.02);
}

#[test]
fn example_57_molecules() {
    let (_keep, folder) = run("57-molecules");
    let (msd, beads, g) =
        (csv(&folder.join("57-msd.csv")), csv(&folder.join("57-beads.csv")), csv(&folder.join("57-rdf.csv")));
    // 20 chains, 800 time units: msd at t = 40 has some 20 × 20 independent displacements of three components
    let k = msd["time"].iter().position(|t| *t >= 40.0).expect("a lag");
    let d = msd["msd_molecules"][k] / (6.0 * msd["time"][k]);
    println!("D = {d}, exact 0.05; beads: {} at the same time; g = {:?}", beads["msd_A"][k], &g["molecules"][4..]);
    assert!((d / 0.05 - 1.0).abs() < 0.25, "D = {d}");
    assert!(beads["msd_A"][k] > 1.3 * msd["msd_molecules"][k]);
    assert!((mean(&g["molecules"][4..]) - 1.0).abs() < 0.15);
}

#[test]
fn example_60_pictures() {
    let (_keep, folder) = run("60-pictures");
    let t = csv(&folder.join("60-pictures.csv"));
    let kt = mean(&t["kT"][50..]);
    assert!((kt - 1.0).abs() < 0.03, "kT {kt}");
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
    for name in ["gsd", "dump", "xyz", "mst", "dcd"] {
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
    let near = |d: f64| (d - 16.0 * (d / 16.0).round()).abs() < 2e-4;
    assert!(state.bonds == last.bonds && far.into_iter().all(|(a, b)| near(a - b)));
    let rg = &csv(&folder.join("70-pdb.csv"))["Rg2"];
    // a run twenty times as long, with another seed: 3.00 ± 0.02, and 0.17 from row to row; three times that
    assert!((mean(&rg[11..]) - 3.0).abs() < 0.5 && (rg[0] - 2.4928).abs() < 1e-3, "{rg:?}");
}

#[test]
fn example_71_replicate() {
    let (_keep, folder) = run("71-replicate");
    let t = csv(&folder.join("71-replicate.csv"));
    assert!((mean(&t["kT"][5..]) - 1.0).abs() < 0.03, "kT {}", mean(&t["kT"][5..]));
    // 3,040 bonds, no longer than those of the small system: of a bond between the wrong copies the energy would be some thousand
    let bonds = mean(&t["HarmonicBond"][5..]) / 3040.0;
    assert!((0.4..0.6).contains(&bonds), "U per bond {bonds}");
}
